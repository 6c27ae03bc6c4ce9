package e2e

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/protobuf/proto"

	"github.com/tidemark-cdc/tidemark/cmd/devstack/e2e/harness"
	"github.com/tidemark-cdc/tidemark/cmd/devstack/pipeline"
	"github.com/tidemark-cdc/tidemark/cmd/devstack/stack"
	"github.com/tidemark-cdc/tidemark/internal/tracing/tracingtest"
)

// A run that has a secret of each kind, with failures that make everyone talk:
// passwords and tokens that are refused, uploads that fail, processes that crash
// with all their stacks. Nothing that it leaves behind has one of the secrets,
// in any of the spellings that a program could give it; and nothing but the lake
// has the rows.
//
// On one version of Postgres: what is secret is the same on each.
func TestSecretsAreNowhere(t *testing.T) {
	h := harness.New(t, harness.Options{
		Postgres: 15, TemporalMemory: true, NoSetup: true,
		Settings: pipeline.Settings{"log.level": "debug", "log.format": "json", "ops.pprof": true, "segment.max_age": "200ms", "postgres.tables": []string{"public.diary"}},
		PostgresFiles: map[string]string{"pg_hba.conf": `
host all         postgres 127.0.0.1/32 trust
host all         cdc      127.0.0.1/32 scram-sha-256
host replication cdc      127.0.0.1/32 scram-sha-256
`},
	})
	s := &secrets{t: t, h: h, values: map[string]string{"the S3 secret key": value(h.Stack.S3.Env(), "AWS_SECRET_ACCESS_KEY")}}
	password, wrong := s.add("the Postgres password"), s.add("a wrong Postgres password")
	token, wrongToken := s.add("the Flight token"), s.add("a wrong Flight token")
	opsToken, apiKey, noise, row := s.add("the ops token"), s.add("the Temporal API key"), s.add("what the password command says besides"), s.add("a row")
	header := s.add("the header for the collector of traces")

	h.SQL(`create table diary (id int primary key, entry text)`)
	h.SQL(`create role cdc login superuser password '` + password + `'`)
	passwordFile := s.file("password", password)
	h.Settings["postgres.url"] = strings.Replace(h.Stack.Postgres.URL(), "postgres@", "cdc@", 1)
	h.Settings["postgres.password_command"] = []string{"/bin/sh", "-c", "echo " + "noise-$(cat " + s.file("noise", noise) + ") >&2; cat " + passwordFile}
	h.Settings["data.token_file"] = s.file("token", token)
	h.Settings["ops.token_file"] = s.file("ops-token", opsToken)
	h.Settings["tracing.exporter"] = "otlp"
	if err := h.Settings.Write(h.Pipeline.Config); err != nil {
		t.Fatal(err)
	}
	h.Pipeline.Env = append(h.Pipeline.Env, "TEMPORAL_API_KEY="+apiKey, "TEMPORAL_TLS=false")
	// A collector that turns everyone down, with what it was shown, and later takes all.
	collector := tracingtest.NewReceiver(t)
	var takes atomic.Bool
	collector.Answer = func(w http.ResponseWriter, r *http.Request) bool {
		if !takes.Load() {
			http.Error(w, "who is "+r.Header.Get("Authorization"), http.StatusUnauthorized)
		}
		return !takes.Load()
	}
	h.Pipeline.Env = append(h.Pipeline.Env, append(collector.Environ(), "OTEL_EXPORTER_OTLP_HEADERS=authorization=Bearer%20"+header, "OTEL_BSP_SCHEDULE_DELAY=100")...)
	h.Setup()

	// Uploads that fail: of a worker whose token is refused, then by the store.
	streamer, stranger := h.Streamer(), h.Worker("--data-token-file", s.file("wrong-token", wrongToken))
	streamer.WaitStreaming()
	h.Stack.Faults.Refuse(stack.PutsOfSegments, http.StatusForbidden, 1)
	h.SQL(`insert into diary values (1, $1)`, row)
	streamer.WaitLog("wrong token", harness.Bound)
	stranger.WaitLog("does not accept this worker's token", harness.Bound)
	worker := h.Worker()
	h.Eventually(harness.Bound, func() string {
		s.ask(streamer, wrongToken, "/status")
		if h.Logged("wrong token") < 2 {
			return "nobody has told of a wrong token of the page"
		}
		return ""
	})
	stranger.Kill9()
	h.WaitAck()

	// A password that is refused, until it is given to both sides.
	h.SQL(`alter role cdc password '` + wrong + `'`)
	h.SQL(`select pg_terminate_backend(active_pid) from pg_replication_slots where active`)
	streamer.WaitLog("password authentication failed", harness.Bound)
	h.SQL(`alter role cdc password '` + password + `'`)
	takes.Store(true)
	h.SQL(`insert into diary values (2, $1)`, row)
	h.WaitAck()
	streamer.WaitLog("traces are delivered again", harness.Bound)
	worker.WaitLog("traces are delivered again", harness.Bound)
	s.look("the traces", fmt.Sprintf("%+v", collector.Spans()), "tidemark-streamer", "tidemark-worker", "tidemark.segment")

	for _, p := range []*harness.Proc{streamer, worker} {
		s.look("the command line", s.read(fmt.Sprintf("/proc/%d/cmdline", p.PID())), h.Pipeline.Config)
		for path, has := range map[string]string{
			"/status": "e2e", "/metrics": "tidemark_build_info", "/readyz": "ready", "/log-level": "debug",
			"/debug/pprof/cmdline": "tidemark", "/debug/pprof/goroutine?debug=2": "goroutine", "/debug/pprof/heap?debug=1": "heap",
		} {
			s.look(path, s.ask(p, opsToken, path), has)
		}
		s.look("the answer to nobody", s.ask(p, "", "/status"), "show a token")
	}
	s.lookAtTemporal()

	// Crashes with every goroutine's stack.
	for p, signal := range map[*harness.Proc]syscall.Signal{streamer: syscall.SIGQUIT, worker: syscall.SIGABRT} {
		if err := p.Signal(signal); err != nil {
			t.Fatal(err)
		}
		h.Within(harness.Bound, "a crash", p.Done())
	}
	s.look("the streamer's log and crash", streamer.Output(), "SIGQUIT", "goroutine", "turned away", "password authentication failed", "who is xxxxx")
	s.look("the worker's log and crash", worker.Output(), "SIGABRT", "goroutine", "e2e")
	s.look("the stranger's log", stranger.Output(), "does not accept this worker's token")
	s.lookAtVerbs(password, wrong)
	s.lookAtLake()
}

