// Package lambda is a function for AWS Lambda that charges orders. Its main would be
//
//	cfg, err := config.LoadDefaultConfig(ctx)
//	f, err := lambda.New(dynamodb.NewFromConfig(cfg), "app", charge)
//	awslambda.Start(f.Handle) // github.com/aws/aws-lambda-go/lambda
//
// Events come at least once, and two of them may come at the same time. The lock beside the order lets one invocation work on
// it, and the guarded write records the result once. A lease of its own length (lock.Fixed) suits a function: it needs no
// session and no renewal, so a frozen sandbox leaves nothing behind. Lock and result take two requests in all.
package lambda

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mortise-go/mortise/entity"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
)

// Order is the row that the function changes.
type Order struct {
	ID      string `dynamo:"id"`
	Cents   int64  `dynamo:"cents"`
	Receipt string `dynamo:"receipt,omitempty"` // empty until it is charged
	Version int64  `dynamo:"version"`
}

// Event asks to charge an order.
type Event struct {
	Order string `json:"order"`
}

// Answer is what the function returns.
type Answer struct {
	Receipt string `json:"receipt"`
}

// Charge takes the money and returns a receipt. DynamoDB does not guard it, so it has to recognise an order that it has charged
// already, and should refuse a fence that is lower than one that it has seen.
type Charge func(ctx context.Context, o Order, fence int64) (receipt string, err error)

// Function is one instance of the function: what a cold start makes, and all invocations use.
type Function struct {
	Orders *entity.Entity[Order]
	locks  *lock.Client
	charge Charge
}

// New is the cold start. It sends nothing: the table exists.
func New(client table.Client, name string, charge Charge) (*Function, error) {
	tbl, err := table.Open(client, table.Schema{Name: name, MustExist: true})
	if err != nil {
		return nil, err
	}
	orders, err := entity.Define(tbl, entity.Spec[Order]{Type: "Order", PK: "ORDER#{id}", SK: "ORDER", Version: "version"})
	if err != nil {
		return nil, err
	}
	locks, err := lock.New(tbl, lock.Config{Owner: "charge"})
	return &Function{Orders: orders, locks: locks, charge: charge}, err
}

// Handle is called for each event. After an error Lambda delivers the event again.
func (f *Function) Handle(ctx context.Context, event Event) (_ Answer, err error) {
	order := Order{ID: event.Order}
	// A function does not wait for a lock: its time costs money. The event comes again.
	lease, err := f.locks.TryAcquire(ctx, lock.Beside(f.Orders.Key(order)), lock.Fixed(remaining(ctx)))
	if err != nil {
		return Answer{}, fmt.Errorf("charge: %w", err)
	}
	// After Commit this sends nothing. In all other cases it releases the lock, also if the time is over.
	defer func() {
		if released := lease.Release(context.WithoutCancel(ctx)); !errors.Is(released, lock.ErrLost) {
			err = errors.Join(err, released)
		}
	}()

	order, err = f.Orders.Get(ctx, order, entity.Consistent())
	if err != nil || order.Receipt != "" { // charged by an earlier delivery
		return Answer{order.Receipt}, err
	}
	receipt, err := f.charge(ctx, order, lease.Fence())
	if err != nil {
		return Answer{}, fmt.Errorf("charge: %w", err)
	}
	// Commits only while the lock is held, and releases it.
	if err := lease.Commit(ctx, f.Orders.UpdateOp(order, entity.Set("receipt", receipt))); err != nil {
		return Answer{}, fmt.Errorf("charge: %w", err)
	}
	return Answer{receipt}, nil
}

// remaining is how long this invocation can run: Lambda sets the deadline. A lease of that length ends with the invocation, also if
// Lambda stops it.
func remaining(ctx context.Context) time.Duration {
	if deadline, ok := ctx.Deadline(); ok {
		return time.Until(deadline)
	}
	return 15 * time.Minute // the longest that Lambda allows
}
