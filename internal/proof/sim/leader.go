package sim

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// Leader runs candidates for leadership. A leader writes the fence of its term to a log in the table, guarded, and to
// a register outside, which compares it.
type Leader struct {
	Candidates int
	Terms      int           // that each candidate completes
	Lines      int           // of each term
	Lease      time.Duration // defaults to 5 s
	Overslept  float64       // share of the lines before which the process is paused beyond its lease
	Uncompared bool          // a negative twin: the register does not compare fences
	Unguarded  bool          // another one: lines do not depend on the lock, and a leader that has lost it goes on
}

var logKey = keys.NewKey("LOG", "LOG")

// DeploymentProfile is as Swarm. In addition, the settings of the processes' lock clients differ.
func DeploymentProfile(seed uint64) Profile {
	p := Swarm(seed)
	p.Settings = true
	return p
}

// Run runs the workload and checks it. The fences of the log never decrease, and those of the register never do. A
// leader that the register refuses has lost the lock. Acknowledged lines are in the log, and refused ones are not.
// One call of Lead never has two terms at once.
func (l Leader) Run(w *World) Tally {
	if l.Lease == 0 {
		l.Lease = 5 * time.Second
	}
	w.relics(lock.Name("leader"))
	r := &leader{Leader: l, world: w, ledger: newLedger(w), outside: &outside{world: w, careless: l.Uncompared}}
	r.start()
	w.Settle()
	return r.check()
}

type leader struct {
	Leader

	world   *World
	ledger  *ledger
	outside *outside

	mu      sync.Mutex
	leading map[*Worker]bool
	past    map[string]int64 // fences of lines that began after the register had seen a larger one
}

func (l *leader) start() {
	l.leading, l.past = map[*Worker]bool{}, map[string]int64{}
	l.world.turns("candidate", l.Candidates, l.Terms, lock.Config{Lease: l.Lease, HomeRegion: tabletest.Region}, l.campaign)
}

func (l *leader) campaign(ctx context.Context, x *Worker, locks *lock.Client) {
	x.Sleep(x.Between(0, 2*time.Second))
	x.Waits("leader")
	waits := true
	err := locks.Lead(ctx, lock.Name("leader"), func(ctx context.Context, lease *lock.Lease) error {
		l.enter(x, true)
		defer l.enter(x, false)
		err := l.term(ctx, x, lease)
		if waits = errors.Is(err, lock.ErrLost) || errors.Is(context.Cause(ctx), lock.ErrLost); waits {
			x.Releases("leader", lock.ErrLost)
			x.Waits("leader") // Lead waits
		}
		return err
	})
	if waits {
		x.GivesUp("leader", err)
		return
	}
	x.Releases("leader", err)
}

// enter records that a worker begins to lead, or ends.
func (l *leader) enter(x *Worker, leads bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if leads && l.leading[x] {
		l.world.Violation("%s leads twice at once", x.Process.Name)
	}
	l.leading[x] = leads
}

func (l *leader) term(ctx context.Context, x *Worker, lease *lock.Lease) error {
	x.Holds("leader", lease)
	for range l.Lines {
		if x.Float64() < l.Overslept {
			x.Pause(l.Lease+x.Between(0, 2*l.Lease), x.IntN(2) == 0)
		} else {
			x.Sleep(x.Between(0, 100*time.Millisecond))
		}
		// It does not look at ctx: nothing can look at it and write in one step.
		x.Note("writes outside, fence %d: %v", lease.Fence(), l.outside.write(x, lease.Fence()))
		name, mark := l.ledger.begin(x)
		l.compare(name, lease.Fence())
		fences := table.Attr("fences")
		line := table.Update(logKey, fences.Set(fences.OrElse([]int64{}).Append([]int64{lease.Fence()})))
		var err error
		if l.Unguarded {
			err = x.Process.Table().Write(context.WithoutCancel(ctx), mark, line)
		} else {
			err = lease.Write(ctx, mark, line)
		}
		l.ledger.end(name, err)
		x.Writes(err, "writes line %s", name)
		if ctx.Err() != nil || stateOf(err) == refused {
			return err
		}
	}
	return nil
}

// compare records whether the register has seen a larger fence than that of a line that begins.
func (l *leader) compare(name string, fence int64) {
	if l.outside.past(fence) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.past[name] = fence
	}
}

func (l *leader) check() Tally {
	tally, applied := l.ledger.check()
	for _, name := range applied {
		if fence, past := l.past[name]; past {
			l.world.Violation("line %s was begun under fence %d after the register had seen a larger one", name, fence)
		}
	}
	fences := numbers(l.world.item(logKey)["fences"])
	if len(fences) != len(applied) {
		l.world.Violation("the log has %d lines of %d that were applied", len(fences), len(applied))
	}
	if !slices.IsSorted(fences) {
		l.world.Violation("the log's fences decrease")
	}
	return tally
}
