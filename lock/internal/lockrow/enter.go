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
	Exists bool   // refused if there is no row
	Seed   int64  // fence of a new row; greater than every fence of a row that was deleted
	TTL    int64  // epoch seconds
	Data   Data   // with IfFree only
	Run    int64  // with IfFree only: start of an interval that must not have run; 0 for none
	Shard  string // partition key in the index
	Listed string // sort key in the index, if the row is not in it yet

	// Permits is the number of permits; 0 for a lock. A row refuses every number but its own; the row of a lock has 0.
	Permits int64

	// New is for permits. If set, Enter makes the row; otherwise it changes the existing one. One update cannot do both: it increases the
	// number of the next stay, which is an element of a list, and a new row has no list.
	New bool
}

// Enter appends a ticket to the line. The answer is the row; [Row.Granted] tells whether the ticket holds. If the row in a refusal has
// the ticket, this very request was applied before.
func (r *Rows) Enter(key keys.Key, e Entry) table.Op {
	s := shapeOf("enter", Change{}, e.Data)
	s.free, s.exists, s.new = e.IfFree, e.Exists, e.New
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

// ofType is Type as one value: a request that both compares and sets it contains it once.
var ofType = &types.AttributeValueMemberS{Value: Type}

func (r *Rows) entering(s shape) table.Op {
	n := r.names
	line, fence := table.Attr(n.Line), table.Attr(n.Fence)
	cond := table.And(table.Attr(n.Type).Equal(ofType), fence.Exists()) // a row of permits, or of another prefix, has no such attribute
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
		table.Attr(n.Type).Set(ofType),
		line.Set(line.OrElse(list()).Append(param(argList))),
		fence.Set(fence.OrElse(param(argSeed))),
		table.Attr(n.TTL).Set(param(argTTL)),
	}
	changes = append(changes, s.content(n)...)
	return table.Update(keys.Key{}, append(changes, r.listing()...)...).If(cond)
}

// room is the condition that the line has room, and does not contain the ticket. It holds if the line is missing: a missing list has no
// element, and a missing attribute contains nothing.
func (n Names) room() table.Cond {
	line := table.Attr(n.Line)
	return table.And(line.At(Cap-1).NotExists(), table.Not(line.Contains(param(argTicket))))
}

func (r *Rows) enteringPermits(s shape) table.Op {
	n := r.names
	line, stays, next, permits := table.Attr(n.Line), table.Attr(n.Stays), table.Attr(n.Next), table.Attr(n.Permits)
	cond := table.Attr(n.PK).NotExists()
	changes := []table.Change{
		table.Attr(n.Type).Set(ofType), table.Attr(n.TTL).Set(param(argTTL)), permits.Set(param(argPermits)),
	}
	if s.new {
		changes = append(changes, line.Set(param(argList)), stays.Set(param(argSeed)), next.Set(param(argNext)))
	} else {
		cond = table.And(table.Attr(n.Type).Equal(ofType), permits.Equal(param(argPermits)),
			line.Size().Equal(stays.Size()), n.room()) // if the sizes differ, the row is malformed: the ticket would get another one's stay
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

// Retract removes a ticket from a malformed row, and the row from the index if the ticket is alone. Enter may have entered the ticket
// before its client saw the row. seen is the row. there is false if the ticket is not in it.
func (r *Rows) Retract(key keys.Key, seen table.Item, id string) (op table.Op, there bool) {
	n := r.names
	place, text := n.Find(seen, id)
	if place < 0 {
		return op, false
	}
	at, stay := table.Attr(n.Line).At(place), table.Attr(n.Stays).At(place)
	op = table.Update(key, at.Remove()).If(at.Equal(text))
	if stays, ok := seen[n.Stays].(*types.AttributeValueMemberL); ok && place < len(stays.Value) {
		op = op.Changing(stay.Remove()).If(stay.Equal(stays.Value[place]))
	}
	if l, ok := seen[n.Line].(*types.AttributeValueMemberL); ok && len(l.Value) == 1 && r.index != nil {
		op = op.Changing(table.Attr(r.index.PK).Remove(), table.Attr(r.index.SK).Remove()).If(table.Attr(n.Line).At(1).NotExists())
	}
	return op, true
}
