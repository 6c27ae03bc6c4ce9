// Package reload follows files that are replaced while a process runs:
// certificates, tokens, whatever has to be rotated without a restart. It watches
// nothing: the files are looked at when their value is asked for.
//
// Packages flight and bearer use it.
package reload

import (
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// settled is how old a file's modification time has to be before its contents
// are taken as final for that time: two writes within the resolution of the
// file system's clock look alike.
const settled = 2 * time.Second

// Value keeps a value that is made of files and makes it again when one of
// them changes. A change that cannot be used (a certificate without its key
// yet, a file that is just being replaced) is logged once and the value before
// it stays in use. Safe for concurrent use.
type Value[T any] struct {
	what  string // for logs and errors, such as "the data plane's token"
	paths []string
	parse func(files [][]byte) (T, error)
	log   *slog.Logger

	mu     sync.Mutex
	loaded bool
	value  T
	// stamp describes the files when they were last read; with final, they are
	// not read again while they still look like that.
	stamp string
	final bool
}

// New reads the files once, so that a wrong setting shows at the start.
// Empty paths stand for no file and are given to parse as nil.
func New[T any](what string, paths []string, log *slog.Logger, parse func([][]byte) (T, error)) (*Value[T], error) {
	r := &Value[T]{what: what, paths: paths, parse: parse, log: log}
	if _, err := r.Get(); err != nil {
		return nil, err
	}
	return r, nil
}

// Get returns the value as the files say now. It fails only before the first
// success.
func (r *Value[T]) Get() (T, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	// Looked at before they are read: a write in between shows the next time.
	stamp, final := r.look()
	if r.loaded && r.final && stamp == r.stamp {
		return r.value, nil
	}
	changed := stamp != r.stamp
	v, err := r.read()
	if err != nil && !r.loaded {
		return v, fmt.Errorf("read %s: %w", r.what, err)
	}
	r.stamp, r.final = stamp, final
	switch {
	case err != nil:
		if changed {
			r.log.Warn("the files have changed and cannot be used; what they said before stays in use", "what", r.what, "error", err)
		}
		return r.value, nil
	case r.loaded && changed:
		r.log.Info("the files have changed and were read again", "what", r.what)
	}
	r.value, r.loaded = v, true
	return v, nil
}

// look describes the files as they are now, and says whether they have settled.
func (r *Value[T]) look() (stamp string, final bool) {
	final = true
	for _, p := range r.paths {
		if p == "" {
			continue
		}
		fi, err := os.Stat(p)
		if err != nil {
			stamp += fmt.Sprintf("%v\n", err)
			continue
		}
		if time.Since(fi.ModTime()) < settled {
			final = false
		}
		stamp += fmt.Sprintf("%s %d %d\n", p, fi.ModTime().UnixNano(), fi.Size())
	}
	return stamp, final
}

func (r *Value[T]) read() (v T, err error) {
	files := make([][]byte, len(r.paths))
	for i, p := range r.paths {
		if p == "" {
			continue
		}
		if files[i], err = os.ReadFile(p); err != nil {
			return v, err
		}
	}
	return r.parse(files)
}
