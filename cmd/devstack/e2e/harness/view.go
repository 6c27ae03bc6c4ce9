package harness

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tidemark-cdc/tidemark/cmd/devstack/pipeline"
	"github.com/tidemark-cdc/tidemark/cmd/devstack/stack"
	"github.com/tidemark-cdc/tidemark/internal/change"
	"github.com/tidemark-cdc/tidemark/internal/lake"
	"github.com/tidemark-cdc/tidemark/internal/segment"
	"github.com/tidemark-cdc/tidemark/streamer/ring"
)

// Status is what a streamer's page says of it, as far as tests need it.
type Status struct {
	State      string          `json:"state"`
	Connected  bool            `json:"connected"`
	Ring       ring.Stats      `json:"ring"`
	AckRecord  change.LSN      `json:"ack"`
	Last       change.Position `json:"last"` // AckRecord covers it
	InFlight   []Flight        `json:"in_flight"`
	Adopted    int64           `json:"adopted"`
	Reconnects int64           `json:"reconnects"`
}

// Flight is a segment in flight.
type Flight struct {
	Ref segment.Ref `json:"ref"`
}

// Upload is the upload of one segment, all attempts at it: the one whose object
// is uploaded first after the Upload was made. Match picks its requests.
type Upload struct {
	mu   sync.Mutex
	path string
}

