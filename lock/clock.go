package lock

import (
	"time"

	"github.com/mortise-go/mortise/internal/machine"
	"github.com/mortise-go/mortise/table"
)

// instant is a moment on both clocks. Either may lie about a duration: the wall clock can
// be set, and the monotonic one stands still while a machine is suspended.
type instant struct {
	wall time.Time // the table's clock, without a monotonic reading
	mono time.Time // the process's clock, compared only with others of its kind
}

// clock is where this package's time comes from.
type clock struct {
	machine.Machine

	table *table.Table
}

func (c clock) instant() instant {
	return instant{wall: c.wall(), mono: c.Now()}
}

// ago is how long a reading of Now lies back.
func (c clock) ago(at time.Time) time.Duration { return machine.Since(c, at) }

func (c clock) wall() time.Time { return c.table.Now().Round(0) }

// since is the longer of the durations that the clocks tell: a lease has ended when either
// of them says so.
func (c clock) since(i instant) time.Duration {
	return max(c.ago(i.mono), c.wall().Sub(i.wall))
}

// offset says how far DynamoDB's clock is ahead of the local wall clock: at least and at
// most. Both are negative where the local clock is fast.
type offset struct {
	known       bool // false before the first answer, and when the clock was set since
	least, most time.Duration
}

// offset compares the last server time with the local clock. Server times have whole
// seconds, rounded down, and an answer takes a while: the truth lies in an interval.
func (c clock) offset() offset {
	s, ok := c.table.LastServerTime()
	if !ok {
		return offset{}
	}
	// How much the wall clock has run ahead of the monotonic one since. Which of them is
	// right nobody knows, and by more than a second one of them has been tampered with.
	drift := c.wall().Sub(s.Local.Round(0)) - c.ago(s.At)
	if drift.Abs() > time.Second {
		return offset{}
	}
	o := offset{known: true, least: s.Server.Sub(s.Local.Round(0))}
	o.most = o.least + time.Second + s.Trip - min(drift, 0)
	o.least -= max(drift, 0)
	return o
}

// beyond says that the clock is off by more than bound for certain, and by how much at least.
func (o offset) beyond(bound time.Duration) (by time.Duration, off bool) {
	switch {
	case !o.known:
		return 0, false
	case o.least > bound:
		return o.least, true
	case o.most < -bound:
		return o.most, true
	}
	return 0, false
}

// server is what DynamoDB's clock shows, as far as an answer has told: carried forward by
// the process's clock, and late by up to a second, to which it resolves.
func (c clock) server() (now time.Time, ok bool) {
	s, ok := c.table.LastServerTime()
	return s.Server.Add(c.ago(s.At)), ok
}

// calendar is the time for what must not be wrong by days, which are the fences of new
// rows and times to live. It is the local clock's unless that is slow by more than bound, or a
// quarter of the shortest retention, when it is DynamoDB's, and never further ahead of that than
// the shortest retention: a date that is behind by no more does no harm. Before the first answer
// there is nothing to compare with, and after a machine was suspended, or its clock set, what was
// told has to be told again: verified is false.
func (c clock) calendar(bound time.Duration) (now time.Time, verified bool) {
	now = c.wall()
	s, ok := c.table.LastServerTime()
	if !ok {
		return now, false
	}
	server := s.Server.Add(c.ago(s.At))
	if apart := now.Sub(s.Local.Round(0)) - c.ago(s.At); apart.Abs() > minRetention/2 {
		if now.Before(server) {
			now = server // nothing is to be deleted too early, at least
		}
		return now, false
	}
	if now.Before(server.Add(-min(bound, minRetention/4))) {
		return server, true
	}
	if most := server.Add(minRetention); now.After(most) {
		return most, true
	}
	return now, true
}
