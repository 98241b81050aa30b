package table

import (
	"context"
	"slices"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mortise-go/mortise/internal/nilctx"
)

// Totals says what requests cost. DynamoDB reports no units for requests that it refuses, so
// what a failed condition costs is not in the sums.
type Totals struct {
	Requests   int64   // sent, repeated and refused ones included
	Retries    int64   // of them, how many repeated an earlier one
	ReadUnits  float64 // consumed, as DynamoDB reports them
	WriteUnits float64
}

func (t *Totals) add(o Totals) {
	t.Requests += o.Requests
	t.Retries += o.Retries
	t.ReadUnits += o.ReadUnits
	t.WriteUnits += o.WriteUnits
}

// Usage collects what requests cost: those made under a context (WithUsage), or through a Table (Metered). It is
// safe for concurrent use.
type Usage struct {
	mu     sync.Mutex
	totals Totals
}

// Totals returns what has been collected so far.
func (u *Usage) Totals() Totals {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.totals
}

func (u *Usage) add(t Totals) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.totals.add(t)
}

type usageKey struct{}

// WithUsage returns a context under which every request of any Table is counted in the
// returned Usage too, and in those of the contexts above it.
func WithUsage(ctx context.Context) (context.Context, *Usage) {
	ctx = nilctx.Checked(ctx, ErrInvalid)
	u := &usageNode{above: usageFrom(ctx)}
	return context.WithValue(ctx, usageKey{}, u), &u.Usage
}

type usageNode struct {
	Usage
	above *usageNode
}

func usageFrom(ctx context.Context) *usageNode {
	u, _ := ctx.Value(usageKey{}).(*usageNode)
	return u
}

// capacity asks DynamoDB for the units that a request consumes, if they are counted. The answer is not free.
func (t *Table) capacity(ctx context.Context) types.ReturnConsumedCapacity {
	if len(t.meters) == 0 && usageFrom(nilctx.Checked(ctx, ErrInvalid)) == nil {
		return ""
	}
	return types.ReturnConsumedCapacityTotal
}

// count books one request, and the capacity that it consumed, wherever somebody asked.
func (t *Table) count(ctx context.Context, cost Totals) {
	for _, u := range t.meters {
		u.add(cost)
	}
	for u := usageFrom(ctx); u != nil; u = u.above {
		u.add(cost)
	}
}

// Metered is the same table, whose requests are counted in u too, whatever contexts it is called with: for a
// program that wants to know what it sends, or for a part of it.
func (t *Table) Metered(u *Usage) *Table {
	view := *t
	view.meters = append(slices.Clone(t.meters), u)
	return &view
}

// units splits consumed capacity into reads and writes: DynamoDB splits it itself for
// transactions only, elsewhere the operation tells.
func units(write bool, capacities ...types.ConsumedCapacity) (cost Totals) {
	for i := range capacities {
		c := &capacities[i]
		switch {
		case c.ReadCapacityUnits != nil || c.WriteCapacityUnits != nil:
			cost.ReadUnits += deref(c.ReadCapacityUnits)
			cost.WriteUnits += deref(c.WriteCapacityUnits)
		case write:
			cost.WriteUnits += deref(c.CapacityUnits)
		default:
			cost.ReadUnits += deref(c.CapacityUnits)
		}
	}
	return cost
}
