package lock_test

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-go/mortise/internal/attrvalue"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// handler is a log handler of an application that does what it likes.
type handler struct {
	slog.Handler
	handle func(slog.Record)
}

func (h *handler) Enabled(context.Context, slog.Level) bool { return true }

func (h *handler) Handle(_ context.Context, r slog.Record) error {
	h.handle(r)
	return nil
}

func logger(handle func(slog.Record)) *slog.Logger {
	return slog.New(&handler{slog.DiscardHandler, handle})
}

// Who holds a lock is told of its end before anybody writes a line about it.
func TestSlowLoggerDoesNotDelayTheEnd(t *testing.T) {
	const locks = 50
	virtual(t, func(ctx context.Context, w *world) {
		wire := &line{to: w.engine.HTTPClient()}
		c := w.clientOver(wire, lock.Config{Logger: logger(func(r slog.Record) {
			if r.Level >= slog.LevelWarn {
				time.Sleep(10 * time.Second)
			}
		})})
		told := make(chan time.Time, locks)
		var last *lock.Lease
		for i := range locks {
			l, err := c.Acquire(ctx, lock.Name(string(rune('A'+i))))
			require.NoError(t, err)
			context.AfterFunc(l.Context(), func() { told <- time.Now() })
			last = l
		}
		wire.cut(refused)
		end := time.Now().Add(last.Remaining())
		var late time.Duration
		for range locks {
			late = max(late, (<-told).Sub(end))
		}
		assert.LessOrEqual(t, late, 10*time.Millisecond, "after the end of the lease")
		require.ErrorIs(t, context.Cause(last.Context()), lock.ErrExpired)
		time.Sleep(20 * locks * time.Second) // until all is logged
	})
}

// A panic of what the application has set is its own: no lock stays held by it, and nobody
// waits for who is not there any more.
func TestPanicOfALoggerLeavesNothingBehind(t *testing.T) {
	for _, event := range []string{"lock: acquired", "lock: session opened"} {
		t.Run(event, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				var armed atomic.Bool
				other := w.client(lock.Config{})
				c := w.coldClient(lock.Config{Logger: logger(func(r slog.Record) {
					if r.Message == event && armed.CompareAndSwap(true, false) {
						panic("of the logger")
					}
				})})
				for name, acquire := range map[string]func() error{
					"Acquire": func() error {
						_, err := c.Acquire(ctx, lock.Name("report"))
						return err
					},
					"TryAcquire": func() error {
						_, err := c.TryAcquire(ctx, lock.Name("report"))
						return err
					},
					"Fixed": func() error {
						_, err := c.Acquire(ctx, lock.Name("report"), lock.Fixed(time.Hour))
						return err
					},
					"AcquireAll": func() error {
						_, err := c.AcquireAll(ctx, []lock.Target{lock.Name("other"), lock.Name("report")})
						return err
					},
				} {
					if name == "Fixed" && event == "lock: session opened" {
						continue // it opens none
					}
					time.Sleep(time.Minute) // the session has ended
					armed.Store(true)
					assert.PanicsWithValue(t, "of the logger", func() { _ = acquire() }, name)
					time.Sleep(time.Second) // for what is taken back in the background
					for _, target := range []lock.Target{lock.Name("report"), lock.Name("other")} {
						l, err := other.TryAcquire(ctx, target)
						require.NoError(t, err, name)
						require.NoError(t, l.Release(ctx), name)
					}
					bounded, cancel := context.WithTimeout(ctx, time.Second)
					l, err := c.Acquire(bounded, lock.Name("report"))
					cancel()
					require.NoError(t, err, name)
					require.NoError(t, l.Release(ctx), name)
				}
			})
		})
	}
}

