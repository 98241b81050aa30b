package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/mortise-go/mortise/lock"
)

const (
	// A worker reads this many pending orders of a shard and tries some of
	// them in random order, so that workers seldom meet.
	pageSize  = 24
	pageTries = 8

	// patience is how long an order may be found locked before a worker queues
	// for its lock.
	patience = leaseTime / 2
)

// worker settles orders, one at a time.
type worker struct {
	*crew
	name string
	seen map[string]time.Time // orders found locked, and since when
}

func (w *worker) run(ctx context.Context) error {
	idle := backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(10*time.Millisecond), backoff.WithMaxInterval(200*time.Millisecond), backoff.WithMaxElapsedTime(0))
	for {
		worked, held, err := w.round(ctx)
		if err != nil {
			return err
		}
		if worked {
			idle.Reset()
			continue
		}
		if o, ok := w.longestHeld(held); ok {
			if err := w.queueFor(ctx, o); err != nil {
				return err
			}
			continue
		}
		if err := pause(ctx, idle.NextBackOff()); err != nil {
			return err
		}
	}
}

// round looks once through all shards. It says whether it settled anything, or
// found something settled, and which orders it found locked.
func (w *worker) round(ctx context.Context) (worked bool, held []Order, err error) {
	shards, err := w.store.pending.Shards(w.batch)
	if err != nil {
		return false, nil, err
	}
	for _, shard := range rand.Perm(len(shards)) {
		found, err := w.pending(ctx, shard)
		if err != nil {
			return worked, held, err
		}
		rand.Shuffle(len(found), func(i, j int) { found[i], found[j] = found[j], found[i] })
		for _, o := range found[:min(len(found), pageTries)] {
			took, err := w.try(ctx, o)
			if err != nil {
				return worked, held, err
			}
			if took {
				worked = true
			} else {
				held = append(held, o)
			}
		}
	}
	return worked, held, nil
}

// try settles an order unless somebody else holds its lock, or was found
// holding it.
func (w *worker) try(ctx context.Context, o Order) (took bool, err error) {
	if !w.seen[o.Order].IsZero() {
		// A try is a write. The index will tell when somebody has settled the
		// order; if nobody does, this worker queues for the lock.
		return false, nil
	}
	lease, err := w.locks.TryAcquire(ctx, lock.Beside(w.store.orders.Key(o)))
	if notAcquired(err) {
		w.waits.Add(1)
		w.seen[o.Order] = time.Now()
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, w.settle(ctx, lease, o)
}

// longestHeld picks the order that was found locked for the longest time, if
// that is longer than its worker should need.
func (w *worker) longestHeld(held []Order) (oldest Order, ok bool) {
	for _, o := range held {
		since := w.seen[o.Order]
		if time.Since(since) >= patience && (!ok || since.Before(w.seen[oldest.Order])) {
			oldest, ok = o, true
		}
	}
	return oldest, ok
}

// queueFor waits for the lock of an order whose worker seems to be in trouble:
// until it releases, or its lease has ended.
func (w *worker) queueFor(ctx context.Context, o Order) error {
	waiting, cancel := context.WithTimeout(ctx, 2*leaseTime)
	defer cancel()
	lease, err := w.locks.Acquire(waiting, lock.Beside(w.store.orders.Key(o)))
	if err != nil {
		if ctx.Err() == nil && (waiting.Err() != nil || notAcquired(err)) {
			return nil // there may be other orders by now
		}
		return err
	}
	delete(w.seen, o.Order)
	return w.settle(ctx, lease, o)
}

// settle settles an order whose lock is held.
func (w *worker) settle(ctx context.Context, lease *lock.Lease, o Order) error {
	s, err := w.prepare(ctx, lease, o, w.name)
	if err == nil && s == nil {
		w.vain.Add(1)
		w.tell(event{Kind: orderFound, Worker: w.name, Order: o.Order})
		return release(ctx, lease)
	}
	if err == nil {
		err = s.commit(ctx)
	}
	switch {
	case err == nil:
		w.tell(event{Kind: orderSettled, Worker: w.name, Order: o.Order})
		return nil
	case errors.Is(err, lock.ErrLost):
		w.refused.Add(1)
		w.tell(event{Kind: staleRefused, Worker: w.name, Order: o.Order})
		return nil
	}
	return errors.Join(err, release(context.WithoutCancel(ctx), lease))
}

// notAcquired says that somebody else holds the lock, or that the answer to the
// acquisition took longer than the lease: both mean to try again later.
func notAcquired(err error) bool {
	return errors.Is(err, lock.ErrHeld) || errors.Is(err, lock.ErrLost)
}

// release gives a lock back. One that was lost needs no release.
func release(ctx context.Context, lease *lock.Lease) error {
	if err := lease.Release(ctx); err != nil && !errors.Is(err, lock.ErrLost) {
		return fmt.Errorf("release: %w", err)
	}
	return nil
}

// pause waits, or returns the cause of the context's end.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
