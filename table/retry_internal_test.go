package table

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/cenkalti/backoff/v4"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/machine"
	"github.com/mortise-go/mortise/keys"
)

// scripted answers GetItem and TransactWriteItems with errors, one a request, then well.
type scripted struct {
	Client
	errs []error
	at   []time.Time // of each request
	on   func(n int) // before each request
}

func (s *scripted) next() error {
	s.at = append(s.at, time.Now())
	if s.on != nil {
		s.on(len(s.at))
	}
	if n := len(s.at); n <= len(s.errs) {
		return s.errs[n-1]
	}
	return nil
}

func (s *scripted) GetItem(context.Context, *dynamodb.GetItemInput, ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	return &dynamodb.GetItemOutput{Item: Item{"pk": &types.AttributeValueMemberS{Value: "p"}}}, s.next()
}

func (s *scripted) TransactWriteItems(context.Context, *dynamodb.TransactWriteItemsInput, ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	return &dynamodb.TransactWriteItemsOutput{}, s.next()
}

func (s *scripted) open(t *testing.T, r Retry) *Table {
	t.Helper()
	tbl, err := Open(s, Schema{Name: "app"}, WithRetry(r))
	require.NoError(t, err)
	return tbl
}

func repeat(err error, n int) []error {
	list := make([]error, n)
	for i := range list {
		list[i] = err
	}
	return list
}

var (
	throttle = &types.ProvisionedThroughputExceededException{}
	someKey  = keys.NewKey("p", "s")
)

func TestRetry_WaitsThrottlesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{errs: repeat(throttle, 6)}
		tbl := s.open(t, Retry{})
		ctx, usage := WithUsage(t.Context())
		_, err := tbl.Get(ctx, someKey, true)
		require.NoError(t, err)
		require.Len(t, s.at, 7)
		for i, low := range []int64{12, 18, 28, 42, 63, 94} { // half of 25 ms × 1.5^i
			wait := s.at[i+1].Sub(s.at[i]).Milliseconds()
			assert.GreaterOrEqual(t, wait, low)
			assert.LessOrEqual(t, wait, 4*low)
		}
		assert.Equal(t, int64(7), usage.Totals().Requests)
		assert.Equal(t, int64(6), usage.Totals().Retries)
	})
}

func TestRetry_EndsWithTheLastError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{errs: repeat(throttle, 10_000)}
		start := time.Now()
		_, err := s.open(t, Retry{}).Get(t.Context(), someKey, true)
		require.ErrorIs(t, err, ErrThrottled)
		var cause *types.ProvisionedThroughputExceededException
		assert.ErrorAs(t, err, &cause)
		assert.InDelta(t, 10*time.Second, time.Since(start), float64(1500*time.Millisecond))

		never := &scripted{errs: repeat(throttle, 2)}
		_, err = never.open(t, Retry{Backoff: func() backoff.BackOff { return nil }}).Get(t.Context(), someKey, true)
		require.ErrorIs(t, err, ErrThrottled, "a nil policy does not repeat")
		assert.Len(t, never.at, 1)

		own := &scripted{errs: repeat(throttle, 2)}
		_, err = own.open(t, Retry{Retryable: func(error) bool { return false }}).Get(t.Context(), someKey, true)
		require.ErrorIs(t, err, ErrThrottled)
		assert.Len(t, own.at, 1, "the classification is the application's to replace")

		once := &scripted{errs: repeat(throttle, 2)}
		_, err = once.open(t, Retry{}).Get(WithoutRetry(t.Context()), someKey, true)
		require.ErrorIs(t, err, ErrThrottled)
		assert.Len(t, once.at, 1)
	})
}

func inBubble(t *testing.T, name string, f func(t *testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
}

func TestRetry_AContextThatEndsIsVisibleBesideTheLastError(t *testing.T) {
	cause := errors.New("shutting down")
	inBubble(t, "while waiting", func(t *testing.T) {
		s := &scripted{errs: repeat(throttle, 10_000)}
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(100*time.Millisecond, func() { cancel(cause) })
		start := time.Now()
		_, err := s.open(t, Retry{}).Get(ctx, someKey, true)
		assert.ErrorIs(t, err, context.Canceled)
		assert.ErrorIs(t, err, cause)
		assert.ErrorIs(t, err, ErrThrottled)
		var last *types.ProvisionedThroughputExceededException
		assert.ErrorAs(t, err, &last)
		assert.NotContains(t, err.Error(), "\n")
		assert.Equal(t, 100*time.Millisecond, time.Since(start))
	})
	inBubble(t, "at a deadline", func(t *testing.T) {
		s := &scripted{errs: repeat(throttle, 10_000)}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		_, err := s.open(t, Retry{}).Get(ctx, someKey, true)
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.ErrorIs(t, err, ErrThrottled)
		assert.NotErrorIs(t, err, ErrUnreachable)
	})
	inBubble(t, "during an attempt", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		s := &scripted{errs: repeat(throttle, 10), on: func(n int) {
			if n == 3 {
				cancel(cause)
			}
		}}
		_, err := s.open(t, Retry{}).Get(ctx, someKey, true)
		assert.ErrorIs(t, err, context.Canceled)
		assert.ErrorIs(t, err, cause)
		assert.ErrorIs(t, err, ErrThrottled)
		assert.Len(t, s.at, 3)
	})
	inBubble(t, "before", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(cause)
		expired, stop := context.WithTimeout(t.Context(), -time.Second)
		defer stop()
		s := &scripted{}
		tbl := s.open(t, Retry{})
		_, err := tbl.Get(ctx, someKey, true)
		assert.ErrorIs(t, err, context.Canceled)
		assert.ErrorIs(t, err, cause)
		_, err = tbl.Get(expired, someKey, true)
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.NotErrorIs(t, err, ErrUnreachable, "nobody tried to reach it")
		assert.Empty(t, s.at, "nothing is sent")
	})
	inBubble(t, "after success nothing of it is seen", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s := &scripted{on: func(int) { cancel() }}
		_, err := s.open(t, Retry{}).Get(ctx, someKey, true)
		require.NoError(t, err)
	})
}

