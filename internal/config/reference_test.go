package config

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/configuration.md")

const referenceHead = `# Configuration

<!-- Written by go test ./internal/config -update. -->

A setting has one name everywhere: ` + "`segment.max_rows` is `max_rows` under `segment` in the YAML file, `TIDEMARK_SEGMENT_MAX_ROWS` in the environment, and `--segment-max-rows`" + ` as a flag. Flags override the environment, which overrides the file. The file is the one that ` + "`--config` or `TIDEMARK_CONFIG` names, else `tidemark.yaml`" + ` in the current folder if there is one.

Unknown names are refused, with the nearest known one. A variable that is set to nothing, and a key without a value, count as not set. Sizes are whole numbers with a unit (` + "`16MiB`, `1GB`" + `), durations have units too (` + "`500ms`, `10s`, `5m`" + `). A list is a list in the file, and has commas elsewhere; those within double quotes belong to an element. Tables are written as in SQL: ` + "`sales.orders`, `\"Sales\".\"Order Lines\"`" + `.

` + "`tidemark config`" + ` prints the values in force, with passwords masked, and where each came from.

Passwords never go into flags: for Postgres use the URL in the file or the environment, ` + "`PGPASSWORD`, a `PGPASSFILE`, `postgres.password_file` or `postgres.password_command`" + `; for S3 the AWS credential chain; for Temporal ` + "`TEMPORAL_API_KEY`" + ` or a profile; for a collector of traces ` + "`OTEL_EXPORTER_OTLP_HEADERS`" + `. Temporal's own settings (` + "`TEMPORAL_ADDRESS`, `TEMPORAL_NAMESPACE`, `TEMPORAL_PROFILE`, `TEMPORAL_TLS_*`, `temporal.toml`" + `) work as for the temporal command; the settings below override them.

| setting | default | meaning |
|---|---|---|
`

// reference is docs/configuration.md as it should be.
func reference() string {
	var b bytes.Buffer
	b.WriteString(referenceHead)
	for _, s := range settingsOf(&Config{}) {
		def := s.def
		if def != "" {
			def = "`" + def + "`"
		}
		usage := strings.NewReplacer("`", "", "|", `\|`, "<", "&lt;", ">", "&gt;").Replace(s.usage)
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", s.key, def, usage)
	}
	return b.String()
}

func TestTheReferenceListsEverySetting(t *testing.T) {
	const path = "../../docs/configuration.md"
	want := reference()
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s is out of date: run go test ./internal/config -update", path)
	}
}
