package lake_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/tidemark-cdc/tidemark/internal/leaktest"
)

func TestMain(m *testing.M) {
	leaktest.Main(m,
		// Connections that the S3 clients keep for their next request.
		goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"),
		goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"),
	)
}
