package e2e

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tidemark-cdc/tidemark/cmd/devstack/stack"
	"github.com/tidemark-cdc/tidemark/internal/lake"
	"github.com/tidemark-cdc/tidemark/internal/lake/laketest"
)

// The S3 store keeps the contract that the file and the in-memory store keep,
// directly and through the fault proxy.
func TestS3StoreKeepsTheContract(t *testing.T) {
	gateway, proxy := startGateway(t)
	for name, endpoint := range map[string]string{"gateway": gateway.Endpoint(), "fault proxy": proxy.Endpoint()} {
		t.Run(name, func(t *testing.T) {
			var prefixes atomic.Int64
			laketest.Run(t, func(t *testing.T) lake.Store {
				l, err := lake.Open(t.Context(), lake.Config{
					URL: fmt.Sprintf("s3://%s/%s/%d", gateway.Bucket(), strings.ReplaceAll(name, " ", "-"), prefixes.Add(1)), Endpoint: endpoint, Region: gateway.Region(),
				})
				if err != nil {
					t.Fatal(err)
				}
				return l.Store()
			})
		})
	}
}

// startGateway starts an S3 gateway with a fault proxy before it, and sets the
// credentials in the environment.
func startGateway(t *testing.T) (*stack.S3, *stack.FaultProxy) {
	t.Helper()
	gateway, err := stack.NewS3(t.TempDir(), stack.S3Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := gateway.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := gateway.Stop(); err != nil {
			t.Error(err)
		}
	})
	proxy, err := stack.NewFaultProxy(gateway.Address())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := proxy.Close(); err != nil {
			t.Error(err)
		}
	})
	for _, v := range gateway.Env() {
		name, value, _ := strings.Cut(v, "=")
		t.Setenv(name, value)
	}
	return gateway, proxy
}
