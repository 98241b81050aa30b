package lock_test

import (
	"cmp"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// measure is one number of a figure, beside its goal.
type measure struct {
	got, goal string
	met       bool
}

// figure prints a figure of the design beside its goals, and fails the test when one of
// them is missed. name is the figure's, and may go on with the case: "P6, observed".
func figure(t testing.TB, name string, measures ...measure) {
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

// show writes a number of things with its unit, which may be none.
func show[N quantity](n N, unit string) string {
	switch n := any(n).(type) {
	case time.Duration:
		return fmt.Sprintf("%.4g s", n.Seconds()) + unit
	case float64:
		return strings.TrimSpace(fmt.Sprintf("%.4g %s", n, unit))
	}
	return strings.TrimSpace(fmt.Sprintf("%v %s", n, unit))
}

// atMost is a number with an upper goal; durations are shown in seconds.
func atMost[N quantity](got N, unit string, goal N) measure {
	return measure{show(got, unit), "<= " + show(goal, ""), cmp.Compare(got, goal) <= 0}
}

// atLeast is a number with a lower goal.
func atLeast[N quantity](got N, unit string, goal N) measure {
	return measure{show(got, unit), ">= " + show(goal, ""), cmp.Compare(got, goal) >= 0}
}

// inFull adds to a goal how many things the figure wants in full, where fewer are played here.
func (m measure) inFull(here, full int) measure {
	if here < full {
		m.goal += fmt.Sprintf(" here, %d in full", full)
	}
	return m
}

// exactly is a number that has to be what it is.
func exactly[N quantity](got N, unit string, goal N) measure {
	return measure{show(got, unit), show(goal, ""), cmp.Compare(got, goal) == 0}
}

// within is a number that may be off by so much to either side.
func within(got float64, unit string, goal, by float64) measure {
	return measure{show(got, unit), fmt.Sprintf("%.4g +- %.2g", goal, by), got >= goal-by && got <= goal+by}
}

// A figure that misses its goal has to fail its test.
func TestFigureFailsWhenMissed(t *testing.T) {
	for _, tc := range []struct {
		m    measure
		text string
		met  bool
	}{
		{atMost(13.2, "requests", 14), "13.2 requests (goal <= 14)", true},
		{atMost(15, "requests", 14), "15 requests (goal <= 14)", false},
		{atMost(13200*time.Millisecond, "", 14*time.Second), "13.2 s (goal <= 14 s)", true},
		{atMost(14*time.Second+1, " waited", 14*time.Second), "14 s waited (goal <= 14 s)", false},
		{atLeast(3, "", 4), "3 (goal >= 4)", false},
		{atLeast(50, "seeds", 50).inFull(50, 1000), "50 seeds (goal >= 50 here, 1000 in full)", true},
		{atLeast(49, "seeds", 50).inFull(50, 1000), "49 seeds (goal >= 50 here, 1000 in full)", false},
		{atLeast(1000, "seeds", 1000).inFull(1000, 1000), "1000 seeds (goal >= 1000)", true},
		{exactly(0, "lost", 0), "0 lost (goal 0)", true},
		{exactly(1, "lost", 0), "1 lost (goal 0)", false},
		{within(1.01, "writes", 1, 0.15), "1.01 writes (goal 1 +- 0.15)", true},
		{within(0.8, "writes", 1, 0.15), "0.8 writes (goal 1 +- 0.15)", false},
	} {
		assert.Equal(t, tc.text, fmt.Sprintf("%s (goal %s)", tc.m.got, tc.m.goal))
		assert.Equal(t, tc.met, tc.m.met, tc.text)
		r := &trial{TB: t}
		figure(r, "X", tc.m)
		assert.Equal(t, tc.met, !r.failed, tc.text)
		assert.Equal(t, "figure X: "+tc.text, r.line)
	}
}

// trial stands in for a test whose failure is no failure.
type trial struct {
	testing.TB
	failed bool
	line   string
}

func (*trial) Helper() {}

func (r *trial) Errorf(string, ...any) { r.failed = true }

func (r *trial) Logf(format string, args ...any) { r.line = fmt.Sprintf(format, args...) }

// fewer is a number of repetitions: a tenth under the race detector, which takes ten times as
// long for each and looks at the order of things, not at how often they happen.
func fewer(n int) int {
	if raceEnabled {
		return n / 10
	}
	return n
}
