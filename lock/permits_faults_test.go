package lock_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/testkit"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// threeHold has three processes hold a lock at once. The one at the given place, from 0, sends over a line of its own.
func (w *world) threeHold(ctx context.Context, wire *line, place int, target lock.Target, opts ...lock.Option) (list []*lock.Lease) {
	for i := range 3 {
		c := w.client(quiet)
		if i == place {
			c = w.clientOver(wire, quiet)
		}
		l, err := c.Acquire(ctx, target, opts...)
		require.NoError(w, err)
		list = append(list, l)
	}
	return list
}

// The permit of a dead holder is free after its lease, wherever it stands, and the others are not touched.
func TestPermits_OfADeadHolderAreFree(t *testing.T) {
	const lease, skew, poll = 20 * time.Second, 2 * time.Second, 1125 * time.Millisecond
	for dead := range 3 {
		t.Run(fmt.Sprint("place ", dead), func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				wire := &line{to: w.engine.HTTPClient()}
				list := w.threeHold(ctx, wire, dead, exports, lock.Permits(3))
				wire.cut(refused)
				start := time.Now()
				bounded, cancel := context.WithTimeout(ctx, time.Minute)
				defer cancel()
				next, err := w.client(quiet).Acquire(bounded, exports, lock.Permits(3))
				require.NoError(t, err)
				testkit.Check(t, fmt.Sprint("permits, dead at place ", dead), testkit.AtMost(time.Since(start), " until another one has the permit", lease+skew+poll))
				wire.cut(open)
				require.ErrorIs(t, list[dead].Write(ctx, w.put("x")), lock.ErrLost)
				require.ErrorIs(t, list[dead].Release(ctx), lock.ErrLost)
				for i, l := range list {
					if i != dead {
						require.NoError(t, l.Context().Err())
						require.NoError(t, l.Write(ctx, w.put("x")))
						require.NoError(t, l.Release(ctx))
					}
				}
				require.NoError(t, next.Commit(ctx, w.put("x")))
			})
		})
	}
}

// TryAcquire takes a permit from a process that died long ago, also if nobody has watched.
func TestPermits_OfTheLongDeadAreTaken(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		wire := &line{to: w.engine.HTTPClient()}
		living, err := w.client(quiet).Acquire(ctx, exports, lock.Permits(2))
		require.NoError(t, err)
		_, err = w.clientOver(wire, quiet).Acquire(ctx, exports, lock.Permits(2))
		require.NoError(t, err)
		wire.cut(refused)
		time.Sleep(time.Hour)
		c := w.client(quiet)
		next, err := c.TryAcquire(ctx, exports, lock.Permits(2))
		require.NoError(t, err)
		_, err = c.TryAcquire(ctx, exports, lock.Permits(2))
		require.ErrorIs(t, err, lock.ErrHeld)
		require.NoError(t, living.Write(ctx, w.put("x")))
		for _, l := range []*lock.Lease{living, next} {
			require.NoError(t, l.Release(ctx))
		}
	})
}

// After a permit was released, a late duplicate of its enter, or of its write, changes nothing.
func TestPermits_LateDuplicatesGrantNothing(t *testing.T) {
	for name, op := range map[string]string{"of the enter": "UpdateItem", "of the write": "TransactWriteItems"} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				c, other := w.client(quiet), w.client(quiet)
				keeps, err := c.Acquire(ctx, lock.Name("keeps the session"))
				require.NoError(t, err)
				first, err := other.Acquire(ctx, exports, lock.Permits(2)) // otherwise the enter would create the row, which its copy cannot do again
				require.NoError(t, err)
				w.engine.Inject(tabletest.Fault{Kind: tabletest.DuplicateLate, Operation: op, For: 30 * time.Second, Times: 1})
				l, err := c.Acquire(ctx, exports, lock.Permits(2))
				require.NoError(t, err)
				require.NoError(t, l.Write(ctx, w.count("x")))
				require.NoError(t, l.Release(ctx))
				second, err := other.Acquire(ctx, exports, lock.Permits(2))
				require.NoError(t, err)
				time.Sleep(31 * time.Second)
				require.ErrorIs(t, l.Write(ctx, w.count("x")), lock.ErrReleased)
				require.ErrorIs(t, w.table.Write(ctx, w.count("x"), l.Guard()), table.ErrCondition)
				assert.EqualValues(t, 1, w.counted("x"))
				require.NoError(t, first.Release(ctx))
				require.NoError(t, second.Release(ctx))

				start := time.Now() // the ghost keeps nobody out for long
				var all []*lock.Lease
				for range 2 {
					l, err := other.Acquire(ctx, exports, lock.Permits(2))
					require.NoError(t, err)
					all = append(all, l)
				}
				assert.Less(t, time.Since(start), 30*time.Second)
				for _, l := range append(all, keeps) {
					require.NoError(t, l.Release(ctx))
				}
			})
		})
	}
}

