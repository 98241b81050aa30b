package lock

import (
	"time"

	"github.com/mortise-go/mortise/table"
)

// deletion is when time to live may delete a row, as was last written by whoever keeps it.
// It is put off for as long as the row is needed, and a wrong date does not bring it forward:
// it goes on at least as fast as the process's clock.
type deletion struct {
	after time.Time // zero when that is not known
	at    time.Time // monotonic: when that was written, or before
	guess bool      // by a clock that there was nothing to compare with: it may be years ahead
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
	return deletion{after: time.Unix(ttl-1, 0), at: at}
}

// epoch is the time to live, in epoch seconds, rounded up.
func (d deletion) epoch() int64 { return d.after.Unix() + 1 }

// deleteAfter is the time to live of a row that is written now for a lease, in epoch seconds.
func (c *Client) deleteAfter(lease time.Duration) int64 { return c.putOff(deletion{}, lease).epoch() }

// putOff is when to delete a row after this, if it is written now for a lease.
func (c *Client) putOff(d deletion, lease time.Duration) deletion {
	today, verified := c.clock.calendar(c.config.Skew)
	next := deletion{after: today.Add(lease + c.config.Retention), at: c.clock.Now(), guess: !verified}
	if !d.after.IsZero() && !d.guess {
		if goesOn := d.after.Add(c.clock.ago(d.at)); goesOn.After(next.after) {
			next.after = goesOn
		}
	}
	return next
}

// isShort says that less than half of the retention is left after a lease that begins today.
func (c *Client) isShort(d deletion, today time.Time, lease time.Duration) bool {
	return d.after.Before(today.Add(lease + c.config.Retention/2))
}

// isDue says that half of the retention has passed, by today's date or by the process's clock:
// where a date was ahead once, a late duplicate may have brought the row back to what was written
// before.
func (c *Client) isDue(d deletion, today time.Time, lease time.Duration) bool {
	return c.isShort(d, today, lease) || c.clock.ago(d.at) >= c.config.Retention/2
}

// calendar is the clock's.
func (c *Client) calendar() time.Time {
	now, _ := c.clock.calendar(c.config.Skew)
	return now
}
