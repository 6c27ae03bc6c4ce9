package replication

import (
	"strings"
	"syscall"
)

// tcpUserTimeout is TCP_USER_TIMEOUT of tcp(7), in milliseconds.
const tcpUserTimeout = 18

// limitUnacknowledged lets the kernel give up on data that the peer has not
// acknowledged for peerBound; its own limit is about 15 minutes.
func limitUnacknowledged(network, _ string, c syscall.RawConn) error {
	if !strings.HasPrefix(network, "tcp") {
		return nil
	}
	return c.Control(func(fd uintptr) {
		// Best effort: without it a dead peer is only found later.
		_ = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpUserTimeout, int(peerBound.Milliseconds()))
	})
}

// setLowWater sets SO_RCVLOWAT of socket(7).
func setLowWater(fd uintptr, bytes int) error {
	return syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVLOWAT, bytes)
}

// readNow is read(2).
func readNow(fd uintptr, p []byte) (int, error) { return syscall.Read(int(fd), p) }
