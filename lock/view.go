package lock

import (
	"context"
	"slices"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
)

// MaxViewed is how many rows a [Client.View] can read, besides the lock's row.
const MaxViewed = table.MaxOps - 1 // 99

// View is a snapshot of some rows and of their lock. [Client.View] returns one.
type View struct {
	Rows []table.Item // in the order of the keys of the call; nil for a key without a row

	// Fence is the fence of the lock; 0 if the lock has no row, and for [Permits]. Use it to find out whether the rows have
	// changed. If the lock was free, and your next lease has this fence, no writer has held the lock in between. Only writes
	// without a guard, and those of readers ([Shared]), can have changed the rows.
	Fence int64

	Held *HeldError // who held the lock at that moment: readers ([Shared]), or anybody with [EvenIfHeld]; nil for nobody
}

// ViewOption changes how View reads.
type ViewOption func(*viewing)

type viewing struct{ evenIfHeld bool }

// EvenIfHeld makes [Client.View] read the rows also while somebody holds their lock. The field Held of the [View] then
// describes the holder. What the holder writes in one transaction is seen as a whole or not at all. What it writes in
// several transactions may be seen half-written.
func EvenIfHeld() ViewOption { return func(v *viewing) { v.evenIfHeld = true } }

// View reads up to 99 rows and their lock, all as they are at one moment. It does not acquire the lock, writes nothing
// and does not wait.
//
// While somebody holds the lock, the rows may be half-written: the error is a *[HeldError], unless the option
// [EvenIfHeld] is given. A holder that died counts as a holder until another client has taken over. Without an error,
// and without that option, a View shows what the last holder has left.
//
// View also succeeds while readers ([Shared]) hold the lock: a reader is not expected to write what the lock protects. If
// it does, each of its transactions is seen as a whole.
//
// Use Decode of an entity to make values of the rows. A row that has expired and is not deleted yet is included. Keys
// that occur twice are read once. The lock's own row may be among them. For the lock alone, [Client.Inspect] costs half
// as much.
//
// A row at the lock's key that is not a lock is [ErrNotLock]; one that is malformed is [ErrMalformed]. Rows of more
// than 4 MB together are refused by DynamoDB ([ErrInvalid]). If a transaction writes one of the rows at the same time,
// the read is repeated by the table's retry policy; at its end the error matches [table.ErrConflict].
//
// Cost: two read units per 4 KB of each row, at least two for each, and two for the lock's row.
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
			err = c.checkRegion(ctx) // after the read, since that refuses bad keys before anything is sent
		}
		if err != nil {
			return err
		}
		v, err = c.viewOf(target, items, how)
		return err
	})
	return v, wrap("view", err)
}

// viewOf makes a View of items. The last item is the lock's row; nil if there is none.
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
