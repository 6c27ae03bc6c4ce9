package streamer

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/tidemark-cdc/tidemark/streamer/replication"
)

// Drift is a wanted table that is no longer what it was when streaming began.
// The stream itself says nothing of it: its rows just stay away.
type Drift struct {
	// Table is schema-qualified and quoted as Postgres prints it.
	Table string    `json:"table"`
	Kind  DriftKind `json:"kind"`
	// Published says whether its rows come nevertheless: a table that was made
	// anew may be published again.
	Published bool `json:"published"`
	// Since is when it was found.
	Since time.Time `json:"since"`
	// wanted is the name that it is wanted by.
	wanted string
}

// DriftKind is what has become of a table.
type DriftKind string

// The kinds.
const (
	// Unpublished: it exists, and no publication has it.
	Unpublished DriftKind = "unpublished"
	// Dropped: there is no table of this name.
	Dropped DriftKind = "dropped"
	// Recreated: there is another table of the same name.
	Recreated DriftKind = "recreated"
)

// DriftKinds lists them all.
func DriftKinds() []DriftKind { return []DriftKind{Unpublished, Dropped, Recreated} }

// String says it in words.
func (d Drift) String() string {
	switch {
	case d.Kind == Unpublished:
		return d.Table + " is not published"
	case d.Kind == Dropped:
		return d.Table + " does not exist"
	case d.Published:
		return d.Table + " was dropped and made anew, and is published"
	}
	return d.Table + " was dropped and made anew, and is not published"
}

// wantedTable is a table that is to be published. Its OID is zero until it was
// seen.
type wantedTable struct {
	name string
	oid  uint32
}

// driftOf compares the tables that are wanted with those that there are now. A
// table that was renamed is the same one.
func driftOf(wanted []wantedTable, now []replication.TableState) []Drift {
	names, oids := make(map[string]replication.TableState, len(now)), make(map[uint32]replication.TableState, len(now))
	for _, s := range now {
		if s.OID != 0 {
			names[s.Name], oids[s.OID] = s, s
		}
	}
	var drift []Drift
	for _, w := range wanted {
		same, is := oids[w.oid]
		other, named := names[w.name]
		switch {
		case is && same.Published:
		case is:
			drift = append(drift, Drift{Table: same.Name, wanted: w.name, Kind: Unpublished})
		case !named:
			drift = append(drift, Drift{Table: w.name, wanted: w.name, Kind: Dropped})
		case w.oid != 0:
			drift = append(drift, Drift{Table: w.name, wanted: w.name, Kind: Recreated, Published: other.Published})
		case !other.Published:
			drift = append(drift, Drift{Table: w.name, wanted: w.name, Kind: Unpublished})
		}
	}
	return drift
}

// driftGuard holds what was wanted when the process began to stream, and how the
// tables stood at the last look.
type driftGuard struct {
	mu     sync.Mutex
	wanted []wantedTable // nil before the first look
	drift  []Drift
}

// asks gives the names of the wanted tables, and the OIDs of those that were
// seen; nothing before the first look.
func (g *driftGuard) asks() (names []string, oids []uint32) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, w := range g.wanted {
		names = append(names, w.name)
		if w.oid != 0 {
			oids = append(oids, w.oid)
		}
	}
	return names, oids
}

// list is how the tables stood at the last look; never nil.
func (g *driftGuard) list() []Drift {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]Drift{}, g.drift...)
}

// take takes in a look, and gives what is new and what is over since the one
// before. named says that the tables which were asked for are wanted, and not
// whatever is published at the first look.
func (g *driftGuard) take(now []replication.TableState, named bool, at time.Time) (begun, over []Drift) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.wanted == nil {
		g.wanted = []wantedTable{}
		for _, s := range now {
			if named && s.Asked || !named && s.Published {
				g.wanted = append(g.wanted, wantedTable{name: s.Name, oid: s.OID})
			}
		}
	}
	drift := driftOf(g.wanted, now)
	// One that is seen for the first time has an OID from now on.
	for _, s := range now {
		for i := range g.wanted {
			if w := &g.wanted[i]; w.oid == 0 && w.name == s.Name {
				w.oid = s.OID
			}
		}
	}
	for i := range drift {
		d := &drift[i]
		d.Since = at
		if j := slices.IndexFunc(g.drift, d.same); j >= 0 {
			d.Since = g.drift[j].Since
		} else {
			begun = append(begun, *d)
		}
	}
	for _, d := range g.drift {
		if !slices.ContainsFunc(drift, func(o Drift) bool { return o.wanted == d.wanted }) {
			over = append(over, d)
		}
	}
	g.drift = drift
	return begun, over
}

func (d Drift) same(o Drift) bool {
	return d.wanted == o.wanted && d.Table == o.Table && d.Kind == o.Kind && d.Published == o.Published
}

// watchTables compares the wanted tables with the publications, at once and
// then every Config.driftEvery, while there is a connection.
func (l *life) watchTables(ctx context.Context) error {
	tick := time.NewTicker(l.cfg.driftEvery)
	defer tick.Stop()
	for {
		if l.current() != nil {
			l.lookAtTables(ctx)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// tablesBound bounds one look at the tables.
const tablesBound = 30 * time.Second

func (l *life) lookAtTables(ctx context.Context) {
	looking, cancel := context.WithTimeout(ctx, tablesBound)
	defer cancel()
	names, oids := l.drift.asks()
	if names == nil {
		names = l.cfg.Tables
	}
	now, err := l.admin.Tables(looking, names, oids)
	if err != nil {
		if ctx.Err() == nil {
			l.log.Warn("the published tables could not be looked at; it is tried again", "error", err, "again_in", l.cfg.driftEvery)
		}
		return
	}
	begun, over := l.drift.take(now, len(l.cfg.Tables) > 0, time.Now())
	for _, d := range begun {
		level, do := slog.LevelWarn, "its rows do not come: see \"tables that leave\" in the operations guide"
		if d.Published {
			level, do = slog.LevelInfo, "its rows come as those of a new table"
		}
		l.log.Log(ctx, level, "a wanted table has changed: "+d.String()+"; "+do, "table", d.Table, "kind", d.Kind, "published", d.Published)
	}
	for _, d := range over {
		l.log.Info("a wanted table is published again", "table", d.Table)
	}
}
