create table p (id int, k text, primary key (id, k)) partition by list (k);
create table p_a partition of p for values in ('a');
create table p_b (k text not null, dropped int, id int not null);
alter table p_b drop dropped;
alter table p_b add primary key (id, k);
alter table p attach partition p_b for values in ('b');
-- slot
insert into p values (1, 'a'), (2, 'b');
update p set k = 'b' where id = 1;
truncate p;
create table p_c partition of p for values in ('c');
insert into p values (3, 'c');
alter table p detach partition p_c;
insert into p_c values (4, 'c');