// Whichever answer is lost, the permit is released once, and reported as released.
func TestPermits_AreReleasedThroughLostAnswers(t *testing.T) {
	for name, release := range map[string]func(ctx context.Context, w *world, l *lock.Lease) error{
		"release": func(ctx context.Context, _ *world, l *lock.Lease) error { return l.Release(ctx) },
		"commit":  func(ctx context.Context, w *world, l *lock.Lease) error { return l.Commit(ctx, w.count("x")) },
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				_, list := w.permits(ctx, 3, 3)
				for _, l := range list {
					w.engine.Inject(tabletest.Fault{Kind: tabletest.DropReply, Times: 1})
					require.NoError(t, release(ctx, w, l))
				}
				w.free(ctx, []lock.Target{exports})
				if name == "commit" {
					assert.EqualValues(t, 3, w.counted("x"))
				}
			})
		})
	}
}

// Many holders leave at once, so the place of each has moved. Nothing is lost.
func TestPermits_ManyEndAtOnce(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		_, list := w.permits(ctx, 30, 30)
		w.latency(2 * time.Millisecond)
		var all sync.WaitGroup
		errs := make([]error, len(list))
		ops := w.requests(func() {
			for i, l := range list {
				all.Go(func() {
					if i%3 == 0 {
						errs[i] = l.Commit(ctx, w.put(fmt.Sprint("x", i)))
					} else {
						errs[i] = l.Release(ctx)
					}
				})
			}
			all.Wait()
		})
		require.NoError(t, errors.Join(errs...))
		w.free(ctx, []lock.Target{exports})
		t.Logf("%d requests for 30 that end at once", len(ops))
		for _, l := range list {
			require.ErrorIs(t, context.Cause(l.Context()), lock.ErrReleased)
		}
	})
}

// A malformed row of permits grants nothing, and an operator can mend it.
func TestPermits_OfAMalformedRow(t *testing.T) {
	contract(t, keys.Scheme{}, func(ctx context.Context, p *place) {
		l, err := p.client.Acquire(ctx, exports, lock.Permits(2))
		require.NoError(p, err)
		require.NoError(p, p.table.Write(ctx, table.Update(l.Key(), table.Attr("stays").Set([]int64{}))))
		_, err = p.client.TryAcquire(ctx, exports, lock.Permits(2))
		require.ErrorIs(p, err, lock.ErrMalformed)
		require.ErrorIs(p, l.Write(ctx, table.Put(p.table.KeyItem(keys.NewKey("TENANT#t", "x")))), lock.ErrMalformed)
		require.NoError(p, p.client.ForceRelease(ctx, exports, l.Ticket()))
		next, err := p.client.TryAcquire(ctx, exports, lock.Permits(2))
		require.NoError(p, err)
		assert.Greater(p, next.Fence(), l.Fence())
		require.ErrorIs(p, l.Release(ctx), lock.ErrLost)
		require.NoError(p, next.Release(ctx))
	})
}

// A row of permits without a line is malformed, too. It looked free, but no ticket could enter: a try repeated its request without a pause.
func TestPermits_OfARowWithoutALine(t *testing.T) {
	contract(t, keys.Scheme{}, func(ctx context.Context, p *place) {
		l, err := p.client.Acquire(ctx, exports, lock.Permits(2))
		require.NoError(p, err)
		require.NoError(p, l.Release(ctx))
		require.NoError(p, p.table.Write(ctx, table.Update(l.Key(), table.Attr("line").Remove())))
		short, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		require.ErrorIs(p, errOf(p.client.TryAcquire(short, exports, lock.Permits(2))), lock.ErrMalformed)
		require.ErrorIs(p, errOf(p.client.Acquire(short, exports, lock.Permits(2))), lock.ErrMalformed)
		require.NoError(p, p.client.ForceRelease(ctx, exports, ""))
		require.NoError(p, errOf(p.client.TryAcquire(ctx, exports, lock.Permits(2))))
	})
}

