package lake_test

import (
	"testing"

	"github.com/tidemark-cdc/tidemark/internal/lake"
	"github.com/tidemark-cdc/tidemark/internal/lake/laketest"
)

func TestMemoryKeepsTheContract(t *testing.T) {
	laketest.Run(t, func(*testing.T) lake.Store { return lake.NewMemory() })
}

func TestFileKeepsTheContract(t *testing.T) {
	laketest.Run(t, func(t *testing.T) lake.Store { return lake.NewFile(t.TempDir() + "/made/by the store") })
}

func TestUnconditionalKeepsTheContractWithoutRaces(t *testing.T) {
	laketest.RunUncontended(t, func(*testing.T) lake.Store { return lake.Unconditional(lake.NewMemory()) })
}
