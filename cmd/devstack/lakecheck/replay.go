package lakecheck

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
)

// image is a row as a JSON object, each value as it was written.
type image map[string]json.RawMessage

// key is the text of the key columns' values. They are in every image of a row
// whose table has a primary key.
func (m image) key(columns []string) (string, error) {
	var b strings.Builder
	for _, c := range columns {
		v, ok := m[c]
		if !ok {
			return "", fmt.Errorf("the image has no key column %s", c)
		}
		b.Write(bytes.TrimSpace(v))
		b.WriteByte(',')
	}
	return b.String(), nil
}

// Replay applies a table's changes in stream order to an empty table and
// returns the rows that are left, by the text of their key.
func (l *Lake) Replay(ctx context.Context, table string, key []string) (map[string]image, error) {
	state := map[string]image{}
	err := l.query(ctx, "replay "+table, `
		select operation, before, after, array_to_string(unchanged, chr(31))
		from %s where "table" = ? order by timeline, commit_lsn, ordinal`,
		func(rows *sql.Rows) error {
			var operation string
			var before, after, unchanged sql.NullString
			if err := rows.Scan(&operation, &before, &after, &unchanged); err != nil {
				return err
			}
			return apply(state, key, operation, before.String, after.String, unchanged.String)
		}, table)
	if err != nil {
		return nil, err
	}
	return state, nil
}

func apply(state map[string]image, key []string, operation, before, after, unchanged string) error {
	if operation == "truncate" {
		clear(state)
		return nil
	}
	var old, row image
	for _, im := range []struct {
		text string
		into *image
	}{{before, &old}, {after, &row}} {
		if im.text == "" {
			continue
		}
		if err := json.Unmarshal([]byte(im.text), im.into); err != nil {
			return fmt.Errorf("read the %s image %s: %w", operation, im.text, err)
		}
	}
	previous := old
	if previous == nil {
		previous = row
	}
	k, err := previous.key(key)
	if err != nil {
		return err
	}
	was, there := state[k]
	switch operation {
	case "insert":
		if there {
			return fmt.Errorf("a row with the key %s is inserted, but it is there already", k)
		}
	case "update", "delete":
		if !there {
			return fmt.Errorf("a row with the key %s is to be changed by %s, but it is not there", k, operation)
		}
		delete(state, k)
	default:
		return fmt.Errorf("unexpected operation %q", operation)
	}
	if operation == "delete" {
		return nil
	}
	if unchanged != "" {
		row = maps.Clone(row)
		for c := range strings.SplitSeq(unchanged, "\x1f") {
			row[c] = was[c]
		}
	}
	if k, err = row.key(key); err != nil {
		return err
	}
	state[k] = row
	return nil
}
