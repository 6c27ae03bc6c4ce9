package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tidemark-cdc/tidemark/internal/config"
)

// The exit statuses, also named in the help.
const (
	statusDone    = 0
	statusFailed  = 1
	statusRefused = 2
)

// system is what the process has around it, so that tests can put something
// else there.
type system struct {
	environ []string
	stdin   io.Reader
	stdout  io.Writer
	stderr  io.Writer
	// terminal says whether a person answers on stdin.
	terminal func() bool
	// colored says whether a person reads stderr: logs are then text. columns is
	// how wide that terminal is, zero if that is not known.
	colored bool
	columns func() int
	// screen puts the terminal that stdin and stdout are into raw mode, until
	// restore is called, and tells its size from then on. nil where stdout is
	// none.
	screen func() (size func() (columns, lines int), restore func(), err error)
	// console is made of the above by execute.
	console *console
}

// statusError is an error that ends the process with a status of its own. Every
// error of a verb is one; those that cobra makes of wrong usage are not.
type statusError struct {
	status int
	// err may be nil: everything has been said.
	err error
}

func (e *statusError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit status %d", e.status)
	}
	return e.err.Error()
}

func (e *statusError) Unwrap() error { return e.err }

// refused marks what the user has to change before anything is done.
func refused(err error) error { return &statusError{status: statusRefused, err: err} }

// refuse is refused with a sentence.
func refuse(format string, args ...any) error { return refused(fmt.Errorf(format, args...)) }

// execute runs the command line and gives the process' exit status.
func execute(ctx context.Context, args []string, sys system) int {
	sys.console = &console{stderr: sys.stderr, terminal: sys.colored, columns: sys.columns}
	sys.stdout, sys.stderr = sys.console.above(sys.stdout), sys.console.above(sys.stderr)
	root := newRoot(sys)
	root.SetArgs(args)
	root.SetIn(sys.stdin)
	root.SetOut(sys.stdout)
	root.SetErr(sys.stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return statusDone
	}
	var se *statusError
	if !errors.As(err, &se) {
		// Cobra refuses unknown verbs, flags and arguments.
		fmt.Fprintf(sys.stderr, "tidemark: %v; see tidemark --help\n", err)
		return statusRefused
	}
	printError(sys.stderr, se.err)
	return se.status
}

// printError prints an error once: a line, or a list of all problems.
func printError(w io.Writer, err error) {
	if err == nil {
		return
	}
	var invalid *config.InvalidError
	if errors.As(err, &invalid) && len(invalid.Problems) > 1 {
		fmt.Fprintf(w, "tidemark: nothing was done, for %d reasons:\n", len(invalid.Problems))
		for _, p := range invalid.Problems {
			fmt.Fprintf(w, "  - %s\n", oneLine(p))
		}
		return
	}
	fmt.Fprintf(w, "tidemark: %s\n", oneLine(err.Error()))
}

// oneLine puts the lines of an error that a library made into one, each once:
// pgx, for instance, has a line for every address that it tried.
func oneLine(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return strings.ReplaceAll(strings.Join(lines, "; "), ":; ", ": ")
}

func newRoot(sys system) *cobra.Command {
	root := &cobra.Command{
		Use:   "tidemark",
		Short: "Copy committed row changes from Postgres to Parquet files in S3",
		Long: `Tidemark copies committed row changes from Postgres to Parquet files in S3, one
folder per UTC commit day, with every upload a workflow in Temporal.

Settings come from a YAML file (--config, TIDEMARK_CONFIG or ./tidemark.yaml),
from TIDEMARK_* variables and from flags, in rising order; tidemark config shows
those in force, and tidemark config --help lists all there are. Temporal's
address, profile, TLS and API key are found as the temporal command finds them.

With --json a verb prints JSON on stdout and nothing else, and asks nothing. A
verb that takes longer than two seconds says on stderr what it is about.

Exit status: 0 done; 1 failed while running, verify found something, or health
was answered no; 2 refused: wrong usage, settings or surroundings, and nothing
was changed.`,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	for _, verb := range []func(system) *cobra.Command{
		newCheck, newSetup, newRun, newStreamer, newWorker, newStatus, newHealth, newPause, newResume,
		newSegments, newReplay, newVerify, newResolve, newTeardown, newConfig, newVersion,
	} {
		root.AddCommand(verb(sys))
	}
	return root
}

// verb makes a command that takes no arguments and whose errors carry a
// status: 1 unless they say otherwise.
func verb(use, short, long string, run func(*cobra.Command) error) *cobra.Command {
	return verbOf(use, short, long, cobra.NoArgs, func(cmd *cobra.Command, _ []string) error { return run(cmd) })
}

// verbOf is verb with arguments.
func verbOf(use, short, long string, args cobra.PositionalArgs, run func(*cobra.Command, []string) error) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Long: long,
		Args:              args,
		DisableAutoGenTag: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			err := run(cmd, args)
			var se *statusError
			if err == nil || errors.As(err, &se) {
				return err
			}
			return &statusError{status: statusFailed, err: err}
		},
	}
}

// withSettings adds the settings' flags. Help shows those of the sections that
// the verb is about; the others can be given all the same.
func withSettings(cmd *cobra.Command, shown ...string) *cobra.Command {
	flags := pflag.NewFlagSet("settings", pflag.ContinueOnError)
	flags.SortFlags = false
	config.RegisterFlags(flags)
	flags.VisitAll(func(f *pflag.Flag) {
		f.Hidden = !slices.ContainsFunc(shown, func(s string) bool { return strings.HasPrefix(f.Name, s) })
	})
	cmd.Flags().String("config", "", "YAML `file` with settings (default: TIDEMARK_CONFIG, or tidemark.yaml if there is one)")
	cmd.Flags().AddFlagSet(flags)
	cmd.Flags().SortFlags = false
	for flag, choices := range config.Choices() {
		// It fails only for a flag that is not there.
		_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(choices, cobra.ShellCompDirectiveNoFileComp))
	}
	return cmd
}

// loadSettings reads the settings of a command made by withSettings. With an
// error there may still be a Config to show.
func loadSettings(cmd *cobra.Command, sys system, need config.Need) (*config.Config, error) {
	file, err := cmd.Flags().GetString("config")
	if err != nil {
		return nil, err
	}
	if file == "" {
		file, _ = lookup(sys.environ, "TIDEMARK_CONFIG")
	}
	if file == "" {
		if _, err := os.Stat("tidemark.yaml"); err == nil {
			file = "tidemark.yaml"
		}
	}
	c, err := config.Load(config.Sources{File: file, Environ: sys.environ, Flags: cmd.Flags()}, need)
	if err = withTracing(err, c, sys.environ); err != nil {
		err = refused(err)
	}
	return c, err
}

// lookup finds a variable in NAME=value pairs; the last one counts.
func lookup(environ []string, name string) (string, bool) {
	for _, pair := range slices.Backward(environ) {
		if n, v, ok := strings.Cut(pair, "="); ok && n == name {
			return v, true
		}
	}
	return "", false
}
