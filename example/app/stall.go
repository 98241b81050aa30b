package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/mortise-go/mortise/entity"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
)

// freeze has some workers take the locks of orders, before any other worker begins, and stop right before they write. As in a
// process that was suspended nothing renews their leases: a Fixed lease ends after its length. Where there are fewer pending
// orders, fewer workers freeze.
func (a *app) freeze(ctx context.Context) error {
	pending, err := all(a.orders.Query(ctx, keys.Values{"batch": a.batch.ID}, entity.On(pendingIndex), entity.Limit(100+a.stall)))
	if err != nil {
		return err
	}
	rand.Shuffle(len(pending), func(i, j int) { pending[i], pending[j] = pending[j], pending[i] })
	for i := 0; i < len(pending) && len(a.frozen) < a.stall; i++ {
		lease, err := a.locks.TryAcquire(ctx, lock.Beside(a.orders.Key(pending[i])), lock.Fixed(leaseTime))
		if errors.Is(err, lock.ErrHeld) || errors.Is(err, lock.ErrLost) {
			continue // another program settles this batch, too
		}
		if err != nil {
			return err
		}
		x, err := a.prepare(ctx, lease, pending[i], fmt.Sprintf("w%d-frozen", len(a.frozen)+1))
		if x != nil {
			a.frozen = append(a.frozen, x)
		} else if err = errors.Join(err, lease.Release(ctx)); err != nil && !errors.Is(err, lock.ErrLost) {
			return err
		}
	}
	return nil
}

// thaw lets the frozen workers go on after others have settled their orders. They do not know that and write what they had
// prepared: the guard in the transaction refuses it. If it did not, the audit would find two entries in the ledger.
func (a *app) thaw(ctx context.Context) error {
	for i, f := range a.frozen {
		if err := a.commit(ctx, f); err == nil {
			continue
		} else if !errors.Is(err, lock.ErrLost) {
			return fmt.Errorf("thaw: %w", err)
		}
		a.refused++
		e := f.entry
		entries, err := all(a.ledger.Query(ctx, keys.Values{"batch": e.Batch, "order": e.Order}, entity.Consistent()))
		if i > 0 || err != nil || len(entries) == 0 {
			continue
		}
		a.note("Worker %s locked order %q (fence %d), worked out its total, and froze for longer than its lease of %s.", e.By, e.Order, e.Fence, leaseTime)
		a.note("When the lease had ended, worker %s got the lock (fence %d) and settled the order: %s.",
			entries[0].By, entries[0].Fence, entries[0].Amount)
		a.note("Then %s woke up and wrote its result. DynamoDB refused it, because the lock had moved on: nothing was booked twice.", e.By)
	}
	return nil
}
