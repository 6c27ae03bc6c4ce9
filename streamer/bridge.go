package streamer

import (
	"github.com/tidemark-cdc/tidemark/internal/change"
	"github.com/tidemark-cdc/tidemark/streamer/ring"
)

// bridges lead over the rows at the end of an object that a failover has
// abandoned. The lake's chain goes by the object: the next segment follows its
// last position. The ring goes by the stream, in which that position never
// comes again, and which goes on below it.
type bridges map[change.Position]change.Position // from the ring's to the chain's

// begin is the last position that the ring begins with, for the chain's.
func (l *life) begin(last change.Position) change.Position {
	d, ok := l.gone.Over(last)
	if !ok {
		return last
	}
	l.bridge(d.Through, last)
	return d.Through
}

// bridge says that to is the chain's position where from is the ring's.
func (l *life) bridge(from, to change.Position) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.bridges == nil {
		l.bridges = bridges{}
	}
	l.bridges[from] = to
}

// ack is the ring's, with the position by which the chain goes on.
func (l *life) ack() ring.Ack {
	ack := l.buf.ack()
	l.mu.Lock()
	defer l.mu.Unlock()
	if to, ok := l.bridges[ack.Last]; ok {
		ack.Last = to
	}
	return ack
}
