// Package stack runs Temporal, an S3 gateway and Postgres as child processes on
// loopback ports, for the development stack, the demo and the end-to-end tests.
//
// Each of the three is a server that is started, stopped, killed and started
// again on its own, at the same address and with the same data: Temporal keeps
// its state in a SQLite file, the gateway in a folder, Postgres in its cluster.
//
// Temporal and the gateway are this very program, started again with an
// environment variable; so a program that uses this package calls Main first of
// all, a test from TestMain:
//
//	func TestMain(m *testing.M) {
//		stack.Main()
//		os.Exit(m.Run())
//	}
//
// The children end with their parent, however it ends. What they write goes to
// files in the stack's folder.
//
// A FaultProxy stands between clients and the gateway where a test wants S3 to
// be slow, refuse, or lose its answers.
package stack