// A permit that nobody uses is found by calls that give up soon, also if other calls of their client get the other permit meanwhile.
func TestGhost_OfAPermitIsFoundByCallsThatGiveUpSoon(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c, other := w.client(lock.Config{}), w.client(lock.Config{})
		require.NoError(t, errOf(c.Acquire(ctx, lock.Name("keeps the session"))))
		l, err := c.Acquire(ctx, exports, lock.Permits(2))
		require.NoError(t, err)
		ghost, err := w.table.Get(ctx, l.Key(), true)
		require.NoError(t, err)
		require.NoError(t, l.Release(ctx))
		next := ghost["next"].(*types.AttributeValueMemberL).Value[0]
		ghost["stays"].(*types.AttributeValueMemberL).Value[0] = next
		ghost["next"] = &types.AttributeValueMemberL{Value: []types.AttributeValue{numeral(number(t, next) + 1)}}
		require.NoError(t, w.table.Write(ctx, table.Put(ghost)))
		start, free := time.Now(), false
		for !free && time.Since(start) < 10*time.Minute {
			l, err := other.Acquire(ctx, exports, lock.Permits(2))
			require.NoError(t, err)
			short, cancel := context.WithTimeout(ctx, 5*time.Second)
			beside, err := other.Acquire(short, exports, lock.Permits(2))
			cancel()
			if free = err == nil; free {
				require.NoError(t, beside.Release(ctx))
			}
			require.NoError(t, l.Release(ctx))
			time.Sleep(time.Second)
		}
		assert.Less(t, time.Since(start), freeOfGhost+6*time.Second)
	})
}

// A call whose answer is lost had its permit before the permits were made fewer. It keeps it.
func TestSetPermits_KeepsThePermitOfACallWithoutAnAnswer(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		_, list := w.permits(ctx, 2, 3)
		op, c := w.client(quiet), w.client(quiet)
		w.engine.Inject(tabletest.Fault{
			Kind: tabletest.Delay, After: true, For: time.Hour, Times: 1, Operation: "UpdateItem", Key: w.table.KeyItem(list[0].Key()),
		})
		time.AfterFunc(time.Second, func() { assert.NoError(t, op.SetPermits(ctx, exports, 2)) })
		l, err := c.TryAcquire(ctx, exports, lock.Permits(3))
		require.NoError(t, err)
		require.NoError(t, l.Write(ctx, w.put("x")))
		require.ErrorIs(t, errOf(op.TryAcquire(ctx, exports, lock.Permits(2))), lock.ErrHeld)
		for _, l := range append(list, l) {
			require.NoError(t, l.Release(ctx))
		}
		for range 2 {
			require.NoError(t, errOf(op.TryAcquire(ctx, exports, lock.Permits(2))))
		}
	})
}

// If the permits are made fewer than their holders, all of these hold on. Each can be asked for its permit, and forced.
func TestSetPermits_ReachesHoldersBeyondTheNumber(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		_, list := w.permits(ctx, 3, 3)
		op := w.client(quiet)
		require.NoError(t, op.SetPermits(ctx, exports, 2))
		require.NoError(t, list[2].Write(ctx, w.put("x")), "it holds on")
		require.NoError(t, op.Revoke(ctx, exports))
		time.Sleep(6 * time.Second)
		for i, l := range list {
			assert.ErrorIs(t, context.Cause(l.Context()), lock.ErrRevoked, "%d", i)
		}
		require.NoError(t, op.ForceRelease(ctx, exports, list[2].Ticket()))
		require.ErrorIs(t, list[2].Write(ctx, w.put("x")), lock.ErrLost)
	})
}

// A commit under a permit that was refused, and is said not to be applied, is not applied later.
func TestCommit_OfAPermitThatWasRefusedIsNotAppliedLater(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		_, list := w.permits(ctx, 2, 2)
		time.Sleep(time.Second)
		attempts := 0
		w.engine.Inject(
			tabletest.Fault{Kind: tabletest.DropRequest, Operation: "TransactWriteItems", Times: 1, For: 10 * time.Second},
			tabletest.Fault{
				Kind: tabletest.Delay, Operation: "TransactWriteItems", For: time.Second,
				When: func(tabletest.Request) bool { attempts++; return attempts == 3 },
			},
		)
		time.AfterFunc(500*time.Millisecond, func() { assert.NoError(t, w.table.Write(ctx, w.put("blocked"))) })
		err := list[1].Commit(ctx, w.count("n"), table.Check(w.row("blocked"), table.Attr("pk").NotExists()))
		require.ErrorIs(t, err, table.ErrCondition)
		may := table.MayBeApplied(err)
		require.NoError(t, w.table.Write(ctx, table.Delete(w.row("blocked"))))
		require.NoError(t, list[0].Release(ctx))
		time.Sleep(time.Minute)
		assert.True(t, may || w.counted("n") == 0)
	})
}

