package replication

import (
	"errors"
	"syscall"
	"testing"
)

// lowWaterOf asks the kernel for a connection's low-water mark.
func lowWaterOf(t *testing.T, c *calm) (bytes int) {
	t.Helper()
	var err error
	failed := c.raw.Control(func(fd uintptr) { bytes, err = syscall.GetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVLOWAT) })
	if err := errors.Join(failed, err); err != nil {
		t.Fatal(err)
	}
	return bytes
}

func TestTheKernelKnowsTheMark(t *testing.T) {
	c, _ := calmPair(t)
	flood(t, c)
	if got := lowWaterOf(t, c); got != lowWater {
		t.Errorf("the mark is at %d bytes, want %d", got, lowWater)
	}
}
