//go:build !linux

package replication

import (
	"errors"
	"syscall"
)

// limitUnacknowledged does nothing here: the kernel's own limit holds.
func limitUnacknowledged(string, string, syscall.RawConn) error { return nil }

// setLowWater says that there is none here: the reader is woken for each message.
func setLowWater(uintptr, int) error { return errors.ErrUnsupported }

// readNow is not called where there is no low-water mark.
func readNow(uintptr, []byte) (int, error) { return 0, errors.ErrUnsupported }