// A row at the key of a holder's session that is none, or is not in order, is told to who
// waits, and is not looked at again and again.
func TestWaiterMeetsAHostileSession(t *testing.T) {
	for name, c := range map[string]struct {
		spoil []table.Change
		want  error
	}{
		"foreign":         {[]table.Change{table.Attr("type").Set("Order")}, lock.ErrMalformed},
		"without a lease": {[]table.Change{table.Attr("lease").Remove()}, lock.ErrMalformed},
		"beat is text":    {[]table.Change{table.Attr("beat").Set("x")}, lock.ErrMalformed},
		"without a beat":  {[]table.Change{table.Attr("beat").Remove(), table.Attr("expires").Remove()}, lock.ErrMalformed},
		"without a type":  {[]table.Change{table.Attr("type").Remove()}, lock.ErrMalformed},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				wire := &line{to: w.engine.HTTPClient()}
				holder, waiter := w.clientOver(wire, lock.Config{}), w.client(lock.Config{})
				_, err := holder.Acquire(ctx, lock.Name("report"))
				require.NoError(t, err)
				wire.cut(refused)
				require.NoError(t, w.table.Write(ctx, table.Update(sessionKey(holder), c.spoil...)))
				before, err := w.table.Get(ctx, sessionKey(holder), true)
				require.NoError(t, err)
				bounded, cancel := context.WithTimeout(ctx, 10*time.Second)
				defer cancel()
				ops := w.requests(func() { _, err = waiter.Acquire(bounded, lock.Name("report")) })
				require.ErrorIs(t, err, c.want)
				assert.LessOrEqual(t, len(ops), 5)
				after, err := w.table.Get(ctx, sessionKey(holder), true)
				require.NoError(t, err)
				assert.True(t, attrvalue.SameItem(before, after), "it was changed")
			})
		})
	}
}

// A session is dead however early that was: its holder cannot renew it any more.
func TestWaiterMeetsASessionThatDiedInTheBeginning(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		way := &line{to: w.engine.HTTPClient()}
		holder, waiter := w.clientOver(way, lock.Config{}), w.client(lock.Config{})
		_, err := holder.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		way.cut(refused)
		require.NoError(t, w.table.Write(ctx, table.Update(sessionKey(holder), table.Attr("dead").Set(0))))
		bounded, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		l, err := waiter.Acquire(bounded, lock.Name("report"))
		require.NoError(t, err)
		require.NoError(t, l.Release(ctx))
	})
}

// A hand-over that Close meets on its way is taken back before Close returns.
func TestCloseWaitsForAHandOver(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c, other := w.client(lock.Config{}), w.client(lock.Config{})
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		waited := outcome(ctx, c, lock.Name("report"))
		time.Sleep(time.Second)
		w.engine.Inject(tabletest.Fault{Kind: tabletest.Delay, After: true, For: 2 * time.Second, Operation: "UpdateItem", Key: w.table.KeyItem(l.Key()), Times: 1})
		released := make(chan error, 1)
		go func() { released <- l.Release(ctx) }()
		time.Sleep(time.Second)
		r, err := other.Inspect(ctx, lock.Name("report"))
		require.NoError(t, err)
		require.NotEqual(t, l.Ticket(), r.Holder().Ticket, "it was passed")
		closed := make(chan error, 1)
		go func() { closed <- c.Close(ctx) }()
		require.ErrorIs(t, <-waited, lock.ErrClosed)
		synctest.Wait()
		select {
		case err := <-closed:
			require.Fail(t, "closed while a lock is being handed over", "%v", err)
		default:
		}
		require.NoError(t, <-closed)
		require.NoError(t, <-released)
		next, err := other.TryAcquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		require.NoError(t, next.Release(ctx))
	})
}

// A goroutine that is passed a lock, and panics as it begins to hold it, leaves it to those behind it.
func TestPanicOfALoggerDuringAHandOver(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		var armed atomic.Bool
		c := w.client(lock.Config{Logger: logger(func(r slog.Record) {
			if r.Message == "lock: acquired" && armed.CompareAndSwap(true, false) {
				panic("of the logger")
			}
		})})
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		panicked := make(chan any, 1)
		go func() {
			defer func() { panicked <- recover() }()
			_, _ = c.Acquire(ctx, lock.Name("report"))
		}()
		time.Sleep(500 * time.Millisecond)
		heir := acquireAsync(ctx, c, lock.Name("report"))
		armed.Store(true)
		require.NoError(t, l.Release(ctx))
		require.Equal(t, "of the logger", <-panicked)
		next := <-heir
		require.NotNil(t, next)
		require.NoError(t, next.Write(ctx, w.put("x")))
		require.NoError(t, next.Release(ctx))
	})
}
