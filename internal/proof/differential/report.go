package differential

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
)

// Difference is a difference that no rule explains.
type Difference struct {
	Stream            uint64
	Round             int
	Request           any
	Tested, Reference Answer
	// Before are the requests that lead to the difference, after shrinking. The last one is not among them: it is
	// Request.
	Before []any
}

// Place tells where the answers differ, without the particulars of the request, so that differences with one cause
// are shown together.
func (d Difference) Place() string {
	a, b := normal(d.Request, d.Tested), normal(d.Request, d.Reference)
	if a.Code != b.Code || a.Message != b.Message {
		return Kind(d.Request) + ": " + text(a) + " | " + text(b)
	}
	var places []string
	differing("", map[string]any{"o": a.Output, "d": a.Detail}, map[string]any{"o": b.Output, "d": b.Detail}, func(p string) {
		if !slices.Contains(places, p) {
			places = append(places, p)
		}
	})
	slices.Sort(places)
	return Kind(d.Request) + ": " + strings.Join(places, " ")
}

func text(a Answer) string {
	var b strings.Builder
	for word := range strings.FieldsSeq(a.Code + " " + a.Message) {
		if strings.ContainsAny(word, "0123456789[]{}:;\",#") {
			word = "~"
		}
		b.WriteString(word + " ")
	}
	return b.String()
}

// differing reports the places where two trees differ, at most one level below the fields that all answers of an
// operation have.
func differing(at string, a, b any, report func(string)) {
	if reflect.DeepEqual(a, b) {
		return
	}
	ma, ok := a.(map[string]any)
	mb, okb := b.(map[string]any)
	if !ok || !okb || strings.Count(at, ".") > 2 {
		report(at)
		return
	}
	for k := range ma {
		if _, have := mb[k]; !have {
			report(at + "." + k + "-")
		} else {
			differing(at+"."+k, ma[k], mb[k], report)
		}
	}
	for k := range mb {
		if _, have := ma[k]; !have {
			report(at + "." + k + "+")
		}
	}
}

// String returns the requests and both answers.
func (d Difference) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "stream %d, round %d:\n", d.Stream, d.Round)
	for _, in := range d.Before {
		fmt.Fprintf(&b, "    before:    %s\n", Render(in))
	}
	fmt.Fprintf(&b, "    request:   %s\n", Render(d.Request))
	fmt.Fprintf(&b, "    tested:    %s\n", d.Tested)
	fmt.Fprintf(&b, "    reference: %s", d.Reference)
	return b.String()
}

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
