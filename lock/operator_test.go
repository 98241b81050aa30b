package lock_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/entity"
	"github.com/mortise-go/mortise/internal/attrvalue"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

func TestForceReleaseTakesWhatWasSeen(t *testing.T) {
	contract(t, keys.Scheme{}, func(ctx context.Context, p *place) {
		target := lock.Name("report")
		op := p.open(lock.Config{Owner: "operator"})
		require.ErrorIs(p, op.ForceRelease(ctx, target, "NONCE"), lock.ErrNotHeld, "never acquired")
		for i, opts := range [][]lock.Option{nil, {lock.Fixed(time.Minute)}} {
			l, err := p.client.Acquire(ctx, target, append(opts, lock.WithData("kept"))...)
			require.NoError(p, err)
			seen, err := op.Inspect(ctx, target)
			require.NoError(p, err)

			err = op.ForceRelease(ctx, target, "ANOTHER")
			var held *lock.HeldError
			require.ErrorAs(p, err, &held)
			assert.Equal(p, seen.Holder().Ticket, held.Ticket)
			require.NoError(p, l.Write(ctx, table.Put(p.table.KeyItem(keys.NewKey("ROW", "1")))), "nothing was taken")

			var reason []string
			want := "forced by operator"
			if i > 0 {
				reason, want = []string{"hangs since noon"}, "hangs since noon"
			}
			requests := map[bool]int64{true: 2, false: 3}[len(opts) > 0] // the row is read first
			cost := totals(ctx, func(ctx context.Context) {
				require.NoError(p, op.ForceRelease(ctx, target, seen.Holder().Ticket, reason...))
			})
			assert.Equal(p, requests, cost.Requests)
			r, err := op.Inspect(ctx, target)
			require.NoError(p, err)
			assert.False(p, r.Held())
			assert.Equal(p, seen.Fence+1, r.Fence)
			assert.Equal(p, want, r.Forced)
			assert.Equal(p, seen.Fence, r.ForcedFence)
			assert.InDelta(p, time.Now().UnixMilli(), r.Changed, 60_000)
			assert.Equal(p, "kept", decoded(p.T, r.Data))
			row := p.raw(l)
			assert.Empty(p, lineIn(row))
			require.ErrorIs(p, op.ForceRelease(ctx, target, seen.Holder().Ticket), lock.ErrNotHeld, "free already")

			require.ErrorIs(p, p.table.Write(ctx, table.Put(p.table.KeyItem(keys.NewKey("ROW", "1"))), l.Guard()), lock.ErrStolen)
			require.ErrorIs(p, l.Write(ctx, table.Put(p.table.KeyItem(keys.NewKey("ROW", "1")))), lock.ErrStolen)
			require.ErrorIs(p, l.Release(ctx), lock.ErrStolen)
			require.ErrorIs(p, context.Cause(l.Context()), lock.ErrStolen)

			next, err := op.TryAcquire(ctx, target)
			require.NoError(p, err)
			assert.Equal(p, seen.Fence+1, next.Fence())
			require.NoError(p, next.Release(ctx))
			r, err = op.Inspect(ctx, target)
			require.NoError(p, err)
			assert.Empty(p, r.Forced, "until the next change")
			var records []lock.Record
			require.NoError(p, entity.Collect(ctx, p.table, r.Partition, entity.Into(p.client.Records(), &records)))
			assert.Equal(p, []lock.Record{r}, records, "read in either way")
		}
	})
}

