create schema "My Schema";
create table "My Schema"."quote"" and \back" ("Col ""1""" int primary key, "tab	in name" text, "новый" text, "select" text);
create table "user" ("order" int primary key);
create table lists (a int, b int, c int, primary key (a));
-- publish for table "My Schema"."quote"" and \back", "user", lists (a, c)
-- slot
insert into "My Schema"."quote"" and \back" values (1, 'a', 'б', 'c');
-- oracle
select to_json(t) from "My Schema"."quote"" and \back" t;
insert into "user" values (1);
insert into lists values (1, 2, 3);
update lists set a = 4;
