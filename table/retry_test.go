package table_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/cenkalti/backoff/v4"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/inside"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// holding is a table whose engine holds back the answers of the next n writes for an hour.
func holding(t *testing.T, n int, r table.Retry) *table.Table {
	t.Helper()
	engine := tabletest.New(t)
	tbl, err := table.Open(engine.Client(), testSchema("app"), table.WithRetry(r))
	require.NoError(t, err)
	require.NoError(t, tbl.Ensure(t.Context()))
	if n > 0 {
		engine.Inject(tabletest.Fault{Kind: tabletest.Delay, After: true, For: time.Hour, Times: n})
	}
	return tbl
}

func TestTimeout_ARequestThatHangsIsRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tbl := holding(t, 1, table.Retry{})
		start := time.Now()
		n := table.Attr("n")
		require.NoError(t, tbl.Write(t.Context(),
			table.Update(key("p", "1"), n.Add(1)), table.Update(key("p", "2"), n.Add(1))))
		assert.InDelta(t, 5*time.Second, time.Since(start), float64(200*time.Millisecond))
		item, err := tbl.Get(t.Context(), key("p", "1"), true)
		require.NoError(t, err)
		assert.Equal(t, num("1"), item["n"], "one transaction, however often it was sent")
	})
}

func TestTimeout_AHungRequestIsNotTheCallersContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tbl := holding(t, 100, table.Retry{Timeout: time.Second})
		err := tbl.Write(t.Context(), table.Update(key("p", "1"), table.Attr("n").Set(1)))
		require.ErrorIs(t, err, table.ErrUnreachable)
		assert.NotErrorIs(t, err, context.DeadlineExceeded)
		assert.ErrorContains(t, err, "no answer within 1s")
		assert.True(t, table.RequestMayBeApplied(err))
	})
}

// slowly answers after a time, whatever its context says, as the SDK's cache of credentials lets it.
func slowly(after time.Duration, err error) aws.CredentialsProvider {
	return aws.NewCredentialsCache(aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		time.Sleep(after)
		return aws.Credentials{AccessKeyID: "id", SecretAccessKey: "secret"}, err
	}))
}

func TestTimeout_OfCredentialsIsNotOfTheEndpoint(t *testing.T) {
	open := func(t *testing.T, client aws.HTTPClient, provider aws.CredentialsProvider) *table.Table {
		cfg := config()
		cfg.Credentials = provider
		tbl, err := table.Open(dynamodb.NewFromConfig(cfg, func(o *dynamodb.Options) { o.HTTPClient = client }), table.Schema{Name: "app", NoTTL: true})
		require.NoError(t, err)
		return tbl
	}
	synctest.Test(t, func(t *testing.T) {
		tbl := open(t, counting{t}, slowly(time.Minute, errors.New("no metadata")))
		ctx, usage := table.WithUsage(t.Context())
		err := tbl.Write(ctx, table.Delete(key("p", "s")))
		require.ErrorIs(t, err, table.ErrCredentials)
		assert.NotErrorIs(t, err, table.ErrUnreachable)
		assert.NotErrorIs(t, err, context.DeadlineExceeded)
		assert.ErrorContains(t, err, "no credentials within 5s")
		assert.False(t, table.RequestMayBeApplied(err))
		assert.False(t, table.MayBeApplied(err))
		assert.Zero(t, usage.Totals(), "nothing was sent, nothing repeated")
		time.Sleep(time.Minute) // until the provider has ended
	})
	synctest.Test(t, func(t *testing.T) {
		tbl := open(t, counting{t}, slowly(time.Minute, nil))
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		err := tbl.Write(ctx, table.Delete(key("p", "s")))
		require.ErrorIs(t, err, context.Canceled)
		assert.NotErrorIs(t, err, table.ErrCredentials, "they may have come")
		assert.False(t, table.MayBeApplied(err))
		time.Sleep(time.Minute)
	})
	synctest.Test(t, func(t *testing.T) {
		tbl := open(t, tabletest.New(t).HTTPClient(), slowly(7*time.Second, nil))
		require.NoError(t, tbl.Ensure(t.Context()), "the second attempt finds the credentials that the first one asked for")
	})
}

