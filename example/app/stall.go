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

// freeze lets some workers acquire the locks of orders, before any other worker begins, and stop right before they write. As in
// a suspended process, nothing renews their leases: a Fixed lease ends after its length.
func (a *app) freeze(ctx context.Context) error {
	locks, invalid := newLocks(a.store, "frozen", leaseTime) // a client of its own, like another process
	pending, err := all(a.orders.Query(ctx, keys.Values{"batch": a.batch.ID}, entity.On(pendingIndex), entity.Limit(100+a.stall)))
	if err = errors.Join(invalid, err); err != nil {
		return err
	}
	rand.Shuffle(len(pending), func(i, j int) { pending[i], pending[j] = pending[j], pending[i] })
	for i := 0; i < len(pending) && len(a.frozen) < a.stall; i++ {
		lease, err := locks.TryAcquire(ctx, lock.Beside(a.orders.Key(pending[i])), lock.Fixed(leaseTime))
		if errors.Is(err, lock.ErrHeld) || errors.Is(err, lock.ErrLost) {
			continue // another program settles this batch too
		}
		if err != nil {
			return err
		}
		x, err := a.prepare(ctx, lease, pending[i], fmt.Sprintf("frozen-%d", len(a.frozen)+1))
		if x != nil {
			a.frozen = append(a.frozen, x)
		} else if err = errors.Join(err, lease.Release(ctx)); err != nil && !errors.Is(err, lock.ErrLost) {
			return err
		}
	}
	return nil
}

// thaw lets the frozen workers go on after others have settled their orders. They do not know that, and try to write what they
// had prepared. The guard in the transaction refuses it. If it did not, the report would find two entries in the ledger.
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
		a.note("Then %[1]s woke up and tried to write its result. DynamoDB refused the write, since the lock's row no longer named %[1]s. The order was settled once.", e.By)
	}
	return nil
}
