package waitqueue_test

import (
	"cmp"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"

	"github.com/mortise-go/mortise/internal/machine"
	"github.com/mortise-go/mortise/lock/internal/waitqueue"
)

// extreme is a machine whose chance is always the least, or the greatest.
type extreme struct {
	machine.Real

	greatest bool
}

func (e extreme) N(d time.Duration) time.Duration {
	if e.greatest {
		return d - 1
	}
	return 0
}

func TestEstimate_SaysWhenToLook(t *testing.T) {
	const s, us = time.Second, time.Microsecond
	type estimate = waitqueue.Estimate
	for name, tc := range map[string]struct {
		estimate  estimate
		low, high time.Duration
	}{
		// A turn is the hold and 7 ms. Looks come after 0.95 of what is left, or a half of long holds, give or take 4 %.
		"next":                         {estimate{Ahead: 1, Hold: 193 * ms}, 182400 * us, 197600 * us},
		"next, long":                   {estimate{Ahead: 1, Hold: 393 * ms}, 192 * ms, 208 * ms},
		"next, held for a while":       {estimate{Ahead: 1, Hold: 193 * ms, Held: 100 * ms}, 91200 * us, 98800 * us},
		"next, seen for longer":        {estimate{Ahead: 1, Hold: 193 * ms, Held: 50 * ms, Unchanged: 100 * ms}, 91200 * us, 98800 * us},
		"next, over soon":              {estimate{Ahead: 1, Hold: 200 * ms, Held: 190 * ms}, 19200 * us, 20800 * us},
		"next, overdue":                {estimate{Ahead: 1, Hold: 400 * ms, Held: 800 * ms, Unchanged: 800 * ms}, 76800 * us, 83200 * us},
		"next, a clock is fast":        {estimate{Ahead: 1, Hold: 400 * ms, Held: time.Hour}, 38400 * us, 41600 * us},
		"next, a clock is slow":        {estimate{Ahead: 1, Hold: 193 * ms, Held: -time.Hour}, 182400 * us, 197600 * us},
		"next, quick":                  {estimate{Ahead: 1, Hold: 2 * ms}, 8208 * us, 8892 * us},
		"next, quick, overdue":         {estimate{Ahead: 1, Hold: 2 * ms, Held: 20 * ms}, 5 * ms, 5 * ms},
		"next, slow":                   {estimate{Ahead: 1, Hold: time.Hour}, 750 * ms * 96 / 104, 750 * ms},
		"next, short lease":            {estimate{Ahead: 1, Hold: time.Hour, Longest: 520 * ms}, 480 * ms, 520 * ms},
		"next, nothing known":          {estimate{}, 28800 * us, 31200 * us},
		"next, nothing known for long": {estimate{Unchanged: 2 * s}, 192 * ms, 208 * ms},
		"second":                       {estimate{Ahead: 2, Hold: 993 * ms}, 960 * ms, 1040 * ms},
		"second, overdue":              {estimate{Ahead: 2, Hold: 993 * ms, Held: 2 * s, Unchanged: 2 * s}, 480 * ms, 520 * ms},
		"second, much overdue":         {estimate{Ahead: 2, Hold: s, Held: 80 * s, Unchanged: 80 * s}, 7680 * ms, 8320 * ms},
		"tenth":                        {estimate{Ahead: 10, Hold: 93 * ms}, 912 * ms, 988 * ms},
		"tenth, quick":                 {estimate{Ahead: 10, Hold: ms}, 72960 * us, 79040 * us},
		"tenth, slow":                  {estimate{Ahead: 10, Hold: time.Minute}, 20 * s * 96 / 104, 20 * s},
		"tenth, slow, short lease":     {estimate{Ahead: 10, Hold: time.Minute, Longest: 1040 * ms}, 960 * ms, 1040 * ms},
		"hundredth, nothing known":     {estimate{Ahead: 101}, 2280 * ms, 2470 * ms},
		"next of ten at once":          {estimate{Ahead: 1, AtOnce: 10, Hold: 493 * ms}, 45600 * us, 49400 * us},
		"third of ten at once":         {estimate{Ahead: 3, AtOnce: 10, Hold: 493 * ms}, 136800 * us, 148200 * us},
		"next of two at once, long":    {estimate{Ahead: 1, AtOnce: 2, Hold: 793 * ms}, 192 * ms, 208 * ms},
		"of any length":                {estimate{Ahead: math.MaxInt, Hold: math.MaxInt64}, 20 * s * 96 / 104, 20 * s},
		"next, below zero":             {estimate{Ahead: 1, Hold: -1, Held: -1, Unchanged: -1}, 28800 * us, 31200 * us},
	} {
		t.Run(name, func(t *testing.T) {
			tc.estimate.Longest = cmp.Or(tc.estimate.Longest, 20*s)
			assert.InDelta(t, tc.low, tc.estimate.Look(extreme{}), 1000)
			assert.InDelta(t, tc.high, tc.estimate.Look(extreme{greatest: true}), 1000)
		})
	}
	for name, tc := range map[string]struct {
		estimate  estimate
		tries     int
		low, high time.Duration
	}{
		"first":              {estimate{Ahead: 100, Hold: 43 * ms}, 0, 3750 * ms, 7500 * ms},
		"second":             {estimate{Ahead: 50, Hold: 43 * ms}, 1, 2812500 * us, 5625 * ms},
		"tenth":              {estimate{Ahead: 100, Hold: 50 * ms}, 9, 10 * s, 20 * s},
		"tenth, short lease": {estimate{Ahead: 100, Hold: 50 * ms, Longest: 6 * s}, 9, 3 * s, 6 * s},
		"nothing known":      {estimate{Ahead: 100}, 0, 1875 * ms, 3750 * ms},
		"of any length":      {estimate{Ahead: math.MaxInt, Hold: math.MaxInt64}, math.MaxInt, 10 * s, 20 * s},
	} {
		t.Run("enter, "+name, func(t *testing.T) {
			tc.estimate.Longest = cmp.Or(tc.estimate.Longest, 20*s)
			assert.InDelta(t, tc.low, tc.estimate.Enter(extreme{}, tc.tries), 1000)
			assert.InDelta(t, tc.high, tc.estimate.Enter(extreme{greatest: true}, tc.tries), 1000)
		})
	}
}

