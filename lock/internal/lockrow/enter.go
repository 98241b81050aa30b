package lockrow

import (
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
)

// Entry is what Enter writes.
type Entry struct {
	Ticket Ticket
	IfFree bool   // refused unless the line is empty, or a permit is free
	Exists bool   // refused unless there is a row
	Seed   int64  // the fence of a new row: greater than every fence of a row that was deleted
	TTL    int64  // epoch seconds
	Data   Data   // with IfFree only
	Run    int64  // with IfFree only: start of an interval that must not have run; 0 for none
	Shard  string // partition key in the index
	Listed string // sort key in the index, of a row that is not in it

	// Permits is their number; 0 for a lock. Rows of locks refuse it, and rows of permits every other number.
	Permits int64

	// New is for permits. Enter changes the row that there is, or else makes one: no update does both, since the number of the
	// next stay is an element of a list, and a row without that has none to be counted up.
	New bool
}

// Enter appends a ticket to the line. The answer is the row: whether the ticket holds, by [Row.Granted]. A refusal with the
// ticket in the row is its own effect.
func (r *Rows) Enter(key keys.Key, e Entry) table.Op {
	s := shape{op: "enter", free: e.IfFree, exists: e.Exists, data: e.Data.Given, null: e.Data.Value == nil, new: e.New}
	if e.Run != 0 {
		s.run = BeginRun
	}
	ticket := &types.AttributeValueMemberS{Value: e.Ticket.String()}
	args := make([]any, arguments)
	args[argTicket], args[argList] = ticket, list(ticket)
	args[argTTL], args[argData], args[argRun], args[argSeed] = num(e.TTL), e.Data.Value, e.Run, num(e.Seed)
	args[argShard], args[argListed] = e.Shard, e.Listed
	if e.Permits > 0 {
		s.op = "enter permits"
		args[argPermits] = num(e.Permits)
		if e.New {
			args[argSeed], args[argNext] = list(num(e.Seed)), list(num(e.Seed+1))
		}
		return r.op(s, key, args, func() table.Op { return r.enteringPermits(s) })
	}
	return r.op(s, key, args, func() table.Op { return r.entering(s) })
}

func (r *Rows) entering(s shape) table.Op {
	n := r.names
	line, fence := table.Attr(n.Line), table.Attr(n.Fence)
	cond := table.And(table.Attr(n.Type).Equal(Type), fence.Exists()) // permits have none, nor has one with other names of attributes
	if s.free {
		cond = table.And(cond, line.At(0).NotExists())
	} else {
		cond = table.And(cond, n.room())
	}
	if s.run == BeginRun {
		cond = table.And(cond, below(n.Ran, argRun))
	}
	if !s.exists {
		cond = table.Or(table.Attr(n.PK).NotExists(), cond)
	}
	changes := []table.Change{
		table.Attr(n.Type).Set(Type),
		line.Set(line.OrElse(list()).Append(param(argList))),
		fence.Set(fence.OrElse(param(argSeed))),
		table.Attr(n.TTL).Set(param(argTTL)),
	}
	changes = append(changes, s.dataChanges(n)...)
	changes = append(changes, s.runChanges(n)...)
	return table.Update(keys.Key{}, append(changes, r.listing()...)...).If(cond)
}

// room holds where the line has room for the ticket, and not the ticket. Without a line there is no element, and a row without the
// attribute contains nothing.
func (n Names) room() table.Cond {
	line := table.Attr(n.Line)
	return table.And(line.At(Cap-1).NotExists(), table.Not(line.Contains(param(argTicket))))
}

func (r *Rows) enteringPermits(s shape) table.Op {
	n := r.names
	line, stays, next, permits := table.Attr(n.Line), table.Attr(n.Stays), table.Attr(n.Next), table.Attr(n.Permits)
	cond := table.Attr(n.PK).NotExists()
	changes := []table.Change{
		table.Attr(n.Type).Set(Type), table.Attr(n.TTL).Set(param(argTTL)), permits.Set(param(argPermits)),
	}
	if s.new {
		changes = append(changes, line.Set(param(argList)), stays.Set(param(argSeed)), next.Set(param(argNext)))
	} else {
		cond = table.And(table.Attr(n.Type).Equal(Type), permits.Equal(param(argPermits)),
			line.Size().Equal(stays.Size()), n.room()) // of another size the row is not in order, and the ticket would get the stay of another
		if s.free {
			cond = table.And(cond, line.Size().Less(param(argPermits)))
		}
		changes = append(changes, line.Set(line.Append(param(argList))), stays.Set(stays.Append(next)), next.At(0).Set(next.At(0).Plus(1)))
	}
	return table.Update(keys.Key{}, append(changes, r.listing()...)...).If(cond)
}

func list(of ...types.AttributeValue) types.AttributeValue {
	return &types.AttributeValueMemberL{Value: append([]types.AttributeValue{}, of...)}
}

func (r *Rows) listing() []table.Change {
	if r.index == nil {
		return nil
	}
	listed := table.Attr(r.index.SK)
	return []table.Change{table.Attr(r.index.PK).Set(param(argShard)), listed.Set(listed.OrElse(param(argListed)))}
}

// Retract takes a ticket out of a row that turned out not to be in order when Enter had entered it: out of the line, and out
// of the index if it is alone. seen is the row. It returns false where the ticket is not there.
func (r *Rows) Retract(key keys.Key, seen table.Item, id string) (op table.Op, there bool) {
	line := table.Attr(r.names.Line)
	place, text := r.names.Find(seen, id)
	at := line.At(max(place, 0))
	op = table.Update(key, at.Remove()).If(at.Equal(text))
	if stays, ok := seen[r.names.Stays].(*types.AttributeValueMemberL); ok && place >= 0 && place < len(stays.Value) {
		stay := table.Attr(r.names.Stays).At(place)
		op = op.Changing(stay.Remove()).If(stay.Equal(stays.Value[place]))
	}
	if l, ok := seen[r.names.Line].(*types.AttributeValueMemberL); ok && len(l.Value) == 1 && r.index != nil {
		op = op.Changing(table.Attr(r.index.PK).Remove(), table.Attr(r.index.SK).Remove()).If(line.At(1).NotExists())
	}
	return op, place >= 0
}
