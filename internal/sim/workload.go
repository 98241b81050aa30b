package sim

import (
	"fmt"
	"strings"
	"testing"
)

// Workload is something that processes do in a world, with a checker for what comes of it.
type Workload struct {
	Name  string
	About string

	// Run does it and reports violations to the world. The negative twin does it without what
	// is checked (a guard, a fence): over some seeds its checker must find violations.
	Run func(w *World, twin bool) Tally
}

// Workloads are all of them.
func Workloads() []Workload {
	return []Workload{
		{"lockset", "clients take turns in adding to a set (Jepsen's test); the twin writes without the guard", func(w *World, twin bool) Tally {
			return LockSet{Clients: 8, Rounds: w.Rounds(20), Overslept: .1, Unguarded: twin}.Run(w)
		}},
		{"register", "clients read and change registers under locks, linearizably; the twin writes without the guard", func(w *World, twin bool) Tally {
			r := Register{Clients: 8, Operations: w.Rounds(50), Overslept: .1}
			if twin {
				r.Guard = Unguarded
			}
			return r.Run(w).Tally
		}},
		{"versions", "clients add to the same rows of an entity with versions; the twin has none", func(w *World, twin bool) Tally {
			return Versions{Clients: 8, Rounds: w.Rounds(20), Blind: twin}.Run(w)
		}},
		{"unique", "clients create, change and delete rows with a unique value; the twin's is not", func(w *World, twin bool) Tally {
			return Unique{Clients: 8, Rounds: w.Rounds(20), Shared: twin}.Run(w)
		}},
	}
}

// WorkloadNamed finds one of them.
func WorkloadNamed(name string) (Workload, error) {
	names := make([]string, 0, len(Workloads()))
	for _, l := range Workloads() {
		if l.Name == name {
			return l, nil
		}
		names = append(names, l.Name)
	}
	return Workload{}, fmt.Errorf("no workload %q; there are %s", name, strings.Join(names, ", "))
}

// Play runs the workload under the profile that the seed decides (Swarm). It is what the
// replay command shows of a seed.
func (l Workload) Play(t *testing.T, o Options, twin bool) Result {
	t.Helper()
	o.Profile = Swarm(o.Seed)
	var tally Tally
	r := Run(t, o, func(w *World) { tally = l.Run(w, twin) })
	r.Tally = tally
	return r
}

// Tally is how attempts to write ended, as far as their callers know, and how many of those
// that were acknowledged have left no trace.
type Tally struct{ Acknowledged, Refused, Unknown, Lost int }

// Add adds another one.
func (t *Tally) Add(o Tally) {
	t.Acknowledged += o.Acknowledged
	t.Refused += o.Refused
	t.Unknown += o.Unknown
	t.Lost += o.Lost
}
