package lake_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidemark-cdc/tidemark/internal/lake"
	"github.com/tidemark-cdc/tidemark/internal/lake/laketest"
)

func TestS3KeepsTheContract(t *testing.T) {
	laketest.Run(t, func(t *testing.T) lake.Store {
		return startS3(t).open(t, "some/prefix", nil).Store()
	})
	t.Run("at the bucket's root", func(t *testing.T) {
		laketest.RunUncontended(t, func(t *testing.T) lake.Store {
			return startS3(t).open(t, "", nil).Store()
		})
	})
}

func TestSettingsReachTheStore(t *testing.T) {
	f := startS3(t)
	l := f.open(t, "p", func(c *lake.Config) {
		c.SSE, c.KMSKeyID, c.StorageClass = "aws:kms", "alias/lake", "STANDARD_IA"
	})
	ref := laketest.Chain(l.URL(), 1, 1)[0]
	if _, err := l.PutSegment(t.Context(), ref, object(t, ref)); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"If-None-Match":                               "*",
		"X-Amz-Server-Side-Encryption":                "aws:kms",
		"X-Amz-Server-Side-Encryption-Aws-Kms-Key-Id": "alias/lake",
		"X-Amz-Storage-Class":                         "STANDARD_IA",
		"Content-Type":                                "application/vnd.apache.parquet",
		"X-Amz-Checksum-Crc32":                        "", // when_required
	} {
		if got := f.header("PUT", name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if auth := f.header("PUT", "Authorization"); !strings.Contains(auth, "/us-east-1/s3/") {
		t.Errorf("signed for %q", auth)
	}
	if err := l.CreateIdentity(t.Context(), laketest.Identity()); err != nil {
		t.Fatal(err)
	}
	if got := f.header("PUT", "X-Amz-Storage-Class"); got != "" {
		t.Errorf("a record has the storage class %q", got)
	}
	if got := f.header("PUT", "X-Amz-Server-Side-Encryption"); got != "aws:kms" {
		t.Errorf("a record is encrypted with %q", got)
	}

	l = f.open(t, "p2", func(c *lake.Config) { c.Checksum, c.Region = "when_supported", "eu-central-1" })
	if err := l.CreateIdentity(t.Context(), laketest.Identity()); err != nil {
		t.Fatal(err)
	}
	if f.header("PUT", "X-Amz-Checksum-Crc32") == "" && f.header("PUT", "X-Amz-Trailer") == "" {
		t.Error("no checksum is sent with when_supported")
	}
	if auth := f.header("PUT", "Authorization"); !strings.Contains(auth, "/eu-central-1/s3/") {
		t.Errorf("signed for %q", auth)
	}

	off := false
	l = f.open(t, "p3", func(c *lake.Config) { c.Conditional = &off })
	if err := l.CreateIdentity(t.Context(), laketest.Identity()); err != nil {
		t.Fatal(err)
	}
	if got := f.header("PUT", "If-None-Match"); got != "" {
		t.Errorf("a condition is sent though they are off: %q", got)
	}
}

func TestTheBucketIsInTheHostNameOnRequest(t *testing.T) {
	f := startS3(t)
	hosts := make(chan string, 1)
	f.before = func(w http.ResponseWriter, r *http.Request) bool {
		hosts <- r.Host
		s3Error(w, 404, "NoSuchKey")
		return true
	}
	off := false
	l := f.open(t, "p", func(c *lake.Config) {
		c.PathStyle = &off
		// Names below localhost are the loopback's (RFC 6761), but not every
		// resolver knows.
		c.Endpoint = strings.Replace(f.url, "127.0.0.1", "localhost", 1)
	})
	_, err := l.ReadIdentity(t.Context())
	select {
	case host := <-hosts:
		if !strings.HasPrefix(host, "bucket.localhost:") {
			t.Errorf("asked for %s", host)
		}
	default:
		if err == nil || !strings.Contains(err.Error(), "bucket.localhost") {
			t.Errorf("%v", err)
		}
	}
}

func TestWithoutARegionAWSIsNotOpened(t *testing.T) {
	awsEnvironment(t)
	if _, err := lake.Open(t.Context(), lake.Config{URL: "s3://bucket"}); err == nil || !strings.Contains(err.Error(), "AWS_REGION") {
		t.Errorf("%v", err)
	}
	t.Setenv("AWS_REGION", "eu-west-1")
	if l, err := lake.Open(t.Context(), lake.Config{URL: "s3://bucket/"}); err != nil || l.URL() != "s3://bucket" {
		t.Errorf("%v", err)
	}
}

func TestFailuresSayWhatTheyAreAndWhatToDo(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		code   string
		header [2]string
		want   lake.Failure
		says   string
	}{
		"no bucket":      {404, "NoSuchBucket", [2]string{}, lake.Failure{Kind: lake.MissingBucket}, `make the bucket "bucket"`},
		"denied":         {403, "AccessDenied", [2]string{}, lake.Failure{Kind: lake.Denied}, "s3:PutObject"},
		"wrong key":      {403, "SignatureDoesNotMatch", [2]string{}, lake.Failure{Kind: lake.Denied}, "credentials"},
		"unknown key":    {404, "XAdminUserNotFound", [2]string{}, lake.Failure{Kind: lake.Denied}, "renew"},
		"no such thing":  {404, "NoSuchThing", [2]string{}, lake.Failure{Kind: lake.Misconfigured}, "refuses the request"},
		"expired":        {400, "ExpiredToken", [2]string{}, lake.Failure{Kind: lake.Denied}, "renew"},
		"slow down":      {503, "SlowDown", [2]string{"Retry-After", "7"}, lake.Failure{Kind: lake.Throttled, RetryAfter: 7 * time.Second}, "fewer requests"},
		"slow down, ms":  {503, "SlowDown", [2]string{"X-Amz-Retry-After", "1500"}, lake.Failure{Kind: lake.Throttled, RetryAfter: 1500 * time.Millisecond}, "fewer requests"},
		"too many":       {429, "Whatever", [2]string{"Retry-After", "1"}, lake.Failure{Kind: lake.Throttled, RetryAfter: time.Second}, "fewer requests"},
		"maintenance":    {503, "ServiceUnavailable", [2]string{"Retry-After", "60"}, lake.Failure{Kind: lake.Unavailable, RetryAfter: time.Minute}, "the store has a problem"},
		"redirect":       {301, "PermanentRedirect", [2]string{}, lake.Failure{Kind: lake.Misconfigured}, "region"},
		"clock":          {403, "RequestTimeTooSkewed", [2]string{}, lake.Failure{Kind: lake.Misconfigured}, "clock"},
		"no conditions":  {501, "NotImplemented", [2]string{}, lake.Failure{Kind: lake.Misconfigured}, "conditional writes off"},
		"class":          {400, "InvalidStorageClass", [2]string{}, lake.Failure{Kind: lake.Misconfigured}, "storage class"},
		"full":           {507, "XMinioStorageFull", [2]string{}, lake.Failure{Kind: lake.Full}, "make room"},
		"something else": {400, "InvalidRequest", [2]string{}, lake.Failure{Kind: lake.Misconfigured}, "refuses the request"},
	} {
		t.Run(name, func(t *testing.T) {
			f := startS3(t)
			f.before = func(w http.ResponseWriter, _ *http.Request) bool {
				if c.header[0] != "" {
					w.Header().Set(c.header[0], c.header[1])
				}
				s3Error(w, c.status, c.code)
				return true
			}
			l := f.open(t, "p", nil)
			ref := laketest.Chain(l.URL(), 1, 1)[0]
			_, err := l.PutSegment(t.Context(), ref, object(t, ref))
			if got := lake.Class(err); got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
			for _, says := range []string{c.says, "s3://bucket/p/" + lake.Key(ref), c.code, "REQ7"} {
				if err == nil || !strings.Contains(err.Error(), says) {
					t.Errorf("no word of %q in: %v", says, err)
				}
			}
			if strings.Contains(err.Error(), secret) || strings.Contains(err.Error(), "AKIATEST") {
				t.Errorf("the error shows a credential: %v", err)
			}
			if err := l.Check(t.Context()); lake.Class(err) != c.want {
				t.Errorf("check: %v", err)
			}
		})
	}
}

