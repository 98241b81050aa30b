package sim

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table/tabletest"
)

// handoffs is how often in a row a client passes a lock on within its process.
const handoffs = 16

// Queue runs many goroutines of a few processes that wait for one lock.
type Queue struct {
	Processes int
	Waiters   int           // of each process
	Rounds    int           // of each waiter
	Lease     time.Duration // defaults to 5 s
	Fixed     time.Duration // of leases without a session, which are used for as long as that; 0 for none
	Apart     bool          // a negative twin: each process has a lock of its own
	Greedy    bool          // another one: processes pass the lock only to their own goroutines
	Unordered bool          // another one: each waiter has a client of its own, so goroutines of a process do not queue
}

// QueueProfile is Swarm, hastened. For every other seed, it has no pauses and no wrong clocks, which let two
// processes believe at once that they hold the lock.
func QueueProfile(seed uint64) Profile {
	p := Swarm(seed).Hastened(6)
	if seed%2 == 1 {
		p.Pauses, p.Suspends, p.Jumps, p.SkewedDate, p.Offset, p.Rate = 0, 0, 0, 0, 0, 0
	}
	return p
}

// Run runs the workload and checks it. Waiters of one process are served in the order in which they came. Nobody
// overtakes in the line. While other processes wait, the lock is passed on within a process only so many times in a
// row. Later holders have greater fences. If clocks are right and no process is stopped, nobody is let in before the
// one before has left or was told of its loss. A waiter that runs out of patience gives up; the Tally tells how many
// do.
func (q Queue) Run(w *World) Tally {
	if q.Lease == 0 {
		q.Lease = 5 * time.Second
	}
	w.relics(lock.Name("queue"))
	r := &queue{Queue: q, world: w, failed: map[*Process][]time.Time{}, journal: w.follow(lockNamed("queue"))}
	r.start()
	w.Settle()
	return r.check()
}

type queue struct {
	Queue

	world   *World
	journal *journal

	mu     sync.Mutex
	visits []*visit
	failed map[*Process][]time.Time // when its releases failed, or took too long
}

// visit is one call of Acquire and its result, with true times.
type visit struct {
	process *Process
	worker  string
	fence   int64
	came    time.Time // when Acquire was called
	entered time.Time // when it returned a lease; zero if it did not
	left    time.Time // when the lease was released, or its holder was told of its loss; zero if neither
}

func (q *queue) start() {
	for i := range q.Processes {
		left := make([]int, q.Waiters)
		for j := range left {
			left[j] = q.Rounds
		}
		q.world.Supervise("process"+strconv.Itoa(i+1), func(p *Process) {
			config := lock.Config{Lease: q.Lease, HomeRegion: tabletest.Region, Handoffs: handoffs}
			if q.Greedy {
				config.Handoffs = 30 * handoffs
			}
			common := p.Locks(config)
			for j := range left {
				locks := common
				if q.Unordered {
					locks = p.Locks(config)
				}
				p.Go("w"+strconv.Itoa(j+1), func(ctx context.Context, x *Worker) {
					for ctx.Err() == nil && !p.Crashed() && left[j] > 0 {
						left[j]--
						q.visit(ctx, x, locks)
					}
				})
			}
		})
	}
}

func (q *queue) visit(ctx context.Context, x *Worker, locks *lock.Client) {
	x.Sleep(x.Between(0, 100*time.Millisecond))
	v := &visit{process: x.Process, worker: x.Name, came: time.Now()}
	q.mu.Lock()
	q.visits = append(q.visits, v)
	q.mu.Unlock()
	target := lock.Name("queue")
	if q.Apart {
		target = lock.Name("queue of " + x.Process.Name)
	}
	bounded, cancel := x.Within(ctx, x.Between(10*time.Second, 10*time.Minute))
	defer cancel()
	x.Waits("queue")
	stay, opts := 20*time.Millisecond, []lock.Option(nil)
	if q.Fixed > 0 {
		stay, opts = q.Fixed, []lock.Option{lock.Fixed(q.Fixed)}
	}
	l, err := locks.Acquire(bounded, target, opts...)
	if err != nil {
		x.GivesUp("queue", err)
		return
	}
	x.Holds("queue", l)
	q.entered(v, l.Fence())
	told := context.AfterFunc(l.Context(), func() { q.leave(v) })
	defer told()
	x.Sleep(x.Between(time.Millisecond, stay))
	q.leave(v)
	left, start, wall := l.Remaining(), time.Now(), x.Process.machine.Wall()
	err = l.Release(ctx)
	x.Releases("queue", err)
	// By the process's clock, half of the rest may be all of it: the next one got the lock too late.
	if took := max(time.Since(start), x.Process.machine.Wall().Sub(wall)); err != nil || took >= left/2 {
		q.mu.Lock()
		q.failed[x.Process] = append(q.failed[x.Process], time.Now())
		q.mu.Unlock()
	}
}

