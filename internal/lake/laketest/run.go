package laketest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tidemark-cdc/tidemark/internal/lake"
)

// Run checks that a store keeps the contract of lake.Store. open gives an empty
// store at every call.
func Run(t *testing.T, open func(t *testing.T) lake.Store) {
	RunUncontended(t, open)
	t.Run("of many writers of a free key one wins", func(t *testing.T) { oneCreatorWins(t, open(t)) })
	t.Run("no replacement gets lost between many writers", func(t *testing.T) { noLostReplacement(t, open(t)) })
	t.Run("a reader sees a whole object while it is replaced", func(t *testing.T) { wholeObjects(t, open(t)) })
}

// RunUncontended is Run without the tests in which writers race.
func RunUncontended(t *testing.T, open func(t *testing.T) lake.Store) {
	for _, c := range []struct {
		name string
		test func(*testing.T, lake.Store)
	}{
		{"what is put is got", roundTrip},
		{"a missing object is ErrNotFound", missing},
		{"a free key is taken once", ifNoneMatch},
		{"a replacement needs the present ETag", ifMatch},
		{"ranges are exact", ranges},
		{"a listing is in the order of the keys", listOrder},
		{"a listing goes past a thousand keys", listMany},
		{"a listing of nothing is empty", listNothing},
		{"what is removed is gone, and once is enough", remove},
		{"the probe passes and leaves nothing", probe},
		{"a key with an empty or hidden name is refused", badKeys},
		{"a canceled context ends every call", canceled},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, open(t)) })
	}
}

func put(t *testing.T, s lake.Store, key, body string, cond lake.Condition) string {
	t.Helper()
	etag, err := s.Put(t.Context(), key, []byte(body), cond)
	if err != nil {
		t.Fatalf("Put %s: %v", key, err)
	}
	if etag == "" {
		t.Fatalf("Put %s gives no ETag", key)
	}
	return etag
}

func get(t *testing.T, s lake.Store, key string) (string, string) {
	t.Helper()
	body, etag, err := s.Get(t.Context(), key)
	if err != nil {
		t.Fatalf("Get %s: %v", key, err)
	}
	return string(body), etag
}

func roundTrip(t *testing.T, s lake.Store) {
	for _, key := range []string{"a", "2024/05/01/x_y.zstd.parquet", "_tidemark/ack.json", "with space/and+plus=&.txt"} {
		body := strings.Repeat(key+"\x00\xff", 100)
		etag := put(t, s, key, body, lake.Condition{})
		if got, tag := get(t, s, key); got != body || tag != etag {
			t.Errorf("%q: got %d bytes with ETag %s, want %d with %s", key, len(got), tag, len(body), etag)
		}
		info, err := s.Head(t.Context(), key)
		if err != nil || info.Key != key || info.Size != int64(len(body)) || info.Modified.IsZero() {
			t.Errorf("Head %q: %+v, %v", key, info, err)
		}
	}
	second := put(t, s, "a", "new", lake.Condition{})
	if got, tag := get(t, s, "a"); got != "new" || tag != second {
		t.Errorf("an unconditional Put does not replace: %q", got)
	}
	big := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	if _, err := s.Put(t.Context(), "big", big, lake.Condition{IfNoneMatch: true}); err != nil {
		t.Fatal(err)
	}
	if got, _ := get(t, s, "big"); got != string(big) {
		t.Error("a MiB comes back changed")
	}
}

func missing(t *testing.T, s lake.Store) {
	put(t, s, "there/is", "x", lake.Condition{})
	for _, key := range []string{"nothing", "there", "there/is/not", "there/i"} {
		_, _, getErr := s.Get(t.Context(), key)
		_, rangeErr := s.GetRange(t.Context(), key, 0, 1)
		_, headErr := s.Head(t.Context(), key)
		for _, err := range []error{getErr, rangeErr, headErr} {
			if !errors.Is(err, lake.ErrNotFound) || lake.Class(err).Kind != lake.Missing {
				t.Errorf("%s: %v (%s), want ErrNotFound", key, err, lake.Class(err).Kind)
			}
		}
	}
}

func wantPrecondition(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, lake.ErrPrecondition) || lake.Class(err).Kind != lake.Precondition {
		t.Errorf("%v (%s), want ErrPrecondition", err, lake.Class(err).Kind)
	}
}

func ifNoneMatch(t *testing.T, s lake.Store) {
	put(t, s, "day/k", "first", lake.Condition{IfNoneMatch: true})
	_, err := s.Put(t.Context(), "day/k", []byte("second"), lake.Condition{IfNoneMatch: true})
	wantPrecondition(t, err)
	if got, _ := get(t, s, "day/k"); got != "first" {
		t.Errorf("the object was replaced: %q", got)
	}
}

