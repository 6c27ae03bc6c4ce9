// Package load writes to a Postgres database without pause, and knows exactly
// what it has committed.
//
// Several sessions at once run transactions of many sizes over several tables:
// inserts, updates of one row and of many, deletes, COPY, rolled-back
// savepoints, rolled-back transactions. The counts of a transaction are added
// only when it has committed. Should the connection be lost during a COMMIT,
// the session asks Postgres for the fate of its transaction ID, so the counts
// are exact even when Postgres is killed.
package load
