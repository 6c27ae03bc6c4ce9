package browser_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-cdc/tidemark/cmd/devstack/browser"
	"github.com/tidemark-cdc/tidemark/internal/bearer"
	"github.com/tidemark-cdc/tidemark/internal/ops"
)

// open serves a snapshot and opens its page, once it shows what it was sent.
func open(t *testing.T, s ops.Snapshot, look browser.Look) (*site, *browser.Page) {
	t.Helper()
	w := serve(t, s, nil)
	p := chromium.Open(t, w.url(), look)
	p.EventuallyHas("#ack", s.Ack.What)
	t.Cleanup(func() {
		if c := p.Complaints(); len(c) > 0 && !t.Failed() {
			t.Errorf("the page complains: %q", c)
		}
	})
	return w, p
}

// hasInOrder checks that text has each part, in order.
func hasInOrder(t *testing.T, what, text string, parts ...string) {
	t.Helper()
	rest := text
	for _, part := range parts {
		_, after, found := strings.Cut(rest, part)
		if !found {
			t.Errorf("%s has no %q, or out of order:\n%s", what, part, text)
			return
		}
		rest = after
	}
}

func TestTheSentenceSaysWhatHoldsTheAckAndGoesWhenNothingDoes(t *testing.T) {
	w, p := open(t, outage(), browser.Look{})
	hasInOrder(t, "the sentence", p.Text("#ack"), "Segment "+position(1)+" holds the ack since 11:56:41 UTC", "upload attempt 7 failed: put object", "503 SlowDown")
	hasInOrder(t, "the reasons", p.Text("#reasons"), "Not ready", "the ack stands still")
	if title := browser.Eval[string](p, "document.title"); title != "(!) shop – Tidemark" {
		t.Errorf("the title is %q", title)
	}
	w.set(well())
	p.EventuallyHas("#ack", "Nothing holds the ack")
	if got := p.Text("#ack .why") + p.Text("#reasons"); got != "" {
		t.Errorf("beside it still stands %q", got)
	}
	if title := browser.Eval[string](p, "document.title"); title != "shop – Tidemark" {
		t.Errorf("the title is %q", title)
	}
}

func TestTheRingIsDrawnWithItsRangesAndTheSameStandsInATable(t *testing.T) {
	w, p := open(t, outage(), browser.Look{})
	var rows []string
	for i := 1; i <= 5; i++ {
		rows = append(rows, strings.Join(strings.Fields(p.Text(fmt.Sprintf("#ranges tr:nth-child(%d)", i))), " "))
	}
	want := []string{"Done 1,234,567 –", "Dispatched 40,000 120.0 MiB", "of these, finished ahead 8,000 36.0 MiB", "Waiting 12,000 41.0 MiB", "Free – 95.0 MiB"}
	if !slices.Equal(rows, want) {
		t.Errorf("the table has %q, want %q", rows, want)
	}
	label := browser.Eval[string](p, `document.getElementById("ring").getAttribute("aria-label")`)
	if label != "The ring: of 256.0 MiB, 120.0 MiB are dispatched, of which 36.0 MiB are finished ahead; 41.0 MiB are waiting, and 95.0 MiB are free." {
		t.Errorf("the drawing is called %q", label)
	}
	if text := p.Text("#ring-share") + ", " + p.Text("#ring-held") + " " + p.Text("#ring-size"); text != "63 %, 161.0 MiB of 256.0 MiB" {
		t.Errorf("in the ring stands %q", text)
	}
	fills := func() map[string]float64 {
		return browser.Eval[map[string]float64](p, `(() => {
			const length = {};
			for (const path of document.querySelectorAll("#ring-arcs path")) {
				const box = path.getBBox();
				length[path.getAttribute("fill")] = (length[path.getAttribute("fill")] ?? 0) + box.width * box.height;
			}
			return length;
		})()`)
	}
	for _, fill := range []string{"var(--done)", "var(--dispatched)", "url(#hatched)", "url(#dotted)"} {
		if fills()[fill] == 0 {
			t.Errorf("the ring has no part that is filled with %s: %v", fill, fills())
		}
	}
	// Two runs of segments have finished behind gaps: of one, and of two.
	if n := browser.Eval[int](p, `document.querySelectorAll("#ring-arcs path[fill='url(#hatched)']").length`); n != 2 {
		t.Errorf("%d parts of the ring are drawn as finished ahead, want 2", n)
	}
	full := outage()
	full.Ring.Full, full.Ring.Waiting.Bytes, full.Ring.Free = true, 136<<20, 0
	w.set(full)
	p.Eventually("#ranges tr:nth-child(5)", func(text string) bool { return strings.Contains(text, "0 B") })
	if text := p.Text("#ring-share"); text != "full" {
		t.Errorf("in the full ring stands %q", text)
	}
	empty := well()
	empty.Ring, empty.Segments = ops.Ring{Free: 256 << 20}, ops.Segments{Shown: []ops.Segment{}}
	w.set(empty)
	p.Eventually("#segments-none", func(text string) bool { return text != "" })
	if got := fills(); len(got) != 0 {
		t.Errorf("an empty ring has the parts %v", got)
	}
}

