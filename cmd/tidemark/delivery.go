package main

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/tidemark-cdc/tidemark/activities"
	"github.com/tidemark-cdc/tidemark/streamer"
)

// blockedAfter is for how long delivery may stand still before the process no
// longer counts as ready. Uploads that pass within it are everyday's: a retry,
// another worker's restart, a store that asks for a pause.
const blockedAfter = time.Minute

// unready says why a streamer does not do its work, a sentence each. One that
// stands by does: whoever replaces the streamers of a pipeline one by one waits
// for each to be ready, and a standby would never be.
func unready(st streamer.Status, maxAge time.Duration, now time.Time) []string {
	var list []string
	if !st.Connected && st.Phase != streamer.Standby {
		list = append(list, "the streamer is not connected to Postgres: "+st.State)
	}
	if st.Paused != nil {
		list = append(list, fmt.Sprintf("the pipeline is %s (tidemark resume lets it go on)", st.Paused))
	}
	return append(list, blocked(st, maxAge, now)...)
}

// blocked says what keeps a streamer's rows out of the lake, or its ack from
// moving, for longer than blockedAfter; a sentence each. maxAge is
// segment.max_age, for which changes wait anyway.
func blocked(st streamer.Status, maxAge time.Duration, now time.Time) []string {
	var list []string
	if len(st.InFlight) > 0 {
		if f := st.InFlight[0]; now.Sub(f.Since) > blockedAfter {
			list = append(list, fmt.Sprintf("the ack stands still: segment %s (LSN %s to %s) is under way since %s and not in the lake; its workflow %s in Temporal shows why",
				f.Ref.First, f.Ref.First.LSN, f.Ref.Last.LSN, clock(f.Since), f.Ref.WorkflowID()))
		}
	} else if first := st.Ring.OldestWaiting; first != 0 && now.Sub(first.UTC()) > maxAge+blockedAfter {
		list = append(list, fmt.Sprintf("the changes received since %s are not being uploaded; the log says what is waited for", clock(first.UTC())))
	}
	if r := st.Recording; r != nil && now.Sub(r.Since) > blockedAfter {
		why := "it does not answer"
		if r.Error != "" {
			why = r.Error
		}
		list = append(list, fmt.Sprintf("the ack stands still: the lake has not taken the record of it since %s: %s", clock(r.Since), why))
	}
	return list
}

func clock(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// failedUploads remembers since when the attempts of this process' worker have
// failed without one that succeeded. Safe for concurrent use.
type failedUploads struct {
	mu          sync.Mutex
	first, last time.Time
	class       string
}

// forgetAfter is how long after the last failure it counts: no pause before an
// attempt is longer, so that by then other workers have the segment.
const forgetAfter = 10 * time.Minute

// ended notes how an attempt ended; class is empty if it succeeded.
func (f *failedUploads) ended(class string, now time.Time) {
	// Neither tells anything of what this worker can do.
	if slices.Contains([]string{string(activities.AttemptStopped), string(activities.RowsNotYet)}, class) {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if class == "" {
		f.first = time.Time{}
		return
	}
	if f.first.IsZero() || now.Sub(f.last) > forgetAfter {
		f.first = now
	}
	f.last, f.class = now, class
}

// reasons says for how long nothing has succeeded, if that is too long.
func (f *failedUploads) reasons(now time.Time) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.first.IsZero() || f.last.Sub(f.first) < blockedAfter || now.Sub(f.last) > forgetAfter {
		return nil
	}
	return []string{fmt.Sprintf("every upload of this worker has failed since %s, the last at %s with %s: the log has the whole error, and what to do",
		clock(f.first), clock(f.last), f.class)}
}

// watched is an Observer that tells failedUploads too.
type watched struct {
	activities.Observer
	uploads *failedUploads
}

// Attempted implements activities.Observer.
func (w watched) Attempted(action, class string) {
	w.uploads.ended(class, time.Now())
	w.Observer.Attempted(action, class)
}
