package replication

import (
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	minVersion = 150000
	// walLost is a slot's wal_status when WAL that it needs was removed.
	walLost = "lost"
	// plugin is the only one whose messages are understood.
	plugin = "pgoutput"
	// shortTimeout is a wal_sender_timeout below which a hiccup of the network
	// ends the connection.
	shortTimeout = 10 * time.Second
	// smallKeep is a max_slot_wal_keep_size below which an outage of an hour can
	// cost the slot.
	smallKeep = 1 << 30
	// named is how many tables a sentence names.
	named = 10
)

// Problem is something that keeps a pipeline from running, or that will bite it
// later.
type Problem struct {
	// What is wrong, and Do what to do about it: one sentence each.
	What string `json:"what"`
	Do   string `json:"do"`
	// Setup says that tidemark setup does it.
	Setup bool `json:"setup,omitempty"`
	// Settle says that tidemark setup --recreate-slot does it.
	Settle bool `json:"settle,omitempty"`
	// Harm says that it is the application that suffers: its own statements
	// fail for as long as the publication is there.
	Harm bool `json:"harm,omitempty"`
}

// String is both sentences.
func (p Problem) String() string { return p.What + ": " + p.Do }

// unsupportedVersion is the sentence for a server older than minVersion.
func unsupportedVersion(num int) string {
	return fmt.Sprintf("the server is PostgreSQL %d, and 15 or later is needed: upgrade it", num/10000)
}

// unsuitable says why a stream cannot be read from a slot; empty if it can.
func unsuitable(name, kind, slotPlugin, slotDatabase, database string, twoPhase bool) string {
	switch {
	case kind != "logical":
		return fmt.Sprintf("replication slot %q is a physical one: configure another slot name", name)
	case slotPlugin != plugin:
		return fmt.Sprintf("replication slot %q is one of the plugin %s, and %s is needed: configure another slot name", name, slotPlugin, plugin)
	case slotDatabase != database:
		return fmt.Sprintf("replication slot %q belongs to the database %s, and this one is %s: configure another slot name or the other database", name, slotDatabase, database)
	case twoPhase:
		return fmt.Sprintf("replication slot %q was made with two_phase, which sends prepared transactions before they are committed: make a slot without it", name)
	}
	return ""
}

// Check says everything that keeps the pipeline from running, all at once. It
// is pure.
func Check(f Facts) []Problem {
	var ps []Problem
	add := func(bad bool, what, do string) {
		if bad {
			ps = append(ps, Problem{What: what, Do: do})
		}
	}
	add(f.ServerVersion < minVersion, fmt.Sprintf("the server is PostgreSQL %d, older than 15", f.ServerVersion/10000), "upgrade it")
	add(f.InRecovery, "the server is in recovery (a standby)", "connect to the primary, or promote it")
	add(f.WALLevel != "logical", fmt.Sprintf("wal_level is %s", f.WALLevel),
		"ALTER SYSTEM SET wal_level = 'logical', and restart the server (on RDS: rds.logical_replication = 1 in the parameter group)")
	add(!f.MayReplicate, fmt.Sprintf("the role %s may not replicate", f.Role),
		fmt.Sprintf("ALTER ROLE %s REPLICATION (on RDS: GRANT rds_replication TO %s)", f.quotedRole(), f.quotedRole()))
	add(f.MaxWALSenders == 0 || f.WALSenders >= f.MaxWALSenders && !f.slotActive(),
		fmt.Sprintf("all %d walsenders are in use (max_wal_senders)", f.MaxWALSenders), fmt.Sprintf("ALTER SYSTEM SET max_wal_senders = %d, and restart the server, or end another replication connection", f.MaxWALSenders+more))
	add(f.Unpublishable != "", f.Unpublishable,
		"correct postgres.tables; the role needs CREATE on the database and has to own the tables (for all tables: be superuser), or have an administrator make the publication")
	ps = append(ps, checkSlot(f)...)
	for _, p := range f.Publications {
		if !p.Exists {
			ps = append(ps, Problem{Setup: true, What: fmt.Sprintf("the publication %q does not exist", p.Name),
				Do: "run tidemark setup, or CREATE PUBLICATION"})
		}
	}
	return ps
}

func checkSlot(f Facts) []Problem {
	s := f.Slot
	if s == nil {
		ps := []Problem{{Setup: true, What: fmt.Sprintf("the replication slot %q does not exist", f.SlotName), Do: "run tidemark setup"}}
		if f.Slots >= f.MaxSlots {
			ps = append(ps, Problem{What: fmt.Sprintf("all %d replication slots are in use (max_replication_slots)", f.MaxSlots),
				Do: fmt.Sprintf("ALTER SYSTEM SET max_replication_slots = %d, and restart the server, or drop a slot that nobody reads: SELECT pg_drop_replication_slot('...')", f.MaxSlots+more)})
		}
		return ps
	}
	if text := unsuitable(s.Name, s.Type, s.Plugin, s.Database, f.Database, s.TwoPhase); text != "" {
		what, do, _ := strings.Cut(text, ": ")
		return []Problem{{What: what, Do: do}}
	}
	switch {
	case s.Lost():
		why := s.InvalidationReason
		if why == "" {
			why = "max_slot_wal_keep_size was exceeded"
		}
		return []Problem{{Settle: true, What: fmt.Sprintf("the replication slot %q was invalidated (%s): rows committed since %s cannot be read from it", s.Name, why, s.ConfirmedFlush),
			Do: "tidemark setup --recreate-slot makes a new one and records what is missing as a gap; copy the missing rows another way, and raise max_slot_wal_keep_size"}}
	case s.Temporary && s.Synced:
		return []Problem{{Settle: true, What: fmt.Sprintf("the replication slot %q is a copy of another server's that was not yet completely synchronized", s.Name),
			Do: "let the synchronization finish before promoting a standby; this slot cannot be continued: tidemark setup --recreate-slot makes a new one and records what is missing as a gap"}}
	case s.Temporary:
		return []Problem{{What: fmt.Sprintf("the replication slot %q is temporary and vanishes with the connection that made it", s.Name),
			Do: "configure another slot name"}}
	}
	return nil
}

