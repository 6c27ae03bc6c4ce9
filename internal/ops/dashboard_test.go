package ops

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"regexp"
	"testing"
)

var update = flag.Bool("update", false, "write deploy/grafana/tidemark.json")

const dashboardFile = "../../deploy/grafana/tidemark.json"

// line is one query of a panel.
type line struct{ expr, legend string }

// panel is a chart of a row of the dashboard, or, without lines, a row's title.
type panel struct {
	title, unit, text string
	// stacked draws areas on top of each other.
	stacked bool
	lines   []line
}

const (
	seconds   = "s"
	sizes     = "bytes"
	perSecond = "ops"
	sizeRate  = "Bps"
	number    = "short"
)

// dashboard lists the panels in order, three in a row of the screen.
func dashboard() []panel {
	return []panel{
		{title: "Is it well?"},
		{title: "Session", unit: number, text: "Which state each process' session with Postgres is in. Exactly one streams; others stand by. And whether somebody has paused the pipeline.",
			lines: []line{
				{`sum by (state) (tidemark_session_state{pipeline=~"$pipeline"})`, "{{state}}"},
				{`max(tidemark_paused{pipeline=~"$pipeline"})`, "paused"},
			}},
		{title: "Commit to lake", unit: seconds, text: "From the commit of a segment's first change to when the segment was seen to be in the lake.",
			lines: []line{
				{`histogram_quantile(0.5, sum by (le) (rate(tidemark_commit_to_lake_seconds_bucket{pipeline=~"$pipeline"}[$__rate_interval])))`, "half"},
				{`histogram_quantile(0.95, sum by (le) (rate(tidemark_commit_to_lake_seconds_bucket{pipeline=~"$pipeline"}[$__rate_interval])))`, "19 of 20"},
			}},
		{title: "What holds the ack", unit: seconds, text: "Since when the first unfinished segment is under way, the first change waits that is in none, and the lake's record of the ack is being written.",
			lines: []line{
				{`max(tidemark_oldest_segment_age_seconds{pipeline=~"$pipeline"})`, "oldest segment"},
				{`max(tidemark_oldest_waiting_age_seconds{pipeline=~"$pipeline"})`, "oldest waiting change"},
				{`max(tidemark_ack_record_pending_seconds{pipeline=~"$pipeline"})`, "record of the ack"},
			}},

		{title: "Postgres"},
		{title: "WAL of the slot", unit: sizes, text: "Behind the ack, kept by the server, and left until the slot can be lost.",
			lines: []line{
				{`max(tidemark_slot_lag_bytes{pipeline=~"$pipeline"})`, "behind the ack"},
				{`max(tidemark_slot_retained_wal_bytes{pipeline=~"$pipeline"})`, "retained"},
				{`min(tidemark_slot_safe_wal_bytes{pipeline=~"$pipeline"})`, "safe to write"},
			}},
		{title: "Time until the slot can be lost", unit: "h", text: "At the rate of the last ten minutes. Empty while there is no limit, or the kept WAL does not grow.",
			lines: []line{{`min(tidemark_slot_hours_left{pipeline=~"$pipeline"})`, "left"}}},
		{title: "Received beyond the ack", unit: sizes, text: "Bytes of WAL between the ack on record and the last change received.",
			lines: []line{{`max(clamp_min(tidemark_received_lsn{pipeline=~"$pipeline"} - tidemark_ack_lsn{pipeline=~"$pipeline"}, 0))`, "not acknowledged"}}},
		{title: "Ages", unit: seconds, text: "Since the last status update, and since Postgres last confirmed that the slot is the streamer's.",
			lines: []line{
				{`max(tidemark_feedback_age_seconds{pipeline=~"$pipeline"})`, "status update"},
				{`min(tidemark_slot_seen_age_seconds{pipeline=~"$pipeline"})`, "slot confirmed"},
			}},
		{title: "Reconnections", unit: number, text: "By what ended the connection before.",
			lines: []line{{`sum by (cause) (increase(tidemark_reconnects_total{pipeline=~"$pipeline"}[$__rate_interval]))`, "{{cause}}"}}},
		{title: "WAL guard", unit: number, text: "1 for a warning and 2 for an alarm on the WAL that is kept for the slot. Lost is 1 when the server has removed WAL that the slot needed.",
			lines: []line{
				{`max(tidemark_slot_wal_level{pipeline=~"$pipeline"})`, "level"},
				{`max(tidemark_slot_lost{pipeline=~"$pipeline"})`, "lost"},
			}},

		{title: "Temporal"},
		{title: "Outage", unit: seconds, text: "Since when the streamer has not reached Temporal; nothing is dispatched meanwhile.",
			lines: []line{{`max(tidemark_temporal_outage_seconds{pipeline=~"$pipeline"})`, "not reached"}}},
		{title: "Workflows started again", unit: number, text: "Segments in flight whose workflow somebody had ended or deleted.",
			lines: []line{{`sum by (ending) (increase(tidemark_segments_restarted_total{pipeline=~"$pipeline"}[$__rate_interval]))`, "{{ending}}"}}},

		{title: "Through the ring"},
		{title: "Changes received", unit: perSecond, stacked: true,
			lines: []line{{`sum by (operation) (rate(tidemark_changes_received_total{pipeline=~"$pipeline"}[$__rate_interval]))`, "{{operation}}"}}},
		{title: "Bytes received", unit: sizeRate, text: "Raw message bytes.",
			lines: []line{{`sum(rate(tidemark_received_bytes_total{pipeline=~"$pipeline"}[$__rate_interval]))`, "received"}}},
		{title: "Received and in the lake", unit: perSecond, text: "The two are the same over time; between them lies what is in the ring.",
			lines: []line{
				{`sum(rate(tidemark_changes_received_total{pipeline=~"$pipeline"}[$__rate_interval]))`, "received"},
				{`sum(rate(tidemark_changes_in_lake_total{pipeline=~"$pipeline"}[$__rate_interval]))`, "in the lake"},
			}},
		{title: "Ring", unit: sizes, stacked: true, text: "The ring's bytes by range.",
			lines: []line{{`sum by (range) (tidemark_ring_bytes{pipeline=~"$pipeline"})`, "{{range}}"}}},
		{title: "Changes in the ring", unit: number, stacked: true,
			lines: []line{
				{`sum by (range) (tidemark_ring_changes{pipeline=~"$pipeline"})`, "{{range}}"},
				{`max(tidemark_ring_full{pipeline=~"$pipeline"})`, "full"},
			}},
		{title: "Segments in flight", unit: number, stacked: true, text: "Finished ones wait behind the one that holds the ack.",
			lines: []line{{`sum by (state) (tidemark_segments{pipeline=~"$pipeline"})`, "{{state}}"}}},

		{title: "Uploads"},
		{title: "Attempts", unit: perSecond,
			lines: []line{{`sum by (action) (rate(tidemark_upload_attempts_total{pipeline=~"$pipeline"}[$__rate_interval]))`, "{{action}}"}}},
		{title: "Failures", unit: perSecond, text: "By the type of the error that the Temporal UI shows.",
			lines: []line{{`sum by (class) (rate(tidemark_upload_failures_total{pipeline=~"$pipeline"}[$__rate_interval])) > 0`, "{{class}}"}}},
		{title: "Time of a step", unit: seconds, text: "19 of 20 attempts are done with it sooner.",
			lines: []line{{`histogram_quantile(0.95, sum by (step, le) (rate(tidemark_upload_step_seconds_bucket{pipeline=~"$pipeline"}[$__rate_interval])))`, "{{step}}"}}},
		{title: "Rows", unit: perSecond,
			lines: []line{
				{`sum(rate(tidemark_changes_decoded_total{pipeline=~"$pipeline"}[$__rate_interval]))`, "decoded"},
				{`sum(rate(tidemark_rows_stored_total{pipeline=~"$pipeline"}[$__rate_interval]))`, "stored"},
			}},
		{title: "Object size", unit: sizes, text: "The mean of the objects stored.",
			lines: []line{{`sum(rate(tidemark_object_bytes_sum{pipeline=~"$pipeline"}[$__rate_interval])) / sum(rate(tidemark_object_bytes_count{pipeline=~"$pipeline"}[$__rate_interval]))`, "mean"}}},
		{title: "Adopted and quarantined", unit: number, text: "Segments that an earlier process had recorded, and those whose raw messages were put aside.",
			lines: []line{
				{`sum(increase(tidemark_segments_adopted_total{pipeline=~"$pipeline"}[$__rate_interval]))`, "adopted"},
				{`sum(increase(tidemark_segments_quarantined_total{pipeline=~"$pipeline"}[$__rate_interval]))`, "quarantined"},
			}},
		{title: "Tables that drifted", unit: number, text: "Wanted tables whose rows do not come: they left the publication, or were dropped or made anew.",
			lines: []line{{`sum by (kind) (tidemark_drifted_tables{pipeline=~"$pipeline"})`, "{{kind}}"}}},
		{title: "Versions", unit: number,
			lines: []line{{`count by (version) (tidemark_build_info)`, "{{version}}"}}},
	}
}

