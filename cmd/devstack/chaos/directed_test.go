package chaos_test

import (
	"testing"
	"time"

	"github.com/tidemark-cdc/tidemark/cmd/devstack/chaos"
	"github.com/tidemark-cdc/tidemark/cmd/devstack/pipeline"
)

// directed has, for each guard, a history in which it alone keeps the lake
// right. They are played with whole guards in every run of the tests, and with
// broken ones by make chaos-guards.
var directed = []struct {
	tag string
	chaos.History
}{
	// Segments after the first are finished, the first is not, and the streamer
	// goes: an ack of the latest one has passed the rows of the first.
	{"tidemark_naive_ack", chaos.History{
		Workers: 1, Settings: small(20, 8), Seed: 1,
		Steps: []chaos.Step{
			{Break: "S3 refuses the next segment"},
			{Commit: "single rows", N: 60},
			{Until: chaos.UntilObject, Pause: 20 * time.Second},
			{Until: chaos.UntilAck, Pause: 4 * time.Second},
			{Break: "streamer killed"},
			{Mend: "all"},
		},
	}},
	// Three transactions that are committed one right after the other, each of
	// three rows, which are a segment. The first is finished and acknowledged. An
	// ack that is a few bytes too great lies inside the next one's commit record,
	// and Postgres takes a transaction whose commit record begins below the ack for
	// done. With this seed none of the three is rolled back.
	{"tidemark_naive_end", chaos.History{
		Workers: 1, Settings: small(3, 1), Seed: 1,
		Steps: []chaos.Step{
			{Break: "S3 refuses all but the next segment"},
			{Commit: "interleaved", N: 5},
			{Until: chaos.UntilAck, Pause: 20 * time.Second},
			{Break: "streamer killed"},
			{Mend: "all"},
		},
	}},
	// An upload is under way, its streamer goes, and the next one would cut
	// otherwise, since its settings are others. If it does not meet the record, it
	// uploads its own segment, and the store has both.
	{"tidemark_naive_id", recut},
	// The same. If it meets the record and does not take over the boundary, the
	// rest of its own segment is taken for uploaded when the recorded one is.
	{"tidemark_naive_adopt", recut},
	// Two megabytes of rows wait in the ring for a worker, and lie in eight slabs.
	{"tidemark_naive_slab", chaos.History{
		Workers: 1, Settings: pipeline.Settings{
			"segment.max_rows": 1000, "segment.max_bytes": "256KiB", "segment.max_age": "100ms",
			"ring.max_bytes": "4MiB", "streamer.max_in_flight": 64,
		}, Seed: 1,
		Steps: []chaos.Step{
			{Break: "worker stopped"},
			{Commit: "insert", N: 2500},
			{Commit: "insert", N: 2500},
			{Commit: "insert", N: 2500},
			{Until: chaos.UntilUpload, Pause: time.Second},
			{Mend: "all"},
		},
	}},
}

var recut = chaos.History{
	Workers: 1, Settings: small(20, 1), Seed: 1,
	Steps: []chaos.Step{
		{Break: "S3 holds the next segment"},
		{Commit: "single rows", N: 60},
		{Until: chaos.UntilUpload, Pause: 20 * time.Second},
		{Break: "settings changed"},
		{Mend: "settings changed"},
		{Until: chaos.UntilStreaming, Pause: 30 * time.Second},
		{Until: chaos.UntilObject, Pause: 6 * time.Second},
		{Mend: "all"},
	},
}

// small are settings with segments of so many rows, so many of them at once.
func small(rows, inFlight int) pipeline.Settings {
	return pipeline.Settings{
		"segment.max_rows": rows, "segment.max_bytes": "16KiB", "segment.max_age": "200ms",
		"ring.max_bytes": "1MiB", "streamer.max_in_flight": inFlight,
	}
}

// wrong plays a history and says what is wrong; nothing if all is well.
func wrong(t *testing.T, w *chaos.World, h chaos.History) string {
	v, err := w.Play(t.Context(), h)
	switch {
	case err != nil:
		return err.Error()
	case !v.Good():
		return v.String()
	}
	return ""
}
