package tracing

import (
	"testing"

	"github.com/tidemark-cdc/tidemark/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }
