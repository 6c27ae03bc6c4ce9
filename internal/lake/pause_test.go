package lake_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-cdc/tidemark/internal/lake"
	"github.com/tidemark-cdc/tidemark/internal/lake/laketest"
)

func TestAPauseStandsUntilItIsTakenBack(t *testing.T) {
	l := lake.New("memory", lake.NewMemory())
	if p, err := l.ReadPause(t.Context()); p != nil || err != nil {
		t.Fatalf("a new lake: %v, %v", p, err)
	}
	first := lake.Pause{By: "ann", Reason: "the bucket moves", Since: time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)}
	if p, made, err := l.WritePause(t.Context(), first); err != nil || !made || p.By != "ann" {
		t.Fatalf("%v, %v, %v", p, made, err)
	}
	if p, made, err := l.WritePause(t.Context(), lake.Pause{By: "bob", Since: time.Now()}); err != nil || made || p.By != "ann" {
		t.Errorf("paused again: %v, %v, %v", p, made, err)
	}
	p, err := l.ReadPause(t.Context())
	if err != nil || p == nil || p.String() != "paused by ann since 2026-01-02T03:04:05Z because: the bucket moves" {
		t.Errorf("%v, %v", p, err)
	}
	if p, err := l.RemovePause(t.Context()); err != nil || p == nil || p.By != "ann" {
		t.Errorf("%v, %v", p, err)
	}
	if p, err := l.RemovePause(t.Context()); err != nil || p != nil {
		t.Errorf("resumed again: %v, %v", p, err)
	}
}

func TestAPauseWhoseReplyIsLostIsOnesOwn(t *testing.T) {
	lost := errors.New("the reply is lost")
	store := &laketest.Faulty{Store: lake.NewMemory(), AfterPut: func(string) error { return lost }}
	l := lake.New("memory", store)
	p := lake.Pause{By: "ann", Since: time.Now()}
	if _, _, err := l.WritePause(t.Context(), p); !errors.Is(err, lost) {
		t.Fatal(err)
	}
	if _, made, err := l.WritePause(t.Context(), p); err != nil || !made {
		t.Errorf("repeated: %v, %v", made, err)
	}
}

func TestAPausedLakeIsWell(t *testing.T) {
	x := wholeLake(t)
	if _, _, err := x.l.WritePause(t.Context(), lake.Pause{By: "ann", Since: time.Now()}); err != nil {
		t.Fatal(err)
	}
	if r := x.verify(); !r.OK() {
		t.Errorf("%+v", r.Findings)
	}
}

func TestADamagedPauseIsAnError(t *testing.T) {
	x := wholeLake(t)
	x.put("_tidemark/paused.json", []byte("{"))
	if _, err := x.l.ReadPause(t.Context()); err == nil || !strings.Contains(err.Error(), "_tidemark/paused.json") {
		t.Errorf("got %v", err)
	}
}