// secrets are values that must be nowhere, by what they are.
type secrets struct {
	t      *testing.T
	h      *harness.Harness
	values map[string]string
}

// add makes another secret.
func (s *secrets) add(what string) string {
	s.values[what] = "hush." + rand.Text()
	return s.values[what]
}

// file writes a secret to a file of its owner's.
func (s *secrets) file(name, secret string) string {
	s.t.Helper()
	path := filepath.Join(s.h.Stack.Dir(), name)
	if err := os.WriteFile(path, []byte(secret+"\n"), 0o600); err != nil {
		s.t.Fatal(err)
	}
	return path
}

// look fails the test if text, which is from a place, has a secret. It has to
// have each part of has: what is empty, or not what it is taken for, would pass.
func (s *secrets) look(place, text string, has ...string) {
	s.t.Helper()
	for _, part := range has {
		if !strings.Contains(text, part) {
			s.t.Errorf("%s is not what was to be looked at: it has no %q:\n%.2000s", place, part, text)
		}
	}
	for what, secret := range s.values {
		for how, spelling := range spellings(secret) {
			if i := strings.Index(text, spelling); i >= 0 {
				s.t.Errorf("%s has %s, %s: ...%q...", place, what, how, text[max(0, i-200):min(len(text), i+len(spelling)+50)])
			}
		}
	}
}

// spellings are ways to write a secret. In base64 it can begin at each of three
// places of a group.
func spellings(secret string) map[string]string {
	all := map[string]string{
		"as it is": secret, "in hexadecimal": hex.EncodeToString([]byte(secret)),
		"escaped for a URL": url.QueryEscape(secret), "its second half": secret[len(secret)/2:],
	}
	for skip := range 3 {
		text := base64.RawStdEncoding.EncodeToString([]byte(strings.Repeat("x", skip) + secret))
		all[fmt.Sprintf("in base64 from place %d", skip)] = text[skip+1 : len(text)-2]
	}
	return all
}

func (s *secrets) read(path string) string {
	s.t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		s.t.Fatal(err)
	}
	return string(b)
}

// ask asks for a path of a process' page, with a token if it is not empty; the
// answer's headers are a part of it.
func (s *secrets) ask(p *harness.Proc, token, path string) string {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), harness.Bound)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.Ops+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return fmt.Sprint(resp.Header) + string(body)
}

