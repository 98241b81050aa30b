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
	Unit  string // what its Tally counts as acknowledged, refused and unknown; empty for writes

	// Run does it and reports violations to the world. The negative twin does it without what
	// is checked (a guard, a fence): over some seeds its checker must find violations.
	Run func(w *World, twin bool) Tally

	// Twins are further negative twins, for what the checker would not find with the first.
	Twins []Twin

	// Profile is the weather that it is made for. Defaults to Swarm.
	Profile func(seed uint64) Profile
}

// Twin is a negative twin of a workload.
type Twin struct {
	Name  string
	About string
	Run   func(w *World) Tally
}

// Counts is what the workload's Tally counts.
func (l Workload) Counts() string {
	if l.Unit == "" {
		return "writes"
	}
	return l.Unit
}

// With is the workload with the twin of that name, one of Twins, as its only one.
func (l Workload) With(name string) (Workload, error) {
	names := make([]string, 0, len(l.Twins))
	for _, twin := range l.Twins {
		if twin.Name != name {
			names = append(names, twin.Name)
			continue
		}
		run := l.Run
		l.Run = func(w *World, twinned bool) Tally {
			if twinned {
				return twin.Run(w)
			}
			return run(w, false)
		}
		l.Twins = nil
		return l, nil
	}
	return Workload{}, fmt.Errorf("workload %s has no twin %q; there are %q", l.Name, name, names)
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
				return theBank(w, Bank{Unguarded: twin})
			},
			Twins: []Twin{{
				Name: "one lock", About: "only the account that is debited is locked",
				Run: func(w *World) Tally { return theBank(w, Bank{OneLock: true}) },
			}},
		},
		{
			Name: "leader", About: "leaders write their fences to a log and to a resource outside; the twin's resource does not compare them",
			Run: func(w *World, twin bool) Tally {
				return theLeader(w, Leader{Uncompared: twin})
			},
			Twins: []Twin{{
				Name: "unguarded", About: "lines of the log do not depend on the lock",
				Run: func(w *World) Tally { return theLeader(w, Leader{Unguarded: true}) },
			}},
		},
		{
			Name: "every", About: "instances run a job once per interval; the twin writes what a run does apart from its record",
			Profile: EveryProfile,
			Run: func(w *World, twin bool) Tally {
				return theJob(w, Every{Apart: twin})
			},
			Twins: []Twin{{
				Name: "forgetful", About: "some runs do nothing and say that they have",
				Run: func(w *World) Tally { return theJob(w, Every{Forgetful: true}) },
			}},
		},
		{
			Name: "queue", About: "many goroutines of a few processes wait for one lock; in the twin each process has one of its own",
			Unit:    "visits",
			Profile: QueueProfile,
			Run: func(w *World, twin bool) Tally {
				return theQueue(w, Queue{Apart: twin})
			},
			Twins: []Twin{
				{
					Name: "greedy", About: "processes give the lock away to none but their own",
					Run: func(w *World) Tally { return theQueue(w, Queue{Greedy: true}) },
				},
				{
					Name: "unordered", About: "each waiter has a client of its own",
					Run: func(w *World) Tally { return theQueue(w, Queue{Unordered: true}) },
				},
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
				return theDeletion(w, Deletion{Rewound: twin})
			},
			Twins: []Twin{{
				Name: "brief", About: "no holder puts off the deletion of its row",
				Run: func(w *World) Tally { return theDeletion(w, Deletion{Brief: true}) },
			}},
		},
		{
			Name: "register", About: "clients read and change registers under locks, linearizably; the twin writes without the guard",
			Profile: func(seed uint64) Profile { return Swarm(seed).Hastened(3) },
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
			Profile: EntityProfile,
			Run: func(w *World, twin bool) Tally {
				return Versions{Clients: 8, Rounds: w.Rounds(20), Blind: twin}.Run(w)
			},
		},
		{
			Name: "unique", About: "clients create, change and delete rows with a unique value; the twin's is not",
			Profile: EntityProfile,
			Run: func(w *World, twin bool) Tally {
				return Unique{Clients: 8, Rounds: w.Rounds(20), Shared: twin}.Run(w)
			},
		},
	}
}

// These are the sizes in which workloads with several twins are played.

func theBank(w *World, b Bank) Tally {
	b.Accounts, b.Clients, b.Rounds, b.Audits, b.Overslept = 6, 6, w.Rounds(15), 6, .1
	return b.Run(w)
}

func theLeader(w *World, l Leader) Tally {
	l.Candidates, l.Terms, l.Lines, l.Overslept = 4, w.Rounds(6), 8, .05
	return l.Run(w)
}

func theJob(w *World, e Every) Tally {
	e.Instances, e.Interval, e.Intervals, e.Overslept, e.Failing = 4, 20*time.Second, w.Rounds(20), .1, .05
	return e.Run(w)
}

func theQueue(w *World, q Queue) Tally {
	q.Processes, q.Waiters, q.Rounds = 3, 6, w.Rounds(12)
	return q.Run(w)
}

func theDeletion(w *World, d Deletion) Tally {
	d.Locks, d.Clients, d.Rounds = 3, 4, w.Rounds(16)
	return d.Run(w)
}

// Weather is the profile of a seed.
func (l Workload) Weather(seed uint64) Profile {
	if l.Profile == nil {
		return Swarm(seed)
	}
	return l.Profile(seed)
}

// WorkloadNames are what they are called.
func WorkloadNames() (names []string) {
	for _, l := range Workloads() {
		names = append(names, l.Name)
	}
	return names
}

// WorkloadNamed finds one of them.
func WorkloadNamed(name string) (Workload, error) {
	for _, l := range Workloads() {
		if l.Name == name {
			return l, nil
		}
	}
	return Workload{}, fmt.Errorf("no workload %q; there are %s", name, strings.Join(WorkloadNames(), ", "))
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

// Tally is how attempts to write, or what else the workload counts, ended, as far as their callers know, and how many of those
// that were acknowledged have left no trace, or were applied more than once.
type Tally struct {
	Acknowledged, Refused, Unknown, Lost, Twice int

	Acquired int // locks, where the workload counts them
	Audits   int // of what has to be so on the way, that were completed
	Handed   int // locks that one goroutine of a process has handed over to another
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
	t.Acquired += o.Acquired
	t.Audits += o.Audits
	t.Handed += o.Handed
}