func TestSegmentsAreListedInStreamOrderWithAttemptsErrorsAndLinks(t *testing.T) {
	_, p := open(t, outage(), browser.Look{})
	row := func(i int) string { return p.Text(fmt.Sprintf("#segments tbody tr:nth-child(%d)", i)) }
	hasInOrder(t, "the first", row(1), position(1), "LSN 0/1001 to 0/1002", "public.orders and 2 more", "retrying, attempt 8", "holds the ack", "attempt 8 begins at 12:00:31 UTC", "503 SlowDown", "11:56:41", "3 min 19 s", "1,001", "3.0 MiB")
	hasInOrder(t, "the third", row(3), position(3), "finished ahead", "11:58:20", "1 min 40 s")
	hasInOrder(t, "the eighth", row(8), position(8), "running", "attempt 1 is under way since 11:59:58 UTC")
	hasInOrder(t, "the ninth", row(9), position(9), "waits for a person", "tidemark segments retry, or quarantine", "malformed")
	hasInOrder(t, "the tenth", row(10), position(10), "closed", "it is started again")
	if strings.Contains(row(2), "holds the ack") {
		t.Errorf("the second holds the ack too: %s", row(2))
	}
	links := browser.Eval[[]string](p, `[...document.querySelectorAll("#segments tbody a")].map(a => a.href)`)
	if len(links) != 11 || links[2] != outage().Segments.Shown[2].Link {
		t.Errorf("the links are %q", links)
	}
	sum := p.Text("#segments-sum")
	if !strings.Contains(sum, "8 are not finished; 3 have finished ahead, behind the gap that holds the ack") {
		t.Errorf("the sum is %q", sum)
	}
	strip := browser.Eval[string](p, `document.getElementById("strip").getAttribute("aria-label")`)
	if want := "In stream order, from the ack on: 2 retrying, 1 finished ahead, 1 retrying, 2 finished ahead, 1 retrying, 1 running, 1 waits for a person, 1 closed, 1 running."; strip != want {
		t.Errorf("the squares are called %q, want %q", strip, want)
	}
	cells := browser.Eval[[]string](p, `[...document.querySelectorAll("#strip .cell")].map(c => c.className)`)
	if len(cells) != 11 || cells[0] != "cell retrying holds" || cells[2] != "cell finished" {
		t.Errorf("the squares are %q", cells)
	}
}

func TestManySegmentsAreShownInPartAndWithoutAUIWithoutLinks(t *testing.T) {
	s := outage()
	s.Segments = ops.Segments{MoreRunning: 1200, MoreFinished: 7}
	for i := range ops.MaxSegments {
		x := segmentOf(i, ops.Running)
		x.Link = ""
		s.Segments.Shown = append(s.Segments.Shown, x)
	}
	_, p := open(t, s, browser.Look{})
	if n := browser.Eval[int](p, `document.querySelectorAll("#segments tbody tr").length`); n != ops.MaxSegments {
		t.Errorf("%d are listed", n)
	}
	if got := p.Text("#segments-more"); got != "These are the first 200; 1,200 not finished and 7 finished ahead are not shown." {
		t.Errorf("of the others it says %q", got)
	}
	if n := browser.Eval[int](p, `document.querySelectorAll("#segments tbody a[href]").length`); n != 0 || !strings.Contains(p.Text("#segments-unlinked"), "temporal.ui") {
		t.Errorf("%d links, and %q", n, p.Text("#segments-unlinked"))
	}
}

func TestTheChartsShowTheHistoryFromBeforeThePageWasOpened(t *testing.T) {
	_, p := open(t, outage(), browser.Look{})
	p.Eventually("#charts", func(text string) bool { return strings.Contains(text, "Latency") })
	labels := browser.Eval[[]string](p, `[...document.querySelectorAll("#charts > div > svg")].map(s => s.getAttribute("aria-label"))`)
	if len(labels) != 3 {
		t.Fatalf("the charts are %q", labels)
	}
	hasInOrder(t, "lag", labels[0], "Lag over the last 15 minutes: WAL behind the ack", "at most 137.6 MiB")
	hasInOrder(t, "throughput", labels[1], "Throughput", "changes received", "at most 1,600/s", "into the lake", "at most 1,600/s")
	hasInOrder(t, "latency", labels[2], "Latency", "commit to lake not known now, at most 2.7 s", "age of what holds the ack", "at most 3 min 15 s")
	// 180 points are a line across the whole chart.
	wide := browser.Eval[[]float64](p, `[...document.querySelectorAll("#charts > div > svg")].map(s => s.querySelector("path:not(.area)").getBBox().width)`)
	if wide[0] < 280 || wide[1] < 280 || wide[2] < 200 {
		t.Errorf("the lines are %v wide, of 300", wide)
	}
}

