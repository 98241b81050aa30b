package migrations_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/engines"
	"github.com/mortise-go/mortise/internal/testkit"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/migrations"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// everything is a list with all ways of doing something, each of which shows what was done
// twice or not at all.
func everything(pageSize int) []migrations.Migration {
	return []migrations.Migration{
		{ID: "1_atomic", Idempotent: true, Up: func(ctx context.Context, run *migrations.Run) error {
			return run.Atomic(ctx, once("1"))
		}},
		{ID: "2_steps", Idempotent: true, Up: func(ctx context.Context, run *migrations.Run) error {
			if err := run.AtomicStep(ctx, "a", once("2a")); err != nil {
				return err
			}
			if err := run.Step(ctx, "b", func(ctx context.Context) error {
				return run.Write(ctx, table.Update(keys.NewKey("COUNTER#2b", "COUNTER"), table.Attr("count").Set(1)))
			}); err != nil {
				return err
			}
			return run.AtomicStep(ctx, "c", once("2c"))
		}},
		{ID: "3_exact", Idempotent: true, Up: func(ctx context.Context, run *migrations.Run) error {
			_, err := run.Backfill(ctx, migrations.Backfill{Name: "fill", Transform: increment, Exact: true, Segments: 2, PageSize: pageSize, Filter: only()})
			return err
		}},
		{ID: "4_default", Idempotent: true, Up: func(ctx context.Context, run *migrations.Run) error {
			_, err := run.Backfill(ctx, migrations.Backfill{Name: "fill", Transform: double, Segments: 2, Writers: 2, PageSize: pageSize, Filter: only()})
			return err
		}},
		{ID: "seed", Idempotent: true, Repeatable: true, Revision: "1", Up: func(ctx context.Context, run *migrations.Run) error {
			return run.Atomic(ctx, once("seed"))
		}},
	}
}

// complete checks that each item and each counter was migrated exactly once.
func (w *world) complete(items int, m *migrations.Migrator) {
	w.Helper()
	for i := range items {
		item := w.get(itemKey(i))
		if integer(item["n"]) != int64(i) || integer(item["m"]) != 1 || integer(item["double"]) != int64(2*i) || item["double"] == nil {
			w.Errorf("item %d: n %d, m %d (want 1), double %d (want %d)", i, integer(item["n"]), integer(item["m"]), integer(item["double"]), 2*i)
		}
	}
	for _, name := range []string{"1", "2a", "2b", "2c", "seed"} {
		assert.EqualValues(w, 1, w.count(name), name)
	}
	list, err := m.Status(w.Context())
	require.NoError(w, err)
	for _, st := range list {
		assert.Equal(w, migrations.Applied, st.State, st.ID)
	}
	assert.Empty(w, w.watch.backs, "checkpoints that went backwards")
}

// F17.
func TestCrash_EverywhereMigratesOnce(t *testing.T) {
	t.Parallel()
	const items = 24
	list := everything(5)
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		if e.Name == engines.InProcess {
			t.Run("killed at every call", func(t *testing.T) { killedAtEveryCall(t, list, items) })
			t.Run("cancelled at every call", func(t *testing.T) { cancelledAtEveryCall(t, list, items) })
			t.Run("faults at every call", func(t *testing.T) { faultsAtEveryCall(t, list, items) })
			return
		}
		t.Run("killed at some calls", func(t *testing.T) {
			var group sync.WaitGroup
			runs := testkit.IfSmall(2, 12)
			for i := range runs {
				group.Go(func() {
					w := newWorld(t, table.Schema{Name: e.TableName(t)}, e.Client)
					w.fill(items)
					first := w.start(lock.Config{Lease: time.Second}, list) // which is waited for
					first.line.at, first.line.after = int64(2+7*i), i%2 == 1
					_, err := first.m.Up(first.ctx)
					second := w.start(lock.Config{}, list) // which a busy machine does not lose
					_, errSecond := second.m.Up(t.Context())
					assert.Error(t, err)
					assert.NoError(t, errSecond)
					w.complete(items, second.m)
				})
			}
			group.Wait()
			t.Logf("F17 %s: killed at %d calls and resumed: every item migrated exactly once, checkpoints never went backwards (goal: all)", e.Name, runs)
		})
	})
}

