package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tidemark-cdc/tidemark/activities"
	"github.com/tidemark-cdc/tidemark/cmd/devstack/e2e/harness"
	"github.com/tidemark-cdc/tidemark/cmd/devstack/pipeline"
	"github.com/tidemark-cdc/tidemark/cmd/devstack/stack"
	"github.com/tidemark-cdc/tidemark/internal/segment"
	"github.com/tidemark-cdc/tidemark/workflows"
)

// The lake fails in one way after the other, under one process that is never
// started again. Each failure is counted by its class and told in a sentence
// that says what to do; while it lasts the row is not in the lake, and when it is
// mended the row is there, once.
//
// On one version of Postgres: it does not know of S3.
func TestEveryFailureOfTheLakeIsToldAndPassesWithoutARestart(t *testing.T) {
	t.Parallel()
	folder, limited := smallDisk(t)
	h := harness.New(t, harness.Options{
		Postgres: 18, TemporalMemory: true, S3: stack.S3Options{Folder: folder},
		Settings: pipeline.Settings{"segment.max_age": "100ms", "lake.timeout": "3s"},
	})
	keys := keysInAFile(t, h)
	p := h.Run()
	p.WaitStreaming()
	rows := events{h: h}
	rows.goOn(t)
	for _, tc := range []struct {
		name  string
		begin func(t *testing.T) (end func())
		class activities.Class
		says  string
	}{
		{"nobody listens", func(t *testing.T) func() {
			succeed(t, h.Stack.S3.Kill())
			return func() { succeed(t, h.Stack.S3.Start(t.Context())) }
		}, activities.StoreUnreachable, "check the lake's endpoint and region, and the network between"},
		{"no answer comes", func(*testing.T) func() {
			return h.Stack.Faults.Hold(stack.Any, 0).Remove
		}, activities.StoreUnreachable, "no answer within"},
		{"it is being throttled", func(*testing.T) func() {
			return h.Stack.Faults.Answer(stack.PutsOfSegments, stack.Answer{Status: 503, Code: "SlowDown"}, 0).Remove
		}, activities.StoreThrottled, "lower the number of concurrent uploads"},
		{"it has a problem", func(*testing.T) func() {
			return h.Stack.Faults.Answer(stack.PutsOfSegments, stack.Answer{Status: 500, Code: "InternalError"}, 0).Remove
		}, activities.StoreUnavailable, "the store has a problem: see its own status"},
		{"the keys are replaced", func(t *testing.T) func() {
			succeed(t, h.Stack.S3.ReplaceKeys(t.Context()))
			return keys
		}, activities.StoreDenied, "the AWS credentials in use are wrong or have expired: renew them"},
		{"the keys may not write", func(*testing.T) func() {
			return h.Stack.Faults.Answer(stack.PutsOfSegments, stack.Answer{Status: 403, Code: "AccessDenied"}, 0).Remove
		}, activities.StoreDenied, "let the credentials in use do s3:GetObject, s3:PutObject and s3:ListBucket"},
		{"the bucket is gone", func(t *testing.T) func() {
			bucket := h.Stack.S3.Folder()
			succeed(t, os.Rename(bucket, bucket+"-gone"))
			return func() { succeed(t, os.Rename(bucket+"-gone", bucket)) }
		}, activities.StoreMissingBucket, "make the bucket"},
		{"the disk is full", func(t *testing.T) func() {
			if !limited { // no disk of our own can be mounted here
				return h.Stack.Faults.Answer(stack.PutsOfSegments, stack.Answer{Status: 507, Code: "InsufficientStorage"}, 0).Remove
			}
			return fill(t, folder)
		}, activities.StoreFull, "make room in the store"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			series := fmt.Sprintf(`tidemark_upload_failures_total{action="upload",class="%s",pipeline="e2e"}`, tc.class)
			before, said := p.Metric(series), h.Logged(tc.says)
			end := tc.begin(t)
			rows.insert("while " + tc.name)
			h.Eventually(harness.Bound, func() string {
				if now := p.Metric(series); now == before {
					return fmt.Sprintf("no attempt has failed with %s; the end of the log:\n%s", tc.class, p.Tail(5))
				}
				if h.Logged(tc.says) == said {
					return fmt.Sprintf("nobody has said %q; the end of the log:\n%s", tc.says, p.Tail(5))
				}
				return ""
			})
			end()
			rows.inLake++
			h.WaitAck()
			if got := h.RowsInLake().Total(); got != rows.inLake {
				t.Fatalf("the lake has %d rows, want %d", got, rows.inLake)
			}
		})
	}
	h.Sound()
	h.SameAsPostgres("public.events")
	p.Stop()
}

