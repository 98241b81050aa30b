package lockrow

import (
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
)

// Guard is the condition that a ticket holds, as an operation.
func (r *Rows) Guard(key keys.Key, h Holding) table.Op {
	return r.op(shape{op: "guard", kind: h.Kind}, key, h.args(), func() table.Op { return table.Check(keys.Key{}, h.Kind.holds(r.names)) })
}

// GuardedWrite is the guard of a holder's write with the given number, and records the number. It refuses every write with a smaller
// number, and its own repetition. Readers and permits hold together, so their writes have no order: for them it is only the guard.
func (r *Rows) GuardedWrite(key keys.Key, h Holding, number int64) table.Op {
	if h.Kind != Exclusive {
		return r.Guard(key, h)
	}
	return r.numbered("write", r.names.Writes, key, h, number, Data{})
}

// SetData replaces the payload, as the holder's edit with the given number. It refuses every edit with a smaller number, and its own
// repetition.
func (r *Rows) SetData(key keys.Key, h Holding, number int64, d Data) table.Op {
	return r.numbered("set data", r.names.Edits, key, h, number, d)
}

func (r *Rows) numbered(op, attr string, key keys.Key, h Holding, number int64, d Data) table.Op {
	s := shapeOf(op, Change{}, d)
	args := h.args()
	args[argCount], args[argData] = number, d.Value
	return r.op(s, key, args, func() table.Op {
		return table.Update(keys.Key{}, append(s.content(r.names), table.Attr(attr).Set(param(argCount)))...).
			If(isFirst(r.names), below(attr, argCount))
	})
}

// Renew extends the Fixed lease of a first ticket: from now on the lease counts from at. The ticket's text stays, so a late copy of its
// entry is still recognised. A late copy of an earlier renewal does nothing.
func (r *Rows) Renew(key keys.Key, h Holding, at, ttl int64) table.Op {
	args := h.args()
	args[argSince], args[argTTL] = at, ttl
	return r.op(shape{op: "renew"}, key, args, func() table.Op {
		return table.Update(keys.Key{}, table.Attr(r.names.Renewed).Set(param(argSince)), table.Attr(r.names.TTL).Set(param(argTTL))).
			If(isFirst(r.names), below(r.names.Renewed, argSince))
	})
}

// Prolong postpones the deletion of the row by its time to live.
func (r *Rows) Prolong(key keys.Key, h Holding, ttl int64) table.Op {
	args := h.args()
	args[argTTL] = ttl
	return r.op(shape{op: "prolong", kind: h.Kind}, key, args, func() table.Op {
		return table.Update(keys.Key{}, table.Attr(r.names.TTL).Set(param(argTTL))).If(h.Kind.holds(r.names))
	})
}

// BeginRun records that the run for an interval has begun, unless the run for this interval or a later one has ended.
func (r *Rows) BeginRun(key keys.Key, h Holding, interval int64) table.Op {
	s := shape{op: "run", run: BeginRun}
	args := h.args()
	args[argRun] = interval
	return r.op(s, key, args, func() table.Op {
		return table.Update(keys.Key{}, s.content(r.names)...).If(isFirst(r.names), below(r.names.Ran, argRun))
	})
}
