package lock

import (
	"context"
	"fmt"
	"strings"

	"github.com/mortise-go/mortise/table"
)

// Bundle is the leases of locks that were acquired together. It is safe for concurrent use.
// Each lease can be used alone, and released earlier than the others.
type Bundle struct {
	client *Client
	leases []*Lease
	ctx    context.Context
}

// bundle joins leases. Its context carries the values of values.
func (c *Client) bundle(values context.Context, leases []*Lease) *Bundle {
	ends := make([]context.Context, 0, len(leases))
	for _, l := range leases {
		ends = append(ends, l.ctx)
	}
	b := &Bundle{client: c, leases: leases}
	b.ctx, _ = until(values, context.Cause, ends...) // which each of the leases lets go of in the end
	return b
}

// Leases are the leases, in the order of the targets.
func (b *Bundle) Leases() []*Lease { return append([]*Lease(nil), b.leases...) }

// Context ends when the first of the leases ends, with its cause: see Lease.Context.
func (b *Bundle) Context() context.Context { return b.ctx }

// Guards are the conditions that all of the locks are held, as operations to put into a
// transaction of the caller's own: see Lease.Guard.
//
// Cost: two write units each.
func (b *Bundle) Guards() []table.Op {
	ops := make([]table.Op, len(b.leases))
	for i, l := range b.leases {
		ops[i] = l.Guard()
	}
	return ops
}

// Write is Lease.Write under all of the locks: what is written commits only if every one of
// them is still held. Operations and locks together are at most 100 actions; more, and none
// besides the locks, are ErrInvalid before anything is sent.
//
// Cost: twice the operations' write units, plus two per lock.
func (b *Bundle) Write(ctx context.Context, ops ...table.Op) error {
	return wrap("write", b.inTurn(ctx, ops, func() error {
		return b.client.guarded(ctx, b.leases, b.Guards(), ops)
	}))
}

// Commit is Lease.Commit under all of the locks: it writes, and gives all of them up in the
// same transaction. Bounds are those of Write.
//
// Cost: twice the operations' write units, plus two per lock.
func (b *Bundle) Commit(ctx context.Context, ops ...table.Op) error {
	return wrap("commit", b.inTurn(ctx, ops, func() error {
		parts, guards := make([]*parting, len(b.leases)), make([]table.Op, len(b.leases))
		for i, l := range b.leases {
			parts[i] = l.part(true)
			defer parts[i].abort()
			guards[i] = parts[i].op
		}
		err := b.client.guarded(ctx, b.leases, guards, ops)
		for _, p := range parts {
			if err != nil {
				p.failed(err)
			} else {
				p.done()
			}
		}
		return err
	}))
}

// inTurn runs f while no other write under one of the leases is under way. Leases of a
// bundle are always taken in the same order.
func (b *Bundle) inTurn(ctx context.Context, ops []table.Op, f func() error) error {
	if len(ops) == 0 {
		return fmt.Errorf("%w: no operations", ErrInvalid)
	}
	if n := len(ops) + len(b.leases); n > table.MaxOps {
		return fmt.Errorf("%w: %d operations under %d locks, at most %d together", ErrInvalid, len(ops), len(b.leases), table.MaxOps)
	}
	for _, l := range b.leases {
		if err := l.takeTurn(ctx); err != nil {
			return err
		}
		defer l.endTurn()
	}
	for _, l := range b.leases {
		if l.released.Load() {
			return l.given()
		}
	}
	return f()
}

// Release gives all of the locks up, going on past errors, which it joins: see Lease.Release.
// It may be called again after an error. Each lock is released by a write of its own, a few
// at a time: that costs half of what a transaction would, a lock that was lost keeps no
// other from being freed, and goroutines of this process that wait for one of them are
// handed it. To release in one request, Commit.
//
// Cost: one conditional write per lock.
func (b *Bundle) Release(ctx context.Context) error {
	ctx, cancel := b.client.clock.detach(ctx)
	defer cancel()
	var all error
	for _, err := range each(b.leases, func(l *Lease) error { return l.release(ctx) }) {
		all = join(all, err)
	}
	return all
}

// HeldAllError lists who stands in the way of acquiring several locks, in the order of the
// targets. It matches ErrHeld, and errors.As finds the first *HeldError. Like theirs, its
// text leaves the targets out.
type HeldAllError struct {
	Held []*HeldError // at least one
}

// heldTold is how many holders the text of a HeldAllError names.
const heldTold = 3

func (e *HeldAllError) Error() string {
	var b strings.Builder
	for i, held := range e.Held {
		if i == heldTold {
			fmt.Fprintf(&b, "; and %d more", len(e.Held)-i)
			break
		}
		if i > 0 {
			b.WriteString("; ")
		}
		b.WriteString(held.Error())
	}
	return b.String()
}

// Unwrap returns the holders.
func (e *HeldAllError) Unwrap() []error {
	list := make([]error, len(e.Held))
	for i, held := range e.Held {
		list[i] = held
	}
	return list
}

// heldOneError is the error of acquiring a single lock, which can be looked at like that of
// several.
type heldOneError struct {
	error
	all *HeldAllError
}

func (e *heldOneError) Unwrap() []error { return []error{e.error, e.all} }
