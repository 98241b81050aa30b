package migrations

import (
	"fmt"
	"strings"
	"time"
)

// Progress is the progress of a backfill. Counts include earlier attempts of the same run, except for Conflicts, Rate
// and the units. Unless [Backfill.Exact] is set, Changed can lack items that an attempt wrote after its last checkpoint:
// the next attempt counts them only if it writes them again.
type Progress struct {
	Migration string
	Step      string
	Seen      int64         // items read that the Filter selects
	Changed   int64         // items written
	Conflicts int64         // items that another program had changed meanwhile
	Total     int64         // items in the table, as DynamoDB estimates with a delay of hours; 0 if unknown, or with a Filter
	Elapsed   time.Duration // duration of this attempt
	Rate      float64       // items read per second
	Left      time.Duration // estimated remaining time; 0 if unknown
	Done      bool

	ReadUnits, WriteUnits float64 // as DynamoDB reports them
}

// String returns one line for people.
func (p Progress) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s: %d items", p.Migration, p.Step, p.Seen)
	if p.Total > 0 && !p.Done {
		fmt.Fprintf(&b, " of about %d (%d %%)", p.Total, min(100, 100*p.Seen/p.Total))
	}
	fmt.Fprintf(&b, ", %d changed, %.0f/s", p.Changed, p.Rate)
	switch {
	case p.Done:
		fmt.Fprintf(&b, ", done in %v", p.Elapsed.Round(time.Millisecond))
	case p.Left > 0:
		fmt.Fprintf(&b, ", about %v left", p.Left.Round(time.Second))
	}
	return b.String()
}