func TestForceReleaseAndRevokeRefuseWhatIsNoLock(t *testing.T) {
	contract(t, keys.Scheme{}, func(ctx context.Context, p *place) {
		target := lock.Name("report")
		key := p.keyOf(target)
		num := func(v string) types.AttributeValue { return &types.AttributeValueMemberN{Value: v} }
		set := func(name string, v types.AttributeValue) func(table.Item) {
			return func(i table.Item) { i[name] = v }
		}
		for i, tc := range []struct {
			change func(table.Item)
			want   error
		}{
			{set("type", text("Order")), lock.ErrNotLock},
			{func(i table.Item) { delete(i, "type") }, lock.ErrNotLock},
			{set("fence", text(canary)), lock.ErrMalformed},
			{set("fence", num("0")), lock.ErrMalformed},
			{func(i table.Item) { delete(i, "fence") }, lock.ErrMalformed},
			{set("line", text(canary)), lock.ErrMalformed},
			{set("line", listOf(text(canary))), lock.ErrMalformed},
			{set("line", listOf(num("1"))), lock.ErrMalformed},
			{set("since", text(canary)), lock.ErrMalformed},
			{set("since", num("-1")), lock.ErrMalformed},
			{set("hold", num("0.5")), lock.ErrMalformed},
			{set("writes", num("-1")), lock.ErrMalformed},
			{set("forced", num("1")), lock.ErrMalformed},
			{set("forced_fence", text(canary)), lock.ErrMalformed},
			{set("edits", text(canary)), lock.ErrMalformed},
			{set("ttl", text(canary)), lock.ErrMalformed},
		} {
			item := p.lockRow(key, true, tc.change)
			require.NoError(p, p.table.Write(ctx, table.Put(item)))
			for _, err := range []error{p.client.ForceRelease(ctx, target, "A THIRD"), p.client.Revoke(ctx, target)} {
				require.ErrorIs(p, err, tc.want, "%d", i)
				require.NotContains(p, err.Error(), canary)
			}
			got, err := p.table.Get(ctx, key, true)
			require.NoError(p, err)
			require.True(p, attrvalue.SameItem(item, got), "%d", i)
		}
		require.NoError(p, p.table.Write(ctx, table.Put(p.lockRow(key, true, nil))))
		require.ErrorIs(p, p.client.Revoke(ctx, target), lock.ErrNoSession, "Fixed")
		require.NoError(p, p.client.ForceRelease(ctx, target, "ANOTHER"), "the tests above show what their change does")
		require.ErrorIs(p, p.client.Revoke(ctx, target), lock.ErrNotHeld)
		require.ErrorIs(p, p.client.Revoke(ctx, lock.Name("never")), lock.ErrNotHeld)

		cost := totals(ctx, func(ctx context.Context) {
			for _, reasons := range [][]string{{"a", "b"}, {strings.Repeat("x", lock.MaxReason+1)}, {"\xff"}} {
				require.ErrorIs(p, p.client.ForceRelease(ctx, target, "N", reasons...), lock.ErrInvalid)
			}
			require.ErrorIs(p, p.client.ForceRelease(ctx, lock.Target{}, "N"), lock.ErrInvalid)
			require.ErrorIs(p, p.client.Revoke(ctx, lock.Target{}), lock.ErrInvalid)
		})
		assert.Zero(p, cost.Requests)
		long := p.open(lock.Config{Owner: strings.Repeat("é", lock.MaxOwner/2)})
		l, err := p.client.Acquire(ctx, lock.Name("other"))
		require.NoError(p, err)
		held, err := p.client.Inspect(ctx, lock.Name("other"))
		require.NoError(p, err)
		require.NoError(p, long.ForceRelease(ctx, lock.Name("other"), held.Holder().Ticket))
		r, err := long.Inspect(ctx, l.Target())
		require.NoError(p, err)
		assert.Equal(p, "forced by "+strings.Repeat("é", 123), r.Forced)
	})
}

func TestClosedClientForcesAndRevokesNothing(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(lock.Config{})
		require.NoError(t, c.Close(ctx))
		ops := w.requests(func() {
			require.ErrorIs(t, c.ForceRelease(ctx, lock.Name("report"), "N"), lock.ErrClosed)
			require.ErrorIs(t, c.Revoke(ctx, lock.Name("report")), lock.ErrClosed)
		})
		assert.Empty(t, ops)
	})
}

