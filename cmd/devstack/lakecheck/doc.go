// Package lakecheck reads the files of a lake with DuckDB, a reader that shares
// no code with Tidemark, and holds them against Postgres: how many rows there
// are of each table and operation, whether every position occurs once, whether
// replaying the rows gives the tables as they stand.
package lakecheck
