package lake

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// File is a Store over a folder. An object is a file of the same name; names
// that begin with a dot are File's own:
//
//	.tidemark/tmp/   objects that are being written
//	.tidemark/lock   locked (flock) while a file is replaced
//
// An object is written to a temporary file, synced, and linked or renamed into
// place, so it is whole or absent also after a crash. All files must be on one
// local file system: over a network, locks and links may not keep their word.
type File struct {
	root string
	// swept: what dead processes have left is looked for once, before the
	// first Put.
	swept sync.Once
}

// NewFile returns the store over the folder root, an absolute path. The folder
// is made by the first Put; until then it counts as empty.
func NewFile(root string) *File { return &File{root: root} }

const ownFolder = ".tidemark"

// Put is Store's. The ETag is a hash of the content.
func (f *File) Put(ctx context.Context, key string, body []byte, cond Condition) (etag string, err error) {
	fail := func(err error) (string, error) { return "", f.fail("write", key, err) }
	if err := checkKey(key); err != nil {
		return fail(err)
	}
	if err := ctx.Err(); err != nil {
		return fail(err)
	}
	if err := makeFolders(filepath.Join(f.root, ownFolder, "tmp")); err != nil {
		return fail(err)
	}
	f.swept.Do(f.sweep)
	tmp, err := f.writeTemp(body)
	if err != nil {
		return fail(err)
	}
	defer func() {
		if removeErr := os.Remove(tmp); removeErr != nil && !errors.Is(removeErr, fs.ErrNotExist) && err == nil {
			err = f.fail("write", key, removeErr)
		}
	}()
	path := f.path(key)
	if err := makeFolders(filepath.Dir(path)); err != nil {
		return fail(err)
	}
	if err := f.place(ctx, tmp, path, cond); err != nil {
		return fail(err)
	}
	if err := syncFolder(filepath.Dir(path)); err != nil {
		return fail(err)
	}
	return contentTag(body), nil
}

// place makes the finished temporary file the object, if cond holds.
func (f *File) place(ctx context.Context, tmp, path string, cond Condition) error {
	if cond.IfNoneMatch {
		// A link fails if the name is taken: one system call, no lock.
		err := os.Link(tmp, path)
		switch {
		case errors.Is(err, fs.ErrExist):
			return ErrPrecondition
		case err == nil || !noLinks(err):
			return err
		}
	}
	unlock, err := lock(ctx, filepath.Join(f.root, ownFolder, "lock"))
	if err != nil {
		return err
	}
	defer unlock()
	switch {
	case cond.IfNoneMatch:
		if _, err := os.Lstat(path); err == nil {
			return ErrPrecondition
		} else if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	case cond.IfMatch != "":
		body, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) || err == nil && contentTag(body) != cond.IfMatch {
			return ErrPrecondition
		}
		if err != nil {
			return err
		}
	}
	return os.Rename(tmp, path)
}

// noLinks says that the file system has no hard links.
func noLinks(err error) bool {
	return errors.Is(err, syscall.EPERM) || errors.Is(err, errors.ErrUnsupported) || errors.Is(err, syscall.EMLINK)
}

// writeTemp writes a temporary file that is durable.
func (f *File) writeTemp(body []byte) (path string, err error) {
	file, err := os.CreateTemp(filepath.Join(f.root, ownFolder, "tmp"), "put-*")
	if err != nil {
		return "", err
	}
	defer func() {
		err = errors.Join(err, file.Close())
		if err != nil {
			err = errors.Join(err, os.Remove(file.Name()))
		}
	}()
	// Other users read the lake with their own tools.
	if err := file.Chmod(0o644); err != nil {
		return "", err
	}
	if _, err := file.Write(body); err != nil {
		return "", err
	}
	return file.Name(), file.Sync()
}

