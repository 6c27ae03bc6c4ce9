// Package tracingtest is a collector for tests: it takes spans by OTLP, over HTTP
// or gRPC on loopback, and keeps them.
package tracingtest

import (
	"compress/gzip"
	"context"
	"encoding/hex"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	_ "google.golang.org/grpc/encoding/gzip" // what a client may send
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
)

// Span is a span as the collector was told of it.
type Span struct {
	Name string
	// Trace, ID and Parent are in hexadecimal; Parent is empty for a root.
	Trace, ID, Parent string
	From, To          time.Time
	// Attributes and Resource have texts, whole numbers and booleans.
	Attributes, Resource map[string]any
	// Failed is the message of the status, if that is an error.
	Failed string
}

// Receiver is a collector. Its exported fields are set before anything is sent.
type Receiver struct {
	collector.UnimplementedTraceServiceServer

	// Answer, if set, is asked for the answer to a request over HTTP instead of
	// taking what it brings: by writing one, and returning true.
	Answer func(http.ResponseWriter, *http.Request) bool

	mu      sync.Mutex
	spans   []Span
	headers []map[string]string
	paths   []string
	environ []string
}

// NewReceiver listens for OTLP over HTTP until the test ends.
func NewReceiver(t testing.TB) *Receiver {
	r := &Receiver{}
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	r.environ = []string{"OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf", "OTEL_EXPORTER_OTLP_ENDPOINT=" + server.URL}
	return r
}

// NewGRPCReceiver listens for OTLP over gRPC until the test ends.
func NewGRPCReceiver(t testing.TB) *Receiver {
	t.Helper()
	r := &Receiver{}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	collector.RegisterTraceServiceServer(server, r)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-served; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	r.environ = []string{"OTEL_EXPORTER_OTLP_PROTOCOL=grpc", "OTEL_EXPORTER_OTLP_ENDPOINT=http://" + listener.Addr().String()}
	return r
}

// Environ are the variables that have a process send its spans here.
func (r *Receiver) Environ() []string { return r.environ }

// ServeHTTP implements http.Handler.
func (r *Receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if r.Answer != nil && r.Answer(w, req) {
		return
	}
	var from io.Reader = req.Body
	if req.Header.Get("Content-Encoding") == "gzip" {
		unzip, err := gzip.NewReader(from)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		from = unzip
	}
	body, err := io.ReadAll(from)
	var message collector.ExportTraceServiceRequest
	if err == nil {
		err = proto.Unmarshal(body, &message)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	headers := map[string]string{}
	for name := range req.Header {
		headers[name] = req.Header.Get(name)
	}
	r.take(&message, headers, req.URL.Path)
}

// Export implements the service of OTLP over gRPC.
func (r *Receiver) Export(ctx context.Context, message *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error) {
	headers := map[string]string{}
	md, _ := metadata.FromIncomingContext(ctx)
	for name, values := range md {
		headers[http.CanonicalHeaderKey(name)] = values[0]
	}
	r.take(message, headers, "")
	return &collector.ExportTraceServiceResponse{}, nil
}

func (r *Receiver) take(message *collector.ExportTraceServiceRequest, headers map[string]string, path string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.headers, r.paths = append(r.headers, headers), append(r.paths, path)
	for _, of := range message.GetResourceSpans() {
		about := values(of.GetResource().GetAttributes())
		for _, scope := range of.GetScopeSpans() {
			for _, s := range scope.GetSpans() {
				span := Span{
					Name: s.GetName(), Trace: hex.EncodeToString(s.GetTraceId()), ID: hex.EncodeToString(s.GetSpanId()), Parent: hex.EncodeToString(s.GetParentSpanId()),
					From: time.Unix(0, int64(s.GetStartTimeUnixNano())), To: time.Unix(0, int64(s.GetEndTimeUnixNano())),
					Attributes: values(s.GetAttributes()), Resource: about,
				}
				if s.GetStatus().GetCode() == tracepb.Status_STATUS_CODE_ERROR {
					span.Failed = s.GetStatus().GetMessage()
				}
				r.spans = append(r.spans, span)
			}
		}
	}
}

func values(list []*common.KeyValue) map[string]any {
	m := map[string]any{}
	for _, kv := range list {
		switch v := kv.GetValue().GetValue().(type) {
		case *common.AnyValue_StringValue:
			m[kv.GetKey()] = v.StringValue
		case *common.AnyValue_IntValue:
			m[kv.GetKey()] = v.IntValue
		case *common.AnyValue_BoolValue:
			m[kv.GetKey()] = v.BoolValue
		default:
			m[kv.GetKey()] = kv.GetValue().String()
		}
	}
	return m
}

// Spans are those that have come so far.
func (r *Receiver) Spans() []Span {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]Span(nil), r.spans...)
}

// Requests are the headers, with canonical names, and the paths of the requests
// that were taken so far.
func (r *Receiver) Requests() (headers []map[string]string, paths []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]map[string]string(nil), r.headers...), append([]string(nil), r.paths...)
}
