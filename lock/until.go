package lock

import (
	"cmp"
	"context"

	"github.com/mortise-go/mortise/internal/nilctx"
)

// until is ctx, ended by any of others as well, with the cause of that. stop lets go of them, and ends it.
func until(ctx context.Context, others ...context.Context) (ended context.Context, stop func()) {
	ctx = checked(ctx)
	inner, cancel := context.WithCancelCause(ctx)
	stops := make([]func() bool, len(others))
	for i, other := range others {
		stops[i] = context.AfterFunc(other, func() { cancel(context.Cause(other)) })
	}
	return &untilOthers{inner, ctx, cancel, others}, func() {
		for _, stop := range stops {
			stop()
		}
		cancel(nil)
	}
}

// untilOthers has ended for everybody who asks as soon as its parent or one of others has. The functions that listen to them
// run in goroutines of their own, and may be late.
type untilOthers struct {
	context.Context

	parent context.Context
	cancel context.CancelCauseFunc
	others []context.Context
}

func (u *untilOthers) Err() error {
	if err := cmp.Or(u.Context.Err(), u.parent.Err()); err != nil {
		return err
	}
	for _, other := range u.others {
		if other.Err() != nil {
			u.cancel(context.Cause(other))
			break
		}
	}
	return u.Context.Err()
}

// Value is also what context.Cause asks, and contexts that are made of this one.
func (u *untilOthers) Value(key any) any {
	_ = u.Err()
	return u.Context.Value(key)
}

// checked is ctx. In place of a nil context it is one that has ended, with an error that matches ErrInvalid.
func checked(ctx context.Context) context.Context { return nilctx.Checked(ctx, ErrInvalid) }
