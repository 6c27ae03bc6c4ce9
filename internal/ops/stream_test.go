package ops

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// event is one server-sent event.
type event struct{ name, data string }

// listener reads /events.
type listener struct {
	t    *testing.T
	body io.Closer
	read *bufio.Reader
}

// listen opens /events at a server, and fails the test unless it may.
func listen(t *testing.T, url string) *listener {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "text/event-stream" || resp.Header.Get("Cache-Control") != "no-store" {
		t.Fatalf("/events answers with %s, %v", resp.Status, resp.Header)
	}
	return &listener{t: t, body: resp.Body, read: bufio.NewReader(resp.Body)}
}

// next is the next event, or the error that ends the stream.
func (l *listener) next() (e event, err error) {
	for {
		line, err := l.read.ReadString('\n')
		if err != nil {
			return event{}, err
		}
		line = strings.TrimSuffix(line, "\n")
		switch name, value, _ := strings.Cut(line, ": "); name {
		case "event":
			e.name = value
		case "data":
			e.data = value
		case "":
			return e, nil
		default:
			l.t.Fatalf("a line of /events that is none: %q", line)
		}
	}
}

func (l *listener) want(name string) string {
	l.t.Helper()
	e, err := l.next()
	if err != nil || e.name != name {
		l.t.Fatalf("want the event %s, got %q: %.200s (%v)", name, e.name, e.data, err)
	}
	return e.data
}

// live is a page whose snapshot has a pipeline's name, and counts how often it
// was made.
func live(name string, made *atomic.Int64) *Live {
	return &Live{
		Snapshot: func() Snapshot {
			made.Add(1)
			return Snapshot{Pipeline: name, Reasons: []string{}}
		},
		Sample:  func() Sample { return Sample{} },
		History: new(History),
	}
}

// serveStream serves a stream on loopback, which sends much more often than
// usual.
func serveStream(t *testing.T, l *Live) (*stream, string) {
	t.Helper()
	s := newStream(l, slog.New(slog.DiscardHandler))
	s.every = 20 * time.Millisecond
	srv := httptest.NewServer(s)
	t.Cleanup(func() {
		srv.CloseClientConnections()
		srv.Close()
		http.DefaultClient.CloseIdleConnections()
	})
	return s, srv.URL
}

// eventually waits for a condition, with a bound.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	end := time.Now().Add(time.Minute)
	for tick := time.NewTicker(5 * time.Millisecond); ; <-tick.C {
		if ok() {
			tick.Stop()
			return
		}
		if time.Now().After(end) {
			t.Fatalf("after a minute still not: %s", what)
		}
	}
}

func TestAListenerIsSentTheHistoryThenSnapshotsAndWhatIsAdded(t *testing.T) {
	var made atomic.Int64
	l := live("shop", &made)
	begin := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	l.History.Add(begin, Sample{LagBytes: 1})
	l.History.Add(begin.Add(time.Second), Sample{LagBytes: 2})
	_, url := serveStream(t, l)
	in := listen(t, url)
	points := func(text string) (lags []int64) {
		var list []Point
		if err := json.Unmarshal([]byte(text), &list); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		for _, p := range list {
			lags = append(lags, *p.LagBytes)
		}
		return lags
	}
	if got := points(in.want("history")); len(got) != 2 || got[0] != 1 || got[1] != 2 {
		t.Errorf("the history is %v", got)
	}
	var s Snapshot
	if err := json.Unmarshal([]byte(in.want("snapshot")), &s); err != nil || s.Pipeline != "shop" {
		t.Errorf("the snapshot is of %q (%v)", s.Pipeline, err)
	}
	in.want("snapshot")
	l.History.Add(begin.Add(2*time.Second), Sample{LagBytes: 3})
	for {
		e, err := in.next()
		if err != nil {
			t.Fatal(err)
		}
		if e.name == "snapshot" {
			continue
		}
		if got := points(e.data); e.name != "points" || len(got) != 1 || got[0] != 3 {
			t.Errorf("after a point was added came %s %v", e.name, got)
		}
		break
	}
	in.want("snapshot")
}

func TestAnEmptyHistoryIsSentAsSuch(t *testing.T) {
	_, url := serveStream(t, live("shop", new(atomic.Int64)))
	if got := listen(t, url).want("history"); got != "[]" {
		t.Errorf("the history is %s", got)
	}
}

func TestListenersOfOneMomentShareASnapshot(t *testing.T) {
	var made atomic.Int64
	s := newStream(live("shop", &made), slog.New(slog.DiscardHandler))
	now := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	for _, step := range []struct {
		after time.Duration
		want  int64
	}{{0, 1}, {100 * time.Millisecond, 1}, {499 * time.Millisecond, 1}, {501 * time.Millisecond, 2}, {600 * time.Millisecond, 2}} {
		if _, err := s.encoded(now.Add(step.after)); err != nil {
			t.Fatal(err)
		}
		if got := made.Load(); got != step.want {
			t.Errorf("after %s %d snapshots were made, want %d", step.after, got, step.want)
		}
	}
}

func TestTheNumberOfListenersIsBounded(t *testing.T) {
	_, url := serveStream(t, live("shop", new(atomic.Int64)))
	var all []*listener
	for range maxListeners {
		l := listen(t, url)
		l.want("history")
		all = append(all, l)
	}
	if status, body := get(t, url+"/events"); status != http.StatusServiceUnavailable || !strings.Contains(body, "open 16 times") {
		t.Fatalf("one more is answered with %d %s", status, body)
	}
	all[3].body.Close()
	eventually(t, "a listener that has gone makes room for another", func() bool {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/events", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
}

func TestAListenerThatReadsNothingIsDropped(t *testing.T) {
	var made atomic.Int64
	l := live(strings.Repeat("long ", 1<<18), &made)
	s := newStream(l, slog.New(slog.DiscardHandler))
	s.every, s.slowest = 5*time.Millisecond, 50*time.Millisecond
	ended := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer close(ended)
		s.ServeHTTP(w, r)
	}))
	defer srv.Close()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(srv.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "GET /events HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Fatal("after a minute it is still being sent to")
	}
	if s.listeners != 0 {
		t.Errorf("%d listeners are counted", s.listeners)
	}
}

// A stream that did not end by itself would be cut off after two seconds, which
// the reader sees as an unexpected end.
func TestAStopEndsTheStreamsAtOnce(t *testing.T) {
	p := Page{Live: live("shop", new(atomic.Int64)), Metrics: prometheus.NewRegistry(), Logger: slog.New(slog.DiscardHandler)}
	ln, err := Listen(t.Context(), "127.0.0.1:0", false)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- p.Serve(ctx, ln) }()
	in := listen(t, "http://"+ln.Addr().String())
	in.want("history")
	cancel()
	for {
		_, err := in.next()
		if errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			break
		}
		if err != nil {
			t.Fatalf("the stream has not come to its end: %v", err)
		}
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	http.DefaultClient.CloseIdleConnections()
}

func TestServingFillsTheHistory(t *testing.T) {
	l := live("shop", new(atomic.Int64))
	l.Sample = func() Sample { return Sample{LagBytes: 42} }
	url := start(t, Page{Live: l})
	if got := listen(t, url).want("history"); got != "[]" && !strings.Contains(got, `"lag_bytes":42`) {
		t.Errorf("the history is %s", got)
	}
	eventually(t, "the first sample is in the history", func() bool {
		points, _ := l.History.since(0)
		return len(points) == 1 && *points[0].LagBytes == 42
	})
}