// The holder's context ends within one renewal period, and only that of the lock meant.
func TestHolderIsToldWithinAPeriod(t *testing.T) {
	for _, forced := range []bool{true, false} {
		for _, own := range []bool{true, false} {
			virtual(t, func(ctx context.Context, w *world) {
				lost := make(chan error, 10)
				c := w.client(lock.Config{OnLost: func(_ *lock.Lease, cause error) { lost <- cause }})
				op := w.client(lock.Config{})
				if own {
					op = c
				}
				l, err := c.Acquire(ctx, lock.Name("report"))
				require.NoError(t, err)
				other, err := c.Acquire(ctx, lock.Name("other"))
				require.NoError(t, err)
				time.Sleep(13 * time.Second)
				r, err := op.Inspect(ctx, lock.Name("report"))
				require.NoError(t, err)
				want, ops := lock.ErrRevoked, []string{"GetItem"}
				if forced {
					want, ops = lock.ErrStolen, []string{"GetItem", "UpdateItem"}
				}
				if !own {
					ops = append(ops, "UpdateItem") // to tell
				}
				start := time.Now()
				assert.Equal(t, ops, w.requests(func() {
					if forced {
						require.NoError(t, op.ForceRelease(ctx, lock.Name("report"), r.Holder().Ticket))
					} else {
						require.NoError(t, op.Revoke(ctx, lock.Name("report")))
					}
				}))
				<-l.Context().Done()
				told := time.Since(start)
				t.Logf("forced %v, of the same client %v: told after %v (goal within a period of 5s ± 10%%)", forced, own, told)
				assert.LessOrEqual(t, told, 5500*time.Millisecond)
				require.ErrorIs(t, context.Cause(l.Context()), want)
				require.NoError(t, context.Cause(other.Context()))
				if forced {
					require.ErrorIs(t, <-lost, lock.ErrStolen)
					require.ErrorIs(t, l.Write(ctx, w.put("x")), lock.ErrLost)
					return
				}
				// Asked back, and still held, for as long as it takes.
				time.Sleep(time.Hour)
				_, err = w.client(lock.Config{}).TryAcquire(ctx, lock.Name("report"))
				require.ErrorIs(t, err, lock.ErrHeld)
				require.NoError(t, op.Revoke(ctx, lock.Name("report")), "again")
				require.NoError(t, l.Write(ctx, w.put("x")))
				require.NoError(t, l.SetData(ctx, "x"))
				require.NoError(t, l.Commit(ctx, w.put("x")))
				require.NoError(t, l.Release(ctx))
				require.ErrorIs(t, op.Revoke(ctx, lock.Name("report")), lock.ErrNotHeld)
				assert.Empty(t, lost)
				time.Sleep(12 * time.Second) // two renewals: one brings the question, the next takes it back
				item, err := w.table.Get(ctx, sessionKey(c), true)
				require.NoError(t, err)
				assert.NotContains(t, item, "ask", "what was answered is taken back")
			})
		}
	}
}

// A run whose lock was taken by force has not finished: it is taken up again.
func TestForcedRunIsBrokenOff(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		const interval = time.Hour
		ctx, stop := context.WithCancel(ctx)
		target, op := lock.Name("job"), w.client(quiet)
		var mu sync.Mutex
		var began []time.Time
		job := func(ctx context.Context, _ *lock.Lease, at time.Time) error {
			mu.Lock()
			began = append(began, at)
			first := len(began) == 1
			mu.Unlock()
			if first {
				<-ctx.Done() // until it is told
				return ctx.Err()
			}
			return nil
		}
		var all sync.WaitGroup
		for range 2 {
			c := w.client(quiet)
			all.Go(func() { assert.ErrorIs(t, c.Every(ctx, target, interval, job), context.Canceled) })
		}
		time.Sleep(time.Minute)
		held, err := op.Inspect(ctx, target)
		require.NoError(t, err)
		require.Positive(t, held.Running)
		require.NoError(t, op.ForceRelease(ctx, target, held.Holder().Ticket))
		time.Sleep(time.Minute)
		r, err := op.Inspect(ctx, target)
		require.NoError(t, err)
		assert.Equal(t, held.Running, r.Ran, "by the second try")
		assert.Zero(t, r.Running)
		stop()
		all.Wait()
		require.Len(t, began, 2)
		assert.Equal(t, began[0], began[1])
	})
}

// What an operator's call leaves of a run: neither finished nor forgotten.
func TestForceReleaseLeavesTheRun(t *testing.T) {
	contract(t, keys.Scheme{}, func(ctx context.Context, p *place) {
		key := p.keyOf(lock.Name("job"))
		require.NoError(p, p.table.Write(ctx, table.Put(p.lockRow(key, true, func(i table.Item) {
			i["ran"], i["running"] = numeral(7_200_000), numeral(10_800_000)
		}))))
		held, err := p.client.Inspect(ctx, lock.Name("job"))
		require.NoError(p, err)
		require.NoError(p, p.client.ForceRelease(ctx, lock.Name("job"), held.Holder().Ticket))
		r, err := p.client.Inspect(ctx, lock.Name("job"))
		require.NoError(p, err)
		assert.False(p, r.Held())
		assert.EqualValues(p, 7_200_000, r.Ran)
		assert.EqualValues(p, 10_800_000, r.Running)
	})
}

