package streamer

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/tidemark-cdc/tidemark/internal/change"
	"github.com/tidemark-cdc/tidemark/internal/lake"
	"github.com/tidemark-cdc/tidemark/internal/pgoutput"
	"github.com/tidemark-cdc/tidemark/streamer/replication"
)

// watchEvery is how often the server is asked who owns the slot.
const watchEvery = 5 * time.Second

// connection is a replication connection that streams, with what was true of
// the server when it began to.
type connection struct {
	session *replication.Session
	lineage
	// system and history have the server's timelines as positions have them:
	// with the offset of the lake's identity.
	system  replication.System
	history replication.History
	slot    replication.SlotInfo
	// flushed is pg_current_wal_flush_lsn(), read after streaming had begun:
	// whatever an earlier owner of the slot can have seen lies below it.
	flushed change.LSN
}

// lineage is what the lake says of the servers that its rows come from.
type lineage struct {
	identity lake.Identity
	// gone are the branches of history that were abandoned and settled.
	gone lake.Divergences
}

// connectFirst connects for a new life, waiting for the server and for the slot
// as long as it takes: a standby streamer waits here.
func (s *Streamer) connectFirst(ctx context.Context) (*connection, error) {
	of, err := s.readLineage(ctx)
	if err != nil {
		return nil, err
	}
	return s.connect(ctx, of, func(note string) { s.setLife(nil, note) })
}

// readLineage reads pipeline.json and the recorded divergences, waiting while
// the lake cannot be reached.
func (s *Streamer) readLineage(ctx context.Context) (of lineage, err error) {
	err = patiently(ctx, s.deps.Logger, "the lake's identity cannot be read; streaming waits for it", func() (again bool, err error) {
		of.identity, err = s.deps.Lake.ReadIdentity(ctx)
		if errors.Is(err, lake.ErrNotFound) {
			return false, stop("run tidemark setup", "the lake %s has no identity: it was not set up", s.deps.Lake.URL())
		}
		if err == nil {
			of.gone, err = s.deps.Lake.Divergences(ctx)
		}
		return true, err
	})
	return of, err
}

// connect tries until it streams, ctx ends, or an error says that trying again
// cannot help. note is told what is being waited for.
func (s *Streamer) connect(ctx context.Context, of lineage, note func(string)) (*connection, error) {
	standing := false
	for wait := firstBackoff; ; wait = min(2*wait, lastBackoff) {
		conn, err := s.tryConnect(ctx, of)
		if err == nil {
			return conn, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		switch {
		case errors.Is(err, replication.ErrSlotInUse):
			note(noteStandby)
			if !standing {
				s.deps.Logger.Info("standing by: another process streams from the slot", "slot", s.cfg.Replication.Slot)
			}
			standing = true
			wait = firstBackoff // an owner's end should not go unnoticed for long
		case passing(err):
			note("waiting for Postgres: " + err.Error())
			s.deps.Logger.Warn("Postgres cannot be streamed from; trying again", "error", err, "again_within", wait)
		default:
			return nil, err
		}
		if err := sleep(ctx, wait/2+rand.N(wait/2)); err != nil {
			return nil, err
		}
	}
}

// tryConnect makes one attempt: it opens a session, makes sure that the server
// is the one that the lake belongs to, and starts streaming.
func (s *Streamer) tryConnect(ctx context.Context, of lineage) (_ *connection, err error) {
	cfg := s.cfg.Replication
	session, err := replication.Open(ctx, cfg, s.deps.Logger)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, session.Close(ctx))
		}
	}()
	c := &connection{session: session, lineage: of, system: session.System()}
	if err := of.identity.Check(s.cfg.Pipeline, c.system.SystemID); err != nil {
		return nil, stop("see \"identity\" in the operations guide", "lake %s: %s", s.deps.Lake.URL(), err)
	}
	if c.history, err = session.History(ctx); err != nil {
		return nil, err
	}
	_, offset := of.identity.Present()
	c.system.Timeline += offset
	c.history = c.history.Shift(offset)
	if err := session.Start(ctx); err != nil {
		return nil, err
	}
	if c.slot, err = s.admin.Slot(ctx); err != nil {
		return nil, err
	}
	if c.flushed, err = s.admin.FlushLSN(ctx); err != nil {
		return nil, err
	}
	return c, s.checkKnown(c)
}

// passing says whether connecting again can help after err.
func passing(err error) bool {
	var stopped *StopError
	switch {
	case errors.As(err, &stopped), errors.Is(err, errNewLife), errors.Is(err, pgoutput.ErrMalformed):
		return false
	}
	return replication.Transient(err)
}

