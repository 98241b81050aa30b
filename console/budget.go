package console

import (
	"context"
	"sync"
	"time"

	"github.com/mortise-go/mortise/internal/pace"
	"github.com/mortise-go/mortise/table"
)

// Budget of one kind of page, whatever it shows and however many readers have it open.
const (
	readsPerSecond = 2
	unitsPerSecond = 25 // so that a table with little capacity is not read at the cost of the application
)

// budget spreads requests over time: each waits until the ones before it have been paid for. It is safe for concurrent
// use.
type budget struct {
	usage *table.Usage // of all requests under the context

	mu   sync.Mutex
	next time.Time // when the next request may be sent
	paid float64   // read units that next covers
}

// within returns a context whose requests keep to a budget of their own.
func within(ctx context.Context) context.Context {
	ctx, usage := table.WithUsage(ctx)
	return pace.With(ctx, (&budget{usage: usage}).wait)
}

// wait waits for the turn of one request.
func (b *budget) wait(ctx context.Context) error {
	if !sleep(ctx, time.Until(b.turn())) {
		return context.Cause(ctx)
	}
	return nil
}

// turn is when the next request may be sent: half a second after the one before, and later where that one has read much.
// What a request reads is known afterwards, so the one after it waits.
func (b *budget) turn() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	units := b.usage.Totals().ReadUnits
	owed := max((units-b.paid)/unitsPerSecond-1.0/readsPerSecond, 0) // a request's own time is paid for already
	b.paid = units
	at := b.next.Add(time.Duration(owed * float64(time.Second)))
	if now := time.Now(); at.Before(now) {
		at = now
	}
	b.next = at.Add(time.Second / readsPerSecond)
	return at
}
