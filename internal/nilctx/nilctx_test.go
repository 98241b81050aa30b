package nilctx_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/mortise-go/mortise/internal/nilctx"
)

var errInvalid = errors.New("invalid")

func TestChecked_ANilContextHasEnded(t *testing.T) {
	var none context.Context
	ctx := nilctx.Checked(none, errInvalid)
	assert.EqualError(t, ctx.Err(), "invalid: nil context")
	assert.ErrorIs(t, context.Cause(ctx), errInvalid)
	select {
	case <-ctx.Done():
	default:
		assert.Fail(t, "it goes on")
	}
	_, bounded := ctx.Deadline()
	assert.False(t, bounded)
}

func TestChecked_ContextsThatAreMadeOfItHaveEnded(t *testing.T) {
	var none context.Context
	ctx := nilctx.Checked(none, errInvalid)
	inner, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	timed, stop := context.WithTimeout(context.WithValue(inner, errInvalid, 1), time.Hour)
	defer stop()
	<-timed.Done()
	assert.ErrorIs(t, timed.Err(), errInvalid)
	assert.ErrorIs(t, context.Cause(timed), errInvalid)
	assert.NoError(t, context.WithoutCancel(ctx).Err(), "what is detached goes on")
}

func TestChecked_OtherContextsStayAsTheyAre(t *testing.T) {
	assert.Equal(t, t.Context(), nilctx.Checked(t.Context(), errInvalid))
}
