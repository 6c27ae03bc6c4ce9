package lake

import (
	"github.com/tidemark-cdc/tidemark/internal/change"
)

// Kind is the sort of a Finding.
type Kind string

// What Verify can find.
const (
	// KindIdentity: the lake does not say whose it is.
	KindIdentity Kind = "identity"
	// KindHead: the chain does not begin where the pipeline began.
	KindHead Kind = "head"
	// KindGap: changes that were acknowledged are in no object.
	KindGap Kind = "gap"
	// KindTail: the chain does not reach what was acknowledged, or nothing
	// says what was.
	KindTail Kind = "tail"
	// KindOverlap: two objects hold the same changes, or one stands where
	// another says that nothing is.
	KindOverlap Kind = "overlap"
	// KindDuplicate: two objects have the same boundary.
	KindDuplicate Kind = "duplicate"
	// KindForeign: an object that is not of this pipeline or not Tidemark's.
	KindForeign Kind = "foreign"
	// KindUnreadable: an object whose footer cannot be read.
	KindUnreadable Kind = "unreadable"
	// KindMismatch: an object whose key and footer disagree.
	KindMismatch Kind = "mismatch"
)

// Finding is one thing that is wrong with a lake.
type Finding struct {
	Kind Kind `json:"kind"`
	// Key is the object's. Of a gap: the object that comes after it.
	Key string `json:"key,omitempty"`
	// Other is the other object of an overlap or duplicate.
	Other string `json:"other,omitempty"`
	// After and Through say which changes are missing: those after the first
	// position, up to and including the second. Only of a head, gap or tail.
	After   change.Position `json:"after,omitzero"`
	Through change.Position `json:"through,omitzero"`
	// Text is a sentence for people.
	Text string `json:"text"`
}

// Report is what Verify has seen.
type Report struct {
	Lake string `json:"lake"`
	// Identity and Ack are the lake's own records; nil if they do not exist.
	Identity *Identity  `json:"identity"`
	Ack      *AckRecord `json:"ack"`
	// Chains has one entry per pipeline and Postgres cluster: one and no more,
	// unless the lake does not say whose it is.
	Chains []Chain `json:"chains"`
	// Days are sorted. Objects, Rows and Bytes are their sums.
	Days    []DayReport `json:"days"`
	Objects int64       `json:"objects"`
	Rows    int64       `json:"rows"`
	Bytes   int64       `json:"bytes"`
	// Replayed counts objects in quarantine beside which the object with their
	// rows stands: a replay was broken off before it removed them. They are in
	// none of the other numbers.
	Replayed int64 `json:"replayed"`
	// Gaps are the recorded gaps, and WithinGaps counts the objects that lie in
	// one: they came into the lake after it was recorded.
	Gaps       []Gap `json:"gaps"`
	WithinGaps int64 `json:"within_gaps"`
	// Divergences are the recorded ones, with what the lake has of them now.
	Divergences []DivergenceReport `json:"divergences"`
	// Findings has at most Options.MaxFindings entries; Counts counts them all.
	Findings []Finding      `json:"findings"`
	Counts   map[Kind]int64 `json:"counts"`
}

// Chain is the segments of one pipeline.
type Chain struct {
	Pipeline string `json:"pipeline"`
	SystemID string `json:"system_id"`
	// Objects counts segments and quarantined ones; Rows is what they hold.
	Objects int64 `json:"objects"`
	Rows    int64 `json:"rows"`
	// Gaps counts recorded gaps.
	Gaps int64 `json:"gaps"`
	// First and Last are the positions of the first and last change.
	First change.Position `json:"first,omitzero"`
	Last  change.Position `json:"last,omitzero"`
	// InFlight counts the objects that stand behind the acknowledged position.
	// Since segments finish in any order they may form islands with nothing
	// before them yet: Islands counts those. Neither is wrong.
	InFlight int64 `json:"in_flight"`
	Islands  int64 `json:"islands"`
}

// DayReport is one UTC commit day.
type DayReport struct {
	Day     change.Day `json:"day"`
	Objects int64      `json:"objects"`
	Rows    int64      `json:"rows"`
	Bytes   int64      `json:"bytes"`
	// Quarantined and QuarantinedRows are the part of Objects and Rows that
	// lies in quarantine.
	Quarantined     int64 `json:"quarantined"`
	QuarantinedRows int64 `json:"quarantined_rows"`
}

// DivergenceReport is a recorded divergence and what the lake holds of it.
type DivergenceReport struct {
	Divergence
	// LostObjects counts the objects of which the database has lost every row,
	// LostRows their rows. They are in the sums of the days and in no chain.
	LostObjects int64 `json:"lost_objects"`
	LostRows    int64 `json:"lost_rows"`
	// Straddling names objects that begin before the switchpoint and hold lost
	// rows at their end.
	Straddling []string `json:"straddling,omitempty"`
}

// Missing counts the recorded gaps in which changes may be missing.
func (r Report) Missing() int64 {
	n := int64(0)
	for _, g := range r.Gaps {
		if !g.Empty {
			n++
		}
	}
	return n
}

// OK says that nothing is wrong: what is recorded, gaps and divergences, a
// person has settled.
func (r Report) OK() bool { return len(r.Counts) == 0 }
