package lake

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// walk lists a tree of folders in the order of the keys' bytes.
type walk struct {
	root, prefix, after string
	yield               func(Info, error) bool
}

// errStopped: whoever takes the objects wants no more.
var errStopped = errors.New("stopped")

// folder yields what lies below the folder; at is "" for the root, else it ends
// with a slash.
func (w walk) folder(ctx context.Context, at string) error {
	entries, err := os.ReadDir(filepath.Join(w.root, filepath.FromSlash(at)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	// A folder sorts as its keys do, with the slash: "a.b" stands before "a/b".
	keys := make(map[string]fs.DirEntry, len(entries))
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		name := e.Name()
		if strings.HasPrefix(name, ".") {
			continue
		}
		if e.IsDir() {
			name += "/"
		}
		keys[name] = e
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return err
		}
		key, e := at+name, keys[name]
		if e.IsDir() {
			wanted := strings.HasPrefix(key, w.prefix) || strings.HasPrefix(w.prefix, key)
			passed := key < w.after && !strings.HasPrefix(w.after, key)
			if !wanted || passed {
				continue
			}
			if err := w.folder(ctx, key); err != nil {
				return err
			}
			continue
		}
		if !e.Type().IsRegular() || key <= w.after || !strings.HasPrefix(key, w.prefix) {
			continue
		}
		stat, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if !w.yield(Info{Key: key, Size: stat.Size(), Modified: stat.ModTime()}, nil) {
			return errStopped
		}
	}
	return nil
}

// makeFolders is os.MkdirAll, durable: the new folders' names are synced.
func makeFolders(path string) error {
	err := os.Mkdir(path, 0o755)
	switch {
	case err == nil:
		return syncFolder(filepath.Dir(path))
	case errors.Is(err, fs.ErrExist):
		return nil
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if err := makeFolders(filepath.Dir(path)); err != nil {
		return err
	}
	if err := os.Mkdir(path, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return syncFolder(filepath.Dir(path))
}

// syncFolder makes the names in a folder durable.
func syncFolder(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	err = d.Sync()
	// Some file systems cannot sync a folder and say so with these.
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported) {
		err = nil
	}
	return errors.Join(err, d.Close())
}
