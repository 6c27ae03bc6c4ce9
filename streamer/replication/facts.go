package replication

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tidemark-cdc/tidemark/internal/change"
)

// Facts are what Inspect reads of a server, for one slot and its publications.
type Facts struct {
	ServerVersion int    `json:"server_version"`
	InRecovery    bool   `json:"in_recovery"`
	SystemID      string `json:"system_id"`
	// Timeline is the one of the latest checkpoint; zero where the role may not
	// know.
	Timeline change.Timeline `json:"timeline"`
	// WALEnd is pg_current_wal_flush_lsn(); zero in recovery.
	WALEnd   change.LSN `json:"wal_end"`
	Database string     `json:"database"`
	Role     string     `json:"role"`
	// MayReplicate: the role is superuser, has REPLICATION, or a cloud
	// provider's role that stands for it.
	MayReplicate bool   `json:"may_replicate"`
	WALLevel     string `json:"wal_level"`
	// Slots and WALSenders are in use, of MaxSlots and MaxWALSenders; Standbys
	// are the walsenders that stream to a standby.
	Slots         int `json:"slots"`
	MaxSlots      int `json:"max_slots"`
	WALSenders    int `json:"wal_senders"`
	MaxWALSenders int `json:"max_wal_senders"`
	Standbys      int `json:"standbys"`
	// WALSenderTimeout is the one in force for the role; zero is none.
	WALSenderTimeout time.Duration `json:"wal_sender_timeout"`
	// MaxSlotWALKeep is max_slot_wal_keep_size in bytes; negative is unlimited.
	MaxSlotWALKeep int64 `json:"max_slot_wal_keep"`
	// IdleSlotTimeout is idle_replication_slot_timeout (18); zero is none.
	IdleSlotTimeout time.Duration `json:"idle_slot_timeout"`
	// SynchronizedStandbySlots is the setting of that name (17).
	SynchronizedStandbySlots string `json:"synchronized_standby_slots"`
	SlotName                 string `json:"slot_name"`
	// Slot is nil if there is none of this name.
	Slot         *SlotInfo         `json:"slot"`
	Publications []PublicationInfo `json:"publications"`
	// Unpublishable says why the publication cannot be made, if InspectAhead has
	// tried.
	Unpublishable string `json:"unpublishable,omitempty"`
	// WithoutIdentity are the published tables on which Postgres refuses UPDATE
	// and DELETE, schema-qualified and quoted, at most 1,000.
	WithoutIdentity []string `json:"without_identity,omitempty"`
	// PartOfIdentity are those, written likewise, whose replica identity has
	// columns that a publication leaves out, by a column list or (18) because
	// they are generated: Postgres refuses the same on them.
	PartOfIdentity []string `json:"part_of_identity,omitempty"`
	// MixedIdentity are the partitions, written likewise, that are published as
	// a root whose replica identity is FULL while theirs is not, or the other
	// way round.
	MixedIdentity []string `json:"mixed_identity,omitempty"`
}

// PublicationInfo is one of the configured publications.
type PublicationInfo struct {
	Name      string `json:"name"`
	Exists    bool   `json:"exists"`
	AllTables bool   `json:"all_tables"`
	// Tables that it has now; partitions count one by one unless ViaRoot.
	Tables    int  `json:"tables"`
	ViaRoot   bool `json:"via_root"`
	Inserts   bool `json:"inserts"`
	Updates   bool `json:"updates"`
	Deletes   bool `json:"deletes"`
	Truncates bool `json:"truncates"`
}

func (p PublicationInfo) leavesOut() string {
	var out []string
	for _, o := range []struct {
		published bool
		name      string
	}{{p.Inserts, "insert"}, {p.Updates, "update"}, {p.Deletes, "delete"}, {p.Truncates, "truncate"}} {
		if !o.published {
			out = append(out, o.name)
		}
	}
	return strings.Join(out, ", ")
}

func (f Facts) quotedRole() string { return pgx.Identifier{f.Role}.Sanitize() }

func (f Facts) slotActive() bool { return f.Slot != nil && f.Slot.Active }

