// Package harness is what the end-to-end tests stand on: a stack of its own for
// each test, the tidemark binary as child processes, and the means to compare
// the lake with Postgres.
//
//	h := harness.New(t, harness.Options{Postgres: 15})
//	p := h.Run()
//	h.SQL("insert into public.events values (1, 'a', 'b')")
//	p.Kill9()
//	h.Run()
//	h.WaitAck()
//	h.SameAsPostgres("public.events")
//
// What cannot be done fails the test at once, so the tests read as stories. A
// test that fails shows the end of every log of its stack; with the environment
// variable DEVSTACK_KEEP its folder stays. DEVSTACK_TIDEMARK names a
// tidemark binary to test in place of a fresh build.
package harness
