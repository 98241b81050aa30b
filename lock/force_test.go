package lock_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/entity"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

func TestForceRelease_TakesWhatWasSeen(t *testing.T) {
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

// An operator forces the holder that it saw: the ticket of a refusal, or of Inspect, names that holder alone.
func TestForceRelease_TakesTheTicketThatWasSeen(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		target := lock.Name("report")
		op := w.named("op")
		l, err := w.named("a").Acquire(ctx, target)
		require.NoError(t, err)
		behind := acquireAsync(ctx, w.named("b"), target)
		r, err := op.Inspect(ctx, target)
		require.NoError(t, err)
		require.Equal(t, []string{"a", "b"}, ownersOf(r.Line))

		var held *lock.HeldError
		err = op.ForceRelease(ctx, target, r.Line[1].Ticket)
		require.ErrorAs(t, err, &held, "who waits holds nothing")
		assert.Equal(t, r.Line[0].Ticket, held.Ticket)
		require.NoError(t, context.Cause(l.Context()))

		require.NoError(t, op.ForceRelease(ctx, target, r.Line[0].Ticket, "it hangs"))
		next := <-behind
		require.NotNil(t, next, "the next one in line has it")
		assert.Equal(t, l.Fence()+1, next.Fence())
		require.ErrorIs(t, l.Write(ctx, w.put("x")), lock.ErrLost)
		require.NoError(t, next.Write(ctx, w.put("x")))
		r2, err := op.Inspect(ctx, target)
		require.NoError(t, err)
		assert.Equal(t, "it hangs", r2.Forced)

		err = op.ForceRelease(ctx, target, r.Line[0].Ticket)
		require.ErrorAs(t, err, &held, "by now it is another's")
		assert.Equal(t, r2.Line[0].Ticket, held.Ticket)
		require.NoError(t, next.Release(ctx))
		require.ErrorIs(t, op.ForceRelease(ctx, target, r2.Line[0].Ticket), lock.ErrNotHeld)
	})
}

// A ForceRelease whose answer was lost is recognised, also if another client has acquired before it is sent again.
func TestForceRelease_IsRecognisedUnderTheNextHolder(t *testing.T) {
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

// A row that ForceRelease frees is kept for at least three quarters of its retention, however long its holder has been dead.
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

// A reason has up to MaxReason bytes. Without one, the operator's name is recorded.
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
		l, err := w.client(quiet).Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		require.ErrorIs(t, op.ForceRelease(ctx, lock.Name("report"), "x", whole+"x"), lock.ErrInvalid)
		r, err := op.Inspect(ctx, lock.Name("report"))
		require.NoError(t, err)
		assert.NotEmpty(t, r.Forced, "until the next holder leaves")
		require.NoError(t, l.Release(ctx))
		r, err = op.Inspect(ctx, lock.Name("report"))
		require.NoError(t, err)
		assert.Empty(t, r.Forced)
	})
}

// A lock was taken by force from an attempt whose answer hangs, and granted to the next attempt. It is held: the session is
// told only about the first attempt.
func TestForceRelease_OfAnEarlierAttemptKeepsTheLease(t *testing.T) {
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

// One holder was forced before. Another one, which releases by itself meanwhile, is not said to have been forced.
func TestForceRelease_OfOneThatHasLeftIsRefused(t *testing.T) {
	for name, opt := range map[string]lock.Option{"permits": lock.Permits(3), "readers": lock.Shared()} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				op := w.client(quiet)
				var list []*lock.Lease
				for _, c := range w.clients(3) {
					l, err := c.Acquire(ctx, catalogue, opt)
					require.NoError(t, err)
					list = append(list, l)
				}
				require.NoError(t, op.ForceRelease(ctx, catalogue, list[0].Ticket()))
				w.engine.Inject(tabletest.Fault{
					Kind: tabletest.Delay, For: time.Second, Operation: "UpdateItem", Times: 1, Key: w.table.KeyItem(list[0].Key()),
				})
				time.AfterFunc(500*time.Millisecond, func() { _ = list[1].Release(ctx) })
				require.ErrorIs(t, op.ForceRelease(ctx, catalogue, list[1].Ticket()), lock.ErrHeld)
			})
		})
	}
}

