package pgoutput

import (
	"fmt"

	"github.com/tidemark-cdc/tidemark/internal/change"
)

// Decoder decodes the tuples of changes into JSON. It keeps what it has worked
// out of each relation version and reuses its buffers, so a worker has one per
// upload. Not safe for concurrent use.
type Decoder struct {
	plans  map[*change.Relation]*plan
	row    Row
	writer writer
	images images
	// readBack may be nil.
	readBack ReadBack
	key      []change.KeyValue // scratch
}

// NewDecoder returns a Decoder.
func NewDecoder() *Decoder { return &Decoder{plans: make(map[*change.Relation]*plan)} }

// plan is what decoding needs of a relation version.
type plan struct {
	relation *change.Relation
	columns  []columnPlan
	// keyed says that an old image has the key and nothing else.
	keyed bool
}

type columnPlan struct {
	label []byte // "name": as it stands in the object, escaped
	shape *shape
	key   bool
}

// value is one column of a tuple: state is the kind byte of TupleData, or
// absent; text is there for 't' only and aliases the message.
type value struct {
	state byte
	// filled says that the value was not sent where it stands now.
	filled bool
	text   []byte
}

const (
	isNull    = 'n'
	isToast   = 'u' // TOASTed, unchanged and not sent
	isText    = 't'
	isAbsent  = 0 // not part of a key-only image
	keyImage  = 'K'
	fullImage = 'O'
	newImage  = 'N'
)

// Row is a decoded change. It is valid until the next call of Decode, and as
// long as the change's Raw is.
type Row struct {
	plan      *plan
	old, new  []value
	hasOld    bool
	hasNew    bool
	unchanged []string
	readBack  []string
	message   LogicalMessage
	isMessage bool
	writer    *writer
}

// Follow says that the changes of batch are decoded next, one after the other.
// They and their Raw stay as they are for as long as the Decoder is used.
//
// An unchanged TOASTed value of a change that is followed is also looked for in
// the images of the same key before it, back to the Decoder's first change. Each
// change is to be decoded; what is decoded without Follow is not remembered.
func (d *Decoder) Follow(batch []change.Change) { d.images.follow(batch) }

// Decode reads and checks the raw message of c against its relation. The error
// is ErrMalformed and names the position; the row is nil then.
func (d *Decoder) Decode(c *change.Change) (*Row, error) {
	r := &d.row
	followed := d.images.advance(c)
	*r = Row{old: r.old[:0], new: r.new[:0], unchanged: r.unchanged[:0], readBack: r.readBack[:0], writer: &d.writer}
	if err := d.decode(r, c); err != nil {
		return nil, fmt.Errorf("decode %s at position %s: %w", c.Operation, c.Position, err)
	}
	if followed && len(r.unchanged) > 0 {
		d.fillFromImages(r, c)
	}
	if d.readBack != nil && len(r.unchanged) > 0 {
		if err := d.fillFromDatabase(r, c); err != nil {
			return nil, fmt.Errorf("decode %s at position %s: %w", c.Operation, c.Position, err)
		}
	}
	return r, nil
}

func (d *Decoder) decode(r *Row, c *change.Change) (err error) {
	if c.Operation == change.Message {
		r.isMessage = true
		r.message, err = ParseMessage(c.Raw)
		return err
	}
	if c.Relation == nil {
		return malformed("the change has no relation")
	}
	if len(c.Raw) == 0 {
		return malformed("it is empty")
	}
	r.plan = d.planOf(c.Relation)
	cur := cursor{rest: c.Raw[1:]}
	err = checkType(c)
	if err == nil && c.Operation == change.Truncate {
		return nil
	}
	if err == nil {
		if oid := cur.uint32(); oid != c.Relation.OID {
			return malformed("it is of table %d, not of %s, which is %d", oid, c.Relation.QualifiedName(), c.Relation.OID)
		}
		err = r.tuples(&cur, c.Operation)
	}
	if err != nil {
		return fmt.Errorf("table %s: %w", c.Relation.QualifiedName(), err)
	}
	return nil
}

