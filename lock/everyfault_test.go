package lock_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/testkit"
	"github.com/mortise-go/mortise/table/tabletest"
)

var seed = flag.Uint64("everyfault.seed", 1, "which pairs of faults TestTwoFaults tries")

// pairs is how many pairs of faults have to hit in each scenario.
const pairs = 100

// retries is how many repetitions are hit, beyond the calls of a scenario.
const retries = 3

// share is the part of the cases that is tried: one in share. `make proof` tries all.
func share() int {
	return testkit.IfSmall(50, 1)
}

// emptyTable is the state in which every case begins.
func emptyTable(t *testing.T) *tabletest.Snapshot {
	t.Helper()
	w := newWorld(t)
	require.NoError(t, w.table.Ensure(t.Context()))
	return w.engine.Snapshot()
}

// runCase runs one case in its own bubble. A goroutine that is left is a panic, which names the case.
func runCase(t *testing.T, emptyTable *tabletest.Snapshot, s *scenario, c *faultCase) (made []string, struck []int) {
	t.Helper()
	name := s.name
	for _, k := range c.strikes {
		name += fmt.Sprintf(", %s at call %d", k.name, k.call)
	}
	defer func() {
		if r := recover(); r != nil {
			panic(fmt.Sprintf("%s: %v", name, r))
		}
	}()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.engine.Restore(emptyTable)
		if len(c.strikes) == 0 { // the cases with faults make the same requests
			w.guardian = newGuardian(t, "app", w.table.Scheme())
		}
		c.world = w
		made, struck = c.play(s.run)
	})
	for i, v := range c.violations {
		c.violations[i] = name + ": " + v
	}
	return made, struck
}

// tries counts cases.
type tries struct {
	mu    sync.Mutex
	cases map[string]int
	all   int
}

func (t *tries) add(name string, n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cases[name] += n
	t.all += n
}

// F5: for every fault at every request of every operation, an answer means what it says, no write under a lock is applied
// twice or after another holder was granted the lock, fences increase, holders are told before others are granted what they
// hold, and another client can acquire the lock soon after. One kind at one operation:
// -run 'TestEveryFault/all/commit$/dropped_reply$'.
func TestEveryFault(t *testing.T) {
	// Each case leaves a few hundred kilobytes of garbage.
	defer debug.SetGCPercent(debug.SetGCPercent(1000))
	empty := emptyTable(t)
	repetition := testkit.Repetition(t)
	kinds := tries{cases: map[string]int{}}
	var goal, met, broken, came, ran atomic.Int64
	list := scenarios()
	t.Run("all", func(t *testing.T) {
		for place, s := range list {
			t.Run(s.name, func(t *testing.T) {
				t.Parallel()
				ran.Add(1)
				c := &faultCase{}
				made, _ := runCase(t, empty, &s, c)
				for _, v := range c.violations {
					t.Error(v)
				}
				struck, least, violations, number := 0, 0, len(c.violations), 0
				var missed []string
				for i, m := range faultKinds() {
					t.Run(m.name, func(t *testing.T) {
						for call := 1; call <= len(made)+retries; call++ {
							if (place+i+call)%share() != 0 || call <= len(made) && !m.concerns(made[call-1]) {
								continue
							}
							if number++; !repetition.Turn(number) {
								continue
							}
							if call <= len(made) {
								least++ // the calls up to here are the same: the fault has to hit
							}
							c := &faultCase{strikes: []strike{{m, call}}, calls: len(made)}
							_, hits := runCase(t, empty, &s, c)
							for _, v := range c.violations {
								t.Error(v)
							}
							violations += len(c.violations)
							came.Add(c.came.Load())
							if hits[0] > 0 {
								kinds.add(m.name, 1)
								if call <= len(made) {
									struck++
								}
							} else if call <= len(made) {
								missed = append(missed, fmt.Sprintf("%s at call %d", m.name, call))
							}
						}
					})
				}
				if missed != nil {
					t.Logf("not struck: %s", strings.Join(missed, ", "))
				}
				want := least
				if s.byChance() { // by chance, here and when the calls were counted
					want /= 2
				}
				testkit.Check(t, "F5, "+s.name, testkit.AtLeast(struck, "faults at its calls", want), testkit.Exactly(violations, "violations", 0))
				goal.Add(int64(least))
				met.Add(int64(struck))
				broken.Add(int64(violations))
			})
		}
	})
	once := repetition.All == 1 && int(ran.Load()) == len(list) // no case is left out, or left to other repetitions
	for _, m := range faultKinds() {
		if n := kinds.cases[m.name]; n > 0 || once {
			testkit.Check(t, "F5, "+m.name, testkit.AtLeast(n, "times", 1))
		}
	}
	if once {
		testkit.Check(t, "F5, paused", testkit.AtLeast(int(came.Load()), "times somebody else had the lock meanwhile", 5*len(list)/share()))
	}
	t.Logf("%d faults tried, with those at repetitions", kinds.all)
	testkit.Check(t, "F5, total", testkit.AtLeast(int(met.Load()), "faults at calls of the scenarios", int(goal.Load())*9/10), testkit.Exactly(int(broken.Load()), "violations", 0))
}

