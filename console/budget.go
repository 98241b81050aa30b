package console

import (
	"context"
	"time"

	"github.com/mortise-go/mortise/internal/pace"
	"github.com/mortise-go/mortise/table"
)

// Budget of one kind of page, no matter what it shows and how many readers have it open.
const (
	readsPerSecond = 2
	unitsPerSecond = 25 // leaves capacity to the application, even if the table has little
)

// budget spreads requests over time: each waits until the rates allow for all requests before it. It is safe for concurrent
// use.
type budget struct {
	usage *table.Usage  // of all requests under the context
	turn  chan struct{} // has an element while a request has its turn: it alone uses what follows. Others wait in their order

	next time.Time // when the next request may be sent
	paid float64   // read units of the requests that next takes into account
}

// within returns a context with a new budget, which all requests under the context share.
func within(ctx context.Context) context.Context {
	ctx, usage := table.WithUsage(ctx)
	return pace.With(ctx, (&budget{usage: usage, turn: make(chan struct{}, 1)}).wait)
}

// wait waits for the turn of one request, and until it may be sent: half a second after the one before, and later if that one has read more
// than 12.5 units. What a request reads is known only afterwards, so the next request has to wait for it. A request whose ctx ends meanwhile
// takes nothing from the budget.
func (b *budget) wait(ctx context.Context) error {
	select {
	case b.turn <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-b.turn }()
	units := b.usage.Totals().ReadUnits
	owed := max((units-b.paid)/unitsPerSecond-1.0/readsPerSecond, 0) // next already includes half a second for each request
	at := b.next.Add(time.Duration(owed * float64(time.Second)))
	if now := time.Now(); at.Before(now) {
		at = now
	}
	if !sleep(ctx, time.Until(at)) || ctx.Err() != nil { // ctx can end at the moment at which the time is up
		return context.Cause(ctx)
	}
	b.paid, b.next = units, at.Add(time.Second/readsPerSecond)
	return nil
}