func TestAStoreThatSaysWhenIsNotAskedBefore(t *testing.T) {
	f := startS3(t)
	f.before = func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("Date", "Wed, 01 May 2024 00:00:00 GMT")
		w.Header().Set("Retry-After", "Wed, 01 May 2024 00:00:30 GMT")
		s3Error(w, 503, "SlowDown")
		return true
	}
	_, err := f.open(t, "p", nil).ReadIdentity(t.Context())
	if got := lake.Class(err); got.RetryAfter != 30*time.Second || f.requests("GET") != 1 {
		t.Errorf("%+v after %d requests: %v", got, f.requests("GET"), err)
	}
}

func TestPassingFailuresAreTriedAgainAtOnce(t *testing.T) {
	for name, answer := range map[string]func(w http.ResponseWriter){
		"500":                      func(w http.ResponseWriter) { s3Error(w, 500, "InternalError") },
		"409 of a racing write":    func(w http.ResponseWriter) { s3Error(w, 409, "ConditionalRequestConflict") },
		"409 of another operation": func(w http.ResponseWriter) { s3Error(w, 409, "OperationAborted") },
	} {
		t.Run(name, func(t *testing.T) {
			f := startS3(t)
			var n atomic.Int64
			f.before = func(w http.ResponseWriter, _ *http.Request) bool {
				if n.Add(1) > 1 {
					return false
				}
				answer(w)
				return true
			}
			if err := f.open(t, "p", nil).CreateIdentity(t.Context(), laketest.Identity()); err != nil || f.requests("PUT") != 2 {
				t.Errorf("%v after %d requests", err, f.requests("PUT"))
			}
		})
	}
}

