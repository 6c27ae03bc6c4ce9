package proc

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Limit sets the soft limit of one of the child's resources (unix.RLIMIT_NOFILE,
// for example), as setrlimit(2) would in the child itself, and returns what it
// was. What the child holds already stays.
func (p *Process) Limit(resource int, soft uint64) (before uint64, err error) {
	var limit unix.Rlimit
	if err := unix.Prlimit(p.PID(), resource, nil, &limit); err != nil {
		return 0, fmt.Errorf("read a limit of %s: %w", p.name, err)
	}
	before, limit.Cur = limit.Cur, soft
	if err := unix.Prlimit(p.PID(), resource, &limit, nil); err != nil {
		return before, fmt.Errorf("set a limit of %s: %w", p.name, err)
	}
	return before, nil
}
