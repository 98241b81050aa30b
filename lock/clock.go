package lock

import (
	"time"

	"github.com/mortise-go/mortise/table"
)

// instant is a moment on both clocks. Either may lie about a duration: the wall clock can
// be set, and the monotonic one stands still while a machine is suspended.
type instant struct {
	wall time.Time // the table's clock, without a monotonic reading
	mono time.Time // the process's clock, compared only with others of its kind
}

// clock is where this package's time comes from.
type clock struct{ table *table.Table }

func (c clock) now() instant {
	return instant{wall: c.wall(), mono: time.Now()}
}

func (c clock) wall() time.Time { return c.table.Now().Round(0) }

// since is the longer of the durations that the clocks tell: a lease has ended when either
// of them says so.
func (c clock) since(i instant) time.Duration {
	return max(time.Since(i.mono), c.wall().Sub(i.wall))
}

// skew says how the local wall clock relates to DynamoDB's.
type skew int

const (
	skewUnknown skew = iota // no answer seen yet, or the clock was set since
	skewWithin              // within the bound
	skewBeyond              // the local clock is off by more than the bound
)

// measure compares the last server time with the local clock. Server times have whole
// seconds, so the truth lies in an interval; only when all of it is beyond the bound is
// the clock known to be off.
func (c clock) measure(bound time.Duration) (skew, time.Duration) {
	s, ok := c.table.LastServerTime()
	if !ok {
		return skewUnknown, 0
	}
	// Has the wall clock moved with the monotonic one since?
	drift := c.wall().Sub(s.Local.Round(0)) - time.Since(s.At)
	if drift.Abs() > time.Second {
		return skewUnknown, 0
	}
	least := s.Server.Sub(s.Local.Round(0))
	most := least + time.Second + s.Trip
	switch {
	case least > bound:
		return skewBeyond, least
	case most < -bound:
		return skewBeyond, most
	}
	return skewWithin, (least + most) / 2
}

// fenceSeed is where fences of a new row begin: not before the server's last time, lest a
// clock that was set back rewind them.
func (c clock) fenceSeed() int64 {
	now := c.wall()
	if s, ok := c.table.LastServerTime(); ok && s.Server.After(now) {
		now = s.Server
	}
	return now.UnixMilli()
}
