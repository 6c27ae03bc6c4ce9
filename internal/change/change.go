package change

import (
	"fmt"
	"time"
)

// Operation is what a change does.
type Operation uint8

// The operations, in the words that the lake uses.
const (
	Insert Operation = iota + 1
	Update
	Delete
	Truncate
	Message
)

var operationNames = [...]string{Insert: "insert", Update: "update", Delete: "delete", Truncate: "truncate", Message: "message"}

// String gives the word that stands in the lake's operation column.
func (o Operation) String() string {
	if o < Insert || o > Message {
		return fmt.Sprintf("operation(%d)", uint8(o))
	}
	return operationNames[o]
}

// Time is an instant in microseconds since 1970-01-01 00:00:00 UTC, the
// resolution of Postgres' timestamptz.
type Time int64

// pgEpoch is 2000-01-01 00:00:00 UTC, from which the replication protocol
// counts microseconds, as a Time.
const pgEpoch Time = 946684800 * 1e6

// FromPostgres converts a protocol timestamp: microseconds since 2000-01-01.
func FromPostgres(micros int64) Time { return pgEpoch + Time(micros) }

// TimeOf converts t, dropping what is below a microsecond.
func TimeOf(t time.Time) Time { return Time(t.UnixMicro()) }

// UTC converts to a time.Time in UTC.
func (t Time) UTC() time.Time { return time.UnixMicro(int64(t)).UTC() }

// Day is the UTC calendar day of t.
func (t Time) Day() Day {
	const micros = 24 * 3600 * 1e6
	d := int64(t) / micros
	if int64(t)%micros < 0 {
		d--
	}
	return Day(d)
}

// Day is a UTC calendar day, counted from 1970-01-01.
type Day int32

// String gives YYYY-MM-DD.
func (d Day) String() string { return d.start().Format(time.DateOnly) }

// Path gives YYYY/MM/DD, the day's folder in the lake.
func (d Day) Path() string { return d.start().Format("2006/01/02") }

func (d Day) start() time.Time { return time.Unix(int64(d)*24*3600, 0).UTC() }

// ParseDay reads YYYY-MM-DD.
func ParseDay(s string) (Day, error) {
	t, err := time.Parse(time.DateOnly, s)
	if err != nil {
		return 0, fmt.Errorf("parse day %q: want YYYY-MM-DD", s)
	}
	return Day(t.Unix() / (24 * 3600)), nil
}

// MarshalText is String.
func (d Day) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText is ParseDay.
func (d *Day) UnmarshalText(b []byte) (err error) {
	*d, err = ParseDay(string(b))
	return err
}

// Change is one row-level message of pgoutput, one truncate of one table (a
// Truncate message of n tables is n changes), or one logical message.
type Change struct {
	Position Position
	// LSN is the change's own, the WALStart of the XLogData that carried it.
	// It is data only: it is neither unique nor monotonic.
	LSN LSN
	// CommitTime is the transaction's, from its Begin message. It can go
	// backwards from one transaction to the next.
	CommitTime Time
	// Received is when the streamer read the change. It differs from one
	// reading to the next and is in no digest.
	Received Time
	// Relation is the version of the relation that was in force for this
	// change; nil only for a Message. Shared and never written to.
	Relation *Relation
	// Raw is the whole pgoutput message, its type byte included. Whoever hands
	// out a Change says how long Raw stays as it is.
	Raw []byte
	// XID is the transaction's ID; zero for a non-transactional message.
	XID       uint32
	Operation Operation
	// Joined says that the next change came in the same pgoutput message (the
	// tables of one TRUNCATE): no segment ends here.
	Joined bool
}