// tuples reads the one or two tuples of a row change.
func (r *Row) tuples(c *cursor, op change.Operation) error {
	image := c.uint8()
	if image == keyImage || image == fullImage {
		if op == change.Insert {
			return malformed("an insert has an old image")
		}
		var err error
		if r.old, err = r.plan.tuple(r.old, c, image == keyImage); err != nil {
			return err
		}
		r.hasOld = true
		if op == change.Update {
			image = c.uint8()
		}
	}
	if op != change.Delete {
		if image != newImage {
			return malformed("its new image is of kind %q", image)
		}
		var err error
		if r.new, err = r.plan.tuple(r.new, c, false); err != nil {
			return err
		}
		r.hasNew = true
		r.fill()
	} else if !r.hasOld {
		return malformed("a delete has an image of kind %q", image)
	}
	return complete(c, "it")
}

// tuple reads one TupleData (logicalrep_write_tuple in proto.c) into dst. A
// key-only image sends nulls for the columns outside the key, which are absent
// rather than null.
func (p *plan) tuple(dst []value, c *cursor, keyOnly bool) ([]value, error) {
	n := int(c.uint16())
	if !c.short && n != len(p.columns) {
		return dst, malformed("it has %d columns, its relation %d", n, len(p.columns))
	}
	for i := range p.columns {
		v := value{state: c.uint8()}
		switch v.state {
		case isText:
			v.text = c.take(int(c.uint32()))
		case isNull, isToast:
		default:
			if !c.short {
				return dst, malformed("column %d is of kind %q", i+1, v.state)
			}
		}
		if c.short {
			return dst, malformed("it ends within column %d", i+1)
		}
		if keyOnly && (v.state == isNull || !p.columns[i].key) {
			v = value{state: isAbsent}
		}
		dst = append(dst, v)
	}
	return dst, nil
}

// fill takes values that Postgres did not send, since they are TOASTed and
// unchanged, from the old image, and notes those that are not there either. An
// old image holds TOASTed values in full (ExtractReplicaIdentity in
// src/backend/access/heap/heapam.c).
func (r *Row) fill() {
	for i := range r.new {
		if r.new[i].state != isToast {
			continue
		}
		if r.hasOld && r.old[i].state == isText {
			r.new[i] = value{state: isText, filled: true, text: r.old[i].text}
			continue
		}
		r.unchanged = append(r.unchanged, r.plan.relation.Columns[i].Name)
	}
}

// HasBefore and HasAfter say whether the image exists. A truncate has neither,
// and a logical message has its content as after.
func (r *Row) HasBefore() bool { return r.hasOld }
func (r *Row) HasAfter() bool  { return r.hasNew || r.isMessage }

// Unchanged names, in column order, the columns whose TOASTed value Postgres
// did not send and no image holds: they are absent from after. The slice is
// valid until the next Decode.
func (r *Row) Unchanged() []string { return r.unchanged }

// AppendBefore appends the old image as a JSON object, or nothing if there is
// none.
func (r *Row) AppendBefore(dst []byte) ([]byte, error) {
	if !r.hasOld {
		return dst, nil
	}
	return r.appendObject(dst, r.old)
}

// AppendAfter appends the new image as a JSON object, or nothing if there is
// none.
func (r *Row) AppendAfter(dst []byte) ([]byte, error) {
	switch {
	case r.isMessage:
		return r.message.AppendJSON(dst), nil
	case r.hasNew:
		return r.appendObject(dst, r.new)
	}
	return dst, nil
}

// appendObject appends a tuple as composite_to_json does: columns in order, no
// white space.
func (r *Row) appendObject(dst []byte, tuple []value) ([]byte, error) {
	p := r.plan
	dst = append(dst, '{')
	first := true
	for i := range tuple {
		v := &tuple[i]
		if v.state == isAbsent || v.state == isToast {
			continue
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = append(dst, p.columns[i].label...)
		if v.state == isNull {
			dst = append(dst, "null"...)
			continue
		}
		var err error
		if dst, err = r.writer.column(dst, p.columns[i].shape, v.text); err != nil {
			return nil, fmt.Errorf("column %s of table %s: %w", p.relation.Columns[i].Name, p.relation.QualifiedName(), err)
		}
	}
	return append(dst, '}'), nil
}

func (d *Decoder) planOf(rel *change.Relation) *plan {
	if p := d.plans[rel]; p != nil {
		return p
	}
	shapes := newShapes(rel.Types)
	p := &plan{relation: rel, columns: make([]columnPlan, len(rel.Columns))}
	for i, col := range rel.Columns {
		p.columns[i] = columnPlan{
			label: label(col.Name),
			shape: shapes.of(col.Type),
			key:   col.Key,
		}
		p.keyed = p.keyed || col.Key && (rel.Identity == 'd' || rel.Identity == 'i')
	}
	d.plans[rel] = p
	return p
}
