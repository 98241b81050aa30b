package sim

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// Loss is a way in which rows of locks disappear.
type Loss int

// The ways in which rows disappear.
const (
	Expiring Loss = iota // by time to live, as soon as they have expired, with all other faults
	ByHand               // deleted at any moment; clocks are right, and nothing arrives late
	Restored             // the table is restored from a backup of any age
)

// lossOf returns the way of a seed.
func lossOf(seed uint64) Loss { return Loss(seed % 3) }

// DeletionProfile is for figure F12. It is Swarm without what does not go together with the seed's loss.
func DeletionProfile(seed uint64) Profile {
	p := Swarm(seed)
	p.Sweeps = 0 // the workload has its own
	// The workload takes weeks, not minutes.
	for _, mean := range []*time.Duration{&p.Storms, &p.Pauses, &p.Suspends, &p.Cuts, &p.Crashes, &p.Jumps} {
		*mean *= 1200
	}
	if lossOf(seed) != Expiring {
		p.Offset, p.Rate, p.Jumps, p.SkewedDate, p.Duplicated, p.LostLate, p.Slow = 0, 0, 0, 0, 0, 0, 0
	}
	return p
}

// Deletion runs clients that hold locks, and leave them idle, for days, in a table that loses rows.
type Deletion struct {
	Locks   int
	Clients int
	Rounds  int           // of each client
	Lease   time.Duration // defaults to 1 h
	Rewound bool          // a negative twin: a row that was deleted comes back with fence 1
	Brief   bool          // another one: no holder puts off the deletion of its row
}

// retention is the shortest that a Config accepts.
const retention = 24 * time.Hour

// Run runs the workload and checks it. A later holder has a greater fence, except across a restore: then fences
// continue from those in the backup. Writes under a lock commit in the order of its fences. Time to live never
// deletes the row of a held lock. If the table was not restored, what was acknowledged is there, and nothing that was
// refused.
func (d Deletion) Run(w *World) Tally {
	if d.Lease == 0 {
		d.Lease = lock.MaxLease
	}
	r := &deletion{Deletion: d, world: w, ledger: newLedger(w), loss: lossOf(w.Seed), chance: rand.New(rand.NewPCG(mix(w.Seed, "deletion"), 0)), held: map[*Worker]*grant{}, floors: [][]int64{make([]int64, d.Locks)}}
	r.start()
	w.SettleWithin(48 * retention)
	return r.check()
}

type deletion struct {
	Deletion

	world  *World
	ledger *ledger
	loss   Loss
	chance *rand.Rand // for what happens to the table; used in functions of At only

	backups []backup // used in functions of At only

	mu     sync.Mutex
	grants []*grant
	held   map[*Worker]*grant
	floors [][]int64 // by epoch and lock: the fences of the backup with which the epoch began
	seen   int       // how often a deletion of expired rows met the row of a held lock, which it spared
}

// backup is a backup of the table.
type backup struct {
	snapshot *tabletest.Snapshot
	fences   []int64 // by lock, the last one granted; none if the lock had no row
}

// grant is a lock that was acquired, with true times.
type grant struct {
	lock    int
	fence   int64
	lease   *lock.Lease
	process *Process
	from    int // how often the table had been restored when Acquire was called
	epoch   int // the same when it returned
	came    time.Time
	entered time.Time
}

func lockName(i int) string { return "lock" + strconv.Itoa(i+1) }

func lockKey(i int) keys.Key { return lockNamed(lockName(i)) }

func writtenKey(i int) keys.Key { return keys.NewKey("WRITTEN#"+strconv.Itoa(i+1), "WRITTEN") }

func (d *deletion) start() {
	config := lock.Config{Lease: d.Lease, Retention: retention, HomeRegion: tabletest.Region}
	d.world.turns("client", d.Clients, d.Rounds, config, d.round)
	d.again(retention/3, d.sweep)
	switch {
	case d.Rewound:
		d.again(2*retention, d.rewind)
	case d.loss == ByHand:
		d.again(2*retention, d.remove)
	case d.loss == Restored:
		d.again(retention*3/2, d.restore)
	}
}