// more is by how much a limit that is reached is raised.
const more = 5

// set is the statements that change a setting which a reload brings into force.
func set(name, value string) string {
	return fmt.Sprintf("ALTER SYSTEM SET %s = '%s'; SELECT pg_reload_conf();", name, value)
}

// Warnings says what works now and will bite later. It is pure.
func Warnings(f Facts) []Problem {
	var ps []Problem
	add := func(bad bool, what, do string) {
		if bad {
			ps = append(ps, Problem{What: what, Do: do})
		}
	}
	add(f.WALSenderTimeout > 0 && f.WALSenderTimeout < shortTimeout, fmt.Sprintf("wal_sender_timeout is %s", f.WALSenderTimeout),
		set("wal_sender_timeout", "60s")+" Else a hiccup of the network ends the connection")
	add(f.WALSenderTimeout == 0, "wal_sender_timeout is off", set("wal_sender_timeout", "60s")+" Else the server does not notice a dead connection and keeps the slot in use")
	add(f.MaxSlotWALKeep < 0, "max_slot_wal_keep_size is unlimited",
		set("max_slot_wal_keep_size", "100GB")+" Choose what the disk can spare: without a limit the slot keeps WAL for as long as rows cannot be uploaded; one that is exceeded costs the slot")
	add(f.MaxSlotWALKeep >= 0 && f.MaxSlotWALKeep < smallKeep, fmt.Sprintf("max_slot_wal_keep_size is only %d MB", f.MaxSlotWALKeep>>20),
		set("max_slot_wal_keep_size", "100GB")+" Choose what the server writes in the longest outage that the pipeline has to bear: beyond it the slot is invalidated and rows are lost to the lake")
	add(f.IdleSlotTimeout > 0, fmt.Sprintf("idle_replication_slot_timeout is %s", f.IdleSlotTimeout),
		set("idle_replication_slot_timeout", "0")+" Else a pipeline that is down for longer loses its slot")
	ps = append(ps, warnSlot(f)...)
	for _, p := range f.Publications {
		add(p.Exists && p.Tables == 0 && !p.AllTables, fmt.Sprintf("the publication %q has no tables", p.Name), "ALTER PUBLICATION "+pgx.Identifier{p.Name}.Sanitize()+" ADD TABLE ...;")
		add(p.Exists && !(p.Inserts && p.Updates && p.Deletes && p.Truncates), fmt.Sprintf("the publication %q leaves out %s", p.Name, p.leavesOut()),
			"ALTER PUBLICATION "+pgx.Identifier{p.Name}.Sanitize()+" SET (publish = 'insert, update, delete, truncate'); if the lake is to have them")
	}
	harm := func(tables []string, what, do string) {
		if len(tables) > 0 {
			ps = append(ps, Problem{Harm: true, What: what + names(tables), Do: do})
		}
	}
	harm(f.WithoutIdentity, "Postgres refuses UPDATE and DELETE on published tables without a replica identity: ",
		"add a primary key, or "+fullIdentity(f.WithoutIdentity))
	harm(f.PartOfIdentity, "Postgres refuses UPDATE and DELETE on published tables whose replica identity has columns that are not published: ",
		"publish these columns too (for generated ones: publish_generated_columns), or set another REPLICA IDENTITY")
	add(len(f.MixedIdentity) > 0, "partitions are published as their root, and the REPLICA IDENTITY of one of the two is FULL and not that of the other: "+names(f.MixedIdentity),
		"set the same on the root and each partition, or the old images of deletes have nulls that are none")
	return ps
}

// fullIdentity is the statement for each table, which is quoted already.
func fullIdentity(tables []string) string {
	var statements []string
	for _, t := range tables[:min(len(tables), named)] {
		statements = append(statements, "ALTER TABLE "+t+" REPLICA IDENTITY FULL;")
	}
	return strings.Join(statements, " ")
}

// names lists tables, not all of many.
func names(tables []string) string {
	n := len(tables)
	text := strings.Join(tables[:min(n, named)], ", ")
	if n > named {
		text += fmt.Sprintf(" and %d more", n-named)
	}
	return text
}

func warnSlot(f Facts) []Problem {
	s := f.Slot
	if s == nil {
		return nil
	}
	var ps []Problem
	if s.WALStatus == "unreserved" {
		ps = append(ps, Problem{What: fmt.Sprintf("the replication slot %q is about to be invalidated: WAL that it needs is removed at the next checkpoint", s.Name),
			Do: set("max_slot_wal_keep_size", "-1") + " Now: it is without a limit then"})
	}
	if s.Failover && f.SynchronizedStandbySlots == "" {
		ps = append(ps, Problem{What: fmt.Sprintf("the replication slot %q survives a failover, but synchronized_standby_slots is empty", s.Name),
			Do: set("synchronized_standby_slots", "...") + " With the name of the standby's physical slot: else rows can reach the lake that a promoted standby does not have"})
	}
	if f.ServerVersion >= 170000 && !s.Failover && f.Standbys > 0 {
		ps = append(ps, Problem{What: fmt.Sprintf("the server has standbys, and the replication slot %q does not survive a failover", s.Name),
			Do: fmt.Sprintf("psql 'replication=database ...' -c 'ALTER_REPLICATION_SLOT %s (FAILOVER true)' while the pipeline is stopped, and sync_replication_slots = on at the standby", s.Name)})
	}
	return ps
}
