package chaos

import (
	"context"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidemark-cdc/tidemark/cmd/devstack/stack"
)

// storeFaults are those of S3.
func storeFaults() []Fault {
	proxied := func(kind string, lasts [2]time.Duration, do func(p *stack.FaultProxy, rng *rand.Rand) *stack.Fault) Fault {
		return Fault{Kind: kind, Lasts: lasts, on: "store", inject: func(_ context.Context, r *Run, rng *rand.Rand) (func(context.Context) error, error) {
			return plain(do(r.world.stack.Faults, rng).Remove), nil
		}}
	}
	status := func(kind string, status int) Fault {
		return proxied(kind, lasts(500, 5000), func(p *stack.FaultProxy, _ *rand.Rand) *stack.Fault { return p.Refuse(stack.Any, status, 0) })
	}
	return []Fault{
		status("S3 answers 500", http.StatusInternalServerError),
		status("S3 answers 503 SlowDown", http.StatusServiceUnavailable),
		status("S3 answers 403", http.StatusForbidden),
		proxied("S3 is slow", lasts(1000, 5000), func(p *stack.FaultProxy, rng *rand.Rand) *stack.Fault {
			return p.Delay(stack.Any, time.Duration(200+rng.IntN(2000))*time.Millisecond)
		}),
		// Some uploads, not always the next ones. They go to the store when the
		// fault ends, after others maybe, and also if who sent them is gone.
		proxied("S3 uploads are held", lasts(500, 8000), func(p *stack.FaultProxy, rng *rand.Rand) *stack.Fault {
			var seen atomic.Int64
			before := rng.Int64N(5)
			return p.Hold(func(r stack.Request) bool { return stack.PutsOfSegments(r) && seen.Add(1) > before }, 1+rng.IntN(6))
		}),
		// Segments that are refused or kept by name, however often they are tried:
		// one alone, so that those after it overtake it, or all but one, so that it
		// is all there is.
		proxied("S3 refuses the next segment", lasts(500, 5000), func(p *stack.FaultProxy, _ *rand.Rand) *stack.Fault {
			return p.Refuse(segmentsInTurn(func(n int) bool { return n == 0 }), http.StatusServiceUnavailable, 0)
		}),
		proxied("S3 refuses all but the next segment", lasts(500, 5000), func(p *stack.FaultProxy, _ *rand.Rand) *stack.Fault {
			return p.Refuse(segmentsInTurn(func(n int) bool { return n > 0 }), http.StatusServiceUnavailable, 0)
		}),
		proxied("S3 holds the next segment", lasts(500, 8000), func(p *stack.FaultProxy, _ *rand.Rand) *stack.Fault {
			return p.Hold(segmentsInTurn(func(n int) bool { return n == 0 }), 0)
		}),
		proxied("S3 answers are lost", lasts(500, 5000), func(p *stack.FaultProxy, rng *rand.Rand) *stack.Fault {
			return p.LoseAnswer(stack.Any, 1+rng.IntN(8))
		}),
		proxied("S3 connections are cut", lasts(500, 3000), func(p *stack.FaultProxy, _ *rand.Rand) *stack.Fault { return p.Reset(stack.Any, 0) }),
		{Kind: "S3 is down", Lasts: lasts(500, 6000), on: "store", inject: func(_ context.Context, r *Run, _ *rand.Rand) (func(context.Context) error, error) {
			w := r.world
			w.servers.Lock()
			defer w.servers.Unlock()
			return func(ctx context.Context) error {
				w.servers.Lock()
				defer w.servers.Unlock()
				return w.stack.S3.Start(ctx)
			}, w.stack.S3.Kill()
		}},
	}
}

// segmentsInTurn matches the uploads of those segments whose number is chosen,
// counted from 0 in the order in which their first uploads come.
func segmentsInTurn(chosen func(n int) bool) stack.Match {
	var mu sync.Mutex
	numbers := map[string]int{}
	return func(r stack.Request) bool {
		if !stack.PutsOfSegments(r) {
			return false
		}
		mu.Lock()
		defer mu.Unlock()
		n, ok := numbers[r.Path]
		if !ok {
			n = len(numbers)
			numbers[r.Path] = n
		}
		return chosen(n)
	}
}
