//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package lake

import (
	"context"
	"errors"
)

// lock needs flock, which this system does not have.
func lock(context.Context, string) (func(), error) {
	return nil, errors.New("a folder as a lake needs file locks, which are not supported on this system: use an S3 store")
}
