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

// Rows makes the operations on the lock rows of one table. Their expressions are written once, when
// they are first needed. It is safe for concurrent use.
type Rows struct {
	names   Names
	index   *Index
	known   sync.Map // shape to the operation of it, with parameters for what differs between requests
	prepare func(table.Op) (inside.Prepared[table.Op], error)
}

// Index is a sparse index of the locks that are held or awaited.
type Index struct {
	PK, SK string // its key attributes
}

// NewRows makes the operations for rows with the given attribute names. index is nil for none.
func NewRows(n Names, index *Index, t *table.Table) *Rows {
	return &Rows{names: n, index: index, prepare: t.Inside(inside.Key{}).Prepare}
}

// shape tells operations apart that are written differently. Fields that an operation does not know
// are zero.
type shape struct {
	op      string
	free    bool // Enter: only if the line is empty, or a permit is free
	exists  bool // Enter: only if there is a row
	new     bool // Enter: only if there is none
	kind    Kind // how the ticket holds
	exit    Exit
	next    int  // of a reader that leaves as the first: the place of the one that is first afterwards
	removed int  // how many tickets leave the line. It counts where there is an index
	waiting bool // it leaves a place at which it does not hold, or others hold as well
	ousts   bool // others remove a reader
	hold    bool // Change.Hold is written
	commit  bool // Change.Commit is a number
	data    bool // the payload is written
	null    bool // and is none
	run     RunChange
}

// RunChange is what an update records of the run of an interval.
type RunChange uint8

// What an update records of a run.
const (
	NoRun     RunChange = iota // nothing
	BeginRun                   // it has begun
	FinishRun                  // it has finished
	FailRun                    // it has failed for good
	DropRun                    // it has failed, and is begun again
)

// Arguments of the operations. Each has a number of its own, so that no two are confused.
const (
	argID     = iota // what the first ticket's text begins with
	argFence         // under which that ticket is first
	argNext          // the fence after that
	argTicket        // text of a ticket
	argList          // of that text
	argSince
	argHold
	argTTL
	argData
	argCount // number of a write, of a commit or of an edit
	argRun   // start of an interval
	argSeed
	argShard
	argListed
	argReason
	argPermits
	arguments // their number
)

// param stands for an argument in an expression.
func param(i int) table.Operand { return table.Value(inside.Param(i)) }

// op is the operation of a shape on one row. write is called when the shape is first needed.
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

// Data is what an update does with the payload: nothing, unless Given. A nil Value removes it.
type Data struct {
	Given bool
	Value types.AttributeValue
}

func (s shape) dataChanges(n Names) []table.Change {
	switch {
	case !s.data:
		return nil
	case s.null:
		return []table.Change{table.Attr(n.Data).Remove()}
	}
	return []table.Change{table.Attr(n.Data).Set(param(argData))}
}

func (s shape) runChanges(n Names) []table.Change {
	running := table.Attr(n.Running)
	switch s.run {
	case BeginRun:
		return []table.Change{running.Set(param(argRun))}
	case FinishRun:
		return []table.Change{table.Attr(n.Ran).Set(param(argRun)), running.Remove()}
	case FailRun:
		ran := param(argRun)
		return []table.Change{table.Attr(n.Ran).Set(ran), table.Attr(n.Failed).Set(ran), running.Remove()}
	case DropRun:
		return []table.Change{running.Remove()}
	}
	return nil
}

// below holds where a number of the row is missing, or less than an argument: the operation comes after it.
func below(attr string, arg int) table.Cond {
	return table.Or(table.Attr(attr).NotExists(), table.Attr(attr).Less(param(arg)))
}

// inOrder holds unless a write was applied that comes after the commit.
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

// num is an argument that is never small: as an any, an int64 would be copied to the heap.
func num(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}

// isFirst holds while the ticket is first, under its fence.
func isFirst(n Names) table.Cond {
	return table.And(table.Attr(n.Line).At(0).HasPrefix(param(argID)), table.Attr(n.Fence).Equal(param(argFence)))
}

// holds holds while a ticket of a kind does. A reader that is in the line, under its fence, holds: the fence changes with each
// writer that comes or goes. A permit is held while its stay is in the line, since places only become smaller.
func (k Kind) holds(n Names) table.Cond {
	switch k {
	case Shared:
		return table.And(table.Attr(n.Line).Contains(param(argTicket)), table.Attr(n.Fence).Equal(param(argFence)))
	case Permit:
		return table.And(table.Attr(n.Line).Contains(param(argTicket)), table.Attr(n.Stays).Contains(param(argFence)))
	}
	return isFirst(n)
}
