package lockrow

import (
	"github.com/mortise-go/mortise/internal/attrvalue"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
)

// Change is what is written with every change of the first place, and whenever a permit is given back.
type Change struct {
	Since int64 // the row's new Since, in epoch milliseconds
	Hold  int64 // how long a process keeps the lock, in milliseconds; 0 leaves the row's value
	TTL   int64 // epoch seconds
	Run   RunChange
	Ran   int64 // start of that interval

	// Commit is the number of a commit among the guarded writes, which is refused after a later write; 0 for a release.
	Commit int64
}

func shapeOf(op string, c Change, d Data) shape {
	return shape{op: op, hold: c.Hold != 0, commit: c.Commit != 0, data: d.Given, null: d.Value == nil, run: c.Run}
}

func (c Change) args(h Holding, d Data) []any {
	args := h.args()
	args[argSince], args[argHold], args[argTTL], args[argRun], args[argCount], args[argData] = num(c.Since), c.Hold, num(c.TTL), c.Ran, c.Commit, d.Value
	return args
}

// changed returns what is written with every change of the first place, and whenever a permit is given back.
func (r *Rows) changed(s shape) []table.Change {
	n := r.names
	changes := []table.Change{table.Attr(n.Since).Set(param(argSince)), table.Attr(n.TTL).Set(param(argTTL))}
	if s.hold {
		changes = append(changes, table.Attr(n.Hold).Set(param(argHold)))
	}
	changes = append(changes, s.content(n)...)
	if s.op != "force" { // the row has the reason of a force until the next holder leaves
		changes = append(changes, table.Attr(n.Forced).Remove())
	}
	return changes
}

// Pass replaces the first ticket by the ticket of the next goroutine in the holder's process.
func (r *Rows) Pass(key keys.Key, h Holding, to Ticket, c Change, d Data) table.Op {
	s := shapeOf("pass", c, d)
	args := c.args(h, d)
	args[argTicket] = to.String()
	return r.op(s, key, args, func() table.Op {
		return table.Update(keys.Key{}, append(r.changed(s),
			table.Attr(r.names.Fence).Set(param(argNext)), table.Attr(r.names.Line).At(0).Set(param(argTicket)))...).If(isFirst(r.names), s.inOrder(r.names))
	})
}

// Replace puts a ticket into the place of a dead holder, if nobody waits. A Fixed lease of that holder must not have been renewed since
// the row was seen. shard and listed are the keys in the index, as for Enter: a client that knows of no index may have entered the holder.
func (r *Rows) Replace(key keys.Key, seen *Row, by Ticket, c Change, d Data, shard, listed string) table.Op {
	first, _ := seen.First()
	op := r.Pass(key, seen.Holding(0), by, c, d).If(table.Attr(r.names.Line).At(1).NotExists())
	if first.Length > 0 {
		op = op.If(still(r.names.Renewed, seen.Renewed))
	}
	if r.index != nil {
		op = op.Changing(table.Attr(r.index.PK).Set(shard), table.Attr(r.index.SK).Set(table.Attr(r.index.SK).OrElse(listed)))
	}
	return op
}

// still is the condition that a number has not changed since it was seen. seen is 0 if the number was missing.
func still(attr string, seen int64) table.Cond {
	if seen == 0 {
		return table.Or(table.Attr(attr).NotExists(), table.Attr(attr).Equal(0))
	}
	return table.Attr(attr).Equal(seen)
}

// SetPermits changes the number of permits of a row. Each such change has the next number. So a late copy of an earlier change does
// nothing, even if the row has the same number of permits again.
func (r *Rows) SetPermits(key keys.Key, seen *Row, to, ttl int64) table.Op {
	permits, edits := table.Attr(r.names.Permits), table.Attr(r.names.Edits)
	op := table.Update(key, permits.Set(to), edits.Set(seen.Edits+1), table.Attr(r.names.TTL).Set(ttl)).
		If(table.Attr(r.names.Type).Equal(Type), permits.Equal(seen.Permits), still(r.names.Edits, seen.Edits))
	stays, kept, n := table.Attr(r.names.Stays), table.Attr(r.names.Kept), int(seen.Permits)
	switch {
	case to >= seen.Permits:
	case n >= len(seen.Stays): // all hold, also if some come or go meanwhile: keep every stay so far
		op = op.Changing(kept.Set(table.Attr(r.names.Next).At(0).Minus(1))).If(stays.At(n).NotExists())
	case seen.Kept < seen.Stays[n]: // the first n hold, also if some leave meanwhile: tickets only move up
		op = op.Changing(kept.Set(stays.At(n - 1))).If(stays.At(n).Exists())
	default: // more than n hold since an earlier change: kept stays, if it still covers the first n
		op = op.If(kept.AtLeast(stays.At(n - 1)))
	}
	return op
}

// day is in milliseconds. The clocks of two processes differ by less.
const day = 24 * 60 * 60 * 1000

// Reset empties the line of a malformed row, if its line and its numbers are as they were seen. fence must be greater than every fence
// that the lock has had, and every number of a stay. The row stays one of permits if it has a valid number of them. Valid times of runs
// stay, and the row is kept for as long: otherwise an interval that is recorded would run again. A time in the future is not valid: until
// then, no interval would run.
func (r *Rows) Reset(key keys.Key, seen table.Item, fence int64, c Change, reason string) table.Op {
	n := r.names
	if was, ok := attrvalue.Natural(seen[n.TTL]); ok {
		c.TTL = max(c.TTL, was)
	}
	changes := []table.Change{
		table.Attr(n.Since).Set(c.Since), table.Attr(n.TTL).Set(c.TTL),
		table.Attr(n.Forced).Set(reason),
	}
	none := []string{n.Renewed, n.Writes, n.Edits, n.Hold, n.Ousted, n.Kept, n.Nonce}
	for _, run := range []string{n.Ran, n.Running, n.Failed} {
		if at, ok := attrvalue.Natural(seen[run]); !ok || at > c.Since+day {
			none = append(none, run)
		}
	}
	if permits, ok := attrvalue.Natural(seen[n.Permits]); ok && permits >= MinPermits && permits <= Cap {
		changes = append(changes, table.Attr(n.Line).Set(list()), table.Attr(n.Stays).Set(list()), table.Attr(n.Next).Set(list(num(fence))), table.Attr(n.ForcedFence).Set(fence))
		none = append(none, n.Fence, n.Data)
	} else {
		changes = append(changes, table.Attr(n.Fence).Set(fence), table.Attr(n.ForcedFence).Set(fence-1))
		none = append(none, n.Line, n.Permits, n.Stays, n.Next)
	}
	for _, name := range none {
		changes = append(changes, table.Attr(name).Remove())
	}
	if r.index != nil {
		changes = append(changes, table.Attr(r.index.PK).Remove(), table.Attr(r.index.SK).Remove())
	}
	op := table.Update(key, changes...).If(table.Attr(n.Type).Equal(Type))
	for _, name := range []string{n.Line, n.Fence, n.Permits, n.Next} {
		if av := seen[name]; av != nil {
			op = op.If(table.Attr(name).Equal(av))
		} else {
			op = op.If(table.Attr(name).NotExists())
		}
	}
	return op
}
