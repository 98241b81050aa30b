package migrations_test

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/migrations"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// journal is a log that goroutines write to.
type journal struct {
	mu  sync.Mutex
	buf strings.Builder
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.buf.Write(p)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.buf.String()
}

func (j *journal) logger() *slog.Logger { return slog.New(slog.NewTextHandler(j, nil)) }

func TestUp_ConcurrentInstancesRunOnce(t *testing.T) {
	t.Parallel()
	const instances = 20
	everywhere(t, func(ctx context.Context, w *world) {
		list := []migrations.Migration{simple("1_a"), {ID: "2_b", Up: func(ctx context.Context, run *migrations.Run) error {
			time.Sleep(3 * time.Second) // longer than it takes the others to look again
			return run.Atomic(ctx, once("2_b"))
		}}}
		var log journal
		all := make([]*process, instances)
		for i := range all {
			all[i] = w.start(lock.Config{}, list, migrations.WithLogger(log.logger()))
		}
		totals := make([]table.Totals, instances)
		reports := make([]migrations.Report, instances)
		up := func() time.Duration {
			start := time.Now()
			var group sync.WaitGroup
			for i, p := range all {
				group.Go(func() {
					ctx, usage := table.WithUsage(ctx)
					var err error
					reports[i], err = p.m.Up(ctx)
					assert.NoError(w, err)
					totals[i] = usage.Totals()
				})
			}
			group.Wait()
			return time.Since(start)
		}
		took := up()
		ran := 0
		for _, r := range reports {
			ran += len(r.Done)
		}
		w.Logf("%d instances at once on 2 pending migrations of 3 s: run %d times in all (goal 2), the last instance was through after %v", instances, ran, took.Round(10*time.Millisecond))
		assert.Equal(w, 2, ran)
		assert.EqualValues(w, 1, w.count("1_a"))
		assert.EqualValues(w, 1, w.count("2_b"))
		if w.engine != nil { // in virtual time, which does not depend on the machine
			assert.Less(w, took, 12*time.Second, "they do not queue with nothing to do")
		}
		assert.Contains(w, log.String(), "waiting for the lock")
		assert.LessOrEqual(w, strings.Count(log.String(), "waiting for the lock"), instances, "each says so once")

		// Those who found nothing to do leave the line in the background, and the fence counts each that becomes the first.
		require.Eventually(w, func() bool { return !w.lockRow(all[0]).Held() }, time.Minute, 10*time.Millisecond)
		fence := w.lockRow(all[0]).Fence
		up()
		most := int64(0)
		for i, total := range totals {
			assert.Empty(w, reports[i].Done)
			assert.Zero(w, total.WriteUnits)
			most = max(most, total.Requests)
		}
		w.Logf("%d instances at once on nothing pending: at most %d requests each (goal at most 2), lock taken %d times (goal 0)", instances, most, w.lockRow(all[0]).Fence-fence)
		assert.LessOrEqual(w, most, int64(2))
		assert.Equal(w, fence, w.lockRow(all[0]).Fence)
	})
}

// lockRow returns the row of the migrations' lock.
func (w *world) lockRow(p *process) lock.Record {
	w.Helper()
	s, err := p.m.Status(w.Context())
	require.NoError(w, err)
	var target lock.Target
	for _, st := range s {
		if st.Record != nil {
			target = lock.Beside(migrationsRow)
		}
	}
	r, err := p.locks.Inspect(w.Context(), target)
	require.NoError(w, err)
	return r
}

// An instance that waits goes on by itself when the one that ran has died.
func TestUp_AWaiterTakesOverFromTheDead(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		list := []migrations.Migration{{ID: "1_long", Idempotent: true, Up: func(ctx context.Context, run *migrations.Run) error {
			if err := run.AtomicStep(ctx, "first", once("first")); err != nil {
				return err
			}
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-time.After(10 * time.Minute): // many leases
			}
			return run.Atomic(ctx, once("1_long"))
		}}}
		first, second := w.start(lock.Config{}, list), w.start(lock.Config{}, list)
		go func() { _, _ = first.m.Up(first.ctx) }()
		time.Sleep(time.Second)
		time.AfterFunc(time.Minute, first.line.kill)
		report, err := second.m.Up(ctx)
		require.NoError(w, err)
		require.Len(w, report.Done, 1)
		assert.Equal(w, 2, report.Done[0].Attempts)
		assert.Equal(w, 10*time.Minute, report.Done[0].Took.Round(time.Minute))
		assert.EqualValues(w, 1, w.count("first"))
		assert.EqualValues(w, 1, w.count("1_long"))
	})
}

// What another instance could not do is reported by those that wait for it, too.
func TestUp_AWaiterLearnsOfTheFailure(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		list := []migrations.Migration{{ID: "1_bad", Up: func(context.Context, *migrations.Run) error {
			time.Sleep(10 * time.Second)
			return assert.AnError
		}}}
		first, second := w.start(lock.Config{}, list), w.start(lock.Config{}, list)
		errs := make(chan error, 1)
		go func() {
			_, err := first.m.Up(ctx)
			errs <- err
		}()
		time.Sleep(time.Second)
		_, err := second.m.Up(ctx)
		var unfinished *migrations.UnfinishedError
		require.ErrorAs(w, err, &unfinished)
		assert.Equal(w, "1_bad", unfinished.Record.ID)
		require.ErrorIs(w, <-errs, assert.AnError)
	})
}

// golang-migrate #712: a stale lock stops deployments for good.
func TestUp_AStaleLockDoesNotStopDeployments(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		dead := w.start(lock.Config{}, nil)
		_, err := dead.locks.Acquire(ctx, lock.Beside(migrationsRow))
		require.NoError(w, err)
		dead.line.kill()
		start := time.Now()
		_, err = w.migrator([]migrations.Migration{simple("1_a")}).Up(ctx)
		require.NoError(w, err)
		assert.Less(w, time.Since(start), 30*time.Second)
	})
}

// All is recorded, and then the lock cannot be released.
func TestUp_ALockThatCannotBeReleasedIsNoFailure(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		m := w.migrator([]migrations.Migration{{ID: "1_a", Up: func(ctx context.Context, run *migrations.Run) error {
			err := run.Atomic(ctx, once("1_a"))
			w.engine.Inject(tabletest.Fault{Kind: tabletest.DropRequest, Operation: "UpdateItem"})
			return err
		}}})
		report, err := m.Up(ctx)
		require.NoError(w, err)
		assert.Len(w, report.Done, 1)
		w.engine.ClearFaults()
	})
}

// golang-migrate has a timeout for its lock. Here, a Backoff that stops ends the wait, and not the migration of the instance that has it.
func TestUp_ABackoffThatStopsEndsTheWait(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		list := []migrations.Migration{{ID: "1_long", Up: func(ctx context.Context, run *migrations.Run) error {
			time.Sleep(10 * time.Minute)
			return run.Atomic(ctx, once("1_long"))
		}}}
		config := lock.Config{Backoff: func() backoff.BackOff { return backoff.WithMaxRetries(backoff.NewConstantBackOff(time.Second), 5) }}
		first, second := w.start(config, list), w.start(config, list)
		ended := make(chan error, 1)
		go func() {
			_, err := first.m.Up(ctx)
			ended <- err
		}()
		time.Sleep(time.Second)
		start := time.Now()
		report, err := second.m.Up(ctx)
		require.ErrorIs(w, err, lock.ErrHeld)
		assert.Empty(w, report.Done)
		assert.Less(w, time.Since(start), 10*time.Second)
		require.NoError(w, <-ended)
		assert.EqualValues(w, 1, w.count("1_long"))
	})
}