// A holder that can never answer is said to be one.
func TestRevokeOfTheDead(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		wire := &line{to: w.engine.HTTPClient()}
		dead, c := w.clientOver(wire, lock.Config{}), w.client(lock.Config{})
		_, err := dead.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		id := sessionKey(dead)
		wire.cut(refused)
		time.Sleep(time.Minute)
		require.ErrorIs(t, c.Revoke(ctx, lock.Name("report")), lock.ErrNoSession, "its recorded end lies back")
		require.NoError(t, w.table.Write(ctx, table.Update(id, table.Attr("dead").Set(1))))
		require.ErrorIs(t, c.Revoke(ctx, lock.Name("report")), lock.ErrNoSession, "declared dead")
		require.NoError(t, w.table.Write(ctx, table.Delete(id)))
		require.ErrorIs(t, c.Revoke(ctx, lock.Name("report")), lock.ErrNoSession, "gone")
		r, err := c.Inspect(ctx, lock.Name("report"))
		require.NoError(t, err)
		require.NoError(t, c.ForceRelease(ctx, lock.Name("report"), r.Holder().Ticket), "it needs no answer")
		_, err = c.TryAcquire(ctx, lock.Name("report"))
		require.NoError(t, err)
	})
}

// The set of questions is bounded, so that the session row can always be renewed, and goes
// on serving once it was read.
func TestQuestionsAreBounded(t *testing.T) {
	contract(t, keys.Scheme{}, func(ctx context.Context, p *place) {
		holder := p.open(lock.Config{Lease: lock.MaxLease}) // which does not renew meanwhile
		pk, name := "ROW#"+strings.Repeat("p", keys.MaxPK-4), func(i int) string { return fmt.Sprintf("%04d", i) + strings.Repeat("s", 1015) }
		asked, full := 0, 0
		for i := range 150 {
			target := lock.Beside(keys.NewKey(pk, name(i)))
			_, err := holder.Acquire(ctx, target)
			require.NoError(p, err)
			if err = p.client.Revoke(ctx, target); err == nil {
				asked++
				continue
			}
			require.ErrorIs(p, err, table.ErrThrottled)
			require.NotErrorIs(p, err, lock.ErrNoSession)
			full++
		}
		assert.Equal(p, 129, asked)
		assert.Equal(p, 21, full)
		require.NoError(p, p.client.Revoke(ctx, lock.Beside(keys.NewKey(pk, name(3)))), "asked already")

		// And a thousand of usual lengths.
		other := p.open(lock.Config{Lease: lock.MaxLease})
		_, err := other.AcquireAll(ctx, names(2))
		require.NoError(p, err)
		others := &types.AttributeValueMemberSS{}
		for i := range 999 {
			others.Value = append(others.Value, fmt.Sprint(i))
		}
		require.NoError(p, p.table.Write(ctx, table.Update(sessionKey(other), table.Attr("ask").Add(others))))
		require.NoError(p, p.client.Revoke(ctx, lock.Name("n00")))
		require.ErrorIs(p, p.client.Revoke(ctx, lock.Name("n01")), table.ErrThrottled)
		require.NoError(p, p.client.Revoke(ctx, lock.Name("n00")), "asked already")
	})
}

func TestQuestionsBeyondTheBoundAreAnsweredLater(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c, op := w.client(lock.Config{}), w.client(lock.Config{})
		const locks = 2200
		leases := make([]*lock.Lease, locks)
		for i := range leases {
			var err error
			leases[i], err = c.Acquire(ctx, lock.Name(fmt.Sprint(i)))
			require.NoError(t, err)
		}
		start := time.Now()
		for i := range leases {
			for {
				err := op.Revoke(ctx, lock.Name(fmt.Sprint(i)))
				if err == nil {
					break
				}
				require.ErrorIs(t, err, table.ErrThrottled)
				time.Sleep(time.Second)
			}
		}
		time.Sleep(6 * time.Second)
		for _, l := range leases {
			require.ErrorIs(t, context.Cause(l.Context()), lock.ErrRevoked)
		}
		// 1,000 in two periods: one brings them, the next takes them back.
		assert.LessOrEqual(t, time.Since(start), 45*time.Second)
		for i, l := range leases {
			require.NoError(t, l.Release(ctx), "%d", i)
		}
	})
}

