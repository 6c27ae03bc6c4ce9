package browser_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"github.com/tidemark-cdc/tidemark/cmd/devstack/browser"
	"github.com/tidemark-cdc/tidemark/internal/ops"
)

var phone = browser.Look{Width: 375, Height: 800, Phone: true}

func TestNothingIsWiderThanAPhone(t *testing.T) {
	long := outage()
	long.Ack.Why = strings.Repeat("long-word-without-a-break/", 30)
	long.Segments.Shown[0].Error = long.Ack.Why
	long.Pipeline = strings.Repeat("w", 41)
	long.Findings[0].What, long.Findings[1].Fix = long.Ack.Why, long.Ack.Why
	for name, s := range map[string]ops.Snapshot{"well": well(), "outage": outage(), "long words": long} {
		t.Run(name, func(t *testing.T) {
			_, p := open(t, s, phone)
			browser.Eval[bool](p, `(document.querySelector("#findings-passed").open = true)`)
			wide := browser.Eval[[]string](p, `[...document.querySelectorAll("body *")].filter(e => {
				const box = e.getBoundingClientRect();
				return box.width > 0 && !e.closest(".skip, thead") && (box.right > innerWidth + 0.5 || box.left < -0.5);
			}).map(e => e.tagName + "#" + e.id + "." + e.className)`)
			size := browser.Eval[[]int](p, `[document.documentElement.scrollWidth, document.documentElement.clientWidth, innerWidth]`)
			if len(wide) > 0 || size[0] > 375 || size[1] != 375 || size[2] != 375 {
				t.Errorf("the page is %d wide in a window of %d (%d); beyond its edge are %q", size[0], size[1], size[2], wide)
			}
		})
	}
}

func TestColoursFollowTheSchemeAndAllTextCanBeReadInBoth(t *testing.T) {
	backgrounds := map[bool]string{}
	for _, dark := range []bool{false, true} {
		t.Run(fmt.Sprint("dark ", dark), func(t *testing.T) {
			_, p := open(t, outage(), browser.Look{Dark: dark, Still: true})
			backgrounds[dark] = browser.Eval[string](p, `getComputedStyle(document.body).backgroundColor`)
			faint := browser.Eval[[]string](p, `(() => {
				const parts = c => c.match(/[\d.]+/g).map(Number);
				const light = c => parts(c).slice(0, 3).map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
					.reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
				const behind = e => {
					for (; e; e = e.parentElement) {
						const c = getComputedStyle(e).backgroundColor;
						if ((parts(c)[3] ?? 1) === 1) return c;
					}
				};
				const found = [];
				const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
				while (walker.nextNode()) {
					const e = walker.currentNode.parentElement;
					if (!walker.currentNode.textContent.trim() || !e.checkVisibility() || e.closest("script, style")) continue;
					const style = getComputedStyle(e), [a, b] = [light(e.closest("#ring") ? style.fill : style.color), light(behind(e))];
					const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
					if (ratio < 4.5) found.push(ratio.toFixed(2) + " " + e.className + " " + walker.currentNode.textContent.slice(0, 40));
				}
				return found;
			})()`)
			if len(faint) > 0 {
				t.Errorf("texts with a contrast below 4.5: %q", faint)
			}
			// What the ring's ranges are drawn in stands out from the card, and from each
			// other not by colour alone.
			weak := browser.Eval[[]string](p, `(() => {
				const light = c => c.match(/[\d.]+/g).slice(0, 3).map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
					.reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
				const probe = document.body.appendChild(document.createElement("span"));
				const colour = name => { probe.style.color = "var(--" + name + ")"; return light(getComputedStyle(probe).color); };
				const ratio = (a, b) => (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
				const found = ["dispatched", "finished", "waiting", "free-line", "done"].map(name => [name, ratio(colour(name), colour("card"))]).filter(([, r]) => r < 3).map(String);
				probe.remove();
				return found;
			})()`)
			if len(weak) > 0 {
				t.Errorf("colours of the drawing with a contrast below 3: %q", weak)
			}
		})
	}
	if backgrounds[false] == backgrounds[true] {
		t.Errorf("both schemes have the background %s", backgrounds[false])
	}
}

func TestNothingMovesForWhoWantsNoMotion(t *testing.T) {
	_, p := open(t, outage(), browser.Look{Still: true})
	moving := browser.Eval[[]string](p, `[...document.querySelectorAll("*")].filter(e => {
		const s = getComputedStyle(e);
		return s.transitionDuration.split(", ").some(d => d !== "0s") || s.animationName !== "none";
	}).map(e => e.tagName + "#" + e.id)`)
	if len(moving) > 0 {
		t.Errorf("these move: %q", moving)
	}
}