func (q *queue) entered(v *visit, fence int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	v.entered, v.fence = time.Now(), fence
}

func (q *queue) leave(v *visit) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if v.left.IsZero() {
		v.left = time.Now()
	}
}

// check judges the visits that were let in.
func (q *queue) check() (tally Tally) {
	q.mu.Lock()
	defer q.mu.Unlock()
	var in []*visit
	for _, v := range q.visits {
		if v.entered.IsZero() {
			tally.Unknown++
			continue
		}
		tally.Acknowledged++
		in = append(in, v)
	}
	byFence := func(a, b *visit) int { return cmp.Or(cmp.Compare(a.fence, b.fence), a.entered.Compare(b.entered)) }
	slices.SortFunc(in, byFence)
	q.checkFences(in)
	q.checkOrder(in)
	line := q.journal.of(lockNamed("queue"))
	line.checkOrder(q.world)
	tally.Handed = line.checkPasses(q.world, handoffs)
	if p := q.world.Profile; p.Pauses == 0 && p.Suspends == 0 && p.Jumps == 0 && p.SkewedDate == 0 && p.Offset == 0 && p.Rate == 0 {
		tally.Audits = q.checkExclusion(in)
	}
	return tally
}

// checkFences checks that no two fences are the same, and that a client that came while another one was in has a
// greater one.
func (q *queue) checkFences(in []*visit) {
	var first *visit // to enter, of those with greater fences
	for i, v := range slices.Backward(in) {
		if i > 0 && in[i-1].fence == v.fence {
			q.world.Violation("fence %d was given out twice", v.fence)
		}
		if first != nil && first.entered.Before(v.came) {
			q.world.Violation("fence %d was given out after fence %d", v.fence, first.fence)
		}
		if first == nil || v.entered.Before(first.entered) {
			first = v
		}
	}
}

// checkOrder checks that goroutines of one process are served in their order. If a hand-over failed, or took so long
// that the lease was over, the goroutine that should have got the lock goes back into the line, and one that came
// meanwhile may be first.
func (q *queue) checkOrder(in []*visit) {
	last := map[*Process]*visit{}
	for _, v := range in {
		before := last[v.process]
		failed := slices.ContainsFunc(q.failed[v.process], func(at time.Time) bool { return at.After(v.came) && at.Before(v.entered) })
		if before != nil && v.came.Before(before.came) && !failed {
			q.world.Violation("%s of process %d came first and was served after %s, with fence %d after %d",
				v.worker, v.process.id, before.worker, v.fence, before.fence)
		}
		if before == nil || before.came.Before(v.came) {
			last[v.process] = v
		}
	}
}

// checkExclusion checks that nobody enters before the one before has left. It returns how many entered. It is not
// known when those of crashed processes left: they do not keep anybody out, but they count as let in.
func (q *queue) checkExclusion(in []*visit) (entered int) {
	in = slices.Clone(in)
	slices.SortFunc(in, func(a, b *visit) int { return cmp.Or(a.entered.Compare(b.entered), cmp.Compare(a.fence, b.fence)) })
	var last *visit // the one that leaves last
	for _, v := range in {
		if last != nil && v.entered.Before(last.left) {
			q.world.Violation("fence %d was let in while fence %d was inside", v.fence, last.fence)
		}
		if last == nil || last.left.Before(v.left) {
			last = v
		}
	}
	return len(in)
}
