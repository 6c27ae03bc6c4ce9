create table d (id int primary key, small text, big text, big2 text);
alter table d alter big set storage external, alter big2 set storage external;
create table f (id int primary key, small text, big text);
alter table f alter big set storage external;
alter table f replica identity full;
create table k (big text primary key, small text);
alter table k alter big set storage external;
-- slot
insert into d values (1, 'a', repeat('x', 2100), null);
update d set small = 'b';
update d set big2 = repeat('y', 2100);
update d set small = 'c';
update d set id = 2;
update d set big = 'short';
delete from d;
insert into f values (1, 'a', repeat('z', 2100));
update f set small = 'b';
-- oracle
select to_json(f) from f;
update f set big = repeat('w', 2100);
delete from f;
insert into k values (repeat('k', 2100), 'a');
update k set small = 'b';
-- oracle
select to_json(k) from k;
delete from k;
