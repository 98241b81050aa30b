package soak

import (
	"math"
	"math/rand/v2"
	"time"
)

// trouble is what is done to a process.
type trouble int

const (
	killed trouble = iota
	paused
	partitioned
	restarted
	troubles // the number of troubles
)

func (t trouble) weight() int {
	if t == restarted {
		return 1
	}
	return 3
}

// Limits of troubles.
const (
	minCalm  = 300 * time.Millisecond
	minPause = leaseTime + leaseTime/2
	maxPause = 4 * leaseTime
	minCut   = leaseTime / 4
	maxCut   = 3 * leaseTime
	maxDeath = 1500 * time.Millisecond // before a killed process is started again
)

// step is one trouble, and the time before it.
type step struct {
	calm    time.Duration
	trouble trouble
	length  time.Duration // of a pause, of a partition, or until the next start
	mute    bool          // in a partition, requests still get through
}

// schedule draws the troubles of one process.
type schedule struct {
	rand       *rand.Rand
	calm       time.Duration // the longest time without trouble
	pausesOnly bool          // as short as possible
	never      bool
}

// next returns the next trouble. It always draws the same number of random values.
func (s *schedule) next() step {
	calm, what, length, mute := s.rand.Float64(), s.rand.Float64(), s.rand.Float64(), s.rand.IntN(2) == 0
	between := func(low, high time.Duration) time.Duration { return low + time.Duration(length*float64(high-low)) }
	sum := 0
	for t := range troubles {
		sum += t.weight()
	}
	left := int(what * float64(sum))
	n := step{calm: minCalm + time.Duration(calm*float64(s.calm-minCalm)), mute: mute}
	for n.trouble = killed; left >= n.trouble.weight(); n.trouble++ {
		left -= n.trouble.weight()
	}
	if s.pausesOnly {
		n.trouble, length = paused, 0
	}
	if s.never {
		n.calm = math.MaxInt64
	}
	switch n.trouble {
	case killed:
		n.length = between(0, maxDeath)
	case paused:
		n.length = between(minPause, maxPause)
	case partitioned:
		n.length = between(minCut, maxCut)
	}
	return n
}
