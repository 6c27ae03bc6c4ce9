package workflows

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"

	"github.com/tidemark-cdc/tidemark/internal/segment"
)

// State is a segment's state as the search attribute TidemarkState has it.
type State string

// The states. Uploading includes every retry.
const (
	Uploading   State = "uploading"
	Waiting     State = "waiting"
	Done        State = "done"
	Quarantined State = "quarantined"
)

// The search attributes of a segment. They are for people: visibility is
// eventually consistent, and nothing decides by it.
var (
	PipelineAttribute = temporal.NewSearchAttributeKeyKeyword("TidemarkPipeline")
	StateAttribute    = temporal.NewSearchAttributeKeyKeyword("TidemarkState")
	DayAttribute      = temporal.NewSearchAttributeKeyKeyword("TidemarkDay")
	TablesAttribute   = temporal.NewSearchAttributeKeyKeywordList("TidemarkTables")
	RowsAttribute     = temporal.NewSearchAttributeKeyInt64("TidemarkRows")
)

// AttributeTypes gives the search attributes that a namespace must know.
func AttributeTypes() map[string]enumspb.IndexedValueType {
	types := make(map[string]enumspb.IndexedValueType)
	for _, key := range []temporal.SearchAttributeKey{
		PipelineAttribute, StateAttribute, DayAttribute, TablesAttribute, RowsAttribute,
	} {
		types[key.GetName()] = key.GetValueType()
	}
	return types
}

const (
	// maxKeyword is the greatest length in bytes that every visibility store
	// takes for a keyword.
	maxKeyword = 255
	// maxValue is the server's bound on one search attribute, as the JSON that
	// its payload is, in bytes (frontend.searchAttributesSizeOfValueLimit). A
	// start that exceeds it is refused.
	maxValue = 2 << 10
	// maxSummary is the server's bound on a summary, in bytes.
	maxSummary = 400
)

// Attributes are the search attributes that a segment starts with, of bounded
// number and size whatever its tables are called.
func Attributes(ref segment.Ref) temporal.SearchAttributes {
	return temporal.NewSearchAttributes(
		PipelineAttribute.ValueSet(clip(ref.Pipeline, maxKeyword)),
		StateAttribute.ValueSet(string(Uploading)),
		DayAttribute.ValueSet(ref.Day.String()),
		TablesAttribute.ValueSet(shownTables(ref.Tables)),
		RowsAttribute.ValueSet(ref.Rows),
	)
}

// shownTables are as many of the tables as one search attribute holds.
func shownTables(tables []string) []string {
	shown, size := []string{}, len("[]")
	for _, table := range tables[:min(len(tables), segment.MaxTables)] {
		table = clip(table, maxKeyword)
		// Marshaling a string does not fail.
		text, _ := json.Marshal(table)
		if size += len(text) + len(","); size > maxValue {
			break
		}
		shown = append(shown, table)
	}
	return shown
}

// Summary is the line by which the UI shows a segment: pipeline, LSN range,
// rows, bytes, tables.
func Summary(ref segment.Ref) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s · %s to %s · %s rows · %s", clip(ref.Pipeline, maxKeyword), ref.First.LSN, ref.Last.LSN, count(ref.Rows), size(ref.Bytes))
	shown := 0
	for _, table := range ref.Tables {
		sep := ", "
		if shown == 0 {
			sep = " · "
		}
		// Room is left for the number of those that are not shown.
		if b.Len()+len(sep)+len(table) > maxSummary-32 {
			break
		}
		b.WriteString(sep + table)
		shown++
	}
	if more := ref.TableCount - shown; more > 0 {
		fmt.Fprintf(&b, " and %s more", counted(int64(more), "table"))
	}
	return clip(b.String(), maxSummary)
}

// Details are the fixed facts of a segment, in the UI's Markdown.
func Details(ref segment.Ref) string {
	return fmt.Sprintf("first `%s`\n\nlast `%s`\n\nfollows `%s`\n\ndigest `%s`, UTC commit day %s, lake `%s`",
		ref.First, ref.Last, ref.Follows, ref.Digest, ref.Day, ref.Lake)
}

// clip shortens s to at most max bytes, between two characters.
func clip(s string, max int) string {
	if len(s) <= max {
		return s
	}
	end := max
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end]
}

// count writes n with a comma between thousands.
func count(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func counted(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return count(n) + " " + noun + "s"
}

// size writes a number of bytes for people.
func size(n int64) string {
	switch {
	case n < 1<<10:
		return fmt.Sprintf("%d B", n)
	case n < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	default:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
}
