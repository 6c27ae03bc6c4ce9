package tracker

import (
	"log/slog"
	"testing"
	"time"

	"github.com/tidemark-cdc/tidemark/internal/segment"
	"github.com/tidemark-cdc/tidemark/workflows"
)

func TestALargeSegmentHasMoreTimeForItsUpload(t *testing.T) {
	tests := map[string]struct {
		configured time.Duration
		bytes      int64
		want       time.Duration
	}{
		"small":                 {0, 1000, workflows.DefaultStartToClose},
		"200 MB on a slow link": {0, 200 << 20, workflows.DefaultStartToClose + 800*time.Second},
		"configured":            {time.Minute, 200 << 20, time.Minute},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			tr := New(nil, Config{StartToClose: test.configured, Logger: slog.New(slog.DiscardHandler)})
			if got := tr.startToClose(segment.Ref{Bytes: test.bytes}); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}
