package sim

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// Every runs a job once per interval, on several instances.
type Every struct {
	Instances int
	Interval  time.Duration
	Intervals int           // how many intervals there are
	Lease     time.Duration // defaults to 2 s
	Overslept float64       // share of the runs in which the process is paused beyond its lease
	Failing   float64       // share of the runs that fail
	Apart     bool          // a negative twin: what a run does is not written together with its record
	Forgetful bool          // another one: some runs do nothing, and report success
}

var runsKey = keys.NewKey("RUNS", "RUNS")

// Run runs the workload and checks it. What the run of an interval commits is applied once for that interval, in the
// order of the intervals, and not if the commit was refused.
//
// If only crashes and single failing requests occur, no interval is left out either. An interval is recorded if a
// process was up from its begin until the end of the next interval, unless a run of it has failed.
func (e Every) Run(w *World) Tally {
	if e.Lease == 0 {
		e.Lease = 2 * time.Second
	}
	w.relics(lock.Name("job"))
	r := &every{Every: e, world: w, ledger: newLedger(w), failed: map[int64]bool{}, gentle: gentleFor(w.Profile)}
	r.start()
	w.Settle()
	return r.check()
}

type every struct {
	Every

	world  *World
	ledger *ledger
	begin  time.Time
	gentle bool // nothing goes wrong that leaves intervals out

	mu     sync.Mutex
	failed map[int64]bool // intervals of which a run has failed, by their begin in epoch seconds
	up     [][]int        // the processes that were up when the interval of that number began
}

// gentleFor reports whether a profile has nothing that prevents a process from running its intervals.
func gentleFor(p Profile) bool {
	return p.Storms == 0 && p.Pauses == 0 && p.Suspends == 0 && p.Cuts == 0 && p.SkewedDate == 0 && p.Slow == 0
}

// EveryProfile is Swarm. Every other seed has only crashes, wrong clocks and single requests that fail: then no
// interval may be left out.
func EveryProfile(seed uint64) Profile {
	if seed%2 == 0 {
		return Swarm(seed)
	}
	return Profile{
		Lost: .05, LostLate: .02, LostReply: .05, Duplicated: .05, Throttled: .05, Internal: .05, InternalAfter: .05, Conflict: .1, Stale: .3,
		Crashes: 40 * time.Second, Offset: time.Hour, Rate: .1,
	}
}

func (e *every) start() {
	e.begin = time.Now().Truncate(e.Interval)
	e.look(0)
	end := e.begin.Add(time.Duration(e.Intervals) * e.Interval)
	for i := range e.Instances {
		e.world.Supervise("instance"+strconv.Itoa(i+1), func(p *Process) {
			locks := p.Locks(lock.Config{Lease: e.Lease, HomeRegion: tabletest.Region})
			p.Go("w", func(ctx context.Context, x *Worker) {
				for left := time.Until(end); left > 0 && ctx.Err() == nil && !p.Crashed(); left = time.Until(end) {
					e.instance(ctx, x, locks, left)
				}
			})
		})
	}
}

// look records which processes are up when the interval of that number begins, and each later one.
func (e *every) look(k int) {
	e.world.At(e.begin.Add(time.Duration(k)*e.Interval), func() {
		var up []int
		for _, p := range e.world.list() {
			if !p.Crashed() {
				up = append(up, p.id)
			}
		}
		e.mu.Lock()
		e.up = append(e.up, up)
		e.mu.Unlock()
		if k < e.Intervals {
			e.look(k + 1)
		}
	})
}

func (e *every) instance(ctx context.Context, x *Worker, locks *lock.Client, left time.Duration) {
	bounded, cancel := x.Within(ctx, left)
	defer cancel()
	err := locks.Every(bounded, lock.Name("job"), e.Interval, func(ctx context.Context, lease *lock.Lease, at time.Time) error {
		err := e.run(ctx, x, lease, at)
		if err != nil && !errors.Is(err, lock.ErrLost) {
			e.mu.Lock()
			e.failed[at.Unix()] = true
			e.mu.Unlock()
		}
		return err
	})
	x.Note("runs no more: %v", err)
	x.Sleep(x.Between(0, time.Second))
}

var errFailed = errors.New("sim: the run has failed")

func (e *every) run(ctx context.Context, x *Worker, lease *lock.Lease, at time.Time) (err error) {
	x.Note("runs %v, fence %d", at.Format(time.TimeOnly), lease.Fence())
	x.Holds("job", lease)
	defer func() {
		if errors.Is(err, errFailed) {
			x.Releases("job", nil) // Every releases it
			return
		}
		x.Releases("job", err)
	}()
	if !e.gentle && x.Float64() < e.Overslept {
		x.Pause(e.Lease+x.Between(0, 2*e.Lease), x.IntN(2) == 0)
	} else {
		x.Sleep(x.Between(0, e.Interval/4))
	}
	if x.Float64() < e.Failing {
		return errFailed
	}
	if e.Forgetful && x.IntN(5) == 0 {
		return nil
	}
	name, mark := e.ledger.begin(x)
	times := table.Attr("at")
	op := table.Update(runsKey, times.Set(times.OrElse([]int64{}).Append([]int64{at.Unix()})))
	if e.Apart {
		err = x.Process.Table().Write(ctx, mark, op)
		x.Sleep(x.Between(0, e.Interval/4))
	} else {
		err = lease.Commit(ctx, mark, op)
	}
	e.ledger.end(name, err)
	x.Writes(err, "commits %s", name)
	return err
}

func (e *every) check() Tally {
	tally, applied := e.ledger.check()
	runs := numbers(e.world.item(runsKey)["at"])
	if len(runs) != len(applied) {
		e.world.Violation("%d runs are recorded of %d that were committed", len(runs), len(applied))
	}
	for i := 1; i < len(runs); i++ {
		switch {
		case runs[i] == runs[i-1]:
			e.world.Violation("the interval at %d was run twice", runs[i])
		case runs[i] < runs[i-1]:
			e.world.Violation("the interval at %d was run after that at %d", runs[i], runs[i-1])
		}
	}
	if !e.gentle {
		return tally
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for k := 0; k+2 < len(e.up); k++ {
		at := e.begin.Add(time.Duration(k) * e.Interval)
		through := func(id int) bool { return slices.Contains(e.up[k], id) && slices.Contains(e.up[k+2], id) }
		if e.failed[at.Unix()] || !slices.ContainsFunc(e.up[k], through) {
			continue
		}
		tally.Audits++
		if !slices.Contains(runs, at.Unix()) {
			e.world.Violation("the interval at %d was forgotten", at.Unix())
		}
	}
	return tally
}
