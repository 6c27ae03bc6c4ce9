package pgoutput

import (
	"encoding/binary"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/cespare/xxhash/v2"

	"github.com/tidemark-cdc/tidemark/internal/change"
)

// spareVersions is how many versions that are not in force are remembered
// before they are forgotten, so that a table that is altered all the time does
// not grow the cache.
const spareVersions = 256

// relations is the relation cache: what was announced last of each table on this
// connection, and every version by its hash with the facts of its types.
type relations struct {
	current  map[uint32]*change.Relation // by table OID; always also in versions
	versions map[uint64]*change.Relation // by hash: its last announcement
	// missed are the tables of which a change was dropped since the last one
	// that was kept.
	missed map[uint32]struct{}
}

func newRelations() relations {
	return relations{current: make(map[uint32]*change.Relation), versions: make(map[uint64]*change.Relation), missed: make(map[uint32]struct{})}
}

func (r *relations) reset() {
	clear(r.current)
	clear(r.missed)
}

// dropped notes that a change of the table is not kept.
func (r *relations) dropped(oid uint32) { r.missed[oid] = struct{}{} }

// afterDropped gives the value of rel, the version in force, for a change that is
// kept: another one than before if changes were dropped in between, for the same
// reason as announce.
func (r *relations) afterDropped(rel *change.Relation) *change.Relation {
	if len(r.missed) == 0 {
		return rel
	}
	if _, ok := r.missed[rel.OID]; !ok {
		return rel
	}
	delete(r.missed, rel.OID)
	other := *rel
	r.current[rel.OID], r.versions[rel.Hash] = &other, &other
	return &other
}

// announced is the version in force of a table, or nil.
func (r *relations) announced(oid uint32) *change.Relation { return r.current[oid] }

// announce takes in a Relation message. Nothing changes if it fails.
//
// Each announcement is a value of its own, also where the version is the same: a
// table is announced again after anything that may have changed its rows beside
// the stream, such as ALTER TABLE ... TYPE ... USING, and a decoder must not take
// a value from before for one after.
func (r *relations) announce(msg []byte, describe func(*change.Relation) error) error {
	rel, err := parseRelation(msg)
	if err != nil {
		return err
	}
	if known := r.versions[rel.Hash]; known != nil && !mayHaveChanged(known) {
		rel.Types = known.Types
	} else if describe != nil {
		if err := describe(rel); err != nil {
			return fmt.Errorf("describe the types of table %s: %w", rel.QualifiedName(), err)
		}
	}
	r.current[rel.OID] = rel
	r.versions[rel.Hash] = rel
	if len(r.versions) > 2*len(r.current)+spareVersions {
		clear(r.versions)
		for _, rel := range r.current {
			r.versions[rel.Hash] = rel
		}
	}
	return nil
}

// mayHaveChanged says whether the facts of a relation's types can differ from
// what they were: a composite can be altered, and neither the Relation message
// nor its Type messages tell (the server does not even send them again). Domains,
// arrays and ranges stay what they are.
func mayHaveChanged(r *change.Relation) bool {
	return slices.ContainsFunc(r.Types, func(t change.Type) bool { return t.Kind == change.KindComposite })
}

// parseRelation reads a Relation message (logicalrep_write_rel in proto.c). The
// result shares no memory with msg.
func parseRelation(msg []byte) (*change.Relation, error) {
	const keyFlag = 1 // LOGICALREP_IS_REPLICA_IDENTITY
	c := cursor{rest: msg[1:]}
	rel := &change.Relation{
		OID:       c.uint32(),
		Namespace: nameOf(c.text()),
		Name:      nameOf(c.text()),
		Identity:  c.uint8(),
	}
	if rel.Namespace == "" {
		rel.Namespace = "pg_catalog" // logicalrep_write_namespace
	}
	n := int(c.uint16())
	for range n {
		if c.short {
			break
		}
		flags := c.uint8()
		rel.Columns = append(rel.Columns, change.Column{
			Name:     nameOf(c.text()),
			Key:      flags&keyFlag != 0,
			Type:     c.uint32(),
			Modifier: int32(c.uint32()),
		})
	}
	if err := complete(&c, "relation"); err != nil {
		return nil, err
	}
	rel.Hash = hashOf(rel)
	switch rel.Identity {
	case 'd', 'n', 'f', 'i':
		return rel, nil
	}
	return nil, malformed("table %s has the unknown replica identity %q", rel.QualifiedName(), rel.Identity)
}

// nameOf gives a name as valid UTF-8, which names have to be in JSON, Parquet and
// everywhere else. In a SQL_ASCII database they may be any bytes: one that is no
// part of a valid sequence is written as \xHH.
func nameOf(b []byte) string {
	if utf8.Valid(b) {
		return string(b)
	}
	var out []byte
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		if r == utf8.RuneError && n == 1 {
			out = append(out, '\\', 'x', hexDigits[b[0]>>4], hexDigits[b[0]&0xF])
		} else {
			out = append(out, b[:n]...)
		}
		b = b[n:]
	}
	return string(out)
}

// hashOf is Relation.Hash. Names and replica identity are not in it, since they
// depend on when a connection was made: under publish_via_partition_root
// Postgres does not announce a root again of which only these were altered, nor,
// before 16, a table whose schema was renamed (rel_sync_cache_relation_cb in
// src/backend/replication/pgoutput/pgoutput.c). The columns do not: altering
// them alters the partitions too.
func hashOf(rel *change.Relation) uint64 {
	b := make([]byte, 0, 64)
	b = binary.BigEndian.AppendUint32(b, rel.OID)
	for _, col := range rel.Columns {
		b = append(b, col.Name...)
		b = append(b, 0)
		b = binary.BigEndian.AppendUint32(b, col.Type)
		b = binary.BigEndian.AppendUint32(b, uint32(col.Modifier))
	}
	return xxhash.Sum64(b)
}