// Match is a stack.Match.
func (u *Upload) Match(r stack.Request) bool {
	if !stack.PutsOfSegments(r) {
		return false
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.path == "" {
		u.path = r.Path
	}
	return r.Path == u.path
}

// Object is the upload's, which must have begun.
func (h *Harness) Object(u *Upload) lake.KeyParts {
	h.t.Helper()
	u.mu.Lock()
	defer u.mu.Unlock()
	parts, err := lake.ParseKey(strings.TrimPrefix(u.path, "/"+h.Stack.S3.Bucket()+"/"+name+"/"))
	if err != nil {
		h.t.Fatal(err)
	}
	return parts
}

// AckLSN is the slot's confirmed_flush_lsn.
func (h *Harness) AckLSN() change.LSN {
	h.t.Helper()
	lsn, err := change.ParseLSN(h.Ack())
	if err != nil {
		h.t.Fatal(err)
	}
	return lsn
}

// WaitAckBefore waits until the ack stands for as long as the segment that begins
// at first is not finished, and returns it: everything before that one is in the
// lake and on record, and Postgres knows.
func (p *Proc) WaitAckBefore(first change.Position) (stands change.LSN) {
	p.h.t.Helper()
	p.WaitStatus(func(st Status) string {
		stands = p.h.AckLSN()
		switch {
		case len(st.InFlight) == 0 || st.InFlight[0].Ref.First != first:
			return fmt.Sprintf("of %d segments in flight the one that begins at %s is not the first", len(st.InFlight), first)
		case st.Last != st.InFlight[0].Ref.Follows:
			return fmt.Sprintf("the lake has everything up to %s on record, waiting for %s", st.Last, st.InFlight[0].Ref.Follows)
		case stands != st.AckRecord:
			return fmt.Sprintf("the slot stands at %s, on record is %s", stands, st.AckRecord)
		}
		return ""
	})
	return stands
}

// Walsender is the process of Postgres that reads the slot, 0 when there is
// none. A streamer that has connected again has another one.
func (h *Harness) Walsender() int {
	h.t.Helper()
	return Scalar[int](h, "select coalesce(active_pid, 0) from pg_replication_slots where slot_name = $1", h.Settings.Slot())
}

// Objects are the segments' objects in the lake, in stream order.
func (h *Harness) Objects() []lake.KeyParts {
	h.t.Helper()
	files, err := h.lake.Files()
	if err != nil {
		h.t.Fatal(err)
	}
	all := make([]lake.KeyParts, len(files))
	for i, f := range files {
		key, err := filepath.Rel(h.lake.Folder(), f)
		if err == nil {
			all[i], err = lake.ParseKey(filepath.ToSlash(key))
		}
		if err != nil {
			h.t.Fatal(err)
		}
	}
	slices.SortFunc(all, func(a, b lake.KeyParts) int { return a.First.Compare(b.First) })
	return all
}

// WaitObjects waits until the lake has n objects of segments.
func (h *Harness) WaitObjects(n int) {
	h.t.Helper()
	h.Eventually(Bound, func() string {
		if got := len(h.Objects()); got < n {
			return fmt.Sprintf("the lake has %d objects, waiting for %d", got, n)
		}
		return ""
	})
}

// WaitHits waits until n requests have met the fault.
func (h *Harness) WaitHits(f *stack.Fault, n int) {
	h.t.Helper()
	ctx, cancel := h.bound()
	defer cancel()
	if err := f.WaitHits(ctx, n); err != nil {
		h.t.Fatal(err)
	}
}

// Within waits until what done says has happened, which must not take longer
// than bound; what is the sentence's subject.
func (h *Harness) Within(bound time.Duration, what string, done <-chan struct{}) {
	h.t.Helper()
	end := time.NewTimer(bound)
	defer end.Stop()
	select {
	case <-done:
	case <-end.C:
		h.t.Fatalf("%s has not ended within %s", what, bound)
	case <-h.ctx.Done():
		h.t.Fatalf("the test has ended before %s", what)
	}
}

// Status is the streamer's status, from the process' own page.
func (p *Proc) Status() Status {
	p.h.t.Helper()
	st, err := p.status()
	if err != nil {
		p.h.t.Fatal(err)
	}
	return st
}

// WaitStatus waits until check, which is given the streamer's status, returns
// an empty text.
func (p *Proc) WaitStatus(check func(Status) string) {
	p.h.t.Helper()
	p.h.Eventually(Bound, func() string {
		if !p.Running() {
			p.h.t.Fatalf("%s has ended with status %d; the end of its log:\n%s", p.name, p.ExitCode(), p.Tail(30))
		}
		st, err := p.status()
		if err != nil {
			return err.Error() // it may not listen yet
		}
		return check(st)
	})
}

func (p *Proc) status() (Status, error) {
	var page struct{ Streamer *Status }
	ctx, cancel := context.WithTimeout(p.h.ctx, 30*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.Ops+"/status", nil)
	if err != nil {
		return Status{}, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return Status{}, err
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&page); err != nil {
		return Status{}, fmt.Errorf("read the status of %s: %w", p.name, err)
	}
	if page.Streamer == nil {
		return Status{}, fmt.Errorf("%s has no streamer", p.name)
	}
	return *page.Streamer, nil
}

// Ready is what the process' page says of its readiness: every reason against
// it, none if it is ready.
func (p *Proc) Ready() (reasons []string) {
	p.h.t.Helper()
	var page struct {
		Ready   bool
		Reasons []string
	}
	if err := json.Unmarshal(p.get("/readyz"), &page); err != nil {
		p.h.t.Fatalf("read the readiness of %s: %v", p.name, err)
	}
	if page.Ready != (len(page.Reasons) == 0) {
		p.h.t.Fatalf("%s is ready: %t, with the reasons %q", p.name, page.Ready, page.Reasons)
	}
	return page.Reasons
}

// Metric is the value of a metric of the process, with its labels as they are
// shown; zero if it is not there.
func (p *Proc) Metric(series string) float64 {
	p.h.t.Helper()
	for line := range strings.Lines(string(p.get("/metrics"))) {
		if text, ok := strings.CutPrefix(line, series+" "); ok {
			v, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
			if err != nil {
				p.h.t.Fatal(err)
			}
			return v
		}
	}
	return 0
}

// get reads a page of the process, whatever its status.
func (p *Proc) get(path string) []byte {
	p.h.t.Helper()
	ctx, cancel := p.h.bound()
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.Ops+path, nil)
	if err != nil {
		p.h.t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		p.h.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		p.h.t.Fatal(err)
	}
	return body
}

// Build builds a tidemark binary with build tags, for the test's next
// processes.
func (h *Harness) Build(tags ...string) {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.ctx, 10*time.Minute) // the cache may be cold
	defer cancel()
	h.Pipeline.Binary = filepath.Join(h.Stack.Dir(), "tidemark-"+strings.Join(tags, "-"))
	if err := pipeline.Build(ctx, h.Pipeline.Binary, tags...); err != nil {
		h.t.Fatal(err)
	}
}

// WaitIdle waits until no request is in the fault any more.
func (h *Harness) WaitIdle(f *stack.Fault) {
	h.t.Helper()
	h.Eventually(Bound, func() string {
		if n := f.Inside(); n > 0 {
			return fmt.Sprintf("%d requests are on their way to the store", n)
		}
		return ""
	})
}

// Logged counts how often the test's tidemark processes, ended ones too, have
// written text.
func (h *Harness) Logged(text string) int {
	n := 0
	for _, p := range h.procs {
		n += strings.Count(p.Output(), text)
	}
	return n
}
