create type mood as enum ('sad', 'NULL', 'a "b"', '');
create domain whole as int check (value > 0);
create domain wholes as whole[];
create domain flag as bool;
create type pair as (a int, b text);
create type "Odd ""Pair" as ("x.y" flag, "j\k" jsonb, p pair, ps pair[], at timestamptz);
create type nothing as ();
create type one as (a text);
create domain "a pair" as pair check ((value).a is null or (value).a < 100);
create table row_type (id int, note text, gone int, last bool);
alter table row_type drop column gone;
create table nested (id int primary key, i int[], t text[], b box[], f bool[], j json[], jb jsonb[], m mood[], w wholes, ws whole[],
	p pair, ps pair[], o "Odd ""Pair", os "Odd ""Pair"[], n nothing, ns nothing[], e one, es one[], d "a pair", ds "a pair"[], r row_type, rs row_type[],
	v int2vector, ov oidvector, vs int2vector[], ovs oidvector[], ts timestamptz[], ir int4range[], by bytea[], nm numeric[]);
-- slot
insert into nested (id) values (0);
insert into nested (id, i, t, b, f, j, jb, m, w, ws) values (1, '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}');
insert into nested (id, i, t) values (2, '[-3:-2][5:7]={{1,NULL,3},{-4,5,6}}', array[[['', 'NULL', null], ['null', 'a,b', 'a;b']], [['{', '}', '"'], ['\', ' a ', E'\n\t\x01\x7f']]]);
insert into nested (id, t) values (3, array['é', 'ünï "q" \ \\ \"', '𝄞', '{"a":1}', '[1:2]={}', repeat('\', 9), repeat('"', 5), '(', 'x y', E'\x0b', 'NULLs', 'nan']);
insert into nested (id, b) values (4, array['(1,2),(0,-1)', null, '(Infinity,NaN),(-0,1e300)']::box[]);
insert into nested (id, b) values (5, '{{(1,1),(0,0);(2,2),(0,0)};{(3,3),(0,0);NULL}}');
insert into nested (id, f, j, jb, m) values (6, '{t,f,NULL}', array['{"a" : [1, 2.0] }', '"s"', 'null', null, ' 1e400 ']::json[], array['{"b": 1, "a": "\""}', 'null', null]::jsonb[], array['sad', 'NULL', 'a "b"', '', null]::mood[]);
insert into nested (id, w, ws) values (7, '{{1,2},{3,NULL}}', '[0:0]={7}');
insert into nested (id, p, ps) values (8, '(1,x)', array[row(1, 'x'), row(null, null), null, row(2, ''), row(3, 'a "b" (c), \d'), row(4, ' '), row(5, E'\n')]::pair[]);
insert into nested (id, o) values (9, row(true, '{"k": "v \" \\ ,"}', row(1, 'in "ner"'), array[row(2, 'a,b'), null, row(null, '{}')]::pair[], '2026-01-02 03:04:05.6+00'));
insert into nested (id, os) select 10, array[o, null, row(null, null, null, null, null)::"Odd ""Pair", row(false, 'null', row(null, null), '{}', 'infinity')::"Odd ""Pair"] from nested where id = 9;
insert into nested (id, n, ns, e, es) values (11, row(), array[row(), null]::nothing[], row(null), array[row(null), row(''), row('()'), row('"'), null]::one[]);
insert into nested (id, d, ds) values (12, row(1, 'd'), array[row(2, 'e'), null]::"a pair"[]);
insert into nested (id, r, rs) values (13, row(1, 'n', true), array[row(2, null, false), null]::row_type[]);
insert into nested (id, v, ov, vs, ovs) values (14, '1 -2 3', '4294967295 0', array['1 2', '', '5']::int2vector[], array['1 2', '3']::oidvector[]);
insert into nested (id, v, ov) values (15, '', '');
insert into nested (id, ts, ir, by, nm) values (16, '{infinity,-infinity,"0044-03-15 12:00:00+00 BC","2026-01-02 03:04:05.000001+00",NULL}', array['[1,5)', 'empty', '(,)', null]::int4range[], array['\x00ff22', '', null]::bytea[], '{1.50,NaN,Infinity,-Infinity,-0.000}');
-- oracle
select to_json(whole_row) from nested whole_row;
update nested set id = 100 + id where id in (2, 10);
delete from nested;
