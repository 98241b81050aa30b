package waitqueue

import (
	"math"
	"time"

	"github.com/mortise-go/mortise/internal/machine"
)

// Times of [Estimate].
const (
	shortestInterval = 5 * time.Millisecond   // between two looks
	longestNext      = 750 * time.Millisecond // between two looks of the one that is next
	unknownPresent   = 200 * time.Millisecond // for the first place, if nothing is known of holds
	unknownHold      = 10 * time.Millisecond  // for each place behind it: early looks cost less than late ones
	defaultLongest   = 20 * time.Second
)

// Estimate is what is known of a line, from which follows when to look at it again. The zero value is that of a place
// that is next in a line of which nothing is known.
//
// A look that comes too early costs a read. One that comes too late leaves the lock unused meanwhile.
type Estimate struct {
	// Ahead is how many places are before the own one: 1 for the one that is next. For a caller that is not in the line
	// it is the line's length. Less counts as 1.
	Ahead int

	// Hold is how long a place keeps the lock, as [Smooth] has it. Zero or less means that it is not known.
	Hold time.Duration

	// Held is for how long the present holder has kept the lock, passes included, according to the row. Other machines'
	// clocks may be part of it: a wrong value makes looks somewhat less well timed, and at most a hold too late.
	Held time.Duration

	// Unchanged is for how long the caller itself has seen this holder first. It makes the times between looks grow where
	// nothing changes.
	Unchanged time.Duration

	// Longest bounds the times that follow. Zero or less means 20 s. With the length of a lease, a line whose first
	// places have died is noticed in time, however many they are.
	Longest time.Duration
}

// Look returns how long a place in the line waits until it looks again: 0.9 to 0.97 of the time after which it should
// be first, but at least 0.125 to 0.15 of Hold or Unchanged, whichever is longer. So where the holder keeps the lock
// for longer than expected, each time is longer than the one before by an eighth.
//
// The time is between 5 ms and Longest. For the one that is next, it is 750 ms at most.
func (e Estimate) Look(m machine.Machine) time.Duration {
	hold, present := float64(e.Hold), float64(e.Hold)
	if hold <= 0 {
		hold, present = float64(unknownHold), float64(unknownPresent)
	}
	left := float64(max(e.Ahead, 1)-1) * hold
	if e.Hold > 0 {
		left += hold - min(float64(max(e.Held, e.Unchanged, 0)), hold)
	}
	least := max(present, float64(e.Unchanged))
	most := e.longest()
	if e.Ahead <= 1 {
		most = min(most, longestNext)
	}
	if 0.9*left > 0.125*least {
		return between(m, 0.9*left, 0.97*left, most)
	}
	return between(m, 0.125*least, 0.15*least, most)
}

// Enter returns how long a caller that found the line full waits until it tries again to enter, after so many tries in
// vain before this one: at first for 0.6 of the time in which the whole line should have had its turn, then half as
// long again each time, up to Longest. The time is jittered by half, and at least 5 ms.
func (e Estimate) Enter(m machine.Machine, tries int) time.Duration {
	hold := e.Hold
	if hold <= 0 {
		hold = unknownHold
	}
	d := 0.6 * float64(max(e.Ahead, 1)) * float64(hold) * math.Pow(1.5, float64(max(tries, 0)))
	d = min(d, float64(e.longest()))
	return between(m, d/2, d*3/2, 2*longest)
}

func (e Estimate) longest() time.Duration {
	if e.Longest <= 0 {
		return defaultLongest
	}
	return min(max(e.Longest, shortestInterval), longest)
}

// between draws a time from low to below high. It is 5 ms at least, and most at most: what would be longer is drawn from
// proportionally shorter times, so that those who wait for long do not look in step. Floats do not overflow, whatever a
// row says.
func between(m machine.Machine, low, high float64, most time.Duration) time.Duration {
	if over := high / float64(most); over > 1 {
		low, high = low/over, float64(most)
	}
	d := time.Duration(low)
	if spread := time.Duration(high - low); spread > 0 {
		d += m.N(spread)
	}
	return max(d, shortestInterval)
}

// Smooth returns the Hold of an [Estimate] after one more hold: a quarter of the way from the old one to the last one,
// in proportion. Many short holds and a few long ones give a short one, which is the safer estimate. An old one of zero
// or less means that none was known.
//
// last is from when the process learned that the lock is its own until it left, passes included. The time until it
// learned of it must not be part of last: a look that came too late would make later looks come later still. With 100
// processes that want the lock again and again for 50 ms each, it was used for 0.5 of the time then, instead of 0.9.
func Smooth(hold, last time.Duration) time.Duration {
	last = min(max(last, time.Millisecond), longest)
	if hold = min(hold, longest); hold <= 0 {
		return last
	}
	return time.Duration(float64(hold) * math.Pow(float64(last)/float64(hold), 0.25))
}
