// Package clock gives package lock the time from three clocks: the process's monotonic clock, the local wall clock, and DynamoDB's clock,
// as the dates of its answers show it.
//
// No clock is trusted alone. A lease ends for its holder when either local clock says so. A client records the end of its own lease from
// the latest time that it can be, and judges the recorded ends of others by the earliest. So a wrong clock makes a client wait longer,
// but does not make it take a lock from a holder that lives.
package clock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mortise-go/mortise/internal/inside"
	"github.com/mortise-go/mortise/internal/machine"
	"github.com/mortise-go/mortise/table"
)

// Clock reads the clocks of one process and of its table.
type Clock struct {
	machine.Machine

	// Skew is how far the local wall clock may be off before Bounds are unknown. It is also how far back a recorded end has to be to
	// count as past.
	Skew time.Duration
	// ObservedOnly means that no recorded end counts as past.
	ObservedOnly bool

	table  *table.Table
	inside *inside.Table[table.Op]
}

// New returns the clock of a table's process.
func New(t *table.Table) Clock {
	in := t.Inside(inside.Key{})
	return Clock{Machine: in.Machine, table: t, inside: in}
}

// Instant is one moment on both local clocks. Either clock can be wrong about a duration: the wall clock can be set, and the monotonic
// clock stands still while the machine is suspended.
type Instant struct {
	Wall time.Time // without a monotonic reading
	Mono time.Time // comparable only with other readings of the same process
}

// Since returns how long ago an earlier instant was, by the clock that shows more.
func (i Instant) Since(earlier Instant) time.Duration {
	return max(i.Mono.Sub(earlier.Mono), i.Wall.Sub(earlier.Wall))
}

// Instant returns the present moment.
func (c Clock) Instant() Instant { return Instant{Wall: c.wall(), Mono: c.Now()} }

func (c Clock) wall() time.Time { return c.table.Now().Round(0) }

// Ago returns how long ago a monotonic reading was taken.
func (c Clock) Ago(mono time.Time) time.Duration { return machine.Since(c.Machine, mono) }

// resolution is the resolution of the Date header of an answer, which is rounded down.
const resolution = time.Second

// maxDrift is how far the two local clocks may move apart before the last observation of DynamoDB's time is not used any more: then one
// of them was set, or the machine was suspended.
const maxDrift = time.Second

// Told returns DynamoDB's time: the date of its last answer, plus the time since by the monotonic clock alone. It is late by up to a
// second (dates have whole seconds), by the answer's travel time, and by as long as the machine was suspended since. It returns false
// before the first answer.
func (c Clock) Told() (time.Time, bool) {
	s, ok := c.inside.LastServerTime()
	return s.Server.Add(c.Ago(s.At)), ok
}

// Server returns bounds of DynamoDB's time now: the date of its last answer, plus the time since. It returns false before the first
// answer. It also returns false if the wall clock was set or the machine was suspended, until the next answer.
func (c Clock) Server() (earliest, latest time.Time, ok bool) {
	s, ok := c.inside.LastServerTime()
	passed := c.Ago(s.At)
	if drift := c.wall().Sub(s.Local.Round(0)) - passed; !ok || drift.Abs() > maxDrift {
		return time.Time{}, time.Time{}, false
	}
	earliest = s.Server.Add(passed)
	return earliest, earliest.Add(resolution + max(s.Trip, 0)), true
}

// Behind returns how far, at least, the local wall clock is behind DynamoDB's; negative if it is ahead, and 0 if it is within the bounds
// of Server. It returns false if Server does.
func (c Clock) Behind() (time.Duration, bool) {
	_, _, _, behind, ok := c.compared()
	return behind, ok
}

// compared reads the clocks once. It returns the bounds of Server, the local wall clock, and how far that is behind (see Behind).
func (c Clock) compared() (earliest, latest, wall time.Time, behind time.Duration, ok bool) {
	earliest, latest, ok = c.Server()
	wall = c.wall()
	return earliest, latest, wall, max(earliest.Sub(wall), 0) + min(latest.Sub(wall), 0), ok
}