// again calls a function at random moments.
func (d *deletion) again(mean time.Duration, do func()) {
	d.world.At(time.Now().Add(time.Duration(d.chance.ExpFloat64()*float64(mean))), func() {
		do()
		d.again(mean, do)
	})
}

func (d *deletion) round(ctx context.Context, x *Worker, locks *lock.Client) {
	x.Sleep(x.Between(0, retention))
	g := &grant{lock: x.IntN(d.Locks), process: x.Process, came: time.Now()}
	d.mu.Lock()
	g.from = len(d.floors) - 1
	d.mu.Unlock()
	name := lockName(g.lock)
	x.Waits(name)
	lease, err := d.acquire(ctx, x, locks, lock.Name(name))
	if err != nil {
		x.GivesUp(name, err)
		return
	}
	x.Holds(name, lease)
	d.mu.Lock()
	g.lease, g.fence, g.epoch, g.entered = lease, lease.Fence(), len(d.floors)-1, time.Now()
	d.grants = append(d.grants, g)
	d.held[x] = g
	d.mu.Unlock()
	d.write(ctx, x, g)
	if x.IntN(3) == 0 {
		x.Sleep(x.Between(0, 2*retention)) // so that its row has to outlive the retention
	} else {
		x.Sleep(x.Between(0, time.Minute))
	}
	d.write(ctx, x, g)
	d.mu.Lock()
	delete(d.held, x)
	d.mu.Unlock()
	x.Releases(name, lease.Release(ctx))
}

func (d *deletion) acquire(ctx context.Context, x *Worker, locks *lock.Client, target lock.Target) (*lock.Lease, error) {
	if x.IntN(2) == 0 {
		return locks.TryAcquire(ctx, target)
	}
	bounded, cancel := x.Within(ctx, x.Between(10*time.Second, time.Minute))
	defer cancel()
	return locks.Acquire(bounded, target)
}

// write appends the fence to what is written under the lock.
func (d *deletion) write(ctx context.Context, x *Worker, g *grant) {
	name, mark := d.ledger.begin(x)
	fences := table.Attr("fences")
	err := g.lease.Write(ctx, mark, table.Update(writtenKey(g.lock), fences.Set(fences.OrElse([]int64{}).Append([]int64{g.fence}))))
	d.ledger.end(name, err)
	x.Writes(err, "writes fence %d as %s", g.fence, name)
}

// sweep deletes expired rows. The row of a held lock is never one of them.
func (d *deletion) sweep() {
	held := d.holding()
	var named []*grant
	for _, g := range held {
		if row := lineOf(d.world.item(lockKey(g.lock))); row.holder() == g.lease.Ticket() && row.fence == g.fence {
			named = append(named, g)
		}
	}
	if d.Brief {
		d.shorten(named)
	}
	d.world.swept(d.world.engine.Sweep())
	if d.loss == Restored {
		return // the rows of a backup have expired meanwhile
	}
	for _, g := range named {
		if d.world.item(lockKey(g.lock)) == nil {
			d.world.Violation("time to live has deleted the row of lock %d, held with fence %d", g.lock+1, g.fence)
		}
	}
	d.mu.Lock()
	d.seen += len(named)
	d.mu.Unlock()
}

// shorten lets rows expire as if they had not been written to since the lock was acquired.
func (d *deletion) shorten(named []*grant) {
	for _, g := range named {
		key := lockKey(g.lock)
		until := g.entered.Add(d.Lease + retention).Unix()
		ttl := table.Attr(d.world.scheme.TTL).Set(until)
		d.world.must(d.world.Table().Write(context.WithoutCancel(d.world.ctx), table.Update(key, ttl)))
	}
}

// holding lists the leases in force of processes that run.
func (d *deletion) holding() []*grant {
	d.mu.Lock()
	defer d.mu.Unlock()
	var list []*grant
	for _, g := range d.held {
		if g.lease.Context().Err() == nil && !g.process.Crashed() {
			list = append(list, g)
		}
	}
	slices.SortFunc(list, func(a, b *grant) int { return cmp.Or(cmp.Compare(a.lock, b.lock), cmp.Compare(a.fence, b.fence)) })
	return list
}

