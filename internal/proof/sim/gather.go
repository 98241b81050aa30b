package sim

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// Gather runs processes that acquire two of a few locks together, again and again, while others acquire single ones.
type Gather struct {
	Locks     int
	Gatherers int           // processes that acquire pairs, with two goroutines each
	Singles   int           // processes that acquire single locks, with two goroutines each
	Rounds    int           // of each goroutine
	Lease     time.Duration // defaults to 5 s
	Overslept float64       // share of the critical sections in which the process is paused beyond its lease
	OneByOne  bool          // a negative twin: pairs are acquired one lock after the other, in any order
	Unguarded bool          // another one: writes do not depend on the locks
}

// GatherProfile is Swarm, hastened, for half of the seeds. Every other seed has little more than lost answers, so
// that every caller has to be served. Every fourth seed also has crashes, which resolve a deadlock.
func GatherProfile(seed uint64) Profile {
	p := Swarm(seed).Hastened(4)
	if seed%2 == 1 {
		p = Profile{
			Lost: .02, LostLate: .01, LostReply: .1, Duplicated: .02, InternalAfter: .02, Conflict: .05, Stale: .3,
			LateBy: Range{10 * time.Millisecond, 20 * time.Second},
		}
		if seed%4 == 1 {
			p.Crashes = 30 * time.Second
		}
	}
	p.Sweeps = 0 // they delete rows from before the journal began
	return p
}

// Run runs the workload and checks it. Writes under the locks commit in the order of the fences of each lock, and
// acknowledged ones are there. The tickets of a pair come into their lines by one request, so pairs stand in one
// order in all lines. Nobody overtakes in any line. Nobody is stuck. In worlds where nothing goes wrong for long,
// every caller that waits without limit is served.
func (g Gather) Run(w *World) Tally {
	if g.Lease == 0 {
		g.Lease = 5 * time.Second
	}
	r := &gather{Gather: g, world: w, ledger: newLedger(w)}
	list := make([]keys.Key, g.Locks)
	for i := range list {
		list[i] = lockKey(i)
	}
	r.journal = w.follow(list...)
	r.start()
	w.SettleWithin(5 * time.Minute)
	return r.check()
}

type gather struct {
	Gather

	world   *World
	ledger  *ledger
	journal *journal

	mu    sync.Mutex
	pairs []*pair
}

// pair is two locks that a gatherer has held together.
type pair struct {
	process *Process
	worker  string
	locks   []int
	tickets []string
	fences  []int64
}

func (g *gather) start() {
	config := lock.Config{Lease: g.Lease, HomeRegion: tabletest.Region}
	for i := range g.Gatherers + g.Singles {
		name, round := "gatherer"+strconv.Itoa(i+1), g.both
		if i >= g.Gatherers {
			name, round = "single"+strconv.Itoa(i+1-g.Gatherers), g.one
		}
		left := []int{g.Rounds, g.Rounds}
		g.world.Supervise(name, func(p *Process) {
			locks := p.Locks(config)
			for j := range left {
				p.Go("w"+strconv.Itoa(j+1), func(ctx context.Context, x *Worker) {
					for ctx.Err() == nil && !p.Crashed() && left[j] > 0 {
						left[j]--
						round(ctx, x, locks)
					}
				})
			}
		})
	}
}

// patient returns the context with which a worker waits: in most cases without a timeout. served takes the result.
func (g *gather) patient(ctx context.Context, x *Worker) (_ context.Context, cancel context.CancelFunc, served func(err error)) {
	if x.IntN(8) == 0 {
		ctx, cancel = x.Within(ctx, x.Between(10*time.Millisecond, 2*time.Second))
		return ctx, cancel, func(error) {}
	}
	return ctx, func() {}, func(err error) {
		if err != nil && ctx.Err() == nil && timed(g.world.Profile) {
			g.world.Violation("%s of process %d was not served: %v", x.Name, x.Process.id, err)
		}
	}
}

