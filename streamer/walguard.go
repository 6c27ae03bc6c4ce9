package streamer

import (
	"slices"
	"time"

	"github.com/tidemark-cdc/tidemark/internal/change"
	"github.com/tidemark-cdc/tidemark/streamer/replication"
)

// WALLimits say when the WAL that Postgres keeps for the slot is worth a
// warning, and when it is an alarm. Zero turns a limit off.
type WALLimits struct {
	// WarnLeft and AlarmLeft are times left, at the present rate, until the slot
	// can be lost. They hold on a server with max_slot_wal_keep_size, once a
	// tenth of it is in use.
	WarnLeft, AlarmLeft time.Duration
	// WarnRetained and AlarmRetained are bytes of WAL. They hold on a server
	// without max_slot_wal_keep_size, where the disk is the limit.
	WarnRetained, AlarmRetained int64
}

// What of max_slot_wal_keep_size may be in use before it counts, whatever the
// rate: a single large transaction can take the rest.
const (
	warnShare   = 0.5
	alarmShare  = 0.8
	noticeShare = 0.1
)

// WALLevel is how much the WAL that is kept for the slot has to worry a person.
type WALLevel string

// The levels, from the lowest to the highest.
const (
	WALFine  WALLevel = "fine"
	WALWarn  WALLevel = "warn"
	WALAlarm WALLevel = "alarm"
)

// Number is 0 for fine, 1 for warn and 2 for alarm.
func (l WALLevel) Number() int {
	return max(0, slices.Index([]WALLevel{WALFine, WALWarn, WALAlarm}, l))
}

// How the rate is measured, and how often is said what does not change.
const (
	// rateWindow is how far back the rate looks, and leastWindow how much of that
	// there has to be.
	rateWindow  = 10 * time.Minute
	leastWindow = time.Minute
	// settleFor is how long a lower level has to last until it is believed.
	settleFor = 5 * time.Minute
	// remindWarn and remindAlarm are how long a level stands until it is logged
	// again.
	remindWarn  = time.Hour
	remindAlarm = 15 * time.Minute
)

// walSample is what one look has found.
type walSample struct {
	at       time.Time
	retained int64
}

// walGuard estimates how fast the kept WAL grows and decides on the level. It
// holds no clock: every moment enters as an argument. Not safe for concurrent
// use.
type walGuard struct {
	limits WALLimits
	// samples are those of the last rateWindow, in order.
	samples []walSample
	restart change.LSN
	level   WALLevel
	since   time.Time
	// lower is since when each look has found a lower level; zero if the last one
	// has not.
	lower time.Time
	// said is when the level was logged last.
	said time.Time
}

// take takes in a look at the slot. say says that it is to be logged: the level
// has changed, or stands for long.
func (g *walGuard) take(now time.Time, slot replication.SlotInfo) (w WAL, say bool) {
	if slot.RestartLSN < g.restart {
		// Another server, or another slot: what was seen of the one before says
		// nothing of it.
		g.samples = nil
	}
	g.restart = slot.RestartLSN
	g.samples = append(g.samples, walSample{now, slot.RetainedBytes})
	g.samples = slices.DeleteFunc(g.samples, func(s walSample) bool { return now.Sub(s.at) > rateWindow })

	w = WAL{RetainedBytes: slot.RetainedBytes, SafeBytes: slot.SafeWALSize, Lost: slot.Lost()}
	if rate, ok := g.rate(); ok {
		w.BytesPerSecond = &rate
		if w.SafeBytes != nil && rate > 0 {
			hours := float64(max(*w.SafeBytes, 0)) / rate / time.Hour.Seconds()
			w.HoursLeft = &hours
		}
	}
	say = g.settleOn(g.limits.of(w), now)
	w.Level, w.Since = g.level, g.since
	return w, say
}

// rate is how many bytes a second the kept WAL grows by: from the lowest of the
// older half of the window to the lowest of the newer half. The lowest, since
// restart_lsn moves in steps, and what is kept goes up and down between them
// though nothing is held.
func (g *walGuard) rate() (bytesPerSecond float64, known bool) {
	first, last := g.samples[0], g.samples[len(g.samples)-1]
	span := last.at.Sub(first.at)
	if span < leastWindow {
		return 0, false
	}
	older, newer := int64(-1), last.retained
	for _, s := range g.samples {
		switch {
		case s.at.Sub(first.at) >= span/2:
			newer = min(newer, s.retained)
		case older < 0 || s.retained < older:
			older = s.retained
		}
	}
	return float64(newer-older) / (span / 2).Seconds(), true
}

// of is the level of w by itself.
func (l WALLimits) of(w WAL) WALLevel {
	if w.Lost {
		return WALAlarm
	}
	if w.SafeBytes == nil {
		reached := func(limit int64) bool { return limit > 0 && w.RetainedBytes >= limit }
		return highest(reached(l.AlarmRetained), reached(l.WarnRetained))
	}
	used := w.used()
	soon := func(limit time.Duration) bool {
		return used >= noticeShare && w.HoursLeft != nil && *w.HoursLeft <= limit.Hours()
	}
	return highest(used >= alarmShare || soon(l.AlarmLeft), used >= warnShare || soon(l.WarnLeft))
}

func highest(alarm, warn bool) WALLevel {
	switch {
	case alarm:
		return WALAlarm
	case warn:
		return WALWarn
	}
	return WALFine
}

// settleOn goes up to a level at once and down to it only when it has lasted.
func (g *walGuard) settleOn(found WALLevel, now time.Time) (say bool) {
	if g.level == "" {
		g.level, g.since = WALFine, now
	}
	switch up := found.Number() - g.level.Number(); {
	case up < 0 && g.lower.IsZero():
		g.lower = now
	case up < 0 && now.Sub(g.lower) < settleFor:
	case up != 0:
		g.level, g.since, g.lower, g.said = found, now, time.Time{}, now
		return true
	default:
		g.lower = time.Time{}
	}
	remind := map[WALLevel]time.Duration{WALWarn: remindWarn, WALAlarm: remindAlarm}[g.level]
	if remind == 0 || now.Sub(g.said) < remind {
		return false
	}
	g.said = now
	return true
}

// WALOf is what a single look at a slot says. There is no rate in it.
func WALOf(limits WALLimits, slot replication.SlotInfo, now time.Time) WAL {
	g := walGuard{limits: limits}
	w, _ := g.take(now, slot)
	return w
}