// A commit is applied late at the place that it has named, after it was refused at that place.
func TestCommit_OfAPermitThatWasAppliedLateIsNoLoss(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		name := lock.Name("report")
		get := func() *lock.Lease {
			l, err := w.client(lock.Config{}).Acquire(ctx, name, lock.Permits(3))
			require.NoError(t, err)
			return l
		}
		first := get()
		time.Sleep(10 * time.Second)
		require.NoError(t, first.Release(ctx))
		a, _, l := get(), get(), get()
		time.Sleep(5 * time.Second)
		n := 0
		w.engine.Inject(tabletest.Fault{Kind: tabletest.DropRequest, Operation: "TransactWriteItems", Times: 1, For: 2 * time.Second})
		w.engine.Inject(tabletest.Fault{Kind: tabletest.Delay, Operation: "TransactWriteItems", For: 3 * time.Second, When: func(tabletest.Request) bool { n++; return n == 3 }})
		time.AfterFunc(time.Second, func() { assert.NoError(t, a.Release(ctx)) })
		err := l.Commit(ctx, w.count("n"))
		require.EqualValues(t, 1, w.counted("n"))
		require.NotErrorIs(t, err, lock.ErrLost)
		require.True(t, table.MayBeApplied(err))
	})
}

// A release without an answer, and the row shows that somebody was forced. Unless the fence tells that it was another one,
// the error says both.
func TestRelease_WithoutAnAnswerBesideAForceIsInDoubt(t *testing.T) {
	lost := func(l *lock.Lease, w *world) {
		w.engine.Inject(tabletest.Fault{Kind: tabletest.DropReply, Operation: "UpdateItem", Key: w.table.KeyItem(l.Key()), Times: 1})
	}
	never := "permit, under a fence after the forced one"
	for name, release := range map[string]func(ctx context.Context, w *world, op *lock.Client) error{
		"permit": func(ctx context.Context, w *world, op *lock.Client) error {
			_, list := w.permits(ctx, 3, 3)
			require.NoError(w, op.ForceRelease(ctx, exports, list[2].Ticket()))
			lost(list[0], w)
			return list[0].Release(ctx)
		},
		"permit, after a write": func(ctx context.Context, w *world, op *lock.Client) error {
			_, list := w.permits(ctx, 2, 2)
			require.NoError(w, op.ForceRelease(ctx, exports, list[1].Ticket()))
			require.NoError(w, list[0].Write(ctx, w.put("x")))
			lost(list[0], w)
			return list[0].Release(ctx)
		},
		never: func(ctx context.Context, w *world, op *lock.Client) error {
			_, list := w.permits(ctx, 2, 2)
			require.NoError(w, op.ForceRelease(ctx, exports, list[0].Ticket()))
			require.NoError(w, list[1].Write(ctx, w.put("x")))
			lost(list[1], w)
			return list[1].Release(ctx)
		},
		"lock": func(ctx context.Context, w *world, op *lock.Client) error {
			l, err := w.client(quiet).Acquire(ctx, exports)
			require.NoError(w, err)
			got := acquireAsync(ctx, w.client(quiet), exports)
			w.engine.Inject(tabletest.Fault{
				Kind: tabletest.Delay, After: true, For: 2900 * time.Millisecond, Operation: "UpdateItem", Key: w.table.KeyItem(l.Key()), Times: 1,
			})
			lost(l, w)
			go func() {
				next := <-got
				assert.NoError(w, op.ForceRelease(ctx, exports, next.Ticket()))
			}()
			return l.Release(ctx)
		},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				err := release(ctx, w, w.client(quiet))
				if name == never {
					require.NoError(t, err)
					return
				}
				require.ErrorIs(t, err, lock.ErrLost)
				require.NotErrorIs(t, err, lock.ErrStolen)
				assert.ErrorContains(t, err, "or was released by an earlier attempt")
			})
		})
	}
}

// A permit that the restored table does not know is valid no more, although its place is that of another one.
func TestPermits_GuardOfBeforeARestoreIsRefused(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		a, b, c := w.client(quiet), w.client(quiet), w.client(quiet)
		first, err := a.Acquire(ctx, exports, lock.Permits(2))
		require.NoError(t, err)
		backup := w.engine.Snapshot()
		gone, err := b.Acquire(ctx, exports, lock.Permits(2))
		require.NoError(t, err)
		w.engine.Restore(backup)
		next, err := c.Acquire(ctx, exports, lock.Permits(2))
		require.NoError(t, err)
		require.NoError(t, first.Write(ctx, w.count("n")))
		require.NoError(t, next.Write(ctx, w.count("n")))
		require.ErrorIs(t, w.table.Write(ctx, w.count("n"), gone.GuardToken().Guard(w.table)), lock.ErrLost)
		require.ErrorIs(t, gone.Write(ctx, w.count("n")), lock.ErrLost)
	})
}

