package sim

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// Readers read two rows, one after the other, under shared leases. A guarded write afterwards confirms what they have
// read. Writers change the rows alone, in two transactions. Between the two, the pair is half-written, and a row
// records that.
type Readers struct {
	Readers, Writers int
	Rounds           int           // of each client
	Lease            time.Duration // defaults to 5 s
	Overslept        float64       // share of the reads and writes in which the process is paused beyond its lease
	Unguarded        bool          // a negative twin: the write that confirms a reading does not depend on the lock
	Unlocked         bool          // another one: readers take no lock
	Together         bool          // another one: writers share the lock with readers
}

var (
	pairTarget          = lock.Name("pair")
	leftKey, rightKey   = keys.NewKey("PAIR", "LEFT"), keys.NewKey("PAIR", "RIGHT")
	pairRow, pairIsHalf = "n", "half"
)

// Run runs the workload and checks it. No confirmed reading may be of a half-written pair. Each write is there as
// often as its client was told.
func (r Readers) Run(w *World) Tally {
	if r.Lease == 0 {
		r.Lease = 5 * time.Second
	}
	w.relics(pairTarget)
	p := &readers{Readers: r, world: w, ledger: newLedger(w)}
	config := lock.Config{Lease: r.Lease, HomeRegion: tabletest.Region}
	w.turns("reader", r.Readers, r.Rounds, config, p.read)
	w.turns("writer", r.Writers, r.Rounds, config, p.write)
	w.Settle()
	return p.check()
}

type readers struct {
	Readers

	world  *World
	ledger *ledger
	audits atomic.Int64 // confirmed readings of a whole pair
}

// sleep is what a client does between two steps.
func (r *readers) sleep(x *Worker) {
	if x.Float64() < r.Overslept {
		x.Pause(r.Lease+x.Between(0, 2*r.Lease), x.IntN(2) == 0)
		return
	}
	x.Sleep(x.Between(0, 50*time.Millisecond))
}

// acquire acquires the lock, and reports that.
func (r *readers) acquire(ctx context.Context, x *Worker, locks *lock.Client, opts ...lock.Option) (*lock.Lease, bool) {
	x.Sleep(x.Between(0, 200*time.Millisecond))
	bounded, cancel := x.Within(ctx, x.Between(10*time.Second, 2*time.Minute))
	defer cancel()
	x.Waits("pair")
	acquire := locks.Acquire
	if x.IntN(4) == 0 {
		acquire = locks.TryAcquire
	}
	l, err := acquire(bounded, pairTarget, opts...)
	if err != nil {
		x.GivesUp("pair", err)
		return nil, false
	}
	x.Holds("pair", l)
	return l, true
}

func (r *readers) read(ctx context.Context, x *Worker, locks *lock.Client) {
	confirm := x.Process.Table().Write
	if !r.Unlocked {
		l, ok := r.acquire(ctx, x, locks, lock.Shared())
		if !ok {
			return
		}
		defer func() { x.Releases("pair", l.Release(ctx)) }()
		switch {
		case r.Unguarded:
		case x.IntN(3) == 0:
			confirm = l.Commit
		default:
			confirm = l.Write
		}
	}
	left, err := x.read(ctx, leftKey)
	if err != nil {
		return
	}
	r.sleep(x)
	right, err := x.read(ctx, rightKey)
	if err != nil {
		return
	}
	name, mark := r.ledger.begin(x)
	err = confirm(ctx, mark)
	r.ledger.end(name, err)
	x.Writes(err, "has read %d and %d, confirmed as %s", number(left, pairRow), number(right, pairRow), name)
	if err != nil || number(left, pairIsHalf) > 0 { // left by a writer that has died
		return
	}
	r.audits.Add(1)
	if a, b := number(left, pairRow), number(right, pairRow); a != b {
		r.world.Violation("a reader finds a half-written pair: %d and %d", a, b)
	}
}

func (r *readers) write(ctx context.Context, x *Worker, locks *lock.Client) {
	var opts []lock.Option
	if r.Together {
		opts = append(opts, lock.Shared())
	}
	l, ok := r.acquire(ctx, x, locks, opts...)
	if !ok {
		return
	}
	defer func() { x.Releases("pair", l.Release(ctx)) }()
	left, err := x.read(ctx, leftKey)
	if err != nil {
		return
	}
	n := number(left, pairRow) + 1
	finish := l.Write
	if x.IntN(3) == 0 {
		finish = l.Commit
	}
	for _, step := range []struct {
		write func(context.Context, ...table.Op) error
		ops   []table.Op
	}{
		{l.Write, []table.Op{table.Update(leftKey, table.Attr(pairRow).Set(n), table.Attr(pairIsHalf).Set(1))}},
		{finish, []table.Op{table.Update(leftKey, table.Attr(pairIsHalf).Set(0)), table.Update(rightKey, table.Attr(pairRow).Set(n))}},
	} {
		r.sleep(x)
		name, mark := r.ledger.begin(x)
		err := step.write(ctx, append(step.ops, mark)...)
		r.ledger.end(name, err)
		if x.Writes(err, "writes %d as %s", n, name); err != nil {
			return
		}
	}
}

func (r *readers) check() Tally {
	tally, _ := r.ledger.check()
	tally.Audits = int(r.audits.Load())
	return tally
}
