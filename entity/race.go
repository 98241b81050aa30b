package entity

import (
	"context"
	"errors"
	"fmt"

	"github.com/cenkalti/backoff/v4"

	"github.com/mortise-go/mortise/internal/errs"
	"github.com/mortise-go/mortise/internal/nilctx"
	"github.com/mortise-go/mortise/table"
)

// racing repeats attempts that end with ErrStale, by the table's retry policy. It is for writes without a version from the
// caller, for which a lost race is not an error. Other attempts end it with final. Each attempt begins with a read, so racing
// first refuses a write that cannot succeed. first is the error of an attempt before these, or nil. The error covers all attempts: a
// request of an earlier one can arrive late, and is applied if the row has its old state again.
func (e *core) racing(ctx context.Context, first error, attempt func() error) error {
	ctx = nilctx.Checked(ctx, ErrInvalid)
	if e.plan.readOnly {
		return errReadOnly
	}
	if err := e.cond.Err(); err != nil {
		return err
	}
	var last error
	unclear := table.MayBeApplied(first)
	err := backoff.Retry(func() error {
		if ctx.Err() != nil {
			return backoff.Permanent(ctx.Err())
		}
		last = attempt()
		var ends *finalError
		if errors.As(last, &ends) {
			last = ends.err
			return backoff.Permanent(last)
		}
		unclear = unclear || table.MayBeApplied(last)
		if last != nil && !errors.Is(last, ErrStale) {
			return backoff.Permanent(last)
		}
		return last
	}, backoff.WithContext(e.table.Backoff(), ctx))
	if err != nil && last != nil && !errors.Is(err, last) { // when ctx ends, backoff returns only the error of ctx
		err = fmt.Errorf("%w; last attempt: %w", err, last)
	}
	if unclear && !table.MayBeApplied(err) {
		err = errs.WithOutcome(err, true)
	}
	return err
}

// raced turns ErrNotFound into ErrStale, for a row that was deleted since it was read. So racing tries again.
func raced(err error) error {
	if errors.Is(err, ErrNotFound) {
		return fmt.Errorf("%w: %w", ErrStale, err)
	}
	return err
}

// finalError makes racing end with err, even if err is ErrStale.
type finalError struct{ err error }

func (f *finalError) Error() string { return f.err.Error() }

func final(err error) error {
	if err == nil {
		return nil
	}
	return &finalError{err}
}
