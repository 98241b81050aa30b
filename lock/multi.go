package lock

import (
	"context"
	"slices"

	"github.com/mortise-go/mortise/table"
)

// MaxTargets is how many locks AcquireAll takes at most: as many actions as fit into one transaction.
const MaxTargets = table.MaxOps

// AcquireAll takes 1 to 100 locks, and waits while others hold them: until ctx ends or the client is
// closed. The error then lists who stood in the way (*[HeldAllError]). Options apply to each lock.
//
// It enters all lines in one transaction. So two calls that share locks stand in the same order in each of
// their lines, in whatever order they name them: there is no deadlock, and nobody starves. A lock whose turn
// comes first is held until the others follow: callers that want only that one wait meanwhile. Two targets
// that mean one lock, none, and more than 100 are ErrInvalid.
//
// Cost, for n locks: a transaction of 2n write units, and n read units in one request, since a transaction returns no fences.
// While waiting, half a read unit per look at each lock that is waited for. A single lock costs what [Client.Acquire] costs.
func (c *Client) AcquireAll(ctx context.Context, targets []Target, opts ...Option) (*Bundle, error) {
	b, err := c.bundle(ctx, targets, opts, (*acquisition).wait)
	return b, wrap("acquire all", err)
}

// TryAcquireAll takes 1 to 100 locks, or none of them where anybody holds one or waits for one. The error
// then is a *[HeldAllError], which lists all that stand in the way. It does not wait.
//
// Cost: a transaction of 2n write units for n locks, whether it succeeds or not, and n read units where it
// does. Once more, with one write per process that is in the way, where all of them died long ago.
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
	b.ctx, _ = until(context.WithoutCancel(ctx), ends...) // which each of the leases lets go of in the end
	return b, nil
}

// Bundle is the leases of locks that were acquired together. It is safe for concurrent use. Each lease can
// be used alone, and released earlier than the others.
type Bundle struct {
	client *Client
	leases []*Lease
	ctx    context.Context
}

// Leases are the leases, in the order of the targets.
func (b *Bundle) Leases() []*Lease { return append([]*Lease(nil), b.leases...) }

// Context ends when the first of the leases ends, with its cause: see [Lease.Context].
func (b *Bundle) Context() context.Context { return b.ctx }

// Guards are the conditions that all of the locks are held, as operations to put into a transaction of the
// caller's own: see [Lease.Guard].
//
// Cost: two write units each.
func (b *Bundle) Guards() []table.Op {
	ops := make([]table.Op, len(b.leases))
	for i, l := range b.leases {
		ops[i] = l.Guard()
	}
	return ops
}

// Write is [Lease.Write] under all of the locks: the operations are applied only if every one of them is
// still held. Operations and locks together are at most 100 actions.
//
// Cost: twice the operations' write units, plus two per lock.
func (b *Bundle) Write(ctx context.Context, ops ...table.Op) error {
	return wrap("write", write(ctx, b.leases, ops))
}

// Commit is [Lease.Commit] under all of the locks: it writes, and gives all of them up in the same transaction.
//
// Cost: twice the operations' write units, plus two per lock.
func (b *Bundle) Commit(ctx context.Context, ops ...table.Op) error {
	return wrap("commit", commit(ctx, b.leases, ops))
}

// Release gives all of the locks up, going on past errors, which it joins: see [Lease.Release]. It may be
// called again after an error. Each lock is released by a write of its own, a few at a time: that costs half
// of what a transaction would, and a lock that was lost keeps no other from being freed.
//
// Cost: one conditional write per lock.
func (b *Bundle) Release(ctx context.Context) error {
	ctx, cancel := b.client.clk().Detach(checked(ctx))
	defer cancel()
	return wrap("release", eachLease(b.leases, func(l *Lease) error { return l.release(ctx) }))
}
