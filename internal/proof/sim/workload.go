package sim

import (
	"cmp"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mortise-go/mortise/lock"
)

// Workload is what processes do in a world, with a checker of the result.
type Workload struct {
	Name  string
	About string
	Unit  string // what its Tally counts as acknowledged, refused and unknown; empty for writes

	// Run runs it and reports violations to the world.
	Run func(w *World) Tally

	// Twins are its negative twins, at least one: the workload without what it checks.
	Twins []Twin

	// Profile returns the faults for a seed. Defaults to Swarm.
	Profile func(seed uint64) Profile

	twin   string  // which twin of the workload it is; empty for none
	rounds float64 // how many times its rounds it plays; 0 for once
}

// Twin is a negative twin of a workload. Over some seeds, its checker must find violations.
type Twin struct {
	Name  string
	About string
	Shows []string // texts of violations, each of which has to be found; other checks are tested with made-up histories
	Run   func(w *World) Tally
}

// Counts returns what the workload's Tally counts.
func (l Workload) Counts() string {
	if l.Unit == "" {
		return "writes"
	}
	return l.Unit
}

// Twin returns the negative twin with that name, as a workload, or the first one if name is empty.
func (l Workload) Twin(name string) (Workload, Twin, error) {
	names := make([]string, 0, len(l.Twins))
	for _, twin := range l.Twins {
		if name != "" && twin.Name != name {
			names = append(names, twin.Name)
			continue
		}
		l.Run, l.twin, l.Twins = twin.Run, twin.Name, nil
		return l, twin, nil
	}
	return Workload{}, Twin{}, fmt.Errorf("workload %s has no twin %q; there are %q", l.Name, name, names)
}

// Longer returns the workload with the given number of times its rounds.
func (l Workload) Longer(times float64) Workload {
	l.rounds = times * cmp.Or(l.rounds, 1)
	return l
}

// Replay returns the command that shows a seed.
func (l Workload) Replay(seed uint64) string {
	command := "go run ./internal/proof/sim/cmd/replay -workload " + l.Name
	if l.twin != "" {
		command += " -twin=" + l.twin
	}
	if l.rounds != 0 {
		command += fmt.Sprint(" -rounds ", l.rounds)
	}
	return fmt.Sprint(command, " -seed ", seed)
}

