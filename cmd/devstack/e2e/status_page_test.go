package e2e

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-cdc/tidemark/cmd/devstack/browser"
	"github.com/tidemark-cdc/tidemark/cmd/devstack/e2e/harness"
	"github.com/tidemark-cdc/tidemark/cmd/devstack/load"
	"github.com/tidemark-cdc/tidemark/cmd/devstack/pipeline"
	"github.com/tidemark-cdc/tidemark/cmd/devstack/stack"
)

// picturesVariable names a folder that the pictures of the status page in the
// operations guide are written to, by a run that takes some minutes longer so
// that there is something to see in the charts.
const picturesVariable = "DEVSTACK_PICTURES"

// S3 takes one upload no more, while those after it go on, and then nothing at
// all. Whoever opens the status page sees which segment holds the ack, why, and
// since when, and what has finished behind it. When S3 is back the sentence goes.
func TestTheStatusPageSaysWhatHoldsTheAckWhileS3IsDown(t *testing.T) {
	pictures := os.Getenv(picturesVariable)
	const ui = "http://temporal.example.com:8233"
	h := harness.New(t, harness.Options{
		Postgres: 18, TemporalMemory: true,
		Settings: pipeline.Settings{
			"pipeline": "shop", "lake.url": "s3://lake/e2e", "temporal.ui": ui,
			"segment.max_rows": 2000, "segment.max_age": "2s", "segment.max_bytes": "1MiB",
			"ring.max_bytes": "12MiB", "streamer.max_in_flight": 5,
		},
	})
	chromium, err := browser.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(chromium.Stop)
	s := h.Run()
	s.WaitStreaming()
	l := h.Load(load.Config{Seed: 9, Rate: 400, Largest: 400})
	h.WaitRows(l, 1000)
	page := chromium.Open(t, "http://"+s.Ops+"/", browser.Look{})
	page.EventuallyHas("#ack", "Nothing holds the ack")
	if pictures != "" {
		goesOn(h, 5*time.Minute)
	}

	begin := time.Now().UTC()
	var upload harness.Upload
	h.Stack.Faults.Refuse(upload.Match, 503, 0)
	sentence := page.Eventually("#ack", func(text string) bool {
		return strings.Contains(text, "holds the ack since ") && strings.Contains(text, "upload attempt ")
	})
	first := h.Object(&upload).First
	if !strings.Contains(sentence, "Segment "+first.String()+" holds the ack since ") {
		t.Errorf("the page says %q; what is refused is %s", sentence, first)
	}
	if !strings.Contains(sentence, " failed: ") || !strings.Contains(sentence, "SlowDown") {
		t.Errorf("it does not say why: %q", sentence)
	}
	since, err := time.Parse(time.DateTime, begin.Format(time.DateOnly)+" "+regexp.MustCompile(`since (\S+) UTC`).FindStringSubmatch(sentence)[1])
	if err != nil || since.Before(begin.Add(-5*time.Second)) || since.After(time.Now()) {
		t.Errorf("it says since %s; uploads are refused since %s (%v)", since, begin, err)
	}
	page.Eventually("#segments-sum", regexp.MustCompile(`; ([3-9]|\d\d+) have finished ahead`).MatchString)

	outage := h.Stack.Faults.Refuse(stack.Any, 503, 0)
	page.Eventually("#segments", func(text string) bool { return strings.Count(text, "retrying, attempt") >= 3 })
	link := browser.Eval[string](page, `document.querySelector("#segments tbody a").href`)
	if want := ui + "/namespaces/default/workflows/" + url.PathEscape("tidemark/shop/"+first.String()); link != want {
		t.Errorf("the first segment links to %s, want %s", link, want)
	}
	if row := page.Text("#segments tbody tr"); !strings.Contains(row, first.String()) || !strings.Contains(row, "holds the ack") || !strings.Contains(row, "retrying, attempt") {
		t.Errorf("the first segment is shown as %q", row)
	}
	// The verb fails, since it cannot ask the lake, and says what it can.
	if r := h.Verb("status", "--ops-listen", s.Ops); !strings.Contains(r.Stdout, "ack        Segment "+first.String()+" holds the ack since ") {
		t.Errorf("tidemark status ended with status %d:\n%s%s", r.Code, r.Stdout, r.Stderr)
	}
	if pictures != "" {
		goesOn(h, 75*time.Second)
		page.EventuallyHas("#reasons", "Not ready")
		page.Screenshot(filepath.Join(pictures, "status-light.png"), "#segments tbody tr:nth-child(6)")
		page.Look(browser.Look{Dark: true})
		page.Screenshot(filepath.Join(pictures, "status-dark.png"), "#overview")
		page.Look(browser.Look{Width: 375, Height: 812, Phone: true})
		page.Screenshot(filepath.Join(pictures, "status-phone.png"), "#overview section")
	}

	h.Stack.Faults.Clear()
	want := h.StopLoad(l)
	page.EventuallyWithin(2*harness.Bound, "#ack", func(text string) bool { return strings.Contains(text, "Nothing holds the ack") })
	if outage.Hits() == 0 {
		t.Error("nobody has asked S3 while it was down")
	}
	if c := page.Complaints(); len(c) > 0 {
		t.Errorf("the page complains: %q", c)
	}
	h.WaitAck()
	h.LakeHas(want)
	s.Stop()
}

// goesOn lets a run go on for the sake of a picture.
func goesOn(h *harness.Harness, d time.Duration) {
	over := time.Now().Add(d)
	h.Eventually(d+harness.Bound, func() string {
		if left := time.Until(over); left > 0 {
			return fmt.Sprintf("it goes on for %s", left)
		}
		return ""
	})
}
