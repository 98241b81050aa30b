package sim

import (
	"time"

	"github.com/mortise-go/mortise/lock"
)

// ClocksProfile is for figure F11. Each process's wall clock is off by up to an hour and is set again and again. Both
// of its clocks are up to 20 % too fast or too slow. Answers have wrong dates. Everything else is as in Swarm.
func ClocksProfile(seed uint64) Profile {
	p := Swarm(seed)
	p.Offset, p.Rate, p.Jumps, p.SkewedDate = time.Hour, .2, 20*time.Second, .1
	return p
}

// Clocks runs a LockSet and a Counter at the same time, in processes whose clocks are wrong.
type Clocks struct {
	Set     LockSet
	Counter Counter
}

// Run runs both workloads and checks them.
func (c Clocks) Run(w *World) Tally {
	w.relics(lock.Name("set"), lock.Name("counter"))
	set, counter := c.Set.in(w), c.Counter.in(w)
	set.start()
	counter.start()
	w.Settle()
	tally := set.check()
	tally.Add(counter.check())
	return tally
}
