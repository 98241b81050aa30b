package lock

import (
	"context"
	"errors"
	"fmt"
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
	a, err := c.acquisition(target, opts)
	if err != nil {
		return nil, wrap("acquire", err)
	}
	ctx, stop := c.waiting(ctx)
	defer stop()
	lease, err := a.wait(ctx)
	if err != nil {
		a.abandon(ctx)
		return nil, wrap("acquire", err)
	}
	return lease, nil
}

// watch is what a waiter knows about the holder.
type watch struct {
	client *Client
	record Record
	since  time.Time // monotonic: when this beat of this holder was seen first
}

// see takes a sighting in; older ones, from reads that lag behind, change nothing.
func (w *watch) see(r Record) {
	newer := r.Fence > w.record.Fence || r.Fence == w.record.Fence && (r.Nonce != w.record.Nonce || r.Beat > w.record.Beat)
	if w.since.IsZero() || newer {
		w.record, w.since = r, time.Now()
	}
}

func (w *watch) observation() observation {
	return observation{nonce: w.record.Nonce, beat: w.record.Beat}
}

// wait is how long until the lock could be taken without being released, and whether by
// observation rather than by what the row records.
func (w *watch) wait() (d time.Duration, observed bool) {
	d = time.Duration(w.record.Lease)*time.Millisecond - time.Since(w.since)
	if end, ok := w.client.recordedEnd(w.record.Until()); ok {
		// The end has to lie back, not just be reached: milliseconds are compared.
		if left := end.Sub(w.client.clock.wall()) + time.Millisecond; left < d {
			return left, false
		}
	}
	return d, true
}

func (a *acquisition) wait(ctx context.Context) (*Lease, error) {
	w := watch{client: a.client}
	polls := a.client.config.Backoff()
	var ended *observation
	var tried observation
	for {
		lease, err := a.try(ctx, ended)
		if !errors.Is(err, ErrHeld) {
			return lease, err
		}
		w.see(a.seen)
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
	c := a.client
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
		if takeable > 0 {
			d = min(d, takeable)
		}
		if err := sleep(ctx, d); err != nil {
			return nil, err
		}
		pause = false
		if d == takeable {
			continue
		}
		item, err := c.table.Get(ctx, a.key, false)
		switch {
		case errors.Is(err, table.ErrNotFound):
			return nil, nil
		case err != nil:
			return nil, joinCause(ctx, err)
		}
		r, err := c.recordOf(item)
		switch {
		case err != nil:
			return nil, err
		case r.Held():
			w.see(r)
		case r.Fence >= w.record.Fence:
			return nil, nil
		}
	}
}

var errGivenUp = errors.New("waiting was given up")

// sleep returns early, with the cause, when ctx ends.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return causeOf(ctx)
	}
}

// causeOf is why ctx ended, with ctx.Err() in sight.
func causeOf(ctx context.Context) error {
	cause := context.Cause(ctx)
	if errors.Is(cause, ctx.Err()) {
		return cause
	}
	return errors.Join(cause, ctx.Err())
}

// joinCause adds to the error of a request why its context ended.
func joinCause(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	cause := causeOf(ctx)
	if errors.Is(err, cause) {
		return err
	}
	return errors.Join(cause, err)
}

// lazyBackoff makes its backoff when it is first needed, which is rarely.
type lazyBackoff struct {
	table *table.Table
	wait  backoff.BackOff
}

// sleep waits for the next attempt; an error means that there should be none.
func (b *lazyBackoff) sleep(ctx context.Context) error {
	if b.wait == nil {
		b.wait = b.table.Backoff()
	}
	d := b.wait.NextBackOff()
	if d == backoff.Stop {
		return errStopped
	}
	return sleep(ctx, d)
}

var errStopped = errors.New("retries are exhausted")
