package lockrow

import (
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
)

// Change is what is written with every change of the first place.
type Change struct {
	Since  int64 // when, in epoch milliseconds
	Hold   int64 // advice of how long a process holds, in milliseconds; 0 leaves it as it is
	TTL    int64 // epoch seconds
	Ran    int64 // start of the interval whose run has finished; 0 for none
	Failed bool  // that run has failed
	Broke  bool  // the run that has begun is given up

	// Last says that the line is empty afterwards. It counts where there is an index: the update is
	// refused if it is wrong.
	Last bool
}

func (r *Rows) shapeOf(op string, c Change, d Data) shape {
	s := shape{op: op, hold: c.Hold != 0, data: d.change()}
	switch {
	case c.Ran != 0 && c.Failed:
		s.run = failRun
	case c.Ran != 0:
		s.run = finishRun
	case c.Broke:
		s.run = dropRun
	}
	if r.index != nil {
		if s.listed = notLast; c.Last {
			s.listed = isLast
		}
	}
	return s
}

func (c Change) args(h Holding, d Data) []any {
	args := h.args()
	args[argSince], args[argHold], args[argTTL], args[argRun], args[argData] = num(c.Since), c.Hold, num(c.TTL), c.Ran, d.Value
	return args
}

// replacing is an update of the first place: first changes it. forced records that it was taken by force; every other change
// removes the reason of the last time.
func (r *Rows) replacing(s shape, first table.Change, forced ...table.Change) table.Op {
	n := r.names
	changes := []table.Change{
		table.Attr(n.Fence).Set(table.Param(argNext)),
		table.Attr(n.Since).Set(table.Param(argSince)),
		table.Attr(n.TTL).Set(table.Param(argTTL)),
		first,
	}
	if s.hold {
		changes = append(changes, table.Attr(n.Hold).Set(table.Param(argHold)))
	}
	changes = append(changes, s.dataChanges(n)...)
	changes = append(changes, s.runChanges(n)...)
	if forced == nil {
		forced = []table.Change{table.Attr(n.Forced).Remove()}
	}
	changes = append(changes, forced...)
	second := table.Attr(n.Line).At(1)
	conds := []table.Cond{isFirst(n)}
	switch s.listed {
	case isLast:
		changes = append(changes, table.Attr(r.index.PK).Remove(), table.Attr(r.index.SK).Remove())
		conds = append(conds, second.NotExists())
	case notLast:
		conds = append(conds, second.Exists())
	}
	return table.Update(keys.Key{}, changes...).If(conds...)
}

func (r *Rows) first() table.Operand { return table.Attr(r.names.Line).At(0) }

// Release removes the first ticket. The next one is first then.
func (r *Rows) Release(key keys.Key, h Holding, c Change) table.Op {
	s := r.shapeOf("release", c, Data{})
	return r.op(s, key, c.args(h, Data{}), func() table.Op { return r.replacing(s, r.first().Remove()) })
}

// Pass puts another ticket into the first place: that of the next one in the holder's process.
func (r *Rows) Pass(key keys.Key, h Holding, to Ticket, c Change, d Data) table.Op {
	s := r.shapeOf("pass", c, d)
	s.listed = 0 // the line stays as long as it is
	args := c.args(h, d)
	args[argTicket] = to.String()
	return r.op(s, key, args, func() table.Op { return r.replacing(s, r.first().Set(table.Param(argTicket))) })
}

// Replace puts a ticket into the place of a dead holder behind whom nobody waits. A lease of its own must not
// have been renewed since the row was seen.
func (r *Rows) Replace(key keys.Key, seen *Row, by Ticket, c Change, d Data) table.Op {
	first, _ := seen.First()
	op := r.Pass(key, Holding{ID: first.ID, Fence: seen.Fence}, by, c, d).If(table.Attr(r.names.Line).At(1).NotExists())
	if first.Length > 0 {
		op = op.If(r.notRenewed(seen))
	}
	return op
}

// Evict removes the first ticket, whose holder is dead, and others of its session. The other places move up
// and keep their order. A lease of its own must not have been renewed since the row was seen.
func (r *Rows) Evict(key keys.Key, seen *Row, others []Position, c Change) table.Op {
	first, _ := seen.First()
	op := r.Release(key, Holding{ID: first.ID, Fence: seen.Fence}, c)
	if first.Length > 0 {
		op = op.If(r.notRenewed(seen))
	}
	for _, p := range others {
		at := table.Attr(r.names.Line).At(p.Place)
		op = op.Changing(at.Remove()).If(at.HasPrefix(prefix(p.ID)))
	}
	return op
}

func (r *Rows) notRenewed(seen *Row) table.Cond {
	renewed := table.Attr(r.names.Renewed)
	if seen.Renewed == 0 {
		return renewed.NotExists()
	}
	return renewed.Equal(seen.Renewed)
}

// Force removes the first ticket in the name of somebody who does not hold it, and records that with
// the reason.
func (r *Rows) Force(key keys.Key, seen Holding, c Change, reason string) table.Op {
	s := r.shapeOf("force", c, Data{})
	args := c.args(seen, Data{})
	args[argReason] = reason
	return r.op(s, key, args, func() table.Op {
		return r.replacing(s, r.first().Remove(),
			table.Attr(r.names.Forced).Set(table.Param(argReason)), table.Attr(r.names.ForcedFence).Set(table.Param(argFence)))
	})
}

// Reset empties the line of a row that is not in order, if that is as it was seen. fence has to be
// greater than every fence that the lock has had.
func (r *Rows) Reset(key keys.Key, seen table.Item, fence int64, c Change, reason string) table.Op {
	n := r.names
	changes := []table.Change{
		table.Attr(n.Fence).Set(fence), table.Attr(n.Since).Set(c.Since), table.Attr(n.TTL).Set(c.TTL),
		table.Attr(n.Forced).Set(reason), table.Attr(n.ForcedFence).Set(fence - 1),
	}
	for _, name := range []string{n.Line, n.Renewed, n.Writes, n.Edits, n.Hold, n.Ran, n.Running, n.Failed, nonce} {
		changes = append(changes, table.Attr(name).Remove())
	}
	if r.index != nil {
		changes = append(changes, table.Attr(r.index.PK).Remove(), table.Attr(r.index.SK).Remove())
	}
	op := table.Update(key, changes...).If(table.Attr(n.Type).Equal(Type))
	for _, name := range []string{n.Line, n.Fence} {
		if av := seen[name]; av != nil {
			op = op.If(table.Attr(name).Equal(av))
		} else {
			op = op.If(table.Attr(name).NotExists())
		}
	}
	return op
}
