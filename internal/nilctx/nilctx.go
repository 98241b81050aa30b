// Package nilctx keeps a nil context from panicking, deep inside of whatever it was passed to.
package nilctx

import (
	"context"
	"fmt"
	"time"
)

// Checked returns ctx. In place of a nil context it returns one that has ended, with an error
// that matches invalid. Code that looks at a context before it sends anything needs no check of
// its own then: it stops, and returns that error.
func Checked(ctx context.Context, invalid error) context.Context {
	if ctx != nil {
		return ctx
	}
	return ended{fmt.Errorf("%w: nil context", invalid)}
}

// ended is a context that has ended before it began.
type ended struct{ err error }

func (e ended) Deadline() (time.Time, bool) { return time.Time{}, false }
func (e ended) Err() error                  { return e.err }
func (e ended) Value(any) any               { return nil }

func (e ended) Done() <-chan struct{} {
	done := make(chan struct{})
	close(done)
	return done
}
