// Package internal_test holds the rules by which the packages of this module
// import each other. docs/design.md says why.
package internal_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/tidemark-cdc/tidemark"

// source is one Go file of the module.
type source struct {
	// pkg is the path of its package below the module, "." for the root.
	pkg  string
	file string
	test bool
	// imports has the module's own packages as paths below the module.
	imports []string
	// uses has what it takes from other packages, as package.Name.
	uses []string
	// spawns says that it starts a goroutine.
	spawns bool
}

// readModule parses every Go file of this module. Nested modules and folders
// that the go command passes over are none of it.
func readModule(t *testing.T) []source {
	t.Helper()
	var sources []source
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() && path != ".." {
			_, statErr := os.Stat(filepath.Join(path, "go.mod"))
			if statErr == nil || name == "testdata" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") {
				return filepath.SkipDir
			}
		}
		if d.IsDir() || !strings.HasSuffix(name, ".go") {
			return nil
		}
		s, err := readSource(path)
		sources = append(sources, s)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return sources
}

func readSource(path string) (source, error) {
	f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		return source{}, err
	}
	rel, err := filepath.Rel("..", path)
	if err != nil {
		return source{}, err
	}
	s := source{pkg: filepath.ToSlash(filepath.Dir(rel)), file: rel, test: strings.HasSuffix(path, "_test.go")}
	for _, spec := range f.Imports {
		p, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return source{}, err
		}
		if own, ok := strings.CutPrefix(p, module+"/"); ok {
			p = own
		}
		s.imports = append(s.imports, p)
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok {
				s.uses = append(s.uses, x.Name+"."+n.Sel.Name)
			}
		case *ast.GoStmt:
			s.spawns = true
		}
		return true
	})
	return s, nil
}

// within says whether the path of a package is one of roots or below one.
func within(path string, roots ...string) bool {
	return slices.ContainsFunc(roots, func(root string) bool {
		return path == root || strings.HasPrefix(path, root+"/")
	})
}

// ours says whether an import is one of this module's packages.
func ours(path string) bool {
	return within(path, "activities", "cmd", "internal", "streamer", "worker", "workflows")
}

// isStandard says whether an import is of the standard library.
func isStandard(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return !ours(path) && !strings.Contains(first, ".")
}

// testSupport says whether a package exists for tests: its name ends in test.
func testSupport(pkg string) bool { return strings.HasSuffix(pkg, "test") }

// violations gives what a file does against the rules, a sentence each.
func violations(s source) []string {
	var found []string
	add := func(text string) { found = append(found, s.file+": "+text) }

	for part := range strings.SplitSeq(s.pkg, "/") {
		if slices.Contains([]string{"util", "utils", "common", "shared", "helper", "helpers", "misc"}, part) {
			add("a package is named for what it provides, not " + part)
		}
	}
	// A test may import whatever it needs to set up, except across the line
	// between the two ends.
	for _, imp := range s.imports {
		if within(s.pkg, "streamer") && within(imp, "activities", "workflows", "worker") ||
			within(s.pkg, "activities", "workflows") && within(imp, "streamer") {
			add("streamer and the worker's side never import each other, and it imports " + imp)
		}
		if s.test || testSupport(s.pkg) {
			continue
		}
		found = append(found, layerViolations(s, imp)...)
	}
	if s.test || testSupport(s.pkg) || within(s.pkg, "cmd") {
		return found
	}
	if s.pkg == "streamer/ring" && s.spawns {
		add("ring is pure, and it starts a goroutine")
	}
	for _, use := range s.uses {
		if name, ok := strings.CutPrefix(use, "time."); ok && s.pkg == "streamer/ring" &&
			slices.Contains([]string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"}, name) {
			add("ring is pure: time enters as a value, and it calls " + use)
		}
		if slices.Contains([]string{"os.Getenv", "os.LookupEnv", "os.Environ", "os.ExpandEnv", "os.Setenv", "os.Unsetenv", "syscall.Getenv"}, use) {
			add("only cmd reads the environment, and it calls " + use)
		}
		if use == "temporal.NewApplicationError" || use == "temporal.NewNonRetryableApplicationError" || use == "temporal.NewApplicationErrorWithOptions" {
			if !within(s.pkg, "activities", "workflows") {
				add("only activities turns errors into Temporal's, and it calls " + use)
			}
		}
	}
	return found
}

