package sim

import (
	"math/rand/v2"
	"time"
)

// weather schedules what happens to a process.
func (w *World) weather(p *Process) {
	chance := rand.New(rand.NewPCG(mix(w.Seed, "weather", uint64(p.id)), 0))
	w.recur(chance, w.Profile.Pauses, p, "paused", func() bool { return w.halt(p, chance, false) })
	w.recur(chance, w.Profile.Suspends, p, "suspended", func() bool { return w.halt(p, chance, true) })
	w.recur(chance, w.Profile.Cuts, p, "partitioned", func() bool {
		until := time.Now().Add(w.Profile.StopFor.draw(chance))
		if until.After(p.joins) {
			p.joins = until
		}
		w.network.later(p.id, until, func() {
			if !time.Now().Before(p.joins) { // otherwise it was cut off once more meanwhile
				p.Cut(false)
			}
		})
		p.Cut(true)
		return true
	})
	w.recur(chance, w.Profile.Crashes, p, "crashed", func() bool {
		p.Crash()
		return true
	})
	w.recur(chance, w.Profile.Jumps, p, "clock jumped", func() bool {
		p.Jump(time.Duration((2*chance.Float64() - 1) * float64(w.Profile.Jump)))
		return true
	})
}

// climate schedules what happens to the world.
func (w *World) climate() {
	chance := rand.New(rand.NewPCG(mix(w.Seed, "climate"), 0))
	w.recur(chance, w.Profile.Storms, nil, "throttling storm", func() bool {
		until := time.Now().Add(w.Profile.StopFor.draw(chance))
		if until.After(w.storm) {
			w.storm = until
		}
		w.tell(Event{Kind: Storm}, "throttling storm")
		w.network.later(0, until, func() {
			if !time.Now().Before(w.storm) { // otherwise another one goes on
				w.tell(Event{Kind: Abated}, "throttling storm over")
			}
		})
		return true
	})
	w.recur(chance, w.Profile.Sweeps, nil, "deletion by time to live", func() bool {
		w.swept(w.engine.Sweep())
		return false // the deleted items are counted instead
	})
}

func (w *World) halt(p *Process, chance *rand.Rand, suspend bool) bool {
	w.network.later(p.id, time.Now().Add(w.Profile.StopFor.draw(chance)), p.Stop(suspend))
	return true
}

// recur calls do again and again, for a process that lives or for the world. do reports whether it has done
// something.
func (w *World) recur(chance *rand.Rand, mean time.Duration, p *Process, name string, do func() bool) {
	if mean == 0 {
		return
	}
	of := 0
	if p != nil {
		of = p.id
	}
	var next func()
	next = func() {
		wait := time.Duration(chance.ExpFloat64() * float64(mean))
		w.network.later(of, time.Now().Add(wait), func() {
			if w.calm || p != nil && p.Crashed() {
				return
			}
			if do() {
				w.met(name)
			}
			next()
		})
	}
	next()
}
