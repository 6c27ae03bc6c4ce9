//go:build !linux

package replication

import "syscall"

// limitUnacknowledged does nothing here: the kernel's own limit holds.
func limitUnacknowledged(string, string, syscall.RawConn) error { return nil }
