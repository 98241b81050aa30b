package sim

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// fairHandoffs is how often in a row a process may pass the lock on to its own goroutines in the workload fair.
const fairHandoffs = 4

// Fair runs a few goroutines of a few processes that want one lock again and again.
type Fair struct {
	Processes int
	Workers   int           // of each process
	Rounds    int           // of each worker
	Lease     time.Duration // defaults to 5 s
	Overtakes bool          // a negative twin: now and then the last ticket is put behind the holder
	Greedy    bool          // another one: processes pass the lock to their own goroutines more often than they may
	Tardy     bool          // another one: some holders report a release, and release a lease and a half later
}

// FairProfile is Swarm, hastened. Every other seed has crashes and single requests that fail, and nothing else: then
// it is known how long anybody may delay the others.
func FairProfile(seed uint64) Profile {
	p := Swarm(seed).Hastened(4)
	if seed%2 == 1 {
		p = Profile{
			Lost: .02, LostLate: .02, LostReply: .05, Duplicated: .05, Throttled: .02, Internal: .02, InternalAfter: .02, Conflict: .02, Stale: .3,
			Crashes: 20 * time.Second, LateBy: Range{10 * time.Millisecond, 20 * time.Second},
		}
	}
	p.Sweeps = 0 // they delete rows from before the journal began
	return p
}

// timed reports whether a profile has nothing that delays a process, or what it sends, for an unknown time.
func timed(p Profile) bool { return gentleFor(p) && p.Jumps == 0 && p.Offset == 0 && p.Rate == 0 }

// Run runs the workload and checks it, by the changes of the lock's row. A ticket enters behind all others. Nobody
// overtakes, except by a limited number of passes within a process. A client that was told that it holds the lock was
// first, under that fence. Goroutines of a process are served in the order of their calls. If nothing is delayed for
// an unknown time, the first place is either used by its holder or soon given to the next one. A process that has
// died delays the others by one lease, however many tickets it has had, and so does a ticket that nobody uses.
func (f Fair) Run(w *World) Tally {
	if f.Lease == 0 {
		f.Lease = 5 * time.Second
	}
	r := &fair{Fair: f, world: w, journal: w.follow(lockNamed("fair")), failed: map[*Process][]time.Time{}}
	r.start()
	w.Settle()
	return r.check()
}

type fair struct {
	Fair

	world   *World
	journal *journal

	mu     sync.Mutex
	turns  []*turn
	failed map[*Process][]time.Time // when a lease that was passed on, or a release, failed
}

// turn is one granted call of Acquire, with true times.
type turn struct {
	process *Process
	worker  string
	ticket  string
	fence   int64
	came    time.Time
	entered time.Time
	left    time.Time // when its release was called; zero if it was not
}

func (f *fair) start() {
	config := lock.Config{Lease: f.Lease, HomeRegion: tabletest.Region, Handoffs: fairHandoffs}
	if f.Greedy {
		config.Handoffs *= 30
	}
	for i := range f.Processes {
		left := make([]int, f.Workers)
		for j := range left {
			left[j] = f.Rounds
		}
		f.world.Supervise("process"+strconv.Itoa(i+1), func(p *Process) {
			locks := p.Locks(config)
			for j := range left {
				p.Go("w"+strconv.Itoa(j+1), func(ctx context.Context, x *Worker) {
					for ctx.Err() == nil && !p.Crashed() && left[j] > 0 {
						left[j]--
						f.turn(ctx, x, locks)
					}
				})
			}
		})
	}
	if f.Overtakes {
		f.overtake()
	}
}

func (f *fair) turn(ctx context.Context, x *Worker, locks *lock.Client) {
	x.Sleep(x.Between(0, 100*time.Millisecond)) // otherwise those of a process come in any order
	t := &turn{process: x.Process, worker: x.Name, came: time.Now()}
	patience := 10 * time.Minute
	if x.IntN(10) == 0 {
		patience = x.Between(10*time.Millisecond, time.Second) // after that it leaves the line
	}
	bounded, cancel := x.Within(ctx, patience)
	defer cancel()
	x.Waits("fair")
	l, err := locks.Acquire(bounded, lock.Name("fair"))
	if err != nil {
		x.GivesUp("fair", err)
		return
	}
	x.Holds("fair", l)
	f.mu.Lock()
	t.ticket, t.fence, t.entered = l.Ticket(), l.Fence(), time.Now()
	f.turns = append(f.turns, t)
	f.mu.Unlock()
	x.Sleep(x.Between(time.Millisecond, 40*time.Millisecond))
	f.mu.Lock()
	t.left = time.Now()
	f.mu.Unlock()
	if f.Tardy && x.IntN(20) == 0 {
		x.Sleep(f.Lease * 3 / 2)
	}
	left, wall := l.Remaining(), x.Process.machine.Wall()
	err = l.Release(ctx)
	x.Releases("fair", err)
	if took := max(time.Since(t.left), x.Process.machine.Wall().Sub(wall)); err != nil || took >= left/2 {
		f.mu.Lock()
		f.failed[x.Process] = append(f.failed[x.Process], time.Now())
		f.mu.Unlock()
	}
}