// Workloads returns all workloads.
func Workloads() []Workload {
	return []Workload{
		{
			Name: "lockset", About: "clients take turns in adding to a set (Jepsen's test)",
			Run: func(w *World) Tally { return theSet(w, LockSet{}) },
			Twins: []Twin{{
				Name: "unguarded", About: "writes do not depend on the lock", Shows: []string{"was acknowledged and is lost"},
				Run: func(w *World) Tally { return theSet(w, LockSet{Unguarded: true}) },
			}},
		},
		{
			Name: "overslept", About: "the lock set in fair weather, with the shortest leases: clients sleep beyond them, and nothing else goes wrong",
			Profile: func(uint64) Profile { return Profile{} },
			Run:     func(w *World) Tally { return theSet(w, LockSet{Lease: lock.MinLease}) },
			Twins: []Twin{{
				Name: "unguarded", About: "writes do not depend on the lock", Shows: []string{"was acknowledged and is lost"},
				Run: func(w *World) Tally { return theSet(w, LockSet{Lease: lock.MinLease, Unguarded: true}) },
			}},
		},
		{
			Name: "counter", About: "clients read a counter and add to it through conflicting transactions",
			Profile: CounterProfile,
			Run:     func(w *World) Tally { return theCounter(w, Counter{}) },
			Twins: []Twin{
				{
					Name: "anew", About: "unknown transactions are repeated as new ones", Shows: []string{"is there 2 times"},
					Run: func(w *World) Tally { return theCounter(w, Counter{Anew: true}) },
				},
				{
					Name: "unguarded", About: "additions do not depend on the lock", Shows: []string{"the counter was set to"},
					Run: func(w *World) Tally { return theCounter(w, Counter{Unguarded: true}) },
				},
			},
		},
		{
			Name: "bank", About: "money is moved between accounts that are locked together",
			Run: func(w *World) Tally { return theBank(w, Bank{}) },
			Twins: []Twin{
				{
					Name: "unguarded", About: "writes do not depend on the locks", Shows: []string{"the accounts have"},
					Run: func(w *World) Tally { return theBank(w, Bank{Unguarded: true}) },
				},
				{
					Name: "one-lock", About: "only the account that is debited is locked", Shows: []string{"an audit under all locks finds"},
					Run: func(w *World) Tally { return theBank(w, Bank{OneLock: true}) },
				},
				{
					Name: "one-by-one", About: "views read one account after the other, as a batch may", Shows: []string{"a view finds"},
					Run: func(w *World) Tally { return theBank(w, Bank{OneByOne: true}) },
				},
			},
		},
		{
			Name: "leader", About: "leaders write their fences to a log and to a resource outside",
			Run: func(w *World) Tally { return theLeader(w, Leader{}) },
			Twins: []Twin{
				{
					Name: "uncompared", About: "the resource outside does not compare fences", Shows: []string{"the register goes back"},
					Run: func(w *World) Tally { return theLeader(w, Leader{Uncompared: true}) },
				},
				{
					Name: "unguarded", About: "lines of the log do not depend on the lock", Shows: []string{"the log's fences decrease", "after the register had seen a larger one"},
					Run: func(w *World) Tally { return theLeader(w, Leader{Unguarded: true}) },
				},
			},
		},
		{
			Name: "deployment", About: "leaders whose settings differ, as while a change of them is deployed",
			Profile: DeploymentProfile,
			Run:     func(w *World) Tally { return theLeader(w, Leader{}) },
			Twins: []Twin{{
				Name: "unguarded", About: "lines of the log do not depend on the lock", Shows: []string{"the log's fences decrease", "after the register had seen a larger one"},
				Run: func(w *World) Tally { return theLeader(w, Leader{Unguarded: true}) },
			}},
		},
		{
			Name: "every", About: "instances run a job once per interval",
			Profile: EveryProfile,
			Run:     func(w *World) Tally { return theJob(w, Every{}) },
			Twins: []Twin{
				{
					Name: "apart", About: "what a run does is written apart from its record", Shows: []string{"was run twice"},
					Run: func(w *World) Tally { return theJob(w, Every{Apart: true}) },
				},
				{
					Name: "forgetful", About: "some runs do nothing and say that they have", Shows: []string{"was forgotten"},
					Run: func(w *World) Tally { return theJob(w, Every{Forgetful: true}) },
				},
			},
		},
		{
			Name: "queue", About: "many goroutines of a few processes wait for one lock",
			Unit:    "visits",
			Profile: QueueProfile,
			Run:     func(w *World) Tally { return theQueue(w, Queue{}) },
			Twins: []Twin{
				{
					Name: "apart", About: "each process has a lock of its own", Shows: []string{"was given out after fence", "was let in while"},
					Run: func(w *World) Tally { return theQueue(w, Queue{Apart: true}) },
				},
				{
					Name: "greedy", About: "processes give the lock away to none but their own", Shows: []string{"times in a row"},
					Run: func(w *World) Tally { return theQueue(w, Queue{Greedy: true}) },
				},
				{
					Name: "unordered", About: "each waiter has a client of its own", Shows: []string{"came first and was served after"},
					Run: func(w *World) Tally { return theQueue(w, Queue{Unordered: true}) },
				},
			},
		},
		{
			Name: "brief", About: "many goroutines of a few processes wait for one lock with leases that are shorter than some reads",
			Unit:    "visits",
			Profile: func(uint64) Profile { return Profile{Slow: .1, SlowBy: Range{time.Second, 2500 * time.Millisecond}} },
			Run:     func(w *World) Tally { return theQueue(w, Queue{Lease: 20 * time.Second, Fixed: time.Second}) },
			Twins: []Twin{{
				Name: "apart", About: "each process has a lock of its own", Shows: []string{"was given out after fence", "was let in while"},
				Run: func(w *World) Tally {
					return theQueue(w, Queue{Lease: 20 * time.Second, Fixed: time.Second, Apart: true})
				},
			}},
		},
		{
			Name: "fair", About: "goroutines of a few processes want one lock again and again: who came first, and who waits for whom",
			Unit:    "turns",
			Profile: FairProfile,
			Run:     func(w *World) Tally { return theFair(w, Fair{}) },
			Twins: []Twin{
				{
					Name: "overtakes", About: "now and then the last one in the line is put behind the holder", Shows: []string{"somebody overtakes in the line"},
					Run: func(w *World) Tally { return theFair(w, Fair{Overtakes: true}) },
				},
				{
					Name: "greedy", About: "processes pass the lock on to their own for longer than they may", Shows: []string{"times in a row while others waited"},
					Run: func(w *World) Tally { return theFair(w, Fair{Greedy: true}) },
				},
				{
					Name: "tardy", About: "some holders do nothing for a lease and a half before they release", Shows: []string{"was not used for"},
					Run: func(w *World) Tally { return theFair(w, Fair{Tardy: true}) },
				},
			},
		},
		{
			Name: "gather", About: "pairs of four locks are taken together, while others take single ones",
			Profile: GatherProfile,
			Run:     func(w *World) Tally { return theGatherers(w, Gather{}) },
			Twins: []Twin{
				{
					Name: "one-by-one", About: "pairs are taken one lock after the other, in any order", Shows: []string{"stuck: ", "by two requests"},
					Run: func(w *World) Tally { return theGatherers(w, Gather{OneByOne: true}) },
				},
				{
					Name: "unguarded", About: "writes do not depend on the locks", Shows: []string{"is not in the order of fences"},
					Run: func(w *World) Tally { return theGatherers(w, Gather{Unguarded: true}) },
				},
			},
		},
		{
			Name: "permits", About: "many clients want a few permits, whose number changes, and write to one log under them",
			Run: func(w *World) Tally { return thePermits(w, Permits{}) },
			Twins: []Twin{
				{
					Name: "unguarded", About: "lines do not depend on the permit", Shows: []string{"were used at once"},
					Run: func(w *World) Tally { return thePermits(w, Permits{Unguarded: true}) },
				},
				{
					Name: "one-more", About: "there is one permit more than is told", Shows: []string{"were used at once"},
					Run: func(w *World) Tally { return thePermits(w, Permits{OneMore: true}) },
				},
			},
		},
		{
			Name: "readers", About: "readers share a lock and read a pair of rows, which writers change alone, one after the other",
			Run: func(w *World) Tally { return theReaders(w, Readers{}) },
			Twins: []Twin{
				{
					Name: "unguarded", About: "what confirms a reading does not depend on the lock", Shows: []string{"a reader finds a half-written pair"},
					Run: func(w *World) Tally { return theReaders(w, Readers{Unguarded: true}) },
				},
				{
					Name: "unlocked", About: "readers take no lock", Shows: []string{"a reader finds a half-written pair"},
					Run: func(w *World) Tally { return theReaders(w, Readers{Unlocked: true}) },
				},
				{
					Name: "together", About: "writers share the lock with readers", Shows: []string{"a reader finds a half-written pair"},
					Run: func(w *World) Tally { return theReaders(w, Readers{Together: true}) },
				},
			},
		},
		{
			Name: "clocks", About: "a lock set and a counter under wrong clocks",
			Profile: ClocksProfile,
			Run:     func(w *World) Tally { return theClocks(w, LockSet{}) },
			Twins: []Twin{{
				Name: "unguarded", About: "writes to the set do not depend on the lock", Shows: []string{"was acknowledged and is lost"},
				Run: func(w *World) Tally { return theClocks(w, LockSet{Unguarded: true}) },
			}},
		},
		{
			Name: "deletion", About: "rows of locks expire, are deleted by hand, or are restored from a backup",
			Profile: DeletionProfile,
			Run:     func(w *World) Tally { return theDeletion(w, Deletion{}) },
			Twins: []Twin{
				{
					Name: "rewound", About: "fences begin at one where a row was deleted", Shows: []string{"was given out after fence"},
					Run: func(w *World) Tally { return theDeletion(w, Deletion{Rewound: true}) },
				},
				{
					Name: "brief", About: "no holder puts off the deletion of its row", Shows: []string{"time to live has deleted"},
					Run: func(w *World) Tally { return theDeletion(w, Deletion{Brief: true}) },
				},
			},
		},
		{
			Name: "register", About: "clients read and change four registers under locks, linearizably",
			Profile: func(seed uint64) Profile { return Swarm(seed).Hastened(3) },
			Run:     func(w *World) Tally { return theRegisters(w, Register{}) },
			Twins: []Twin{{
				Name: "unguarded", About: "writes do not depend on the lock", Shows: []string{"not linearizable"},
				Run: func(w *World) Tally { return theRegisters(w, Register{Guard: Unguarded}) },
			}},
		},
		{
			Name: "single", About: "clients read and change one register under a lock, linearizably",
			Run: func(w *World) Tally { return theRegisters(w, Register{Registers: 1}) },
			Twins: []Twin{
				{
					Name: "unguarded", About: "writes do not depend on the lock", Shows: []string{"not linearizable as a register"},
					Run: func(w *World) Tally { return theRegisters(w, Register{Registers: 1, Guard: Unguarded}) },
				},
				{
					Name: "unfenced", About: "writes depend on somebody's holding the lock", Shows: []string{"not linearizable as a register"},
					Run: func(w *World) Tally { return theRegisters(w, Register{Registers: 1, Guard: Unfenced}) },
				},
				{
					Name: "swept", About: "rows of locks are deleted while they are held", Shows: []string{"not linearizable as a lock"},
					Run: func(w *World) Tally { return theRegisters(w, Register{Registers: 1, Swept: true}) },
				},
			},
		},
		{
			Name: "versions", About: "clients add to the same rows of an entity with versions",
			Profile: EntityProfile,
			Run:     func(w *World) Tally { return theVersions(w, Versions{}) },
			Twins: []Twin{{
				Name: "blind", About: "the entity has no versions", Shows: []string{"was acknowledged and is lost"},
				Run: func(w *World) Tally { return theVersions(w, Versions{Blind: true}) },
			}},
		},
		{
			Name: "unique", About: "clients create, change and delete rows with a unique value",
			Profile: EntityProfile,
			Run:     func(w *World) Tally { return theUniques(w, Unique{}) },
			Twins: []Twin{{
				Name: "shared", About: "the value is not unique", Shows: []string{"have the same value", "is kept for"},
				Run: func(w *World) Tally { return theUniques(w, Unique{Shared: true}) },
			}},
		},
	}
}

