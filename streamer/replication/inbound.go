package replication

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
)

// inbound is what comes from the server. It gives CopyData messages out where
// they lie in its buffer, larger ones in memory of their own, and all others to
// pgproto3 as an io.Reader that never goes beyond the end of one: so the next
// message is always here.
type inbound struct {
	r *bufio.Reader
	// taken is the length of the message that data has given out, left what
	// pgproto3 has still to read of another one. One of them is zero.
	taken, left int
}

const (
	// headerLen is the length of a message's type and of its length ("Message
	// Formats" in the documentation of the protocol).
	headerLen = 1 + 4
	// maxMessage is the longest that a message can be: an int32 counts it.
	maxMessage = 1<<31 - 1
	// copyData is the type of CopyData.
	copyData = 'd'
)

// messageLen is a message's length with its header, as the server says: less than
// headerLen is wrong, which pgproto3 tells.
func messageLen(header []byte) int { return 1 + int(binary.BigEndian.Uint32(header[1:])) }

// data waits for a message, and gives the payload of one that is a CopyData; it
// is valid until the next call. Without ok and an error the message is pgproto3's
// to read.
func (i *inbound) data() (payload []byte, ok bool, err error) {
	if i.left > 0 {
		return nil, false, nil
	}
	_, _ = i.r.Discard(i.taken) // it is in the buffer
	i.taken = 0
	header, err := i.r.Peek(headerLen)
	if err != nil {
		return nil, false, unexpected(err)
	}
	n := messageLen(header)
	if header[0] != copyData || n < headerLen || n > maxMessage {
		return nil, false, nil
	}
	if n > readBuffer {
		// Not by pgproto3, which would keep the memory until it reads again.
		large := make([]byte, n)
		if _, err := io.ReadFull(i.r, large); err != nil {
			return nil, false, unexpected(err)
		}
		return large[headerLen:], true, nil
	}
	message, err := i.r.Peek(n)
	if err != nil {
		return nil, false, unexpected(err)
	}
	i.taken = n
	return message[headerLen:], true, nil
}

// back takes the last payload back, which was in the buffer: the next call of data
// gives it once more.
func (i *inbound) back() { i.taken = 0 }

// more says whether data would give a payload without waiting.
func (i *inbound) more() bool {
	rest := i.r.Buffered() - i.taken
	if i.left > 0 || rest < headerLen {
		return false
	}
	ahead, err := i.r.Peek(i.taken + headerLen)
	if err != nil {
		return false
	}
	n := messageLen(ahead[i.taken:])
	return ahead[i.taken] == copyData && n >= headerLen && n <= rest
}

// Read implements io.Reader for pgproto3.
func (i *inbound) Read(p []byte) (int, error) {
	if i.left == 0 {
		header, err := i.r.Peek(headerLen)
		if err != nil {
			return 0, err
		}
		i.left = max(headerLen, messageLen(header))
	}
	n, err := i.r.Read(p[:min(len(p), i.left)])
	i.left -= n
	return n, err
}

// unexpected is err, or that the stream has ended: a server says so before.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