// render makes the JSON that Grafana imports.
func render(panels []panel) []byte {
	type object = map[string]any
	const width, height = 8, 8
	x, y := 0, 0
	var out []object
	for id, p := range panels {
		if len(p.lines) == 0 {
			if x > 0 {
				x, y = 0, y+height
			}
			out = append(out, object{"id": id + 1, "type": "row", "title": p.title, "collapsed": false,
				"gridPos": object{"x": 0, "y": y, "w": 24, "h": 1}, "panels": []object{}})
			y++
			continue
		}
		var targets []object
		for i, l := range p.lines {
			targets = append(targets, object{"refId": string(rune('A' + i)), "expr": l.expr, "legendFormat": l.legend,
				"datasource": object{"type": "prometheus", "uid": "$datasource"}})
		}
		custom := object{"lineWidth": 1, "fillOpacity": 10, "showPoints": "never"}
		if p.stacked {
			custom["stacking"], custom["fillOpacity"] = object{"mode": "normal", "group": "A"}, 40
		}
		out = append(out, object{"id": id + 1, "type": "timeseries", "title": p.title, "description": p.text,
			"datasource":  object{"type": "prometheus", "uid": "$datasource"},
			"gridPos":     object{"x": x, "y": y, "w": width, "h": height},
			"fieldConfig": object{"defaults": object{"unit": p.unit, "min": 0, "custom": custom}, "overrides": []object{}},
			"options":     object{"legend": object{"displayMode": "list", "placement": "bottom"}, "tooltip": object{"mode": "multi"}},
			"targets":     targets})
		if x += width; x == 24 {
			x, y = 0, y+height
		}
	}
	variables := []object{
		{"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Prometheus"},
		{"name": "pipeline", "type": "query", "label": "Pipeline", "includeAll": true, "multi": true, "refresh": 2,
			"datasource": object{"type": "prometheus", "uid": "$datasource"},
			"query":      "label_values(tidemark_connected, pipeline)", "definition": "label_values(tidemark_connected, pipeline)"},
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	// Maps of strings, numbers and such: there is nothing that cannot be encoded.
	_ = enc.Encode(object{
		"title": "Tidemark", "uid": "tidemark", "tags": []string{"tidemark"}, "schemaVersion": 39, "version": 1, "editable": true,
		"time": object{"from": "now-1h", "to": "now"}, "refresh": "10s", "timezone": "browser",
		"templating": object{"list": variables}, "panels": out,
	})
	return b.Bytes()
}

func TestTheDashboardIsAsItsPanelsAreHere(t *testing.T) {
	want := render(dashboard())
	if *update {
		if err := os.WriteFile(dashboardFile, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got := readFile(t, dashboardFile); got != string(want) {
		t.Error("deploy/grafana/tidemark.json differs: run go test ./internal/ops -run Dashboard -update")
	}
}

func TestTheDashboardShowsMetricsThatExistAndAllOfThem(t *testing.T) {
	shown := map[string]bool{}
	for _, p := range dashboard() {
		for _, l := range p.lines {
			checkExpression(t, "panel "+p.title, l.expr)
			for _, name := range metricName.FindAllString(l.expr, -1) {
				shown[regexp.MustCompile("_(bucket|sum|count)$").ReplaceAllString(name, "")] = true
			}
		}
	}
	families, err := everything().Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		// What the session's state says better.
		if name := f.GetName(); metricName.MatchString(name) && !shown[name] && name != "tidemark_connected" {
			t.Errorf("no panel shows %s", name)
		}
	}
}
