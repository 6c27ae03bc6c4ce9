// Package chaos breaks everything that Tidemark depends on, at random moments
// and over and over, while it carries changes, and then counts.
//
// A World is the servers: real Postgres, Temporal and an S3 gateway, each as a
// process of its own, with proxies before them that can cut, refuse, hold and
// lose. A Run is one pipeline in it: a database, a slot, a prefix, and tidemark
// processes under a supervisor. A Writer commits transactions of every shape,
// and the Truth is what Postgres itself says was committed, read from a second
// slot by another plugin, in commit order. A Fault is something to break, and
// how to mend it. At the end the lake is held against the truth, change by
// change.
//
// There are two users. A Campaign runs under a steady load for as long as it is
// told to, and measures how long each kind of fault is felt. The state machine
// test draws short histories of commits and faults, a pipeline each, and makes a
// failing one shorter.
package chaos
