package migrations_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/testkit"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/migrations"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// bothWays is a list of migrations, each of which shows what Up or Down has done twice or not at all.
func bothWays(segments, pageSize int) []migrations.Migration {
	count := func(name string, n int) table.Op {
		return table.Update(keys.NewKey("COUNTER#"+name, "COUNTER"), table.Attr("count").Add(n))
	}
	atomic := func(n int) func(context.Context, *migrations.Run) error {
		return func(ctx context.Context, run *migrations.Run) error { return run.Atomic(ctx, count("atomic", n)) }
	}
	steps := func(n int) func(context.Context, *migrations.Run) error {
		return func(ctx context.Context, run *migrations.Run) error {
			if err := run.AtomicStep(ctx, "first", count("first", n)); err != nil {
				return err
			}
			return run.AtomicStep(ctx, "second", count("second", n))
		}
	}
	exact := func(n int64) func(context.Context, *migrations.Run) error {
		return func(ctx context.Context, run *migrations.Run) error {
			_, err := run.Backfill(ctx, migrations.Backfill{
				Name: "fill", Exact: true, Segments: segments, PageSize: pageSize, Filter: only(),
				Transform: func(_ context.Context, item table.Item) (table.Item, error) {
					item["m"] = num(integer(item["m"]) + n)
					return item, nil
				},
			})
			return err
		}
	}
	repeatable := func(transform func(context.Context, table.Item) (table.Item, error)) func(context.Context, *migrations.Run) error {
		return func(ctx context.Context, run *migrations.Run) error {
			_, err := run.Backfill(ctx, migrations.Backfill{
				Name: "fill", Transform: transform, Segments: segments, PageSize: pageSize, Writers: 3, Filter: only(),
			})
			return err
		}
	}
	return []migrations.Migration{
		{ID: "1_atomic", Idempotent: true, Up: atomic(1), Down: atomic(-1)},
		{ID: "2_steps", Idempotent: true, Up: steps(1), Down: steps(-1)},
		{ID: "3_exact", Idempotent: true, Up: exact(1), Down: exact(-1)},
		{ID: "4_default", Idempotent: true, Up: repeatable(double), Down: repeatable(func(_ context.Context, item table.Item) (table.Item, error) {
			delete(item, "double")
			return item, nil
		})},
	}
}

