package lockrow

import (
	"github.com/mortise-go/mortise/internal/attrvalue"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
)

// Change is what is written with every change of the first place.
type Change struct {
	Since int64 // when, in epoch milliseconds
	Hold  int64 // advice of how long a process holds, in milliseconds; 0 leaves it as it is
	TTL   int64 // epoch seconds
	Run   RunChange
	Ran   int64 // start of the interval that has run

	// Commit is the number of a commit among the guarded writes: it is refused after a later one. 0 for a release.
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

// changed is what every change of the first place writes, and every permit that is given back.
func (r *Rows) changed(s shape) []table.Change {
	n := r.names
	changes := []table.Change{table.Attr(n.Since).Set(param(argSince)), table.Attr(n.TTL).Set(param(argTTL))}
	if s.hold {
		changes = append(changes, table.Attr(n.Hold).Set(param(argHold)))
	}
	changes = append(changes, s.dataChanges(n)...)
	changes = append(changes, s.runChanges(n)...)
	if s.op != "force" { // the reason is that of the last change
		changes = append(changes, table.Attr(n.Forced).Remove())
	}
	return changes
}

// Pass puts another ticket into the first place: that of the next one in the holder's process.
func (r *Rows) Pass(key keys.Key, h Holding, to Ticket, c Change, d Data) table.Op {
	s := shapeOf("pass", c, d)
	args := c.args(h, d)
	args[argTicket] = to.String()
	return r.op(s, key, args, func() table.Op {
		return table.Update(keys.Key{}, append(r.changed(s),
			table.Attr(r.names.Fence).Set(param(argNext)), table.Attr(r.names.Line).At(0).Set(param(argTicket)))...).If(isFirst(r.names), s.inOrder(r.names))
	})
}

// Replace puts a ticket into the place of a dead holder behind whom nobody waits. A lease of its own must not
// have been renewed since the row was seen.
func (r *Rows) Replace(key keys.Key, seen *Row, by Ticket, c Change, d Data) table.Op {
	first, _ := seen.First()
	op := r.Pass(key, seen.Holding(0), by, c, d).If(table.Attr(r.names.Line).At(1).NotExists())
	if first.Length > 0 {
		op = op.If(still(r.names.Renewed, seen.Renewed))
	}
	return op
}

// still holds while a number is as it was seen; 0 where there was none.
func still(attr string, seen int64) table.Cond {
	if seen == 0 {
		return table.Or(table.Attr(attr).NotExists(), table.Attr(attr).Equal(0))
	}
	return table.Attr(attr).Equal(seen)
}

// SetPermits changes the number of permits of a row, as the next one of such changes: a late copy of an earlier one changes
// nothing, also where the number is the same again.
func (r *Rows) SetPermits(key keys.Key, seen *Row, to, ttl int64) table.Op {
	permits, edits := table.Attr(r.names.Permits), table.Attr(r.names.Edits)
	op := table.Update(key, permits.Set(to), edits.Set(seen.Edits+1), table.Attr(r.names.TTL).Set(ttl)).
		If(table.Attr(r.names.Type).Equal(Type), permits.Equal(seen.Permits), still(r.names.Edits, seen.Edits))
	stays, kept, n := table.Attr(r.names.Stays), table.Attr(r.names.Kept), int(seen.Permits)
	switch {
	case to >= seen.Permits:
	case n >= len(seen.Stays): // all in the line hold, whoever comes or goes
		op = op.Changing(kept.Set(table.Attr(r.names.Next).At(0).Minus(1))).If(stays.At(n).NotExists())
	case seen.Kept < seen.Stays[n]: // the first n hold: places only become smaller
		op = op.Changing(kept.Set(stays.At(n - 1))).If(stays.At(n).Exists())
	default: // those up to kept
		op = op.If(kept.AtLeast(stays.At(n - 1)))
	}
	return op
}

// Reset empties the line of a row that is not in order, if that is as it was seen. fence has to be greater than every fence
// that the lock has had, or than every number of a stay. The row stays one of permits if it tells how many.
func (r *Rows) Reset(key keys.Key, seen table.Item, fence int64, c Change, reason string) table.Op {
	n := r.names
	changes := []table.Change{
		table.Attr(n.Since).Set(c.Since), table.Attr(n.TTL).Set(c.TTL),
		table.Attr(n.Forced).Set(reason),
	}
	none := []string{n.Renewed, n.Writes, n.Edits, n.Hold, n.Ran, n.Running, n.Failed, n.Ousted, n.Kept, n.Nonce}
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
