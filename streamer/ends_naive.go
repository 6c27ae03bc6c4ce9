//go:build tidemark_naive_end

// This is a bug kept on purpose, in no build that anybody is given: the chaos
// tests build it to show that they see the rows that it loses.

package streamer

import (
	"github.com/tidemark-cdc/tidemark/internal/change"
	"github.com/tidemark-cdc/tidemark/internal/pgoutput"
	"github.com/tidemark-cdc/tidemark/streamer/replication"
)

// commitEnd takes the message's place in the WAL and its length for where the
// WAL goes on. A message's length has nothing to do with the WAL: what is
// committed right after it lies below.
func commitEnd(msg replication.Message, _ pgoutput.Frame) change.LSN {
	return msg.WALStart + change.LSN(len(msg.Data))
}
