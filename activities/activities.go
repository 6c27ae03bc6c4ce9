package activities

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/tidemark-cdc/tidemark/internal/change"
	"github.com/tidemark-cdc/tidemark/internal/lake"
	"github.com/tidemark-cdc/tidemark/internal/segment"
)

// Activities are the activities of a worker: one value for all of them, safe for
// concurrent use. Its exported fields are set before the worker starts and never
// changed.
type Activities struct {
	// Source gives the source of the rows at a location: the ring itself when
	// the streamer is this very process, else a connection. It is called
	// once per attempt, so that pooling connections is its affair.
	Source func(segment.Location) (segment.Source, error)
	// Lake is where this worker writes; a segment of another lake is refused.
	Lake Lake
	// ReadBack, if set, is asked for unchanged TOASTed values that a segment does
	// not have, and says so in the row.
	ReadBack ReadBack
	// Observer, if set, is told what the attempts do.
	Observer Observer
	// Tracer, if set, is told of each attempt.
	Tracer Tracer
	// Logger is required.
	Logger *slog.Logger
	// HeartbeatEvery is the pause between two heartbeats, and before the first:
	// an attempt that is done sooner costs Temporal nothing more. Zero is 2 s;
	// never more than a third of the heartbeat timeout.
	HeartbeatEvery time.Duration

	// MaxBytes bounds the raw bytes of the segments that are in hand at once, and
	// the encoded ones that are being stored: an attempt waits before it fetches
	// more. A segment that is larger by itself is worked on alone until it is
	// encoded. Zero is no bound.
	MaxBytes int64

	// writers holds *rowfile.Writer for their buffers.
	writers sync.Pool
	// room is made by the first attempt.
	room  *room
	rooms sync.Once
}

// Lake is the part of *lake.Lake that a worker needs.
type Lake interface {
	URL() string
	FindSegment(ctx context.Context, ref segment.Ref) (lake.Object, bool, error)
	FindQuarantine(ctx context.Context, ref segment.Ref) (lake.Object, bool, error)
	PutSegment(ctx context.Context, ref segment.Ref, body []byte) (lake.Object, error)
	PutQuarantine(ctx context.Context, ref segment.Ref, body []byte) (lake.Object, error)
	ReadQuarantine(ctx context.Context, ref segment.Ref) ([]byte, error)
	RemoveQuarantine(ctx context.Context, ref segment.Ref) error
}

// ReadBack is the part of *readback.Reader that a worker needs.
type ReadBack interface {
	Values(ctx context.Context, rel *change.Relation, key []change.KeyValue, xid uint32, columns []string) (texts [][]byte, found bool, err error)
}

// Upload brings a segment into the lake. See the package comment for what holds
// when it runs more than once.
func (a *Activities) Upload(ctx context.Context, in UploadInput) (UploadResult, error) {
	t := a.begin(ctx, "upload", in)
	defer t.end()
	out, err := t.upload(ctx)
	t.ended(ctx, out, err)
	return out, toTemporal(ctx, t.action, in.Ref, err)
}

// Quarantine puts a segment's raw messages below the lake's _quarantine/. A
// segment whose object turns out to be in the lake is left alone: the result
// then is the same as Upload's.
func (a *Activities) Quarantine(ctx context.Context, in QuarantineInput) (UploadResult, error) {
	t := a.begin(ctx, "quarantine", in)
	defer t.end()
	out, err := t.quarantine(ctx)
	t.ended(ctx, out, err)
	return out, toTemporal(ctx, t.action, in.Ref, err)
}

// admit refuses what this worker must not touch.
func (t *attempt) admit() error {
	if t.in.Version > Version {
		return fail(WorkerTooOld, fmt.Errorf("the input has version %d, this worker understands up to %d", t.in.Version, Version),
			"upgrade the workers of this task queue; the segment is tried again until one of a newer release takes it")
	}
	if err := t.in.Ref.Validate(); err != nil {
		return fail(BadReference, err, "no streamer makes such a reference; was the workflow started by hand?")
	}
	if mine := t.lake.URL(); t.in.Ref.Lake != mine {
		return fail(AnotherLake, fmt.Errorf("the segment belongs to the lake %s, this worker is configured for the lake %s", t.in.Ref.Lake, mine),
			"give the worker the pipeline's lake, or a task queue of its own, then send the update retry")
	}
	return nil
}

func (t *attempt) upload(ctx context.Context) (UploadResult, error) {
	if err := t.admit(); err != nil {
		return UploadResult{}, err
	}
	if t.number > 1 || t.in.Again {
		if out, ok, err := t.look(ctx); ok || err != nil {
			return out, err
		}
	}
	body, err := t.body(ctx, t.encode)
	if rowsAreGone(err) {
		// An attempt that was first here may still be a later one than that of a
		// worker whose answer was lost.
		if out, ok, lookErr := t.look(ctx); ok || lookErr != nil {
			return out, lookErr
		}
	}
	if err != nil {
		return UploadResult{}, err
	}
	t.enter(StepStore, t.in.Ref.Rows, int64(len(body)))
	object, err := t.lake.PutSegment(ctx, t.in.Ref, body)
	if err != nil {
		return UploadResult{}, storeError("store the object", err)
	}
	return t.stored(object, false), nil
}

func (t *attempt) quarantine(ctx context.Context) (UploadResult, error) {
	if err := t.admit(); err != nil {
		return UploadResult{}, err
	}
	if out, ok, err := t.look(ctx); ok || err != nil {
		return out, err
	}
	body, err := t.body(ctx, t.encodeRaw)
	if err != nil {
		return UploadResult{}, err
	}
	t.enter(StepStore, t.in.Ref.Rows, int64(len(body)))
	object, err := t.lake.PutQuarantine(ctx, t.in.Ref, body)
	if err != nil {
		return UploadResult{}, storeError("store the raw messages", err)
	}
	return t.stored(object, true), nil
}

// stored is the result of an attempt that the lake has taken an object from.
func (t *attempt) stored(object lake.Object, quarantined bool) UploadResult {
	if !object.Existed {
		t.observer.Stored(object.Rows, object.Bytes, quarantined)
	}
	return resultOf(object, quarantined)
}

// look looks for what an earlier attempt may have stored: the object, or the raw
// messages. Rows that are in quarantine must not become a second link of the
// lake's chain, nor those that are in the lake.
func (t *attempt) look(ctx context.Context) (UploadResult, bool, error) {
	t.enter(StepLook, 0, 0)
	object, ok, err := t.lake.FindSegment(ctx, t.in.Ref)
	if err != nil {
		return UploadResult{}, false, storeError("look for the object", err)
	}
	quarantined := false
	if !ok {
		object, ok, err = t.lake.FindQuarantine(ctx, t.in.Ref)
		if err != nil {
			return UploadResult{}, false, storeError("look for the object in quarantine", err)
		}
		quarantined = true
	}
	if !ok {
		return UploadResult{}, false, nil
	}
	object.Existed = true
	t.log.Info("the lake has the object already", "key", object.Key)
	return resultOf(object, quarantined), true, nil
}

func resultOf(object lake.Object, quarantined bool) UploadResult {
	return UploadResult{
		Version:     Version,
		Objects:     []Object{{Key: object.Key, Rows: object.Rows, Bytes: object.Bytes}},
		Existed:     object.Existed,
		Quarantined: quarantined,
	}
}
