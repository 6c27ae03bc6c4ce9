package lake_test

import (
	"encoding/xml"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"crypto/md5"

	"github.com/tidemark-cdc/tidemark/internal/lake"
)

// fakeS3 speaks as much of S3 as a Store uses, for one bucket, and misbehaves
// on demand.
type fakeS3 struct {
	url string
	// before, if set, may answer a request itself (true), or change nothing.
	before func(w http.ResponseWriter, r *http.Request) bool
	// loseReply, if set, says that a request is done and its connection cut.
	loseReply func(r *http.Request) bool

	mu      sync.Mutex
	objects map[string][]byte
	headers []http.Header // of every request, with its method under "Method"
}

const (
	fakeBucket = "bucket"
	pageSize   = 100
)

func startS3(t *testing.T) *fakeS3 {
	f := &fakeS3{objects: map[string][]byte{}}
	s := httptest.NewServer(f)
	t.Cleanup(s.Close)
	f.url = s.URL
	return f
}

// open opens the lake s3://bucket/<prefix>, with credentials and nothing else
// of the environment.
func (f *fakeS3) open(t *testing.T, prefix string, change func(*lake.Config)) *lake.Lake {
	t.Helper()
	awsEnvironment(t)
	return f.openAsItIs(t, prefix, change)
}

// openAsItIs is open with the environment as the test has made it.
func (f *fakeS3) openAsItIs(t *testing.T, prefix string, change func(*lake.Config)) *lake.Lake {
	t.Helper()
	cfg := lake.Config{URL: "s3://" + fakeBucket + "/" + prefix, Endpoint: f.url}
	if change != nil {
		change(&cfg)
	}
	l, err := lake.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

const secret = "hush-hush-this-is-the-secret-key"

func awsEnvironment(t *testing.T) {
	for name, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": "AKIATEST", "AWS_SECRET_ACCESS_KEY": secret, "AWS_SESSION_TOKEN": "",
		"AWS_EC2_METADATA_DISABLED": "true", "AWS_CONFIG_FILE": "/none", "AWS_SHARED_CREDENTIALS_FILE": "/none",
		"AWS_REGION": "", "AWS_DEFAULT_REGION": "", "AWS_PROFILE": "", "AWS_ENDPOINT_URL": "", "AWS_ENDPOINT_URL_S3": "",
		"AWS_MAX_ATTEMPTS": "", "AWS_RETRY_MODE": "", "AWS_CA_BUNDLE": "",
		"AWS_CONTAINER_CREDENTIALS_FULL_URI": "", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI": "",
		"AWS_ROLE_ARN": "", "AWS_WEB_IDENTITY_TOKEN_FILE": "",
	} {
		t.Setenv(name, value)
	}
}

func (f *fakeS3) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	h := r.Header.Clone()
	h.Set("Method", r.Method)
	f.headers = append(f.headers, h)
	f.mu.Unlock()
	if f.before != nil && f.before(w, r) {
		return
	}
	if f.loseReply != nil && f.loseReply(r) {
		f.serve(httptest.NewRecorder(), r)
		conn, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			conn.Close()
		}
		return
	}
	f.serve(w, r)
}

func (f *fakeS3) serve(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	f.mu.Lock()
	defer f.mu.Unlock()
	rest, ok := strings.CutPrefix(r.URL.Path, "/"+fakeBucket)
	if !ok {
		s3Error(w, 404, "NoSuchBucket")
		return
	}
	key := strings.TrimPrefix(rest, "/")
	if key == "" {
		f.list(w, r.URL.Query())
		return
	}
	old, there := f.objects[key]
	switch r.Method {
	case http.MethodPut:
		match := r.Header.Get("If-Match")
		switch {
		case r.Header.Get("If-None-Match") == "*" && there, match != "" && there && match != fakeTag(old):
			s3Error(w, 412, "PreconditionFailed")
			return
		case match != "" && !there:
			s3Error(w, 404, "NoSuchKey")
			return
		}
		f.objects[key] = body
		w.Header().Set("ETag", fakeTag(body))
	case http.MethodDelete:
		delete(f.objects, key)
		w.WriteHeader(http.StatusNoContent)
	case http.MethodGet, http.MethodHead:
		if !there {
			s3Error(w, 404, "NoSuchKey")
			return
		}
		w.Header().Set("ETag", fakeTag(old))
		// It knows ranges, and HEAD.
		http.ServeContent(w, r, "", time.Unix(1700000000, 0), strings.NewReader(string(old)))
	}
}

func (f *fakeS3) list(w http.ResponseWriter, q url.Values) {
	type content struct {
		Key          string
		Size         int
		LastModified string
	}
	var page struct {
		XMLName               xml.Name `xml:"ListBucketResult"`
		IsTruncated           bool
		NextContinuationToken string `xml:",omitempty"`
		Contents              []content
	}
	after := q.Get("start-after")
	if token := q.Get("continuation-token"); token != "" {
		after = token
	}
	for _, key := range slices.Sorted(maps.Keys(f.objects)) {
		if !strings.HasPrefix(key, q.Get("prefix")) || key <= after {
			continue
		}
		if len(page.Contents) == pageSize {
			page.IsTruncated, page.NextContinuationToken = true, page.Contents[pageSize-1].Key
			break
		}
		page.Contents = append(page.Contents, content{key, len(f.objects[key]), "2024-05-01T00:00:00Z"})
	}
	w.Header().Set("Content-Type", "application/xml")
	xml.NewEncoder(w).Encode(page)
}

func fakeTag(body []byte) string { return fmt.Sprintf("\"%x\"", md5.Sum(body)) }

func s3Error(w http.ResponseWriter, status int, code string) {
	body := fmt.Sprintf("<Error><Code>%s</Code><Message>the message of %s</Message><RequestId>REQ7</RequestId></Error>", code, code)
	w.Header().Set("Content-Type", "application/xml")
	w.Header().Set("X-Amz-Request-Id", "REQ7")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	io.WriteString(w, body)
}

// requests counts the requests with a method.
func (f *fakeS3) requests(method string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, h := range f.headers {
		if h.Get("Method") == method {
			n++
		}
	}
	return n
}

// header gives a header of the last request with a method.
func (f *fakeS3) header(method, name string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, h := range slices.Backward(f.headers) {
		if h.Get("Method") == method {
			return h.Get(name)
		}
	}
	return ""
}
