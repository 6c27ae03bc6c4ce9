create table a (id int primary key, v text);
create table b (id int primary key, v text);
create unlogged table u (id int primary key);
-- slot
begin;
commit;
insert into u values (1);
begin;
insert into a values (1, 'kept');
savepoint s1;
insert into a values (2, 'rolled back');
rollback to s1;
insert into a values (3, 'kept');
savepoint s2;
insert into b values (3, 'kept');
release s2;
commit;
begin;
insert into a values (4, 'rolled back');
rollback;
begin;
insert into a values (10, 'first of one');
-- on 2
begin;
insert into a values (20, 'first of two');
-- on 1
insert into b values (10, 'second of one');
-- on 2
insert into b values (20, 'second of two');
commit;
-- on 1
commit;
copy a (id) from program 'seq 100 105';
select pg_logical_emit_message(true, 'alone', 'transactional');
select pg_logical_emit_message(false, 'alone', 'not transactional');
begin;
insert into a values (30, 'before');
select pg_logical_emit_message(true, 'in between', 'transactional "quoted"');
select pg_logical_emit_message(false, 'ahead', 'not transactional');
select pg_logical_emit_message(true, 'bytes', '\x00ff80'::bytea);
insert into a values (31, 'after');
commit;
truncate a, b;
begin;
insert into a values (1, 'again');
truncate b, a restart identity cascade;
insert into b values (1, 'again');
commit;
truncate a;
