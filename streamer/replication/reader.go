package replication

import (
	"bufio"
	"io"
)

// newReader takes many of Postgres' 8 KiB writes with one system call.
func newReader(r io.Reader) io.Reader { return bufio.NewReaderSize(r, readBuffer) }
