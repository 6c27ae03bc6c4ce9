package streamer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tidemark-cdc/tidemark/internal/change"
	"github.com/tidemark-cdc/tidemark/internal/pgoutput"
	"github.com/tidemark-cdc/tidemark/streamer/ring"
)

// receive moves one connection's stream into the ring until the connection
// ends; the error says how. It blocks while the ring is full, and then reads
// nothing: the session goes on reporting by itself, and notices by that when
// the connection has ended.
func (l *life) receive(ctx context.Context, framer *pgoutput.Framer, conn *connection) error {
	framer.Reset()
	defer l.intake.rest()
	for more := false; ; {
		if !more {
			l.intake.rest()
		}
		msg, err := conn.session.Receive()
		if err != nil {
			return err
		}
		more = msg.More
		if l.draining() {
			// What comes now is not in the ring, so its markers must not be
			// either; the next start reads it again.
			continue
		}
		if msg.Keepalive {
			// Within a transaction the ring may not have heard of it yet.
			if !framer.InTransaction() {
				l.intake.keepalive(msg.WALEnd)
			}
			if msg.ReplyRequested {
				l.keeper.asked.raise()
			}
			continue
		}
		frame, err := framer.Frame(msg.WALStart, change.TimeOf(msg.Arrived), msg.Data)
		if err != nil {
			return err
		}
		switch frame.Kind {
		case pgoutput.Changes:
			err := l.keep(ctx, conn.session.Failed(), frame.Changes)
			switch {
			case errors.Is(err, errDraining):
				continue // as above
			case errors.Is(err, errEnded):
				// What may still be read of it comes after changes that were not kept.
				return conn.session.Err()
			}
			if err != nil {
				return err
			}
			if !framer.InTransaction() {
				// A non-transactional message has no Commit to end it.
				conn.session.NoteEnd(msg.WALStart)
				l.intake.mark(msg.WALStart)
			}
		case pgoutput.Commit:
			end := commitEnd(msg, frame)
			conn.session.NoteEnd(end)
			l.intake.mark(end)
		}
	}
}

// keep puts changes into the ring, waiting while it is full, until the
// connection has ended.
func (l *life) keep(ctx context.Context, ended <-chan struct{}, changes []change.Change) error {
	for i := range changes {
		if err := l.intake.add(ctx, l.drain, ended, &changes[i]); err != nil {
			return err
		}
	}
	return nil
}

// newFramer makes the framer of all connections of the life, which ctx ends.
func (l *life) newFramer(ctx context.Context) *pgoutput.Framer {
	return pgoutput.NewFramer(pgoutput.FramerConfig{
		TimelineOf: func(lsn change.LSN) change.Timeline { return l.history().TimelineOf(lsn) },
		Describe: func(r *change.Relation) error {
			l.intake.rest()
			return l.describe(ctx, r)
		},
		Messages:  l.cfg.Messages,
		LocalOnly: l.cfg.LocalOnly,
		MessageTime: func() (t change.Time) {
			l.intake.rest()
			l.buf.locked(func(r *ring.Ring) { t = r.LastTime() })
			return t
		},
	})
}

// describe fills in the facts of the types that r uses, from the catalog as it
// is now.
func (l *life) describe(ctx context.Context, r *change.Relation) error {
	oids := make([]uint32, len(r.Columns))
	for i, c := range r.Columns {
		oids[i] = c.Type
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	types, err := l.admin.Types(ctx, oids)
	if err != nil {
		return fmt.Errorf("look up the types of table %s: %w", r.QualifiedName(), err)
	}
	r.Types = types
	return nil
}