func TestPermits_CallAtAMalformedRowLeavesNothing(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		_, list := w.permits(ctx, 1, 2)
		c, key := w.client(quiet), list[0].Key()
		require.NoError(t, w.table.Write(ctx, table.Update(key, table.Attr("hold").Set("x"))))
		require.ErrorIs(t, errOf(c.TryAcquire(ctx, exports, lock.Permits(2))), lock.ErrMalformed)
		time.Sleep(time.Minute)
		row, err := w.table.Get(ctx, key, true)
		require.NoError(t, err)
		assert.Len(t, lineIn(row), 1)
		assert.Len(t, row["stays"].(*types.AttributeValueMemberL).Value, 1)
		require.NoError(t, w.table.Write(ctx, table.Update(key, table.Attr("hold").Remove()))) // mended by hand
		require.NoError(t, errOf(c.TryAcquire(ctx, exports, lock.Permits(2))))
	})
}

// No client has written the number in "kept".
func TestPermits_ForgedNumberOfHoldersGrantsNothing(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		_, list := w.permits(ctx, 2, 2)
		require.NoError(t, w.table.Write(ctx, table.Update(list[0].Key(), table.Attr("kept").Set(int64(1)<<62))))
		bounded, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		require.Error(t, errOf(w.client(quiet).Acquire(bounded, exports, lock.Permits(2))), "three would hold two permits")
	})
}

// An outage does not end a wait, also if the number of permits was changed before it.
func TestSetPermits_WaiterOutlastsAnOutage(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		_, list := w.permits(ctx, 3, 3)
		wire := &line{to: w.engine.HTTPClient()}
		c := w.clientOver(wire, quiet)
		ended := make(chan error, 1)
		go func() { ended <- errOf(c.Acquire(ctx, exports, lock.Permits(3))) }()
		time.Sleep(time.Second)
		require.NoError(t, w.client(quiet).SetPermits(ctx, exports, 2))
		time.Sleep(time.Second)
		wire.cut(refused)
		time.Sleep(time.Minute)
		wire.cut(open)
		time.Sleep(time.Minute)
		require.Empty(t, ended, "it goes on waiting")
		for _, l := range list {
			require.NoError(t, l.Release(ctx))
		}
		require.NoError(t, <-ended)
	})
}

// The place of a holder has moved up. A condition that fails is the caller's own.
func TestCommit_BesideOtherHoldersNamesNoOperationOfItsOwn(t *testing.T) {
	for name, opt := range map[string]lock.Option{"permits": lock.Permits(2), "shared": lock.Shared()} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				require.NoError(t, w.table.Write(ctx, w.put("x")))
				a, err := w.client(quiet).Acquire(ctx, exports, opt)
				require.NoError(t, err)
				b, err := w.client(quiet).Acquire(ctx, exports, opt)
				require.NoError(t, err)
				require.NoError(t, a.Release(ctx))
				err = b.Commit(ctx, w.put("x").If(table.Attr("pk").NotExists()))
				require.ErrorIs(t, err, table.ErrCondition)
				for _, failed := range table.Conditions(err) {
					assert.Zero(t, failed.Index, "%v", err)
				}
			})
		})
	}
}

// SetPermits makes the permits fewer for the second time. Between its read and its write others come to hold: they hold on, too.
func TestSetPermits_KeepsThoseWhoComeToHoldMeanwhile(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		_, list := w.permits(ctx, 5, 5)
		next := acquireAsync(ctx, w.client(quiet), exports, lock.Permits(5))
		acquireAsync(ctx, w.client(quiet), exports, lock.Permits(5))
		var once sync.Once
		op := w.clientOver(w.passing(func(operation, body string, send func() (*http.Response, error)) (*http.Response, error) {
			if operation == "UpdateItem" && strings.Contains(body, `"permits"`) && strings.Contains(body, `"N":"2"`) {
				once.Do(func() {
					for _, l := range list[:3] {
						assert.NoError(t, l.Release(ctx))
					}
					assert.NotNil(t, <-next)
				})
			}
			return send()
		}), quiet)
		require.NoError(t, op.SetPermits(ctx, exports, 3))
		ops := w.requests(func() { require.NoError(t, op.SetPermits(ctx, exports, 2)) })
		r, err := op.Inspect(ctx, exports)
		require.NoError(t, err)
		assert.Len(t, r.Line, 4)
		assert.Len(t, r.Holders(), 3, "nobody loses a permit")
		assert.GreaterOrEqual(t, times("GetItem", ops), 2)
	})
}
