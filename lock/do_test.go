package lock_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/engines/faulty"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

func TestTryDo_RunsUnderAFreeLock(t *testing.T) {
	contract(t, keys.Scheme{}, func(ctx context.Context, p *place) {
		row := keys.NewKey("ROW", "1")
		for name, opts := range leases() {
			var used *lock.Lease
			held, err := p.client.TryDo(ctx, lock.Name("report"), func(ctx context.Context, l *lock.Lease) error {
				used = l
				assert.NoError(p, ctx.Err())
				return l.Write(ctx, table.Put(p.table.KeyItem(row)))
			}, opts...)
			require.NoError(p, err, name)
			assert.Nil(p, held, name)
			require.NotNil(p, used, name)
			require.ErrorIs(p, context.Cause(used.Context()), lock.ErrReleased, name)
		}
		r, err := p.client.Inspect(ctx, lock.Name("report"))
		require.NoError(p, err)
		assert.False(p, r.Held())
	})
}

func TestTryDo_TellsWhoHoldsTheLock(t *testing.T) {
	contract(t, keys.Scheme{}, func(ctx context.Context, p *place) {
		other := p.open(lock.Config{Owner: "other"})
		l, err := p.client.Acquire(ctx, lock.Name("report"))
		require.NoError(p, err)
		require.NoError(p, other.Do(ctx, lock.Name("warm"), func(context.Context, *lock.Lease) error { return nil }))
		for c, own := range map[*lock.Client]bool{p.client: true, other: false} {
			cost := totals(ctx, func(ctx context.Context) {
				held, err := c.TryDo(ctx, lock.Name("report"), func(context.Context, *lock.Lease) error {
					assert.Fail(p, "f runs under a lock that another holds")
					return nil
				})
				require.NoError(p, err)
				require.NotNil(p, held)
				assert.Equal(p, "test", held.Owner)
				assert.Equal(p, l.Fence(), held.Fence)
				assert.Equal(p, lock.Name("report"), held.Target)
				assert.Equal(p, own, held.Own)
			})
			assert.EqualValues(p, 1, cost.Requests)
			require.NoError(p, l.Write(ctx, table.Delete(keys.NewKey("ROW", "1"))), "the holder goes on")
		}
	})
}

// held is about the target alone. Errors of the function are the caller's, whatever they match.
func TestTryDo_ReturnsTheErrorOfTheFunction(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c, other := w.client(lock.Config{}), w.client(lock.Config{})
		_, err := other.Acquire(ctx, lock.Name("inner"))
		require.NoError(t, err)
		held, err := c.TryDo(ctx, lock.Name("outer"), func(ctx context.Context, _ *lock.Lease) error {
			_, err := c.TryAcquire(ctx, lock.Name("inner"))
			return err
		})
		require.ErrorIs(t, err, lock.ErrHeld)
		assert.Nil(t, held)

		held, err = c.TryDo(ctx, lock.Name("outer"), func(ctx context.Context, l *lock.Lease) error {
			w.force(ctx, other, l.Target())
			return nil
		})
		require.ErrorIs(t, err, lock.ErrLost)
		assert.Nil(t, held)

		assert.PanicsWithValue(t, "oops", func() {
			_, _ = c.TryDo(ctx, lock.Name("outer"), func(context.Context, *lock.Lease) error { panic("oops") })
		})
		w.free(ctx, []lock.Target{lock.Name("outer")})

		held, err = c.TryDo(ctx, lock.Name("outer"), nil)
		require.ErrorIs(t, err, lock.ErrInvalid)
		assert.Nil(t, held)
		ended, end := context.WithCancelCause(ctx)
		mine := errors.New("mine")
		end(mine)
		_, err = c.TryDo(ended, lock.Name("outer"), func(context.Context, *lock.Lease) error { return nil })
		require.ErrorIs(t, err, mine)
		held, err = c.TryDo(ctx, lock.Name("unknown"), func(context.Context, *lock.Lease) error { return nil }, lock.Existing())
		require.ErrorIs(t, err, table.ErrNotFound)
		assert.Nil(t, held)
	})
}

