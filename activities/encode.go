package activities

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/tidemark-cdc/tidemark/internal/change"
	"github.com/tidemark-cdc/tidemark/internal/lake"
	"github.com/tidemark-cdc/tidemark/internal/pgoutput"
	"github.com/tidemark-cdc/tidemark/internal/rowfile"
	"github.com/tidemark-cdc/tidemark/internal/segment"
)

// encoder makes an object's body out of a segment's changes, in stream order.
type encoder func(ctx context.Context, ref segment.Ref, batches [][]change.Change) ([]byte, error)

// rows encodes the rows of a segment's object.
func (a *Activities) rows(ctx context.Context, ref segment.Ref, batches [][]change.Change) ([]byte, error) {
	var out bytes.Buffer
	w, ok := a.writers.Get().(*rowfile.Writer)
	var err error
	opts := optionsFor(ref)
	if a.ReadBack != nil {
		opts.ReadBack = func(rel *change.Relation, key []change.KeyValue, xid uint32, columns []string) ([][]byte, bool, error) {
			texts, found, err := a.ReadBack.Values(ctx, rel, key, xid, columns)
			if err != nil {
				err = fmt.Errorf("%w: %w", errReadBack, err)
			}
			return texts, found, err
		}
	}
	if ok {
		err = w.Reset(&out, opts)
	} else {
		w, err = rowfile.NewWriter(&out, opts)
	}
	if err != nil {
		return nil, encodeError(err)
	}
	if err := write(w, batches); err != nil {
		return nil, encodeError(err)
	}
	a.writers.Put(w)
	var decoded operations
	for _, batch := range batches {
		decoded.add(batch)
	}
	decoded.tell(a.observed())
	return out.Bytes(), nil
}

// raw encodes the raw messages of a segment's quarantine.
func (a *Activities) raw(_ context.Context, ref segment.Ref, batches [][]change.Change) ([]byte, error) {
	var out bytes.Buffer
	w, err := rowfile.NewRawWriter(&out, optionsFor(ref))
	if err != nil {
		return nil, encodeError(err)
	}
	if err := write(w, batches); err != nil {
		return nil, encodeError(err)
	}
	return out.Bytes(), nil
}

func optionsFor(ref segment.Ref) rowfile.Options {
	return rowfile.Options{Metadata: lake.MetadataOf(ref).KeyValues()}
}

// writer is either of rowfile's.
type writer interface {
	Write([]change.Change) error
	Close() (rowfile.Stats, error)
}

func write(w writer, batches [][]change.Change) error {
	for _, batch := range batches {
		if err := w.Write(batch); err != nil {
			return err
		}
	}
	_, err := w.Close()
	return err
}

// errReadBack marks what the database answered, or did not.
var errReadBack = errors.New("the database was asked for an unchanged TOASTed value")

func encodeError(err error) error {
	err = fmt.Errorf("encode its rows: %w", err)
	switch {
	case errors.Is(err, pgoutput.ErrMalformed):
		return fail(MalformedMessage, err, "the bytes are the ones that Postgres sent, so another attempt would fail the same way; "+
			"upgrade the workers to a release that understands them and send the update retry, or send the update quarantine")
	case errors.Is(err, rowfile.ErrTooLarge):
		return fail(RowTooLarge, err, "another attempt would fail the same way; send the update quarantine to put the raw messages aside")
	case errors.Is(err, errReadBack):
		return fail(ReadBackFailed, err, "see that the worker's postgres.url is right and may read the table, or set worker.toast to unchanged")
	}
	return fail(EncodeFailed, err, "")
}
