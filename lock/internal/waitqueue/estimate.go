package waitqueue

import (
	"math"
	"time"

	"github.com/mortise-go/mortise/internal/machine"
)

// Times of [Estimate].
const (
	shortestLook   = 5 * time.Millisecond
	longestNext    = 750 * time.Millisecond // between two looks of the one that is next
	handover       = 7 * time.Millisecond   // from one holder to the next: a release, and a look that is somewhat late
	longHold       = 200 * time.Millisecond // above it, looks cost less than a lock that is not used
	unknownPresent = 300 * time.Millisecond // hold of the first place, if nothing is known of holds
	unknownTurn    = 25 * time.Millisecond  // of each place behind it: early looks cost less than late ones
	longest        = 365 * 24 * time.Hour   // it may as well be for ever
)

// Estimate is what is known of a line, from which follows when to look at it again. With Longest alone it is that of a place
// that is next in a line of which nothing is known.
//
// A look that comes too early costs a read. One that comes too late leaves the lock unused meanwhile.
type Estimate struct {
	// Ahead is how many places are before the own one: 1 for the one that is next. For a caller that is not in the line
	// it is the line's length. Less counts as 1.
	Ahead int

	// AtOnce is how many places keep the lock at once. Less counts as 1.
	AtOnce int

	// Hold is how long a place keeps the lock, as [Smooth] has it. Zero or less means that it is not known.
	Hold time.Duration

	// Held is for how long the present holder has kept the lock, passes included, according to the row. Other machines'
	// clocks may be part of it: a wrong value makes looks somewhat less well timed, and at most a hold too late.
	Held time.Duration

	// Unchanged is for how long the caller itself has seen the holder's process first. It makes the times between looks
	// grow where nothing changes.
	Unchanged time.Duration

	// Longest bounds the times that follow. Required. With the length of a lease, a line whose first places have died is noticed in
	// time, however many they are.
	Longest time.Duration
}

// Look returns how long a place in the line waits until it looks again: for about 0.95 of the time after which it should
// be first, and for half of it where places keep the lock for more than 200 ms, since what they lose by a wrong estimate
// is worth more than a few looks. The time is at least about 0.1 of Hold or Unchanged, whichever is longer: where the
// holder keeps the lock for longer than expected, each time is longer than the one before by a tenth.
//
// The time is between 5 ms and Longest. For the one that is next, it is 750 ms at most.
func (e Estimate) Look(m machine.Machine) time.Duration {
	present, part, most := e.share(e.Hold), 0.95, e.Longest
	left := float64(e.turn()) * float64(max(e.Ahead, 1)-1)
	if e.Hold > 0 {
		left += float64(max(e.turn()-max(e.Held, e.Unchanged, 0), 0))
	} else {
		present = e.share(unknownPresent)
	}
	if e.share(e.Hold) > longHold {
		part = 0.5
	}
	if e.Ahead <= 1 {
		most = min(most, longestNext)
	}
	d := max(part*left, 0.1*float64(max(present, e.Unchanged)))
	return between(m, 0.96*d, 1.04*d, most)
}

// Enter returns how long a caller that found the line full waits until it tries again to enter, after so many tries in
// vain before this one: at first for up to one and a half times as long as the whole line should need, then half as long
// again each time, and up to Longest. The time is jittered by half.
func (e Estimate) Enter(m machine.Machine, tries int) time.Duration {
	d := float64(max(e.Ahead, 1)) * float64(e.turn()) * math.Pow(1.5, float64(max(tries, 0))+1)
	d = min(d, float64(e.Longest))
	return between(m, d/2, d, longest)
}

// turn is how long a place is first: while it holds the lock, and until the one behind it has noticed. Where several keep it at
// once, one of them leaves in a part of that time.
func (e Estimate) turn() time.Duration {
	if e.Hold <= 0 {
		return e.share(unknownTurn)
	}
	return e.share(min(e.Hold, longest) + handover)
}

// share is what a time is for each of those that keep the lock at once.
func (e Estimate) share(d time.Duration) time.Duration { return d / time.Duration(max(e.AtOnce, 1)) }

// between draws a time from low to below high. It is 5 ms at least, and most at most: what would be longer is drawn from
// proportionally shorter times, so that those who wait for long do not look in step. Floats do not overflow, whatever a
// row says.
func between(m machine.Machine, low, high float64, most time.Duration) time.Duration {
	if over := high / float64(most); over > 1 {
		low, high = low/over, float64(most)
	}
	return max(time.Duration(low)+m.N(max(time.Duration(high-low), 1)), shortestLook)
}

// Smooth returns the Hold of an [Estimate] after one more hold: half of the way from the old one down to a shorter one, in
// proportion, and an eighth of the way up to a longer one. Many long holds and a few short ones give a short one, which is
// the safer estimate. An old one of zero or less means that none was known.
//
// last is from when the process learned that the lock is its own until it left, passes included. With the time until it
// learned of it, a look that came too late would make later looks come later still: 100 processes that want the lock
// again and again for 50 ms each use it for 0.5 of the time then, instead of 0.9.
func Smooth(hold, last time.Duration) time.Duration {
	last = min(max(last, time.Millisecond), longest)
	if hold = min(hold, longest); hold <= 0 {
		return last
	}
	part := 0.5
	if last > hold {
		part = 0.125
	}
	return time.Duration(float64(hold) * math.Pow(float64(last)/float64(hold), part))
}