// A ticket that somebody else wrote into a row cannot forge a question.
func TestHostileTicketIsNotAsked(t *testing.T) {
	contract(t, keys.Scheme{}, func(ctx context.Context, p *place) {
		l, err := p.client.Acquire(ctx, lock.Name("keeps the session"))
		require.NoError(p, err)
		key := p.keyOf(lock.Name("report"))
		id := lock.SessionID(p.client)
		for _, ticket := range []string{id + "/x", id + "/1 forced a b", id + "/1/2", id + "/" + strings.Repeat("0", 256), id + "/" + strings.Repeat("1", 300_000)} {
			item := p.lockRow(key, true, func(i table.Item) {
				i["line"] = listOf(text(fmt.Sprintf("%s@%013d another", ticket, time.Now().UnixMilli())))
			})
			require.NoError(p, p.table.Write(ctx, table.Put(item)))
			require.ErrorIs(p, p.open(lock.Config{}).Revoke(ctx, lock.Name("report")), lock.ErrMalformed)
		}
		require.NoError(p, context.Cause(l.Context()))
		own, err := p.table.Get(ctx, sessionKey(p.client), true)
		require.NoError(p, err)
		assert.NotContains(p, own, "ask")
	})
}

// A lost answer is recognised also where somebody has acquired before it is asked again.
func TestForceReleaseIsRecognisedUnderTheNextHolder(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c, op, next := w.client(lock.Config{}), w.client(lock.Config{}), w.client(lock.Config{})
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		seen, err := op.Inspect(ctx, lock.Name("report"))
		require.NoError(t, err)
		w.engine.ResetRequests()
		w.engine.Inject(tabletest.Fault{Kind: tabletest.Delay, For: time.Hour, After: true, Operation: "UpdateItem", Times: 1})
		var wait sync.WaitGroup
		wait.Go(func() { assert.NoError(t, op.ForceRelease(ctx, lock.Name("report"), seen.Holder().Ticket)) })
		time.Sleep(time.Second)
		later, err := next.TryAcquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		wait.Wait()
		time.Sleep(time.Minute)
		require.NoError(t, context.Cause(later.Context()))
		require.ErrorIs(t, l.Write(ctx, w.put("x")), lock.ErrLost)
	})
}

// A question that meets its own acquisition under way is answered once that is over.
func TestRevokeOfAnAcquisitionUnderWay(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c, op := w.client(lock.Config{Lease: 8 * time.Second}), w.client(lock.Config{})
		w.engine.ResetRequests()
		// Applied, without an answer, until the next renewal has been through.
		w.engine.Inject(tabletest.Fault{Kind: tabletest.DropReply, When: func(r tabletest.Request) bool {
			return strings.HasPrefix(r.Keys[0].Attrs["pk"].(*types.AttributeValueMemberS).Value, "LOCK#")
		}, Operation: "UpdateItem"})
		got := acquireAsync(ctx, c, lock.Name("report"))
		require.NoError(t, op.Revoke(ctx, lock.Name("report")))
		time.Sleep(2200 * time.Millisecond)
		require.Empty(t, got, "still under way")
		item, err := w.table.Get(ctx, sessionKey(c), true)
		require.NoError(t, err)
		assert.Positive(t, number(t, item["beat"]), "a renewal has brought the question")
		assert.Contains(t, item, "ask", "it waits for what becomes of the acquisition")
		w.engine.ClearFaults()
		l := <-got
		require.NotNil(t, l)
		time.Sleep(3 * time.Second)
		require.ErrorIs(t, context.Cause(l.Context()), lock.ErrRevoked)
		require.NoError(t, l.Release(ctx))
	})
}