func ifMatch(t *testing.T, s lake.Store) {
	_, err := s.Put(t.Context(), "k", []byte("x"), lake.Condition{IfMatch: "\"0123456789abcdef0123456789abcdef\""})
	wantPrecondition(t, err)
	if _, err := s.Head(t.Context(), "k"); !errors.Is(err, lake.ErrNotFound) {
		t.Errorf("a replacement of nothing has made an object: %v", err)
	}
	one := put(t, s, "k", "one", lake.Condition{IfNoneMatch: true})
	two := put(t, s, "k", "two", lake.Condition{IfMatch: one})
	if one == two {
		t.Errorf("two contents have the same ETag %s", one)
	}
	_, err = s.Put(t.Context(), "k", []byte("three"), lake.Condition{IfMatch: one})
	wantPrecondition(t, err)
	if got, tag := get(t, s, "k"); got != "two" || tag != two {
		t.Errorf("got %q, want what was put last under the right ETag", got)
	}
}

func ranges(t *testing.T, s lake.Store) {
	put(t, s, "k", "0123456789", lake.Condition{})
	for _, c := range []struct {
		offset, length int64
		want           string
	}{{0, 10, "0123456789"}, {0, 1, "0"}, {9, 1, "9"}, {3, 4, "3456"}} {
		if got, err := s.GetRange(t.Context(), "k", c.offset, c.length); err != nil || string(got) != c.want {
			t.Errorf("%d bytes from %d: %q, %v, want %q", c.length, c.offset, got, err, c.want)
		}
	}
	for _, c := range [][2]int64{{0, 11}, {9, 2}, {10, 1}, {11, 1}} {
		if got, err := s.GetRange(t.Context(), "k", c[0], c[1]); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%d bytes from %d of 10: %q, %v, want an error", c[1], c[0], got, err)
		}
	}
}

func list(t *testing.T, s lake.Store, prefix, after string) []string {
	t.Helper()
	keys := []string{}
	for info, err := range s.List(t.Context(), prefix, after) {
		if err != nil {
			t.Fatalf("List %q after %q: %v", prefix, after, err)
		}
		keys = append(keys, info.Key)
	}
	return keys
}

func listOrder(t *testing.T, s lake.Store) {
	// "." and "-" stand before "/", so folders and files mix.
	keys := []string{"2024/01/01/a", "2024/01/01/b", "2024/01/02/a", "2024/01.txt", "2024/01-x/y", "2023/12/31/z", "_q/2024/01/01/a", "_t/p.json", "zz"}
	for i, key := range keys {
		put(t, s, key, strings.Repeat("x", i+1), lake.Condition{})
	}
	slices.Sort(keys)
	for _, prefix := range []string{"", "2", "2024/", "2024/01", "2024/01/", "2024/01/01/a", "_", "_q/2024/01/01/", "none", "2024/01/02/a/b"} {
		for _, after := range append([]string{"", "2024", "2024/01/", "2024/01/01/aa", "2024/01/01/~", "~"}, keys...) {
			want := []string{}
			for _, key := range keys {
				if strings.HasPrefix(key, prefix) && key > after {
					want = append(want, key)
				}
			}
			if got := list(t, s, prefix, after); !slices.Equal(got, want) {
				t.Errorf("List %q after %q:\n got %q\nwant %q", prefix, after, got, want)
			}
		}
	}
	for info, err := range s.List(t.Context(), "zz", "") {
		if err != nil || info.Size != 9 || info.Modified.IsZero() {
			t.Errorf("%+v, %v", info, err)
		}
	}
	n := 0
	for range s.List(t.Context(), "", "") {
		if n++; n == 2 {
			break
		}
	}
}

