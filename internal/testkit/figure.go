package testkit

import (
	"cmp"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// Measure is one number of a figure, with its goal.
type Measure struct {
	got, goal string
	met       bool
}

// Check prints a figure with its goals, and fails the test if it misses one of them. name is the name of the figure, and may add the case:
// "P6, observed".
func Check(t testing.TB, name string, measures ...Measure) {
	t.Helper()
	parts := make([]string, len(measures))
	for i, m := range measures {
		parts[i] = fmt.Sprintf("%s (goal %s)", m.got, m.goal)
		assert.True(t, m.met, "figure %s misses its goal: %s", name, parts[i])
	}
	t.Logf("figure %s: %s", name, strings.Join(parts, ", "))
}

type quantity interface {
	~int | ~int64 | ~float64
}

// show formats a number with its unit, which may be empty. Durations are in seconds, with the unit directly after them.
func show[N quantity](n N, unit string) string {
	switch n := any(n).(type) {
	case time.Duration:
		return fmt.Sprintf("%.4g s", n.Seconds()) + unit
	case float64:
		return strings.TrimSpace(fmt.Sprintf("%.4g %s", n, unit))
	}
	return strings.TrimSpace(fmt.Sprintf("%v %s", n, unit))
}

// AtMost is a number that must be at most goal. Durations are shown in seconds.
func AtMost[N quantity](got N, unit string, goal N) Measure {
	return Measure{show(got, unit), "<= " + show(goal, ""), cmp.Compare(got, goal) <= 0}
}

// AtLeast is a number that must be at least goal.
func AtLeast[N quantity](got N, unit string, goal N) Measure {
	return Measure{show(got, unit), ">= " + show(goal, ""), cmp.Compare(got, goal) >= 0}
}

// InFull adds the amount of the full figure to the text of the goal, if the amount here is smaller. It does not change the comparison.
func (m Measure) InFull(here, full int) Measure {
	if here < full {
		m.goal += fmt.Sprintf(" here, %d in full", full)
	}
	return m
}

// Exactly is a number that must be equal to goal.
func Exactly[N quantity](got N, unit string, goal N) Measure {
	return Measure{show(got, unit), show(goal, ""), cmp.Compare(got, goal) == 0}
}

// Within is a number whose difference from goal must be at most by.
func Within(got float64, unit string, goal, by float64) Measure {
	return Measure{show(got, unit), fmt.Sprintf("%.4g +- %.2g", goal, by), got >= goal-by && got <= goal+by}
}