// Failures of the lake that cost no attempt, or one that has to wait for its
// time, or for a person.
func TestAnAttemptOutlastsWhatTheLakeDoesToIt(t *testing.T) {
	t.Parallel()
	h := harness.New(t, harness.Options{
		Postgres: 18, TemporalMemory: true, Settings: pipeline.Settings{"segment.max_age": "100ms"},
	})
	p := h.Run()
	p.WaitStreaming()
	rows := events{h: h}
	rows.goOn(t)
	failures := func(class activities.Class) float64 {
		return p.Metric(fmt.Sprintf(`tidemark_upload_failures_total{action="upload",class="%s",pipeline="e2e"}`, class))
	}

	t.Run("it is slow", func(t *testing.T) {
		begin, slow := time.Now(), h.Stack.Faults.Delay(stack.PutsOfSegments, 1500*time.Millisecond)
		walsender := h.Walsender()
		rows.goOn(t)
		slow.Remove()
		if took := time.Since(begin); took < 1500*time.Millisecond {
			t.Errorf("it took %s: nothing was slow", took)
		}
		if n := failures(activities.StoreUnreachable); n > 0 {
			t.Errorf("%g attempts have failed", n)
		}
		if now := h.Walsender(); now != walsender {
			t.Errorf("the walsender was process %d and is %d now", walsender, now)
		}
	})

	t.Run("every answer is lost", func(t *testing.T) {
		objects := len(h.Objects())
		lost := h.Stack.Faults.LoseAnswer(stack.PutsOfSegments, 0)
		rows.goOn(t)
		h.WaitAck()
		if lost.Hits() < 2 {
			t.Errorf("%d answers were lost, want that of the repetition too", lost.Hits())
		}
		lost.Remove()
		if now := len(h.Objects()); now != objects+1 {
			t.Errorf("one segment has left %d objects", now-objects)
		}
		h.Sound()
	})

	t.Run("it says when to come again", func(t *testing.T) {
		var upload harness.Upload
		h.Stack.Faults.Answer(upload.Match, stack.Answer{Status: 503, Code: "SlowDown", Header: map[string]string{"Retry-After": "4"}}, 1)
		rows.goOn(t)
		puts := h.Stack.Faults.Requests(upload.Match)
		if len(puts) != 2 {
			t.Fatalf("the object was sent %d times, want twice", len(puts))
		}
		if pause := puts[1].At.Sub(puts[0].At); pause < 4*time.Second {
			t.Errorf("the store asked for 4 s and was asked again after %s", pause)
		}
		if failures(activities.StoreThrottled) != 1 {
			t.Error("it is not counted as throttling")
		}
	})

	t.Run("another object is in the place", func(t *testing.T) {
		var upload harness.Upload
		held := h.Stack.Faults.Hold(upload.Match, 1)
		rows.insert("whose place is taken")
		h.WaitHits(held, 1)
		// An object of this very pipeline, but of other rows.
		objects := h.Objects()
		other, err := os.ReadFile(filepath.Join(h.Stack.S3.Folder(), "e2e", filepath.FromSlash(objects[0].Key())))
		succeed(t, err)
		key := h.Object(&upload).Key()
		gateway := objectsOf(t, h)
		succeed(t, gateway.put("e2e/"+key, string(other)))
		held.Remove()
		c := dialTemporal(t, h)
		ref := segment.Ref{Pipeline: "e2e", First: h.Object(&upload).First}
		h.Eventually(harness.Bound, func() string {
			details, err := detailsOf(t.Context(), c, ref)
			if err != nil || !strings.Contains(details, "the lake holds other rows in this place") || !strings.Contains(details, "nothing was overwritten") {
				return fmt.Sprintf("the workflow does not say what is wrong: %s (%v)", details, err)
			}
			return ""
		})
		if failures(activities.LakeConflict) != 1 || h.Logged("segment waits for an operator") == 0 {
			t.Errorf("%g conflicts are counted, and the log says it %d times", failures(activities.LakeConflict), h.Logged("segment waits for an operator"))
		}
		if body, _ := gateway.get("e2e/" + key); body != string(other) {
			t.Error("what was in the place was overwritten")
		}
		succeed(t, os.Remove(filepath.Join(h.Stack.S3.Folder(), "e2e", filepath.FromSlash(key))))
		update(t, c, ref, workflows.RetryUpdate)
		rows.inLake++
		h.WaitAck()
	})

	h.Sound()
	if got := h.RowsInLake().Total(); got != rows.inLake {
		t.Errorf("the lake has %d rows, want %d", got, rows.inLake)
	}
	h.SameAsPostgres("public.events")
	p.Stop()
}

func objectsOf(t *testing.T, h *harness.Harness) objects {
	return objects{t, h.Stack.S3.Client(""), h.Stack.S3.Bucket()}
}

// keysInAFile has the test's processes read the gateway's keys from a file, and
// gives what writes those that are valid now into it.
func keysInAFile(t *testing.T, h *harness.Harness) (write func()) {
	file := filepath.Join(h.Stack.Dir(), "credentials")
	write = func() {
		text := "[default]\n"
		for _, v := range h.Stack.S3.Env() {
			name, value, _ := strings.Cut(v, "=")
			text += strings.ToLower(name) + " = " + value + "\n"
		}
		succeed(t, os.WriteFile(file, []byte(text), 0o600))
	}
	write()
	h.Pipeline.Env = []string{"AWS_SHARED_CREDENTIALS_FILE=" + file}
	return write
}

// smallDisk is a folder on a disk of its own that can be filled, as long as one
// may be mounted here; else an ordinary one.
func smallDisk(t *testing.T) (folder string, limited bool) {
	t.Helper()
	folder = t.TempDir()
	if err := syscall.Mount("tidemark", folder, "tmpfs", 0, "size=16m,mode=0755"); err != nil {
		t.Logf("no disk can be mounted here (%v): the proxy says in its place that it is full", err)
		return folder, false
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(folder, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return folder, true
}

// fill fills the disk that a folder is on, until end.
func fill(t *testing.T, folder string) (end func()) {
	t.Helper()
	name := filepath.Join(folder, "balloon")
	f, err := os.Create(name)
	succeed(t, err)
	defer f.Close()
	// From large to small pieces, so that nothing is left.
	for size := 1 << 20; size > 0; size /= 2 {
		for piece := make([]byte, size); err == nil; {
			_, err = f.Write(piece)
		}
		err = nil
	}
	return func() { succeed(t, os.Remove(name)) }
}

func succeed(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