// ghosted takes a lock from its holder, whom nobody tells, has another one hold it, and waits until a
// request of the first comes in once more: the row that names it then.
func (w *world) ghosted(ctx context.Context, op *lock.Client, l *lock.Lease, comes time.Duration) lock.Record {
	w.Helper()
	first, err := op.Inspect(ctx, lock.Name("report"))
	require.NoError(w, err)
	// By hand: nobody tells the holder.
	require.NoError(w, w.table.Write(ctx, table.Update(l.Key(), table.Attr("line").At(0).Remove(), table.Attr("fence").Set(first.Fence+1))))
	between, err := op.TryAcquire(ctx, lock.Name("report"))
	require.NoError(w, err)
	require.NoError(w, between.Release(ctx))
	time.Sleep(comes)
	r, err := op.Inspect(ctx, lock.Name("report"))
	require.NoError(w, err)
	require.Equal(w, first.Holder().Ticket, r.Holder().Ticket, "the ghost is there")
	require.Equal(w, first.Fence+2, r.Fence)
	return r
}

// A request of a holder that comes in late once more, after others have held the lock, names
// its ticket again: that gives the old lease nothing back.
func TestGhostGivesAnOldLeaseNothingBack(t *testing.T) {
	for _, does := range []string{"write", "guard", "set data", "commit", "release"} {
		ghostGivesNothingBack(t, does, false)
		ghostGivesNothingBack(t, does, true) // the ghost was freed, for somebody who has waited for it
	}
}

func ghostGivesNothingBack(t *testing.T, does string, freed bool) {
	t.Helper()
	t.Run(fmt.Sprintf("%s, freed %v", does, freed), func(t *testing.T) {
		virtual(t, func(ctx context.Context, w *world) {
			c, op := w.client(lock.Config{}), w.client(lock.Config{})
			w.engine.ResetRequests()
			w.engine.Inject(tabletest.Fault{Kind: tabletest.DropRequest, Call: 1, For: time.Minute})
			l, err := c.Acquire(ctx, lock.Name("report"))
			require.NoError(t, err)
			w.ghosted(ctx, op, l, 70*time.Second)
			require.NoError(t, context.Cause(l.Context()), "nobody has told the holder")
			if freed {
				_, err := op.Acquire(ctx, lock.Name("report"))
				require.NoError(t, err)
				require.ErrorIs(t, context.Cause(l.Context()), lock.ErrLost)
			}
			switch does {
			case "write":
				require.ErrorIs(t, l.Write(ctx, w.put("x")), lock.ErrLost)
			case "guard":
				require.ErrorIs(t, w.table.Write(ctx, w.put("x"), l.Guard()), lock.ErrLost)
			case "set data":
				require.ErrorIs(t, l.SetData(ctx, "x"), lock.ErrLost)
			case "commit":
				require.ErrorIs(t, l.Commit(ctx, w.put("x")), lock.ErrLost)
				_, err := w.table.Get(ctx, w.row("x"), true)
				require.ErrorIs(t, err, table.ErrNotFound, "others have held the lock since")
			case "release":
				require.ErrorIs(t, l.Release(ctx), lock.ErrLost)
				if !freed { // a ghost is first for at most a lease and a quarter, and the jitter of renewals
					waiting, cancel := context.WithTimeout(ctx, 28*time.Second)
					defer cancel()
					_, err := op.Acquire(waiting, lock.Name("report"))
					require.NoError(t, err)
				}
			}
		})
	})
}

// Nor can it be handed over, by a holder that nobody has told, to somebody who has not looked since.
func TestGhostHasNothingHandedOver(t *testing.T) {
	for _, commits := range []bool{false, true} {
		virtual(t, func(ctx context.Context, w *world) {
			c, op := w.client(lock.Config{}), w.client(lock.Config{})
			w.engine.ResetRequests()
			w.engine.Inject(tabletest.Fault{Kind: tabletest.DropRequest, Call: 1, For: 5 * time.Second})
			l, err := c.Acquire(ctx, lock.Name("report"))
			require.NoError(t, err)
			got := acquireAsync(ctx, c, lock.Name("report"))
			w.engine.Inject(tabletest.Fault{Kind: tabletest.DropRequest, Operation: "BatchGetItem"})
			r := w.ghosted(ctx, op, l, 6*time.Second)
			require.Empty(t, got)
			if commits {
				require.ErrorIs(t, l.Commit(ctx, w.put("x")), lock.ErrLost)
				_, err := w.table.Get(ctx, w.row("x"), true)
				require.ErrorIs(t, err, table.ErrNotFound, "others have held the lock since")
			} else {
				require.ErrorIs(t, l.Release(ctx), lock.ErrLost)
			}
			w.engine.ClearFaults()
			next := <-got
			require.NotNil(t, next)
			require.Greater(t, next.Fence(), r.Fence)
			require.NoError(t, next.Release(ctx))
		})
	}
}