// These functions have the sizes in which workloads and their twins are played.

func theSet(w *World, s LockSet) Tally {
	s.Clients, s.Rounds, s.Overslept = 8, w.Rounds(20), .1
	return s.Run(w)
}

func theCounter(w *World, c Counter) Tally {
	c.Clients, c.Rounds, c.Adds, c.Overslept = 8, w.Rounds(20), 5, .01
	return c.Run(w)
}

func theClocks(w *World, s LockSet) Tally {
	s.Clients, s.Rounds, s.Overslept = 6, w.Rounds(15), .05
	return Clocks{Set: s, Counter: Counter{Clients: 4, Rounds: w.Rounds(10), Adds: 3, Overslept: .05}}.Run(w)
}

func theRegisters(w *World, r Register) Tally {
	r.Clients, r.Operations, r.Overslept = 8, w.Rounds(50), .1
	return r.Run(w)
}

func theVersions(w *World, v Versions) Tally {
	v.Clients, v.Rounds = 8, w.Rounds(20)
	return v.Run(w)
}

func theUniques(w *World, u Unique) Tally {
	u.Clients, u.Rounds = 8, w.Rounds(20)
	return u.Run(w)
}

func theBank(w *World, b Bank) Tally {
	b.Accounts, b.Clients, b.Rounds, b.Audits, b.Views, b.Overslept = 6, 6, w.Rounds(15), 6, 20, .1
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

func theFair(w *World, f Fair) Tally {
	f.Processes, f.Workers, f.Rounds = 4, 3, w.Rounds(25)
	return f.Run(w)
}

func theGatherers(w *World, g Gather) Tally {
	g.Locks, g.Gatherers, g.Singles, g.Rounds, g.Overslept = 4, 4, 2, w.Rounds(12), .05
	return g.Run(w)
}

func thePermits(w *World, p Permits) Tally {
	p.Most, p.Clients, p.Rounds, p.Lines, p.Changes, p.Overslept = 3, 8, w.Rounds(12), 3, w.Rounds(8), .05
	return p.Run(w)
}

func theReaders(w *World, r Readers) Tally {
	r.Readers, r.Writers, r.Rounds, r.Overslept = 6, 3, w.Rounds(15), .1
	return r.Run(w)
}

func theDeletion(w *World, d Deletion) Tally {
	d.Locks, d.Clients, d.Rounds = 3, 4, w.Rounds(12)
	return d.Run(w)
}

// Weather returns the profile of a seed.
func (l Workload) Weather(seed uint64) Profile {
	if l.Profile == nil {
		return Swarm(seed)
	}
	return l.Profile(seed)
}

// WorkloadNames returns the names of all workloads.
func WorkloadNames() (names []string) {
	for _, l := range Workloads() {
		names = append(names, l.Name)
	}
	return names
}

// WorkloadNamed returns the workload with that name.
func WorkloadNamed(name string) (Workload, error) {
	for _, l := range Workloads() {
		if l.Name == name {
			return l, nil
		}
	}
	return Workload{}, fmt.Errorf("no workload %q; there are %s", name, strings.Join(WorkloadNames(), ", "))
}

// Play runs the workload under the profile of the seed. The replay command calls it, too.
func (l Workload) Play(t *testing.T, o Options) Result {
	t.Helper()
	o.Profile = l.Weather(o.Seed)
	o.Rounds = cmp.Or(o.Rounds, 1) * cmp.Or(l.rounds, 1)
	var tally Tally
	r := Run(t, o, func(w *World) { tally = l.Run(w) })
	r.Tally = tally
	return r
}

// Tally counts how attempts ended, as far as their callers know: writes, or whatever else the workload counts. Lost
// are acknowledged writes that left no trace, and Twice are writes that were applied more than once.
type Tally struct {
	Acknowledged, Refused, Unknown, Lost, Twice int

	Acquired int // locks, if the workload counts them
	Audits   int // completed checks of what must hold at any time
	Views    int // completed views of several rows at one moment
	Handed   int // locks that one goroutine of a process has passed to another

	Linearity // the judged histories of registers
}

// All returns the number of attempts.
func (t *Tally) All() int { return t.Acknowledged + t.Refused + t.Unknown }

// Add adds another tally.
func (t *Tally) Add(o Tally) {
	t.Acknowledged += o.Acknowledged
	t.Refused += o.Refused
	t.Unknown += o.Unknown
	t.Lost += o.Lost
	t.Twice += o.Twice
	t.Acquired += o.Acquired
	t.Audits += o.Audits
	t.Views += o.Views
	t.Handed += o.Handed
	t.Linearity.Add(o.Linearity)
}
