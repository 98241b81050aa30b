package migrations

import (
	"fmt"
	"strings"
	"time"
)

// Progress is how far a backfill has come. Counts include earlier attempts of the same run,
// except for Conflicts, Rate and the units.
type Progress struct {
	Migration string
	Step      string
	Seen      int64         // items read
	Changed   int64         // items written
	Conflicts int64         // items that somebody else had changed meanwhile
	Total     int64         // items in the table, as DynamoDB estimates, some hours late; 0 where that is not known
	Elapsed   time.Duration // of this attempt
	Rate      float64       // items read per second
	Left      time.Duration // estimate of the rest; 0 where that is not known
	Done      bool

	ReadUnits, WriteUnits float64 // that DynamoDB reported
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