func listMany(t *testing.T, s lake.Store) {
	const n = 1003
	want := make([]string, n)
	next := make(chan string)
	var writers sync.WaitGroup
	for range 8 {
		writers.Go(func() {
			for key := range next {
				if _, err := s.Put(t.Context(), key, []byte("x"), lake.Condition{IfNoneMatch: true}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for i := range want {
		want[i] = fmt.Sprintf("day/%05d", i)
		next <- want[i]
	}
	close(next)
	writers.Wait()
	if got := list(t, s, "day/", ""); !slices.Equal(got, want) {
		t.Errorf("got %d keys, want %d in order", len(got), n)
	}
	if got := list(t, s, "", "day/01000"); !slices.Equal(got, want[1001:]) {
		t.Errorf("got %q", got)
	}
}

func listNothing(t *testing.T, s lake.Store) {
	if got := list(t, s, "", ""); len(got) != 0 {
		t.Errorf("an empty store lists %q", got)
	}
}

func badKeys(t *testing.T, s lake.Store) {
	for _, key := range []string{"", "/a", "a/", "a//b", ".", "..", "a/../b", ".tidemark/lock", "a/.b"} {
		if _, err := s.Put(t.Context(), key, []byte("x"), lake.Condition{}); err == nil {
			t.Errorf("Put takes the key %q", key)
		}
		if err := s.Remove(t.Context(), key); err == nil {
			t.Errorf("Remove takes the key %q", key)
		}
	}
	if got := list(t, s, "", ""); len(got) != 0 {
		t.Errorf("a refused key is there: %q", got)
	}
}

func canceled(t *testing.T, s lake.Store) {
	put(t, s, "k", "x", lake.Condition{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, putErr := s.Put(ctx, "other", []byte("x"), lake.Condition{})
	_, _, getErr := s.Get(ctx, "k")
	_, rangeErr := s.GetRange(ctx, "k", 0, 1)
	_, headErr := s.Head(ctx, "k")
	var listErr error
	for _, err := range s.List(ctx, "", "") {
		listErr = err
	}
	removeErr := s.Remove(ctx, "k")
	for _, err := range []error{putErr, getErr, rangeErr, headErr, listErr, removeErr} {
		if !errors.Is(err, context.Canceled) || lake.Class(err).Kind != lake.Canceled {
			t.Errorf("%v (%s), want context.Canceled", err, lake.Class(err).Kind)
		}
	}
	if got := list(t, s, "", ""); !slices.Equal(got, []string{"k"}) {
		t.Errorf("canceled calls have left %q", got)
	}
}

func oneCreatorWins(t *testing.T, s lake.Store) {
	for round := range 5 {
		key := fmt.Sprintf("k%d", round)
		var won atomic.Int64
		var winner atomic.Value
		var writers sync.WaitGroup
		for w := range 8 {
			writers.Go(func() {
				body := fmt.Sprintf("writer %d", w)
				_, err := s.Put(t.Context(), key, []byte(body), lake.Condition{IfNoneMatch: true})
				switch {
				case err == nil:
					won.Add(1)
					winner.Store(body)
				case !errors.Is(err, lake.ErrPrecondition):
					t.Errorf("writer %d: %v", w, err)
				}
			})
		}
		writers.Wait()
		if won.Load() != 1 {
			t.Fatalf("%d writers have made %s", won.Load(), key)
		}
		if got, _ := get(t, s, key); got != winner.Load() {
			t.Errorf("%s holds %q, and %q has won", key, got, winner.Load())
		}
	}
}

func noLostReplacement(t *testing.T, s lake.Store) {
	put(t, s, "k", "", lake.Condition{IfNoneMatch: true})
	const writers, each = 4, 5
	var group sync.WaitGroup
	for w := range writers {
		group.Go(func() {
			for n := 0; n < each; {
				body, etag, err := s.Get(t.Context(), "k")
				if err != nil {
					t.Error(err)
					return
				}
				// The text is new each time, so that ETags never repeat.
				_, err = s.Put(t.Context(), "k", fmt.Appendf(body, "%d.%d ", w, n), lake.Condition{IfMatch: etag})
				switch {
				case err == nil:
					n++
				case !errors.Is(err, lake.ErrPrecondition):
					t.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
	got, _ := get(t, s, "k")
	if n := len(strings.Fields(got)); n != writers*each {
		t.Errorf("%d of %d replacements are there: %q", n, writers*each, got)
	}
}

func wholeObjects(t *testing.T, s lake.Store) {
	body := func(c byte) []byte { return bytes.Repeat([]byte{c}, 256<<10) }
	if _, err := s.Put(t.Context(), "k", body('a'), lake.Condition{}); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	var writer sync.WaitGroup
	writer.Go(func() {
		defer close(done)
		for i := range 20 {
			if _, err := s.Put(t.Context(), "k", body('b'+byte(i)), lake.Condition{}); err != nil {
				t.Error(err)
			}
		}
	})
	for reading := true; reading; {
		select {
		case <-done:
			reading = false
		default:
		}
		got, _, err := s.Get(t.Context(), "k")
		if err != nil {
			t.Error(err)
			break
		}
		if len(got) != 256<<10 || bytes.Count(got, got[:1]) != len(got) {
			t.Errorf("read a torn object of %d bytes", len(got))
			break
		}
	}
	writer.Wait()
}
