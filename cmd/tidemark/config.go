package main

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/tidemark-cdc/tidemark/internal/config"
)

func newConfig(sys system) *cobra.Command {
	var asJSON bool
	cmd := verb("config", "Print the settings in force and where each came from",
		`Print the settings in force, with passwords masked, and where each came from.

A setting has one name everywhere: segment.max_rows is max_rows under segment in
the file, TIDEMARK_SEGMENT_MAX_ROWS in the environment, --segment-max-rows as a
flag. Every verb takes the flags below, whether its own help shows them or not.
Settings that are wrong are listed on stderr, and the status is 2.`,
		func(cmd *cobra.Command) error {
			c, err := loadSettings(cmd, sys, 0)
			if c == nil {
				return err
			}
			if terr := fillTemporal(c, sys.environ); terr != nil && err == nil {
				err = refused(terr)
			}
			for _, f := range settingsFindings(c) {
				fmt.Fprintf(cmd.ErrOrStderr(), "tidemark: %s: %s\n", f.Level, f)
			}
			if asJSON {
				if perr := printJSON(cmd.OutOrStdout(), c); perr != nil {
					return perr
				}
			} else if perr := printSettings(cmd.OutOrStdout(), c.Settings()); perr != nil {
				return perr
			}
			return err
		})
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return withSettings(cmd, "")
}

func printSettings(w io.Writer, settings []config.Setting) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, s := range settings {
		value := s.Value
		if value == "" {
			value = "-"
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\n", s.Key, value, s.Origin)
	}
	return tw.Flush()
}