// Bounds returns bounds of the time now, from DynamoDB's clock and the local wall clock. A holder records the end of its own lease from
// the latest time, and judges the recorded ends of others by the earliest. It returns false if Server does, or if the local wall clock is
// off by more than Skew.
func (c Clock) Bounds() (earliest, latest time.Time, ok bool) {
	earliest, latest, _, behind, ok := c.compared()
	return earliest.Add(-max(behind, 0)), latest.Add(-min(behind, 0)), ok && behind.Abs() <= c.Skew
}

// Past returns the latest end, in epoch milliseconds, that is certainly further back than Skew: a holder that has recorded this end, or
// an earlier one, can be taken for dead. It returns false if no recorded end may be used.
func (c Clock) Past() (end int64, ok bool) {
	earliest, _, ok := c.Bounds()
	return earliest.Add(-c.Skew).UnixMilli() - 1, ok && !c.ObservedOnly
}

// UntilPast returns how long it takes until a recorded end is past; 0 if it is past. DynamoDB dates its answers in whole seconds, so the
// time is known to be past the end only from the next whole second on. It returns false if Past does.
func (c Clock) UntilPast(end int64) (time.Duration, bool) {
	now, _, ok := c.Bounds()
	then := time.UnixMilli(end + 1).Add(c.Skew)
	if ok = ok && !c.ObservedOnly; !now.Before(then) {
		return 0, ok
	}
	return then.Add(resolution - 1).Truncate(resolution).Sub(now), ok
}

// first is the earliest time in rows: no number in a row is negative, and no fence is 0.
var first = time.UnixMilli(1)

// Stamp returns the time of day for rows. It is the local wall clock's, unless DynamoDB's answers show that this is wrong. If they do not
// tell any more (see Server), it is the later of Told and the wall clock, so that no row is deleted days too early. A wall clock before
// 1970 counts as the first millisecond of 1970.
func (c Clock) Stamp() time.Time {
	_, latest, wall, behind, ok := c.compared()
	if ok && behind != 0 {
		return latest
	}
	if told, known := c.Told(); known && told.After(wall) {
		return told
	}
	if wall.Before(first) {
		return first
	}
	return wall
}

// Jitter spreads d over ±10 %, so that clients that started together drift apart.
func (c Clock) Jitter(d time.Duration) time.Duration { return d - d/10 + c.N(d/5+1) }

// Sleep waits for d. If ctx ends before that, Sleep returns early, with the cause.
func (c Clock) Sleep(ctx context.Context, d time.Duration) error {
	if ctx.Err() != nil { // if both were ready, select could choose the timer
		return Cause(ctx)
	}
	timer := c.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C():
		return nil
	case <-ctx.Done():
		return Cause(ctx)
	}
}

// Wait runs f, and waits until f has returned. If ctx ends before that, Wait returns early, with the cause, and f goes on.
func Wait(ctx context.Context, f func()) error {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return Cause(ctx)
	}
}

// DetachedTimeout bounds requests that are sent although the caller's context has ended.
const DetachedTimeout = 5 * time.Second

// Detached returns a context with ctx's values that does not end with ctx, but after DetachedTimeout: giving a lock back must not depend
// on the caller's context.
func (c Clock) Detached(ctx context.Context) (context.Context, context.CancelFunc) {
	return c.WithTimeout(context.WithoutCancel(ctx), DetachedTimeout)
}

// Detach returns ctx, or Detached if ctx has ended already.
func (c Clock) Detach(ctx context.Context) (context.Context, context.CancelFunc) {
	if ctx.Err() == nil {
		return ctx, func() {}
	}
	return c.Detached(ctx)
}

// Cause returns why ctx ended; nil while ctx goes on. The error also matches ctx.Err().
func Cause(ctx context.Context) error {
	err := ctx.Err() // read first: then there is a cause if ctx has ended
	cause := context.Cause(ctx)
	switch {
	case err == nil:
		return nil
	case errors.Is(cause, err):
		return cause
	}
	return fmt.Errorf("%w: %w", cause, err)
}
