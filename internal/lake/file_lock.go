//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package lake

import (
	"context"
	"errors"
	"os"
	"syscall"
	"time"
)

// lock takes the lock file at path, among all goroutines and processes, and
// returns what gives it back. The kernel gives it back if the process dies.
func lock(ctx context.Context, path string) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	// flock cannot be told to stop waiting, so it is asked again and again.
	const pause = 5 * time.Millisecond
	for {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { file.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			file.Close()
			return nil, os.NewSyscallError("flock", err)
		}
		select {
		case <-ctx.Done():
			file.Close()
			return nil, ctx.Err()
		case <-time.After(pause):
		}
	}
}
