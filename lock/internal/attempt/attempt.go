// Package attempt repeats requests of package lock, one at a time, with the table's backoff. It keeps track of what requests without an
// answer may have done.
//
// A write whose answer was lost may have been applied. Then its repetition fails by its own effect. So its sender must know about every
// attempt: for requests that go through here, the repetitions of the table and of the SDK are switched off.
package attempt

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v4"
	"golang.org/x/sync/errgroup"

	"github.com/mortise-go/mortise/internal/errs"
	"github.com/mortise-go/mortise/lock/internal/clock"
	"github.com/mortise-go/mortise/table"
)

// MaxTimeout bounds a single request, so that a request that hangs leaves time for others.
const MaxTimeout = 3 * time.Second

// Timeout returns the bound of a single request under a lease of the given length.
func Timeout(lease time.Duration) time.Duration { return min(lease/3, MaxTimeout) }

// atOnce is how many requests Each sends at a time: enough to hide latency, and few enough not to be throttled.
const atOnce = 16

// OthersFirst returns the list, but begins with other elements each time. It is for a list that is given to Each again and again: elements
// that fail do not keep the others from their turn. tried counts over the calls.
func OthersFirst[T any](list []T, tried *int) []T {
	if len(list) == 0 {
		return list
	}
	k := *tried % len(list)
	*tried += atOnce
	return slices.Concat(list[k:], list[:k])
}

// Each calls f for the elements of a list, a few at a time. An error does not stop the others. All errors are joined.
func Each[T any](list []T, f func(T) error) error {
	if len(list) == 1 {
		return f(list[0])
	}
	failed := make([]error, len(list))
	var all errgroup.Group
	all.SetLimit(atOnce)
	for i, e := range list {
		all.Go(func() error {
			failed[i] = f(e)
			return nil
		})
	}
	_ = all.Wait()
	return errs.Join(failed...)
}

// ErrAgain makes Do call f again at once, if f returns it.
var ErrAgain = errors.New("again")

// Repeater repeats requests to one table.
type Repeater struct {
	Clock    clock.Clock
	Table    *table.Table
	Repeated atomic.Int64 // requests that were sent again after a backoff
}

// Do calls f until it succeeds, fails for good, or ctx or the table's retry policy ends. Each call has a context with the given timeout.
// inDoubt means that an attempt may have been applied, or may still be, without an answer that shows it.
func (r *Repeater) Do(ctx context.Context, timeout time.Duration, f func(ctx context.Context) error) (inDoubt bool, err error) {
	if ctx.Err() != nil {
		return false, clock.Cause(ctx)
	}
	var wait backoff.BackOff // made when it is first needed, which is rarely
	for {
		bounded, cancel := r.Clock.WithTimeout(ctx, timeout)
		err = f(table.WithoutRetry(bounded))
		timedOut := bounded.Err() != nil && errors.Is(err, context.DeadlineExceeded)
		cancel()
		if err == nil {
			return inDoubt, nil
		}
		inDoubt = inDoubt || unanswered(err)
		switch {
		case ctx.Err() != nil:
			return inDoubt, WithCause(ctx, err)
		case errors.Is(err, ErrAgain):
			continue
		case !timedOut && !r.Table.Retryable(err):
			return inDoubt, err
		}
		if wait == nil {
			wait = r.Table.Backoff()
		}
		d := wait.NextBackOff()
		if d == backoff.Stop {
			return inDoubt, err
		}
		if r.Clock.Sleep(ctx, d) != nil {
			return inDoubt, WithCause(ctx, err)
		}
		r.Repeated.Add(1)
	}
}

// unanswered reports whether the request that failed with err may have been applied all the same. It is false for an error that f has
// concluded from an answer.
func unanswered(err error) bool {
	var request *table.Error
	return errors.As(err, &request) && table.RequestMayBeApplied(err)
}

// WithCause adds to the error of a request why its context ended, if it did.
func WithCause(ctx context.Context, err error) error {
	switch {
	case ctx.Err() == nil:
		return err
	case !errors.Is(err, context.Cause(ctx)):
		return fmt.Errorf("%w; last attempt: %w", clock.Cause(ctx), err)
	case !errors.Is(err, ctx.Err()):
		return fmt.Errorf("%w: %w", err, ctx.Err())
	}
	return err
}
