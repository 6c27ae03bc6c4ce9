package bench

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

// sampleEvery is how often a process' memory is looked at.
const sampleEvery = 50 * time.Millisecond

// ticksPerSecond is USER_HZ, in which the kernel counts CPU time towards
// programs: 100 on every architecture that Go runs on.
const ticksPerSecond = 100

// cpuSeconds is the CPU time, user and system, of a process so far; of a
// process that has ended it is an error.
func cpuSeconds(pid int) (float64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, fmt.Errorf("read CPU time: %w", err)
	}
	// The second field is the program's name in brackets, spaces and all.
	_, rest, ok := strings.Cut(string(b), ") ")
	fields := strings.Fields(rest)
	if !ok || len(fields) < 13 {
		return 0, fmt.Errorf("read CPU time of process %d: its stat is %q", pid, b)
	}
	var ticks float64
	for _, f := range fields[11:13] { // utime and stime, fields 14 and 15 of proc(5)
		n, err := strconv.ParseFloat(f, 64)
		if err != nil {
			return 0, fmt.Errorf("read CPU time of process %d: %w", pid, err)
		}
		ticks += n
	}
	return ticks / ticksPerSecond, nil
}

func cpuOfAll(pids []int) ([]float64, error) {
	list := make([]float64, len(pids))
	for i, pid := range pids {
		var err error
		if list[i], err = cpuSeconds(pid); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// memory is a process' resident memory in MiB.
type memory struct {
	// anon is what belongs to the process alone, rss includes the files that it
	// has mapped, its own program among them.
	anon, rss float64
}

func memoryOf(pid int) (memory, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return memory{}, fmt.Errorf("read memory: %w", err)
	}
	var m memory
	for line := range strings.Lines(string(b)) {
		name, value, _ := strings.Cut(line, ":")
		var into *float64
		switch name {
		case "RssAnon":
			into = &m.anon
		case "VmRSS":
			into = &m.rss
		default:
			continue
		}
		kib, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 64)
		if err != nil {
			return memory{}, fmt.Errorf("read memory of process %d: %w", pid, err)
		}
		*into = kib / 1024
	}
	return m, nil
}

// watcher takes the peak of a process' memory.
type watcher struct {
	stop context.CancelFunc
	done sync.WaitGroup

	mu   sync.Mutex
	peak memory
	err  error
}

// watch samples a process' memory until it ends or end is called.
func watch(ctx context.Context, pid int) *watcher {
	ctx, cancel := context.WithCancel(ctx)
	w := &watcher{stop: cancel}
	w.done.Go(func() {
		tick := time.NewTicker(sampleEvery)
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
func (w *watcher) sample(pid int) bool {
	m, err := memoryOf(pid)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ESRCH) {
			w.err = err
		}
		return false
	}
	w.peak.anon, w.peak.rss = max(w.peak.anon, m.anon), max(w.peak.rss, m.rss)
	return true
}

// end stops sampling and gives the peak.
func (w *watcher) end() (memory, error) {
	w.stop()
	w.done.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.peak, w.err
}
