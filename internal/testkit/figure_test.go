package testkit

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// A figure that misses its goal fails its test.
func TestCheck_FailsWhenAGoalIsMissed(t *testing.T) {
	for _, tc := range []struct {
		m    Measure
		text string
		met  bool
	}{
		{AtMost(13.2, "requests", 14), "13.2 requests (goal <= 14)", true},
		{AtMost(15, "requests", 14), "15 requests (goal <= 14)", false},
		{AtMost(13200*time.Millisecond, "", 14*time.Second), "13.2 s (goal <= 14 s)", true},
		{AtMost(14*time.Second+1, " waited", 14*time.Second), "14 s waited (goal <= 14 s)", false},
		{AtLeast(3, "", 4), "3 (goal >= 4)", false},
		{AtLeast(50, "seeds", 50).InFull(50, 1000), "50 seeds (goal >= 50 here, 1000 in full)", true},
		{AtLeast(49, "seeds", 50).InFull(50, 1000), "49 seeds (goal >= 50 here, 1000 in full)", false},
		{AtLeast(1000, "seeds", 1000).InFull(1000, 1000), "1000 seeds (goal >= 1000)", true},
		{Exactly(0, "lost", 0), "0 lost (goal 0)", true},
		{Exactly(1, "lost", 0), "1 lost (goal 0)", false},
		{Within(1.01, "writes", 1, 0.15), "1.01 writes (goal 1 +- 0.15)", true},
		{Within(0.8, "writes", 1, 0.15), "0.8 writes (goal 1 +- 0.15)", false},
	} {
		assert.Equal(t, tc.text, fmt.Sprintf("%s (goal %s)", tc.m.got, tc.m.goal))
		assert.Equal(t, tc.met, tc.m.met, tc.text)
		r := &trial{TB: t}
		Check(r, "X", tc.m)
		assert.Equal(t, tc.met, !r.failed, tc.text)
		assert.Equal(t, "figure X: "+tc.text, r.line)
	}
}

// trial records a failure without failing the test.
type trial struct {
	testing.TB
	failed bool
	line   string
}

func (*trial) Helper() {}

func (r *trial) Errorf(string, ...any) { r.failed = true }

func (r *trial) Logf(format string, args ...any) { r.line = fmt.Sprintf(format, args...) }