func TestTheKeyboardReachesEverythingInOrderAndShowsWhereItIs(t *testing.T) {
	_, p := open(t, outage(), browser.Look{})
	where := `(e => e === document.body ? "end" : e.closest("#segments") ? "segment " + e.textContent : e.textContent.trim())(document.activeElement)`
	want := []string{"Skip to the status"}
	for _, s := range outage().Segments.Shown {
		want = append(want, "segment "+s.First)
	}
	want = append(want, "1 in order", "As JSON", "Metrics", "Readiness")
	var got []string
	for range want {
		p.Press(kb.Tab)
		got = append(got, browser.Eval[string](p, where))
		if style := browser.Eval[string](p, `(s => s.outlineStyle + " " + s.outlineWidth)(getComputedStyle(document.activeElement))`); style != "solid 2px" {
			t.Errorf("the focus at %s is shown as %q", got[len(got)-1], style)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("the order is\n%q, want\n%q", got, want)
	}
	// The skip link leads to the status.
	p.Reload()
	p.EventuallyHas("#ack", "holds the ack")
	p.Press(kb.Tab)
	p.Press(kb.Enter)
	if at := browser.Eval[string](p, `document.activeElement.id`); at != "main" {
		t.Errorf("the skip link has led to %q", at)
	}
}

func TestTheFocusStaysWhereItIsWhileThePageIsSentAnew(t *testing.T) {
	w, p := open(t, outage(), browser.Look{})
	browser.Eval[bool](p, `(document.querySelector("#segments tbody tr:nth-child(4) a").focus(), true)`)
	s := outage()
	s.Segments.Shown = s.Segments.Shown[1:]
	s.Segments.Shown[0].Holds = true
	w.set(s)
	p.Eventually("#segments tbody tr:first-child", func(text string) bool { return strings.HasPrefix(text, position(2)) })
	if at := browser.Eval[string](p, `document.activeElement.textContent`); at != position(4) {
		t.Errorf("the focus has gone from %s to %q", position(4), at)
	}
	// When the segment has gone, the focus is at the heading, not at the page's top.
	s.Segments.Shown = slices.Delete(slices.Clone(s.Segments.Shown), 2, 3)
	w.set(s)
	p.Eventually("#segments tbody", func(text string) bool { return !strings.Contains(text, position(4)) })
	if at := browser.Eval[string](p, `document.activeElement.id`); at != "segments-title" {
		t.Errorf("the focus is at %q", at)
	}
}

func TestTheSentenceIsReadOutOnlyWhenItChanges(t *testing.T) {
	w, p := open(t, outage(), browser.Look{})
	browser.Eval[bool](p, `(() => {
		window.changes = 0;
		window.snapshots = 0;
		new MutationObserver(list => window.changes += list.length).observe(document.getElementById("ack"), { subtree: true, childList: true, characterData: true, attributes: true });
		new MutationObserver(() => window.snapshots++).observe(document.querySelector("#segments tbody"), { subtree: true, childList: true, characterData: true });
		return true;
	})()`)
	s := outage()
	for i := range 3 {
		s.At = noon.Add(ago(0).Sub(ago(i + 1)))
		w.set(s)
		p.Eventually("#segments tbody tr:first-child", func(string) bool { return browser.Eval[int](p, "window.snapshots") > i })
	}
	if n := browser.Eval[int](p, "window.changes"); n != 0 {
		t.Errorf("the sentence was touched %d times while it stayed the same", n)
	}
	for selector, want := range map[string]string{"#ack": "polite", "#connection": "status"} {
		got := browser.Eval[string](p, fmt.Sprintf(`(e => e.getAttribute("aria-live") ?? e.getAttribute("role"))(document.querySelector(%q))`, selector))
		if got != want {
			t.Errorf("%s is read out as %q, want %q", selector, got, want)
		}
	}
}

// What a screen reader is given, from the tree that the browser makes for it.
func TestAssistiveTechnologyFindsLandmarksHeadingsTablesAndNames(t *testing.T) {
	for name, look := range map[string]browser.Look{"desktop": {}, "phone": phone} {
		t.Run(name, func(t *testing.T) {
			_, p := open(t, outage(), look)
			tree := p.Tree()
			has := func(role, name string) {
				t.Helper()
				if !slices.ContainsFunc(tree, func(n browser.Named) bool { return n.Role == role && strings.HasPrefix(n.Name, name) }) {
					var all []string
					for _, n := range tree {
						if n.Role == role {
							all = append(all, n.Name)
						}
					}
					t.Errorf("there is no %s %q among %q", role, name, all)
				}
			}
			has("banner", "")
			has("main", "")
			has("contentinfo", "")
			for _, section := range []string{"What holds the ack", "The ring", "Figures", "The last 15 minutes", "Segments in flight", "Findings"} {
				has("region", section)
				has("heading", section)
			}
			has("heading", "shop")
			for _, drawing := range []string{"The ring: of 256.0 MiB", "Lag over", "Throughput over", "Latency over", "In stream order"} {
				has("image", drawing)
			}
			has("table", "Segments in flight")
			for _, column := range []string{"Range", "Changes", "Size", "Segment", "State", "Since", "Rows"} {
				has("columnheader", column)
			}
			has("rowheader", "Dispatched")
			has("rowheader", position(1))
			has("cell", "retrying, attempt 8 holds the ack")
			has("link", position(11))
			has("DisclosureTriangle", "1 in order")
			interactive := 0
			for _, n := range tree {
				if n.Focusable && n.Role != "RootWebArea" {
					interactive++
					if n.Name == "" && n.Role != "main" {
						t.Errorf("a %s that can have the focus has no name", n.Role)
					}
				}
			}
			if interactive < 16 {
				t.Errorf("only %d nodes can have the focus", interactive)
			}
		})
	}
}