// remove deletes the row of a lock, held or not.
func (d *deletion) remove() {
	i := d.chance.IntN(d.Locks)
	d.world.must(d.world.Table().Write(context.WithoutCancel(d.world.ctx), table.Delete(lockKey(i))))
	d.world.met("row deleted by hand")
	d.world.tell(Event{Kind: Noted}, "the row of lock %d is deleted by hand", i+1)
}

// rewind gives a deleted row back with fences from one.
func (d *deletion) rewind() {
	i := d.chance.IntN(d.Locks)
	if d.world.item(lockKey(i)) == nil {
		return
	}
	change := []table.Change{table.Attr("fence").Set(1)}
	for _, name := range []string{"line", "writes"} {
		change = append(change, table.Attr(name).Remove())
	}
	d.world.must(d.world.Table().Write(context.WithoutCancel(d.world.ctx), table.Update(lockKey(i), change...)))
	d.world.tell(Event{Kind: Noted}, "the fences of lock %d begin anew", i+1)
}

// restore makes a backup, or restores one.
func (d *deletion) restore() {
	w := d.world
	if len(d.backups) == 0 || d.chance.IntN(2) == 0 {
		b := backup{snapshot: w.engine.Snapshot(), fences: make([]int64, d.Locks)}
		for i := range b.fences {
			row := lineOf(w.item(lockKey(i)))
			if b.fences[i] = row.fence; row.holder() == "" {
				b.fences[i]-- // of the client that comes next
			}
		}
		d.backups = append(d.backups, b)
		w.tell(Event{Kind: Noted}, "backup %d", len(d.backups))
		return
	}
	i := d.chance.IntN(len(d.backups))
	w.engine.Restore(d.backups[i].snapshot)
	d.mu.Lock()
	d.floors = append(d.floors, d.backups[i].fences)
	d.mu.Unlock()
	w.mu.Lock()
	w.restored = true
	w.mu.Unlock()
	w.met("table restored")
	w.tell(Event{Kind: Noted}, "backup %d is restored", i+1)
}

func (d *deletion) check() Tally {
	d.mu.Lock()
	defer d.mu.Unlock()
	written := 0
	for i := range d.Locks {
		d.checkFences(i)
		fences := numbers(d.world.item(writtenKey(i))["fences"])
		written += len(fences)
		if !slices.IsSorted(fences) {
			d.world.Violation("what was written under lock %d is not in the order of fences", i+1)
		}
	}
	tally := d.ledger.told()
	if len(d.floors) == 1 { // otherwise a restore has undone acknowledged writes
		var applied []string
		if tally, applied = d.ledger.check(); len(applied) != written {
			d.world.Violation("%d fences are written by %d writes that were applied", written, len(applied))
		}
	}
	tally.Acquired, tally.Audits = len(d.grants), d.seen
	return tally
}

// checkFences checks that a client that acquires after another has a greater fence. An acquisition during which the
// table was restored may be of either table.
func (d *deletion) checkFences(i int) {
	var list []*grant
	for _, g := range d.grants {
		if g.lock == i && g.from == g.epoch {
			list = append(list, g)
		}
	}
	slices.SortFunc(list, func(a, b *grant) int { return cmp.Or(a.entered.Compare(b.entered), cmp.Compare(a.fence, b.fence)) })
	for j, g := range list {
		if floor := d.floors[g.epoch][i]; g.fence <= floor {
			d.world.Violation("fence %d of lock %d was given out after a backup with fence %d", g.fence, i+1, floor)
		}
		for _, before := range list[:j] {
			if before.epoch == g.epoch && before.entered.Before(g.came) && before.fence >= g.fence {
				d.world.Violation("fence %d of lock %d was given out after fence %d", g.fence, i+1, before.fence)
			}
		}
	}
}
