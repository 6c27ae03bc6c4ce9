package main

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidemark-cdc/tidemark/internal/lake"
	"github.com/tidemark-cdc/tidemark/internal/lake/laketest"
)

func TestVerifySaysHowMuchItHasRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := lake.NewMemory()
		if err := laketest.Fill(t.Context(), lake.New("memory", store), laketest.Chain("memory", 64, 16)); err != nil {
			t.Fatal(err)
		}
		// 16 are read at once, so this takes four rounds.
		slow := &laketest.Faulty{Store: store, BeforeRead: func(string) error { time.Sleep(900 * time.Millisecond); return nil }}
		sys, said := testConsole(true)
		sys.console.columns = func() int { return 0 }
		p := sys.progress()
		r, err := verified(t.Context(), lake.New("memory", slow), p)
		p.end()
		if err != nil || r.Objects != 64 {
			t.Fatalf("%d objects, %v", r.Objects, err)
		}
		has(t, "progress", said.String(), "\rtidemark: reading the lake: ", " objects of ", " days so far, ", " KiB (", clearLine, "\r"+clearLine)
	})
}
