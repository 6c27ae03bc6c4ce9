package stories

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/tidemark-cdc/tidemark/internal/change"
	"github.com/tidemark-cdc/tidemark/internal/flight"
	"github.com/tidemark-cdc/tidemark/internal/pgoutput"
	"github.com/tidemark-cdc/tidemark/internal/segment"
	"github.com/tidemark-cdc/tidemark/internal/segment/segmenttest"
	"github.com/tidemark-cdc/tidemark/streamer/replication"
)

// reader reads a slot from its start until it is told that there is an end and
// has reached it. It acknowledges nothing.
type reader struct {
	session *replication.Session
	changes []change.Change
	err     error
	done    chan struct{}

	mu  sync.Mutex
	end change.LSN
}

// read begins to read.
func (s *story) read(slot string) *reader {
	s.Helper()
	session, err := replication.Open(s.Context(), s.config(slot), quiet)
	if err == nil {
		err = session.Start(s.Context())
	}
	if err != nil {
		s.Fatal(err)
	}
	r := &reader{session: session, done: make(chan struct{})}
	last := change.Time(1)
	framer := pgoutput.NewFramer(pgoutput.FramerConfig{
		TimelineOf:  func(change.LSN) change.Timeline { return 1 },
		Describe:    s.describe,
		Messages:    s.messages,
		LocalOnly:   s.localOnly,
		MessageTime: func() change.Time { return last },
	})
	go func() {
		defer close(r.done)
		r.err = r.run(framer, &last)
	}()
	s.Cleanup(func() {
		_ = session.Close(context.Background())
		<-r.done
	})
	return r
}

func (r *reader) run(framer *pgoutput.Framer, last *change.Time) error {
	for {
		msg, err := r.session.Receive()
		if err != nil {
			return err
		}
		if msg.Keepalive {
			continue
		}
		frame, err := framer.Frame(msg.WALStart, change.TimeOf(time.Now()), bytes.Clone(msg.Data))
		if err != nil {
			return err
		}
		r.changes = append(r.changes, frame.Changes...)
		if n := len(r.changes); n > 0 {
			*last = r.changes[n-1].CommitTime
		}
		if frame.Kind == pgoutput.Commit && r.ends(frame.CommitEnd) {
			return nil
		}
	}
}

func (r *reader) ends(commit change.LSN) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.end != 0 && commit > r.end
}

// upTo ends the reading at the first transaction that commits beyond end, and
// closes the session.
func (s *story) upTo(r *reader, end change.LSN) []change.Change {
	s.Helper()
	r.mu.Lock()
	r.end = end
	r.mu.Unlock()
	s.endMark()
	select {
	case <-r.done:
	case <-time.After(bound):
		s.Fatalf("the stream has not come to %s in %s", end, bound)
	}
	if r.err != nil {
		s.Fatal(r.err)
	}
	if err := r.session.Close(context.Background()); err != nil {
		s.Fatal(err)
	}
	return r.changes
}

// endPrefix marks the transactions that end the readings.
const endPrefix = "the end"

func (s *story) endMark() {
	s.Helper()
	ask[string](s, "SELECT pg_logical_emit_message(true, $1, '')::text", endPrefix)
}

func (s *story) describe(r *change.Relation) (err error) {
	var oids []uint32
	for _, c := range r.Columns {
		oids = append(oids, c.Type)
	}
	r.Types, err = s.admin.Types(context.Background(), oids)
	return err
}

// started begins to read while the story is told.
func (s *story) started() {
	s.Helper()
	s.live = s.read(s.slot)
}

// check reads the whole story and compares it with what was told.
func (s *story) check() {
	s.Helper()
	if s.inside {
		s.Fatal("the story ends within a transaction")
	}
	end, err := change.ParseLSN(ask[string](s, "SELECT pg_current_wal_insert_lsn()::text"))
	if err != nil {
		s.Fatal(err)
	}
	var live []change.Change
	if s.live != nil {
		live = s.upTo(s.live, end)
		s.compare("read while it happens", live)
	}
	replay := s.upTo(s.readAgain(), end)
	s.compare("read when it is over", replay)
	if s.live != nil {
		if d := sameChanges(withoutEnd(live), withoutEnd(replay)); d != "" {
			s.Errorf("a replay does not bring what came before: %s", d)
		}
	}
	for _, slot := range s.later {
		rest := withoutEnd(s.upTo(s.read(slot), end))
		if d := sameChanges(withoutEnd(replay)[max(0, len(withoutEnd(replay))-len(rest)):], rest); d != "" {
			s.Errorf("whoever joins later, at %s, reads something else: %s", slot, d)
		}
	}
}

// withoutEnd leaves out what ended the readings.
func withoutEnd(changes []change.Change) []change.Change {
	return slices.DeleteFunc(slices.Clone(changes), func(c change.Change) bool {
		return c.Operation == change.Message && bytes.Contains(c.Raw, []byte(endPrefix))
	})
}

