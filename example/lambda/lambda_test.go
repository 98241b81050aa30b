package lambda_test

import (
	"context"
	"errors"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/example/lambda"
	"github.com/mortise-go/mortise/internal/engines"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
)

func TestMain(m *testing.M) { os.Exit(engines.Main(m)) }

// function is a function whose table has one order.
func function(t *testing.T, e *engines.Engine, charge lambda.Charge) *lambda.Function {
	t.Helper()
	name := e.TableName(t)
	tbl, err := table.Open(e.Client(), table.Schema{Name: name})
	require.NoError(t, err)
	require.NoError(t, tbl.Ensure(t.Context()))
	f, err := lambda.New(e.Client(), name, charge)
	require.NoError(t, err)
	_, err = f.Orders.Create(t.Context(), lambda.Order{ID: "1", Cents: 995})
	require.NoError(t, err)
	return f
}

// invocation is the context of one invocation.
func invocation(t *testing.T, limit time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	return ctx
}

func TestContractHandle_ChargesOnce(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		var charged atomic.Int64
		var f *lambda.Function
		f = function(t, e, func(_ context.Context, o lambda.Order, fence int64) (string, error) {
			charged.Add(o.Cents)
			assert.Positive(t, fence)
			// The same event comes once more, meanwhile.
			_, err := f.Handle(invocation(t, time.Minute), lambda.Event{Order: "1"})
			assert.ErrorIs(t, err, lock.ErrHeld)
			return "r1", nil
		})
		for range 3 {
			answer, err := f.Handle(invocation(t, time.Minute), lambda.Event{Order: "1"})
			require.NoError(t, err)
			assert.Equal(t, lambda.Answer{Receipt: "r1"}, answer)
		}
		assert.EqualValues(t, 995, charged.Load())
	})
}

func TestContractHandle_FailedChargeReleases(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		declined := errors.New("declined")
		answers := []error{declined, nil}
		f := function(t, e, func(context.Context, lambda.Order, int64) (string, error) {
			err := answers[0]
			answers = answers[1:]
			return "r2", err
		})
		_, err := f.Handle(invocation(t, time.Minute), lambda.Event{Order: "1"})
		require.ErrorIs(t, err, declined)
		answer, err := f.Handle(invocation(t, time.Minute), lambda.Event{Order: "1"})
		require.NoError(t, err)
		assert.Equal(t, "r2", answer.Receipt)
	})
}

// An invocation is frozen past its time, in the middle of its work. The next one takes over, and the first writes nothing.
func TestContractHandle_FrozenInvocationWritesNothing(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		var calls atomic.Int64
		frozen, thaw, ended := make(chan struct{}), make(chan struct{}), make(chan error)
		f := function(t, e, func(context.Context, lambda.Order, int64) (string, error) {
			if calls.Add(1) > 1 {
				return "second", nil
			}
			close(frozen)
			<-thaw
			return "first", nil
		})
		begun := func(limit time.Duration) bool {
			go func() {
				_, err := f.Handle(invocation(t, limit), lambda.Event{Order: "1"})
				ended <- err
			}()
			select {
			case <-frozen:
				return true
			case err := <-ended: // on a slow machine, its time is over before its work begins
				require.Error(t, err)
				return false
			}
		}
		for limit := time.Second; !begun(limit); {
			limit *= 2
		}
		var answer lambda.Answer
		require.Eventually(t, func() (ok bool) {
			var err error
			answer, err = f.Handle(invocation(t, time.Minute), lambda.Event{Order: "1"})
			return err == nil
		}, time.Minute, 100*time.Millisecond)
		assert.Equal(t, "second", answer.Receipt)
		close(thaw)
		require.Error(t, <-ended)
		o, err := f.Orders.Get(t.Context(), lambda.Order{ID: "1"})
		require.NoError(t, err)
		assert.Equal(t, "second", o.Receipt)
	})
}
