package entity

import (
	"context"
	"errors"
	"fmt"

	"github.com/cenkalti/backoff/v4"

	"github.com/mortise-go/mortise/internal/nilctx"
)

// racing makes attempts, by the table's retry policy, while they end with ErrStale: their
// caller names no version, so losing a race for the row is not its business. They begin with
// reading, so what no write could be sent for is refused before.
func (e *Entity[T]) racing(ctx context.Context, attempt func() error) error {
	ctx = nilctx.Checked(ctx, ErrInvalid)
	if e.plan.readOnly {
		return errReadOnly
	}
	if err := e.cond.Err(); err != nil {
		return err
	}
	var last error
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
		if last != nil && !errors.Is(last, ErrStale) {
			return backoff.Permanent(last)
		}
		return last
	}, backoff.WithContext(e.table.Backoff(), ctx))
	if err != nil && last != nil && !errors.Is(err, last) { // backoff drops it when ctx ends
		err = fmt.Errorf("%w; last attempt: %w", err, last)
	}
	return err
}

// raced makes a race lost of a row that is gone since it was read.
func raced(err error) error {
	if errors.Is(err, ErrNotFound) {
		return fmt.Errorf("%w: %w", ErrStale, err)
	}
	return err
}

// finalError ends racing, whatever it is.
type finalError struct{ err error }

func (f *finalError) Error() string { return f.err.Error() }

func final(err error) error {
	if err == nil {
		return nil
	}
	return &finalError{err}
}
