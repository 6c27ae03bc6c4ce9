package pgoutput

import (
	"fmt"

	"github.com/tidemark-cdc/tidemark/internal/change"
)

// Kind says what a message means to the streamer.
type Kind uint8

// The kinds of frames.
const (
	// None: nothing to keep. Relation, Type and Origin messages, and logical
	// messages that are filtered.
	None Kind = iota
	Begin
	Changes
	Commit
)

var kindNames = [...]string{None: "none", Begin: "begin", Changes: "changes", Commit: "commit"}

// String gives the kind in lower case.
func (k Kind) String() string {
	if int(k) >= len(kindNames) {
		return fmt.Sprintf("kind(%d)", uint8(k))
	}
	return kindNames[k]
}

// Frame is one framed message.
type Frame struct {
	Kind Kind
	// Changes are the changes of the message, at least one with Kind Changes
	// and none with any other. The slice is valid until the next call of Frame;
	// each change's Raw aliases the message that Frame was given.
	Changes []change.Change
	// CommitEnd is the end LSN of the transaction's commit record, with Kind
	// Commit only: acknowledging it acknowledges the transaction.
	CommitEnd change.LSN
}

// FramerConfig is what a Framer needs from outside.
type FramerConfig struct {
	// TimelineOf gives the timeline on which an LSN was written. Called once
	// per transaction, and for each non-transactional message that is kept.
	// Required.
	TimelineOf func(change.LSN) change.Timeline
	// Describe fills in the relation's Types. Called for each new version of a
	// relation, before the version is used, and again when a version whose types
	// have a composite is announced again, as it is after a new connection: its
	// fields may be others by then. The relation is not shared yet. Nil leaves
	// Types empty.
	Describe func(*change.Relation) error
	// Messages keeps logical messages as changes. Off, they are dropped; their
	// ordinals are taken either way.
	Messages bool
	// LocalOnly drops the changes of transactions that were replicated into the
	// server from elsewhere (those with an Origin message); their ordinals are
	// taken all the same. Filtered here and not by the server's origin option,
	// which 15 lacks, so that the setting shifts no ordinal.
	LocalOnly bool
	// MessageTime gives the commit time of a non-transactional message, which
	// has none of its own: the commit time of the change before it in the
	// stream. Required with Messages.
	MessageTime func() change.Time
}

// Framer frames the messages of one replication connection after another. Not
// safe for concurrent use.
type Framer struct {
	cfg       FramerConfig
	relations relations
	// changes and commitEnd are those of the message that is being framed.
	changes   []change.Change
	commitEnd change.LSN

	// The open transaction. next.Ordinal is the ordinal of its next change.
	open bool
	// foreign says that the transaction came from elsewhere, and is dropped.
	foreign    bool
	next       change.Position
	commitTime change.Time
	xid        uint32
}

// NewFramer returns a Framer for a new connection.
func NewFramer(cfg FramerConfig) *Framer {
	return &Framer{cfg: cfg, relations: newRelations()}
}

// Reset prepares for a new connection: no transaction is open, and the server
// has announced no relation.
//
// Each announcement of a relation makes a *change.Relation of its own, also where
// its version, and so its Hash, is the same.
func (f *Framer) Reset() {
	f.open = false
	f.relations.reset()
}

// InTransaction says whether the stream stands between a Begin and its Commit.
func (f *Framer) InTransaction() bool { return f.open }

// Frame frames one message, msg being the data of an XLogData message with the
// given WALStart, read at received.
//
// An error names walStart. It is ErrMalformed, permanent, or what Describe
// returned; after the latter the same message may be framed again, after any
// other the connection has to be made anew and the Framer Reset.
func (f *Framer) Frame(walStart change.LSN, received change.Time, msg []byte) (Frame, error) {
	f.changes, f.commitEnd = f.changes[:0], 0
	kind, err := f.frame(walStart, received, msg)
	if err != nil {
		return Frame{}, fmt.Errorf("frame pgoutput message at WAL %s: %w", walStart, err)
	}
	return Frame{Kind: kind, Changes: f.changes, CommitEnd: f.commitEnd}, nil
}

// frame leaves what it finds in changes and commitEnd. To hand a whole Frame up
// through each of the functions below took a tenth of the ordered path's time.
func (f *Framer) frame(walStart change.LSN, received change.Time, msg []byte) (Kind, error) {
	if len(msg) == 0 {
		return None, malformed("it is empty")
	}
	c := cursor{rest: msg[1:]}
	switch msg[0] {
	case 'B':
		return f.begin(&c)
	case 'C':
		return f.commit(&c)
	case 'I', 'U', 'D':
		return f.row(walStart, received, msg, &c)
	case 'T':
		return f.truncate(walStart, received, msg, &c)
	case 'M':
		return f.message(walStart, received, msg, &c)
	case 'R':
		return None, f.relations.announce(msg, f.cfg.Describe)
	case 'Y': // the types that matter come from Describe, with their facts
		c.uint32()
		c.text()
		c.text()
		return None, complete(&c, "type")
	case 'O':
		c.uint64()
		c.text()
		if !f.open {
			return None, malformed("origin outside of a transaction")
		}
		f.foreign = f.cfg.LocalOnly
		return None, complete(&c, "origin")
	case 'S', 'E', 'c', 'A', 'b', 'P', 'K', 'r', 'p':
		return None, malformed("type %q belongs to streamed or prepared transactions, which protocol version 1 without two_phase does not send", msg[0])
	}
	return None, malformed("unknown type %q", msg[0])
}

