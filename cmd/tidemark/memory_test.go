package main

import (
	"io"
	"log/slog"
	"math"
	"runtime/debug"
	"testing"

	"github.com/tidemark-cdc/tidemark/internal/config"
)

func TestMemoryLimitFollowsRingAndConcurrency(t *testing.T) {
	const mib = mebibyte
	for _, tt := range []struct {
		name          string
		roles         roles
		ring, segment config.Size
		concurrency   int64
		want          int64
	}{
		{"streamer with the default ring stays below ring and 64 MiB", roles{streamer: true}, 256 * mib, 16 * mib, 4, 304 * mib},
		{"streamer with a small ring", roles{streamer: true}, 32 * mib, 16 * mib, 4, 66 * mib},
		{"worker", roles{worker: true}, 256 * mib, 16 * mib, 8, (64 + 8*24 + 4*4*16) * mib},
		{"worker with one upload", roles{worker: true}, 256 * mib, 16 * mib, 1, (64 + 24 + 4*16) * mib},
		{"worker with an odd number of uploads", roles{worker: true}, 256 * mib, 16 * mib, 5, (64 + 5*24 + 3*4*16) * mib},
		{"both", roles{streamer: true, worker: true}, 256 * mib, 16 * mib, 8, (304 + 512) * mib},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := &config.Config{Ring: config.Ring{MaxBytes: tt.ring}, Segment: config.Segment{MaxBytes: tt.segment}, Worker: config.Worker{Concurrency: tt.concurrency}}
			if got := memoryLimit(c, tt.roles); got != tt.want {
				t.Errorf("memoryLimit = %d MiB, want %d", got/mib, tt.want/mib)
			}
		})
	}
}

func TestMemoryLimitOfTheEnvironmentIsLeftAlone(t *testing.T) {
	before := debug.SetMemoryLimit(math.MaxInt64)
	defer debug.SetMemoryLimit(before)
	c := &config.Config{Ring: config.Ring{MaxBytes: 256 * mebibyte}}
	logger := slog.New(slog.NewTextHandler(io.Discard, nil))

	limitMemory(c, roles{streamer: true}, []string{"GOMEMLIMIT=1GiB"}, logger)
	if got := debug.SetMemoryLimit(-1); got != math.MaxInt64 {
		t.Errorf("with GOMEMLIMIT the limit was set to %d", got)
	}
	limitMemory(c, roles{streamer: true}, []string{"GOMEMLIMIT=", "HOME=/"}, logger)
	if got := debug.SetMemoryLimit(-1); got != 304*mebibyte {
		t.Errorf("the limit is %d MiB, want 304", got/mebibyte)
	}
}