// someCalls is the distance of the calls that are tried: 1 for all.
func someCalls() int { return testkit.IfSmall(83, 1) }

func killedAtEveryCall(t *testing.T, list []migrations.Migration, items int) {
	runs, checkpoints, step := 0, 0, someCalls()
	for _, after := range []bool{false, true} {
		for at := int64(1); ; at += int64(step) {
			ended := false
			virtual(t, func(ctx context.Context, w *world) {
				w.fill(items)
				first := w.start(lock.Config{}, list)
				first.line.at, first.line.after = at, after
				_, err := first.m.Up(first.ctx)
				ended = !first.line.dead.Load()
				if ended {
					require.NoError(w, err)
				}
				first.line.kill()
				second := w.start(lock.Config{}, list)
				_, err = second.m.Up(ctx)
				require.NoError(w, err)
				w.complete(items, second.m)
				checkpoints += w.watch.seen
			})
			if ended || t.Failed() {
				break
			}
			runs++
		}
		if t.Failed() {
			t.Fatalf("after run %d, request applied: %v", runs, after)
		}
	}
	assert.Greater(t, runs, 100/step)
	t.Logf("F17 in-process: killed at %d call indices, before and after applying, and resumed: every item migrated exactly once; %d checkpoints, none went backwards (goal: all)", runs, checkpoints)
}

func cancelledAtEveryCall(t *testing.T, list []migrations.Migration, items int) {
	runs, step := 0, someCalls()
	for at := int64(1); ; at += int64(step) {
		ended := false
		virtual(t, func(ctx context.Context, w *world) {
			w.fill(items)
			p := w.start(lock.Config{}, list)
			p.line.at, p.line.quiet = at, true
			start := time.Now()
			_, err := p.m.Up(p.ctx)
			ended = p.ctx.Err() == nil
			if err != nil {
				require.ErrorIs(w, err, context.Canceled)
			}
			assert.Less(w, time.Since(start), time.Second, "it ends at once")
			st, err := p.m.Status(ctx)
			require.NoError(w, err)
			for _, s := range st {
				assert.NotEqual(w, migrations.Running, s.State, "what became of %s is recorded", s.ID)
			}
			_, err = w.migrator(list).Up(ctx)
			require.NoError(w, err)
			assert.Less(w, time.Since(start), 2*time.Second, "the lock is free")
			w.complete(items, p.m)
		})
		if ended || t.Failed() {
			break
		}
		runs++
	}
	assert.Greater(t, runs, 50/step)
	t.Logf("F17 in-process: cancelled at %d call indices and resumed: every item migrated exactly once (goal: all)", runs)
}

// faultsAtEveryCall has something else go wrong with each request in turn, of a process that
// lives on.
func faultsAtEveryCall(t *testing.T, list []migrations.Migration, items int) {
	faults := []tabletest.Fault{
		{Kind: tabletest.DropRequest},
		{Kind: tabletest.DropRequest, For: 3 * time.Second}, // late
		{Kind: tabletest.DropReply},
		{Kind: tabletest.StaleRead, Writes: 100},
		{Kind: tabletest.InternalErrorAfter},
		{Kind: tabletest.Throttle},
		{Kind: tabletest.TransactionConflict},
		{Kind: tabletest.DuplicateLate, For: 2 * time.Second},
		{Kind: tabletest.Delay, For: time.Minute}, // beyond the lease
		{Kind: tabletest.Delay, For: time.Minute, After: true},
	}
	runs, again, step := 0, 0, someCalls()
	for i, fault := range faults {
		for at := 1 + i%step; ; at += step {
			ended := false
			virtual(t, func(ctx context.Context, w *world) {
				w.fill(items)
				p := w.start(lock.Config{}, list)
				w.engine.ResetRequests()
				fault.Call = at
				w.engine.Inject(fault)
				for attempt := 1; ; attempt++ {
					_, err := p.m.Up(ctx)
					if attempt == 1 {
						ended = len(w.engine.Requests()) < at
					}
					if err == nil {
						again += attempt - 1
						break
					}
					require.Less(w, attempt, 3, "%v at call %d: %v", fault.Kind, at, err)
				}
				time.Sleep(2 * time.Minute) // for what is late
				w.complete(items, p.m)
			})
			if ended || t.Failed() {
				break
			}
			runs++
		}
		if t.Failed() {
			t.Fatalf("with %v", fault)
		}
	}
	assert.Greater(t, runs, 500/step)
	t.Logf("F17 in-process: %d kinds of fault at every call, %d runs, %d of them resumed: every item migrated exactly once (goal: all)", len(faults), runs, again)
}

