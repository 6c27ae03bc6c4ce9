package pgoutput

import "github.com/tidemark-cdc/tidemark/internal/change"

// ReadBack asks the database for the text of columns of the row that key names,
// as transaction xid has left it: in their order, nil for NULL. found is false
// if that cannot be had any more; then the columns stay unchanged. What texts
// holds is valid until the next call.
type ReadBack func(rel *change.Relation, key []change.KeyValue, xid uint32, columns []string) (texts [][]byte, found bool, err error)

// SetReadBack has values that are still missing asked for. Nil, the default,
// asks nobody. Its errors come out of Decode as they are.
func (d *Decoder) SetReadBack(f ReadBack) { d.readBack = f }

// ReadBack names, in column order, the columns whose value the database was
// asked for. The slice is valid until the next Decode.
func (r *Row) ReadBack() []string { return r.readBack }

// fillFromDatabase fills what is missing in the row of c by asking for it.
func (d *Decoder) fillFromDatabase(r *Row, c *change.Change) error {
	d.key = d.key[:0]
	for i, col := range r.plan.relation.Columns {
		if !r.plan.columns[i].key {
			continue
		}
		if r.new[i].state != isText {
			return nil // a key that was not sent names no row
		}
		d.key = append(d.key, change.KeyValue{Column: col.Name, Text: r.new[i].text})
	}
	if len(d.key) == 0 {
		return nil
	}
	texts, found, err := d.readBack(r.plan.relation, d.key, c.XID, r.unchanged)
	if err != nil || !found {
		return err
	}
	next := 0
	for i := range r.new {
		if r.new[i].state != isToast {
			continue
		}
		r.new[i] = value{state: isNull, filled: true}
		if texts[next] != nil {
			r.new[i] = value{state: isText, filled: true, text: texts[next]}
		}
		next++
	}
	r.readBack, r.unchanged = append(r.readBack, r.unchanged...), r.unchanged[:0]
	return nil
}
