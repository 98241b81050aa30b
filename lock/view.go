package lock

import (
	"context"
	"slices"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
)

// MaxViewed is how many rows a View can have, besides the lock's own.
const MaxViewed = table.MaxOps - 1

// View is what stood in the table at one moment.
type View struct {
	Rows []table.Item // in the order of their keys; nil where there is none

	// Fence is that of the lock; 0 where the lock has no row, and of [Permits]. A lease with the same fence shows that nobody has
	// held the lock since a View that was taken while it was free: under that lease the rows are still as they
	// were, but for writes that are not guarded.
	Fence int64

	Held *HeldError // who held the lock at that moment: readers, or others with [EvenIfHeld]; nil where nobody did
}

// ViewOption changes how View reads.
type ViewOption func(*viewing)

type viewing struct{ evenIfHeld bool }

// EvenIfHeld reads rows although somebody holds their lock: [View].Held tells who. What the holder writes in one
// transaction is seen as a whole or not at all; what it writes in several may be seen half-written.
func EvenIfHeld() ViewOption { return func(v *viewing) { v.evenIfHeld = true } }

// View reads rows, and who holds their lock, as all of them stand at one moment. It does not acquire the lock, writes
// nothing, and does not wait.
//
// Where the lock is held, somebody may be about to write more: the error is a *[HeldError], unless the call has
// [EvenIfHeld]. A holder that died counts until another client has taken over. A View without an error and without that option
// shows what the last holder has left. Readers ([Shared]) are no reason to refuse, also where a writer waits behind them: what a
// reader writes, in spite of its name, is seen as a whole for each of its transactions.
//
// The list has at most [MaxViewed] rows of the client's table. Duplicates are read once, and the lock's own row may be
// one of them. An empty list shows the lock alone, which Inspect does for half the price. Rows are items as in package
// table; the method Decode of an entity makes values of them. A row that has expired and is not deleted yet is there.
//
// A row at the lock's key that is not a lock's, or not in order, is [ErrNotLock] or [ErrMalformed]. DynamoDB refuses to
// read rows of more than 4 MB together ([ErrInvalid]). A read that meets a transaction which writes one of the rows is
// repeated by the table's retry policy ([table.ErrConflict] at its end).
//
// Cost: two read units per 4 KB of each row, at least two, and two for the lock's.
func (c *Client) View(ctx context.Context, target Target, list []keys.Key, opts ...ViewOption) (*View, error) {
	var how viewing
	for _, opt := range opts {
		if opt == nil {
			return nil, wrap("view", invalid("nil option"))
		}
		opt(&how)
	}
	var v *View
	err := c.operate(ctx, target, func(ctx context.Context, key keys.Key) error {
		items, err := c.table.TransactGet(ctx, append(slices.Clip(list), key))
		if err == nil {
			err = c.checkRegion(ctx) // after the read, which refuses bad keys before anything is sent
		}
		if err != nil {
			return err
		}
		v, err = c.viewOf(target, items, how)
		return err
	})
	return v, wrap("view", err)
}

// viewOf makes a view of rows, the last of which is the lock's.
func (c *Client) viewOf(target Target, items []table.Item, how viewing) (*View, error) {
	last := len(items) - 1
	v := &View{Rows: items[:last:last]}
	if items[last] == nil {
		return v, nil
	}
	row, err := c.layout.names.Parse(items[last])
	if err != nil {
		return nil, err
	}
	if row.Permits == 0 {
		v.Fence = row.Fence
	}
	if first, held := row.First(); held {
		v.Held = c.heldError(target, &row)
		if !how.evenIfHeld && !first.Shared() {
			return nil, v.Held
		}
	}
	return v, nil
}