// readAgain waits for the slot to be free.
func (s *story) readAgain() *reader {
	s.Helper()
	deadline := time.Now().Add(bound)
	for ask[bool](s, "SELECT active FROM pg_replication_slots WHERE slot_name = $1", s.slot) {
		if time.Now().After(deadline) {
			s.Fatal("the slot is not free")
		}
		time.Sleep(10 * time.Millisecond)
	}
	return s.read(s.slot)
}

// sameChanges says where a replay differs in what identity and digest are made
// of.
func sameChanges(a, b []change.Change) string {
	if len(a) != len(b) {
		return fmt.Sprintf("%d changes, then %d", len(a), len(b))
	}
	for i := range a {
		x, y := a[i], b[i]
		if x.Position != y.Position || x.LSN != y.LSN || x.XID != y.XID || x.CommitTime != y.CommitTime || x.Operation != y.Operation ||
			x.Joined != y.Joined || !bytes.Equal(x.Raw, y.Raw) || (x.Relation == nil) != (y.Relation == nil) ||
			x.Relation != nil && x.Relation.Hash != y.Relation.Hash {
			return fmt.Sprintf("change %d is %s (%s), then %s (%s)", i, x.Position, nameOf(x), y.Position, nameOf(y))
		}
	}
	return ""
}

// compare decodes changes in segments and compares the rows with the story.
func (s *story) compare(how string, changes []change.Change) {
	s.Helper()
	for i := 1; i < len(changes); i++ {
		if !changes[i-1].Position.Less(changes[i].Position) {
			s.Errorf("%s: position %s comes after %s", how, changes[i].Position, changes[i-1].Position)
		}
	}
	seed := rand.Uint64()
	got := s.decode(rand.New(rand.NewPCG(seed, 0)), withoutEnd(changes))
	for i := range max(len(got), len(s.told)) {
		var is, want string
		if i < len(got) {
			is = got[i]
		}
		if i < len(s.told) {
			want = s.told[i]
		}
		if is != want {
			s.Fatalf("%s (seed %d): row %d of %d is\n  %s\nwant, of %d,\n  %s", how, seed, i+1, len(got), is, len(s.told), want)
		}
	}
}

// decode cuts changes into segments at random and decodes these in parallel and
// out of order: every second one straight from the changes that the framer made,
// as a worker in the streamer's process does, the others as they come over the
// data plane.
func (s *story) decode(rng *rand.Rand, changes []change.Change) []string {
	s.Helper()
	var segments []segmenttest.Segment
	follows := change.JustBefore(1, 1)
	for len(changes) > 0 {
		n := 1 + rng.IntN(5)
		for n = min(n, len(changes)); changes[n-1].Joined; {
			n++
		}
		ref := segmenttest.RefOf(follows, changes[:n])
		segments = append(segments, segmenttest.Segment{Ref: ref, Changes: changes[:n]})
		follows, changes = ref.Last, changes[n:]
	}
	source := s.overFlight(segmenttest.NewMemory(segments...))

	rows := make([][]string, len(segments))
	errs := make([]error, len(segments))
	next := make(chan int)
	var workers sync.WaitGroup
	for range 4 {
		workers.Go(func() {
			for i := range next {
				cs := segments[i].Changes
				if i%2 == 0 {
					if cs, errs[i] = segmenttest.ReadAll(s.Context(), s, source, segments[i].Ref.Ticket()); errs[i] != nil {
						continue
					}
				}
				rows[i], errs[i] = decode(cs)
			}
		})
	}
	for _, i := range rng.Perm(len(segments)) {
		next <- i
	}
	close(next)
	workers.Wait()
	for _, err := range errs {
		if err != nil {
			s.Fatal(err)
		}
	}
	return slices.Concat(rows...)
}

// decode gives a line for each change.
func decode(changes []change.Change) ([]string, error) {
	d := pgoutput.NewDecoder()
	var lines []string
	for i := range changes {
		c := &changes[i]
		row, err := d.Decode(c)
		if err != nil {
			return nil, err
		}
		before, err := row.AppendBefore(nil)
		if err != nil {
			return nil, err
		}
		after, err := row.AppendAfter(nil)
		if err != nil {
			return nil, err
		}
		lines = append(lines, line(c.Operation.String(), nameOf(*c), string(before), string(after), row.Unchanged()))
	}
	return lines, nil
}

// nameOf is the name of a change's table, empty for a logical message.
func nameOf(c change.Change) string {
	if c.Relation == nil {
		return ""
	}
	return c.Relation.QualifiedName()
}

// overFlight puts the data plane before a source.
func (s *story) overFlight(source segment.Source) segment.Source {
	s.Helper()
	server, err := flight.NewServer(flight.ServerConfig{}, source, quiet)
	if err != nil {
		s.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx) }()
	client, err := flight.NewClient(flight.ClientConfig{}, quiet)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() {
		if err := client.Close(); err != nil {
			s.Error(err)
		}
		cancel()
		if err := <-ended; err != nil {
			s.Error(err)
		}
	})
	remote, err := client.Source(segment.Location{Instance: "i", Address: server.Address()})
	if err != nil {
		s.Fatal(err)
	}
	return remote
}
