package sim

import (
	"context"
	"errors"
	"time"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// Counter is a counter that clients add to, under a lock, in two ways with each write: the table
// adds one to one number, which shows what was applied twice, or not at all; and another one is
// read and set, which shows where somebody else has written in between.
type Counter struct {
	Clients   int
	Rounds    int           // of each client
	Adds      int           // in each round
	Lease     time.Duration // defaults to 5 s
	Overslept float64       // share of the rounds in which the process is paused beyond its lease
	Anew      bool          // a negative twin: what has failed is repeated as another transaction
	Unguarded bool          // another one: additions do not depend on the lock
}

var counterKey = keys.NewKey("COUNTER", "COUNTER")

// CounterProfile is for figure F15: of the transactions that are sent 30 % meet another one,
// which is more of those that come through all else, and some answers get lost, in whatever
// weather besides; and few processes stop.
func CounterProfile(seed uint64) Profile {
	p := Swarm(seed)
	p.Conflict, p.LostReply, p.Pauses, p.Suspends = .4, max(p.LostReply, .02), 4*p.Pauses, 4*p.Suspends
	return p
}

// Run runs the workload and checks it: each addition was applied as often as its client was
// told, and the counter is their sum, both as it was added up and as it was set.
func (c Counter) Run(w *World) Tally {
	w.relics(lock.Name("counter"))
	r := c.in(w)
	r.start()
	w.Settle()
	return r.check()
}

func (c Counter) in(w *World) *counter {
	if c.Lease == 0 {
		c.Lease = 5 * time.Second
	}
	return &counter{Counter: c, world: w, ledger: newLedger(w)}
}

type counter struct {
	Counter

	world  *World
	ledger *ledger
}

func (c *counter) start() {
	c.world.turns("adder", c.Clients, c.Rounds, lock.Config{Lease: c.Lease, HomeRegion: tabletest.Region}, c.round)
}

func (c *counter) round(ctx context.Context, x *Worker, locks *lock.Client) {
	x.Sleep(x.Between(0, 200*time.Millisecond))
	bounded, cancel := x.Within(ctx, x.Between(10*time.Second, 2*time.Minute))
	defer cancel()
	x.Waits("counter")
	l, err := locks.Acquire(bounded, lock.Name("counter"))
	if err != nil {
		x.GivesUp("counter", err)
		return
	}
	x.Holds("counter", l)
	c.adds(ctx, x, l)
	x.Releases("counter", l.Release(ctx))
}

// adds reads the counter, and adds to it until one addition is not known to be applied: what the
// counter is at is not known then either, and may yet change under this lease.
func (c *counter) adds(ctx context.Context, x *Worker, l *lock.Lease) {
	item, err := x.read(ctx, counterKey)
	at := number(item, "set")
	for i := 0; i < c.Adds && err == nil; i++ {
		if i == c.Adds/2 && x.Float64() < c.Overslept {
			x.Pause(c.Lease+x.Between(0, 2*c.Lease), x.IntN(2) == 0)
		} else {
			x.Sleep(x.Between(0, 20*time.Millisecond))
		}
		write := l.Write
		switch {
		case c.Unguarded:
			write = x.Process.Table().Write
		case i == c.Adds-1 && x.IntN(3) == 0:
			write = l.Commit
		}
		at++
		err = c.add(ctx, x, write, at)
	}
}

// add adds one, to what the counter is at then.
func (c *counter) add(ctx context.Context, x *Worker, write func(context.Context, ...table.Op) error, at int64) error {
	name, mark := c.ledger.begin(x)
	err := c.write(ctx, x, write, mark, table.Update(counterKey, table.Attr("n").Add(1), table.Attr("set").Set(at)))
	c.ledger.end(name, err)
	x.Writes(err, "adds one as %s, which makes %d", name, at)
	return err
}

func (c *counter) write(ctx context.Context, x *Worker, write func(context.Context, ...table.Op) error, ops ...table.Op) error {
	if !c.Anew {
		return write(ctx, ops...)
	}
	// A loop around calls, each of which is another transaction.
	once := table.WithoutRetry(ctx)
	err := write(once, ops...)
	for again := 0; again < 10 && x.Process.Table().Retryable(err) && !errors.Is(err, lock.ErrLost); again++ {
		x.Sleep(x.Between(10*time.Millisecond, 100*time.Millisecond))
		err = write(once, ops...)
	}
	return err
}

func (c *counter) check() Tally {
	tally, applied := c.ledger.check()
	item := c.world.item(counterKey)
	n, set := int(number(item, "n")), int(number(item, "set"))
	if n != len(applied) && tally.Twice == 0 {
		c.world.Violation("the counter is at %d after %d additions", n, len(applied))
	}
	if n < tally.Acknowledged || n > tally.Acknowledged+tally.Unknown {
		c.world.Violation("the counter is at %d after %d additions that were acknowledged and %d that nobody knows of", n, tally.Acknowledged, tally.Unknown)
	}
	if set != n && tally.Twice == 0 {
		c.world.Violation("the counter was set to %d by %d additions", set, n)
	}
	return tally
}
