package tracing

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/rand/v2"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/tidemark-cdc/tidemark/internal/segment"
)

// Node names a span in a trace, whether it was made yet or not, and says whether
// the trace is sampled. The zero Node names none.
type Node struct {
	trace   trace.TraceID
	span    trace.SpanID
	sampled bool
}

// rootOf is the root of a segment's trace, not sampled. The workflow ID alone
// would not do: the copy of a database has the same positions.
func rootOf(ref segment.Ref) Node {
	sum := digest(ref.SystemID, ref.Lake, ref.WorkflowID())
	return Node{trace: [16]byte(sum[:16]), span: [8]byte(sum[16:24])}
}

func nodeOf(c trace.SpanContext) Node { return Node{c.TraceID(), c.SpanID(), c.IsSampled()} }

// context is n as the library has it.
func (n Node) context() trace.SpanContext {
	c := trace.SpanContextConfig{TraceID: n.trace, SpanID: n.span}
	if n.sampled {
		c.TraceFlags = trace.FlagsSampled
	}
	return trace.NewSpanContext(c)
}

// IsZero says whether n names no span.
func (n Node) IsZero() bool { return !n.context().IsValid() }

// Below is the node below n that name stands for: the same for whoever asks.
func (n Node) Below(name string) Node {
	sum := digest(string(n.trace[:]), string(n.span[:]), name)
	n.span = [8]byte(sum[:8])
	return n
}

// traceparent is the header of W3C Trace Context, whose text Node's is.
const traceparent = "traceparent"

// String is the Node as W3C Trace Context has it in the header traceparent:
// 00-trace-span-flags, in hexadecimal.
func (n Node) String() string {
	header := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(trace.ContextWithSpanContext(context.Background(), n.context()), header)
	return header[traceparent]
}

// ParseNode reads what String prints.
func ParseNode(text string) (Node, error) {
	ctx := propagation.TraceContext{}.Extract(context.Background(), propagation.MapCarrier{traceparent: text})
	n := nodeOf(trace.SpanContextFromContext(ctx))
	if n.IsZero() {
		return Node{}, fmt.Errorf("parse traceparent %q: want 00-trace-span-flags in hexadecimal", text)
	}
	return n, nil
}

// digest is SHA-256 over parts, so that samplers may take the IDs that are made
// of it for random.
func digest(parts ...string) [sha256.Size]byte {
	h := sha256.New()
	h.Write([]byte("tidemark"))
	for _, p := range parts {
		h.Write([]byte{0})
		h.Write([]byte(p))
	}
	return [sha256.Size]byte(h.Sum(nil))
}

// ids gives spans the IDs that the context names, and random ones otherwise. It
// is an IDGenerator of OpenTelemetry's.
type ids struct{}

// selfKey is the context's key for the Node that the next span is to be.
type selfKey struct{}

func (ids) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	if self, ok := ctx.Value(selfKey{}).(Node); ok {
		return self.trace, self.span
	}
	var id trace.TraceID
	binary.NativeEndian.PutUint64(id[:8], some())
	binary.NativeEndian.PutUint64(id[8:], some())
	return id, spanID()
}

func (ids) NewSpanID(ctx context.Context, _ trace.TraceID) trace.SpanID {
	if self, ok := ctx.Value(selfKey{}).(Node); ok {
		return self.span
	}
	return spanID()
}

func spanID() (id trace.SpanID) {
	binary.NativeEndian.PutUint64(id[:], some())
	return id
}

// some is a random number that is not zero: an ID of zeros is none.
func some() uint64 { return rand.Uint64N(1<<64-1) + 1 }
