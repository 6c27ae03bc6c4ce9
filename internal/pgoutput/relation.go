package pgoutput

import (
	"fmt"

	"github.com/cespare/xxhash/v2"

	"github.com/tidemark-cdc/tidemark/internal/change"
)

// spareVersions is how many versions that are not in force are remembered
// before they are forgotten, so that a table that is altered all the time does
// not grow the cache.
const spareVersions = 256

// relations is the relation cache: which version of each table is in force on
// this connection, and every version by its hash, so that one that is announced
// again, here or on the next connection, is the same value.
type relations struct {
	current  map[uint32]*change.Relation // by table OID; always also in versions
	versions map[uint64]*change.Relation // by hash
}

func newRelations() relations {
	return relations{current: make(map[uint32]*change.Relation), versions: make(map[uint64]*change.Relation)}
}

func (r *relations) reset() { clear(r.current) }

// announced is the version in force of a table, or nil.
func (r *relations) announced(oid uint32) *change.Relation { return r.current[oid] }

// announce takes in a Relation message. Nothing changes if it fails.
func (r *relations) announce(msg []byte, describe func(*change.Relation) error) error {
	hash := xxhash.Sum64(msg)
	rel := r.versions[hash]
	if rel == nil {
		var err error
		if rel, err = parseRelation(msg); err != nil {
			return err
		}
		if describe != nil {
			if err := describe(rel); err != nil {
				return fmt.Errorf("describe the types of table %s: %w", rel.QualifiedName(), err)
			}
		}
	}
	r.current[rel.OID] = rel
	r.versions[hash] = rel
	if len(r.versions) > 2*len(r.current)+spareVersions {
		clear(r.versions)
		for _, rel := range r.current {
			r.versions[rel.Hash] = rel
		}
	}
	return nil
}

// parseRelation reads a Relation message (logicalrep_write_rel in proto.c). The
// result shares no memory with msg.
func parseRelation(msg []byte) (*change.Relation, error) {
	const keyFlag = 1 // LOGICALREP_IS_REPLICA_IDENTITY
	c := cursor{rest: msg[1:]}
	rel := &change.Relation{
		OID:       c.uint32(),
		Hash:      xxhash.Sum64(msg),
		Namespace: string(c.text()),
		Name:      string(c.text()),
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
			Name:     string(c.text()),
			Key:      flags&keyFlag != 0,
			Type:     c.uint32(),
			Modifier: int32(c.uint32()),
		})
	}
	if err := complete(&c, "relation"); err != nil {
		return nil, err
	}
	switch rel.Identity {
	case 'd', 'n', 'f', 'i':
		return rel, nil
	}
	return nil, malformed("table %s has the unknown replica identity %q", rel.QualifiedName(), rel.Identity)
}
