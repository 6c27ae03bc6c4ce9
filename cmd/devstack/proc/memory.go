package proc

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// SampleEvery is how often a Watcher looks at a process' memory.
const SampleEvery = 50 * time.Millisecond

// Memory is a process' resident memory in MiB.
type Memory struct {
	// Anon is what belongs to the process alone, RSS includes the files that it
	// has mapped, its own program among them.
	Anon, RSS float64
}

// MemoryOf reads the memory of a process.
func MemoryOf(pid int) (Memory, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return Memory{}, fmt.Errorf("read memory: %w", err)
	}
	var m Memory
	for line := range strings.Lines(string(b)) {
		name, value, _ := strings.Cut(line, ":")
		var into *float64
		switch name {
		case "RssAnon":
			into = &m.Anon
		case "VmRSS":
			into = &m.RSS
		default:
			continue
		}
		kib, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 64)
		if err != nil {
			return Memory{}, fmt.Errorf("read memory of process %d: %w", pid, err)
		}
		*into = kib / 1024
	}
	return m, nil
}

// Watcher follows a process' memory. Its methods are safe for concurrent use.
type Watcher struct {
	stop context.CancelFunc
	done sync.WaitGroup

	mu   sync.Mutex
	peak Memory
	anon []float64
	err  error
}

// Watch samples a process' memory until it ends, ctx does, or End is called.
func Watch(ctx context.Context, pid int) *Watcher {
	ctx, cancel := context.WithCancel(ctx)
	w := &Watcher{stop: cancel}
	w.done.Go(func() {
		tick := time.NewTicker(SampleEvery)
		defer tick.Stop()
		for {
			if !w.sample(pid) {
				return
			}
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	})
	return w
}

// sample says whether to go on.
func (w *Watcher) sample(pid int) bool {
	m, err := MemoryOf(pid)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ESRCH) {
			w.err = err
		}
		return false
	}
	w.peak.Anon, w.peak.RSS = max(w.peak.Anon, m.Anon), max(w.peak.RSS, m.RSS)
	w.anon = append(w.anon, m.Anon)
	return true
}

// Peak is the greatest of each so far.
func (w *Watcher) Peak() Memory {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.peak
}

// Curve is the greatest anonymous memory in each of n parts of the time so far,
// of equal length.
func (w *Watcher) Curve(n int) []float64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	curve := make([]float64, n)
	for i, anon := range w.anon {
		part := &curve[i*n/len(w.anon)]
		*part = max(*part, anon)
	}
	return curve
}

// End stops sampling and gives the peak.
func (w *Watcher) End() (Memory, error) {
	w.stop()
	w.done.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.peak, w.err
}
