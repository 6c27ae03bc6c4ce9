package lake

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tidemark-cdc/tidemark/internal/change"
)

// Options are Verify's. The zero Options are the defaults.
type Options struct {
	// Concurrency bounds the footers that are read at once. Zero: 16.
	Concurrency int
	// MaxFindings bounds Report.Findings. Zero: 1000.
	MaxFindings int
	// Progress, if set, is told after each object what has been read so far; never
	// by two goroutines at once. All reading waits for it.
	Progress func(Progress)
}

// Progress is how far a Verify has come. How much there is it does not know: it
// reads while it lists.
type Progress struct {
	// Objects of Days have been read, and are Bytes large together.
	Objects, Bytes int64
	Days           int
}

// Verify shows from the lake alone that every acknowledged change is in it
// exactly once: it lists all objects, reads what each says of itself, and walks
// the chain from where the pipeline began to what was acknowledged.
//
// It can run while the lake is being written. The ack is read before the
// listing, and whatever the ack covers was stored before it, so nothing that
// the ack covers can be missed; what stands behind it is in flight and may have
// holes. The error is one of the store only: what is wrong with the lake is in
// the Report. Memory: about 150 bytes per object.
func Verify(ctx context.Context, l *Lake, opts Options) (Report, error) {
	opts.Concurrency = cmp.Or(opts.Concurrency, 16)
	opts.MaxFindings = cmp.Or(opts.MaxFindings, 1000)
	v := &verifier{
		lake: l, opts: opts,
		report: Report{Lake: l.url, Counts: map[Kind]int64{}, Findings: []Finding{}, Chains: []Chain{}, Days: []DayReport{}, Gaps: []Gap{}, Divergences: []DivergenceReport{}},
		days:   map[change.Day]*DayReport{},
		owners: map[owner][]link{},
		asides: map[string]*aside{},
	}
	if err := v.records(ctx); err != nil {
		return Report{}, fmt.Errorf("verify %s: %w", l.url, err)
	}
	if err := v.objects(ctx); err != nil {
		return Report{}, fmt.Errorf("verify %s: %w", l.url, err)
	}
	if err := v.settle(ctx); err != nil {
		return Report{}, fmt.Errorf("verify %s: %w", l.url, err)
	}
	// Workers finish in any order.
	slices.SortFunc(v.report.Findings, func(a, b Finding) int { return cmp.Compare(a.Key, b.Key) })
	slices.SortFunc(v.report.Gaps, func(a, b Gap) int { return a.Follows.Compare(b.Follows) })
	slices.SortFunc(v.report.Divergences, func(a, b DivergenceReport) int { return a.After.Compare(b.After) })
	v.chains()
	v.sum()
	return v.report, nil
}

// owner tells the chains apart. The zero owner has the links whose footers
// cannot be read.
type owner struct{ pipeline, systemID string }

type verifier struct {
	lake *Lake
	opts Options

	mu     sync.Mutex
	report Report
	days   map[change.Day]*DayReport
	owners map[owner][]link
	read   Progress
	// asides are the objects in quarantine, by where a replay puts their rows.
	asides map[string]*aside
}

// find notes a finding. Callers hold mu, or are alone.
func (v *verifier) find(f Finding) {
	v.report.Counts[f.Kind]++
	if len(v.report.Findings) < v.opts.MaxFindings {
		v.report.Findings = append(v.report.Findings, f)
	}
}

// records reads the ack and then the identity.
func (v *verifier) records(ctx context.Context) error {
	return patiently(ctx, func() error {
		ack, _, err := v.lake.ReadAck(ctx)
		switch {
		case err == nil:
			v.report.Ack = &ack
		case !errors.Is(err, ErrNotFound):
			return err
		}
		id, err := v.lake.ReadIdentity(ctx)
		switch {
		case err == nil:
			v.report.Identity = &id
		case errors.Is(err, ErrNotFound):
			v.find(Finding{Kind: KindIdentity, Key: identityKey,
				Text: "does not exist: compare the lake's URL with what the pipeline was set up with"})
		default:
			return err
		}
		return nil
	})
}