// An operator asks first, and then takes the lock by force: OnLost is told.
func TestOnLostAfterARevocation(t *testing.T) {
	for _, asks := range []bool{false, true} {
		virtual(t, func(ctx context.Context, w *world) {
			lost := make(chan error, 1)
			config := quiet
			config.OnLost = func(_ *lock.Lease, cause error) { lost <- cause }
			c, other := w.client(config), w.client(quiet)
			l, err := c.Acquire(ctx, lock.Name("report"))
			require.NoError(t, err)
			if asks {
				require.NoError(t, other.Revoke(ctx, lock.Name("report")))
				<-l.Context().Done()
				require.NoError(t, l.Write(ctx, w.put("x")))
			}
			w.force(ctx, other, lock.Name("report"))
			time.Sleep(time.Minute)
			select {
			case cause := <-lost:
				assert.ErrorIs(t, cause, lock.ErrStolen)
			default:
				assert.Fail(t, "nobody was told", "asks: %t", asks)
			}
		})
	}
}

// The context of a lease that was asked back has told its cause. What ends it later counts all the
// same: Do does not say that all was well.
func TestDoTellsOfALossAfterARevocation(t *testing.T) {
	for _, asks := range []bool{false, true} {
		virtual(t, func(ctx context.Context, w *world) {
			wire := &line{to: w.engine.HTTPClient()}
			lost := make(chan error, 1)
			config := quiet
			config.OnLost = func(_ *lock.Lease, cause error) { lost <- cause }
			c := w.clientOver(wire, config)
			var renewed error
			err := c.Do(ctx, lock.Name("report"), func(_ context.Context, l *lock.Lease) error {
				if asks {
					assert.NoError(t, c.Revoke(ctx, lock.Name("report")))
				}
				wire.cut(refused)
				time.Sleep(time.Minute)
				wire.cut(open)
				renewed = l.Renew(ctx)
				return nil
			})
			require.ErrorIs(t, <-lost, lock.ErrExpired)
			require.ErrorIs(t, err, lock.ErrExpired, "asks: %t", asks)
			require.ErrorIs(t, renewed, lock.ErrExpired, "asks: %t", asks)
		})
	}
}

// A holder of the same client whose session has ended is told of no more than any other's: nobody is
// left who could release.
func TestRevokeOfAnOwnLeaseThatWasLost(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		wire := &line{to: w.engine.HTTPClient()}
		c, other := w.clientOver(wire, quiet), w.client(quiet)
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		wire.cut(refused)
		time.Sleep(time.Minute)
		wire.cut(open)
		require.ErrorIs(t, context.Cause(l.Context()), lock.ErrExpired)
		require.ErrorIs(t, other.Revoke(ctx, lock.Name("report")), lock.ErrNoSession)
		require.ErrorIs(t, c.Revoke(ctx, lock.Name("report")), lock.ErrNoSession)
	})
}

// A lease that was asked back goes on, and says so, until it is given up or lost.
func TestLeaseGoesOnAfterARevocation(t *testing.T) {
	for _, lost := range []bool{false, true} {
		virtual(t, func(ctx context.Context, w *world) {
			wire := &line{to: w.engine.HTTPClient()}
			c := w.clientOver(wire, quiet)
			l, err := c.Acquire(ctx, lock.Name("report"))
			require.NoError(t, err)
			require.NoError(t, c.Revoke(ctx, l.Target()))
			require.ErrorIs(t, context.Cause(l.Context()), lock.ErrRevoked)
			time.Sleep(time.Minute)
			assert.Greater(t, l.Remaining(), 10*time.Second)
			require.NoError(t, l.Renew(ctx))
			require.NoError(t, l.Write(ctx, w.count("n")))
			want := lock.ErrReleased
			if lost {
				wire.cut(refused)
				time.Sleep(time.Minute)
				want = lock.ErrExpired
			} else {
				require.NoError(t, l.Release(ctx))
			}
			assert.Zero(t, l.Remaining())
			require.ErrorIs(t, l.Renew(ctx), want)
		})
	}
}