// ending is a machine of which each wait is over at the moment at which it ends a context.
type ending struct {
	machine.Real
	cancel func()
}

type over chan time.Time

func (c over) C() <-chan time.Time    { return c }
func (over) Stop() bool               { return false }
func (over) Reset(time.Duration) bool { return false }
func (e ending) NewTimer(time.Duration) machine.Timer {
	e.cancel()
	c := make(over, 1)
	c <- time.Time{}
	return c
}

func TestRetry_NothingIsSentIfTheContextEndsWithAWait(t *testing.T) {
	for range 30 { // of two channels that are ready, Go takes either
		ctx, cancel := context.WithCancel(t.Context())
		s := &scripted{errs: repeat(throttle, 10)}
		tbl := s.open(t, Retry{})
		tbl.retry.machine = ending{cancel: cancel}
		var usage Usage
		_, err := tbl.Metered(&usage).Get(ctx, someKey, true)
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, ErrThrottled)
		require.Len(t, s.at, 1)
		require.Equal(t, Totals{Requests: 1}, usage.Totals())

		ctx, cancel = context.WithCancel(t.Context())
		tbl.retry.machine = ending{cancel: cancel}
		_, err = drain(ctx, tbl.Metered(&usage), 1, []int{1}, func(rest []int) ([]int, error) { return rest, ctx.Err() })
		require.ErrorIs(t, err, context.Canceled)
		require.Zero(t, usage.Totals().Retries)
	}
}

func TestTransaction_IsNotRepeatedPastItsToken(t *testing.T) {
	conflict := &types.TransactionCanceledException{CancellationReasons: []types.CancellationReason{{Code: ptr("TransactionConflict")}}}
	for name, met := range map[string]error{"conflicts": conflict, "throttles": throttle} {
		inBubble(t, name, func(t *testing.T) {
			s := &scripted{errs: repeat(met, 100)}
			tbl := s.open(t, Retry{
				Backoff:   func() backoff.BackOff { return backoff.WithMaxRetries(backoff.NewConstantBackOff(time.Minute), 50) },
				Retryable: func(error) bool { return true },
			})
			start := time.Now()
			err := tbl.Write(t.Context(), Check(someKey, Attr("x").Exists()))
			require.ErrorIs(t, err, ErrUnreachable)
			require.ErrorIs(t, err, met, "the last answer stays visible")
			assert.Less(t, time.Since(start), 11*time.Minute)
			assert.Len(t, s.at, 10)
		})
	}
}

func ptr[T any](v T) *T { return &v }

func TestRetryable_TellsWhatMayBeRepeated(t *testing.T) {
	reasons := func(codes ...string) error {
		e := &types.TransactionCanceledException{}
		for _, c := range codes {
			e.CancellationReasons = append(e.CancellationReasons, types.CancellationReason{Code: ptr(c)})
		}
		return e
	}
	for _, c := range []struct {
		name string
		err  error
		want bool
	}{
		{"throttle", throttle, true},
		{"account limit", &types.RequestLimitExceeded{}, true},
		{"conflict", &types.TransactionConflictException{}, true},
		{"in progress", &types.TransactionInProgressException{}, true},
		{"replica conflict", &types.ReplicatedWriteConflictException{}, true},
		{"canceled by conflict", reasons("None", "TransactionConflict"), true},
		{"canceled by throttling", reasons("ThrottlingError", "None"), true},
		{"canceled by condition too", reasons("TransactionConflict", "ConditionalCheckFailed"), false},
		{"canceled by validation", reasons("ValidationError"), false},
		{"condition", &types.ConditionalCheckFailedException{}, false},
		{"no table", &types.ResourceNotFoundException{}, false},
		{"cancelled context", context.Canceled, false},
		{"unprocessed", &UnprocessedError{Err: ErrThrottled}, true},
		{"unprocessed and cancelled", &UnprocessedError{Err: context.Canceled}, false},
		{"unknown", errors.New("unknown"), false},
	} {
		assert.Equal(t, c.want, Retryable(c.err), c.name)
	}
}

func TestRetry_ReasonsOfATransactionGiveItsKind(t *testing.T) {
	for code, want := range map[string]error{
		"ConditionalCheckFailed": ErrCondition, "TransactionConflict": ErrConflict, "ProvisionedThroughputExceeded": ErrThrottled,
		"ThrottlingError": ErrThrottled, "ValidationError": ErrInvalid, "ItemCollectionSizeLimitExceeded": ErrInvalid, "None": nil, "new one": nil,
	} {
		assert.Equal(t, want, kindOfReasons([]types.CancellationReason{{Code: ptr("None")}, {Code: ptr(code)}, {}}), code)
	}
}
