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

	"github.com/mortise-go/mortise/internal/inside"
	"github.com/mortise-go/mortise/internal/machine"
	"github.com/mortise-go/mortise/internal/nilctx"
)

// Retry is the policy by which a Table repeats requests. The SDK's own retries are disabled. Nested policies would
// multiply, and the Table has to know whether a write was sent more than once.
type Retry struct {
	// Backoff returns the waiting times of one call, as a BackOff of github.com/cenkalti/backoff/v4. It is a function
	// because a BackOff is not safe for concurrent use. Defaults to an exponential backoff from 25 ms to 1 s, jittered by
	// half, that gives up after 10 s.
	Backoff func() backoff.BackOff

	// Retryable reports whether to repeat a request that failed with err. Defaults to [Retryable].
	Retryable func(err error) bool

	// Timeout bounds each request. One that takes longer is treated like one without an answer, and repeated. If the SDK
	// was still waiting for credentials, the error is [ErrCredentials], since nothing was sent. Timeout does not apply to
	// calls whose context ends sooner, and to those that are sent once ([WithoutRetry]). A negative Timeout means none.
	// Defaults to 5 s.
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

// bounded sends one request within the policy's timeout, or that of the context ([inside.Within]) if it is shorter.
func (r Retry) bounded(ctx context.Context, request func(context.Context) (answer, error)) (answer, error) {
	deadline, ok := ctx.Deadline()
	timeout := inside.Timeout(ctx, r.Timeout)
	if timeout < 0 || ok && time.Until(deadline) <= timeout || ctx.Value(onceKey{}) != nil {
		return request(ctx)
	}
	inner, cancel := r.machine.WithTimeout(ctx, timeout)
	defer cancel()
	ans, err := request(inner)
	if err != nil && errors.Is(inner.Err(), context.DeadlineExceeded) && ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		err = &timeoutError{after: timeout, identity: isIdentityError(err)}
	}
	return ans, err
}

// timeoutError reports a request that exceeded its timeout. It does not match context.DeadlineExceeded, which would mean that the
// caller's context has ended.
type timeoutError struct {
	after    time.Duration
	identity bool // the SDK waited for credentials and has sent nothing: an identity error
}

func (e *timeoutError) Error() string {
	if e.identity {
		return fmt.Sprintf("no credentials within %v", e.after)
	}
	return fmt.Sprintf("%v: no answer within %v", ErrUnreachable, e.after)
}

func (e *timeoutError) Unwrap() error {
	if e.identity {
		return nil
	}
	return ErrUnreachable
}

func defaultBackoff(m machine.Machine) backoff.BackOff {
	return machine.Backoff(m,
		backoff.WithInitialInterval(25*time.Millisecond),
		backoff.WithMaxInterval(time.Second),
		backoff.WithMaxElapsedTime(10*time.Second),
	)
}

// Retryable is the default of [Retry.Retryable]. It returns true for throttling (including unprocessed parts of a
// batch), internal errors, lost connections and transaction conflicts. It returns false for a failed condition, which
// is a result.
func Retryable(err error) bool {
	var hung *timeoutError
	switch {
	case errors.Is(err, context.Canceled):
		return false
	case errors.As(err, &hung): // also while it waited for credentials, which may be there at the next attempt
		return true
	case isIdentityError(err):
		return false
	case unreadable(err):
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
	if errors.As(err, &canceled) || errors.Is(kind, ErrInvalid) { // by its code alone, an index too many would be throttled
		return false
	}
	for _, check := range retry.DefaultRetryables {
		if verdict := check.IsErrorRetryable(err); verdict != aws.UnknownTernary {
			return verdict.Bool()
		}
	}
	return false
}

// finalError is an error after which the request is not repeated, whatever its cause.
type finalError struct{ error }

func (e *finalError) Unwrap() error { return e.error }

// repeats reports whether the policy sends a request again after err.
func (r Retry) repeats(ctx context.Context, err error) bool {
	var final *finalError
	if errors.As(err, &final) || inside.IsPaced(ctx) && errors.Is(kindOf(err), ErrThrottled) {
		return false
	}
	return r.Retryable(err)
}

type onceKey struct{}

// WithoutRetry returns a context under which each request is sent once, for callers that need to know of every attempt.
// The unprocessed part of a batch is sent again as long as it shrinks.
func WithoutRetry(ctx context.Context) context.Context {
	return context.WithValue(nilctx.Checked(ctx, ErrInvalid), onceKey{}, true)
}

// do runs attempt until it succeeds, fails for good, or the policy or ctx ends. It returns the error of the last attempt, joined with that
// of ctx if ctx has ended.
func (r Retry) do(ctx context.Context, attempt func() error) error {
	if ctx.Err() != nil { // package backoff would run the attempt once even then
		return ended(ctx)
	}
	last := attempt()
	if last == nil || ctx.Err() != nil || ctx.Value(onceKey{}) != nil || !r.repeats(ctx, last) {
		return withCause(ctx, last)
	}
	first := true // the attempt above is the first one: most calls need no other, and so no BackOff
	err := backoff.RetryNotifyWithTimer(func() error {
		if !first {
			if ctx.Err() != nil { // it ended at the moment at which the wait did
				return backoff.Permanent(last)
			}
			last = attempt()
		}
		first = false
		if last != nil && (ctx.Err() != nil || !r.repeats(ctx, last)) {
			return backoff.Permanent(last)
		}
		return last
	}, backoff.WithContext(r.backoff(), ctx), nil, &machine.Waits{Machine: r.machine})
	if err == nil {
		return nil
	}
	return withCause(ctx, last) // not err: package backoff drops the last error when ctx ends
}

// ended returns why a context ended: its error and, if it differs, its cause.
func ended(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if errors.Is(cause, err) || errors.Is(err, cause) {
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}

// withCause adds the reason why the context ended, if it has, to err, the error of the last attempt.
func withCause(ctx context.Context, err error) error {
	if err == nil || ctx.Err() == nil || errors.Is(err, ctx.Err()) && errors.Is(err, context.Cause(ctx)) {
		return err
	}
	return fmt.Errorf("%w; last attempt: %w", ended(ctx), err)
}

// backoff returns the waiting times of one call. A nil BackOff of the policy means that nothing is repeated.
func (r Retry) backoff() backoff.BackOff {
	if b := r.Backoff(); b != nil {
		return b
	}
	return &backoff.StopBackOff{}
}

// Backoff returns the waiting times of one operation by the table's retry policy, for programs that repeat more than one
// request, such as reading and writing again.
func (t *Table) Backoff() backoff.BackOff { return t.retry.backoff() }

// Retryable reports whether the table's retry policy would repeat a request that failed with err.
func (t *Table) Retryable(err error) bool { return t.retry.Retryable(err) }