func TestFindingsOfPreflightAndDriftAreShown(t *testing.T) {
	_, p := open(t, outage(), browser.Look{})
	hasInOrder(t, "the findings", p.Text("#findings"), "warning", "public.refunds is not published", "What to do: see \"tables that leave\"", "drift, since 10:53:20",
		"max_slot_wal_keep_size sets no limit", "What to do: set max_slot_wal_keep_size", "preflight, Postgres, since 10:00:00", "1 in order")
	if text := p.Text("#findings-passed ul"); text != "" {
		t.Errorf("what is in order is shown without being asked for: %q", text)
	}
	browser.Eval[bool](p, `(document.querySelector("#findings-passed summary").click(), true)`)
	p.EventuallyHas("#findings-passed ul", "wal_level logical")
}

// Whatever stands in an error, a table's name or a setting: it is text.
func TestAHostileTextStaysText(t *testing.T) {
	const hostile = `</script><script>window.hacked=1</script><img src=x onerror="window.hacked=2"><a href="javascript:window.hacked=3">x</a>`
	s := outage()
	s.Pipeline, s.Version, s.Ack.What, s.Ack.Why = hostile, hostile, hostile, hostile
	s.Reasons = []string{hostile}
	s.Figures = append(s.Figures, ops.Figure{Name: hostile, Value: hostile, Note: hostile})
	s.Findings = append(s.Findings, ops.Finding{Level: ops.LevelError, Source: hostile, About: hostile, What: hostile, Fix: hostile})
	x := &s.Segments.Shown[0]
	x.Error, x.Tables, x.Doing, x.Workflow, x.FirstLSN, x.Link = hostile, hostile, hostile, hostile, hostile, "javascript:window.hacked=4"
	_, p := open(t, s, browser.Look{})
	for _, selector := range []string{"#pipeline", "#process", "#ack .what", "#ack .why", "#reasons", "#figures", "#findings-list", "#segments tbody tr:first-child .failed"} {
		if text := browser.Eval[string](p, fmt.Sprintf(`document.querySelector(%q).textContent`, selector)); !strings.Contains(text, hostile) {
			t.Errorf("%s says %q", selector, text)
		}
	}
	if got := browser.Eval[string](p, `[String(window.hacked), document.querySelectorAll("img, script:not(:last-of-type)").length, document.querySelectorAll("a[href^='javascript']").length].join(" ")`); got != "undefined 0 0" {
		t.Errorf("something of it has become more than text: %s", got)
	}
}

func TestThePageAsksNobodyButItsProcess(t *testing.T) {
	w, p := open(t, outage(), browser.Look{})
	for _, url := range p.Requests() {
		if !strings.HasPrefix(url, w.url()) {
			t.Errorf("it has asked for %s", url)
		}
	}
	if len(p.Requests()) < 2 {
		t.Errorf("it has asked for %q only", p.Requests())
	}
}

func TestThePageComesBackAfterTheProcessWasAway(t *testing.T) {
	w := serve(t, outage(), nil)
	p := chromium.Open(t, w.url(), browser.Look{})
	p.EventuallyHas("#connection", "live")
	w.end()
	p.Eventually("#connection", func(text string) bool {
		return strings.Contains(text, "does not answer; what is shown is of 12:00:00. It is tried again.")
	})
	if text := p.Text("#ack"); !strings.Contains(text, "holds the ack") {
		t.Errorf("what it last knew is gone: %q", text)
	}
	if title := browser.Eval[string](p, "document.title"); title != "(?) shop – Tidemark" {
		t.Errorf("the title is %q", title)
	}
	s := well()
	s.Pipeline = "the same again"
	w.set(s)
	w.start()
	p.EventuallyHas("#ack", "Nothing holds the ack")
	p.EventuallyHas("#connection", "live")
	if text := p.Text("#pipeline"); text != "the same again" {
		t.Errorf("the page is of %q", text)
	}
}

func TestThePageAsksForATokenAndNeverPutsItIntoAnAddress(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("s3cret-token\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	w := serve(t, outage(), func(page *ops.Page) {
		var err error
		if page.Tokens, err = bearer.Follow("ops.token_file", file, page.Logger); err != nil {
			t.Fatal(err)
		}
	})
	p := chromium.Open(t, w.url(), browser.Look{})
	p.EventuallyHas("#ask", "A token, please")
	p.Press("wrong\r") // the field has the focus
	p.EventuallyHas("#refused", "does not take this token")
	if text := p.Text("#content"); text != "" {
		t.Errorf("without a token it shows %q", text)
	}
	p.Press("s3cret-token\r")
	p.EventuallyHas("#ack", "holds the ack")
	p.Reload()
	p.EventuallyHas("#ack", "holds the ack")
	for _, url := range p.Requests() {
		if strings.Contains(url, "s3cret") || strings.ContainsAny(url, "?#@") {
			t.Errorf("it has asked for %s", url)
		}
	}
	if text := browser.Eval[string](p, `location.href + document.cookie + Object.keys(localStorage) + document.body.innerText`); strings.Contains(text, "s3cret") {
		t.Errorf("the token is in the page, or outlives it: %s", text)
	}
	browser.Eval[bool](p, `(document.getElementById("forget").click(), true)`)
	p.EventuallyHas("#ask", "A token, please")
}
