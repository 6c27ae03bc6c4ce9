package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// Page is an open page. Its methods are for the test's own goroutine.
type Page struct {
	t   *testing.T
	ctx context.Context

	mu         sync.Mutex
	complaints []string
	requests   []string
}

// watch notes what the page does beside what it shows.
func (p *Page) watch() {
	p.t.Helper()
	if _, err := chromedp.Call(p.ctx, log.Enable, cdp.Empty{}); err != nil {
		p.t.Fatalf("listen to the page's log: %v", err)
	}
	err := chromedp.Listen(p.ctx, func(event any) {
		p.mu.Lock()
		defer p.mu.Unlock()
		switch e := event.(type) {
		case *runtime.EventExceptionThrown:
			text := e.ExceptionDetails.Text
			if x := e.ExceptionDetails.Exception; x != nil {
				text += " " + x.Description
			}
			p.complaints = append(p.complaints, "exception: "+text)
		case *runtime.EventConsoleAPICalled:
			var texts []string
			for _, a := range e.Args {
				texts = append(texts, string(a.Value)+a.Description)
			}
			p.complaints = append(p.complaints, fmt.Sprintf("console %s: %s", e.Type, strings.Join(texts, " ")))
		case *log.EventEntryAdded:
			p.complaints = append(p.complaints, fmt.Sprintf("%s: %s", e.Entry.Source, e.Entry.Text))
		case *network.EventRequestWillBeSent:
			p.requests = append(p.requests, e.Request.URL)
		}
	})
	if err != nil {
		p.t.Fatalf("listen to the page: %v", err)
	}
}

// Complaints are the exceptions, console messages and log entries of the page so
// far: a violation of its policy is among them.
func (p *Page) Complaints() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string{}, p.complaints...)
}

// Requests are the addresses that the page has asked for.
func (p *Page) Requests() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string{}, p.requests...)
}

func (p *Page) do(what string, steps ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, Bound)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		p.t.Fatalf("%s: %v", what, err)
	}
}

// Eval is the value of a JavaScript expression in the page.
func Eval[T any](p *Page, expression string) T {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, Bound)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		p.t.Fatalf("evaluate %s: %v", expression, err)
	}
	return v
}

// Text is what an element shows, as a person reads it; empty if there is none, or
// it is hidden.
func (p *Page) Text(selector string) string {
	p.t.Helper()
	return Eval[string](p, fmt.Sprintf(`(e => e?.checkVisibility() ? e.innerText ?? e.textContent : "")(document.querySelector(%q))`, selector))
}

// Eventually waits until an element's text satisfies ok.
func (p *Page) Eventually(selector string, ok func(text string) bool) string {
	p.t.Helper()
	return p.EventuallyWithin(Bound, selector, ok)
}

// EventuallyWithin is Eventually with another bound.
func (p *Page) EventuallyWithin(bound time.Duration, selector string, ok func(text string) bool) string {
	p.t.Helper()
	end := time.Now().Add(bound)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		text := p.Text(selector)
		if ok(text) {
			return text
		}
		if time.Now().After(end) {
			p.t.Fatalf("after %s %s says %q; the page's complaints: %q", bound, selector, text, p.Complaints())
		}
		<-tick.C
	}
}

// EventuallyHas waits until an element's text has a part.
func (p *Page) EventuallyHas(selector, part string) string {
	p.t.Helper()
	return p.Eventually(selector, func(text string) bool { return strings.Contains(text, part) })
}

// Press presses a key, or types a text.
func (p *Page) Press(keys string) {
	p.t.Helper()
	p.do("press a key", chromedp.KeyEvent(keys))
}

// Reload loads the page anew.
func (p *Page) Reload() {
	p.t.Helper()
	p.do("reload", chromedp.Reload())
}

// Named is a node of the accessibility tree, as assistive technology has it.
type Named struct {
	Role, Name string
	Focusable  bool
}

// Tree are the nodes of the accessibility tree that are not passed over.
func (p *Page) Tree() []Named {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, Bound)
	defer cancel()
	result, err := chromedp.Call(ctx, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{})
	if err != nil {
		p.t.Fatalf("read the accessibility tree: %v", err)
	}
	value := func(v *accessibility.Value) string {
		var text string
		if v == nil || json.Unmarshal(v.Value, &text) != nil {
			return ""
		}
		return text
	}
	var all []Named
	for _, n := range result.Nodes {
		if n.Ignored {
			continue
		}
		named := Named{Role: value(n.Role), Name: value(n.Name)}
		for _, property := range n.Properties {
			named.Focusable = named.Focusable || property.Name == "focusable" && string(property.Value.Value) == "true"
		}
		all = append(all, named)
	}
	return all
}

// Screenshot writes the page as a PNG, from its top through an element.
func (p *Page) Screenshot(path, through string) {
	p.t.Helper()
	beyond := true
	size := Eval[[]float64](p, fmt.Sprintf(`[document.documentElement.clientWidth, Math.ceil(document.querySelector(%q).getBoundingClientRect().bottom + scrollY) + 8]`, through))
	ctx, cancel := context.WithTimeout(p.ctx, Bound)
	defer cancel()
	result, err := chromedp.Call(ctx, page.CaptureScreenshot, page.CaptureScreenshotParams{
		CaptureBeyondViewport: &beyond, Clip: &page.Viewport{Width: size[0], Height: size[1], Scale: 1},
	})
	if err == nil {
		err = os.WriteFile(path, result.Data, 0o644)
	}
	if err != nil {
		p.t.Fatalf("take a screenshot: %v", err)
	}
}