// factsQuery gives one JSON object, whose numbers are in the units of
// pg_settings: milliseconds, megabytes, seconds. Settings that a version does
// not have are null.
const factsQuery = `
WITH setting AS (SELECT name, setting FROM pg_catalog.pg_settings)
SELECT pg_catalog.json_build_object(
	'server_version', current_setting('server_version_num')::int,
	'in_recovery', pg_is_in_recovery(),
	'wal_end', CASE WHEN NOT pg_is_in_recovery() THEN pg_current_wal_flush_lsn() END,
	'database', current_database(),
	'role', current_user,
	'may_replicate', (SELECT rolsuper OR rolreplication FROM pg_catalog.pg_roles WHERE rolname = current_user)
		OR EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = 'rds_replication' AND pg_has_role(current_user, oid, 'member')),
	'wal_level', current_setting('wal_level'),
	'slots', (SELECT count(*) FROM pg_catalog.pg_replication_slots),
	'max_slots', current_setting('max_replication_slots')::int,
	'wal_senders', (SELECT count(*) FROM pg_catalog.pg_stat_get_wal_senders()),
	'max_wal_senders', current_setting('max_wal_senders')::int,
	'standbys', (SELECT count(*) FROM pg_catalog.pg_replication_slots WHERE slot_type = 'physical' AND active),
	'timeout', (SELECT setting::bigint FROM setting WHERE name = 'wal_sender_timeout'),
	'keep', (SELECT setting::bigint FROM setting WHERE name = 'max_slot_wal_keep_size'),
	'idle', (SELECT setting::bigint FROM setting WHERE name = 'idle_replication_slot_timeout'),
	'synchronized_standby_slots', (SELECT setting FROM setting WHERE name = 'synchronized_standby_slots'))`

const publicationsQuery = `
SELECT coalesce(pg_catalog.json_agg(pg_catalog.json_build_object(
	'name', w.name, 'exists', p.oid IS NOT NULL, 'all_tables', p.puballtables, 'via_root', p.pubviaroot,
	'inserts', p.pubinsert, 'updates', p.pubupdate, 'deletes', p.pubdelete, 'truncates', p.pubtruncate,
	'tables', (SELECT count(*) FROM pg_catalog.pg_publication_tables t WHERE t.pubname = p.pubname)) ORDER BY w.ord), '[]')
FROM unnest($1::text[]) WITH ORDINALITY AS w(name, ord)
LEFT JOIN pg_catalog.pg_publication p ON p.pubname = w.name`

// identityQuery reads the tables of the publications by what is wrong with
// their replica identities: without and part (following CheckCmdReplicaIdentity
// in src/backend/executor/execReplication.c, which looks at the leaf that a row
// lies in, also where its root is published) and mixed. Before 18 generated
// columns do not matter there.
const identityQuery = `
WITH published AS (
	SELECT c.oid, c.relreplident, t.attnames
	FROM pg_catalog.pg_publication_tables t
	JOIN pg_catalog.pg_publication p ON p.pubname = t.pubname AND (p.pubupdate OR p.pubdelete)
	JOIN pg_catalog.pg_namespace n ON n.nspname = t.schemaname
	JOIN pg_catalog.pg_class c ON c.relnamespace = n.oid AND c.relname = t.tablename
	WHERE t.pubname = ANY ($1::text[])
), leaf AS (
	SELECT c.oid, format('%I.%I', n.nspname, c.relname) AS name, c.relreplident = 'n' OR c.relreplident = 'd'
		AND NOT EXISTS (SELECT FROM pg_catalog.pg_index i WHERE i.indrelid = c.oid AND i.indisprimary) AS without,
		EXISTS (SELECT FROM pg_catalog.pg_attribute a
			WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attname <> ALL (p.attnames)
			AND (a.attgenerated = '' OR current_setting('server_version_num')::int >= 180000)
			AND (c.relreplident = 'f' OR EXISTS (SELECT FROM pg_catalog.pg_index i WHERE i.indrelid = c.oid AND a.attnum = ANY (i.indkey)
				AND CASE c.relreplident WHEN 'd' THEN i.indisprimary WHEN 'i' THEN i.indisreplident END))) AS part,
		(c.relreplident = 'f') <> (p.relreplident = 'f') AS mixed
	FROM published p
	LEFT JOIN LATERAL pg_catalog.pg_partition_tree(p.oid) l ON true
	JOIN pg_catalog.pg_class c ON c.oid = coalesce(l.relid, p.oid) AND c.relkind <> 'p'
	JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
)
SELECT DISTINCT CASE WHEN without THEN 'without' WHEN part THEN 'part' ELSE 'mixed' END, name
FROM leaf WHERE without OR part OR mixed ORDER BY name LIMIT 1000`

// Inspect reads the facts about the server, the slot and the publications of
// the configuration. A missing slot or publication is a fact, no error.
func (a *Admin) Inspect(ctx context.Context) (Facts, error) { return a.inspect(ctx, nil) }

