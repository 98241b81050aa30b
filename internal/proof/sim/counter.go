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

// Counter runs clients that add to a counter under a lock. Each write adds in two ways. The table adds one to one
// number, which shows whether a write was applied twice or not at all. Another number is read and set, which shows
// whether another client has written in between.
type Counter struct {
	Clients   int
	Rounds    int           // of each client
	Adds      int           // in each round
	Lease     time.Duration // defaults to 5 s
	Overslept float64       // share of the rounds in which the process is paused beyond its lease
	Anew      bool          // a negative twin: a failed transaction is repeated as another transaction
	Unguarded bool          // another one: additions do not depend on the lock
}

var counterKey = keys.NewKey("COUNTER", "COUNTER")

// CounterProfile is for figure F15. 30 % of the transactions that are sent meet a conflict, and more than that of
// those that arrive. Some answers are lost. Few processes stop. Everything else is as in Swarm.
func CounterProfile(seed uint64) Profile {
	p := Swarm(seed)
	p.Conflict, p.LostReply, p.Pauses, p.Suspends = .4, max(p.LostReply, .02), 4*p.Pauses, 4*p.Suspends
	return p
}

// Run runs the workload and checks it. Each addition was applied as often as its client was told. The counter is the
// sum of the additions, both as the table added it up and as it was set.
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

// adds reads the counter, and adds to it until it is not known whether an addition was applied. Then the counter's
// value is not known either, and it may still change under this lease.
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

// add adds one to the counter, whose value is given.
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
	// The loop repeats whole calls, each of which is another transaction.
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
