package rowfile

import (
	"encoding/base64"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/tidemark-cdc/tidemark/internal/change"
)

func TestARawFileHoldsEverythingOfAChange(t *testing.T) {
	changes := sample()
	// What no decoder understands is what quarantine is for.
	changes[0].Raw = []byte("I\x00\xff garbage")
	data, _ := write(t, true, Options{}, changes)
	table, _ := readAll(t, data)
	column := func(name string) []string { return columnTexts(t, table, name) }
	position, message, relation := column("position"), column("message"), column("relation")
	operation, joined, xid, name := column("operation"), column("joined"), column("xid"), column("table")
	for i, c := range changes {
		if position[i] != c.Position.String() || operation[i] != c.Operation.String() ||
			(joined[i] == "true") != c.Joined || xid[i] != "4294967295" {
			t.Errorf("row %d is %s %s %s %s", i, position[i], operation[i], joined[i], xid[i])
		}
		if raw, err := base64.StdEncoding.DecodeString(message[i]); err != nil || string(raw) != string(c.Raw) {
			t.Errorf("message %d is %q, want %q, error %v", i, raw, c.Raw, err)
		}
		if c.Relation == nil {
			if relation[i] != "(null)" || name[i] != "(null)" {
				t.Errorf("row %d without a table has %s, %s", i, name[i], relation[i])
			}
			continue
		}
		var got change.Relation
		if err := json.Unmarshal([]byte(relation[i]), &got); err != nil || !reflect.DeepEqual(&got, c.Relation) {
			t.Errorf("relation %d is %+v, error %v", i, got, err)
		}
	}
	for name, want := range map[string]string{
		"lsn":         "97500004352|97500004353",
		"commit_time": "2026-01-02T00:00:00.000001Z",
		"timestamp":   "2026-01-02T00:00:00.000002Z",
	} {
		if got := strings.Join(column(name), "|"); !strings.HasPrefix(got, want) {
			t.Errorf("%s is %s", name, got)
		}
	}
}