// F5, with two faults at a time, by chance: the second one meets the client in the state that the first one has left. Only
// pairs count of which both have hit. After a crash, or if the client gives up, there is no second.
func TestTwoFaults(t *testing.T) {
	empty := emptyTable(t)
	defer debug.SetGCPercent(debug.SetGCPercent(1000))
	kinds := faultKinds()
	repetition := testkit.Repetition(t)
	goal := (pairs/share() + repetition.All - 1) / repetition.All
	tried, hit, found, wanted := 0, 0, 0, 0
	for i, s := range scenarios() {
		t.Run(s.name, func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(uint64(i)+uint64(repetition.Number)<<32, *seed))
			made, _ := runCase(t, empty, &s, &faultCase{})
			// a fault that can hit a call, as far as its operation is known
			drawn := func(call int) faultKind {
				for {
					if m := kinds[rnd.IntN(len(kinds))]; call > len(made) || m.concerns(made[call-1]) {
						return m
					}
				}
			}
			both := 0
			for n := 0; both < goal && n < 100+4*goal; n++ {
				first := 1 + rnd.IntN(len(made))
				second := min(first+1+rnd.IntN(len(made)), len(made)+retries)
				c := &faultCase{calls: len(made), strikes: []strike{{drawn(first), first}, {drawn(second), second}}}
				_, struck := runCase(t, empty, &s, c)
				for _, v := range c.violations {
					t.Error(v)
				}
				tried, found = tried+1, found+len(c.violations)
				if !slices.Contains(struck, 0) {
					both++
				}
			}
			hit, wanted = hit+both, wanted+goal
		})
	}
	t.Logf("%d pairs tried", tried)
	testkit.Check(t, "F5, two at a time", testkit.AtLeast(hit, "pairs that both hit", wanted), testkit.Exactly(found, "violations", 0))
}

// A client that is broken on purpose has violations in the same enumeration. This shows that the checks above are made.
func TestEveryFaultFindsBrokenClients(t *testing.T) {
	empty := emptyTable(t)
	list := scenarios()
	for _, b := range breakages()[testkit.IfSmall(2, 0):] {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			s := list[slices.IndexFunc(list, func(s scenario) bool { return s.name == b.scenario })]
			c := &faultCase{through: b.through}
			made, _ := runCase(t, empty, &s, c)
			cases, found := 1, c.violations
			for _, m := range faultKinds() {
				for call := 1; call <= len(made) && !b.seen(found); call++ {
					c := &faultCase{through: b.through, strikes: []strike{{m, call}}, calls: len(made)}
					runCase(t, empty, &s, c)
					cases, found = cases+1, append(found, c.violations...)
				}
			}
			require.True(t, b.seen(found), "want a violation of %q, found: %q", b.violates, found)
			testkit.Check(t, "F5, broken client: "+b.name, testkit.AtLeast(len(found), fmt.Sprintf("violations within %d cases", cases), 1))
			t.Log(found[len(found)-1])
		})
	}
}
