package lock

import (
	"context"
	"slices"
	"time"

	"github.com/mortise-go/mortise/table"
)

// MaxTargets is how many locks [Client.AcquireAll] takes at most: the number of actions in one transaction.
const MaxTargets = table.MaxOps // 100

// AcquireAll takes 1 to 100 locks together. It waits until it has all of them, until ctx ends or until the client is
// closed. In the last two cases the error contains a *[HeldAllError], which lists the holders. Options apply to each
// lock. It is an error ([ErrInvalid]) if two targets are the same lock.
//
// There is no deadlock and no starvation, in whatever order callers name the locks: one transaction enters all lines,
// so two calls that share locks are in the same order in each of them. While AcquireAll waits for the rest, it holds
// the locks for which it is first. Callers that need only one of these wait for it.
//
// Cost for n locks: one transaction of 2n write units, and one request of n read units for the fences, which a
// transaction does not return. While it waits, half a read unit per look at each lock that it waits for, and one write
// per 6 h for each lock that it has. For a single lock, that of [Client.Acquire].
func (c *Client) AcquireAll(ctx context.Context, targets []Target, opts ...Option) (*Bundle, error) {
	b, err := c.bundle(ctx, targets, opts, (*acquisition).wait)
	return b, wrap("acquire all", err)
}

// TryAcquireAll takes 1 to 100 locks together if all of them are free. It does not wait: otherwise it takes none, and
// the error is a *[HeldAllError], which lists all holders.
//
// Cost for n locks: one transaction of 2n write units, whether it succeeds or not, and n read units if it succeeds. To ask
// holders: as in [Client.TryAcquire]. If all holders died long ago: the same again, and one write for each of their processes.
func (c *Client) TryAcquireAll(ctx context.Context, targets []Target, opts ...Option) (*Bundle, error) {
	b, err := c.bundle(ctx, targets, opts, (*acquisition).try)
	return b, wrap("try acquire all", err)
}

func (c *Client) bundle(ctx context.Context, targets []Target, opts []Option, how func(*acquisition, context.Context) ([]*Lease, error)) (*Bundle, error) {
	list, err := c.acquire(ctx, targets, slices.Concat(opts, []Option{heldAlone("AcquireAll")}), how)
	if err != nil {
		return nil, err
	}
	ends := make([]context.Context, 0, len(list))
	for _, l := range list {
		ends = append(ends, l.ctx)
	}
	b := &Bundle{client: c, leases: list}
	b.ctx, _ = until(context.WithoutCancel(ctx), ends...) // no stop is needed: each lease frees it when its own context ends
	return b, nil
}

// Bundle is several leases that were acquired together. It is safe for concurrent use. Each lease can also be used, and
// released, alone.
type Bundle struct {
	client *Client
	leases []*Lease
	ctx    context.Context
}

// Leases returns the leases, in the order of the targets.
func (b *Bundle) Leases() []*Lease { return append([]*Lease(nil), b.leases...) }

// Context returns a context that ends when the first of the leases ends, with the same cause. See [Lease.Context].
func (b *Bundle) Context() context.Context { return b.ctx }

// Remaining is how long all of the leases last unless renewed: the least of what [Lease.Remaining] returns, 0 when one has ended.
func (b *Bundle) Remaining() time.Duration {
	least := b.leases[0].Remaining()
	for _, l := range b.leases[1:] {
		least = min(least, l.Remaining())
	}
	return least
}

// Guards returns the conditions that all of the locks are held, as operations for a transaction of the caller's own.
// See [Lease.Guard].
//
// Cost: two write units each.
func (b *Bundle) Guards() []table.Op {
	ops := make([]table.Op, len(b.leases))
	for i, l := range b.leases {
		ops[i] = l.Guard()
	}
	return ops
}

// Write does what [Lease.Write] does, under all of the locks: the operations are applied only if every lock is still
// held. Operations and locks together are at most 100.
//
// Cost: twice the write units of the operations, and two per lock.
func (b *Bundle) Write(ctx context.Context, ops ...table.Op) error {
	return b.call("write", func() error { return write(ctx, b.leases, ops) })
}

// Commit does what [Lease.Commit] does, under all of the locks: it writes, and releases every lock in the same
// transaction.
//
// Cost: twice the write units of the operations, and two per lock.
func (b *Bundle) Commit(ctx context.Context, ops ...table.Op) error {
	return b.call("commit", func() error { return commit(ctx, b.leases, ops) })
}

// Release releases all of the locks. See [Lease.Release]. An error in one release does not stop the others; the errors
// are joined. It can be called again after an error. After [Bundle.Commit] has succeeded it does nothing.
//
// Each lock is released by a write of its own, several at a time: that costs half of a transaction, and a lock that was
// lost does not stop the release of the others.
//
// Cost: one conditional write per lock.
func (b *Bundle) Release(ctx context.Context) error {
	return b.call("release", func() error {
		ctx, cancel := b.client.clk().Detach(checked(ctx))
		defer cancel()
		return eachLease(b.leases, func(l *Lease) error {
			err := l.release(ctx)
			if err != nil && endedWithALease(ctx) { // ctx ended when another lease of the bundle was released
				err = l.giveBack(ctx)
			}
			return err
		})
	})
}

// call does for a bundle what [Lease.call] does for a lease.
func (b *Bundle) call(operation string, f func() error) error {
	if b == nil || b.client == nil {
		return wrap(operation, invalid("locks that were not acquired"))
	}
	return wrap(operation, f())
}
