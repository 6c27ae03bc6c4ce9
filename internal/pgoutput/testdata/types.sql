create type mood as enum ('sad', 'it''s "ok"');
create type pair as (x int, y text);
create domain positive as int check (value > 0);
create domain deep as positive;
create domain doc as jsonb;
create domain flag as bool;
create domain instant as timestamptz;
create table numbers (id int primary key, i2 int2, i8 int8, o oid, f4 float4, f8 float8, n numeric, np numeric(30, 10), m money, p positive, dp deep);
create table texts (id int primary key, t text, v varchar(10), c char(5), n name, b bytea, u uuid, e mood, x xml, bits bit(4), "char" "char");
create table documents (id int primary key, j json, b jsonb, d doc);
create table times (id int primary key, d date, t time, tz timetz, ts timestamp, tstz timestamptz, p timestamptz(0), i interval, dom instant);
create table others (id int primary key, bo bool, fl flag, ip inet, c cidr, mac macaddr, pt point, r int4range, l pg_lsn, tsv tsvector);
-- slot
insert into numbers values (1, -32768, 9223372036854775807, 4294967295, 1.5, 0.1, 12345678901234567890.123456789, 1.5, 12.34, 7, 8);
insert into numbers values (2, 0, -9223372036854775808, 0, 'NaN', 'Infinity', 'NaN', null, '-1', null, null);
insert into numbers values (3, 1, 0, 1, '-Infinity', '-0', '-Infinity', 0.0000000001, 0, 1, 1);
insert into numbers values (4, 1, 0, 1, 1e-30, 1e300, 1e100, -0.1, 0, 1, 1);
insert into numbers values (5, 1, 0, 1, 3.4028235e38, 5e-324, 0.000, 100, 0, 1, 1);
insert into texts values (1, E'tab\t nl\n cr\r bs\b ff\f quote" back\\ bell\x07 unit\x1f del\x7f slash/', 'café', 'ab', 'n', '\xdeadbeef', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', 'sad', '<a b="c"/>', '1010', 'c');
insert into texts values (2, U&'\+01F600 \2028 \FFFD', '', '', '', '', null, 'it''s "ok"', null, null, '');
insert into documents values (1, '{ "a" : [1, 2.50,null],
  "b":"\u00e9" }', '{"b": 1.00, "a": {"x": "y"}}', '[true]');
insert into documents values (2, 'null', 'null', '"text"');
insert into documents values (3, null, null, null);
insert into times values (1, '2026-01-02', '03:04:05', '03:04:05+02', '2026-01-02 03:04:05', '2026-01-02 03:04:05.678+02', '2026-01-02 03:04:05.678+02', '1 year 2 days 03:04:05.6', '2026-01-02 03:04:05+00');
insert into times values (2, 'infinity', '24:00', '00:00-15:59', '-infinity', 'infinity', '-infinity', '-1 day', null);
insert into times values (3, '0044-03-15 BC', '00:00:00.000001', '00:00:00.1+00', '0044-03-15 12:00:00 BC', '0044-03-15 12:00:00.5+00 BC', '0001-01-01 00:00:00+00', '0', '4713-01-01 00:00:00+00 BC');
insert into times values (4, '5874897-12-31', null, null, '294276-12-31 23:59:59.999999', '294276-12-31 23:59:59.999999+00', '10000-01-01 00:00:00+00', null, null);
insert into others values (1, true, false, '10.0.0.1/8', '10.0.0.0/8', '08:00:2b:01:02:03', '(1,2.5)', '[1,5)', '16/B374D848', 'a:1 b:2');
insert into others values (2, null, null, '::1', '::/0', null, null, 'empty', null, '');
-- oracle
select to_json(image) from numbers image;
-- oracle
select to_json(image) from texts image;
-- oracle
select to_json(image) from documents image;
-- oracle
select to_json(image) from times image;
-- oracle
select to_json(image) from others image;