// A reader whose lease was taken by force, while others read on, is told so, also if a copy of its entry arrives later.
func TestForceRelease_OfAReaderIsToldThroughALateCopy(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c, op := w.client(quiet), w.client(quiet)
		other, err := w.client(quiet).Acquire(ctx, catalogue, lock.Shared())
		require.NoError(t, err)
		w.engine.Inject(tabletest.Fault{
			Kind: tabletest.DuplicateLate, Operation: "UpdateItem", For: time.Second, Times: 1, Key: w.table.KeyItem(other.Key()),
		})
		l, err := c.Acquire(ctx, catalogue, lock.Shared())
		require.NoError(t, err)
		require.NoError(t, op.ForceRelease(ctx, catalogue, l.Ticket()))
		time.Sleep(time.Minute)
		require.ErrorIs(t, context.Cause(l.Context()), lock.ErrStolen)
		require.ErrorIs(t, l.Write(ctx, w.put("x")), lock.ErrLost)
	})
}

// A client that forces its own lock lets go of a pass that may have been applied.
func TestForceRelease_OfAnOwnPassLeavesNothing(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		way := &line{to: w.engine.HTTPClient()}
		c := w.clientOver(way, quiet)
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		waiting, leave := context.WithCancel(ctx)
		go func() { _, _ = c.Acquire(waiting, lock.Name("report")) }()
		time.Sleep(time.Second)
		w.engine.Inject(tabletest.Fault{Kind: tabletest.DropRequest, Operation: "UpdateItem", Key: w.table.KeyItem(l.Key()), Times: 100})
		w.releaseInVain(ctx, l)
		w.engine.ClearFaults()
		leave()
		require.NoError(t, c.ForceRelease(ctx, lock.Name("report"), l.Ticket()))
		time.Sleep(time.Hour)
		w.engine.ResetRequests()
		time.Sleep(time.Hour)
		assert.Empty(t, w.engine.Requests(), "the client is idle")
	})
}

// A row is mended while ForceRelease wants to reset it. If the call succeeds, the holder holds no more.
func TestForceRelease_OfARowThatIsMendedMeanwhile(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		l, err := w.client(quiet).Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		line := table.Attr("line")
		require.NoError(t, w.table.Write(ctx, table.Update(l.Key(), line.Set(line.Append(listOf(text("a ticket of a later version")))))))
		var once sync.Once
		op := w.clientOver(w.passing(func(operation, body string, send func() (*http.Response, error)) (*http.Response, error) {
			if operation == "UpdateItem" && strings.Contains(body, "LOCK#report") {
				once.Do(func() { assert.NoError(t, w.table.Write(ctx, table.Update(l.Key(), line.At(1).Remove()))) })
			}
			return send()
		}), quiet)
		if op.ForceRelease(ctx, lock.Name("report"), l.Ticket()) == nil {
			require.ErrorIs(t, l.Write(ctx, w.put("x")), lock.ErrLost)
		} else {
			require.NoError(t, l.Write(ctx, w.put("x")))
		}
	})
}

