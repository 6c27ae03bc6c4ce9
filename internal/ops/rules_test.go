package ops

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/knadh/koanf/parsers/yaml"

	"github.com/tidemark-cdc/tidemark/activities"
)

// metricName finds our metrics in an expression.
var metricName = regexp.MustCompile(`\btidemark_[a-z_]+`)

// checkExpression says which metrics of expr do not exist.
func checkExpression(t *testing.T, where, expr string) {
	t.Helper()
	names := ownNames(t)
	used := metricName.FindAllString(expr, -1)
	if len(used) == 0 && !strings.Contains(expr, "temporal_") {
		t.Errorf("%s uses no metric: %s", where, expr)
	}
	for _, name := range used {
		if !names[name] {
			t.Errorf("%s uses %s, which does not exist", where, name)
		}
	}
}

// alert is an alert rule; annotations and labels are by name.
type alert struct {
	name, expr          string
	labels, annotations map[string]any
}

func readAlerts(t *testing.T) []alert {
	t.Helper()
	file, err := yaml.Parser().Unmarshal([]byte(readFile(t, "../../deploy/prometheus/tidemark.rules.yml")))
	if err != nil {
		t.Fatal(err)
	}
	var alerts []alert
	groups, _ := file["groups"].([]any)
	for _, g := range groups {
		group, _ := g.(map[string]any)
		rules, _ := group["rules"].([]any)
		for _, r := range rules {
			rule, _ := r.(map[string]any)
			a := alert{}
			a.name, _ = rule["alert"].(string)
			a.expr, _ = rule["expr"].(string)
			a.labels, _ = rule["labels"].(map[string]any)
			a.annotations, _ = rule["annotations"].(map[string]any)
			alerts = append(alerts, a)
		}
	}
	return alerts
}

func TestAlertsUseMetricsThatExistAndHaveARunbook(t *testing.T) {
	alerts := readAlerts(t)
	if len(alerts) < 10 {
		t.Fatalf("found %d alerts", len(alerts))
	}
	guide := readFile(t, "../../docs/operations.md")
	headings := map[string]bool{}
	for _, h := range regexp.MustCompile(`(?m)^#### (Tidemark\w+)\n\n\S`).FindAllStringSubmatch(guide, -1) {
		headings[h[1]] = true
	}
	for _, a := range alerts {
		checkExpression(t, a.name, a.expr)
		if s, _ := a.labels["severity"].(string); !slices.Contains([]string{"critical", "warning", "info"}, s) {
			t.Errorf("%s has the severity %q", a.name, s)
		}
		if s, _ := a.annotations["summary"].(string); s == "" {
			t.Errorf("%s has no summary", a.name)
		}
		want := "docs/operations.md#" + strings.ToLower(a.name)
		if url, _ := a.annotations["runbook_url"].(string); !strings.HasSuffix(url, want) {
			t.Errorf("%s points to %q, want %s", a.name, url, want)
		}
		if !headings[a.name] {
			t.Errorf("docs/operations.md has no heading %s with what to do", a.name)
		}
		delete(headings, a.name)
	}
	for h := range headings {
		t.Errorf("docs/operations.md has the alert %s, which is not in the rules", h)
	}
}

// A segment whose attempt has failed for good waits for a person, whatever the
// class; one that is tried again does not.
func TestTheAlertOnWaitingSegmentsKnowsThePermanentClasses(t *testing.T) {
	var permanent []string
	for _, c := range activities.Classes() {
		if c.Permanent() {
			permanent = append(permanent, string(c))
		}
	}
	want := `class=~"` + strings.Join(permanent, "|") + `"`
	for _, a := range readAlerts(t) {
		if a.name == "TidemarkSegmentWaits" {
			if !strings.Contains(a.expr, want) {
				t.Errorf("got %s, want %s", a.expr, want)
			}
			return
		}
	}
	t.Error("there is no alert TidemarkSegmentWaits")
}
