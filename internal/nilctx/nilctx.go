// Package nilctx turns a nil context into an error. Otherwise it would cause a panic deep inside the code that it is passed to.
package nilctx

import (
	"context"
	"fmt"
	"time"
)

// Checked returns ctx. If ctx is nil, it returns a context that has ended with an error that matches invalid. Code that checks its context
// before it sends anything then stops with that error, and needs no check for nil.
func Checked(ctx context.Context, invalid error) context.Context {
	if ctx != nil {
		return ctx
	}
	return ended{nilError{invalid}}
}

// nilError equals each other one for the same error, so errors.Is finds one in another.
type nilError struct{ invalid error }

func (e nilError) Error() string { return fmt.Sprintf("%v: nil context", e.invalid) }
func (e nilError) Unwrap() error { return e.invalid }

// ended is a context that has ended from the start.
type ended struct{ err error }

func (e ended) Deadline() (time.Time, bool) { return time.Time{}, false }
func (e ended) Err() error                  { return e.err }
func (e ended) Value(any) any               { return nil }

func (e ended) Done() <-chan struct{} {
	done := make(chan struct{})
	close(done)
	return done
}
