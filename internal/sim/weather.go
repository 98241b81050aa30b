package sim

import (
	"math/rand/v2"
	"time"
)

// weather schedules what happens to a process by itself.
func (w *World) weather(p *Process) {
	chance := rand.New(rand.NewPCG(mix(w.Seed, "weather", uint64(p.id)), 0))
	w.recur(chance, w.Profile.Pauses, p, "paused", func() { w.halt(p, chance, false) })
	w.recur(chance, w.Profile.Suspends, p, "suspended", func() { w.halt(p, chance, true) })
	w.recur(chance, w.Profile.Cuts, p, "partitioned", func() {
		p.Cut(true)
		w.network.later(p.id, time.Now().Add(w.Profile.StopFor.draw(chance)), func() { p.Cut(false) })
	})
	w.recur(chance, w.Profile.Crashes, p, "crashed", func() { p.Crash() })
	w.recur(chance, w.Profile.Jumps, p, "clock jumped", func() {
		p.Jump(time.Duration((2*chance.Float64() - 1) * float64(w.Profile.Jump)))
	})
}

// climate schedules what happens to the world.
func (w *World) climate() {
	chance := rand.New(rand.NewPCG(mix(w.Seed, "climate"), 0))
	w.recur(chance, w.Profile.Storms, nil, "throttling storm", func() {
		w.storm = time.Now().Add(w.Profile.StopFor.draw(chance))
		w.tell(Event{Kind: Storm}, "throttling storm")
		w.network.later(0, w.storm, func() {
			if !time.Now().Before(w.storm) { // or else another one has begun meanwhile
				w.tell(Event{Kind: Abated}, "throttling storm over")
			}
		})
	})
	w.recur(chance, w.Profile.Sweeps, nil, "deletion by time to live", func() {
		w.tell(Event{Kind: Swept}, "%d items deleted by time to live", w.engine.Sweep())
	})
}

func (w *World) halt(p *Process, chance *rand.Rand, suspend bool) {
	p.Stop(suspend)
	w.network.later(p.id, time.Now().Add(w.Profile.StopFor.draw(chance)), p.Resume)
}

// recur has something happen again and again, to a process that lives, or to the world.
func (w *World) recur(chance *rand.Rand, mean time.Duration, p *Process, name string, do func()) {
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
			w.faults[name]++
			do()
			next()
		})
	}
	next()
}
