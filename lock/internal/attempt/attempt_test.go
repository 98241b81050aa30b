package attempt_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock/internal/attempt"
	"github.com/mortise-go/mortise/lock/internal/clock"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// world runs f with an engine in virtual time.
func world(t *testing.T, f func(t *testing.T, e *tabletest.Engine, r *attempt.Repeater)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		e := tabletest.New(t)
		tbl, err := table.Open(e.Client(), table.Schema{Name: "app"})
		require.NoError(t, err)
		require.NoError(t, tbl.Ensure(t.Context()))
		f(t, e, &attempt.Repeater{Clock: clock.New(tbl), Table: tbl})
	})
}

// put writes one row, only if there is none.
func put(r *attempt.Repeater) func(context.Context) error {
	return func(ctx context.Context) error {
		key := keys.NewKey("A", "B")
		return r.Table.Write(ctx, table.Update(key, table.Attr("n").Set(1)).If(table.Attr("pk").NotExists()))
	}
}

func TestDo_KnowsWhatAnUnansweredRequestMayHaveDone(t *testing.T) {
	tests := []struct {
		name    string
		faults  []tabletest.Fault
		sent    int
		inDoubt bool
		err     error
	}{
		{"answered", nil, 1, false, nil},
		{"answer lost", []tabletest.Fault{{Kind: tabletest.DropReply, Times: 1}}, 2, true, table.ErrCondition},
		{"request lost", []tabletest.Fault{{Kind: tabletest.DropRequest, Times: 1}}, 2, true, nil},
		{"throttled", []tabletest.Fault{{Kind: tabletest.Throttle, Times: 3}}, 4, false, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			world(t, func(t *testing.T, e *tabletest.Engine, r *attempt.Repeater) {
				e.Inject(tt.faults...)
				inDoubt, err := r.Do(t.Context(), time.Second, put(r))
				require.ErrorIs(t, err, tt.err)
				assert.Equal(t, tt.inDoubt, inDoubt)
				assert.EqualValues(t, tt.sent-1, r.Repeated.Load())
			})
		})
	}
}

func TestDo_ARequestThatHangsIsRepeated(t *testing.T) {
	world(t, func(t *testing.T, e *tabletest.Engine, r *attempt.Repeater) {
		e.Inject(tabletest.Fault{Kind: tabletest.Delay, For: time.Hour, Times: 1})
		began := time.Now()
		inDoubt, _ := r.Do(t.Context(), time.Second, put(r))
		assert.EqualValues(t, 1, r.Repeated.Load())
		assert.True(t, inDoubt)
		assert.Less(t, time.Since(began), 2*time.Second)
	})
}

func TestDo_WhatTheCallerFoundOutIsNoDoubt(t *testing.T) {
	world(t, func(t *testing.T, _ *tabletest.Engine, r *attempt.Repeater) {
		found := errors.New("somebody else has it")
		sent := 0
		inDoubt, err := r.Do(t.Context(), time.Second, func(context.Context) error {
			if sent++; sent == 1 {
				return attempt.ErrAgain
			}
			time.Sleep(2 * time.Second) // a slow answer is an answer
			return found
		})
		require.ErrorIs(t, err, found)
		assert.Equal(t, 2, sent)
		assert.False(t, inDoubt)
		assert.Zero(t, r.Repeated.Load(), "asked for by the caller, not by the policy")
	})
}

func TestDo_EndsWithThePolicyOrTheContext(t *testing.T) {
	world(t, func(t *testing.T, e *tabletest.Engine, r *attempt.Repeater) {
		e.Inject(tabletest.Fault{Kind: tabletest.Throttle})
		_, err := r.Do(t.Context(), time.Second, put(r))
		require.ErrorIs(t, err, table.ErrThrottled)

		cause := errors.New("the caller's reason")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(3*time.Second, func() { cancel(cause) })
		_, err = r.Do(ctx, time.Second, put(r))
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, cause)
		require.ErrorIs(t, err, table.ErrThrottled, "what the last attempt met is told, too")

		e.ResetRequests()
		inDoubt, err := r.Do(ctx, time.Second, put(r))
		require.ErrorIs(t, err, cause)
		assert.False(t, inDoubt)
		assert.Empty(t, e.Requests(), "nothing is sent under a context that has ended")

		e.ClearFaults()
		e.Inject(tabletest.Fault{Kind: tabletest.Delay, For: time.Hour})
		ctx, cancel = context.WithCancelCause(t.Context())
		time.AfterFunc(3*time.Second, func() { cancel(cause) })
		inDoubt, err = r.Do(ctx, time.Minute, put(r))
		require.ErrorIs(t, err, cause, "also if a request is under way")
		assert.True(t, inDoubt)
	})
}

func TestWithCause_AddsWhatTheErrorDoesNotTell(t *testing.T) {
	met, cause := errors.New("no connection"), errors.New("closing")
	ctx, cancel := context.WithCancelCause(t.Context())
	assert.Equal(t, met, attempt.WithCause(ctx, met))
	cancel(cause)
	for text, err := range map[string]error{
		"closing: context canceled; last attempt: no connection": met,
		"closing: context canceled":                              cause,
		"no connection: closing: context canceled":               fmt.Errorf("%w: %w", met, clock.Cause(ctx)),
	} {
		got := attempt.WithCause(ctx, err)
		require.EqualError(t, got, text)
		require.ErrorIs(t, got, err)
		require.ErrorIs(t, got, cause)
		require.ErrorIs(t, got, context.Canceled)
	}
}

func TestOthersFirst_AllHaveTheirTurn(t *testing.T) {
	tried, turns := 0, map[int]int{}
	list := make([]int, 40)
	for i := range list {
		list[i] = i
	}
	for range 5 {
		for _, e := range attempt.OthersFirst(list, &tried)[:16] {
			turns[e]++
		}
	}
	for _, e := range list {
		assert.Equal(t, 2, turns[e], "%d", e)
	}
	assert.Empty(t, attempt.OthersFirst([]int{}, &tried))
}
