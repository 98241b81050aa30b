package lock

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/mortise-go/mortise/table"
)

// Acquire takes the lock, and waits while somebody else holds it: until ctx ends, the
// client is closed, or Config.Backoff stops. The error then says who held it (*HeldError)
// beside why the waiting ended. The lease is not bound to ctx.
//
// Waiting goroutines of one process are not served in any order. Locks are not reentrant:
// whoever holds the lock and acquires it again waits for itself. Pass the lease down.
//
// Cost: one conditional write if the lock is free. While waiting half a read unit per look
// at it, and one more write when it can be taken.
func (c *Client) Acquire(ctx context.Context, target Target, opts ...Option) (*Lease, error) {
	lease, err := c.acquire(ctx, target, opts, (*acquisition).wait)
	return lease, wrap("acquire", err)
}

// minPoll is the shortest time between two looks at a lock, whatever the backoff says.
const minPoll = 10 * time.Millisecond

// watch is what a waiter knows about the holder.
type watch struct {
	client *Client
	record Record
	since  time.Time // monotonic: when this beat of this holder was seen first
}

// read takes in a sighting of an eventually consistent read. Older ones than what is known
// change nothing.
func (w *watch) read(r Record) {
	if r.Fence > w.record.Fence || r.Fence == w.record.Fence && (r.Nonce != w.record.Nonce || r.Beat > w.record.Beat) {
		w.refused(r)
	}
}

// refused takes in the holder that a write was refused for, which is how things are: also
// where that is less than what was read before, as after a table was restored.
func (w *watch) refused(r Record) {
	if r.Nonce != w.record.Nonce || r.Beat != w.record.Beat {
		w.since = time.Now()
	}
	w.record = r
}

func (w *watch) observation() observation {
	return observation{nonce: w.record.Nonce, beat: w.record.Beat}
}

// wait is how long until the lock could be taken without being released, and whether by
// observation rather than by what the row records.
func (w *watch) wait() (d time.Duration, observed bool) {
	if w.record.Session != "" {
		return math.MaxInt64, false // its liveness is not in this row
	}
	d = time.Duration(w.record.Lease)*time.Millisecond - time.Since(w.since)
	if left, ok := w.client.untilTakeable(&w.record); ok && left < d {
		return left, false
	}
	return d, true
}

func (a *acquisition) wait(ctx context.Context) (*Lease, error) {
	w := watch{client: a.client}
	var polls backoff.BackOff
	var ended *observation
	var tried observation
	for {
		lease, err := a.try(ctx, ended)
		if !errors.Is(err, ErrHeld) {
			if err != nil && w.record.Held() && (ctx.Err() != nil || errors.Is(err, ErrClosed)) {
				err = fmt.Errorf("%w: %w", err, heldError(a.target, &w.record))
			}
			return lease, err
		}
		w.refused(a.seen)
		if polls == nil {
			if polls = a.client.config.Backoff(); polls == nil {
				polls = &backoff.StopBackOff{}
			}
		}
		// Refused although it looked takeable, and nothing has changed: never spin on that.
		refused := tried == w.observation()
		if ended, err = a.watch(ctx, &w, polls, refused); err != nil {
			return nil, fmt.Errorf("%w: %w", err, heldError(a.target, &w.record))
		}
		tried = w.observation()
	}
}

// watch looks at the row until the lock can be tried again: because it is free, or because
// its holder's lease has ended, by the record or by what was observed. In the last case it
// returns the observation, for the write to check. With pause it waits once in any case.
func (a *acquisition) watch(ctx context.Context, w *watch, polls backoff.BackOff, pause bool) (*observation, error) {
	for {
		takeable, observed := w.wait()
		switch {
		case takeable > 0 || pause:
		case observed:
			ended := w.observation()
			return &ended, nil
		default:
			return nil, nil
		}
		d := polls.NextBackOff()
		if d == backoff.Stop {
			return nil, errGivenUp
		}
		d = max(d, minPoll)
		early := takeable > 0 && takeable <= d
		if early {
			d = takeable
		}
		if err := sleep(ctx, d); err != nil {
			return nil, err
		}
		pause = false
		if early {
			continue
		}
		free, err := a.look(ctx, w)
		if free || err != nil {
			return nil, err
		}
	}
}

// look reads the row once and says whether the lock is worth a try.
func (a *acquisition) look(ctx context.Context, w *watch) (free bool, err error) {
	c := a.client
	var item table.Item
	err = c.attempts(ctx, maxAttempt, func(ctx context.Context, _ instant) (err error) {
		item, err = c.table.Get(ctx, a.key, false)
		return err
	})
	switch {
	case errors.Is(err, table.ErrNotFound):
		return true, nil
	case err != nil:
		return false, err
	}
	// Anything but a holder is for the next try to judge: it sees the row as it is, where
	// this read may see it as it was.
	r, odd := c.recordOf(item)
	if odd == nil && r.Held() {
		w.read(r)
		return false, nil
	}
	return odd != nil || r.Fence >= w.record.Fence, nil //nolint:nilerr // see above
}

var errGivenUp = errors.New("waiting was given up")
