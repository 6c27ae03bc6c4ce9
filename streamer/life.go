package streamer

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tidemark-cdc/tidemark/internal/change"
	"github.com/tidemark-cdc/tidemark/internal/lake"
	"github.com/tidemark-cdc/tidemark/internal/segment"
	"github.com/tidemark-cdc/tidemark/streamer/replication"
	"github.com/tidemark-cdc/tidemark/streamer/ring"
)

// life is everything that holds from one reading of the lake's record to the
// end of its validity; see the package comment.
type life struct {
	cfg     Config
	at      segment.Location
	tracker Tracker
	lake    Lake
	log     *slog.Logger
	lineage
	// systemID is the present server's.
	systemID string
	timeline change.Timeline
	admin    *replication.Admin

	buf     *buffer
	intake  intake // into buf, of the receiver alone
	shelf   *shelf
	flights *flights
	guard   *guard
	keeper  *keeper
	// follows is the last position of the segment before the next one to be
	// cut. Only the dispatcher touches it.
	follows change.Position
	// places bounds the segments in flight: one token each.
	places chan struct{}
	group  *errgroup.Group

	// drain is closed when a graceful stop begins: nothing is read any more,
	// and what is waiting is dispatched.
	drain    chan struct{}
	count    *counters
	observer Observer
	traces   *traces
	furthest *furthest
	drift    *driftGuard
	pauses   *pauses

	// dial makes a new connection, trying until it streams.
	dial func(context.Context, lineage, func(string)) (*connection, error)
	days days

	mu   sync.Mutex
	conn *connection // the present one; nil while there is none
	hist replication.History
	// flushedAt is the WAL's end when the last connection began to stream.
	flushedAt change.LSN
	ackSent   change.LSN
	trouble   string // why there is no connection
	bridges   bridges
}

// live runs one life.
func (s *Streamer) live(ctx context.Context, at segment.Location) error {
	s.setLife(nil, "connecting")
	first, err := s.connectFirst(ctx)
	if err != nil {
		return err
	}
	l, err := s.newLife(ctx, at, first)
	if err != nil {
		closeErr := first.session.Close(ctx)
		return errors.Join(err, closeErr)
	}
	s.shelf.begin(l.buf)
	s.setLife(l, "streaming")
	defer s.shelf.begin(nil)

	// The life outlasts ctx by the graceful stop.
	hard, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	group, gctx := errgroup.WithContext(hard)
	l.group = group
	dispatched := make(chan struct{})
	group.Go(func() error { return l.stream(gctx) })
	group.Go(func() error {
		err := l.dispatch(gctx)
		if err == nil {
			close(dispatched)
		}
		return err
	})
	group.Go(func() error { return l.keeper.keep(gctx) })
	group.Go(func() error { return l.watchTables(gctx) })
	group.Go(func() error { return s.watchPause(gctx) })

	select {
	case <-ctx.Done():
		l.stopGracefully(gctx, dispatched)
	case <-gctx.Done():
	}
	cancel()
	l.disconnect()
	err = group.Wait()
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// newLife reads the lake's record and makes what depends on it. The slot is
// ours by now, so an earlier owner cannot acknowledge any more.
func (s *Streamer) newLife(ctx context.Context, at segment.Location, first *connection) (*life, error) {
	l := &life{
		cfg: s.cfg, at: at, tracker: s.deps.Tracker, lake: s.deps.Lake, log: s.deps.Logger,
		observer: s.deps.Observer, traces: newTraces(s.deps.Tracer),
		admin: s.admin, dial: s.connect, count: &s.count, furthest: &s.furthest, drift: &s.drift, pauses: &s.pauses,
		lineage: first.lineage, systemID: first.system.SystemID, timeline: first.system.Timeline,
		shelf: s.shelf, flights: newFlights(), guard: newGuard(s.deps.Logger),
		places: make(chan struct{}, s.cfg.MaxInFlight), drain: make(chan struct{}),
	}
	rec, etag, err := s.readRecord(ctx, first.identity)
	if err != nil {
		return nil, err
	}
	if rec, err = checkRecord(rec, first); err != nil {
		return nil, err
	}
	if err := s.learnPause(ctx); err != nil {
		return nil, err
	}
	l.log.Info("streaming begins", "slot", s.cfg.Replication.Slot, "confirmed_flush", first.slot.ConfirmedFlush, "recorded_ack", rec.Ack, "follows", rec.Last, "timeline", l.timeline)
	l.buf = newBuffer(s.cfg.Ring, ring.Start{Last: l.begin(rec.Last), Time: change.TimeOf(rec.LastTime), Ack: rec.Ack})
	l.intake = intake{buffer: l.buf}
	l.keeper = &keeper{l: l, rec: rec, etag: etag, asked: newSignal(), finals: make(chan chan error)}
	l.follows = rec.Last
	// The process before may have ended between the record and the report.
	l.ackSent = rec.Ack
	if err := l.checkAhead(ctx, rec, first); err != nil {
		return nil, err
	}
	l.use(first)
	return l, nil
}

// readRecord reads ack.json, waiting while the lake cannot be reached.
func (s *Streamer) readRecord(ctx context.Context, id lake.Identity) (rec lake.AckRecord, etag string, err error) {
	err = patiently(ctx, s.deps.Logger, "the lake's record of the ack cannot be read; streaming waits for it", func() (again bool, err error) {
		rec, etag, err = s.deps.Lake.ReadAck(ctx)
		if errors.Is(err, lake.ErrNotFound) {
			rec, etag, err = id.FirstAck(), "", nil
		}
		return true, err
	})
	return rec, etag, err
}

// lastRecordBound is how long a stop waits for the lake to take the last record.
const lastRecordBound = 5 * time.Second

// stopGracefully is called when the life is to end in peace. It returns when
// everything is done, or the time is up, or the life has ended by itself.
func (l *life) stopGracefully(ctx context.Context, dispatched <-chan struct{}) {
	l.log.Info("stopping: no more is read, segments in flight are finished", "at_most", l.cfg.ShutdownTimeout)
	flying, cancel := context.WithTimeout(ctx, l.cfg.ShutdownTimeout)
	defer cancel()
	close(l.drain)
	select {
	case <-dispatched:
	case <-flying.Done():
	}
	if err := l.flights.wait(flying); err != nil {
		l.log.Warn("stopping before every segment has finished: the next start adopts them", "in_flight", l.flights.count())
	}
	// What has finished is worth a moment even if the time is up.
	ctx, cancel = context.WithTimeout(ctx, lastRecordBound)
	defer cancel()
	if err := l.keeper.last(ctx); err != nil {
		l.log.Warn("the last ack could not be recorded: the next start finds the segments finished", "error", err)
	}
}

// draining says whether a graceful stop has begun.
func (l *life) draining() bool {
	select {
	case <-l.drain:
		return true
	default:
		return false
	}
}

// disconnect closes the present connection, with a last status update.
func (l *life) disconnect() {
	l.mu.Lock()
	conn := l.conn
	l.mu.Unlock()
	if conn != nil {
		l.close(conn)
	}
}

// close closes a connection, with a last status update. Safe to call again.
func (l *life) close(conn *connection) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := conn.session.Close(ctx); err != nil {
		l.log.Debug("closing the replication connection", "error", err)
	}
}

// reported lets the session report ack, which the lake has on record.
func (l *life) reported(ack change.LSN) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ackSent = ack
	if l.conn != nil {
		l.conn.session.SetAck(ack)
	}
}
