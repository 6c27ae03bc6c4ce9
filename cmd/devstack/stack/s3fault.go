package stack

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Match picks the requests that a fault applies to.
type Match func(Request) bool

// Any matches every request.
func Any(Request) bool { return true }

// Puts matches uploads of objects whose path contains part.
func Puts(part string) Match {
	return func(r Request) bool { return r.Method == http.MethodPut && strings.Contains(r.Path, part) }
}

// LooksForSegments matches requests that ask whether a segment's object is there.
func LooksForSegments(r Request) bool {
	return r.Method == http.MethodHead && strings.HasSuffix(r.Path, ".parquet") && !strings.Contains(r.Path, "/_")
}

// PutsOfSegments matches uploads of segments' objects, and neither the lake's
// own records nor quarantined ones.
func PutsOfSegments(r Request) bool {
	return r.Method == http.MethodPut && strings.HasSuffix(r.Path, ".parquet") && !strings.Contains(r.Path, "/_")
}

// Fault is something that a FaultProxy does to the requests that match. The
// oldest fault that matches is the only one that a request meets. Its methods
// are safe for concurrent use.
type Fault struct {
	match Match
	do    func(pass http.Handler, w http.ResponseWriter, r *http.Request)
	proxy *FaultProxy
	gone  chan struct{} // closed by Remove

	mu      sync.Mutex
	left    int // how many more requests it applies to; negative is without end
	hits    int
	inside  int
	removed bool
	changed chan struct{} // closed and replaced whenever hits grows
}

// Hold receives the first n matching requests (all, when n is 0) whole and keeps
// them from the store until the fault is removed. Then they reach the store also
// if their client has given up or died meanwhile: a late upload. A request meets
// the fault when its body is there.
func (p *FaultProxy) Hold(match Match, n int) *Fault {
	f := &Fault{match: match, left: limit(n)}
	f.do = func(pass http.Handler, w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			reset(w) // the client has gone before it had sent everything
			return
		}
		f.hit()
		<-f.gone
		r = r.WithContext(context.WithoutCancel(r.Context()))
		r.Body = io.NopCloser(bytes.NewReader(body))
		pass.ServeHTTP(deaf{w}, r)
	}
	return p.add(f)
}

// Delay passes each matching request on after d.
func (p *FaultProxy) Delay(match Match, d time.Duration) *Fault {
	return p.DelayBy(match, func(Request) time.Duration { return d })
}

// DelayBy passes each matching request on after the time that d says.
func (p *FaultProxy) DelayBy(match Match, d func(Request) time.Duration) *Fault {
	f := &Fault{match: match, left: limit(0)}
	f.do = func(pass http.Handler, w http.ResponseWriter, r *http.Request) {
		f.hit()
		sleep(r.Context(), d(Request{Method: r.Method, Path: r.URL.Path, At: time.Now()}), f.gone)
		pass.ServeHTTP(w, r)
	}
	return p.add(f)
}

// Refuse answers the first n matching requests (all, when n is 0) with status,
// and the store sees none of them. 503 is S3's SlowDown.
func (p *FaultProxy) Refuse(match Match, status, n int) *Fault {
	code := "InternalError"
	if status == http.StatusServiceUnavailable {
		code = "SlowDown"
	}
	return p.Answer(match, Answer{Status: status, Code: code}, n)
}

// Answer is what a store may say instead of doing what it was asked to.
type Answer struct {
	Status int
	// Code is S3's name of the error.
	Code string
	// Header is added.
	Header map[string]string
}

// Answer gives the first n matching requests (all, when n is 0) an answer, and
// the store sees none of them.
func (p *FaultProxy) Answer(match Match, a Answer, n int) *Fault {
	f := &Fault{match: match, left: limit(n)}
	f.do = func(_ http.Handler, w http.ResponseWriter, _ *http.Request) {
		f.hit()
		w.Header().Set("Content-Type", "application/xml")
		for name, value := range a.Header {
			w.Header().Set(name, value)
		}
		w.WriteHeader(a.Status)
		fmt.Fprintf(w, "<?xml version=\"1.0\" encoding=\"UTF-8\"?><Error><Code>%s</Code><Message>the fault proxy refuses this request</Message></Error>", a.Code)
	}
	return p.add(f)
}

