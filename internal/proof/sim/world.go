package sim

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// Options are the options of a run. The zero value is a world without faults.
type Options struct {
	Seed    uint64
	Profile Profile
	History bool         // keep the history; the checks do not depend on it
	Rounds  float64      // what part of its rounds a workload plays; more than 1 plays more. Defaults to 1
	Schema  table.Schema // of the world's table; its name defaults to "app"
}

// World is one run: a table, a network, and the processes that use them.
type World struct {
	Seed    uint64
	Profile Profile

	rounds  float64
	engine  *tabletest.Engine
	table   *table.Table
	scheme  keys.Scheme
	network *network
	logger  *slog.Logger
	ctx     context.Context // ends with the world
	cancel  context.CancelFunc
	over    chan struct{} // closed when requests fail at once
	broken  chan struct{} // closed when something has panicked
	begin   time.Time

	ancestor *Process // a process from long before the world began; nil if there was none

	// Used by the network's goroutine, or before that starts.
	chance     *rand.Rand
	scheduled  int
	faults     map[string]int
	stragglers map[string]int // by the keys that they named: writes that arrived late, were applied, and had not been applied before
	revived    map[string]int // those of them that were refused when they first arrived
	storm      time.Time      // until when requests are throttled
	calm       bool           // no more faults, so that what is under way can end

	transactions, conflicts int // TransactWriteItems that were sent, and those that were cancelled because of a conflict

	history *history
	journal *journal // of lines; nil if no workload follows any

	mu         sync.Mutex
	processes  []*Process
	violations []string
	fences     map[fenced]bool  // of locks that were granted, and whether to a reader
	restored   bool             // from a backup: fences come again
	running    map[*Process]int // workers
	booting    int              // processes that are about to boot
}

// Result is the result of a run.
type Result struct {
	Seed       uint64
	Profile    Profile
	Tally      Tally // of the workload, if Workload.Play has played it
	History    string
	Events     []Event // History is their text
	Violations []string
	Broken     bool // a panic has ended the world. It is one of the violations, and nothing else was checked
	Requests   int
	Faults     map[string]int // those that happened, by kind
	Virtual    time.Duration

	Transactions int // TransactWriteItems among the requests
	Conflicts    int // those of them that a fault cancelled because of a conflict
	Missing      int // late requests and answers that had not arrived when the world ended; 0 after Settle
}

// Says reports whether there is a violation that contains this text.
func (r *Result) Says(text string) bool {
	return slices.ContainsFunc(r.Violations, func(v string) bool { return strings.Contains(v, text) })
}

// Run runs body in a world of its own, in virtual time, and closes the world when body returns. A panic of body, of a
// worker or of a timer is a violation, and ends the world. A panic of a goroutine that the code under test has
// started ends the program: nothing can recover it.
func Run(t *testing.T, o Options, body func(w *World)) Result {
	t.Helper()
	var result Result
	synctest.Test(t, func(t *testing.T) {
		t.Helper()
		w := newWorld(t, o)
		go w.network.run()
		var virtual time.Duration
		end := sync.OnceFunc(func() {
			virtual = time.Since(w.begin)
			w.end()
		})
		defer end() // also where body ends t
		w.guarded("the workload", func() { body(w) })
		end()
		events := w.history.events()
		result = Result{
			Seed: o.Seed, Profile: w.Profile, History: text(events), Events: events, Violations: w.violations,
			Requests: w.network.count, Faults: w.faults, Virtual: virtual,
			Broken: w.isBroken(), Transactions: w.transactions, Conflicts: w.conflicts, Missing: w.network.missing().left,
		}
	})
	return result
}

func newWorld(t *testing.T, o Options) *World {
	if o.Schema.Name == "" {
		o.Schema.Name = "app"
	}
	if o.Rounds == 0 {
		o.Rounds = 1
	}
	w := &World{
		Seed: o.Seed, Profile: o.Profile.withDefaults(), begin: time.Now(), rounds: o.Rounds, engine: tabletest.New(t), logger: slog.New(slog.DiscardHandler), over: make(chan struct{}), broken: make(chan struct{}),
		chance: rand.New(rand.NewPCG(mix(o.Seed, "world"), 0)), faults: map[string]int{}, stragglers: map[string]int{}, revived: map[string]int{}, history: newHistory(o.History), running: map[*Process]int{}, fences: map[fenced]bool{},
	}
	var err error
	w.table, err = table.Open(w.engine.Client(), o.Schema)
	if err == nil {
		err = w.table.Ensure(t.Context())
	}
	if err != nil {
		t.Fatalf("sim: seed %d: %v", w.Seed, err)
	}
	w.scheme = w.table.Scheme()
	w.network = newNetwork(w)
	w.ctx, w.cancel = context.WithCancel(t.Context())
	return w
}

// Rounds returns how many of n rounds a workload plays in this world: at least one.
func (w *World) Rounds(n int) int { return max(1, int(math.Round(float64(n)*w.rounds))) }