// objects lists the lake and reads every footer.
func (v *verifier) objects(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	work := make(chan Info)
	var workers sync.WaitGroup
	for range v.opts.Concurrency {
		workers.Go(func() {
			for info := range work {
				if err := v.object(ctx, info); err != nil {
					cancel(err)
					return
				}
			}
		})
	}
	err := v.list(ctx, func(info Info) error {
		select {
		case work <- info:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
	close(work)
	workers.Wait()
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// list calls do for every object, those in quarantine first (see expect), going
// on after the last one when the store fails in between.
func (v *verifier) list(ctx context.Context, do func(Info) error) error {
	for _, folder := range []string{quarantineFolder, ""} {
		after := ""
		err := patiently(ctx, func() error {
			for info, err := range v.lake.store.List(ctx, folder, after) {
				if err != nil {
					return err
				}
				after = info.Key
				if folder == quarantineFolder {
					v.expect(info)
				} else if strings.HasPrefix(info.Key, quarantineFolder) {
					continue
				}
				if err := do(info); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// object sorts one object in. The error is one of the store.
func (v *verifier) object(ctx context.Context, info Info) error {
	switch {
	case info.Key == identityKey || info.Key == ackKey || info.Key == pauseKey || strings.HasPrefix(info.Key, probeFolder):
		return nil
	case strings.HasPrefix(info.Key, gapsFolder):
		return v.gap(ctx, info.Key)
	case strings.HasPrefix(info.Key, divergencesFolder):
		return v.divergence(ctx, info.Key)
	}
	parts, err := ParseKey(info.Key)
	if err != nil {
		v.mu.Lock()
		defer v.mu.Unlock()
		v.find(Finding{Kind: KindForeign, Key: info.Key, Text: "is not an object that Tidemark writes: move it out of the lake"})
		return nil
	}
	var m Metadata
	err = patiently(ctx, func() (err error) {
		m, err = v.lake.readMetadata(ctx, info)
		return err
	})
	if err != nil && !damaged(err) {
		return err
	}

	v.mu.Lock()
	defer v.mu.Unlock()
	defer v.hasRead(info)
	if a := v.aside(parts); a != nil && parts.Quarantined {
		a.meta, a.err = m, err
		return nil
	} else if a != nil && err == nil {
		a.rows = &m
	}
	v.sortIn(info, parts, m, err)
	return nil
}

// hasRead tells of one more object. Callers hold mu.
func (v *verifier) hasRead(info Info) {
	v.read.Objects++
	v.read.Bytes += info.Size
	v.read.Days = len(v.days)
	if v.opts.Progress != nil {
		v.opts.Progress(v.read)
	}
}

// sortIn makes an object a link of its chain. Callers hold mu, or are alone.
func (v *verifier) sortIn(info Info, parts KeyParts, m Metadata, err error) {
	lk := link{parts: parts, follows: m.Follows, known: true, rows: m.Rows}
	of := owner{m.Pipeline, m.SystemID}
	switch {
	case errors.Is(err, ErrNotFound):
		v.find(Finding{Kind: KindUnreadable, Key: info.Key, Text: "was listed and is gone: something deletes objects from the lake"})
		lk.known, of = false, owner{}
	case err != nil:
		v.find(Finding{Kind: KindUnreadable, Key: info.Key, Text: err.Error()})
		lk.known, of = false, owner{}
	case v.foreign(info.Key, of):
		return
	case m.First != parts.First || m.Last != parts.Last:
		v.find(Finding{Kind: KindMismatch, Key: info.Key,
			Text: fmt.Sprintf("says in its footer that it goes from %s to %s", m.First, m.Last)})
		lk.known = false
	}
	of = v.lineage(of)
	v.owners[of] = append(v.owners[of], lk)
	v.count(parts, info.Size, m.Rows)
}

// gap sorts a recorded gap in.
func (v *verifier) gap(ctx context.Context, key string) error {
	var g Gap
	err := patiently(ctx, func() (err error) {
		g, err = v.lake.readGap(ctx, key)
		return err
	})
	if err != nil && !damaged(err) {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	of := owner{g.Pipeline, g.SystemID}
	if err != nil {
		v.find(Finding{Kind: KindUnreadable, Key: key, Text: err.Error()})
	} else if !v.foreign(key, of) {
		of = v.lineage(of)
		v.owners[of] = append(v.owners[of], gapLink(g))
		v.report.Gaps = append(v.report.Gaps, g)
	}
	return nil
}

// lineage is the owner of the chain that an object of the given one is in: a
// cluster's rows and those of its successors are one chain.
func (v *verifier) lineage(of owner) owner {
	if id := v.report.Identity; id != nil && of.pipeline == id.Pipeline && id.Knows(of.systemID) {
		of.systemID = id.SystemID
	}
	return of
}

// foreign reports what is not of the lake's pipeline, if the lake has one.
func (v *verifier) foreign(key string, of owner) bool {
	id := v.report.Identity
	if id == nil || id.Pipeline == of.pipeline && id.Knows(of.systemID) {
		return false
	}
	v.find(Finding{Kind: KindForeign, Key: key,
		Text: fmt.Sprintf("is of pipeline %q of the Postgres system %s", of.pipeline, of.systemID)})
	return true
}

func (v *verifier) count(p KeyParts, bytes, rows int64) {
	d := v.days[p.Day]
	if d == nil {
		d = &DayReport{Day: p.Day}
		v.days[p.Day] = d
	}
	d.Objects++
	d.Bytes += bytes
	d.Rows += rows
	if p.Quarantined {
		d.Quarantined++
		d.QuarantinedRows += rows
	}
}

// chains checks the chain of every pipeline there is.
func (v *verifier) chains() {
	if id := v.report.Identity; id != nil {
		of := owner{id.Pipeline, id.SystemID}
		// An unreadable object is of the only pipeline that can be here.
		v.owners[of] = append(v.owners[of], v.owners[owner{}]...)
	}
	delete(v.owners, owner{})
	byName := func(a, b owner) int {
		return cmp.Or(cmp.Compare(a.pipeline, b.pipeline), cmp.Compare(a.systemID, b.systemID))
	}
	for _, of := range slices.SortedFunc(maps.Keys(v.owners), byName) {
		check := chainCheck{links: v.setAside(v.owners[of]), report: v.find}
		if id := v.report.Identity; id != nil {
			head := id.Head()
			check.head = &head
		}
		check.noTail = len(v.owners) > 1
		if ack := v.report.Ack; ack != nil && !check.noTail {
			check.acked = &ack.Last
		}
		check.run()
		v.report.WithinGaps += check.within
		c := Chain{Pipeline: of.pipeline, SystemID: of.systemID, InFlight: check.inFlight, Islands: check.islands}
		for _, l := range check.links {
			if l.gap {
				c.Gaps++
				continue
			}
			c.Objects++
			c.Rows += l.rows
			if c.First.IsZero() {
				c.First = l.first()
			}
			c.Last = later(c.Last, l.last())
		}
		v.report.Chains = append(v.report.Chains, c)
	}
}

func (v *verifier) sum() {
	for _, day := range slices.Sorted(maps.Keys(v.days)) {
		d := *v.days[day]
		v.report.Days = append(v.report.Days, d)
		v.report.Objects += d.Objects
		v.report.Rows += d.Rows
		v.report.Bytes += d.Bytes
	}
}

// damaged says that an error is about an object and not about the store.
func damaged(err error) bool {
	return errors.Is(err, ErrUnreadable) || errors.Is(err, ErrNotFound) || errors.Is(err, io.ErrUnexpectedEOF)
}

// patiently calls do again after failures that pass, five times in all: a lake
// of many objects should not have to be verified from the start for one of
// them. It waits as long as the store asks, but no longer than a minute.
func patiently(ctx context.Context, do func() error) error {
	const tries, longest = 5, time.Minute
	wait := 200 * time.Millisecond
	for try := 1; ; try++ {
		err := do()
		f := Class(err)
		if try == tries || !f.Passing() {
			return err
		}
		timer := time.NewTimer(min(max(wait, f.RetryAfter), longest))
		select {
		case <-ctx.Done():
			timer.Stop()
			return err
		case <-timer.C:
		}
		wait *= 4
	}
}
