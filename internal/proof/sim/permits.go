package sim

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// Permits runs many clients that want a few permits. Each holder writes several lines to one log. A permit counts as
// used from the first of its lines to the last, so the log shows how many were used at once. Now and then an operator
// changes the number of permits.
type Permits struct {
	Most      int // the number of permits; at times there is one less
	Clients   int
	Rounds    int           // of each client
	Lines     int           // of each holder
	Changes   int           // how often the number of permits changes
	Lease     time.Duration // defaults to 5 s
	Overslept float64       // share of the lines before which the process is paused beyond its lease
	Unguarded bool          // a negative twin: lines do not depend on the permit
	OneMore   bool          // another one: there is one permit more than the checker knows of
}

// permitsLog is the row of the log, and exports is the lock that has permits.
var (
	permitsLog = keys.NewKey("PERMITS", "LOG")
	exports    = lock.Name("exports")
)

// Run runs the workload and checks it. No more permits are used at once than there are, and each line is there as
// often as its client was told.
func (p Permits) Run(w *World) Tally {
	if p.Lease == 0 {
		p.Lease = 5 * time.Second
	}
	r := &permits{Permits: p, world: w, ledger: newLedger(w)}
	config := lock.Config{Lease: p.Lease, HomeRegion: tabletest.Region}
	w.turns("exporter", p.Clients, p.Rounds, config, r.round)
	w.turns("operator", 1, p.Changes, config, r.change)
	w.Settle()
	return r.check()
}

type permits struct {
	Permits

	world    *World
	ledger   *ledger
	acquired atomic.Int64
}

// there returns the number of permits. In the twin OneMore that is one more than the checker knows.
func (p *permits) there() int {
	if p.OneMore {
		return p.Most + 1
	}
	return p.Most
}

func (p *permits) round(ctx context.Context, x *Worker, locks *lock.Client) {
	x.Sleep(x.Between(0, 200*time.Millisecond))
	bounded, cancel := x.Within(ctx, x.Between(10*time.Second, 2*time.Minute))
	defer cancel()
	x.Waits("exports")
	named := p.there()
	acquire := locks.Acquire
	if x.IntN(4) == 0 {
		acquire = locks.TryAcquire
	}
	l, err := acquire(bounded, exports, lock.Permits(named))
	if other := (*lock.PermitsError)(nil); errors.As(err, &other) { // the operator has changed it
		l, err = acquire(bounded, exports, lock.Permits(other.Row))
	}
	if err != nil {
		x.GivesUp("exports", err)
		return
	}
	p.acquired.Add(1)
	x.Holds("exports", l)
	for i := 0; i < p.Lines && err == nil; i++ {
		if x.Float64() < p.Overslept {
			x.Pause(p.Lease+x.Between(0, 2*p.Lease), x.IntN(2) == 0)
		} else {
			x.Sleep(x.Between(0, 50*time.Millisecond))
		}
		write := l.Write
		switch {
		case p.Unguarded:
			write = x.Process.Table().Write
		case i == p.Lines-1 && x.IntN(3) == 0:
			write = l.Commit
		}
		err = p.line(ctx, x, write, l.Fence())
	}
	x.Releases("exports", l.Release(ctx))
}

// line writes one line, which names the permit.
func (p *permits) line(ctx context.Context, x *Worker, write func(context.Context, ...table.Op) error, stay int64) error {
	name, mark := p.ledger.begin(x)
	lines := table.Attr("lines")
	err := write(ctx, mark, table.Update(permitsLog, lines.Set(lines.OrElse([]int64{}).Append([]int64{stay}))))
	p.ledger.end(name, err)
	x.Writes(err, "writes %s under %d", name, stay)
	return err
}

// change sets the number of permits to one less, or back.
func (p *permits) change(ctx context.Context, x *Worker, locks *lock.Client) {
	x.Sleep(x.Between(0, 2*time.Second))
	n := p.there() - x.IntN(2)
	x.Note("sets %d permits: %v", n, locks.SetPermits(ctx, exports, n))
}

func (p *permits) check() Tally {
	tally, _ := p.ledger.check()
	tally.Acquired = int(p.acquired.Load())
	if most := atOnce(numbers(p.world.item(permitsLog)["lines"])); most > p.Most {
		p.world.Violation("%d permits of %d were used at once", most, p.Most)
	}
	return tally
}

// atOnce returns how many permits were used at once, at least, by a log: each from its first line to its last.
func atOnce(log []int64) (most int) {
	first, last := map[int64]int{}, map[int64]int{}
	for i, stay := range log {
		if _, known := first[stay]; !known {
			first[stay] = i
		}
		last[stay] = i
	}
	held := 0
	for i, stay := range log {
		if first[stay] == i {
			held++
		}
		most = max(most, held)
		if last[stay] == i {
			held--
		}
	}
	return most
}
