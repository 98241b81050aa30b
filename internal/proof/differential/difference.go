package differential

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
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