// overtake puts the last ticket behind the holder, again and again.
func (f *fair) overtake() {
	w := f.world
	w.At(time.Now().Add(400*time.Millisecond), func() {
		key := lockNamed("fair")
		if s := lineOf(w.item(key)); len(s.tickets) > 2 {
			line := textsOf(w.item(key)["line"])
			last := len(line) - 1
			line = slices.Insert(line[:last:last], 1, line[last])
			w.must(w.Table().Write(context.WithoutCancel(w.ctx), table.Update(key, table.Attr("line").Set(line))))
			w.journal.applied(nil, []string{key.PK + "|" + key.SK})
		}
		f.overtake()
	})
}

func (f *fair) check() (tally Tally) {
	f.mu.Lock()
	defer f.mu.Unlock()
	line := f.journal.of(lockNamed("fair"))
	tally.Acknowledged = len(f.turns)
	line.checkOrder(f.world)
	tally.Handed = line.checkPasses(f.world, fairHandoffs)
	f.checkGrants(line)
	f.checkCalls()
	if timed(f.world.Profile) {
		tally.Audits = f.checkWaits(line)
	}
	return tally
}

// checkGrants checks that each client that was told that it holds the lock was first under that fence.
func (f *fair) checkGrants(line *lineLog) {
	first := map[string]int64{}
	for _, t := range line.tenures() {
		first[t.ticket+" "+strconv.FormatInt(t.fence, 10)]++
	}
	for _, t := range f.turns {
		if first[t.ticket+" "+strconv.FormatInt(t.fence, 10)] == 0 {
			f.world.Violation("%s of process %d was told that it holds the lock, and was never first under fence %d", t.worker, t.process.id, t.fence)
		}
	}
}

// checkCalls checks that goroutines of a process are served in the order of their calls, as in the workload queue.
func (f *fair) checkCalls() {
	q := &queue{world: f.world, failed: f.failed}
	visits := make([]*visit, len(f.turns))
	for i, t := range f.turns {
		visits[i] = &visit{process: t.process, worker: t.worker, fence: t.fence, came: t.came, entered: t.entered}
	}
	slices.SortFunc(visits, func(a, b *visit) int { return cmp.Compare(a.fence, b.fence) })
	q.checkFences(visits)
	q.checkOrder(visits)
}

// soon is how long a first place may stay unused while others wait, apart from leases: a living process looks, and
// repeats failed requests.
const soon = 3 * time.Second

// checkWaits checks that nobody waits longer than those before it need. It returns how many first places it has
// looked at.
func (f *fair) checkWaits(line *lineLog) (judged int) {
	turns := map[string]*turn{}
	for _, t := range f.turns {
		turns[t.ticket] = t
	}
	crashes := f.world.crashes()
	type kept struct {
		others time.Duration // others that wait
		until  time.Time
	}
	dead := map[*Process]kept{}
	// A session counts as dead when it has been silent for a lease, which is looked at each quarter of the lease, or
	// when its recorded end, which is rounded up to a second, is further in the past than the skew.
	gone := f.Lease + f.Lease/4 + 3*time.Second + soon
	for _, t := range line.tenures() {
		if t.crowd.IsZero() || t.to.IsZero() {
			continue
		}
		judged++
		by := line.first[t.ticket].by
		idle := t.to.Sub(t.crowd)
		held := turns[t.ticket]
		told := held != nil && held.fence == t.fence // otherwise it may be a ghost
		if told {
			idle -= max(0, f.used(held, t, crashes[by]))
		}
		crashed := crashes[by]
		if !crashed.IsZero() && crashed.Before(t.to) {
			dead[by] = kept{dead[by].others + idle, t.to}
			continue
		}
		most := soon
		if !told { // the process behind it, if it is no ghost as well, asks about it after a lease
			most += f.Lease + f.Lease/4
			for _, next := range t.behind {
				if turns[next] == nil || turns[next].entered.Before(t.from) {
					most += f.Lease
				}
			}
		}
		if idle > most {
			f.world.Violation("a first place was not used for %v while others waited, under fence %d, of process %d, which lives", idle.Round(time.Millisecond), t.fence, by.id)
		}
	}
	for _, p := range f.world.list() {
		most := gone
		for other, at := range crashes {
			if other != p && at.After(crashes[p]) && at.Before(dead[p].until) { // the process that would have taken over may be dead, too
				most += f.Lease + f.Lease/4
			}
		}
		if d := dead[p].others; d > most {
			f.world.Violation("process %d, which had died, kept others waiting for %v", p.id, d.Round(time.Millisecond))
		}
	}
	return judged
}

// used returns for how long a holder has used its time as the first, since others have waited.
func (f *fair) used(held *turn, t *tenure, crashed time.Time) time.Duration {
	from, to := held.entered, held.left
	if to.IsZero() || !crashed.IsZero() && crashed.Before(to) {
		to = crashed
	}
	if from.Before(t.crowd) {
		from = t.crowd
	}
	if to.IsZero() || to.After(t.to) {
		to = t.to
	}
	return to.Sub(from)
}

// textsOf reads a list of strings.
func textsOf(av types.AttributeValue) (list []string) {
	if l, ok := av.(*types.AttributeValueMemberL); ok {
		for _, e := range l.Value {
			list = append(list, stringOf(e))
		}
	}
	return list
}
