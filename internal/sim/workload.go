package sim

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// Workload is something that processes do in a world, with a checker for what comes of it.
type Workload struct {
	Name  string
	About string

	// Run does it and reports violations to the world. The negative twin does it without what
	// is checked (a guard, a fence): over some seeds its checker must find violations.
	Run func(w *World, twin bool) Tally

	// Profile is the weather that it is made for. Defaults to Swarm.
	Profile func(seed uint64) Profile
}

// Workloads are all of them.
func Workloads() []Workload {
	return []Workload{
		{
			Name: "lockset", About: "clients take turns in adding to a set (Jepsen's test); the twin writes without the guard",
			Run: func(w *World, twin bool) Tally {
				return LockSet{Clients: 8, Rounds: w.Rounds(20), Overslept: .1, Unguarded: twin}.Run(w)
			},
		},
		{
			Name: "counter", About: "clients add to a counter through conflicting transactions; the twin repeats unknown ones as new ones",
			Profile: CounterProfile,
			Run: func(w *World, twin bool) Tally {
				return Counter{Clients: 8, Rounds: w.Rounds(20), Adds: 5, Overslept: .01, Anew: twin}.Run(w)
			},
		},
		{
			Name: "bank", About: "money is moved between accounts that are locked together; the twin writes without the guard",
			Run: func(w *World, twin bool) Tally {
				return Bank{Accounts: 6, Clients: 6, Rounds: w.Rounds(15), Audits: 6, Overslept: .1, Unguarded: twin}.Run(w)
			},
		},
		{
			Name: "leader", About: "leaders write their fences to a log and to a resource outside; the twin's resource does not compare them",
			Run: func(w *World, twin bool) Tally {
				return Leader{Candidates: 4, Terms: w.Rounds(6), Lines: 8, Overslept: .05, Uncompared: twin}.Run(w)
			},
		},
		{
			Name: "every", About: "instances run a job once per interval; the twin writes what a run does apart from its record",
			Profile: EveryProfile,
			Run: func(w *World, twin bool) Tally {
				return Every{Instances: 4, Interval: 20 * time.Second, Intervals: w.Rounds(20), Overslept: .1, Failing: .05, Apart: twin}.Run(w)
			},
		},
		{
			Name: "queue", About: "many goroutines of a few processes wait for one lock; the twin's lets everybody in",
			Profile: QueueProfile,
			Run: func(w *World, twin bool) Tally {
				return Queue{Processes: 3, Waiters: 6, Rounds: w.Rounds(12), Fake: twin}.Run(w)
			},
		},
		{
			Name: "clocks", About: "a lock set and a counter under wrong clocks; the twin's set is written without the guard",
			Profile: ClocksProfile,
			Run: func(w *World, twin bool) Tally {
				return Clocks{
					Set:     LockSet{Clients: 6, Rounds: w.Rounds(15), Overslept: .05, Unguarded: twin},
					Counter: Counter{Clients: 4, Rounds: w.Rounds(10), Adds: 3, Overslept: .05},
				}.Run(w)
			},
		},
		{
			Name: "deletion", About: "rows of locks expire, are deleted by hand, or are restored from a backup; the twin's fences begin at one then",
			Profile: DeletionProfile,
			Run: func(w *World, twin bool) Tally {
				return Deletion{Locks: 3, Clients: 4, Rounds: w.Rounds(16), Rewound: twin}.Run(w)
			},
		},
		{
			Name: "register", About: "clients read and change registers under locks, linearizably; the twin writes without the guard",
			Run: func(w *World, twin bool) Tally {
				r := Register{Clients: 8, Operations: w.Rounds(50), Overslept: .1}
				if twin {
					r.Guard = Unguarded
				}
				return r.Run(w).Tally
			},
		},
		{
			Name: "versions", About: "clients add to the same rows of an entity with versions; the twin has none",
			Run: func(w *World, twin bool) Tally {
				return Versions{Clients: 8, Rounds: w.Rounds(20), Blind: twin}.Run(w)
			},
		},
		{
			Name: "unique", About: "clients create, change and delete rows with a unique value; the twin's is not",
			Run: func(w *World, twin bool) Tally {
				return Unique{Clients: 8, Rounds: w.Rounds(20), Shared: twin}.Run(w)
			},
		},
	}
}

// Weather is the profile of a seed.
func (l Workload) Weather(seed uint64) Profile {
	if l.Profile == nil {
		return Swarm(seed)
	}
	return l.Profile(seed)
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

// Play runs the workload under the profile that the seed decides. It is what the
// replay command shows of a seed.
func (l Workload) Play(t *testing.T, o Options, twin bool) Result {
	t.Helper()
	o.Profile = l.Weather(o.Seed)
	var tally Tally
	r := Run(t, o, func(w *World) { tally = l.Run(w, twin) })
	r.Tally = tally
	return r
}

// Tally is how attempts to write ended, as far as their callers know, and how many of those
// that were acknowledged have left no trace, or were applied more than once.
type Tally struct {
	Acknowledged, Refused, Unknown, Lost, Twice int

	Audits int // of what has to be so on the way, that were completed
	Handed int // locks that one goroutine of a process has handed over to another
}

// All is how many attempts there were.
func (t *Tally) All() int { return t.Acknowledged + t.Refused + t.Unknown }

// Add adds another one.
func (t *Tally) Add(o Tally) {
	t.Acknowledged += o.Acknowledged
	t.Refused += o.Refused
	t.Unknown += o.Unknown
	t.Lost += o.Lost
	t.Twice += o.Twice
	t.Audits += o.Audits
	t.Handed += o.Handed
}
