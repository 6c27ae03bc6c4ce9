package config

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
)

// sources makes Sources of a file's text, an environment and arguments.
func sources(t *testing.T, file string, environ, args []string) Sources {
	t.Helper()
	src := Sources{Environ: environ, Flags: pflag.NewFlagSet("test", pflag.ContinueOnError)}
	if file != "" {
		src.File = filepath.Join(t.TempDir(), "tidemark.yaml")
		if err := os.WriteFile(src.File, []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	RegisterFlags(src.Flags)
	if err := src.Flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	return src
}

func TestLaterSourcesOverrideEarlierOnesAndAreNamed(t *testing.T) {
	file := "pipeline: orders\nsegment:\n  max_rows: 1\n  max_bytes: 1MiB\n  max_age: 1s\n"
	src := sources(t, file,
		[]string{"PATH=/bin", "TIDEMARK_SEGMENT_MAX_BYTES=2MiB", "TIDEMARK_SEGMENT_MAX_AGE=2s", "TIDEMARK_LOG_LEVEL="},
		[]string{"--segment-max-age=3s", "--lake-path-style"})
	c, err := Load(src, NeedPipeline)
	if err != nil {
		t.Fatal(err)
	}
	if c.Segment != (Segment{MaxRows: 1, MaxBytes: 2 << 20, MaxAge: 3 * time.Second}) {
		t.Errorf("segment settings are %+v", c.Segment)
	}
	if c.Lake.PathStyle == nil || !*c.Lake.PathStyle {
		t.Error("a boolean flag without a value is not true")
	}
	for key, want := range map[string]string{
		"pipeline":          src.File + ":1",
		"segment.max_rows":  src.File + ":3",
		"segment.max_bytes": "TIDEMARK_SEGMENT_MAX_BYTES",
		"segment.max_age":   "--segment-max-age",
		"ring.max_bytes":    "default",
		"log.level":         "default",
	} {
		if got := c.Origin(key).String(); got != want {
			t.Errorf("%s comes from %s, want %s", key, got, want)
		}
	}
}

func TestDefaults(t *testing.T) {
	c, err := Load(sources(t, "", []string{"TIDEMARK_PIPELINE=my-orders"}, nil), NeedPipeline)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, s := range c.Settings() {
		got[s.Key] = s.Value
	}
	for key, want := range map[string]string{
		"postgres.slot":             "tidemark_my_orders",
		"postgres.publication":      "tidemark_my_orders",
		"postgres.tables":           "",
		"postgres.failover":         "false",
		"temporal.task_queue":       "tidemark-my-orders",
		"lake.timeout":              "30s",
		"lake.path_style":           "",
		"lake.conditional_writes":   "true",
		"segment.max_rows":          "10000",
		"segment.max_bytes":         "16MiB",
		"segment.max_age":           "10s",
		"ring.max_bytes":            "256MiB",
		"streamer.max_in_flight":    "64",
		"streamer.shutdown_timeout": "1m",
		"data.listen":               "127.0.0.1:0",
		"data.advertise":            "",
		"data.insecure":             "false",
		"log.format":                "auto",
	} {
		if got[key] != want {
			t.Errorf("%s is %q, want %q", key, got[key], want)
		}
	}
}

func TestEverythingThatIsWrongIsReportedAtOnce(t *testing.T) {
	tests := map[string]struct {
		file    string
		environ []string
		args    []string
		need    Need
		// want holds a part of each problem, in order.
		want []string
	}{
		"unknown names, with the nearest that is known": {
			file:    "lake:\n  urll: s3://b/p\nmax_rows: 1\nnonsense_entirely: 1\n",
			environ: []string{"TIDEMARK_SEGMENT_MAXROWS=5"},
			want: []string{
				"tidemark.yaml:2: lake.urll is no setting; did you mean lake.url?",
				"tidemark.yaml:3: max_rows is no setting; did you mean segment.max_rows?",
				"tidemark.yaml:4: nonsense_entirely is no setting",
				"TIDEMARK_SEGMENT_MAXROWS is no setting; did you mean TIDEMARK_SEGMENT_MAX_ROWS?",
			},
		},
		"values that cannot be read": {
			file:    "segment:\n  max_rows: many\n  max_age: 10\n",
			environ: []string{"TIDEMARK_RING_MAX_BYTES=big", "TIDEMARK_DATA_INSECURE=perhaps"},
			want: []string{
				"segment.max_rows (", "segment.max_age (", "ring.max_bytes (TIDEMARK_RING_MAX_BYTES): want a size",
				"data.insecure (TIDEMARK_DATA_INSECURE): want true or false",
			},
		},
		"what a process needs and does not have": {
			need: NeedPipeline | NeedPostgres | NeedLake,
			want: []string{"pipeline is not set", "postgres.url is not set", "lake.url is not set"},
		},
		"libpq's own environment is enough": {
			environ: []string{"PGHOST=/tmp"}, need: NeedPostgres,
		},
		"variables that Kubernetes makes for a service are none of ours": {
			environ: []string{"TIDEMARK_SERVICE_HOST=10.0.0.1", "TIDEMARK_SERVICE_PORT=80", "TIDEMARK_PORT_80_TCP_ADDR=10.0.0.1", "TIDEMARK_PORT=tcp://10.0.0.1:80", "TIDEMARK_STREAMER_SERVICE_PORT_DATA=1"},
		},
		"bad names": {
			environ: []string{"TIDEMARK_PIPELINE=My Orders", "TIDEMARK_POSTGRES_SLOT=no-dashes", `TIDEMARK_POSTGRES_TABLES=public.a,b,"c.d"`},
			want:    []string{"pipeline (TIDEMARK_PIPELINE)", "postgres.slot (", `postgres.tables (TIDEMARK_POSTGRES_TABLES): "b" names no schema`, `"\"c.d\"" names no schema`},
		},
		"a ring below a segment": {
			args: []string{"--ring-max-bytes=1MiB"},
			want: []string{"ring.max_bytes (--ring-max-bytes): the ring (1MiB) is smaller than one segment"},
		},
		"warnings of kept WAL after the alarm": {
			environ: []string{"TIDEMARK_POSTGRES_WAL_WARN_LEFT=1h", "TIDEMARK_POSTGRES_WAL_ALARM_RETAINED=1GiB"},
			want:    []string{"postgres.wal_warn_left (TIDEMARK_POSTGRES_WAL_WARN_LEFT): the warning would come after the alarm", "postgres.wal_warn_retained ("},
		},
		"no warnings of kept WAL": {
			environ: []string{"TIDEMARK_POSTGRES_WAL_WARN_LEFT=0s", "TIDEMARK_POSTGRES_WAL_ALARM_RETAINED=0B"},
		},
		"rows on an open network": {
			args: []string{"--data-listen=0.0.0.0:7170"}, need: NeedData,
			want: []string{"data.listen (--data-listen): rows are served"},
		},
		"rows on an open network, in so many words": {
			args: []string{"--data-listen=0.0.0.0:7170", "--data-insecure", "--data-advertise=streamer:7170"}, need: NeedData,
		},
		"metrics on an open network": {
			args: []string{"--ops-listen=0.0.0.0:7171"}, need: NeedPage,
			want: []string{"ops.listen (--ops-listen): status and metrics are served"},
		},
		"metrics on an open network, in so many words": {
			args: []string{"--ops-listen=0.0.0.0:7171", "--ops-insecure"}, need: NeedPage,
		},
		"metrics on an open network, with a token": {
			args: []string{"--ops-listen=0.0.0.0:7171", "--ops-token-file=/run/secrets/ops"}, need: NeedPage,
		},
		"metrics of an open network, asked": {args: []string{"--ops-listen=10.0.0.7:7171"}},
		"two sources of a password": {
			environ: []string{"TIDEMARK_POSTGRES_PASSWORD_FILE=/run/secrets/pg", "TIDEMARK_POSTGRES_PASSWORD_COMMAND=get,it", "TIDEMARK_POSTGRES_URL=postgres://me:hunter2@db/shop"},
			want:    []string{"postgres.password_command (TIDEMARK_POSTGRES_PASSWORD_COMMAND): postgres.password_file is set too (TIDEMARK_POSTGRES_PASSWORD_FILE)", "postgres.url (TIDEMARK_POSTGRES_URL): it has a password, and so does"},
		},
		"lakes that are none": {
			environ: []string{"TIDEMARK_LAKE_URL=https://bucket", "TIDEMARK_LAKE_ENDPOINT=localhost:9000", "TIDEMARK_LAKE_SSE=rot13"},
			want:    []string{"lake.url (", "lake.endpoint (", "lake.sse (TIDEMARK_LAKE_SSE): want AES256, aws:kms"},
		},
		"a password in an argument": {
			args: []string{"--postgres-url=postgres://me:hunter2@db/shop"},
			want: []string{"--postgres-url has a password in it"},
		},
		"a password in a keyword string in an argument": {
			args: []string{"--postgres-url=host=db password=hunter2"},
			want: []string{"--postgres-url has a password in it"},
		},
		"not YAML": {
			file: "pipeline: [", want: []string{"is not valid YAML"},
		},
		"a list where one value belongs": {
			file: "pipeline: [a, b]\n", want: []string{"pipeline (", "want one value, not a list"},
		},
		"an empty section and an empty value": {
			file: "lake:\nsegment:\n  max_rows:\n",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c, err := Load(sources(t, tc.file, tc.environ, tc.args), tc.need)
			if c == nil {
				t.Fatal("no Config")
			}
			if len(tc.want) == 0 {
				if err != nil {
					t.Fatalf("refused: %v", err)
				}
				return
			}
			var invalid *InvalidError
			if !errors.As(err, &invalid) {
				t.Fatalf("got %v, want an InvalidError", err)
			}
			text := err.Error()
			if strings.Contains(text, "hunter2") {
				t.Errorf("a password is shown: %s", text)
			}
			for _, want := range tc.want {
				i := strings.Index(text, want)
				if i < 0 {
					t.Errorf("no problem with %q, or out of order, in:\n%s", want, err)
					continue
				}
				text = text[i:]
			}
		})
	}
}

func TestAFileThatIsNotThereIsAProblem(t *testing.T) {
	_, err := Load(Sources{File: filepath.Join(t.TempDir(), "none.yaml")}, 0)
	if err == nil || !strings.Contains(err.Error(), "none.yaml cannot be read: no such file") {
		t.Errorf("got %v", err)
	}
}

func TestNoTwoSettingsShareAName(t *testing.T) {
	var seen []string
	for _, s := range settingsOf(&Config{}) {
		for _, name := range []string{s.envName(), s.flagName()} {
			if slices.Contains(seen, name) {
				t.Errorf("two settings are called %s", name)
			}
			seen = append(seen, name)
		}
		if notOurs(s.envName()) {
			t.Errorf("%s would be taken for a variable of somebody else", s.envName())
		}
		if s.usage == "" {
			t.Errorf("%s has no help", s.key)
		}
	}
}

func TestAListKeepsItsCommasInAFileAndInQuotes(t *testing.T) {
	for name, tc := range map[string]struct {
		file    string
		environ []string
		want    []string
	}{
		"file":            {file: "postgres:\n  tables: ['public.a,b', public.c]\n", want: []string{"public.a,b", "public.c"}},
		"environment":     {environ: []string{"TIDEMARK_POSTGRES_TABLES=public.a, public.b"}, want: []string{"public.a", "public.b"}},
		"names in quotes": {environ: []string{`TIDEMARK_POSTGRES_TABLES="S, 1"."a.b, c", public."d"",e"`}, want: []string{`"S, 1"."a.b, c"`, `public."d"",e"`}},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := Load(sources(t, tc.file, tc.environ, nil), 0)
			if err != nil || !slices.Equal(c.Postgres.Tables, tc.want) {
				t.Errorf("tables are %q (%v), want %q", c.Postgres.Tables, err, tc.want)
			}
		})
	}
}

