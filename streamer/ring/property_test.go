package ring

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// TestRingAgreesWithTheDumbModel drives ring and model through anything that
// Postgres and Temporal may do, and checks after each step that they agree and
// that the promises hold.
func TestRingAgreesWithTheDumbModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(func(label string, lo, hi int) int {
			return rapid.IntRange(lo, hi).Draw(t, label)
		}, t.Fatalf)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			w.step()
		}
		w.settle()
	})
}

// violation is how a world that runs without rapid fails.
type violation string

// run plays one world from a seed, and returns what failed.
func run(seed uint64, prepare func(*world)) (failure string) {
	defer func() {
		if v, ok := recover().(violation); ok {
			failure = string(v)
		}
	}()
	rnd := rand.New(rand.NewPCG(seed, 1))
	w := newWorld(func(_ string, lo, hi int) int { return lo + rnd.IntN(hi-lo+1) },
		func(format string, args ...any) { panic(violation(fmt.Sprintf(format, args...))) })
	prepare(w)
	for range 60 {
		w.step()
	}
	w.settle()
	return ""
}

// TestNaiveAckIsCaught shows that the check has eyes: acknowledging the end of
// the latest finished segment loses rows, and is seen to.
func TestNaiveAckIsCaught(t *testing.T) {
	const worlds = 100
	caught := 0
	for seed := range uint64(worlds) {
		if f := run(seed, func(*world) {}); f != "" {
			t.Fatalf("world %d with the walk: %s", seed, f)
		}
		f := run(seed, func(w *world) { w.ack = w.model.naiveAck })
		if f != "" {
			caught++
			if caught == 1 {
				t.Logf("world %d with the naive ack: %s", seed, f)
			}
		}
	}
	t.Logf("the naive ack was caught in %d of %d worlds", caught, worlds)
	if caught < worlds/4 {
		t.Errorf("the naive ack was caught in %d of %d worlds only", caught, worlds)
	}
}
