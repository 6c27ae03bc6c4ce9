package ops

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// everything is a registry in which every metric has a value.
func everything() *prometheus.Registry {
	reg := NewRegistry("v1.2.3")
	safe, left := int64(12), 3.5
	reading := Reading{
		Connected: true, Paused: true, State: "streaming", States: []string{"streaming", "standby"},
		Received: map[string]int64{"insert": 9}, ReceivedBytes: 90,
		Bytes: map[string]int64{"waiting": 7}, Changes: map[string]int64{"waiting": 1}, Segments: map[string]int64{"running": 4},
		WaitingAge: 2 * time.Second, RecordAge: 4 * time.Second, Ack: 0x10, ReceivedEnd: 0x20, FeedbackAge: 1500 * time.Millisecond, Adopted: 3, Drifted: map[string]int64{"dropped": 1},
		Slot: &SlotReading{LagBytes: 10, RetainedBytes: 11, SafeBytes: &safe},
		WAL:  &WALReading{Level: 1, HoursLeft: &left},
	}
	reg.MustRegister(NewStreamerCollector("orders", func() Reading { return reading }))
	s := NewStreamerObserver(reg, "orders", []string{"slot_in_use"}, []string{"closed"})
	s.Reconnected("connection_lost")
	s.InLake(5, 3*time.Second)
	s.Restarted("forgotten")
	w := NewWorkerObserver(reg, "orders", []string{"StoreDenied"})
	w.Attempted("upload", "")
	w.Attempted("upload", "StoreThrottled")
	w.Stepped("encode", time.Second)
	w.Decoded("update", 6)
	w.Stored(5, 2048, true)
	NewLibrary(reg).Counter("temporal_request", map[string]string{"operation": "Poll", "client_name": "x", "workflow_type": "none"})(1)
	return reg
}

// ownNames gives the names of our metrics as Prometheus knows them: a histogram
// counts as its three.
func ownNames(t *testing.T) map[string]bool {
	t.Helper()
	families, err := everything().Gather()
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, f := range families {
		name := f.GetName()
		if !strings.HasPrefix(name, "tidemark_") {
			continue
		}
		names[name] = true
		if f.GetMetric()[0].GetHistogram() != nil {
			for _, suffix := range []string{"_bucket", "_sum", "_count"} {
				names[name+suffix] = true
			}
		}
	}
	return names
}

func TestWhatIsNotKnownIsNotShown(t *testing.T) {
	reg := prometheus.NewRegistry()
	reg.MustRegister(NewStreamerCollector("orders", func() Reading { return Reading{FeedbackAge: -1, Slot: &SlotReading{}, WAL: &WALReading{}} }))
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if n := f.GetName(); n == "tidemark_feedback_age_seconds" || n == "tidemark_slot_safe_wal_bytes" || n == "tidemark_slot_hours_left" {
			t.Errorf("%s is shown", n)
		}
	}
}

func TestALibraryMayUseANameTwice(t *testing.T) {
	reg := prometheus.NewRegistry()
	l := NewLibrary(reg)
	for _, operation := range []string{"a", "b", "a"} {
		l.Counter("temporal_x", map[string]string{"operation": operation})(2)
		l.Timer("temporal_x", nil)(time.Second)
		l.Gauge("temporal_x", nil)(3)
	}
	l.Gauge("temporal_x_total", nil)(1) // in use for a counter
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for _, f := range families {
		got[f.GetName()] = len(f.GetMetric())
	}
	if len(got) != 3 || got["temporal_x_total"] != 2 || got["temporal_x_seconds"] != 1 || got["temporal_x"] != 1 {
		t.Errorf("got %v", got)
	}
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.FromSlash(path))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestTheOperationsGuideListsEveryMetric(t *testing.T) {
	families, err := everything().Gather()
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `(tidemark_[a-z_]+)` \\|([^|]*)\\|").FindAllStringSubmatch(readFile(t, "../../docs/operations.md"), -1) {
		listed[row[1]] = strings.TrimSpace(row[2])
	}
	for _, f := range families {
		name := f.GetName()
		if !strings.HasPrefix(name, "tidemark_") {
			continue
		}
		labels, ok := listed[name]
		delete(listed, name)
		var want []string
		for _, l := range f.GetMetric()[0].GetLabel() {
			if l.GetName() != "pipeline" {
				want = append(want, l.GetName())
			}
		}
		if text := strings.Join(want, ", "); !ok || labels != text {
			t.Errorf("docs/operations.md has %s: %t, with the labels %q, want %q", name, ok, labels, text)
		}
	}
	for name := range listed {
		t.Errorf("docs/operations.md lists %s, which does not exist", name)
	}
}
