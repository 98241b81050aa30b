package table

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/cenkalti/backoff/v4"

	"github.com/mortise-go/mortise/internal/machine"
	"github.com/mortise-go/mortise/internal/nilctx"
)

// Retry is the one policy by which a Table repeats requests. The SDK's own retries are
// switched off for them: two nested policies multiply, and a write that may have been
// applied has to be judged by somebody who knows how often it was sent.
type Retry struct {
	// Backoff makes the waiting times of one call. It is a function because instances
	// are not safe for concurrent use. Defaults to an exponential backoff from 25 ms to
	// 1 s, jittered by half, that gives up after 10 s.
	Backoff func() backoff.BackOff

	// Retryable reports whether a request that failed with err is worth sending again.
	// Defaults to Retryable.
	Retryable func(err error) bool

	// Timeout bounds each single request, so that one that hangs is repeated like one
	// without an answer; calls whose context ends sooner, or that are sent once
	// (WithoutRetry), are left alone. A negative one means none. Defaults to 5 s.
	Timeout time.Duration

	machine machine.Machine
}

func (r Retry) withDefaults(m machine.Machine) Retry {
	r.machine = m
	if r.Backoff == nil {
		r.Backoff = func() backoff.BackOff { return defaultBackoff(m) }
	}
	if r.Retryable == nil {
		r.Retryable = Retryable
	}
	if r.Timeout == 0 {
		r.Timeout = 5 * time.Second
	}
	return r
}

// bounded sends one request within the policy's timeout.
func (r Retry) bounded(ctx context.Context, request func(context.Context) (answer, error)) (answer, error) {
	deadline, ok := ctx.Deadline()
	if r.Timeout < 0 || ok && time.Until(deadline) <= r.Timeout || ctx.Value(onceKey{}) != nil {
		return request(ctx)
	}
	inner, cancel := r.machine.WithTimeout(ctx, r.Timeout)
	defer cancel()
	ans, err := request(inner)
	if err != nil && errors.Is(inner.Err(), context.DeadlineExceeded) && ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		err = &timeoutError{after: r.Timeout}
	}
	return ans, err
}

// timeoutError stands for a request that hung. It hides context.DeadlineExceeded, which
// would say that the caller's own context has ended.
type timeoutError struct{ after time.Duration }

func (e *timeoutError) Error() string {
	return fmt.Sprintf("%v: no answer within %v", ErrUnreachable, e.after)
}

func (e *timeoutError) Unwrap() error { return ErrUnreachable }

func defaultBackoff(m machine.Machine) backoff.BackOff {
	return machine.Backoff(m,
		backoff.WithInitialInterval(25*time.Millisecond),
		backoff.WithMaxInterval(time.Second),
		backoff.WithMaxElapsedTime(10*time.Second),
	)
}

// Retryable returns the default classification: throttling, also of what a batch has left
// undone, internal errors, lost connections and transaction conflicts are worth another
// try. A failed condition is a result, not an error to retry.
func Retryable(err error) bool {
	if errors.Is(err, context.Canceled) || isIdentityError(err) {
		return false
	}
	var hung *timeoutError
	if errors.As(err, &hung) {
		return true
	}
	var undone *UnprocessedError
	if errors.As(err, &undone) && errors.Is(undone.Err, ErrThrottled) {
		return true
	}
	kind := kindOf(err)
	if errors.Is(kind, ErrConflict) || errors.Is(kind, ErrThrottled) {
		return true
	}
	var canceled *types.TransactionCanceledException
	if errors.As(err, &canceled) {
		return false
	}
	for _, check := range retry.DefaultRetryables {
		if verdict := check.IsErrorRetryable(err); verdict != aws.UnknownTernary {
			return verdict.Bool()
		}
	}
	return false
}

// finalError is not repeated, whatever its causes look like.
type finalError struct{ error }

func (e *finalError) Unwrap() error { return e.error }

// repeats reports whether the policy sends a request again after err.
func (r Retry) repeats(err error) bool {
	var final *finalError
	return !errors.As(err, &final) && r.Retryable(err)
}

type onceKey struct{}

// WithoutRetry returns a context under which requests are sent once, for callers that have
// to know about every attempt. Of a batch, what DynamoDB leaves undone is sent again for as
// long as that becomes less.
func WithoutRetry(ctx context.Context) context.Context {
	return context.WithValue(nilctx.Checked(ctx, ErrInvalid), onceKey{}, true)
}

// do runs attempt until it succeeds, fails for good, or the policy or ctx ends. The
// returned error is the last attempt's; ctx's is joined when it was ctx that ended it.
func (r Retry) do(ctx context.Context, again func(), attempt func() error) error {
	if ctx.Err() != nil { // backoff would run the attempt once
		return ended(ctx)
	}
	last := attempt()
	if last == nil || ctx.Err() != nil || ctx.Value(onceKey{}) != nil || !r.repeats(last) {
		return withCause(ctx, last)
	}
	first := true
	err := backoff.RetryNotifyWithTimer(func() error {
		if !first {
			again()
			last = attempt()
		}
		first = false
		if last != nil && (ctx.Err() != nil || !r.repeats(last)) {
			return backoff.Permanent(last)
		}
		return last
	}, backoff.WithContext(r.backoff(), ctx), nil, &machine.Waits{Machine: r.machine})
	if err == nil {
		return nil
	}
	return withCause(ctx, last) // backoff drops the last error when ctx ends
}

// ended returns why a context ended: its error and, where that is another one, its cause.
func ended(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if errors.Is(cause, err) || errors.Is(err, cause) {
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}

// withCause keeps both visible: why the context ended, and what the last attempt met.
func withCause(ctx context.Context, err error) error {
	if err == nil || ctx.Err() == nil || errors.Is(err, ctx.Err()) && errors.Is(err, context.Cause(ctx)) {
		return err
	}
	return fmt.Errorf("%w; last attempt: %w", ended(ctx), err)
}

// backoff takes a function that returns nil for one that never waits.
func (r Retry) backoff() backoff.BackOff {
	if b := r.Backoff(); b != nil {
		return b
	}
	return &backoff.StopBackOff{}
}

// Backoff makes the waiting times of one operation, by the table's retry policy, for
// packages that repeat more than a request.
func (t *Table) Backoff() backoff.BackOff { return t.retry.backoff() }

// Retryable reports whether the table's retry policy would repeat a request that failed with err.
func (t *Table) Retryable(err error) bool { return t.retry.Retryable(err) }
