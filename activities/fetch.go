package activities

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/tidemark-cdc/tidemark/internal/change"
	"github.com/tidemark-cdc/tidemark/internal/segment"
)

type sourceFunc func(segment.Location) (segment.Source, error)

// body fetches the segment's changes, checks that they are the dispatched ones,
// and encodes them. Nothing is encoded before the check, so that a damaged
// message counts as a damaged fetch and not as one that nobody can decode.
func (t *attempt) body(ctx context.Context, encode encoder) ([]byte, error) {
	if err := t.roomFor(ctx); err != nil {
		return nil, err // the attempt was stopped
	}
	t.enter(StepFetch, 0, 0)
	source, err := t.source(t.in.Source)
	if err != nil {
		return nil, t.fetchError(err)
	}
	reader, err := source.Fetch(ctx, t.in.Ref.Ticket())
	if err != nil {
		return nil, t.fetchError(err)
	}
	// The changes are valid until then, and are not kept beyond it. What Close
	// says does not matter any more.
	defer reader.Close()

	batches, err := t.read(reader)
	if err != nil {
		return nil, err
	}
	t.enter(StepEncode, t.in.Ref.Rows, t.in.Ref.Bytes)
	body, err := encode(ctx, t.in.Ref, batches)
	if err == nil {
		t.roomDownTo(int64(len(body)))
	}
	return body, err
}

// read collects the changes and compares their number and digest with the
// reference's.
func (t *attempt) read(reader segment.Reader) ([][]change.Change, error) {
	var batches [][]change.Change
	hasher := segment.NewHasher()
	for {
		batch, err := reader.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, t.fetchError(err)
		}
		for i := range batch {
			hasher.Add(&batch[i])
		}
		batches = append(batches, batch)
		t.enter(StepFetch, hasher.Rows(), hasher.Bytes())
		if hasher.Rows() > t.in.Ref.Rows {
			// Not read to its end: a wrong answer may be of any size.
			break
		}
	}
	ref := t.in.Ref
	if hasher.Rows() != ref.Rows || hasher.Sum() != ref.Digest {
		return nil, fail(RowsDiffer,
			fmt.Errorf("the rows fetched from the streamer at %s are not the dispatched ones: %d rows with digest %s instead of %d with digest %s",
				t.in.Source.Address, hasher.Rows(), hasher.Sum(), ref.Rows, ref.Digest),
			"nothing was stored, and they are fetched again; if it stays so, see the streamer's log")
	}
	return batches, nil
}

// fetchError says why the rows cannot be had now.
func (t *attempt) fetchError(err error) error {
	err = fmt.Errorf("fetch its rows from the streamer at %s: %w", t.in.Source.Address, err)
	switch {
	case errors.Is(err, segment.ErrNotYet):
		return &problem{class: RowsNotYet, cause: err, advice: "it is tried again", after: notYetAfter}
	case errors.Is(err, segment.ErrGone):
		return fail(RowsGone, err, "and the lake has no such object; it is tried again")
	case errors.Is(err, segment.ErrUnknown):
		return fail(RowsUnknown, err, "and the lake has no such object; it is tried again, and scheduled anew as soon as a streamer has the rows")
	}
	return fail(FetchFailed, err, "it is tried again; if it stays so, check that the streamer runs and that this worker reaches that address")
}

// rowsAreGone says whether err means that the streamer will not have the rows,
// as after another attempt has stored them.
func rowsAreGone(err error) bool {
	return errors.Is(err, segment.ErrGone) || errors.Is(err, segment.ErrUnknown)
}
