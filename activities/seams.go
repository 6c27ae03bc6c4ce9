package activities

import (
	"context"

	"github.com/tidemark-cdc/tidemark/internal/segment"
)

// StoredObject is temporary: lake.Object.
type StoredObject struct {
	Key     string
	Rows    int64
	Bytes   int64
	Existed bool
}

// Lake is the part of *lake.Lake that a worker needs.
type Lake interface {
	URL() string
	FindSegment(ctx context.Context, ref segment.Ref) (StoredObject, bool, error)
	PutSegment(ctx context.Context, ref segment.Ref, body []byte) (StoredObject, error)
	PutQuarantine(ctx context.Context, ref segment.Ref, body []byte) (StoredObject, error)
}

func storeError(action string, err error) error { return fail(StoreFailed, err, "") }
