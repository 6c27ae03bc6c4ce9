package browser

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// Bound is how long a page may take to show what a test waits for.
const Bound = time.Minute

// Browser is a running Chromium.
type Browser struct {
	ctx  context.Context
	stop func()
}

// names are those that Chromium and its kin go by.
var names = []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"}

func find() (string, error) {
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errors.New("there is no Chromium: run scripts/bootstrap, or install it (on Debian: apt-get install chromium)")
}

// Start starts a browser, which runs until Stop.
func Start() (*Browser, error) {
	path, err := find()
	if err != nil {
		return nil, err
	}
	profile, err := os.MkdirTemp("", "tidemark-browser-")
	if err != nil {
		return nil, fmt.Errorf("make a profile for %s: %w", path, err)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:len(chromedp.DefaultExecAllocatorOptions):len(chromedp.DefaultExecAllocatorOptions)],
		chromedp.ExecPath(path), chromedp.UserDataDir(profile), chromedp.DisableGPU,
		chromedp.Flag("disable-component-update", true))
	if os.Getuid() == 0 {
		options = append(options, chromedp.NoSandbox) // its sandbox refuses root
	}
	allocator, stopAllocator := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, cancel := chromedp.NewContext(allocator)
	b := &Browser{ctx: ctx, stop: func() {
		_ = chromedp.Cancel(ctx) // waits until the process has ended
		cancel()
		stopAllocator()
		os.RemoveAll(profile)
	}}
	if err := chromedp.Do(ctx); err != nil {
		b.stop()
		return nil, fmt.Errorf("start %s: %w", path, err)
	}
	return b, nil
}

// Stop ends the browser and removes its profile.
func (b *Browser) Stop() { b.stop() }

// Look is how a page is looked at. The zero Look is a desktop in the light.
type Look struct {
	// Width and Height of the window in CSS pixels; zero is 1200 by 900.
	Width, Height int64
	// Scale is how many pixels of a screenshot one of CSS has; zero is 1.
	Scale float64
	// Phone is a touch screen without scroll bars of its own.
	Phone bool
	// Dark and Still are what the user prefers: dark colours, and no motion.
	Dark, Still bool
}

// Open opens a page in a window of its own, with nothing remembered, until the
// test ends.
func (b *Browser) Open(t *testing.T, url string, look Look) *Page {
	t.Helper()
	ctx, cancel := chromedp.NewContext(b.ctx, chromedp.WithNewBrowserContext())
	t.Cleanup(cancel)
	p := &Page{t: t, ctx: ctx}
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("open a window: %v", err)
	}
	p.watch()
	p.Look(look)
	p.do("open "+url, chromedp.Navigate(url))
	return p
}

// Look looks at the page in another way.
func (p *Page) Look(look Look) {
	p.t.Helper()
	if look.Width == 0 {
		look.Width, look.Height = 1200, 900
	}
	if look.Scale == 0 {
		look.Scale = 1
	}
	scheme, motion := "light", "no-preference"
	if look.Dark {
		scheme = "dark"
	}
	if look.Still {
		motion = "reduce"
	}
	_, err := chromedp.Call(p.ctx, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
		Width: look.Width, Height: look.Height, DeviceScaleFactor: look.Scale, Mobile: look.Phone,
	})
	if err == nil {
		_, err = chromedp.Call(p.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
			{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: motion},
		}})
	}
	if err != nil {
		p.t.Fatalf("look at the page in another way: %v", err)
	}
}
