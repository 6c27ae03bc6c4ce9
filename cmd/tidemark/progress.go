package main

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// What takes longer than progressEvery says what it is about, and then again as
// often on a terminal, where a line is drawn over, and every plainEvery where
// each time is a line that stays.
const (
	progressEvery = 2 * time.Second
	plainEvery    = 10 * time.Second
)

// console is where stdout and stderr meet: on a terminal the line of progress
// stands below all else that is written. Safe for concurrent use.
type console struct {
	stderr io.Writer
	// terminal says that stderr is one, and columns how wide it is, zero if that
	// is not known.
	terminal bool
	columns  func() int

	mu sync.Mutex
	// drawn says that a line of progress stands there, without an end.
	drawn bool
}

// above gives a writer to w that takes the line of progress away first.
func (c *console) above(w io.Writer) io.Writer { return aboveLine{c, w} }

type aboveLine struct {
	console *console
	w       io.Writer
}

func (a aboveLine) Write(p []byte) (int, error) {
	a.console.mu.Lock()
	defer a.console.mu.Unlock()
	a.console.wipe()
	return a.w.Write(p)
}

// wipe takes the line of progress away. Callers hold mu.
func (c *console) wipe() {
	if c.drawn {
		io.WriteString(c.stderr, "\r"+clearLine)
		c.drawn = false
	}
}

// draw shows a line of progress.
func (c *console) draw(text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.terminal {
		fmt.Fprintln(c.stderr, text)
		return
	}
	if runes := []rune(text); c.columns() > 0 && len(runes) >= c.columns() {
		text = string(runes[:c.columns()-1]) // in the last column some terminals wrap
	}
	io.WriteString(c.stderr, "\r"+text+clearLine)
	c.drawn = true
}

// progress says on stderr what a verb is about, once that takes long. A nil one
// says nothing. Safe for concurrent use.
type progress struct {
	console *console
	stop    chan struct{}
	stopped chan struct{}

	mu sync.Mutex
	// format and args are what the verb is about since began; an empty format is
	// nothing.
	format string
	args   []any
	began  time.Time
}

// progress begins to say what a verb is about; end ends it.
func (sys system) progress() *progress {
	p := &progress{console: sys.console, stop: make(chan struct{}), stopped: make(chan struct{})}
	go p.run()
	return p
}

// doing says what the verb is about from now on. It costs next to nothing, so it
// can be called for every object of a lake: args are made text only when they
// are shown.
func (p *progress) doing(format string, args ...any) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.format == "" {
		p.began = time.Now()
	}
	p.format, p.args = format, args
}

// idle says that the verb is about nothing, and has nothing shown: it asks a
// person.
func (p *progress) idle() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.format, p.args = "", nil
	p.console.mu.Lock()
	defer p.console.mu.Unlock()
	p.console.wipe()
}

// end takes away what is shown, and returns when nothing more will be.
func (p *progress) end() {
	if p == nil {
		return
	}
	close(p.stop)
	<-p.stopped
	p.idle()
}

func (p *progress) run() {
	defer close(p.stopped)
	tick := time.NewTicker(progressEvery)
	defer tick.Stop()
	var shown time.Time
	for {
		select {
		case <-p.stop:
			return
		case now := <-tick.C:
			// Ticks are not exact.
			if p.console.terminal || now.Sub(shown) > plainEvery-progressEvery/2 {
				if p.show(now) {
					shown = now
				}
			}
		}
	}
}

// show says whether there was something to show.
func (p *progress) show(now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if took := now.Sub(p.began); p.format != "" && took >= progressEvery {
		p.console.draw(fmt.Sprintf("tidemark: %s (%s)", oneLine(fmt.Sprintf(p.format, p.args...)), took.Round(time.Second)))
		return true
	}
	return false
}
