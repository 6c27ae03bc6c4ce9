package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is set with -ldflags '-X main.version=v1.2.3' by a release build.
var version string

// build is what is known of this binary.
type build struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	// Time is the revision's, not the build's.
	Time     string `json:"time,omitempty"`
	Modified bool   `json:"modified,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// readBuild puts together what the linker was told and what the go command
// recorded.
func readBuild() build {
	b := build{Version: version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if info, ok := debug.ReadBuildInfo(); ok {
		if b.Version == "" {
			b.Version = info.Main.Version
		}
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				b.Revision = s.Value
			case "vcs.time":
				b.Time = s.Value
			case "vcs.modified":
				b.Modified = s.Value == "true"
			}
		}
	}
	if b.Version == "" {
		b.Version = "(devel)"
	}
	return b
}

// id tells builds apart.
func (b build) id() string {
	id := b.Version
	if b.Revision != "" {
		id += "+" + b.Revision
	}
	if b.Modified {
		id += ".modified"
	}
	return id
}

func newVersion(system) *cobra.Command {
	var asJSON bool
	cmd := verb("version", "Print the version of this binary", "", func(cmd *cobra.Command) error {
		b := readBuild()
		if asJSON {
			return printJSON(cmd.OutOrStdout(), b)
		}
		line := "tidemark " + b.Version
		if b.Revision != "" {
			line += " " + b.Revision
			if b.Modified {
				line += " (modified)"
			}
		}
		_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s %s %s\n", line, b.Go, b.Platform)
		return err
	})
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
