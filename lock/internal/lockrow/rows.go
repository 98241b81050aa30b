package lockrow

import (
	"fmt"
	"strconv"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mortise-go/mortise/internal/inside"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
)

// Rows makes the operations on the lock rows of one table. It builds each expression once, when it is first needed. It is safe for
// concurrent use.
type Rows struct {
	names   Names
	index   *Index
	known   sync.Map // shape to its prepared operation, which has parameters for what differs between requests
	prepare func(table.Op) (inside.Prepared[table.Op], error)
}

// Index names the keys of a sparse index: it contains only the locks that somebody holds or waits for.
type Index struct {
	PK, SK string
}

// NewRows returns the operations for rows with the given attribute names. index is nil if there is no index.
func NewRows(n Names, index *Index, t *table.Table) *Rows {
	return &Rows{names: n, index: index, prepare: t.Inside(inside.Key{}).Prepare}
}

// shape identifies the expressions of an operation: operations of one shape differ only in their values. Fields that an operation does
// not use are zero.
type shape struct {
	op      string
	free    bool // Enter: refused unless the line is empty, or a permit is free
	exists  bool // Enter: refused if there is no row
	new     bool // Enter: refused if there is a row
	kind    Kind // how the ticket holds
	exit    Exit
	next    int  // the present place of the ticket that is first afterwards; matters only if a reader leaves the first place
	removed int  // how many tickets leave the line
	ousts   bool // others remove a reader
	hold    bool // Change.Hold is written
	commit  bool // Change.Commit is not 0
	data    bool // the payload is written
	null    bool // the payload is removed
	run     RunChange
}

// RunChange is what an update records about the run of an interval.
type RunChange uint8

// Values of RunChange.
const (
	NoRun     RunChange = iota // nothing
	BeginRun                   // it has begun
	FinishRun                  // it has finished
	FailRun                    // it has failed for good
	DropRun                    // it has failed, and will begin again
)

// Arguments of the operations, by their index. Each has an index of its own, so that no two are confused.
const (
	argID     = iota // beginning of the text of the ticket that leaves, holds or is replaced
	argFence         // fence under which that ticket holds; of a permit, the number of its stay
	argNext          // the fence after that
	argTicket        // text of a ticket
	argList          // a list of that text
	argSince
	argHold
	argTTL
	argData
	argCount // number of a write, a commit or an edit
	argRun   // start of an interval
	argSeed
	argShard
	argListed
	argReason
	argPermits
	arguments // how many there are
)

// param is the placeholder of an argument in an expression.
func param(i int) table.Operand { return table.Value(inside.Param(i)) }

// op returns the operation of a shape on one row. It calls write, which builds the operation, when the shape is first needed.
func (r *Rows) op(s shape, key keys.Key, args []any, write func() table.Op) table.Op {
	known, ok := r.known.Load(s)
	if !ok {
		prepared, err := r.prepare(write())
		if err != nil {
			return table.Invalid(fmt.Errorf("%s: %w", s.op, err))
		}
		known, _ = r.known.LoadOrStore(s, prepared)
	}
	return known.(inside.Prepared[table.Op])(key, args...)
}

// Data is what an update does with the payload. Unless Given is set, the payload stays. A nil Value removes the payload.
type Data struct {
	Given bool
	Value types.AttributeValue
}

// content returns the changes of the payload, and of what the row has about the run of an interval.
func (s shape) content(n Names) (changes []table.Change) {
	data, running, ran := table.Attr(n.Data), table.Attr(n.Running), table.Attr(n.Ran).Set(param(argRun))
	switch {
	case s.data && s.null:
		changes = append(changes, data.Remove())
	case s.data:
		changes = append(changes, data.Set(param(argData)))
	}
	switch s.run {
	case BeginRun:
		return append(changes, running.Set(param(argRun)))
	case FinishRun:
		return append(changes, ran, running.Remove())
	case FailRun:
		return append(changes, ran, table.Attr(n.Failed).Set(param(argRun)), running.Remove())
	case DropRun:
		return append(changes, running.Remove())
	}
	return changes
}

// below is the condition that a number of the row is missing or less than an argument, so that the operation is the latest one.
func below(attr string, arg int) table.Cond {
	return table.Or(table.Attr(attr).NotExists(), table.Attr(attr).Less(param(arg)))
}

// inOrder is the condition that no later write than the commit was applied. It is empty for a release.
func (s shape) inOrder(n Names) (cond table.Cond) {
	if s.commit {
		cond = below(n.Writes, argCount)
	}
	return cond
}

func (h Holding) args() []any {
	args := make([]any, arguments)
	args[argID] = &types.AttributeValueMemberS{Value: prefix(h.ID)}
	if args[argFence], args[argNext] = num(h.Fence), num(h.Fence+1); h.Kind != Exclusive {
		args[argTicket] = &types.AttributeValueMemberS{Value: h.Text}
	}
	return args
}

// num encodes a number that is never small: as an int64 in an any, it would be copied to the heap (a small one would not).
func num(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}

// isFirst is the condition that the ticket is first, under its fence.
func isFirst(n Names) table.Cond {
	return table.And(table.Attr(n.Line).At(0).HasPrefix(param(argID)), table.Attr(n.Fence).Equal(param(argFence)))
}

// holds is the condition that a ticket of this kind holds. A reader holds while it is in the line under its fence: the fence increases
// when a writer comes to hold or leaves. A permit holds until its stay leaves the line: places only become smaller.
func (k Kind) holds(n Names) table.Cond {
	switch k {
	case Shared:
		return table.And(table.Attr(n.Line).Contains(param(argTicket)), table.Attr(n.Fence).Equal(param(argFence)))
	case Permit:
		return table.And(table.Attr(n.Line).Contains(param(argTicket)), table.Attr(n.Stays).Contains(param(argFence)))
	}
	return isFirst(n)
}