// lookAtTemporal looks at the histories of all workflows, and at what Temporal
// shows of them. Payloads stand in the encoded messages as they are, so these
// are looked at whole.
func (s *secrets) lookAtTemporal() {
	s.t.Helper()
	c := dialTemporal(s.t, s.h)
	list, err := c.ListWorkflow(s.t.Context(), &workflowservice.ListWorkflowExecutionsRequest{Query: "TidemarkPipeline = 'e2e'"})
	if err != nil {
		s.t.Fatal(err)
	}
	whole := func(m proto.Message) string {
		b, err := proto.Marshal(m)
		if err != nil {
			s.t.Fatal(err)
		}
		return string(b)
	}
	var all strings.Builder
	for _, w := range list.Executions {
		all.WriteString(whole(w))
		d, err := c.DescribeWorkflowExecution(s.t.Context(), w.Execution.WorkflowId, w.Execution.RunId)
		if err != nil {
			s.t.Fatal(err)
		}
		all.WriteString(whole(d))
		events := c.GetWorkflowHistory(s.t.Context(), w.Execution.WorkflowId, w.Execution.RunId, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
		for events.HasNext() {
			e, err := events.Next()
			if err != nil {
				s.t.Fatal(err)
			}
			all.WriteString(whole(e))
		}
	}
	// The input of an activity, and the error of an attempt that was not the last.
	s.look("Temporal", all.String(), `"pipeline":"e2e"`, "tidemark/e2e/00000001-", "upload segment")
}

// lookAtVerbs looks at what verbs say, with settings that work and with some
// that do not.
func (s *secrets) lookAtVerbs(password, wrong string) {
	s.t.Helper()
	say := func(p *pipeline.Pipeline, verb string, args ...string) string {
		r, err := p.Verb(s.t.Context(), verb, args...)
		if err != nil {
			s.t.Fatal(err)
		}
		return fmt.Sprint(verb, " ", args, " ended with ", r.Code, "\n", r.Stdout, r.Stderr)
	}
	for _, verb := range []string{"config", "check", "status", "verify"} {
		s.look("tidemark "+verb, say(s.h.Pipeline, verb), "e2e")
		if verb != "verify" {
			s.look("tidemark "+verb+" --json", say(s.h.Pipeline, verb, "--json"), "e2e")
		}
	}

	// Everything wrong at once, with the passwords in the URL.
	inURL := maps.Clone(s.h.Settings)
	delete(inURL, "postgres.password_command")
	for _, pw := range []string{password, wrong} {
		inURL["postgres.url"] = strings.Replace(s.h.Settings["postgres.url"].(string), "cdc@", "cdc:"+pw+"@", 1)
		inURL["temporal.address"] = "127.0.0.1:1"
		p := *s.h.Pipeline
		p.Config = filepath.Join(s.h.Stack.Dir(), "wrong.yaml")
		p.Env = append(p.Env, "AWS_SECRET_ACCESS_KEY="+s.add("a wrong S3 secret key"))
		if err := inURL.Write(p.Config); err != nil {
			s.t.Fatal(err)
		}
		if err := os.Chmod(p.Config, 0o644); err != nil {
			s.t.Fatal(err)
		}
		s.look("tidemark config", say(&p, "config"), "cdc:xxxxx@", "has a password (postgres.url)")
		s.look("tidemark check", say(&p, "check"), "ended with 2", "SignatureDoesNotMatch", "127.0.0.1:1")
		s.look("tidemark run", say(&p, "run", "--ops-listen=off"), "ended with 2", "reasons")
	}
	// A command that says its secrets and fails, and words that are no URL.
	failing := maps.Clone(s.h.Settings)
	failing["postgres.password_command"] = []string{"/bin/sh", "-c", "cat " + filepath.Join(s.h.Stack.Dir(), "password") + "; cat " + filepath.Join(s.h.Stack.Dir(), "noise") + " >&2; exit 3"}
	p := with(s.t, s.h, "failing", failing)
	s.look("tidemark status", say(p, "status"), "sh (postgres.password_command) ended with exit status 3")
	p = with(s.t, s.h, "odd", pipeline.Settings{"postgres.url": "postgres://cdc:" + password + "@[half", "postgres.password_command": nil})
	s.look("tidemark check", say(p, "check"), "ended with 2", "connection string")
}

// lookAtLake looks at every object of the bucket, and at its metadata. Rows are
// compressed in them, but for the texts by which a reader skips: so here the
// secrets are those of the pipeline alone.
func (s *secrets) lookAtLake() {
	s.t.Helper()
	delete(s.values, "a row")
	c := s.h.Stack.S3.Client("")
	bucket, seen := s.h.Stack.S3.Bucket(), map[string]int{}
	err := filepath.WalkDir(s.h.Stack.S3.Folder(), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		key, err := filepath.Rel(s.h.Stack.S3.Folder(), path)
		if err != nil {
			return err
		}
		head, err := c.HeadObject(s.t.Context(), &s3.HeadObjectInput{Bucket: &bucket, Key: &key})
		if err != nil {
			return fmt.Errorf("head %s: %w", key, err)
		}
		meta, err := json.Marshal(head.Metadata)
		if err != nil {
			return err
		}
		s.look("the object "+key, key+string(meta)+s.read(path))
		seen[strings.SplitN(key, "/", 3)[1]]++
		return nil
	})
	if err != nil {
		s.t.Fatal(err)
	}
	if seen["_tidemark"] < 2 || len(seen) < 2 {
		s.t.Errorf("the objects looked at are %v: there have to be those of _tidemark and of a day", seen)
	}
}

// value is that of a variable in NAME=value pairs.
func value(environ []string, name string) string {
	for _, pair := range environ {
		if v, ok := strings.CutPrefix(pair, name+"="); ok {
			return v
		}
	}
	return ""
}