func TestAConflictThatStaysIsNeitherSuccessNorPrecondition(t *testing.T) {
	f := startS3(t)
	f.before = func(w http.ResponseWriter, _ *http.Request) bool {
		s3Error(w, 409, "ConditionalRequestConflict")
		return true
	}
	_, err := f.open(t, "p", nil).WriteAck(t.Context(), lake.AckRecord{Writer: "a"}, "")
	if lake.Class(err).Kind != lake.Unavailable || errors.Is(err, lake.ErrPrecondition) {
		t.Errorf("%+v: %v", lake.Class(err), err)
	}
}

// The SDK sends the request again, and the store answers that the object is
// there: it is ours.
func TestALostReplyIsSuccessWithinOneCall(t *testing.T) {
	f := startS3(t)
	var puts atomic.Int64
	f.loseReply = func(r *http.Request) bool { return r.Method == "PUT" && puts.Add(1)%2 == 1 }
	l := f.open(t, "p", nil)
	ref := laketest.Chain(l.URL(), 1, 1)[0]
	if o, err := l.PutSegment(t.Context(), ref, object(t, ref)); err != nil || !o.Existed {
		t.Errorf("segment: %+v, %v", o, err)
	}
	if err := l.CreateIdentity(t.Context(), laketest.Identity()); err != nil {
		t.Errorf("identity: %v", err)
	}
	etag := ""
	for seq := range int64(3) {
		var err error
		if etag, err = l.WriteAck(t.Context(), lake.AckRecord{Writer: "a", Seq: seq}, etag); err != nil {
			t.Errorf("ack %d: %v", seq, err)
		}
	}
	if puts.Load() != 10 {
		t.Errorf("%d requests, want two for each of five writes", puts.Load())
	}
}

func TestARequestThatHangsEndsInTime(t *testing.T) {
	for name, hang := range map[string]func(w http.ResponseWriter, r *http.Request){
		"before the answer": func(_ http.ResponseWriter, r *http.Request) {},
		"in the answer": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "100")
			io.WriteString(w, "half")
			http.NewResponseController(w).Flush()
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := startS3(t)
			f.before = func(w http.ResponseWriter, r *http.Request) bool {
				hang(w, r)
				<-r.Context().Done()
				return true
			}
			l := f.open(t, "p", func(c *lake.Config) { c.Timeout = 50 * time.Millisecond })
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			_, err := l.ReadIdentity(ctx)
			if lake.Class(err).Kind != lake.Unreachable || !strings.Contains(err.Error(), "no answer within 50ms") {
				t.Errorf("%+v: %v", lake.Class(err), err)
			}
			if !lake.Class(err).Passing() {
				t.Error("it does not count as passing")
			}
		})
	}
}

func TestAnAnswerThatBreaksOffIsNotADamagedObject(t *testing.T) {
	f := startS3(t)
	l := f.open(t, "p", nil)
	ref := laketest.Chain(l.URL(), 1, 1)[0]
	if _, err := l.PutSegment(t.Context(), ref, object(t, ref)); err != nil {
		t.Fatal(err)
	}
	f.before = func(w http.ResponseWriter, r *http.Request) bool { return r.Method == "GET" && breakOff(t, w, r) }
	_, err := l.ReadMetadata(t.Context(), lake.Key(ref))
	if lake.Class(err).Kind != lake.Unreachable || errors.Is(err, lake.ErrUnreadable) || errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("%+v: %v", lake.Class(err), err)
	}
}

