package pgoutput

import (
	"encoding/binary"

	"github.com/tidemark-cdc/tidemark/internal/change"
)

// maxImages bounds what images may take, in bytes by a rough count. Beyond it
// they are forgotten, and the values are named as unchanged.
const maxImages = 64 << 20

// images finds unchanged TOASTed values in earlier images of the same key.
//
// Nothing is done, and nothing kept but the batches as they are, until the first
// value is missing. Then the changes so far are read again, and from there on it
// keeps up whenever a value is missing.
//
// What makes an image the present state of its row, so that its value is the
// unchanged one: every change of the row after it is in the stream. Hence the
// images of a table are forgotten
//   - with a TRUNCATE of it;
//   - when its relation is another value: rows may have changed beside the
//     stream by what made the server announce the table again (a rewrite by
//     ALTER TABLE, a publication that it left for a while), or changes of it
//     were dropped;
//   - when a key is not known.
//
// And they are of no use before an insert into the table was seen: if inserts
// are not published, a row may have been replaced by another one of its key. An
// insert itself has missing values too, if a row filter made it of an update; no
// image is of that row then.
type images struct {
	batches [][]change.Change
	// next is the change to be decoded next, and read the one to be read next.
	next, read place
	tables     map[uint32]*tableImages // by OID
	bytes      int
	old, new   []value // scratch
	key        []byte  // scratch
}

// place is an index into batches and into the batch.
type place struct{ batch, change int }

type tableImages struct {
	relation *change.Relation
	inserts  bool
	rows     map[string]image // by key
}

// image is what is known of a row: the new tuple of the change that wrote it
// last, and the values that were missing there and found.
type image struct {
	change *change.Change
	found  []foundValue
}

type foundValue struct {
	column int
	value  value
}

func (im *images) follow(batch []change.Change) {
	if len(batch) > 0 {
		im.batches = append(im.batches, batch)
	}
}

// at is the change at p, nil behind the last one.
func (im *images) at(p place) *change.Change {
	if p.batch < len(im.batches) {
		return &im.batches[p.batch][p.change]
	}
	return nil
}

func (im *images) after(p place) place {
	if p.change++; p.change == len(im.batches[p.batch]) {
		p = place{batch: p.batch + 1}
	}
	return p
}

// advance says whether c is the change that comes next.
func (im *images) advance(c *change.Change) bool {
	if im.at(im.next) != c {
		return false
	}
	im.next = im.after(im.next)
	return true
}

// fillFromImages fills what is still missing in the row of c from images of the
// changes before it.
func (d *Decoder) fillFromImages(r *Row, c *change.Change) {
	im := &d.images
	if im.tables == nil {
		im.tables = make(map[uint32]*tableImages)
	}
	for im.at(im.read) != c {
		d.remember(im.at(im.read))
		im.read = im.after(im.read)
	}
	t := im.tables[c.Relation.OID]
	if c.Operation != change.Update || t == nil || t.relation != c.Relation || !t.inserts || !r.plan.keyed {
		return
	}
	var ok bool
	if im.key, ok = r.plan.appendKey(im.key[:0], r.keyed()); !ok {
		return
	}
	known, ok := t.rows[string(im.key)]
	if !ok {
		return
	}
	r.unchanged = r.unchanged[:0]
	for i := range r.new {
		if r.new[i].state != isToast {
			continue
		}
		if v, ok := valueOf(known, i); ok {
			r.new[i] = v
			continue
		}
		r.unchanged = append(r.unchanged, r.plan.relation.Columns[i].Name)
	}
}

// valueOf gives the value of a column in an image.
func valueOf(known image, column int) (value, bool) {
	for _, f := range known.found {
		if f.column == column {
			return f.value, true
		}
	}
	return newValue(known.change, column)
}

// newValue reads one value of the new tuple of a change that was read before.
func newValue(c *change.Change, column int) (value, bool) {
	cur := cursor{rest: c.Raw}
	cur.take(5) // type and table
	if cur.uint8() != newImage {
		skipTuple(&cur)
		cur.uint8()
	}
	cur.uint16()
	var v value
	for range column + 1 {
		v = value{state: cur.uint8()}
		if v.state == isText {
			v.text = cur.take(int(cur.uint32()))
		}
	}
	return v, v.state == isText && !cur.short
}

func skipTuple(c *cursor) {
	for range c.uint16() {
		if c.uint8() == isText {
			c.take(int(c.uint32()))
		}
	}
}

// remember takes in a change that was decoded before.
func (d *Decoder) remember(c *change.Change) {
	if c.Relation == nil {
		return
	}
	im := &d.images
	t := im.tables[c.Relation.OID]
	if t == nil || t.relation != c.Relation {
		t = &tableImages{relation: c.Relation, rows: make(map[string]image)}
		im.tables[c.Relation.OID] = t
	}
	p := d.planOf(c.Relation)
	if c.Operation == change.Truncate || !p.keyed || !d.rememberRow(t, p, c) {
		clear(t.rows)
	}
	if c.Operation == change.Insert {
		t.inserts = true
	}
	if im.bytes > maxImages {
		for _, t := range im.tables {
			clear(t.rows)
		}
		im.bytes = 0
	}
}

// rememberRow takes in a row change. It reports false if the key is not known.
func (d *Decoder) rememberRow(t *tableImages, p *plan, c *change.Change) bool {
	const entry = 128 // bytes that a map takes for an entry, about
	im := &d.images
	r := Row{plan: p, old: im.old[:0], new: im.new[:0]}
	cur := cursor{rest: c.Raw}
	cur.take(5) // type and table
	err := r.tuples(&cur, c.Operation)
	im.old, im.new = r.old, r.new
	if err != nil {
		return false
	}
	var ok bool
	if im.key, ok = p.appendKey(im.key[:0], r.keyed()); !ok {
		return false
	}
	before, known := t.rows[string(im.key)]
	if r.hasOld {
		delete(t.rows, string(im.key))
	}
	if c.Operation == change.Delete {
		return true
	}
	now := image{change: c}
	for i := range r.new {
		v := r.new[i]
		if v.state == isToast && known && c.Operation == change.Update {
			v, v.filled = valueOf(before, i)
		}
		if v.filled {
			now.found = append(now.found, foundValue{i, v})
		}
	}
	if r.hasOld {
		if im.key, ok = p.appendKey(im.key[:0], r.new); !ok {
			return false
		}
	}
	im.bytes += entry + len(im.key) + 48*len(now.found)
	t.rows[string(im.key)] = now
	return true
}

// keyed gives the tuple with the key that the row had before the change.
func (r *Row) keyed() []value {
	if r.hasOld {
		return r.old
	}
	return r.new
}

// appendKey appends the key of a tuple, in a form that tells any two apart. It
// reports false if a part of it is not there.
func (p *plan) appendKey(dst []byte, tuple []value) ([]byte, bool) {
	for i := range tuple {
		if !p.columns[i].key {
			continue
		}
		if tuple[i].state != isText {
			return dst, false
		}
		dst = binary.BigEndian.AppendUint32(dst, uint32(len(tuple[i].text)))
		dst = append(dst, tuple[i].text...)
	}
	return dst, true
}
