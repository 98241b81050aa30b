package waitqueue

import (
	"math"
	"time"

	"github.com/mortise-go/mortise/internal/machine"
)

// Times that [Estimate] uses.
const (
	shortestLook   = 5 * time.Millisecond
	longestNext    = 750 * time.Millisecond // between two looks of the next one in the line, at most
	handover       = 7 * time.Millisecond   // from one holder to the next: a release, and a look that is somewhat late
	longHold       = 200 * time.Millisecond // for longer holds, a lock that is not used costs more than additional looks
	unknownPresent = 300 * time.Millisecond // assumed hold of the first place, if no hold is known
	unknownTurn    = 25 * time.Millisecond  // the same for each place behind it: early looks cost less than late ones
	longest        = 365 * 24 * time.Hour   // bounds all times; as good as for ever
)

// Estimate is what a waiter knows about a line. It tells when to look at the line again.
//
// A look that comes too early costs a read. A look that comes too late leaves the lock unused meanwhile.
type Estimate struct {
	// Ahead is how many places are before the waiter's own: 1 for the next one in the line. For a caller that is not in the line, it is
	// the length of the line. Required, at least 1.
	Ahead int

	// AtOnce is how many places keep the lock at once. Less than 1 counts as 1.
	AtOnce int

	// Hold is how long a place keeps the lock, as [Smooth] returns it. Zero or less means that it is not known.
	Hold time.Duration

	// Held is for how long the present holder has kept the lock, passes included, according to the row. It may depend on the clocks of
	// other machines. A wrong value makes looks somewhat less well timed, and at most one hold too late.
	Held time.Duration

	// Unchanged is for how long the caller itself has seen the holder's process in the first place. It makes the times between looks grow
	// while nothing changes.
	Unchanged time.Duration

	// Longest bounds the times that Look and Enter return. Required. If it is not more than a lease, dead first places are noticed in
	// time, however many they are.
	Longest time.Duration
}

// Look returns how long a place in the line waits until it looks again: about 0.95 of the time after which it should be first. If places
// keep the lock for more than 200 ms, it is half of that time: a wrong estimate then costs more than a few looks. The time is at least
// about 0.1 of Hold or Unchanged, whichever is longer. So while the holder keeps the lock for longer than expected, each time is a tenth
// longer than the one before.
//
// The time is between 5 ms and Longest. For the next one in the line, it is at most 750 ms.
func (e Estimate) Look(m machine.Machine) time.Duration {
	present, part, most := e.share(e.Hold), 0.95, e.Longest
	left := float64(e.turn()) * float64(e.Ahead-1)
	if e.Hold > 0 {
		left += float64(max(e.turn()-max(e.Held, e.Unchanged, 0), 0))
	} else {
		present = e.share(unknownPresent)
	}
	if e.share(e.Hold) > longHold {
		part = 0.5
	}
	if e.Ahead == 1 {
		most = min(most, longestNext)
	}
	d := max(part*left, 0.1*float64(max(present, e.Unchanged)))
	return between(m, 0.96*d, 1.04*d, most)
}

// Enter returns how long a caller that found the line full waits until it tries to enter again. tries is how often it has waited like
// this before. The first wait is at most one and a half times what the whole line should need. Each further one is at most half as long
// again. None is above Longest. Each is drawn from the upper half of its range.
func (e Estimate) Enter(m machine.Machine, tries int) time.Duration {
	d := float64(e.Ahead) * float64(e.turn()) * math.Pow(1.5, float64(tries)+1)
	d = min(d, float64(e.Longest))
	return between(m, d/2, d, longest)
}

// turn returns for how long a place is first: while it holds the lock, and until the place behind it has noticed. If several keep the
// lock at once, one of them leaves in a part of that time.
func (e Estimate) turn() time.Duration {
	if e.Hold <= 0 {
		return e.share(unknownTurn)
	}
	return e.share(min(e.Hold, longest) + handover)
}

// share divides a time by the number of places that keep the lock at once.
func (e Estimate) share(d time.Duration) time.Duration { return d / time.Duration(max(e.AtOnce, 1)) }

// between draws a time from low to below high. It is at least 5 ms, and not above most: if high is, both shrink in proportion, so that
// long waits do not end in step. It takes floats, since they do not overflow, whatever a row contains.
func between(m machine.Machine, low, high float64, most time.Duration) time.Duration {
	if over := high / float64(most); over > 1 {
		low, high = low/over, float64(most)
	}
	return max(time.Duration(low)+m.N(max(time.Duration(high-low), 1)), shortestLook)
}

// Smooth returns the Hold of an [Estimate] after one more hold: half of the way, in proportion, from the old one down to a shorter one,
// and an eighth of the way up to a longer one. So many long holds and a few short ones give a short one, which is the safer estimate. If
// the old one is zero or less, none was known.
//
// last is from when the process learned that it has the lock until it left, passes included. It leaves out the time until the process
// learned that. Otherwise, a look that came too late would make later looks come even later: 100 processes that want the lock again and
// again for 50 ms each would use it for 0.5 of the time, instead of 0.9.
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