const (
	victimTable    = "MORTISE_TEST_VICTIM_TABLE"
	victimEndpoint = "MORTISE_TEST_VICTIM_ENDPOINT"
)

const (
	victimLost = 3 // the exit code of one that was too slow for its lease, or got no answer, as on a busy machine: the next one goes on
)

// victim is what the test binary does when it is started to be killed.
func victim(name string) int {
	endpoint := os.Getenv(victimEndpoint)
	client := dynamodb.New(dynamodb.Options{
		Region: "eu-west-1", BaseEndpoint: &endpoint,
		Credentials: aws.NewCredentialsCache(credentials.NewStaticCredentialsProvider("test", "test", "")),
	})
	ctx := context.Background()
	err := func() error {
		tbl, err := table.Open(client, table.Schema{Name: name})
		if err != nil {
			return err
		}
		locks, err := lock.New(tbl, lock.Config{Lease: time.Second})
		if err != nil {
			return err
		}
		m, err := migrations.New(tbl, locks, everything(5), migrations.WithLogger(discard))
		if err != nil {
			return err
		}
		if _, err := m.Up(ctx); err != nil {
			return err
		}
		return locks.Close(ctx)
	}()
	switch {
	case errors.Is(err, lock.ErrLost), errors.Is(err, table.ErrUnreachable):
		return victimLost
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// F17, with real processes and SIGKILL.
func TestCrash_EverywhereByKillingMigratesOnce(t *testing.T) {
	t.Parallel()
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		engines.Only(t, engines.DynamoDBLocal, "other processes do not reach an engine inside this one")
		// Where the first process is through before it is killed, the machine is fast: once more, sooner.
		for within := 500 * time.Millisecond; !killed(t, e, within); within /= 2 {
		}
	})
}

// killed starts processes that migrate one table, one after the other, until one of them gets through. The first is killed within a
// time, each later one may take longer. It reports whether one was killed.
func killed(t *testing.T, e *engines.Engine, within time.Duration) bool {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	endpoint := e.Client().Options().BaseEndpoint
	require.NotNil(t, endpoint)
	var kills, rounds int
	random := rand.New(rand.NewPCG(1, 2))
	w := newWorld(t, table.Schema{Name: e.TableName(t)}, e.Client)
	items := testkit.IfSmall(60, 1500)
	w.fill(items)
	for done := false; !done; rounds++ {
		require.Less(t, rounds, 100)
		cmd := exec.CommandContext(t.Context(), self)
		cmd.Env = append(os.Environ(), victimTable+"="+w.table.Name(), victimEndpoint+"="+*endpoint)
		cmd.Stderr = os.Stderr
		require.NoError(t, cmd.Start())
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		timer := time.NewTimer(within/5 + time.Duration(random.Int64N(int64(kills+1)*int64(within))))
		killed := false
		select {
		case err = <-ended:
		case <-timer.C:
			killed = cmd.Process.Kill() == nil // unless it has just ended
			err = <-ended
		}
		timer.Stop()
		switch cmd.ProcessState.ExitCode() {
		case -1: // by a signal
			require.True(t, killed, "it died of something else: %v", err)
			kills++
		case victimLost:
		default:
			require.NoError(t, err)
			done = true
		}
	}
	w.complete(items, w.start(lock.Config{}, everything(5)).m)
	t.Logf("F17 %s: processes killed by SIGKILL %d times and resumed: each of %d items migrated exactly once (goal: all)", e.Name, kills, items)
	return kills > 0
}