// Table returns the test's own table. Requests through it are applied at once, without faults.
func (w *World) Table() *table.Table { return w.table }

// Engine returns the engine, for snapshots and the like. Use it only in functions passed to At.
func (w *World) Engine() *tabletest.Engine { return w.engine }

// Context returns a context that ends with the world.
func (w *World) Context() context.Context { return w.ctx }

// At calls a function at a moment. Nothing else happens at the same time. It may be called from any goroutine.
func (w *World) At(at time.Time, do func()) { w.network.later(0, at, do) }

// Violation records that something forbidden has happened.
func (w *World) Violation(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	w.mu.Lock()
	w.violations = append(w.violations, text)
	w.mu.Unlock()
	w.tell(Event{Kind: Violation}, "VIOLATION: %s", text)
}

// fenced is a fence of a lock.
type fenced struct {
	lock  string
	fence int64
}

// granted checks that no lock is granted twice under one fence, except to readers.
func (w *World) granted(name string, fence int64, reader bool) {
	w.mu.Lock()
	f := fenced{name, fence}
	before, again := w.fences[f]
	w.fences[f] = reader
	bad := again && (!before || !reader) && !w.restored
	w.mu.Unlock()
	if bad {
		w.Violation("%s was granted twice under fence %d", name, fence)
	}
}

// Calm ends all faults, so that what is under way can come to its end.
func (w *World) Calm() {
	w.now(func() {
		w.calm = true
		for _, p := range w.list() {
			p.Resume()
			p.Cut(false)
		}
	})
}

// now calls a function while nothing else happens, and returns when it has returned or panicked.
func (w *World) now(do func()) {
	done := make(chan struct{})
	w.At(time.Now(), func() {
		defer close(done)
		do()
	})
	<-done
}

// Wait waits until the workers of all processes that have not crashed have ended, and no process is about to boot. It
// returns false if that takes longer than atMost. It panics if the world is broken, to end its workload.
func (w *World) Wait(atMost time.Duration) bool {
	pause := max(100*time.Millisecond, atMost/36000)
	for end := time.Now().Add(atMost); ; time.Sleep(pause) {
		w.intact()
		idle := false
		w.now(func() { idle = w.idle() }) // a worker that ends at this instant counts as ended
		if idle {
			return true
		}
		if time.Now().After(end) {
			return false
		}
	}
}

// Settle waits for the workers: under faults for an hour at most, and then without faults. A worker that still does
// not end is stuck, which is a violation. Settle returns after all late requests and answers have arrived, so a
// checker misses nothing. From then on there are no faults.
func (w *World) Settle() { w.SettleWithin(time.Hour) }

// SettleWithin is Settle for workloads that take longer than an hour.
func (w *World) SettleWithin(atMost time.Duration) {
	w.Wait(atMost)
	w.Calm()
	if !w.Wait(atMost) {
		w.Violation("stuck: nothing has gone wrong for %v, and somebody still waits", atMost)
	}
	for late := w.network.missing(); late.left > 0; late = w.network.missing() {
		time.Sleep(max(time.Until(late.last), 0) + time.Millisecond)
		w.intact()
	}
}

func (w *World) idle() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for p, n := range w.running {
		if n > 0 && !p.Crashed() {
			return false
		}
	}
	return w.booting == 0
}

// expect counts processes that are about to boot, or with -1 one that has.
func (w *World) expect(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.booting += n
}

func (w *World) list() []*Process {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]*Process(nil), w.processes...)
}

// end closes the world. Requests fail at once, and stopped processes continue, so that they notice.
func (w *World) end() {
	w.history.close()
	w.now(w.network.end) // the last event: no process crashes or boots after it
	close(w.over)
	w.cancel()
	var group sync.WaitGroup
	var failed atomic.Int32
	all := w.list()
	if w.ancestor != nil {
		all = append(all, w.ancestor)
	}
	for _, p := range all {
		p.thaw()
		for _, c := range p.clients {
			group.Go(func() {
				ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
				defer cancel()
				w.guarded("closing a client of "+p.Name, func() {
					if c.Close(ctx) != nil {
						failed.Add(1) // as expected: there are no answers any more
					}
				})
			})
		}
	}
	group.Wait()
	time.Sleep(2 * lock.MaxLease) // the leases that a failed Close leaves behind end
	for _, p := range all {
		p.workers.Wait()
	}
	close(w.network.quit)
	<-w.network.done
}

// must panics if the world itself fails. guarded recovers the panic.
func (w *World) must(err error) {
	if err != nil {
		panic(fmt.Errorf("sim: seed %d: %w", w.Seed, err))
	}
}

// note adds a line of the network to the history.
func (w *World) note(p *Process, what, request, how string) {
	p.tell(Event{Kind: Traffic, Worker: "~"}, "%-8s %s: %s", what, request, how)
}

// tell adds an event to the history.
func (w *World) tell(e Event, format string, args ...any) {
	if w.history.keep {
		e.Text = fmt.Sprintf(format, args...)
		w.history.add(e)
	}
}
