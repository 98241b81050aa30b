package sim

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// LockSet is Jepsen's test of that name. Clients take turns, by a lock: they read a set, add an element and write the
// set back.
type LockSet struct {
	Clients   int
	Rounds    int           // of each client
	Lease     time.Duration // defaults to 5 s
	Overslept float64       // share of the critical sections in which the process is paused beyond its lease
	Unguarded bool          // the negative twin: writes do not depend on the lock
}

// Run runs the workload and checks it. Every element whose write was acknowledged is in the set, and none whose write
// was refused.
func (s LockSet) Run(w *World) Tally {
	w.relics(lock.Name("set"))
	r := s.in(w)
	r.start()
	w.Settle()
	return r.check()
}

func (s LockSet) in(w *World) *lockSet {
	if s.Lease == 0 {
		s.Lease = 5 * time.Second
	}
	return &lockSet{LockSet: s, world: w, key: keys.NewKey("SET", "SET"), state: map[int64]state{}}
}

func (s *lockSet) start() {
	s.world.turns("client", s.Clients, s.Rounds, lock.Config{Lease: s.Lease, HomeRegion: tabletest.Region}, s.round)
}

type lockSet struct {
	LockSet

	world *World
	key   keys.Key

	mu    sync.Mutex
	next  int64
	state map[int64]state
}

// round is one critical section.
func (s *lockSet) round(ctx context.Context, x *Worker, locks *lock.Client) {
	x.Sleep(x.Between(0, 200*time.Millisecond))
	bounded, cancel := x.Within(ctx, x.Between(10*time.Second, 2*time.Minute))
	defer cancel()
	x.Waits("set")
	l, err := locks.Acquire(bounded, lock.Name("set"))
	if err != nil {
		x.GivesUp("set", err)
		return
	}
	x.Holds("set", l)
	item, err := x.read(ctx, s.key)
	if err == nil {
		if x.Float64() < s.Overslept {
			x.Pause(s.Lease+x.Between(s.Lease/4, s.Lease), x.IntN(2) == 0)
		} else {
			x.Sleep(x.Between(0, 50*time.Millisecond))
		}
		s.write(ctx, x, l, numbers(item["elements"]))
	}
	x.Releases("set", l.Release(ctx))
}

// element returns a new element, of which nothing is known yet.
func (s *lockSet) element() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next++
	s.state[s.next] = unknown
	return s.next
}

func (s *lockSet) write(ctx context.Context, x *Worker, l *lock.Lease, set []int64) {
	e := s.element()
	op := table.Update(s.key, table.Attr("elements").Set(append(set, e)))
	var err error
	if s.Unguarded {
		err = x.Process.Table().Write(ctx, op)
	} else {
		err = l.Write(ctx, op)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state[e] = stateOf(err)
	x.Writes(err, "adds %d", e)
}

func (s *lockSet) check() Tally {
	set := numbers(s.world.item(s.key)["elements"])
	var c Tally
	s.mu.Lock()
	defer s.mu.Unlock()
	for e := int64(1); e <= s.next; e++ {
		times := 0
		for _, in := range set {
			if in == e {
				times++
			}
		}
		c.settle(s.world, "element "+strconv.FormatInt(e, 10), s.state[e], times)
	}
	return c
}
