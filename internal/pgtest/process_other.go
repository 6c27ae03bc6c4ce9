//go:build unix && !linux

package pgtest

import "syscall"

// processAttributes put the postmaster in a process group of its own, so that
// a Ctrl-C in a terminal reaches only its parent.
func processAttributes(a account) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Credential: a.credential(), Setpgid: true}
}

// children are not known here: the backends of a killed postmaster end by
// themselves.
func children(int) []int { return nil }

// state is not known here.
func state(int) processState { return gone }
