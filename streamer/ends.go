//go:build !tidemark_naive_end

package streamer

import (
	"github.com/tidemark-cdc/tidemark/internal/change"
	"github.com/tidemark-cdc/tidemark/internal/pgoutput"
	"github.com/tidemark-cdc/tidemark/streamer/replication"
)

// commitEnd is the LSN that may be acknowledged when the transaction that msg
// ends is in the lake: the end of its commit record, as the message itself says.
// ends_naive.go is what happens otherwise.
func commitEnd(_ replication.Message, frame pgoutput.Frame) change.LSN { return frame.CommitEnd }
