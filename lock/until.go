package lock

import (
	"cmp"
	"context"

	"github.com/mortise-go/mortise/internal/nilctx"
)

// until returns a context that ends with ctx or with any of others, with the cause of that one. stop ends it and lets go of others.
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

// untilOthers has ended as soon as its parent or one of others has, since Err checks them. The functions that context.AfterFunc calls
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

// Value checks first whether the context has ended: context.Cause calls Value, and so do contexts that are derived from this one.
func (u *untilOthers) Value(key any) any {
	_ = u.Err()
	return u.Context.Value(key)
}

// checked returns ctx. For a nil context, it returns one that has ended already, with an error that matches ErrInvalid.
func checked(ctx context.Context) context.Context { return nilctx.Checked(ctx, ErrInvalid) }
