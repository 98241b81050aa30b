package lock_test

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/cenkalti/backoff/v4"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// Each try of a lock that somebody alive has held for long costs one request, but for one in a lease, which asks
// whether it lives.
func TestTryAcquire_OfALivingHolderCostsOneRequest(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		holder, c := w.client(lock.Config{}), w.client(lock.Config{})
		_, err := holder.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		time.Sleep(10 * time.Minute)
		const tries = 40
		ops := w.requests(func() {
			for range tries {
				_, err := c.TryAcquire(ctx, lock.Name("report"))
				require.ErrorIs(t, err, lock.ErrHeld)
				time.Sleep(100 * time.Millisecond)
			}
		})
		assert.LessOrEqual(t, len(ops)-times("BatchGetItem", ops), tries+2+2, "each try, and once whether the holder lives; and renewals of the holder")
	})
}

// However rarely a waiter looks, it finds a holder dead when its session has ended, also one that was found
// alive before.
func TestTakeover_ADeathAfterAProofOfLifeIsFoundInTime(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		way := &line{to: w.engine.HTTPClient()}
		_, err := w.clientOver(way, quiet).Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		waiter := w.client(lock.Config{Backoff: func() backoff.BackOff { return backoff.NewConstantBackOff(time.Hour) }})
		got := acquireAsync(ctx, waiter, lock.Name("report"))
		time.Sleep(5 * time.Minute)
		way.cut(refused)
		start := time.Now()
		require.NotNil(t, <-got)
		assert.LessOrEqual(t, time.Since(start), 2*20*time.Second+5*time.Second)
	})
}

// unasked is the way of a process whose questions to a session do not arrive for now.
type unasked struct {
	to      aws.HTTPClient
	session string
	fails   atomic.Bool
	times   atomic.Int64
}

func (u *unasked) Do(r *http.Request) (*http.Response, error) {
	body, err := peek(r)
	if err != nil {
		return nil, err
	}
	if u.fails.Load() && bytes.Contains(body, []byte(u.session)) && bytes.Contains(body, []byte(`"SS"`)) { // a set of questions
		u.times.Add(1)
		return nil, errors.New("connection refused")
	}
	return u.to.Do(r)
}

// A question that could not be put is put later.
func TestTakeover_QuestionsThatDoNotArriveAreAskedAgain(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(quiet)
		_, err := c.Acquire(ctx, lock.Name("other")) // its session goes on
		require.NoError(t, err)
		w.engine.Inject(tabletest.Fault{Kind: tabletest.DropRequest, Call: 1, For: time.Minute})
		w.engine.ResetRequests()
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		require.NoError(t, l.Release(ctx))
		between, err := w.client(quiet).Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		require.NoError(t, between.Release(ctx))
		time.Sleep(time.Minute)
		r, err := w.client(quiet).Inspect(ctx, lock.Name("report"))
		require.NoError(t, err)
		require.True(t, r.Held(), "by a ghost")

		way := &unasked{to: w.engine.HTTPClient(), session: lock.SessionID(c)}
		waiter := w.clientOver(&line{to: way}, quiet)
		way.fails.Store(true)
		bounded, cancel := context.WithTimeout(ctx, 10*time.Minute)
		defer cancel()
		got := acquireAsync(bounded, waiter, lock.Name("report"))
		time.Sleep(time.Minute)
		require.Positive(t, way.times.Load(), "it was asked in vain")
		way.fails.Store(false)
		start := time.Now()
		require.NotNil(t, <-got)
		assert.LessOrEqual(t, time.Since(start), 25*time.Second, "a lease and a period")
	})
}

// Of those in a process who wait for several locks one tries to take them from a dead holder, not all at once.
func TestAcquireAll_OneOfManyTakesFromTheDead(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		way := &line{to: w.engine.HTTPClient()}
		both := names(2)
		_, err := w.clientOver(way, quiet).Acquire(ctx, both[0])
		require.NoError(t, err)
		c := w.client(quiet)
		const waiters = 5
		got := make(chan *lock.Bundle, waiters)
		for range waiters {
			go func() {
				b, err := c.AcquireAll(ctx, both)
				assert.NoError(t, err)
				got <- b
			}()
		}
		time.Sleep(5 * time.Second)
		way.cut(refused)
		var first *lock.Bundle
		tries := times("TransactWriteItems", w.requests(func() {
			first = <-got
			time.Sleep(300 * time.Millisecond)
		}))
		assert.LessOrEqual(t, tries, 2, "one, and perhaps the next one's, a poll later")
		require.NoError(t, first.Release(ctx))
		for range waiters - 1 {
			require.NoError(t, (<-got).Release(ctx))
		}
	})
}

// Who waits for several locks finds a holder's death in time, too, however rarely it looks.
func TestAcquireAll_FindsADeathInTime(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		way := &line{to: w.engine.HTTPClient()}
		both := names(2)
		_, err := w.clientOver(way, quiet).Acquire(ctx, both[0])
		require.NoError(t, err)
		waiter := w.client(lock.Config{Logger: quiet.Logger, Backoff: func() backoff.BackOff { return backoff.NewConstantBackOff(time.Hour) }})
		got := make(chan *lock.Bundle, 1)
		go func() {
			b, err := waiter.AcquireAll(ctx, both)
			assert.NoError(t, err)
			got <- b
		}()
		time.Sleep(2 * time.Minute)
		way.cut(refused)
		start := time.Now()
		b := <-got
		assert.LessOrEqual(t, time.Since(start), 2*20*time.Second+5*time.Second)
		require.NoError(t, b.Release(ctx))
	})
}

// A row that records the death of a missing session has a time to live.
func TestTakeover_TheRowOfAMissingSessionIsDeletedSomeDay(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		way := &line{to: w.engine.HTTPClient()}
		dead := w.clientOver(way, quiet)
		_, err := dead.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		session := sessionKey(dead)
		way.cut(refused)
		require.NoError(t, w.table.Write(ctx, table.Delete(session)))
		l, err := w.client(quiet).Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		row, err := w.table.Get(ctx, session, true)
		require.NoError(t, err)
		assert.Contains(t, row, "ttl")
		require.NoError(t, l.Release(ctx))
	})
}

// A try costs one request where the holder is the client itself, or has held for less than its lease.
func TestTryAcquire_NeedNotAskWhetherAHolderLives(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c, other := w.client(quiet), w.client(quiet)
		_, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		try := func(c *lock.Client) []string {
			return w.requests(func() {
				_, err := c.TryAcquire(ctx, lock.Name("report"))
				require.ErrorIs(t, err, lock.ErrHeld)
			})
		}
		time.Sleep(5 * time.Second) // its session goes on
		assert.Len(t, try(other), 1)
		time.Sleep(10 * time.Minute)
		assert.Len(t, try(c), 1)
	})
}

// A session of which many locks are waited for has a few to ask it in one request, and those that do
// not fit are not asked in vain, which would keep it from renewing.
func TestTakeover_ManyQuestionsToOneHolder(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		_, questions := w.waitForAll(ctx, 200, 0, 80*time.Second)
		t.Logf("%d requests to ask about 200 locks", questions)
		assert.LessOrEqual(t, questions, 40)
	})
}