// layerViolations judges one import of a file that is shipped.
func layerViolations(s source, imp string) []string {
	var found []string
	deny := func(when bool, text string) {
		if when {
			found = append(found, s.file+": "+text+", and it imports "+imp)
		}
	}
	// Only the package itself and its own parts may reach these.
	onlyFrom := func(target string, from ...string) {
		deny(within(imp, target) && !within(s.pkg, append(from, target, "cmd")...), target+" is imported from above only")
	}
	deny(testSupport(imp) && ours(imp), "test support is not shipped")
	deny(imp == "testing" || imp == "go.uber.org/goleak" || imp == "pgregory.net/rapid", "test libraries are not shipped")

	deny(s.pkg == "internal/change" && !isStandard(imp), "change imports the standard library only")
	deny(s.pkg == "internal/segment" && !isStandard(imp) && imp != "internal/change" && imp != "github.com/cespare/xxhash/v2",
		"segment imports change and xxhash only")
	deny(s.pkg == "streamer/ring" && !isStandard(imp) && imp != "internal/change" && imp != "internal/segment",
		"ring is pure: it imports values only")
	deny(s.pkg == "streamer/ring" && slices.Contains([]string{"context", "net", "os", "sync"}, imp),
		"ring is pure: it has no goroutine and no I/O")

	deny(within(s.pkg, "activities") && within(imp, "workflows"), "activities never imports workflows")
	deny(s.pkg == "internal/lake" && imp == "internal/rowfile" || s.pkg == "internal/rowfile" && imp == "internal/lake",
		"lake and rowfile do not know each other")
	onlyFrom("internal/config")
	onlyFrom("internal/ops")
	onlyFrom("internal/login")
	onlyFrom("internal/tracing")
	onlyFrom("worker")
	onlyFrom("streamer")
	onlyFrom("workflows", "worker", "internal/tracker", "internal/operator")
	onlyFrom("activities", "worker", "workflows", "internal/operator")
	onlyFrom("internal/tracker", "internal/operator")
	onlyFrom("internal/operator")
	onlyFrom("cmd")

	deny(strings.HasPrefix(imp, "go.temporal.io/") && !within(s.pkg, "workflows", "activities", "worker", "internal/tracker", "internal/operator", "cmd"),
		"Temporal is known to workflows, activities, worker, tracker, operator and cmd only")
	deny(strings.HasPrefix(imp, "github.com/aws/") && !within(s.pkg, "internal/lake", "cmd"), "S3 is known to lake only")
	deny(strings.HasPrefix(imp, "github.com/jackc/") && !within(s.pkg, "streamer/replication", "internal/pgoutput", "internal/readback", "cmd"),
		"the Postgres libraries are known to replication, pgoutput and readback only")
	deny(strings.HasPrefix(imp, "go.opentelemetry.io/") && s.pkg != "internal/tracing", "OpenTelemetry is known to tracing only")
	deny((strings.HasPrefix(imp, "github.com/spf13/") || strings.HasPrefix(imp, "github.com/knadh/")) && !within(s.pkg, "internal/config", "cmd"),
		"flags and settings are known to config and cmd only")
	return found
}

func TestPackagesKeepTheirLayers(t *testing.T) {
	sources := readModule(t)
	if len(sources) < 10 {
		t.Fatalf("found %d Go files; is this the module's folder?", len(sources))
	}
	for _, s := range sources {
		for _, v := range violations(s) {
			t.Error(v)
		}
	}
}

func TestTheRulesSeeWhatBreaksThem(t *testing.T) {
	for name, tc := range map[string]struct {
		s    source
		want string
	}{
		"streamer reaches for activities": {source{pkg: "streamer", imports: []string{"activities"}}, "never import each other"},
		"even in its tests":               {source{pkg: "streamer", test: true, imports: []string{"activities"}}, "never import each other"},
		"activities reach for workflows":  {source{pkg: "activities", imports: []string{"workflows"}}, "activities never imports workflows"},
		"change leans on a library":       {source{pkg: "internal/change", imports: []string{"github.com/x/y"}}, "standard library only"},
		"segment leans on the lake":       {source{pkg: "internal/segment", imports: []string{"internal/lake"}}, "xxhash only"},
		"the ring looks at a clock":       {source{pkg: "streamer/ring", uses: []string{"time.Now"}}, "time enters as a value"},
		"the ring starts a goroutine":     {source{pkg: "streamer/ring", spawns: true}, "starts a goroutine"},
		"a lake that knows Temporal":      {source{pkg: "internal/lake", imports: []string{"go.temporal.io/sdk/client"}}, "Temporal is known to"},
		"a lake that knows row files":     {source{pkg: "internal/lake", imports: []string{"internal/rowfile"}}, "do not know each other"},
		"test support in a binary":        {source{pkg: "worker", imports: []string{"internal/lake/laketest"}}, "test support is not shipped"},
		"test support in cmd":             {source{pkg: "cmd/tidemark", imports: []string{"internal/pgtest"}}, "test support is not shipped"},
		"settings reached from below":     {source{pkg: "streamer", imports: []string{"internal/config"}}, "from above only"},
		"a command that is imported":      {source{pkg: "worker", imports: []string{"cmd/tidemark"}}, "from above only"},
		"the environment, read below":     {source{pkg: "internal/lake", uses: []string{"os.Getenv"}}, "only cmd reads the environment"},
		"a name that says nothing":        {source{pkg: "internal/utils"}, "named for what it provides"},
		"errors dressed elsewhere":        {source{pkg: "worker", uses: []string{"temporal.NewApplicationError"}}, "only activities turns errors"},
		"spans made anywhere":             {source{pkg: "streamer", imports: []string{"go.opentelemetry.io/otel/trace"}}, "OpenTelemetry is known"},
		"Postgres reached from the lake":  {source{pkg: "internal/lake", imports: []string{"github.com/jackc/pgx/v5"}}, "Postgres libraries"},
	} {
		t.Run(name, func(t *testing.T) {
			tc.s.file = "x.go"
			if got := strings.Join(violations(tc.s), "\n"); !strings.Contains(got, tc.want) {
				t.Errorf("seen: %q, want %q", got, tc.want)
			}
		})
	}
	if got := violations(source{pkg: "cmd/tidemark", imports: []string{"worker", "streamer", "go.temporal.io/sdk/client"}, uses: []string{"os.Environ"}}); len(got) > 0 {
		t.Errorf("cmd is refused what is its own: %q", got)
	}
}
