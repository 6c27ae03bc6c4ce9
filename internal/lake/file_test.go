package lake_test

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-cdc/tidemark/internal/lake"
)

func TestNothingButObjectsIsListed(t *testing.T) {
	dir := t.TempDir()
	s := lake.NewFile(dir)
	if _, err := s.Put(t.Context(), "a/b", []byte("x"), lake.Condition{}); err != nil {
		t.Fatal(err)
	}
	// What a process that died while it wrote leaves behind.
	if err := os.WriteFile(filepath.Join(dir, ".tidemark", "tmp", "put-1"), []byte("half"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "empty", "folder"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	var keys []string
	for info, err := range s.List(t.Context(), "", "") {
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, info.Key)
	}
	if !slices.Equal(keys, []string{"a/b"}) {
		t.Errorf("%q", keys)
	}
}

func TestAPutLeavesNoTemporaryFile(t *testing.T) {
	dir := t.TempDir()
	s := lake.NewFile(dir)
	for _, cond := range []lake.Condition{{}, {IfNoneMatch: true}, {IfNoneMatch: true}, {IfMatch: "none"}} {
		s.Put(t.Context(), "a/b", []byte("x"), cond) //nolint:errcheck // some fail on purpose
	}
	left, err := os.ReadDir(filepath.Join(dir, ".tidemark", "tmp"))
	if err != nil || len(left) != 0 {
		t.Errorf("%v, %v", left, err)
	}
	info, err := os.Stat(filepath.Join(dir, "a", "b"))
	if err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("%v, %v", info, err)
	}
}

func TestAFileInTheFoldersPlaceIsNamed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	s := lake.NewFile(path)
	_, err := s.Put(t.Context(), "a", nil, lake.Condition{})
	if lake.Class(err).Kind != lake.Misconfigured || !strings.Contains(err.Error(), path) {
		t.Errorf("%v", err)
	}
	for _, err := range s.List(t.Context(), "", "") {
		if err == nil {
			t.Error("a file is listed as a folder")
		}
	}
}

func TestWhatADeadProcessHasLeftIsSweptAfterADay(t *testing.T) {
	dir := t.TempDir()
	tmp := filepath.Join(dir, ".tidemark", "tmp")
	if err := os.MkdirAll(tmp, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, age := range map[string]time.Duration{"put-old": 25 * time.Hour, "put-new": time.Hour} {
		path := filepath.Join(tmp, name)
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, time.Time{}, time.Now().Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := lake.NewFile(dir).Put(t.Context(), "k", nil, lake.Condition{}); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(tmp)
	if err != nil || len(left) != 1 || left[0].Name() != "put-new" {
		t.Errorf("%v, %v", left, err)
	}
}

func TestAWaitForTheLockEndsWithTheContext(t *testing.T) {
	dir := t.TempDir()
	s := lake.NewFile(dir)
	if _, err := s.Put(t.Context(), "k", []byte("x"), lake.Condition{}); err != nil {
		t.Fatal(err)
	}
	release := holdLock(t, dir)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	if _, err := s.Put(ctx, "k", []byte("y"), lake.Condition{}); !errors.Is(err, context.DeadlineExceeded) || lake.Class(err).Kind != lake.Canceled {
		t.Errorf("%v", err)
	}
	release()
	if _, err := s.Put(t.Context(), "k", []byte("y"), lake.Condition{}); err != nil {
		t.Errorf("%v", err)
	}
}

// holdLock takes the folder's lock in another process, until release.
func holdLock(t *testing.T, dir string) (release func()) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestLockHolder$")
	cmd.Env = append(os.Environ(), "LAKE_TEST_LOCK="+filepath.Join(dir, ".tidemark", "lock"))
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "locked\n" {
		t.Fatalf("the other process says %q: %v", line, err)
	}
	return func() {
		in.Close()
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
}