// Up to three instances at a time migrate up, then down, and so on, while other programs write to the same items. Instances are killed
// or cancelled, requests and answers get lost, come late or twice, or are refused, leases end, and clocks jump. Whatever the seed, all is
// done once, and no write of the others is lost.
func TestSimulation_UpAndDownAreDoneOnce(t *testing.T) {
	t.Parallel()
	var interrupted int
	seeds := testkit.IfSmall(2, 12)
	for seed := range uint64(seeds) {
		virtual(t, func(_ context.Context, w *world) {
			s := newSimulation(w, seed)
			s.play()
			interrupted += s.interrupted
		})
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	testkit.Met(t, interrupted, "an interrupted run")
	t.Logf("%d seeds, %d interrupted runs", seeds, interrupted)
}

// simulation is one world of TestSimulation_UpAndDownAreDoneOnce.
type simulation struct {
	*world
	seed   uint64
	random *rand.Rand
	items  int
	list   []migrations.Migration
	offset atomic.Int64 // of the clocks that jump

	mu          sync.Mutex // guards the following
	wrote       map[int]int64
	interrupted int
}

func newSimulation(w *world, seed uint64) *simulation {
	r := rand.New(rand.NewPCG(seed, 0))
	s := &simulation{world: w, seed: seed, random: r, items: 10 + r.IntN(20), list: bothWays(1+r.IntN(8), 1+r.IntN(7)), wrote: map[int]int64{}}
	w.fill(s.items)
	w.engine.Inject(
		tabletest.Fault{Kind: tabletest.Delay, For: 7 * time.Millisecond, Probability: 0.5, Seed: seed},
		tabletest.Fault{Kind: tabletest.Delay, For: 3 * time.Millisecond, After: true, Probability: 0.5, Seed: seed + 1},
	)
	share := []float64{0, 0.005, 0.02}[r.IntN(3)]
	if share == 0 {
		return s
	}
	for i, fault := range []tabletest.Fault{
		{Kind: tabletest.DropRequest},
		{Kind: tabletest.DropRequest, For: 3 * time.Second},
		{Kind: tabletest.DropRequest, For: 40 * time.Second},
		{Kind: tabletest.DropReply},
		{Kind: tabletest.InternalErrorAfter},
		{Kind: tabletest.Throttle},
		{Kind: tabletest.TransactionConflict},
		{Kind: tabletest.DuplicateLate, For: 2 * time.Second},
		{Kind: tabletest.DuplicateLate, For: 30 * time.Second},
		{Kind: tabletest.Delay, For: 25 * time.Second},
		{Kind: tabletest.Delay, For: time.Minute, After: true},
	} {
		fault.Probability, fault.Seed = share, 100*seed+uint64(i)
		if fault.Kind == tabletest.Delay {
			fault.Probability /= 10
		}
		w.engine.Inject(fault)
	}
	return s
}

func (s *simulation) play() {
	ctx, stop := context.WithCancel(s.Context())
	var others sync.WaitGroup
	others.Go(func() { s.write(ctx) })
	others.Go(func() { s.jump(ctx) })
	for phase := range uint64(4) {
		up := phase%2 == 0
		var group sync.WaitGroup
		for i := range uint64(1 + s.random.IntN(3)) {
			r := rand.New(rand.NewPCG(s.seed, 1+3*phase+i))
			group.Go(func() { s.instance(up, r) })
		}
		group.Wait()
		time.Sleep(2 * time.Minute) // until what is late has arrived: it is conditional on items that the other direction restores
		s.check(up)
	}
	stop()
	others.Wait()
	s.engine.ClearFaults()
	for i := range s.items {
		assert.GreaterOrEqual(s, integer(s.get(itemKey(i))["w"]), s.wrote[i], "writes of item %d by others", i) // more if an answer was lost
	}
	assert.Empty(s, s.watch.backs, "checkpoints that went backwards")
}

// instance starts processes, one after the other, until one is done.
func (s *simulation) instance(up bool, r *rand.Rand) {
	for range 100 {
		s.mu.Lock()
		s.opts = nil
		if r.IntN(4) == 0 {
			s.opts = []table.Option{table.WithClock(func() time.Time { return time.Now().Add(time.Duration(s.offset.Load())) })}
		}
		p := s.start(lock.Config{Lease: time.Duration(2+r.IntN(2)*8) * time.Second}, s.list)
		s.mu.Unlock()
		if r.IntN(3) > 0 {
			p.line.at, p.line.after, p.line.quiet = int64(1+r.IntN(120)), r.IntN(2) == 0, r.IntN(4) == 0
		}
		var err error
		if up {
			_, err = p.m.Up(p.ctx)
		} else {
			_, err = p.m.DownTo(p.ctx, "")
		}
		if err == nil {
			return
		}
		s.mu.Lock()
		s.interrupted++
		s.mu.Unlock()
	}
	s.Errorf("an instance does not come to an end")
}

// write changes items as other programs do.
func (s *simulation) write(ctx context.Context) {
	r := rand.New(rand.NewPCG(s.seed, 100))
	for ctx.Err() == nil {
		time.Sleep(time.Duration(1+r.IntN(30)) * time.Millisecond)
		i := r.IntN(s.items)
		if s.table.Write(ctx, table.Update(itemKey(i), table.Attr("w").Add(1))) == nil {
			s.wrote[i]++
		}
	}
}

// jump changes some of the clocks.
func (s *simulation) jump(ctx context.Context) {
	r := rand.New(rand.NewPCG(s.seed, 101))
	for ctx.Err() == nil {
		time.Sleep(time.Duration(1+r.IntN(3000)) * time.Millisecond)
		s.offset.Store(int64(time.Duration(r.IntN(7200)-3600) * time.Second))
	}
}

// check checks that everything is done, or taken back.
func (s *simulation) check(up bool) {
	want, state := int64(0), migrations.Pending
	if up {
		want, state = 1, migrations.Applied
	}
	ctx := s.Context()
	again := func(read func() error) { // whatever the faults do to it
		for range 50 {
			if err := read(); err == nil || errors.Is(err, table.ErrNotFound) {
				return
			}
		}
		s.Fatal("cannot be read")
	}
	read := func(key keys.Key) (item table.Item) {
		again(func() (err error) {
			item, err = s.table.Get(ctx, key, true)
			return err
		})
		return item
	}
	for i := range s.items {
		item := read(itemKey(i))
		assert.Equal(s, want, integer(item["m"]), "item %d", i)
		assert.Equal(s, up, item["double"] != nil, "item %d", i)
	}
	for _, name := range []string{"atomic", "first", "second"} {
		assert.Equal(s, want, integer(read(keys.NewKey("COUNTER#"+name, "COUNTER"))["count"]), name)
	}
	s.opts = nil
	m := s.migrator(s.list)
	var list []migrations.Status
	again(func() (err error) {
		list, err = m.Status(ctx)
		return err
	})
	require.Len(s, list, len(s.list))
	for _, st := range list {
		assert.Equal(s, state, st.State, fmt.Sprint(st.ID, " up ", up))
	}
}
