package sim

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
)

// view reads all accounts, and the lock of one of them, as they are at one moment. It acquires no lock for that. A
// transfer is one transaction, so a view shows all of it or nothing. If the lock was free, the viewer then acquires
// it. If the fence is the one that the view showed, the account has not changed.
func (b *bank) view(ctx context.Context, x *Worker, locks *lock.Client) {
	x.Sleep(x.Between(0, 2*time.Second))
	i := x.IntN(b.Accounts)
	target, name := lock.Beside(account(i)), "account "+strconv.Itoa(i)
	v, err := b.look(ctx, x, locks, target)
	x.Note("views: %v", err)
	if err != nil {
		return
	}
	b.views.Add(1)
	var sum int64
	for _, row := range v.Rows {
		sum += number(row, "balance")
	}
	if want := int64(opening * b.Accounts); sum != want {
		b.world.Violation("a view finds %d of %d", sum, want)
	}
	if v.Held != nil {
		return
	}
	x.Waits(name)
	l, err := locks.TryAcquire(ctx, target)
	if err != nil {
		x.GivesUp(name, err)
		return
	}
	x.Holds(name, l)
	has, err := x.read(ctx, account(i))
	if err == nil {
		// The read values count only if a guarded write afterwards shows that the lock was held.
		err = l.Commit(ctx, table.Update(keys.NewKey("VIEW", "VIEW"), table.Attr("balance").Set(number(has, "balance"))))
		x.Writes(err, "finds %d", number(has, "balance"))
	}
	if saw := number(v.Rows[i], "balance"); err == nil && l.Fence() == v.Fence && saw != number(has, "balance") {
		b.world.Violation("account %d had %d in a view and has %d under the same fence", i, saw, number(has, "balance"))
	}
	x.Releases(name, l.Release(ctx))
}

// look reads all accounts and the lock of one of them.
func (b *bank) look(ctx context.Context, x *Worker, locks *lock.Client, target lock.Target) (*lock.View, error) {
	v, err := locks.View(ctx, target, b.accounts())
	if errors.Is(err, lock.ErrHeld) {
		v, err = locks.View(ctx, target, b.accounts(), lock.EvenIfHeld())
	}
	for i := 0; i < b.Accounts && b.OneByOne && err == nil; i++ { // a batch promises no more
		v.Rows[i], err = x.read(ctx, account(i))
	}
	return v, err
}