// InspectAhead is Inspect, but reads the replica identities as they will stand
// when CreatePublication has made what is missing: it makes it in a transaction
// that it takes back, which nobody else sees. That it cannot be made is a fact,
// Facts.Unpublishable.
func (a *Admin) InspectAhead(ctx context.Context, want Published) (Facts, error) {
	return a.inspect(ctx, &want)
}

func (a *Admin) inspect(ctx context.Context, want *Published) (Facts, error) {
	f := Facts{SlotName: a.cfg.Slot}
	err := a.with(ctx, "inspect the server", func(conn *pgx.Conn) error {
		var raw []byte
		if err := conn.QueryRow(ctx, factsQuery).Scan(&raw); err != nil {
			return fmt.Errorf("read settings: %w", err)
		}
		units := struct {
			*Facts
			Timeout int64  `json:"timeout"`
			Keep    int64  `json:"keep"`
			Idle    *int64 `json:"idle"`
		}{Facts: &f}
		if err := json.Unmarshal(raw, &units); err != nil {
			return fmt.Errorf("read settings: %w", err)
		}
		f.WALSenderTimeout = time.Duration(units.Timeout) * time.Millisecond
		f.MaxSlotWALKeep = units.Keep
		if units.Keep > 0 {
			f.MaxSlotWALKeep <<= 20
		}
		if units.Idle != nil {
			f.IdleSlotTimeout = time.Duration(*units.Idle) * time.Second
		}
		if err := identity(ctx, conn, &f); err != nil {
			return err
		}
		var err error
		if f.Slot, err = readSlot(ctx, conn, a.cfg.Slot); err != nil {
			return err
		}
		if err := conn.QueryRow(ctx, publicationsQuery, a.cfg.Publications).Scan(&raw); err != nil {
			return fmt.Errorf("read publications: %w", err)
		}
		if err := json.Unmarshal(raw, &f.Publications); err != nil {
			return fmt.Errorf("read publications: %w", err)
		}
		if want == nil {
			err = identities(ctx, conn, a.cfg.Publications, &f)
		} else {
			err = a.identitiesAhead(ctx, conn, *want, &f)
		}
		if err != nil {
			return fmt.Errorf("read replica identities: %w", err)
		}
		return nil
	})
	return f, err
}

// identitiesAhead makes the missing publications for as long as it looks.
func (a *Admin) identitiesAhead(ctx context.Context, conn *pgx.Conn, want Published, f *Facts) (err error) {
	tables, err := want.idents()
	if err != nil {
		f.Unpublishable = err.Error()
		return nil
	}
	tx, err := conn.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, tx.Rollback(ctx)) }()
	for _, p := range f.Publications {
		if p.Exists {
			continue
		}
		var pg *pgconn.PgError
		switch _, err := tx.Exec(ctx, publicationSQL(p.Name, tables, want.ViaRoot)); {
		case errors.As(err, &pg):
			f.Unpublishable = fmt.Sprintf("the publication %q cannot be made: %s (SQLSTATE %s)", p.Name, pg.Message, pg.Code)
			return nil
		case err != nil:
			return err
		}
	}
	return identities(ctx, conn, a.cfg.Publications, f)
}

// identities reads what is wrong with the replica identities of published tables.
func identities(ctx context.Context, conn *pgx.Conn, publications []string, f *Facts) error {
	rows, err := conn.Query(ctx, identityQuery, publications)
	if err != nil {
		return err
	}
	var what, name string
	_, err = pgx.ForEachRow(rows, []any{&what, &name}, func() error {
		switch what {
		case "without":
			f.WithoutIdentity = append(f.WithoutIdentity, name)
		case "part":
			f.PartOfIdentity = append(f.PartOfIdentity, name)
		case "mixed":
			f.MixedIdentity = append(f.MixedIdentity, name)
		}
		return nil
	})
	return err
}

// identity reads the system identifier, which a role without privileges may not
// know on some providers: then it stays empty, and the session's is used.
func identity(ctx context.Context, conn *pgx.Conn, f *Facts) error {
	var allowed bool
	err := conn.QueryRow(ctx, `SELECT has_function_privilege('pg_catalog.pg_control_system()', 'execute')
		AND has_function_privilege('pg_catalog.pg_control_checkpoint()', 'execute')`).Scan(&allowed)
	if err == nil && allowed {
		err = conn.QueryRow(ctx, `SELECT (SELECT system_identifier::text FROM pg_catalog.pg_control_system()),
			(SELECT timeline_id FROM pg_catalog.pg_control_checkpoint())`).Scan(&f.SystemID, &f.Timeline)
	}
	if err != nil {
		return fmt.Errorf("read system identifier: %w", err)
	}
	return nil
}
