package lockrow

import (
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
)

// Entry is what Enter writes.
type Entry struct {
	Ticket Ticket
	IfFree bool   // refused unless the line is empty
	Exists bool   // refused unless there is a row
	Seed   int64  // the fence of a new row: greater than every fence of a row that was deleted
	TTL    int64  // epoch seconds
	Data   Data   // with IfFree only
	Run    int64  // with IfFree only: start of an interval that must not have run; 0 for none
	Shard  string // partition key in the index
	Listed string // sort key in the index, of a row that is not in it
}

// Enter appends a ticket to the line. The answer is the row: a ticket that is first holds the lock,
// under the row's fence. A refusal with the ticket in the row is its own effect.
func (r *Rows) Enter(key keys.Key, e Entry) table.Op {
	s := shape{op: "enter", free: e.IfFree, exists: e.Exists, data: e.Data.change()}
	if e.Run != 0 {
		s.run = beginRun
	}
	ticket := &types.AttributeValueMemberS{Value: e.Ticket.String()}
	args := make([]any, arguments)
	args[argTicket], args[argList] = ticket, &types.AttributeValueMemberL{Value: []types.AttributeValue{ticket}}
	args[argTTL], args[argData], args[argRun], args[argSeed] = num(e.TTL), e.Data.Value, e.Run, num(e.Seed)
	args[argShard], args[argListed] = e.Shard, e.Listed
	return r.op(s, key, args, func() table.Op { return r.entering(s) })
}

func (r *Rows) entering(s shape) table.Op {
	n := r.names
	line, fence := table.Attr(n.Line), table.Attr(n.Fence)
	cond := table.And(table.Attr(n.Type).Equal(Type), fence.Exists()) // one with other names of attributes has none
	if s.free {
		cond = table.And(cond, line.At(0).NotExists())
	} else {
		// Without a line there is no element, and a row without the attribute contains nothing.
		cond = table.And(cond, line.At(Cap-1).NotExists(), table.Not(line.Contains(table.Param(argTicket))))
	}
	if s.run == beginRun {
		cond = table.And(cond, notRun(n))
	}
	if !s.exists {
		cond = table.Or(table.Attr(n.PK).NotExists(), cond)
	}
	empty := &types.AttributeValueMemberL{Value: []types.AttributeValue{}}
	changes := []table.Change{
		table.Attr(n.Type).Set(Type),
		line.Set(line.OrElse(empty).Append(table.Param(argList))),
		fence.Set(fence.OrElse(table.Param(argSeed))),
		table.Attr(n.TTL).Set(table.Param(argTTL)),
	}
	changes = append(changes, s.dataChanges(n)...)
	changes = append(changes, s.runChanges(n)...)
	if r.index != nil {
		listed := table.Attr(r.index.SK)
		changes = append(changes, table.Attr(r.index.PK).Set(table.Param(argShard)), listed.Set(listed.OrElse(table.Param(argListed))))
	}
	return table.Update(keys.Key{}, changes...).If(cond)
}

// Position is a ticket, and how many stand before it.
type Position struct {
	Place int
	ID    string
}

// Leave removes a ticket that is not first. One that is first is released instead, under its fence.
func (r *Rows) Leave(key keys.Key, p Position) table.Op {
	if p.Place < 1 {
		return table.Invalid(fmt.Errorf("%w: leave place %d", table.ErrInvalid, p.Place))
	}
	at := table.Attr(r.names.Line).At(p.Place)
	return table.Update(key, at.Remove()).If(at.HasPrefix(prefix(p.ID)))
}

// Retract takes a ticket out of a row that turned out not to be in order when Enter had entered it. text is
// the element of the line. Nothing was granted by it, so nothing but the line changes.
func (r *Rows) Retract(key keys.Key, place int, text string) table.Op {
	at := table.Attr(r.names.Line).At(place)
	return table.Update(key, at.Remove()).If(at.Equal(text))
}