// Whatever a row says, there is a time between two looks, and it is bounded.
func TestEstimate_IsBoundedWhateverARowSays(t *testing.T) {
	const year = 365 * 24 * time.Hour // bounds what a hold is taken for
	rapid.Check(t, func(t *rapid.T) {
		duration := rapid.Custom(func(t *rapid.T) time.Duration { return time.Duration(rapid.Int64().Draw(t, "d")) })
		e := waitqueue.Estimate{
			Ahead: rapid.IntRange(1, math.MaxInt).Draw(t, "ahead"),
			Hold:  duration.Draw(t, "hold"), Held: duration.Draw(t, "held"),
			Unchanged: duration.Draw(t, "unchanged"), Longest: time.Duration(rapid.Int64Range(int64(5*ms), int64(year)).Draw(t, "longest")),
		}
		if d := e.Look(machine.Real{}); d < 5*ms || d > e.Longest {
			t.Fatal(d)
		}
		if d := e.Enter(machine.Real{}, rapid.IntRange(0, math.MaxInt).Draw(t, "tries")); d < 5*ms || d > e.Longest {
			t.Fatal(d)
		}
		last := duration.Draw(t, "last")
		if d, low, high := waitqueue.Smooth(e.Hold, last), max(last, ms), max(last, ms); d < min(low, max(e.Hold, 1), year)-1 || d > min(max(high, e.Hold), year)+1 {
			t.Fatal(d)
		}
	})
}

func TestSmooth_RisesSlowlyAndFallsFast(t *testing.T) {
	assert.Equal(t, 40*ms, waitqueue.Smooth(0, 40*ms))
	assert.Equal(t, 40*ms, waitqueue.Smooth(-1, 40*ms))
	assert.Equal(t, ms, waitqueue.Smooth(0, 0))
	assert.Equal(t, 20*ms, waitqueue.Smooth(10*ms, 2560*ms), "an eighth of the way up")
	assert.Equal(t, 40*ms, waitqueue.Smooth(160*ms, 10*ms), "half of the way down")
	assert.InDelta(t, 50*ms, waitqueue.Smooth(50*ms, 50*ms), 10)
	hold := 5 * ms
	for i := range 1000 {
		last := 5 * ms
		if i%10 == 0 {
			last = 500 * ms
		}
		hold = waitqueue.Smooth(hold, last)
		assert.Less(t, hold, 25*ms, "a tenth of long holds do not hide the others")
	}
}

// A holder that keeps the lock for an hour, where others have kept it for 5 ms, is not asked about 200 times a second.
func TestEstimate_LooksBecomeFewer(t *testing.T) {
	for ahead, most := range map[int]int{1: 3600*3/2 + 50, 2: 3600/20 + 100, 50: 3600/20 + 100} {
		looks, held := 0, time.Duration(0)
		for ; held < time.Hour; looks++ {
			held += waitqueue.Estimate{Ahead: ahead, Hold: 5 * ms, Held: held, Unchanged: held, Longest: 20 * time.Second}.Look(machine.Real{})
		}
		t.Logf("%d ahead: %d looks in an hour", ahead, looks)
		assert.LessOrEqual(t, looks, most)
		assert.GreaterOrEqual(t, looks, 3600/20)
	}
}
