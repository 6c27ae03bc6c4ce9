package pgtest

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// processAttributes put the postmaster in a process group of its own, so that
// a Ctrl-C in a terminal reaches only its parent, and let it end with its
// parent (SIGQUIT is an immediate shutdown).
func processAttributes(a account) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Credential: a.credential(), Setpgid: true, Pdeathsig: syscall.SIGQUIT}
}

// children are the process IDs of pid's direct children.
func children(pid int) []int {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	if err != nil {
		return nil
	}
	var pids []int
	for _, f := range strings.Fields(string(b)) {
		if n, err := strconv.Atoi(f); err == nil {
			pids = append(pids, n)
		}
	}
	return pids
}

// state says what has become of a process.
func state(pid int) processState {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	// The name, in parentheses, may hold anything.
	after := b[bytes.LastIndexByte(b, ')')+1:]
	if err != nil || len(after) < 2 {
		return gone
	}
	switch after[1] {
	case 'Z', 'X': // what is left waits for its parent
		return gone
	case 'T', 't':
		return stopped
	}
	return running
}
