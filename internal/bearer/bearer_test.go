package bearer

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestFileThatChangesTwiceWithinTheClockIsReadTwice(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	write(t, path, "one")
	tokens, err := Follow("a token", path, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	fi, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	write(t, path, "two")
	if err := os.Chtimes(path, time.Time{}, fi.ModTime()); err != nil {
		t.Fatal(err)
	}
	if got, err := tokens.First(); err != nil || got != "two" {
		t.Errorf("%v, %v", got, err)
	}
	// Once it has settled it is not read again, however often it is asked for.
	old := time.Now().Add(-time.Hour)
	for range 2 {
		if err := os.Chtimes(path, time.Time{}, old); err != nil {
			t.Fatal(err)
		}
		if got, err := tokens.First(); err != nil || got != "two" {
			t.Errorf("%v, %v", got, err)
		}
		write(t, path, "six")
	}
}