// sweep removes temporary files that no living process can still be writing. A
// failure costs disk space only, and the next process tries again.
func (f *File) sweep() {
	const age = 24 * time.Hour
	folder := filepath.Join(f.root, ownFolder, "tmp")
	entries, err := os.ReadDir(folder)
	if err != nil {
		return
	}
	for _, e := range entries {
		if stat, err := e.Info(); err == nil && time.Since(stat.ModTime()) > age {
			_ = os.Remove(filepath.Join(folder, e.Name()))
		}
	}
}

// Get is Store's.
func (f *File) Get(ctx context.Context, key string) ([]byte, string, error) {
	file, _, err := f.open(ctx, key)
	if err != nil {
		return nil, "", f.fail("read", key, err)
	}
	defer file.Close()
	body, err := io.ReadAll(file)
	if err != nil {
		return nil, "", f.fail("read", key, err)
	}
	return body, contentTag(body), nil
}

// GetRange is Store's.
func (f *File) GetRange(ctx context.Context, key string, offset, length int64) ([]byte, error) {
	file, info, err := f.open(ctx, key)
	if err != nil {
		return nil, f.fail("read", key, err)
	}
	defer file.Close()
	if offset < 0 || length < 0 || offset+length > info.Size {
		return nil, f.fail("read", key, rangeError(offset, length, info.Size))
	}
	b := make([]byte, length)
	if _, err := file.ReadAt(b, offset); err != nil {
		return nil, f.fail("read", key, err)
	}
	return b, nil
}

// Head is Store's.
func (f *File) Head(ctx context.Context, key string) (Info, error) {
	file, info, err := f.open(ctx, key)
	if err != nil {
		return Info{}, f.fail("look for", key, err)
	}
	return info, file.Close()
}

// open opens an object. ErrNotFound if there is no file of that name.
func (f *File) open(ctx context.Context, key string) (*os.File, Info, error) {
	if err := ctx.Err(); err != nil {
		return nil, Info{}, err
	}
	if err := checkKey(key); err != nil {
		return nil, Info{}, err
	}
	file, err := os.Open(f.path(key))
	if err != nil {
		return nil, Info{}, err
	}
	stat, err := file.Stat()
	if err == nil && !stat.Mode().IsRegular() {
		err = fs.ErrNotExist
	}
	if err != nil {
		file.Close()
		return nil, Info{}, err
	}
	return file, Info{Key: key, Size: stat.Size(), Modified: stat.ModTime()}, nil
}

// List is Store's. It holds one folder at a time, and the folders above it.
func (f *File) List(ctx context.Context, prefix, after string) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		w := walk{root: f.root, prefix: prefix, after: after, yield: yield}
		if err := w.folder(ctx, ""); err != nil && !errors.Is(err, errStopped) {
			yield(Info{}, f.fail("list", prefix, err))
		}
	}
}

// Remove is Store's. The folders above the object stay.
func (f *File) Remove(ctx context.Context, key string) error {
	err := checkKey(key)
	if err == nil {
		err = ctx.Err()
	}
	if err == nil {
		err = os.Remove(f.path(key))
	}
	if err == nil || errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil
	}
	return f.fail("remove", key, err)
}

func (f *File) path(key string) string { return filepath.Join(f.root, filepath.FromSlash(key)) }

// fail makes a system error one of the package's.
func (f *File) fail(op, key string, err error) error {
	e := &Error{Op: op, Object: "file://" + f.root + "/" + key, Kind: Unknown, Err: err}
	switch {
	case errors.Is(err, ErrPrecondition):
		e.Kind = Precondition
	case op == "write" && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.EISDIR)):
		e.Kind, e.Hint = Misconfigured, fmt.Sprintf("something in the place of a folder below %s is a file, or the other way round, or is being removed: move it away, or correct the lake's URL", f.root)
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		e.Kind, e.Err = Missing, ErrNotFound
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		e.Kind, e.Hint = Denied, fmt.Sprintf("let the user with the ID %d read and write the folder %s", os.Getuid(), f.root)
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		e.Kind, e.Hint = Full, fmt.Sprintf("make room on the file system of %s", f.root)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		e.Kind = Canceled
	}
	return e
}