// Reset closes the connection of the first n matching requests (all, when n is
// 0) before the store sees them.
func (p *FaultProxy) Reset(match Match, n int) *Fault {
	f := &Fault{match: match, left: limit(n)}
	f.do = func(_ http.Handler, w http.ResponseWriter, _ *http.Request) {
		f.hit()
		reset(w)
	}
	return p.add(f)
}

// LoseAnswer passes the first n matching requests (all, when n is 0) to the
// store, waits for its answer, and closes the connection in its place: the
// store has the object and the client does not know.
func (p *FaultProxy) LoseAnswer(match Match, n int) *Fault {
	f := &Fault{match: match, left: limit(n)}
	f.do = func(pass http.Handler, w http.ResponseWriter, r *http.Request) {
		f.hit()
		pass.ServeHTTP(nowhere{http.Header{}}, r)
		reset(w)
	}
	return p.add(f)
}

// HoldAnswer passes the first n matching requests (all, when n is 0) to the
// store and keeps what it answers until the fault is removed. Then the connection
// is closed. A request meets the fault when the store has answered.
func (p *FaultProxy) HoldAnswer(match Match, n int) *Fault {
	f := &Fault{match: match, left: limit(n)}
	f.do = func(pass http.Handler, w http.ResponseWriter, r *http.Request) {
		pass.ServeHTTP(nowhere{http.Header{}}, r)
		f.hit()
		<-f.gone
		reset(w)
	}
	return p.add(f)
}

// Cut calls then at the first n matching requests, from the request's own
// goroutine: before the store sees the request, or, with stored, when it has
// answered and the client has not heard. Then the connection is reset. It is for
// ending the client at that very moment.
func (p *FaultProxy) Cut(match Match, n int, stored bool, then func()) *Fault {
	f := &Fault{match: match, left: limit(n)}
	f.do = func(pass http.Handler, w http.ResponseWriter, r *http.Request) {
		if stored {
			pass.ServeHTTP(nowhere{http.Header{}}, r)
		}
		then()
		f.hit()
		reset(w)
	}
	return p.add(f)
}

func limit(n int) int {
	if n == 0 {
		return -1
	}
	return n
}

// Remove ends the fault: what it holds goes on, and it meets no more requests.
// It may be called more than once.
func (f *Fault) Remove() {
	f.mu.Lock()
	if f.removed {
		f.mu.Unlock()
		return
	}
	f.removed = true
	close(f.gone)
	f.mu.Unlock()

	p := f.proxy
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, g := range p.faults {
		if g == f {
			p.faults = append(p.faults[:i:i], p.faults[i+1:]...)
			return
		}
	}
}

// Hits counts the requests that have met the fault.
func (f *Fault) Hits() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.hits
}

// Inside counts the requests that are in it now: those that a Hold keeps.
func (f *Fault) Inside() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.inside
}

// WaitHits waits until n requests have met the fault, or ctx ends.
func (f *Fault) WaitHits(ctx context.Context, n int) error {
	for {
		f.mu.Lock()
		hits, changed := f.hits, f.changed
		f.mu.Unlock()
		if hits >= n {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("wait for %d requests to meet a fault: %d have: %w", n, hits, context.Cause(ctx))
		}
	}
}

// enter says whether the fault still applies, and takes the request in if so.
func (f *Fault) enter() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.removed || f.left == 0 {
		return false
	}
	if f.left > 0 {
		f.left--
	}
	f.inside++
	return true
}

// hit counts the request.
func (f *Fault) hit() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.hits++
	close(f.changed)
	f.changed = make(chan struct{})
}

func (f *Fault) leave() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.inside--
}
