package main

import (
	"fmt"

	"github.com/tidemark-cdc/tidemark/internal/config"
	"github.com/tidemark-cdc/tidemark/internal/lake"
	"github.com/tidemark-cdc/tidemark/streamer/replication"
)

// situation is what there is of a pipeline's slot, publication and lake.
type situation struct {
	pipeline string
	// slot, publication and lakeURL are the configured names.
	slot, publication, lakeURL string
	facts                      replication.Facts
	systemID                   string
	// identity is the lake's; nil if nobody has set it up.
	identity *lake.Identity
}

func newSituation(c *config.Config) situation {
	return situation{pipeline: c.Pipeline, slot: c.Postgres.Slot, publication: c.Postgres.Publication, lakeURL: c.Lake.URL}
}

// findings says why setup must not make what is missing. What was once set up
// and is half gone is never made again in silence: rows of the time between
// would be in no lake, and nothing would tell.
func (s situation) findings() []finding {
	var list []finding
	add := func(fix, format string, args ...any) {
		list = append(list, finding{Level: levelError, About: aboutPipeline, What: fmt.Sprintf(format, args...), Fix: fix})
	}
	id := s.identity
	if id == nil {
		if s.facts.Slot != nil {
			add(fmt.Sprintf("if nobody needs it, drop it (tidemark teardown, or SELECT pg_drop_replication_slot('%s')) and run setup again; if somebody does, set postgres.slot to another name", s.slot),
				"the replication slot %q exists, but %s was never set up, and what the slot has confirmed so far may have gone nowhere", s.slot, s.lakeURL)
		}
		return list
	}
	if err := id.Check(s.pipeline, s.systemID); err != nil {
		add("", "%s: %v", s.lakeURL, err)
		return list
	}
	if list = s.names(); len(list) > 0 {
		return list
	}
	if s.facts.Slot == nil {
		add("tidemark setup --recreate-slot makes a new one and records the gap (after pg_upgrade: tidemark resolve --upgraded)",
			"the replication slot %q of this pipeline is gone: rows committed since the last ack are in no object, and a new slot alone would hide that gap", s.slot)
		return list
	}
	if p := s.publicationInfo(); p != nil && !p.Exists {
		add("stop the pipeline and run tidemark setup --recreate-slot, which makes both anew and records the gap",
			"the publication %q of this pipeline is gone, and making it again does not help, since Postgres reads its catalog as it was at each position of the WAL", s.publication)
	}
	return list
}

// names says whether the lake was set up with another slot.
func (s situation) names() []finding {
	id := s.identity
	if id.Slot == "" || id.Slot == s.slot {
		return nil
	}
	return []finding{{Level: levelError, About: aboutPipeline, Fix: fmt.Sprintf("set postgres.slot to %q", id.Slot),
		What: fmt.Sprintf("this pipeline was set up with the replication slot %q, and postgres.slot is %q, which has rows missing or twice", id.Slot, s.slot)}}
}

func (s situation) publicationInfo() *replication.PublicationInfo {
	for i, p := range s.facts.Publications {
		if p.Name == s.publication {
			return &s.facts.Publications[i]
		}
	}
	return nil
}

// publicationExists says whether there is nothing to make.
func (s situation) publicationExists() bool {
	p := s.publicationInfo()
	return p != nil && p.Exists
}
