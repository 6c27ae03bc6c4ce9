package lake

import (
	"context"
	"errors"
	"iter"
	"time"
)

// What every Store says in the same way. Test with errors.Is.
var (
	// ErrNotFound: there is no object under the key.
	ErrNotFound = errors.New("no such object")
	// ErrPrecondition: the Condition of a Put did not hold, and nothing was
	// written by this call. When the call was sent more than once because a
	// reply was lost, an earlier sending of its own may have been written.
	ErrPrecondition = errors.New("the object is not as the write requires")
)

// Store keeps objects under keys. Implementations are safe for concurrent use.
//
// A key is one or more names joined by "/". A name is not empty and does not
// begin with "." (a store over a folder keeps its own files under such names).
//
// Errors name the object and say what to do; Class sorts them. All methods
// return soon after ctx is done.
type Store interface {
	// Put stores body as the whole object, atomically: others see the object
	// as it was before or all of body, and what Put has returned from is
	// durable. It returns the ETag of what it stored. It keeps no reference to
	// body. ErrPrecondition if cond does not hold; with IfMatch that includes
	// that there is no object.
	Put(ctx context.Context, key string, body []byte, cond Condition) (etag string, err error)
	// Get returns an object and its ETag. The caller owns body. ErrNotFound.
	Get(ctx context.Context, key string) (body []byte, etag string, err error)
	// GetRange returns length bytes from offset on, which the object must
	// have; fewer are an error. ErrNotFound.
	GetRange(ctx context.Context, key string, offset, length int64) ([]byte, error)
	// Head describes an object. ErrNotFound.
	Head(ctx context.Context, key string) (Info, error)
	// List yields the objects whose key begins with prefix and stands after
	// the given key ("" for all), in the order of the keys' bytes. It holds no
	// more than a page (or one folder) in memory. An object that was there
	// before List was called and was not removed is yielded; others may be. An
	// error is yielded once, last.
	List(ctx context.Context, prefix, after string) iter.Seq2[Info, error]
	// Remove removes an object; that there is none is success. Nothing but what
	// Probe wrote, a Pause, and an object in quarantine whose rows are in the
	// lake is ever removed: segments and records stay.
	Remove(ctx context.Context, key string) error
}

// Condition is what must hold of the object under the key for a Put to happen.
// The zero Condition asks for nothing.
type Condition struct {
	// IfNoneMatch: there must be no object.
	IfNoneMatch bool
	// IfMatch: the object must have this ETag.
	IfMatch string
}

// Info describes an object.
type Info struct {
	Key string
	// Size in bytes.
	Size int64
	// Modified is when the store says that the object was written. It is for
	// people: clocks differ.
	Modified time.Time
}

// Unconditional wraps a store that does not know conditional writes: it looks
// first and writes then. Between the two another writer can come, so with such
// a store nothing but the slot itself keeps two streamers apart.
func Unconditional(s Store) Store { return unconditional{s} }

type unconditional struct{ Store }

func (u unconditional) Put(ctx context.Context, key string, body []byte, cond Condition) (string, error) {
	switch {
	case cond.IfNoneMatch:
		_, err := u.Head(ctx, key)
		if err == nil {
			return "", &Error{Op: "write", Object: key, Kind: Precondition, Err: ErrPrecondition}
		}
		if !errors.Is(err, ErrNotFound) {
			return "", err
		}
	case cond.IfMatch != "":
		_, etag, err := u.Get(ctx, key)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return "", err
		}
		if err != nil || etag != cond.IfMatch {
			return "", &Error{Op: "write", Object: key, Kind: Precondition, Err: ErrPrecondition}
		}
	}
	return u.Store.Put(ctx, key, body, Condition{})
}