// breakOff answers a range with the right length and the beginning of it.
func breakOff(t *testing.T, w http.ResponseWriter, r *http.Request) bool {
	var from, to int
	if _, err := fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-%d", &from, &to); err != nil {
		t.Errorf("range %q: %v", r.Header.Get("Range"), err)
	}
	conn, buf, err := http.NewResponseController(w).Hijack()
	if err != nil {
		t.Error(err)
		return true
	}
	defer conn.Close()
	fmt.Fprintf(buf, "HTTP/1.1 206 Partial Content\r\nContent-Length: %d\r\n\r\nhalf", to-from+1)
	buf.Flush()
	return true
}

func TestNobodyAtTheEndpointIsUnreachable(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	listener.Close()
	f := &fakeS3{url: "http://" + address}
	err = f.open(t, "p", nil).Check(t.Context())
	if lake.Class(err).Kind != lake.Unreachable || !strings.Contains(err.Error(), address) || !strings.Contains(err.Error(), "endpoint") {
		t.Errorf("%+v: %v", lake.Class(err), err)
	}
}

func TestNoCredentialsAreDenied(t *testing.T) {
	f := startS3(t)
	l := func() *lake.Lake {
		awsEnvironment(t)
		t.Setenv("AWS_ACCESS_KEY_ID", "")
		t.Setenv("AWS_SECRET_ACCESS_KEY", "")
		l, err := lake.Open(t.Context(), lake.Config{URL: "s3://bucket/p", Endpoint: f.url})
		if err != nil {
			t.Fatal(err)
		}
		return l
	}()
	err := l.Check(t.Context())
	if lake.Class(err).Kind != lake.Denied || !strings.Contains(err.Error(), "AWS_ACCESS_KEY_ID") {
		t.Errorf("%+v: %v", lake.Class(err), err)
	}
}

func TestACancelEndsAHangingRequest(t *testing.T) {
	f := startS3(t)
	arrived := make(chan struct{}, 1)
	f.before = func(_ http.ResponseWriter, r *http.Request) bool {
		arrived <- struct{}{}
		<-r.Context().Done()
		return true
	}
	l := f.open(t, "p", nil)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-arrived; cancel() }()
	_, err := l.ReadIdentity(ctx)
	if lake.Class(err).Kind != lake.Canceled || !errors.Is(err, context.Canceled) {
		t.Errorf("%+v: %v", lake.Class(err), err)
	}
}

// Keys are replaced at the store, and then in the file that they were read from:
// the process goes on without a restart.
func TestKeysThatWereReplacedAreReadAgain(t *testing.T) {
	f := startS3(t)
	var valid atomic.Value
	valid.Store("AKIAOLD")
	f.before = func(w http.ResponseWriter, r *http.Request) bool {
		if strings.Contains(r.Header.Get("Authorization"), "Credential="+valid.Load().(string)+"/") {
			return false
		}
		s3Error(w, 403, "InvalidAccessKeyId")
		return true
	}
	awsEnvironment(t)
	file := filepath.Join(t.TempDir(), "credentials")
	for name, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_SHARED_CREDENTIALS_FILE": file,
	} {
		t.Setenv(name, value)
	}
	write := func(key string) {
		t.Helper()
		text := "[default]\naws_access_key_id = " + key + "\naws_secret_access_key = " + secret + "\n"
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("AKIAOLD")
	l, err := lake.Open(t.Context(), lake.Config{URL: "s3://" + fakeBucket + "/p", Endpoint: f.url})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.CreateIdentity(t.Context(), laketest.Identity()); err != nil {
		t.Fatal(err)
	}
	valid.Store("AKIANEW")
	for range 2 {
		_, err := l.ReadIdentity(t.Context())
		if lake.Class(err).Kind != lake.Denied || !strings.Contains(err.Error(), "renew them") || strings.Contains(err.Error(), secret) {
			t.Fatalf("%+v: %v", lake.Class(err), err)
		}
	}
	write("AKIANEW")
	if _, err = l.ReadIdentity(t.Context()); err != nil {
		t.Errorf("with the new keys in the file: %v", err)
	}
}
