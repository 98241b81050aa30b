package lock

import (
	"context"

	"github.com/mortise-go/mortise/internal/nilctx"
)

// until is ctx, ended by any of others as well, with the cause that why gives for it. stop lets go
// of them, and ends it.
func until(ctx context.Context, why func(other context.Context) error, others ...context.Context) (ended context.Context, stop func()) {
	ctx = nilctx.Checked(ctx, ErrInvalid)
	inner, cancel := context.WithCancelCause(ctx)
	u := &untilOthers{inner, ctx, cancel, why, others}
	stops := make([]func() bool, len(others))
	for i, other := range others {
		stops[i] = context.AfterFunc(other, func() { cancel(why(other)) })
	}
	return u, func() {
		for _, stop := range stops {
			stop()
		}
		cancel(nil)
	}
}

// untilOthers has ended for whoever asks as soon as its parent or one of others has: what listens to
// them runs in a goroutine of its own, as with a parent of somebody else's making, and what follows
// from their end may be seen before.
type untilOthers struct {
	context.Context

	parent context.Context
	cancel context.CancelCauseFunc
	why    func(other context.Context) error
	others []context.Context
}

func (u *untilOthers) Err() error {
	if err := u.Context.Err(); err != nil {
		return err
	}
	if err := u.parent.Err(); err != nil {
		return err
	}
	for _, other := range u.others {
		if other.Err() != nil {
			u.cancel(u.why(other))
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