// both acquires two locks together, and writes under both.
func (g *gather) both(ctx context.Context, x *Worker, locks *lock.Client) {
	x.Sleep(x.Between(0, 50*time.Millisecond)) // otherwise those of a process come in any order
	p := &pair{process: x.Process, worker: x.Name, locks: x.Perm(g.Locks)[:2]}
	targets, names := make([]lock.Target, 2), make([]string, 2)
	for i, n := range p.locks {
		names[i] = lockName(n)
		targets[i] = lock.Name(names[i])
	}
	bounded, cancel, served := g.patient(ctx, x)
	defer cancel()
	if g.OneByOne {
		g.oneByOne(bounded, x, locks, p, targets, names)
		return
	}
	for _, name := range names {
		x.Waits(name)
	}
	held, err := locks.AcquireAll(bounded, targets)
	served(err)
	if err != nil {
		for _, name := range names {
			x.GivesUp(name, err)
		}
		return
	}
	for i, l := range held.Leases() {
		x.Holds(names[i], l)
	}
	g.granted(p, held.Leases())
	write := held.Write
	if x.IntN(3) == 0 {
		write = held.Commit
	}
	g.write(ctx, x, p, write)
	x.releaseAll(ctx, held, names)
}

// oneByOne is the wrong way to acquire two locks.
func (g *gather) oneByOne(ctx context.Context, x *Worker, locks *lock.Client, p *pair, targets []lock.Target, names []string) {
	var leases []*lock.Lease
	for i, target := range targets {
		x.Waits(names[i])
		l, err := locks.Acquire(ctx, target)
		if err != nil {
			x.GivesUp(names[i], err)
			break
		}
		x.Holds(names[i], l)
		leases = append(leases, l)
	}
	if len(leases) == len(targets) {
		g.granted(p, leases)
		g.write(ctx, x, p, leases[0].Write)
	}
	for i, l := range leases {
		x.Releases(names[i], l.Release(ctx))
	}
}

// one acquires a single lock, and writes under it.
func (g *gather) one(ctx context.Context, x *Worker, locks *lock.Client) {
	x.Sleep(x.Between(0, 50*time.Millisecond)) // otherwise those of a process come in any order
	p := &pair{process: x.Process, worker: x.Name, locks: []int{x.IntN(g.Locks)}}
	name := lockName(p.locks[0])
	bounded, cancel, served := g.patient(ctx, x)
	defer cancel()
	x.Waits(name)
	l, err := locks.Acquire(bounded, lock.Name(name))
	served(err)
	if err != nil {
		x.GivesUp(name, err)
		return
	}
	x.Holds(name, l)
	g.granted(p, []*lock.Lease{l})
	g.write(ctx, x, p, l.Write)
	x.Releases(name, l.Release(ctx))
}

func (g *gather) granted(p *pair, leases []*lock.Lease) {
	for _, l := range leases {
		p.tickets, p.fences = append(p.tickets, l.Ticket()), append(p.fences, l.Fence())
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.pairs = append(g.pairs, p)
}

// write appends the fence of each lock to what is written under that lock.
func (g *gather) write(ctx context.Context, x *Worker, p *pair, write func(context.Context, ...table.Op) error) {
	if !timed(g.world.Profile) && x.Float64() < g.Overslept {
		x.Pause(g.Lease+x.Between(0, g.Lease), x.IntN(2) == 0)
	} else {
		x.Sleep(x.Between(0, 30*time.Millisecond))
	}
	name, mark := g.ledger.begin(x)
	ops := []table.Op{mark}
	fences := table.Attr("fences")
	for i, n := range p.locks {
		ops = append(ops, table.Update(writtenKey(n), fences.Set(fences.OrElse([]int64{}).Append([]int64{p.fences[i]}))))
	}
	if g.Unguarded {
		write = x.Process.Table().Write
	}
	err := write(ctx, ops...)
	g.ledger.end(name, err)
	x.Writes(err, "writes %s", name)
}

func (g *gather) check() Tally {
	g.mu.Lock()
	defer g.mu.Unlock()
	tally, _ := g.ledger.check()
	for i := range g.Locks {
		line := g.journal.of(lockKey(i))
		line.checkOrder(g.world)
		tally.Handed += line.checkPasses(g.world, handoffs)
		if !slices.IsSorted(numbers(g.world.item(writtenKey(i))["fences"])) {
			g.world.Violation("what was written under lock %d is not in the order of fences", i+1)
		}
	}
	for _, p := range g.pairs {
		if len(p.locks) == 2 {
			tally.Acquired++
			g.checkPair(p)
		}
	}
	return tally
}

// checkPair checks that both tickets came into their lines by one request.
func (g *gather) checkPair(p *pair) {
	came := func(i int) int { return g.journal.of(lockKey(p.locks[i])).first[p.tickets[i]].number }
	if first, second := came(0), came(1); first != second || first == 0 {
		g.world.Violation("%s of process %d came into the lines of a pair by two requests, %d and %d", p.worker, p.process.id, first, second)
	}
}