func (f *Framer) begin(c *cursor) (Kind, error) {
	lsn, at, xid := change.LSN(c.uint64()), change.FromPostgres(int64(c.uint64())), c.uint32()
	if err := complete(c, "begin"); err != nil {
		return None, err
	}
	if f.open {
		return None, malformed("begin of transaction %d inside transaction %d", xid, f.xid)
	}
	f.open, f.foreign = true, false
	f.next = change.Position{Timeline: f.cfg.TimelineOf(lsn), LSN: lsn}
	f.commitTime, f.xid = at, xid
	return Begin, nil
}

func (f *Framer) commit(c *cursor) (Kind, error) {
	c.uint8() // flags, unused
	lsn, end, at := change.LSN(c.uint64()), change.LSN(c.uint64()), change.FromPostgres(int64(c.uint64()))
	if err := complete(c, "commit"); err != nil {
		return None, err
	}
	switch {
	case !f.open:
		return None, malformed("commit at %s outside of a transaction", lsn)
	case lsn != f.next.LSN:
		return None, malformed("commit at %s of transaction %d, whose begin announced %s", lsn, f.xid, f.next.LSN)
	case at != f.commitTime:
		return None, malformed("commit of transaction %d has another commit time than its begin", f.xid)
	case end <= lsn:
		return None, malformed("commit record at %s of transaction %d ends at %s, before it begins", lsn, f.xid, end)
	}
	f.open, f.commitEnd = false, end
	return Commit, nil
}

// row frames an insert, update or delete, whose tuples are left to Decoder.
func (f *Framer) row(walStart change.LSN, received change.Time, msg []byte, c *cursor) (Kind, error) {
	oid, tuple := c.uint32(), c.uint8()
	if c.short {
		return None, malformed("row change of %d bytes is cut short", len(msg))
	}
	var op change.Operation
	switch t := msg[0]; {
	case t == 'I' && tuple == 'N':
		op = change.Insert
	case t == 'U' && (tuple == 'N' || tuple == 'K' || tuple == 'O'):
		op = change.Update
	case t == 'D' && (tuple == 'K' || tuple == 'O'):
		op = change.Delete
	default:
		return None, malformed("row change of type %q has a tuple of kind %q", t, tuple)
	}
	if err := f.add(walStart, received, msg, op, oid); err != nil {
		return None, err
	}
	return f.framed(), nil
}

// truncate frames a truncate of n tables as n changes that are joined: they
// share Raw, and no segment ends between them.
func (f *Framer) truncate(walStart change.LSN, received change.Time, msg []byte, c *cursor) (Kind, error) {
	n := c.uint32()
	c.uint8() // options: cascade, restart identity
	if c.short || n == 0 || uint64(len(c.rest)) != 4*uint64(n) {
		return None, malformed("truncate of %d tables has %d bytes", n, len(msg))
	}
	for range n {
		if err := f.add(walStart, received, msg, change.Truncate, c.uint32()); err != nil {
			return None, err
		}
		if !f.foreign {
			f.changes[len(f.changes)-1].Joined = true
		}
	}
	if !f.foreign {
		f.changes[n-1].Joined = false
	}
	return f.framed(), nil
}

// message frames a logical message (pg_logical_emit_message).
func (f *Framer) message(walStart change.LSN, received change.Time, msg []byte, c *cursor) (Kind, error) {
	m, err := parseMessage(c)
	if err != nil {
		return None, err
	}
	if m.Transactional {
		if !f.open {
			return None, malformed("transactional logical message outside of a transaction")
		}
		if !f.cfg.Messages || f.foreign {
			f.next.Ordinal++
			return None, nil
		}
		f.append(walStart, received, msg, change.Message, nil)
		return f.framed(), nil
	}
	if f.open {
		return None, malformed("non-transactional logical message inside transaction %d", f.xid)
	}
	if !f.cfg.Messages {
		return None, nil
	}
	at := m.LSN - 1
	f.changes = append(f.changes, change.Change{
		Position:   change.Position{Timeline: f.cfg.TimelineOf(at), LSN: at},
		LSN:        walStart,
		CommitTime: f.cfg.MessageTime(),
		Received:   received,
		Raw:        msg,
		Operation:  change.Message,
	})
	return f.framed(), nil
}

// add appends a change of the table oid.
func (f *Framer) add(walStart change.LSN, received change.Time, msg []byte, op change.Operation, oid uint32) error {
	if !f.open {
		return malformed("%s outside of a transaction", op)
	}
	rel := f.relations.announced(oid)
	if rel == nil {
		return malformed("%s in transaction %d of table %d, which was not announced", op, f.xid, oid)
	}
	if f.foreign {
		f.relations.dropped(oid)
	} else {
		rel = f.relations.afterDropped(rel)
	}
	f.append(walStart, received, msg, op, rel)
	return nil
}

func (f *Framer) append(walStart change.LSN, received change.Time, msg []byte, op change.Operation, rel *change.Relation) {
	if f.foreign {
		f.next.Ordinal++
		return
	}
	f.changes = append(f.changes, change.Change{
		Position:   f.next,
		LSN:        walStart,
		CommitTime: f.commitTime,
		Received:   received,
		Relation:   rel,
		Raw:        msg,
		XID:        f.xid,
		Operation:  op,
	})
	f.next.Ordinal++
}

func (f *Framer) framed() Kind {
	if len(f.changes) == 0 {
		return None
	}
	return Changes
}

func complete(c *cursor, what string) error {
	if !c.done() {
		return malformed("%s is of a wrong length", what)
	}
	return nil
}