// An end that lies further ahead than a duration can say is no end that lies back.
func TestRecordedEndInADistantFuture(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(lock.Config{})
		const distant = 999_999_999_999_999
		require.NoError(t, w.table.Write(ctx, table.Put(w.lineRow("report", text(fmt.Sprintf("ANOTHER@%d+60000 another", distant))))))
		var err error
		ops := w.requests(func() { _, err = c.TryAcquire(ctx, lock.Name("report"), lock.Fixed(time.Minute)) })
		require.ErrorIs(t, err, lock.ErrHeld)
		assert.Len(t, ops, 1)
	})
}

// A lock that was taken by force from an attempt whose answer hangs, and that the next attempt has got, is
// held: what its session is told is about the first one.
func TestForcedBetweenTwoAttempts(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c, op := w.client(lock.Config{}), w.client(lock.Config{})
		_, err := c.Acquire(ctx, lock.Name("other")) // the session goes on
		require.NoError(t, err)
		w.engine.ResetRequests()
		w.engine.Inject(tabletest.Fault{Kind: tabletest.Delay, After: true, For: 10 * time.Second, Call: 1})
		time.AfterFunc(time.Second, func() {
			r, err := op.Inspect(ctx, lock.Name("report"))
			assert.NoError(t, err)
			assert.NoError(t, op.ForceRelease(ctx, lock.Name("report"), r.Holder().Ticket))
		})
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		time.Sleep(10 * time.Second)
		r, err := op.Inspect(ctx, lock.Name("report"))
		require.NoError(t, err)
		require.True(t, r.Held())
		require.Equal(t, l.Fence(), r.Fence)
		require.NoError(t, context.Cause(l.Context()))
		require.NoError(t, op.ForceRelease(ctx, lock.Name("report"), r.Holder().Ticket))
		time.Sleep(10 * time.Second)
		require.ErrorIs(t, context.Cause(l.Context()), lock.ErrStolen)
	})
}

// Revoke asks who holds the lock now.
func TestRevoke_ReadsConsistently(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		holder, op := w.client(lock.Config{}), w.client(lock.Config{})
		l, err := holder.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		require.NoError(t, l.Release(ctx))
		_, err = holder.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		w.engine.Inject(tabletest.Fault{Kind: tabletest.StaleRead, Writes: 1})
		require.NoError(t, op.Revoke(ctx, lock.Name("report")))
	})
}

// A row that somebody else frees keeps three quarters of its retention, however long its holder has been dead.
func TestForceRelease_KeepsTheFence(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		const retention = 30 * time.Hour
		config := lock.Config{Retention: retention, Logger: quiet.Logger}
		way := &line{to: w.engine.HTTPClient()}
		l, err := w.clientOver(way, config).Acquire(ctx, lock.Name("report"), lock.Fixed(time.Hour))
		require.NoError(t, err)
		way.cut(refused)
		for _, after := range []time.Duration{3 * time.Hour, 9 * time.Hour, 21 * time.Hour} {
			again := w.engine.Snapshot()
			time.Sleep(after)
			op := w.client(config)
			w.force(ctx, op, lock.Name("report"))
			assert.GreaterOrEqual(t, time.Until(w.deleted(ctx, l.Key())), retention/4*3-time.Second)
			w.engine.Restore(again)
		}
	})
}

// Reasons have up to MaxReason bytes, and say who it was where none is given.
func TestForceRelease_RecordsItsReason(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		op := w.client(lock.Config{Owner: "operator"})
		whole := strings.Repeat("x", lock.MaxReason)
		for given, want := range map[string]string{whole: whole, "": "forced by operator", "hung": "hung"} {
			_, err := w.client(quiet).Acquire(ctx, lock.Name("report"))
			require.NoError(t, err)
			r, err := op.Inspect(ctx, lock.Name("report"))
			require.NoError(t, err)
			require.NoError(t, op.ForceRelease(ctx, lock.Name("report"), r.Holder().Ticket, given))
			r, err = op.Inspect(ctx, lock.Name("report"))
			require.NoError(t, err)
			assert.Equal(t, want, r.Forced)
		}
		_, err := w.client(quiet).Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		require.ErrorIs(t, op.ForceRelease(ctx, lock.Name("report"), "x", whole+"x"), lock.ErrInvalid)
	})
}
