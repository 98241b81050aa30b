package lockrow

import (
	"slices"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
)

// Exit is what the row must show, beside the ticket itself, when a ticket leaves. Otherwise the request is refused.
type Exit struct {
	Place  int  // of the ticket
	Reader bool // a reader leaves the first place, and another reader is first afterwards: the fence stays
	Last   bool // the line is empty afterwards; matters only with an index
}

// Exit returns the exit of a holder, by the row as it was seen. gone is how many of the tickets before it are expected to have left
// since. A holder that is not in the line counts as the first.
func (r *Row) Exit(h Holding, gone int) Exit {
	e := Exit{Last: len(r.Line) <= 1}
	if h.Kind == Exclusive {
		return e
	}
	place := max(r.Place(h.ID), 0)
	e.Place = place - min(gone, place)
	e.Reader = h.Kind == Shared && e.Place == 0 && len(r.Line) > place+1 && r.Line[place+1].Shared()
	return e
}

// MayFit reports whether a late copy of a request that this row has refused, because of its exit, may still be applied: others come and go.
// A permit only moves up, so a place behind its own never fits again. A reader's late entry can put its ticket behind others again.
func (r *Row) MayFit(h Holding, refused Exit) bool {
	return h.Kind == Shared || refused.Place <= r.Exit(h, 0).Place
}

// Release removes the ticket of a holder. If that was the only holder, or a permit, the first ticket that waits then holds.
func (r *Rows) Release(key keys.Key, h Holding, e Exit, c Change) table.Op {
	s := shapeOf("release", c, Data{})
	s.kind, s.exit, s.next, s.removed = h.Kind, e, 1, 1
	return r.op(s, key, c.args(h, Data{}), func() table.Op { return r.leaving(s) })
}

// Remove takes a ticket of the caller's process out of the line: a ghost, or the ticket of a call that gives up waiting. place is its
// place in seen. A first ticket's Fixed lease must not have been renewed since.
func (r *Rows) Remove(key keys.Key, seen *Row, place int, c Change) table.Op {
	return r.remove("remove", key, seen, []int{place}, c, "")
}

// Evict does the same for the tickets of a dead holder, and for ghosts that hold. If a reader is among them, the row records that. places
// are in ascending order. The other tickets move up and keep their order. Only the first 25 places count, because of the bounds of a
// request.
func (r *Rows) Evict(key keys.Key, seen *Row, places []int, c Change) table.Op {
	return r.remove("evict", key, seen, places, c, "")
}

// Force removes the ticket of a holder for somebody who does not hold. It records the reason, and the fence.
func (r *Rows) Force(key keys.Key, seen *Row, place int, c Change, reason string) table.Op {
	return r.remove("force", key, seen, []int{place}, c, reason)
}

const maxRemoved = 25

func (r *Rows) remove(op string, key keys.Key, seen *Row, places []int, c Change, reason string) table.Op {
	places = places[:min(len(places), maxRemoved)]
	at, h := places[0], seen.Holding(places[0])
	next := 0 // place of the first ticket that stays
	for slices.Contains(places, next) {
		next++
	}
	s := shapeOf(op, c, Data{})
	s.kind, s.next, s.removed = h.Kind, next, len(places)
	s.exit = Exit{Place: at, Last: len(places) == len(seen.Line), Reader: h.Kind == Shared && at == 0 && next < len(seen.Line) && seen.Line[next].Shared()}
	s.ousts = op != "remove" && slices.ContainsFunc(places, func(p int) bool { return seen.Line[p].Shared() })
	args := c.args(h, Data{})
	args[argReason] = reason
	out := r.op(s, key, args, func() table.Op { return r.leaving(s) })
	if at == 0 && seen.Line[0].Length > 0 {
		out = out.If(still(r.names.Renewed, seen.Renewed))
	}
	for _, p := range places[1:] {
		ticket := table.Attr(r.names.Line).At(p)
		out = out.Changing(ticket.Remove()).If(ticket.HasPrefix(prefix(seen.Line[p].ID)))
		if h.Kind == Permit {
			stay := table.Attr(r.names.Stays).At(p)
			out = out.Changing(stay.Remove()).If(stay.Equal(seen.Stays[p]))
		}
	}
	return out
}

// leaving builds the operation of a shape that removes tickets from the line, with the first of them.
func (r *Rows) leaving(s shape) table.Op {
	n, place := r.names, s.exit.Place
	line, fence, stay := table.Attr(n.Line), table.Attr(n.Fence), table.Attr(n.Stays).At(place)
	conds := []table.Cond{line.At(place).HasPrefix(param(argID))}
	unlisted, rest := r.listed(s)
	var changes []table.Change
	switch under := fence.Equal(param(argFence)); {
	case s.kind == Permit:
		conds = append(conds, stay.Equal(param(argFence)), rest)
		changes = slices.Concat(unlisted, append(r.changed(s), stay.Remove()))
	case place > 0 && (s.op == "remove" || s.op == "evict"): // as a waiter, or as one of several readers: nobody comes to hold
	case place > 0: // other readers hold on
		conds = append(conds, under)
	case s.exit.Reader:
		conds = append(conds, under, line.At(s.next).HasPrefix(mark))
	default:
		conds = append(conds, under, s.inOrder(n))
		if s.kind == Shared {
			conds = append(conds, table.Not(line.At(s.next).HasPrefix(mark)))
		}
		conds = append(conds, rest)
		changes = slices.Concat(unlisted, append(r.changed(s), fence.Set(param(argNext))))
	}
	if s.op == "force" {
		forced := param(argFence)
		if s.kind == Permit {
			forced = table.Attr(n.Next).At(0)
		}
		changes = append(changes, table.Attr(n.Forced).Set(param(argReason)), table.Attr(n.ForcedFence).Set(forced))
	}
	if s.ousts {
		ousted := table.Attr(n.Ousted)
		changes = append(changes, ousted.Set(ousted.OrElse(0).Plus(1)))
	}
	return table.Update(keys.Key{}, append(changes, line.At(place).Remove())...).If(conds...)
}

// listed takes a row out of the index if its line will be empty, on the condition that it will be; otherwise, that it will not be.
func (r *Rows) listed(s shape) (changes []table.Change, cond table.Cond) {
	rest := table.Attr(r.names.Line).At(s.removed)
	switch {
	case r.index == nil:
	case s.exit.Last:
		return []table.Change{table.Attr(r.index.PK).Remove(), table.Attr(r.index.SK).Remove()}, rest.NotExists()
	default:
		cond = rest.Exists()
	}
	return nil, cond
}