func TestTimeout_TheCallersDeadlineAndWithoutRetryComeFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tbl := holding(t, 3, table.Retry{})
		op := table.Update(key("p", "1"), table.Attr("n").Set(1))
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		require.ErrorIs(t, tbl.Write(ctx, op), context.DeadlineExceeded)
		assert.Equal(t, 2*time.Second, time.Since(start))

		ctx, cancel = context.WithTimeout(table.WithoutRetry(t.Context()), 30*time.Second)
		defer cancel()
		require.ErrorIs(t, tbl.Write(ctx, op), context.DeadlineExceeded)
		assert.Equal(t, 32*time.Second, time.Since(start), "the caller bounds what is sent once")
	})
	synctest.Test(t, func(t *testing.T) {
		tbl := holding(t, 1, table.Retry{Timeout: -1})
		start := time.Now()
		require.NoError(t, tbl.Write(t.Context(), table.Update(key("p", "1"), table.Attr("n").Set(1))))
		assert.Equal(t, time.Hour, time.Since(start))
	})
}

// A transaction is not sent again once DynamoDB may have forgotten its token, whatever
// happens to either clock meanwhile.
func TestTransaction_IsNotRepeatedPastItsToken(t *testing.T) {
	for name, tc := range map[string]struct{ clock, repeated time.Duration }{
		"steady":                      {0, 9 * time.Minute},
		"set back in between":         {-time.Hour, 9 * time.Minute},
		"set ahead, or was suspended": {time.Hour, 5 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				engine, start := tabletest.New(t), time.Now()
				clock := func() time.Time {
					if time.Since(start) > 5*time.Minute {
						return time.Now().Add(tc.clock)
					}
					return time.Now()
				}
				every := table.Retry{Backoff: func() backoff.BackOff { return backoff.NewConstantBackOff(30 * time.Second) }}
				tbl, err := table.Open(engine.Client(), testSchema("app"), table.WithRetry(every), table.WithClock(clock))
				require.NoError(t, err)
				require.NoError(t, tbl.Ensure(t.Context()))
				engine.Inject(tabletest.Fault{Kind: tabletest.DropReply, Operation: "TransactWriteItems"})
				n := table.Attr("n")
				err = tbl.Write(t.Context(), table.Update(key("p", "1"), n.Add(1)), table.Update(key("p", "2"), n.Add(1)))
				require.ErrorIs(t, err, table.ErrUnreachable)
				assert.InDelta(t, tc.repeated, time.Since(start), float64(time.Minute))
				item, err := tbl.Get(t.Context(), key("p", "1"), true)
				require.NoError(t, err)
				assert.Equal(t, num("1"), item["n"])
			})
		})
	}
}

// A transaction that is refused while an earlier attempt of it may still come in says so.
func TestRetry_ARefusedTransactionWithAnAttemptUnderWay(t *testing.T) {
	for _, under := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			engine := tabletest.New(t)
			tbl, err := table.Open(engine.Client(), testSchema("app"))
			require.NoError(t, err)
			require.NoError(t, tbl.Ensure(t.Context()))
			if under {
				engine.Inject(tabletest.Fault{Kind: tabletest.DropRequest, Operation: "TransactWriteItems", Times: 1, For: time.Minute})
			}
			n := table.Attr("n")
			err = tbl.Write(t.Context(), table.Update(key("p", "1"), n.Add(1)).If(n.Exists()), table.Check(key("p", "2"), n.NotExists()))
			failed := table.Conditions(err)
			require.Len(t, failed, 1)
			assert.Equal(t, under, failed[0].Pending)
			assert.False(t, failed[0].Repeated)
		})
	}
}

// A caller that slows down by itself hears at once that it is throttled. Other requests are repeated as ever.
func TestRetry_LeavesThrottlingToACallerThatPacesItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := tabletest.New(t)
		tbl, err := table.Open(engine.Client(), table.Schema{Name: "app"})
		require.NoError(t, err)
		require.NoError(t, tbl.Ensure(t.Context()))
		one, two := table.Put(tbl.KeyItem(key("p", "1"))), table.Put(tbl.KeyItem(key("p", "2")))
		paced := inside.Paced(t.Context())
		for kind, want := range map[tabletest.FaultKind]error{tabletest.Throttle: table.ErrThrottled, tabletest.InternalError: nil, tabletest.TransactionConflict: nil} {
			for _, ops := range [][]table.Op{{one}, {one, two}} {
				engine.Inject(tabletest.Fault{Kind: kind, Times: 1})
				require.ErrorIs(t, tbl.Write(paced, ops...), want, kind)
				engine.ClearFaults()
				engine.Inject(tabletest.Fault{Kind: kind, Times: 1})
				require.NoError(t, tbl.Write(t.Context(), ops...), kind)
				engine.ClearFaults()
			}
		}
	})
}
