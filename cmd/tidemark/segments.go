package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/tidemark-cdc/tidemark/internal/change"
	"github.com/tidemark-cdc/tidemark/internal/operator"
	"github.com/tidemark-cdc/tidemark/streamer"
)

func newSegments(sys system) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "segments",
		Short: "List, show, retry and quarantine segments",
		Long: `Look at the segments of a pipeline as Temporal knows them, and send them the
updates retry and quarantine. Nothing but Temporal is needed: no database, no
lake, no running streamer.`,
		Args:              cobra.NoArgs,
		DisableAutoGenTag: true,
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	for _, sub := range []func(system) *cobra.Command{newSegmentsList, newSegmentsShow, newSegmentsRetry, newSegmentsQuarantine} {
		cmd.AddCommand(sub(sys))
	}
	return cmd
}

// segmentFilter are the flags of a list.
type segmentFilter struct {
	states         []string
	table          string
	day            string
	from, to       string
	limit          int
	operatorFilter operator.Filter
}

func newSegmentsList(sys system) *cobra.Command {
	var f segmentFilter
	var asJSON bool
	cmd := verbOf("list", "List segments in stream order",
		`List the segments of a pipeline in stream order, from Temporal alone.

The states: running; retrying, after an attempt has failed and before the next;
waiting, for a person, see retry and quarantine; done; quarantined; broken, which
is terminated, canceled or timed out, and started again by the streamer; given-up,
which resolve or setup --recreate-slot has settled, and nothing starts again.
Closed ones are known for as long as Temporal's namespace keeps them.

With many segments the last ones are shown; what is in flight is among them.`,
		cobra.NoArgs, func(cmd *cobra.Command, args []string) error {
			if err := f.parse(); err != nil {
				return refused(err)
			}
			return withOperator(sys, func(cmd *cobra.Command, _ []string, o *operator.Operator, _ *progress) error {
				segments, more, err := o.List(cmd.Context(), f.operatorFilter)
				if err != nil {
					return err
				}
				if asJSON {
					return printJSON(cmd.OutOrStdout(), segmentList{Segments: segments, More: more})
				}
				return writeSegments(cmd.OutOrStdout(), segments, more, time.Now())
			})(cmd, args)
		})
	cmd.Flags().StringSliceVar(&f.states, "state", nil, "only these `states`, between commas or repeated")
	cmd.Flags().StringVar(&f.table, "table", "", "only segments with changes of this `table`, as schema.table")
	cmd.Flags().StringVar(&f.day, "day", "", "only this UTC commit `day`, as YYYY-MM-DD")
	cmd.Flags().StringVar(&f.from, "from", "", "only what reaches to this `LSN` or position, or beyond")
	cmd.Flags().StringVar(&f.to, "to", "", "only what begins at this `LSN` or position, or before")
	cmd.Flags().IntVar(&f.limit, "limit", 100, "show the last `n`; 0 for all")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return withSettings(cmd, "pipeline", "temporal")
}

// parse checks the flags, all at once.
func (f *segmentFilter) parse() error {
	var errs []error
	out := operator.Filter{Table: f.table, Limit: f.limit}
	for _, s := range f.states {
		state := operator.State(strings.TrimSpace(s))
		if !slices.Contains(operator.States(), state) {
			errs = append(errs, fmt.Errorf("--state: %q is none of %s", s, joined(operator.States())))
			continue
		}
		out.States = append(out.States, state)
	}
	if f.day != "" {
		day, err := change.ParseDay(f.day)
		if err != nil {
			errs = append(errs, fmt.Errorf("--day: %w", err))
		}
		out.Day = &day
	}
	var err error
	if out.Range, err = parseRange(f.from, f.to); err != nil {
		errs = append(errs, err)
	}
	if f.limit < 0 {
		errs = append(errs, errors.New("--limit: want 0 or more"))
	}
	f.operatorFilter = out
	return errors.Join(errs...)
}

// parseRange reads the flags from and to.
func parseRange(from, to string) (operator.Range, error) {
	var errs []error
	var r operator.Range
	var err error
	if r.From, err = operator.ParseBound(from); err != nil {
		errs = append(errs, fmt.Errorf("--from: %w", err))
	}
	if r.To, err = operator.ParseBound(to); err != nil {
		errs = append(errs, fmt.Errorf("--to: %w", err))
	}
	if len(errs) == 0 && r.Empty() {
		errs = append(errs, fmt.Errorf("--to %s stands before --from %s", to, from))
	}
	return r, errors.Join(errs...)
}

func joined[T ~string](all []T) string {
	var words []string
	for _, s := range all {
		words = append(words, string(s))
	}
	return strings.Join(words, ", ")
}

// segmentList is what segments list --json prints. More are before these, and
// left out by --limit.
type segmentList struct {
	Segments []operator.Segment `json:"segments"`
	More     int                `json:"more"`
}

// maxError is how much of an error the list shows; show has all of it.
const maxError = 100

func writeSegments(w io.Writer, segments []operator.Segment, more int, now time.Time) error {
	if len(segments) == 0 {
		_, err := fmt.Fprintln(w, "There is none.")
		return err
	}
	if more > 0 {
		fmt.Fprintf(w, "%d before these are not shown: --limit 0 shows all.\n", more)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "FIRST\tSTATE\tDAY\tROWS\tBYTES\tTABLES\tSTARTED\tATTEMPT")
	for _, s := range segments {
		state, attempt := string(s.State), ""
		if s.Replayed {
			state += ", replayed"
		}
		if s.Attempt > 1 {
			attempt = fmt.Sprint(s.Attempt)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%s\t%s\t%s\t%s\n", s.Ref.First, state, s.Ref.Day, s.Ref.Rows, streamer.BytesText(s.Ref.Bytes),
			tablesText(s.Ref.Tables, s.Ref.TableCount, 2), max(now.Sub(s.Started), 0).Round(time.Second).String()+" ago", attempt)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, s := range segments {
		if s.State.Open() && s.LastError != "" {
			fmt.Fprintf(w, "\n%s, %s: %s\n", s.Ref.First, s.State, shortened(oneLine(s.LastError)))
		}
	}
	return nil
}

// shortened cuts a long error between two words.
func shortened(text string) string {
	const most = 4 * maxError
	if len(text) <= most {
		return text
	}
	if i := strings.LastIndexByte(text[:most], ' '); i > 0 {
		return text[:i] + " …"
	}
	return text[:most]
}

// tablesText names the first few tables.
func tablesText(tables []string, count, most int) string {
	shown := tables[:min(most, len(tables))]
	text := strings.Join(shown, ", ")
	if more := count - len(shown); more > 0 && len(shown) > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