// checkRecord compares the lake's record with the server, and returns the
// record as it holds on this server's timeline.
func checkRecord(rec lake.AckRecord, c *connection) (lake.AckRecord, error) {
	if tl := c.history.TimelineOf(rec.Last.LSN); tl != rec.Last.Timeline && !c.gone.Cover(rec.Last) {
		return rec, stop(doLost, "the lake's last row stands at %s, but on this server LSN %s belongs to timeline %d",
			rec.Last, rec.Last.LSN, tl)
	}
	end, ended := c.history.EndOf(rec.Timeline)
	switch {
	case !ended && rec.Timeline != c.system.Timeline:
		// Where it branched off is not known here, and the ack may lie above rows
		// of this branch that are not in the lake.
		return rec, stop(doLost, "the lake has on record that everything up to %s on timeline %d is safe, but this server, on timeline %d, does not descend from that timeline",
			rec.Ack, rec.Timeline, c.system.Timeline)
	case ended && rec.Ack > end:
		// The server went on from below our idle ack, on a new timeline. No row
		// is lost, but LSNs between the two are in use again: back to the
		// switchpoint.
		rec.Ack, rec.Timeline = end, c.system.Timeline
	}
	if c.slot.ConfirmedFlush > rec.Ack {
		return rec, stop(doAhead, "slot %s stands at %s, ahead of what the lake has on record (%s)", c.slot.Name, c.slot.ConfirmedFlush, rec.Ack)
	}
	if c.flushed < rec.Ack {
		return rec, stop(doLost, "the lake has on record that everything up to %s is safe, but this server's WAL ends at %s: it was restored from an older copy",
			rec.Ack, c.flushed)
	}
	return rec, nil
}

// stream keeps a connection up and the ring filled until ctx ends. Between two
// connections the ring stays as it is, and what the next one repeats is dropped.
func (l *life) stream(ctx context.Context) error {
	conn, framer := l.current(), l.newFramer(ctx)
	for {
		// The life may have ended while conn was made: whoever closes the present
		// connection then has not found it.
		stop := context.AfterFunc(ctx, func() { l.close(conn) })
		err := l.receive(ctx, framer, conn)
		stop()
		l.disconnect()
		l.use(nil)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case !passing(err) && !errors.Is(err, replication.ErrClosed):
			return err
		}
		// ErrClosed: watch has let a server go that shuts down.
		cause := causeOf(err)
		l.log.Warn("the replication connection ended; connecting again", "error", err)
		l.setTrouble(err.Error())
		if conn, err = l.reconnect(ctx); err != nil {
			return err
		}
		l.count.reconnects.Add(1)
		l.observer.Reconnected(cause)
		l.log.Info("streaming again", "confirmed_flush", conn.slot.ConfirmedFlush)
	}
}

func (l *life) reconnect(ctx context.Context) (*connection, error) {
	conn, err := l.dial(ctx, l.lineage, l.setTrouble)
	if err != nil {
		return nil, err
	}
	if conn.system.Timeline != l.timeline {
		err = newLife("the server is on timeline %d now, it was on %d", conn.system.Timeline, l.timeline)
	} else if _, err = checkRecord(l.keeper.recorded(), conn); err != nil {
		// Our record may be out of date: another process may have had the slot
		// in between. If the lake's is no better, the next life stops.
		err = newLife("%v", err)
	} else if last := l.buf.lastReceived(); conn.lacks(last) != "" {
		// New rows would be taken for repeated ones.
		err = newLife("rows up to %s were received, but %s", last, conn.lacks(last))
	}
	if err != nil {
		return nil, errors.Join(err, conn.session.Close(ctx))
	}
	l.use(conn)
	return conn, nil
}

// use makes conn the present connection.
func (l *life) use(conn *connection) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conn = conn
	if conn == nil {
		return
	}
	l.trouble = ""
	l.hist = conn.history
	l.flushedAt = max(l.flushedAt, conn.flushed)
	l.days.forget()
	l.guard.confirm()
	if l.ackSent > 0 {
		conn.session.SetAck(l.ackSent)
	}
}

func (l *life) current() *connection {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.conn
}

func (l *life) history() replication.History {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.hist
}

// horizon is the LSN below which an earlier owner of the slot may have read.
func (l *life) horizon() change.LSN {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.flushedAt
}

func (l *life) setTrouble(why string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.trouble = why
}

// watch asks the server every few seconds how the slot stands, until ctx ends.
func (s *Streamer) watch(ctx context.Context) {
	tick := time.NewTicker(s.cfg.watchEvery)
	defer tick.Stop()
	for {
		s.look(ctx)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// look sees whether the slot is ours, how much WAL is kept for it, and whether
// the server waits for us in order to shut down: it waits for its receivers, and
// accepts nobody new.
func (s *Streamer) look(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, watchEvery)
	defer cancel()
	s.mu.Lock()
	l := s.life
	s.mu.Unlock()
	var conn *connection
	if l != nil {
		conn = l.current()
	}
	slot, err := s.admin.Slot(ctx)
	if err == nil {
		s.watchWAL(ctx, slot)
	}
	if conn == nil {
		return
	}
	if err == nil {
		l.guard.note(slot)
	}
	switch pid := slot.ActivePID; {
	case err == nil && pid == conn.session.PID():
		l.guard.confirm()
	case err != nil && replication.IsShuttingDown(err):
		l.log.Info("Postgres is shutting down; letting it go")
		l.disconnect()
	case err == nil:
		l.log.Warn("the slot is not held by our connection", "slot", l.cfg.Replication.Slot, "active_pid", pid, "our_pid", conn.session.PID())
	}
}

// flushed asks for the end of the server's WAL, trying until ctx ends.
func (l *life) flushed(ctx context.Context) (change.LSN, error) {
	for {
		lsn, err := l.admin.FlushLSN(ctx)
		if err == nil {
			return lsn, nil
		}
		if ctx.Err() != nil {
			return 0, ctx.Err()
		}
		l.log.Warn("Postgres cannot be asked for the end of its WAL; trying again", "error", err)
		if err := sleep(ctx, firstBackoff); err != nil {
			return 0, err
		}
	}
}
