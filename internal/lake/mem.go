package lake

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// Memory is a Store in memory, for tests. The zero Memory is not ready; use
// NewMemory.
type Memory struct {
	mu      sync.Mutex
	objects map[string]memoryObject
}

type memoryObject struct {
	body     []byte
	modified time.Time
}

// NewMemory returns an empty Memory.
func NewMemory() *Memory { return &Memory{objects: map[string]memoryObject{}} }

func (m *Memory) fail(op, key string, kind FailureKind, err error) error {
	return &Error{Op: op, Object: "memory:" + key, Kind: kind, Err: err}
}

// Put is Store's.
func (m *Memory) Put(ctx context.Context, key string, body []byte, cond Condition) (string, error) {
	if err := checkKey(key); err != nil {
		return "", m.fail("write", key, Misconfigured, err)
	}
	if err := ctx.Err(); err != nil {
		return "", m.fail("write", key, Canceled, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	old, ok := m.objects[key]
	if cond.IfNoneMatch && ok || cond.IfMatch != "" && (!ok || contentTag(old.body) != cond.IfMatch) {
		return "", m.fail("write", key, Precondition, ErrPrecondition)
	}
	m.objects[key] = memoryObject{body: slices.Clone(body), modified: time.Now()}
	return contentTag(body), nil
}

// Get is Store's.
func (m *Memory) Get(ctx context.Context, key string) ([]byte, string, error) {
	o, err := m.object(ctx, "read", key)
	if err != nil {
		return nil, "", err
	}
	return slices.Clone(o.body), contentTag(o.body), nil
}

// GetRange is Store's.
func (m *Memory) GetRange(ctx context.Context, key string, offset, length int64) ([]byte, error) {
	o, err := m.object(ctx, "read", key)
	if err != nil {
		return nil, err
	}
	if offset < 0 || length < 0 || offset+length > int64(len(o.body)) {
		return nil, m.fail("read", key, Unknown, rangeError(offset, length, int64(len(o.body))))
	}
	return slices.Clone(o.body[offset : offset+length]), nil
}

// Head is Store's.
func (m *Memory) Head(ctx context.Context, key string) (Info, error) {
	o, err := m.object(ctx, "look for", key)
	if err != nil {
		return Info{}, err
	}
	return Info{Key: key, Size: int64(len(o.body)), Modified: o.modified}, nil
}

// List is Store's.
func (m *Memory) List(ctx context.Context, prefix, after string) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		m.mu.Lock()
		objects := maps.Clone(m.objects)
		m.mu.Unlock()
		for _, key := range slices.Sorted(maps.Keys(objects)) {
			if err := ctx.Err(); err != nil {
				yield(Info{}, m.fail("list", prefix, Canceled, err))
				return
			}
			if key <= after || !strings.HasPrefix(key, prefix) {
				continue
			}
			if !yield(Info{Key: key, Size: int64(len(objects[key].body)), Modified: objects[key].modified}, nil) {
				return
			}
		}
	}
}

// Remove is Store's.
func (m *Memory) Remove(ctx context.Context, key string) error {
	if err := checkKey(key); err != nil {
		return m.fail("remove", key, Misconfigured, err)
	}
	if err := ctx.Err(); err != nil {
		return m.fail("remove", key, Canceled, err)
	}
	m.Delete(key)
	return nil
}

// Delete is Remove for tests that damage a lake.
func (m *Memory) Delete(key string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.objects, key)
}

func (m *Memory) object(ctx context.Context, op, key string) (memoryObject, error) {
	if err := ctx.Err(); err != nil {
		return memoryObject{}, m.fail(op, key, Canceled, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	o, ok := m.objects[key]
	if !ok {
		return memoryObject{}, m.fail(op, key, Missing, ErrNotFound)
	}
	return o, nil
}

// contentTag is the ETag of the stores that have none of their own.
func contentTag(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}

func rangeError(offset, length, size int64) error {
	return fmt.Errorf("bytes %d to %d of an object of %d bytes: %w", offset, offset+length, size, io.ErrUnexpectedEOF)
}
