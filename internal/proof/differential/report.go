package differential

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

// Report counts what a comparison did.
type Report struct {
	mu          sync.Mutex
	Compared    int            // requests whose answers were compared
	Refused     int            // those of them that the reference answered with an error
	Kinds       map[string]int // by operation
	Codes       map[string]int // by error code of the reference, "" for success
	Explained   map[string]int // by rule
	Interrupted int            // rounds that ended early with an error of the transport
	Differences []Difference
	Unexplained int
}

// NewReport returns an empty report.
func NewReport() *Report {
	return &Report{Kinds: map[string]int{}, Codes: map[string]int{}, Explained: map[string]int{}}
}

// String returns the counts as a few lines.
func (r *Report) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var b strings.Builder
	fmt.Fprintf(&b, "%d generated operations compared, %d of them refused by the reference\n", r.Compared, r.Refused)
	fmt.Fprintf(&b, "by operation: %s\n", counts(r.Kinds))
	fmt.Fprintf(&b, "by answer: %s\n", counts(r.Codes))
	explained := 0
	for _, n := range r.Explained {
		explained += n
	}
	if r.Interrupted > 0 {
		fmt.Fprintf(&b, "%d rounds given up because a connection broke\n", r.Interrupted)
	}
	fmt.Fprintf(&b, "%d explained differences: %s\n", explained, counts(r.Explained))
	fmt.Fprintf(&b, "%d unexplained differences", r.Unexplained)
	return b.String()
}

func counts(m map[string]int) string {
	if len(m) == 0 {
		return "none"
	}
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		name := k
		if name == "" {
			name = "success"
		}
		parts = append(parts, fmt.Sprintf("%s %d", name, m[k]))
	}
	return strings.Join(parts, ", ")
}

// maxInterrupted is how many rounds may be given up because a connection broke. It is not known then whether the
// request was applied.
const maxInterrupted = 5

func (r *Report) interrupt(ctx context.Context, err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Interrupted++
	if ctx.Err() != nil || r.Interrupted > maxInterrupted {
		return err
	}
	return nil
}

func (r *Report) add(d Difference) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Unexplained++
	r.Differences = append(r.Differences, d)
}
