package lock

import (
	"context"
	"slices"
	"time"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
)

// deletion is when time to live may delete a row, as was last written by whoever keeps it.
// It is put off for as long as the row is needed, and a wrong date does not bring it forward:
// it goes on at least as fast as the process's clock.
type deletion struct {
	after time.Time // as was written; zero when that is not known
	sure  time.Time // as far as there was something to compare the clock with, or else it may be years ahead
	at    time.Time // monotonic: when that was written, or before
}

// deletionOf is what a row says that was written at a moment, or after it.
func (c *Client) deletionOf(row table.Item, at time.Time) deletion {
	ttl, ok := numberOf(row[c.scheme.TTL])
	if !ok {
		return deletion{at: at}
	}
	return deletionAt(ttl, at)
}

// deletionAt is that of a time to live. It was rounded up.
func deletionAt(ttl int64, at time.Time) deletion {
	after := time.Unix(ttl-1, 0)
	return deletion{after: after, sure: after, at: at}
}

// epoch is the time to live, in epoch seconds, rounded up.
func (d deletion) epoch() int64 { return d.after.Unix() + 1 }

// deleteAfter is the time to live of a row that is written now, and is needed for so long, in epoch
// seconds. fence is that of a lock's row, and 0 where it is not known.
func (c *Client) deleteAfter(needed time.Duration, fence int64) int64 {
	return c.putOff(deletion{}, needed, fence).epoch()
}

// putOff is when to delete a row after this, if it is written now for a lease.
func (c *Client) putOff(d deletion, lease time.Duration, fence int64) deletion {
	today, verified := c.clock.calendar(c.config.Skew)
	next := deletion{at: c.clock.Now()}
	gone := c.clock.ago(d.at)
	next.sure = d.sure.Add(gone)
	next.after = latest(today.Add(lease+c.config.Retention), c.outlasting(fence, today), next.sure)
	if verified {
		next.sure = next.after
	} else {
		next.after = latest(next.after, d.after.Add(gone))
	}
	return next
}

// outlasting is until when a row has to be kept for its fence alone: a new row begins with the time of
// day, which has to be past what this one began with, however far dates or a clock were ahead then.
// It is zero where the fence is no time of day, which nobody can wait for.
func (c *Client) outlasting(fence int64, today time.Time) time.Time {
	least := time.UnixMilli(fence)
	if least.After(today.Add(maxRetention)) {
		return time.Time{}
	}
	return least.Add(c.config.Retention)
}

// isShort says that less than three quarters of the retention are left after a lease that begins
// today, or after the time that the fence says.
func (c *Client) isShort(d deletion, today time.Time, lease time.Duration, fence int64) bool {
	enough := latest(today.Add(lease+c.config.Retention), c.outlasting(fence, today))
	return d.after.Before(enough.Add(-c.config.Retention / 4))
}

// isDue says that a quarter of the retention has passed, by today's date or by the process's clock:
// where a date was ahead once, a late duplicate may have brought the row back to what was written
// before.
func (c *Client) isDue(d deletion, today time.Time, lease time.Duration, fence int64) bool {
	return c.isShort(d, today, lease, fence) || c.clock.ago(d.at) >= c.config.Retention/4
}

// preserve puts off the deletion of a row that was freed in somebody's place, where what it keeps is
// short: whoever acquired it may have had a wrong date, or have died long ago. Where that fails it
// is left at that: dates have to be wrong, too, for the row to be missed.
//
// Cost: one conditional write, if it is short.
func (c *Client) preserve(ctx context.Context, key keys.Key, row table.Item) {
	if row == nil || c.of(row, attrNonce) != nil {
		return
	}
	fence, err := c.fenceOf(row)
	if d := c.deletionOf(row, c.clock.Now()); err != nil || !c.isShort(d, c.calendar(), 0, fence) {
		return
	}
	err = c.table.Write(ctx, c.rows.preserve(key, fence, c.deleteAfter(0, fence)))
	c.config.Logger.Debug("lock: put off the deletion of a row that was freed in somebody's place", "key", key, "error", err)
}

// latest is the last of these times; the zero time is none.
func latest(times ...time.Time) time.Time { return slices.MaxFunc(times, time.Time.Compare) }

// calendar is the clock's.
func (c *Client) calendar() time.Time {
	now, _ := c.clock.calendar(c.config.Skew)
	return now
}
