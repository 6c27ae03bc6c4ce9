package laketest

import (
	"context"

	"github.com/tidemark-cdc/tidemark/internal/lake"
)

// Faulty is a store that fails when its owner says so.
type Faulty struct {
	lake.Store
	// BeforePut, if set, is asked before a Put is done: an error is a request
	// that never arrived.
	BeforePut func(key string) error
	// AfterPut, if set, is asked after a Put has succeeded: an error is a reply
	// that was lost.
	AfterPut func(key string) error
	// BeforeRead, if set, is asked before Get, GetRange and Head.
	BeforeRead func(key string) error
}

// Put is lake.Store's.
func (f *Faulty) Put(ctx context.Context, key string, body []byte, cond lake.Condition) (string, error) {
	if f.BeforePut != nil {
		if err := f.BeforePut(key); err != nil {
			return "", err
		}
	}
	etag, err := f.Store.Put(ctx, key, body, cond)
	if err == nil && f.AfterPut != nil {
		err = f.AfterPut(key)
	}
	return etag, err
}

// Get is lake.Store's.
func (f *Faulty) Get(ctx context.Context, key string) ([]byte, string, error) {
	if err := f.read(key); err != nil {
		return nil, "", err
	}
	return f.Store.Get(ctx, key)
}

// GetRange is lake.Store's.
func (f *Faulty) GetRange(ctx context.Context, key string, offset, length int64) ([]byte, error) {
	if err := f.read(key); err != nil {
		return nil, err
	}
	return f.Store.GetRange(ctx, key, offset, length)
}

// Head is lake.Store's.
func (f *Faulty) Head(ctx context.Context, key string) (lake.Info, error) {
	if err := f.read(key); err != nil {
		return lake.Info{}, err
	}
	return f.Store.Head(ctx, key)
}

func (f *Faulty) read(key string) error {
	if f.BeforeRead == nil {
		return nil
	}
	return f.BeforeRead(key)
}
