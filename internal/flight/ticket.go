package flight

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/tidemark-cdc/tidemark/internal/segment"
)

// maxTicket bounds a ticket's JSON in bytes.
const maxTicket = 4096

type wireTicket struct {
	Version int `json:"version"`
	segment.Ticket
}

// encodeTicket gives the bytes of t in a DoGet.
func encodeTicket(t segment.Ticket) ([]byte, error) {
	b, err := json.Marshal(wireTicket{Version: version, Ticket: t})
	if err != nil {
		return nil, fmt.Errorf("encode ticket of segment %s: %w", t.First, err)
	}
	if len(b) > maxTicket {
		return nil, fmt.Errorf("encode ticket of segment %s: %d bytes are more than %d; the pipeline's name is too long", t.First, len(b), maxTicket)
	}
	return b, nil
}

// decodeTicket reads what encodeTicket made, and refuses a ticket that no
// segment can have.
func decodeTicket(b []byte) (segment.Ticket, error) {
	if len(b) > maxTicket {
		return segment.Ticket{}, fmt.Errorf("ticket of %d bytes: want at most %d", len(b), maxTicket)
	}
	// The version first and alone: of another one, nothing else is known.
	var v struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal(b, &v); err != nil {
		return segment.Ticket{}, fmt.Errorf("ticket: %w", err)
	}
	if v.Version != version {
		return segment.Ticket{}, fmt.Errorf("ticket of version %d: this streamer speaks version %d; run the same version of Tidemark on both sides", v.Version, version)
	}
	var t wireTicket
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&t); err != nil {
		return segment.Ticket{}, fmt.Errorf("ticket: %w", err)
	}
	switch {
	case t.Pipeline == "":
		return segment.Ticket{}, fmt.Errorf("ticket of segment %s: it names no pipeline", t.First)
	case t.First.IsZero() || t.Last.Less(t.First):
		return segment.Ticket{}, fmt.Errorf("ticket of segment %s: its last position %s stands before its first", t.First, t.Last)
	case t.First.Timeline != t.Last.Timeline:
		return segment.Ticket{}, fmt.Errorf("ticket of segment %s: its last position %s is on another timeline", t.First, t.Last)
	}
	return t.Ticket, nil
}