func TestFillLeavesWhatIsSetAlone(t *testing.T) {
	c, err := Load(sources(t, "", []string{"TIDEMARK_TEMPORAL_ADDRESS=mine:7233"}, nil), 0)
	if err != nil {
		t.Fatal(err)
	}
	c.Fill("temporal.address", "theirs:7233", "TEMPORAL_ADDRESS")
	c.Fill("temporal.namespace", "theirs", "TEMPORAL_NAMESPACE")
	if c.Temporal.Address != "mine:7233" || c.Temporal.Namespace != "theirs" {
		t.Errorf("filled to %+v", c.Temporal)
	}
	if got := c.Origin("temporal.namespace").String(); got != "TEMPORAL_NAMESPACE" {
		t.Errorf("namespace comes from %s", got)
	}
}

func TestAFileWithAPasswordThatOthersCanReadIsToldOf(t *testing.T) {
	with, without := "postgres:\n  url: postgres://me:hunter2@db/shop\n", "postgres:\n  url: postgres://me@db/shop\n"
	for name, tc := range map[string]struct {
		file    string
		mode    os.FileMode
		environ []string
		want    int
	}{
		"the owner's alone":             {with, 0o600, nil, 0},
		"read by the group":             {with, 0o640, nil, 1},
		"read by everyone":              {with, 0o604, nil, 1},
		"without a password":            {without, 0o644, nil, 0},
		"with one from the environment": {without, 0o644, []string{"TIDEMARK_POSTGRES_URL=postgres://me:hunter2@db/shop"}, 0},
		"with one that is not in force": {with, 0o644, []string{"TIDEMARK_POSTGRES_URL=postgres://me@db/shop"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			src := sources(t, tc.file, tc.environ, nil)
			if err := os.Chmod(src.File, tc.mode); err != nil {
				t.Fatal(err)
			}
			c, err := Load(src, 0)
			if err != nil {
				t.Fatal(err)
			}
			if keys, file := c.Exposed(); len(keys) != tc.want || tc.want > 0 && (keys[0] != "postgres.url" || file != src.File) {
				t.Errorf("told of %q in %q, want %d", keys, file, tc.want)
			}
		})
	}
}
