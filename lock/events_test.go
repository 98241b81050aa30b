package lock_test

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
)

// nosy is a log handler that calls the client. If a mutex of the client were held, it would never return.
type nosy struct {
	slog.Handler
	mu     sync.Mutex
	client *lock.Client
	lease  *lock.Lease
	events []string
}

func (*nosy) Enabled(context.Context, slog.Level) bool { return true }
func (n *nosy) WithAttrs([]slog.Attr) slog.Handler     { return n }

func (n *nosy) Handle(ctx context.Context, r slog.Record) error {
	n.mu.Lock()
	c, l := n.client, n.lease
	n.events = append(n.events, r.Level.String()+" "+r.Message)
	n.mu.Unlock()
	if c != nil {
		_ = c.Healthy(ctx)
		c.Remaining()
		// These calls use the queues, the session and a lease.
		ended, cancel := context.WithCancel(ctx)
		cancel()
		_, _ = c.Acquire(ended, lock.Name("report"))
	}
	if l != nil {
		l.Remaining()
	}
	return nil
}

// count is how often an event was logged.
func (n *nosy) count(event string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(slices.DeleteFunc(slices.Clone(n.events), func(e string) bool { return e != event }))
}

// know sets the client and the lease that the handler calls.
func (n *nosy) know(c *lock.Client, l *lock.Lease) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.client, n.lease = c, l
}

// Every documented event is logged as often as it happens, and with no mutex of the client held.
func TestEvents_EachComesAsDocumented(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		n := &nosy{Handler: slog.DiscardHandler}
		config := lock.Config{Logger: slog.New(n)}
		dead, err := w.client(lock.Config{Logger: slog.New(slog.DiscardHandler)}).Acquire(ctx, lock.Name("report"), lock.Fixed(20*time.Second))
		require.NoError(t, err)
		way := &line{to: w.engine.HTTPClient()}
		c := w.coldClientOver(way, config)
		n.know(c, dead)
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		n.know(c, l)
		for event, want := range map[string]int{
			"DEBUG lock: session opened": 1, "INFO lock: taken over after the holder's lease ended": 1, "DEBUG lock: acquired": 1, "WARN lock: lost": 0,
		} {
			assert.Equal(t, want, n.count(event), event)
		}
		w.askBack(ctx, c, l)
		<-l.Context().Done()
		synctest.Wait() // measurements and log records come after
		time.Sleep(time.Millisecond)
		assert.Equal(t, 1, n.count("INFO lock: asked to release"))
		require.NoError(t, l.Release(ctx))
		assert.Zero(t, n.count("DEBUG lock: session ended"))
		time.Sleep(time.Minute)
		assert.Equal(t, 1, n.count("DEBUG lock: session ended"), "nothing has hung on it for a lease")

		_, err = c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		assert.Equal(t, 2, n.count("DEBUG lock: session opened"))
		way.cut(refused)
		time.Sleep(time.Minute)
		assert.Equal(t, 1, n.count("WARN lock: session lost"))
		assert.Equal(t, 1, n.count("WARN lock: lost"))
		way.cut(open)

		_, err = w.client(lock.Config{}).Acquire(ctx, lock.Name("stuck"), lock.Fixed(time.Hour))
		require.NoError(t, err)
		stuck, err := c.Inspect(ctx, lock.Name("stuck"))
		require.NoError(t, err)
		require.ErrorIs(t, c.ForceRelease(ctx, lock.Name("stuck"), "another"), lock.ErrHeld)
		assert.Zero(t, n.count("WARN lock: taken by force"))
		require.NoError(t, c.ForceRelease(ctx, lock.Name("stuck"), stuck.Holder().Ticket))
		assert.Equal(t, 1, n.count("WARN lock: taken by force"))
		_, err = w.client(lock.Config{}).Acquire(ctx, lock.Name("damaged"), lock.Fixed(time.Hour))
		require.NoError(t, err)
		require.NoError(t, w.table.Write(ctx, table.Update(w.lockKey("damaged"), table.Attr("hold").Set("damaged"))))
		require.NoError(t, c.ForceRelease(ctx, lock.Name("damaged"), ""))
		assert.Equal(t, 2, n.count("WARN lock: taken by force"), "a reset takes the lock as well")

		off := w.coldClient(config, at(time.Hour))
		for range 3 {
			l, err := off.Acquire(ctx, lock.Name("off"), lock.Fixed(time.Second))
			require.NoError(t, err)
			require.NoError(t, l.Release(ctx))
		}
		assert.Equal(t, 1, n.count("WARN lock: the clock is off: recorded ends of leases are neither used nor written"))
	})
}

// B4, of every event above debug level that a client logs.
func TestEvents_HaveNoNamesKeysOrPayloads(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		log := &journal{}
		logger := slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelInfo}))
		target := lock.Name(canary)
		_, err := w.client(lock.Config{Logger: logger}).Acquire(ctx, target, lock.Fixed(20*time.Second))
		require.NoError(t, err)
		c := w.coldClient(lock.Config{Logger: logger})
		l, err := c.Acquire(ctx, target)
		require.NoError(t, err)
		w.askBack(ctx, c, l)
		<-l.Context().Done()
		synctest.Wait() // measurements and log records come after
		require.NoError(t, l.Release(ctx))
		l, err = c.Acquire(ctx, target)
		require.NoError(t, err)
		require.NoError(t, w.table.Write(ctx, table.Update(sessionKey(c), table.Attr("dead").Set(1))))
		<-l.Context().Done()
		synctest.Wait() // measurements and log records come after
		_, err = w.coldClient(lock.Config{Logger: logger}, at(time.Hour)).Acquire(ctx, target)
		require.NoError(t, err)
		stuck := lock.Name("stuck " + canary)
		_, err = w.client(lock.Config{}).Acquire(ctx, stuck, lock.Fixed(time.Hour), lock.WithData(canary))
		require.NoError(t, err)
		held, err := c.Inspect(ctx, stuck)
		require.NoError(t, err)
		require.NoError(t, c.ForceRelease(ctx, stuck, held.Holder().Ticket, canary))
		require.NoError(t, c.Close(ctx))
		time.Sleep(time.Minute)
		for _, event := range []string{"taken by force", "taken over", "asked to release", "lock: lost", "session lost", "the clock is off"} {
			assert.Contains(t, log.String(), event)
		}
		assert.NotContains(t, log.String(), canary)
	})
}
