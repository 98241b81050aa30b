package table

import (
	"context"
	"slices"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mortise-go/mortise/internal/nilctx"
)

// Totals is the cost of requests. DynamoDB reports no units for requests that it refuses, so the cost of a failed
// condition is not included.
type Totals struct {
	Requests   int64   // requests sent, including repeated and refused ones
	Retries    int64   // those that repeated an earlier one
	ReadUnits  float64 // as DynamoDB reports them
	WriteUnits float64
}

func (t *Totals) add(o Totals) {
	t.Requests += o.Requests
	t.Retries += o.Retries
	t.ReadUnits += o.ReadUnits
	t.WriteUnits += o.WriteUnits
}

// Usage sums the cost of requests: those under a context ([WithUsage]), or those through a table ([Table.Metered]). It is
// safe for concurrent use.
type Usage struct {
	mu     sync.Mutex
	totals Totals
}

// Totals returns the cost so far.
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

// WithUsage returns a context, and a Usage that counts every request under it, of any Table. Usages of its parent
// contexts count them too.
func WithUsage(ctx context.Context) (context.Context, *Usage) {
	ctx = nilctx.Checked(ctx, ErrInvalid)
	u := &usageNode{above: usageFrom(ctx)}
	return context.WithValue(ctx, usageKey{}, u), &u.Usage
}

type usageNode struct {
	Usage
	above *usageNode // of the nearest parent context that has a Usage
}

func usageFrom(ctx context.Context) *usageNode {
	u, _ := ctx.Value(usageKey{}).(*usageNode)
	return u
}

// capacity asks DynamoDB for the units that a request consumes, but only if a Usage counts them: the answer takes DynamoDB time.
func (t *Table) capacity(ctx context.Context) types.ReturnConsumedCapacity {
	if len(t.meters) == 0 && usageFrom(nilctx.Checked(ctx, ErrInvalid)) == nil {
		return ""
	}
	return types.ReturnConsumedCapacityTotal
}

// count adds cost to every Usage of the table (Metered), and to those of ctx and its parents (WithUsage).
func (t *Table) count(ctx context.Context, cost Totals) {
	for _, u := range t.meters {
		u.add(cost)
	}
	for u := usageFrom(ctx); u != nil; u = u.above {
		u.add(cost)
	}
}

// Metered returns a view of the table. u also counts the requests that are made through the view. Use it in a program, or a
// part of it, that counts its own requests under any context.
func (t *Table) Metered(u *Usage) *Table {
	view := *t
	view.meters = append(slices.Clone(t.meters), u)
	return &view
}

// units splits consumed capacity into reads and writes. DynamoDB itself splits it only for transactions. For other operations, write
// says which of the two it is.
func units(write bool, capacities ...types.ConsumedCapacity) (cost Totals) {
	for i := range capacities {
		c := &capacities[i]
		switch {
		case c.ReadCapacityUnits != nil || c.WriteCapacityUnits != nil:
			cost.ReadUnits += aws.ToFloat64(c.ReadCapacityUnits)
			cost.WriteUnits += aws.ToFloat64(c.WriteCapacityUnits)
		case write:
			cost.WriteUnits += aws.ToFloat64(c.CapacityUnits)
		default:
			cost.ReadUnits += aws.ToFloat64(c.CapacityUnits)
		}
	}
	return cost
}