func TestDo_ReleasesAndReportsLosses(t *testing.T) {
	mine := errors.New("mine")
	run := func(name string, f func(ctx context.Context, w *world, c *lock.Client)) {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				c := w.client(lock.Config{})
				f(ctx, w, c)
				r, err := c.Inspect(ctx, lock.Name("report"))
				require.NoError(w, err)
				assert.False(w, r.Held(), "released")
			})
		})
	}
	run("releases and returns f's error", func(ctx context.Context, w *world, c *lock.Client) {
		require.NoError(w, c.Do(ctx, lock.Name("report"), func(context.Context, *lock.Lease) error { return nil }))
		require.Equal(w, mine, c.Do(ctx, lock.Name("report"), func(context.Context, *lock.Lease) error { return mine }))
	})
	run("releases when f panics", func(ctx context.Context, w *world, c *lock.Client) {
		assert.PanicsWithValue(w, "oops", func() {
			_ = c.Do(ctx, lock.Name("report"), func(context.Context, *lock.Lease) error { panic("oops") })
		})
	})
	run("f commits", func(ctx context.Context, w *world, c *lock.Client) {
		ops := w.requests(func() {
			require.NoError(w, c.Do(ctx, lock.Name("report"), func(ctx context.Context, l *lock.Lease) error {
				err := l.Commit(ctx, w.put("x"))
				<-ctx.Done()
				assert.ErrorIs(w, context.Cause(ctx), lock.ErrReleased)
				return err
			}))
		})
		assert.Equal(w, []string{"UpdateItem", "TransactWriteItems"}, ops)
	})
	run("f commits after the lease has ended", func(ctx context.Context, w *world, _ *lock.Client) {
		line := &line{to: w.engine.HTTPClient()}
		c := w.clientOver(line, lock.Config{})
		require.NoError(w, c.Do(ctx, lock.Name("report"), func(inside context.Context, l *lock.Lease) error {
			line.cut(hung)
			<-inside.Done()
			line.cut(open)
			return l.Commit(ctx, w.put("x"))
		}), "the commit proves that the lock was held")
	})
	run("ends with ctx, and releases", func(ctx context.Context, w *world, c *lock.Client) {
		ending, cancel := context.WithCancelCause(ctx)
		err := c.Do(ending, lock.Name("report"), func(inside context.Context, _ *lock.Lease) error {
			cancel(mine)
			<-inside.Done()
			return context.Cause(inside)
		})
		require.Equal(w, mine, err)
	})
	run("ends with the lease", func(ctx context.Context, w *world, _ *lock.Client) {
		line := &line{to: w.engine.HTTPClient()}
		c := w.clientOver(line, lock.Config{})
		for _, result := range []error{nil, mine} {
			err := c.Do(ctx, lock.Name("report"), func(inside context.Context, _ *lock.Lease) error {
				line.cut(hung)
				<-inside.Done()
				assert.ErrorIs(w, context.Cause(inside), lock.ErrExpired)
				line.cut(open)
				return result
			})
			require.ErrorIs(w, err, lock.ErrExpired)
			if result != nil {
				require.ErrorIs(w, err, mine)
			}
			assert.NotContains(w, err.Error(), "\n")
		}
	})
	run("taken on the way", func(ctx context.Context, w *world, c *lock.Client) {
		for _, result := range []error{nil, mine} {
			err := c.Do(ctx, lock.Name("report"), func(_ context.Context, l *lock.Lease) error {
				require.NoError(w, w.table.Write(ctx, table.Update(l.Key(), table.Attr("line").Remove())))
				return result
			})
			require.ErrorIs(w, err, lock.ErrStolen)
			if result != nil {
				require.ErrorIs(w, err, mine)
			}
		}
		err := c.Do(ctx, lock.Name("report"), func(ctx context.Context, l *lock.Lease) error {
			require.NoError(w, w.table.Write(ctx, table.Update(l.Key(), table.Attr("line").Remove())))
			return l.Write(ctx, w.put("x"))
		})
		require.ErrorIs(w, err, lock.ErrLost)
	})
	run("ctx ends while it releases", func(ctx context.Context, w *world, c *lock.Client) {
		w.engine.ResetRequests()
		w.engine.Inject(tabletest.Fault{Kind: tabletest.Delay, For: time.Second, Call: 2})
		ending, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
		defer cancel()
		require.NoError(w, c.Do(ending, lock.Name("report"), func(context.Context, *lock.Lease) error { return nil }))
	})
}

// What the function has committed was done under the lock. A function that merely returned has lost the lock.
// A commit whose answer is lost until the lease has ended may have been applied, and the loss of the lock does not say otherwise.
func TestDo_CommitWithoutAnAnswerIsNoLoss(t *testing.T) {
	for name, opts := range leases() {
		virtual(t, func(ctx context.Context, w *world) {
			w.engine.Inject(tabletest.Fault{Kind: tabletest.DropReply, Operation: "TransactWriteItems"})
			err := w.client(lock.Config{Lease: 5 * time.Second}).Do(ctx, lock.Name("report"), func(ctx context.Context, l *lock.Lease) error {
				err := l.Commit(ctx, w.count("n"))
				<-l.Context().Done()
				w.engine.ClearFaults()
				return err
			}, opts...)
			require.NotErrorIs(t, err, lock.ErrLost, name)
			require.ErrorIs(t, err, table.ErrUnreachable, name)
			assert.True(t, table.MayBeApplied(err), name)
			assert.Equal(t, int64(1), w.counted("n"), name)
		})
	}
}