// An answer takes 2.5 s, and meanwhile an operator forces the lock that it grants. The lease that follows is told. A goroutine that would get
// the lock by a pass learns it before it has a lease: it enters the line again.
func TestForceRelease_TellsALeaseWhoseAnswerIsOnItsWay(t *testing.T) {
	for how, takes := range map[string]func(ctx context.Context, w *world, c *lock.Client, slow func()) *lock.Lease{
		"try": func(ctx context.Context, w *world, c *lock.Client, slow func()) *lock.Lease {
			slow()
			l, err := c.TryAcquire(ctx, lock.Name("report"))
			require.NoError(w, err)
			return l
		},
		"pass": func(ctx context.Context, w *world, c *lock.Client, slow func()) *lock.Lease {
			l, err := c.Acquire(ctx, lock.Name("report"))
			require.NoError(w, err)
			next := acquireAsync(ctx, c, lock.Name("report"))
			slow()
			require.NoError(w, l.Release(ctx))
			return <-next
		},
	} {
		for by, same := range map[string]bool{"another client": false, "the same client": true} {
			t.Run(how+", forced by "+by, func(t *testing.T) {
				virtual(t, func(ctx context.Context, w *world) {
					c, op := w.client(lock.Config{Lease: 8 * time.Second}), w.client(lock.Config{})
					if same {
						op = c
					}
					_, err := c.Acquire(ctx, lock.Name("keeps the session"))
					require.NoError(t, err)
					l := takes(ctx, w, c, func() {
						w.engine.ResetRequests()
						w.engine.Inject(tabletest.Fault{Kind: tabletest.Delay, After: true, For: 2500 * time.Millisecond, Call: 1})
						time.AfterFunc(100*time.Millisecond, func() { w.force(ctx, op, lock.Name("report")) })
					})
					next, err := op.TryAcquire(ctx, lock.Name("report"))
					if how == "pass" {
						require.ErrorIs(t, err, lock.ErrHeld)
						r, err := op.Inspect(ctx, lock.Name("report"))
						require.NoError(t, err)
						assert.Equal(t, l.Ticket(), r.Holder().Ticket)
						assert.Greater(t, l.Fence(), r.ForcedFence)
						time.Sleep(time.Minute)
						assert.NoError(t, l.Write(ctx, w.put("x")))
						assert.NoError(t, context.Cause(l.Context()))
						return
					}
					require.NoError(t, err)
					time.Sleep(time.Minute)
					assert.NoError(t, context.Cause(next.Context()))
					assert.ErrorIs(t, context.Cause(l.Context()), lock.ErrStolen)
				})
			})
		}
	}
}

// AcquireAll has the first lock and slowly reads the row of the second. Meanwhile an operator forces the first.
func TestForceRelease_TellsAcquireAllThatStillReads(t *testing.T) {
	for by, same := range map[string]bool{"another client": false, "the same client": true} {
		t.Run("by "+by, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				targets := names(2)
				held, err := w.client(quiet).Acquire(ctx, targets[1])
				require.NoError(t, err)
				var slow atomic.Bool
				reading := make(chan struct{}, 1)
				c := w.clientOver(w.passing(func(operation, body string, send func() (*http.Response, error)) (*http.Response, error) {
					if operation == "GetItem" && strings.Contains(body, "LOCK#n01") && slow.CompareAndSwap(true, false) {
						reading <- struct{}{}
						time.Sleep(2500 * time.Millisecond)
					}
					return send()
				}), lock.Config{Lease: 8 * time.Second, Logger: quiet.Logger})
				op := w.client(quiet)
				if same {
					op = c
				}
				got := make(chan *lock.Bundle, 1)
				go func() {
					b, err := c.AcquireAll(ctx, targets)
					assert.NoError(t, err)
					got <- b
				}()
				time.Sleep(10 * time.Second)
				slow.Store(true)
				w.engine.Inject(tabletest.Fault{Kind: tabletest.StaleRead, Writes: 50, Operation: "BatchGetItem", Times: 1})
				<-reading
				w.force(ctx, op, targets[0])
				require.NoError(t, held.Release(ctx))
				b := <-got
				next, err := op.TryAcquire(ctx, targets[0])
				require.NoError(t, err)
				time.Sleep(time.Minute)
				assert.NoError(t, context.Cause(next.Context()))
				assert.ErrorIs(t, context.Cause(b.Context()), lock.ErrStolen)
			})
		})
	}
}

// The row of a held lock is damaged, and an operator resets it. The holder is told.
func TestForceRelease_OfAMalformedRowTellsItsHolder(t *testing.T) {
	for by, same := range map[string]bool{"another client": false, "the same client": true} {
		t.Run("by "+by, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				holder, op := w.client(quiet), w.client(quiet)
				if same {
					op = holder
				}
				l, err := holder.Acquire(ctx, lock.Name("report"))
				require.NoError(t, err)
				require.NoError(t, w.table.Write(ctx, table.Update(l.Key(), table.Attr("hold").Set("damaged"))))
				require.NoError(t, op.ForceRelease(ctx, lock.Name("report"), l.Ticket()))
				next, err := w.client(quiet).Acquire(ctx, lock.Name("report"))
				require.NoError(t, err)
				time.Sleep(time.Minute)
				assert.NoError(t, context.Cause(next.Context()))
				assert.ErrorIs(t, context.Cause(l.Context()), lock.ErrStolen)
			})
		})
	}
}