func TestDo_ReportsThatTheLockWasHeldForTooLong(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(lock.Config{MaxHold: time.Second})
		err := c.Do(ctx, lock.Name("report"), func(ctx context.Context, _ *lock.Lease) error {
			<-ctx.Done()
			time.Sleep(time.Second)
			return nil
		})
		require.ErrorIs(t, err, lock.ErrMaxHold)
		require.NoError(t, c.Do(ctx, lock.Name("report"), func(ctx context.Context, l *lock.Lease) error {
			return l.Commit(ctx, w.put("x"))
		}))
		time.Sleep(time.Minute) // the timer of a lease that is over does nothing
	})
}

// The context of a lease that was revoked has its cause already. A later end of the lease counts all the same: Do does not
// return nil.
func TestDo_ReportsALossAfterARevocation(t *testing.T) {
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

// Whatever the function does with the error of its commit.
func TestDo_CommitWithoutAnAnswerIsInDoubt(t *testing.T) {
	for name, f := range map[string]func(ctx context.Context, w *world, l *lock.Lease) error{
		"ctx of f": func(ctx context.Context, w *world, l *lock.Lease) error { return l.Commit(ctx, w.count("n")) },
		"short ctx": func(ctx context.Context, w *world, l *lock.Lease) error {
			ctx, cancel := context.WithCancel(ctx)
			time.AfterFunc(time.Second, cancel)
			err := l.Commit(ctx, w.count("n"))
			<-l.Context().Done()
			return err
		},
		"cause": func(ctx context.Context, w *world, l *lock.Lease) error {
			if err := l.Commit(ctx, w.count("n")); err == nil {
				return nil
			}
			<-ctx.Done()
			return context.Cause(ctx)
		},
		"dropped": func(ctx context.Context, w *world, l *lock.Lease) error {
			_ = l.Commit(ctx, w.count("n"))
			<-ctx.Done()
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				w.engine.Inject(tabletest.Fault{Kind: tabletest.DropReply, Operation: "TransactWriteItems"})
				if name == "ctx of f" {
					w.engine.ClearFaults()
					w.engine.Inject(tabletest.Fault{Kind: tabletest.Delay, After: true, For: time.Minute, Operation: "TransactWriteItems"})
				}
				err := w.client(lock.Config{Lease: 5 * time.Second}).Do(ctx, lock.Name("report"), func(ctx context.Context, l *lock.Lease) error {
					err := f(ctx, w, l)
					<-l.Context().Done()
					w.engine.ClearFaults()
					return err
				}, lock.Fixed(5*time.Second))
				require.ErrorIs(t, err, table.ErrUnreachable)
				require.NotErrorIs(t, err, lock.ErrLost)
				assert.EqualValues(t, 1, w.counted("n"))
			})
		})
	}
}

// The function may have written, even if DynamoDB has refused the release.
func TestDo_MayHaveWrittenIfOnlyTheReleaseFails(t *testing.T) {
	type run func(ctx context.Context, c *lock.Client, f func(context.Context, *lock.Lease) error) error
	name := lock.Name("report")
	for call, do := range map[string]run{
		"do": func(ctx context.Context, c *lock.Client, f func(context.Context, *lock.Lease) error) error {
			return c.Do(ctx, name, f)
		},
		"try do": func(ctx context.Context, c *lock.Client, f func(context.Context, *lock.Lease) error) error {
			_, err := c.TryDo(ctx, name, f)
			return err
		},
		"lead": func(ctx context.Context, c *lock.Client, f func(context.Context, *lock.Lease) error) error {
			return c.Lead(ctx, name, f)
		},
		"lead, and ctx ends": func(ctx context.Context, c *lock.Client, f func(context.Context, *lock.Lease) error) error {
			ctx, cancel := context.WithCancel(ctx)
			return c.Lead(ctx, name, func(ctx context.Context, l *lock.Lease) error {
				defer cancel()
				return f(ctx, l)
			})
		},
	} {
		for _, failure := range []error{nil, table.ErrInvalid} {
			t.Run(fmt.Sprint(call, failure), func(t *testing.T) {
				virtual(t, func(ctx context.Context, w *world) {
					var faults faulty.Client
					tbl, err := table.Open(w.sdk(w.engine.HTTPClient(), faults.Options), table.Schema{Name: "app"})
					require.NoError(t, err)
					c, err := lock.New(tbl, quiet)
					require.NoError(t, err)
					err = do(ctx, c, func(context.Context, *lock.Lease) error {
						faults.Script(faulty.Refuse(400, "AccessDeniedException"))
						return failure
					})
					require.ErrorIs(t, err, table.ErrDenied)
					if call != "lead, and ctx ends" {
						assert.Equal(t, failure == nil, table.MayBeApplied(err), err)
					} else if failure == nil {
						assert.True(t, table.MayBeApplied(err), err)
					}
					require.NoError(t, c.Close(ctx))
				})
			})
		}
	}
}
