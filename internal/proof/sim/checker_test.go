package sim

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
)

// found returns the violations that a checker finds in a made-up world.
func found(t *testing.T, check func(w *World)) []string {
	t.Helper()
	return Run(t, Options{}, check).Violations
}

// attempt is an attempt to write: what its client knows of it, and how often it was applied.
type attempt struct {
	known state
	times int
}

// attempted makes up a ledger of attempts, which are called a, b and so on, and their marks.
func attempted(w *World, attempts []attempt) *ledger {
	l := newLedger(w)
	for i, a := range attempts {
		name := string(rune('a' + i))
		l.states[name] = a.known
		if a.times > 0 {
			there(w, markKey(name), "times", a.times)
		}
	}
	return l
}

// there makes up an attribute of a row.
func there(w *World, key keys.Key, name string, value any) {
	w.must(w.Table().Write(w.Context(), table.Update(key, table.Attr(name).Set(value))))
}

// A write is judged by what its client was told and by how often it is there.
func TestTally_SettlesWrites(t *testing.T) {
	for name, c := range map[string]struct {
		known state
		times int
		want  []string
	}{
		"acknowledged":             {known: acknowledged, times: 1},
		"refused":                  {known: refused},
		"unknown, there":           {known: unknown, times: 1},
		"unknown, not there":       {known: unknown},
		"acknowledged and lost":    {known: acknowledged, want: []string{"x was acknowledged and is lost"}},
		"refused and there":        {known: refused, times: 1, want: []string{"x was refused and is there"}},
		"acknowledged and doubled": {known: acknowledged, times: 2, want: []string{"x is there 2 times"}},
		"unknown and doubled":      {known: unknown, times: 2, want: []string{"x is there 2 times"}},
	} {
		assert.Equal(t, c.want, found(t, func(w *World) { new(Tally).settle(w, "x", c.known, c.times) }), name)
	}
}

// A fence belongs to one holder, or to readers alone. Only a restored table may give it out again.
func TestGrants_DoNotShareAFence(t *testing.T) {
	type grant struct {
		lock   string
		fence  int64
		reader bool
	}
	again := []string{"a was granted twice under fence 7"}
	for name, c := range map[string]struct {
		grants   []grant
		restored bool
		want     []string
	}{
		"of several locks":      {grants: []grant{{"a", 7, false}, {"b", 7, false}, {"a", 8, false}}},
		"readers":               {grants: []grant{{"a", 7, true}, {"a", 7, true}}},
		"two holders":           {grants: []grant{{"a", 7, false}, {"a", 8, false}, {"a", 7, false}}, want: again},
		"a writer after reader": {grants: []grant{{"a", 7, true}, {"a", 7, false}}, want: again},
		"a reader after writer": {grants: []grant{{"a", 7, false}, {"a", 7, true}}, want: again},
		"after a restore":       {grants: []grant{{"a", 7, false}, {"a", 7, false}}, restored: true},
	} {
		assert.Equal(t, c.want, found(t, func(w *World) {
			w.restored = c.restored
			for _, g := range c.grants {
				w.granted(g.lock, g.fence, g.reader)
			}
		}), name)
	}
}

// Fences continue from those of a restored backup, and from those of earlier holders.
func TestDeletion_ChecksFences(t *testing.T) {
	begin := time.Now()
	given := func(fence int64, from, epoch, came int) *grant {
		return &grant{fence: fence, from: from, epoch: epoch, came: begin.Add(time.Duration(came) * time.Minute), entered: begin.Add(time.Duration(came)*time.Minute + time.Second)}
	}
	for name, c := range map[string]struct {
		grants []*grant
		want   []string
	}{
		"growing":                  {grants: []*grant{given(11, 0, 0, 0), given(12, 0, 0, 1)}},
		"going back":               {grants: []*grant{given(12, 0, 0, 0), given(11, 0, 0, 1)}, want: []string{"fence 11 of lock 1 was given out after fence 12"}},
		"going back by a restore":  {grants: []*grant{given(22, 0, 0, 0), given(21, 1, 1, 1)}},
		"below what was restored":  {grants: []*grant{given(20, 1, 1, 1)}, want: []string{"fence 20 of lock 1 was given out after a backup with fence 20"}},
		"restored on the way":      {grants: []*grant{given(12, 0, 1, 0)}},
		"at once, in either order": {grants: []*grant{given(12, 0, 0, 0), given(11, 0, 0, 0)}},
	} {
		got := found(t, func(w *World) {
			d := &deletion{world: w, grants: c.grants, floors: [][]int64{{0}, {20}}}
			d.checkFences(0)
		})
		assert.Equal(t, c.want, got, name)
	}
}

// A call of Lead has one term at a time.
func TestLeader_HasOneTermAtATime(t *testing.T) {
	x, other := &Worker{Process: &Process{Name: "candidate"}}, &Worker{Process: &Process{Name: "another"}}
	assert.Equal(t, []string{"candidate leads twice at once"}, found(t, func(w *World) {
		l := &leader{world: w, leading: map[*Worker]bool{}}
		l.enter(x, true)
		l.enter(other, true) // others are judged by fences
		l.enter(x, false)
		l.enter(x, true)
		l.enter(x, true)
	}))
}

// There is one line for each applied write, in the order of fences.
func TestLeader_ChecksItsLog(t *testing.T) {
	both := []attempt{{acknowledged, 1}, {unknown, 1}}
	for name, c := range map[string]struct {
		attempts []attempt
		fences   []int64
		past     map[string]int64
		want     []string
	}{
		"behind the register":    {attempts: both, fences: []int64{5, 5}, past: map[string]int64{"b": 5}, want: []string{"line b was begun under fence 5 after the register had seen a larger one"}},
		"behind it, not applied": {attempts: []attempt{{acknowledged, 1}, {refused, 0}}, fences: []int64{5}, past: map[string]int64{"b": 4}},
		"in order":               {attempts: both, fences: []int64{5, 5}},
		"one that nobody wrote":  {attempts: both, fences: []int64{5, 5, 6}, want: []string{"the log has 3 lines of 2 that were applied"}},
		"one that was not kept":  {attempts: both, fences: []int64{5}, want: []string{"the log has 1 lines of 2 that were applied"}},
		"a fence that goes back": {attempts: both, fences: []int64{6, 5}, want: []string{"the log's fences decrease"}},
		"unknown, not there":     {attempts: []attempt{{acknowledged, 1}, {unknown, 0}}, fences: []int64{5}},
	} {
		got := found(t, func(w *World) {
			there(w, logKey, "fences", c.fences)
			l := &leader{world: w, ledger: attempted(w, c.attempts), past: c.past}
			l.check()
		})
		assert.Equal(t, c.want, got, name)
	}
}

// A leader whose fence the resource outside has to refuse has lost the lock.
func TestOutside_TellsWhoIsPast(t *testing.T) {
	for _, careless := range []bool{false, true} {
		var past []bool
		found(t, func(w *World) {
			r := &outside{world: w, careless: careless}
			for _, fence := range []int64{5, 7, 6} {
				past = append(past, r.past(6))
				r.take(fence)
			}
			past = append(past, r.past(6), r.past(7))
		})
		assert.Equal(t, []bool{false, false, true, true, false}, past)
	}
}

// The counter agrees with what was applied and with what its clients were told. Each client sets it to what it has
// read plus its own addition.
func TestCounter_IsChecked(t *testing.T) {
	for name, c := range map[string]struct {
		attempts []attempt
		n        int
		stale    int // those of them that set a number that another client had set, too
		want     []string
	}{
		"written over":       {attempts: []attempt{{acknowledged, 1}, {unknown, 1}}, n: 2, stale: 1, want: []string{"the counter was set to 1 by 2 additions"}},
		"unknown, there":     {attempts: []attempt{{acknowledged, 1}, {unknown, 1}}, n: 2},
		"unknown, not there": {attempts: []attempt{{acknowledged, 1}, {unknown, 0}}, n: 1},
		"applied in part":    {attempts: []attempt{{acknowledged, 1}, {unknown, 1}}, n: 1, want: []string{"the counter is at 1 after 2 additions"}},
		"less than was acknowledged": {attempts: []attempt{{acknowledged, 1}, {acknowledged, 0}}, n: 1, want: []string{
			"attempt b was acknowledged and is lost",
			"the counter is at 1 after 2 additions that were acknowledged and 0 that nobody knows of",
		}},
		"more than anybody can have added": {attempts: []attempt{{acknowledged, 1}, {unknown, 1}, {refused, 1}}, n: 3, want: []string{
			"attempt c was refused and is there",
			"the counter is at 3 after 1 additions that were acknowledged and 1 that nobody knows of",
		}},
		"doubled, which is told once": {attempts: []attempt{{acknowledged, 2}, {unknown, 0}}, n: 2, want: []string{"attempt a is there 2 times"}},
	} {
		got := found(t, func(w *World) {
			there(w, counterKey, "n", c.n)
			there(w, counterKey, "set", c.n-c.stale)
			r := &counter{world: w, ledger: attempted(w, c.attempts)}
			r.check()
		})
		assert.Equal(t, c.want, got, name)
	}
}

// A transfer is complete: its mark, its entry in the journal, and both balances.
func TestBank_ChecksItsJournal(t *testing.T) {
	moved := []int{opening - 100, opening + 100, opening}
	for name, c := range map[string]struct {
		transfer attempt // of 100, from the first account to the second
		entered  bool
		balances []int
		want     []string
	}{
		"acknowledged":       {transfer: attempt{acknowledged, 1}, entered: true, balances: moved},
		"unknown, there":     {transfer: attempt{unknown, 1}, entered: true, balances: moved},
		"unknown, not there": {transfer: attempt{unknown, 0}, balances: []int{opening, opening, opening}},
		"not in the journal": {
			transfer: attempt{acknowledged, 1}, balances: []int{opening, opening, opening},
			want: []string{"transfer a was applied in part: marked true, in the journal false"},
		},
		"in the journal alone": {
			transfer: attempt{unknown, 0}, entered: true, balances: moved,
			want: []string{"transfer a was applied in part: marked false, in the journal true"},
		},
		"credited to another account": {
			transfer: attempt{acknowledged, 1}, entered: true, balances: []int{opening - 100, opening, opening + 100},
			want: []string{"account 1 has 1000, and by the journal 1100", "account 2 has 1100, and by the journal 1000"},
		},
	} {
		got := found(t, func(w *World) {
			for i, balance := range c.balances {
				there(w, account(i), "balance", balance)
			}
			if c.entered {
				w.must(w.Table().Write(w.Context(), table.Update(entryKey("a"),
					table.Attr("from").Set(0), table.Attr("to").Set(1), table.Attr("amount").Set(100))))
			}
			b := &bank{Bank: Bank{Accounts: len(c.balances)}, world: w, ledger: attempted(w, []attempt{c.transfer})}
			b.check()
		})
		assert.Equal(t, c.want, got, name)
	}
}

// There is one record for each committed run, in the order of the intervals.
func TestEvery_ChecksItsRuns(t *testing.T) {
	both := []attempt{{acknowledged, 1}, {unknown, 1}}
	for name, c := range map[string]struct {
		attempts []attempt
		runs     []int64
		want     []string
	}{
		"in order":                  {attempts: both, runs: []int64{100, 120}},
		"one left out":              {attempts: both, runs: []int64{100, 160}}, // perhaps no process was up
		"unknown, not there":        {attempts: []attempt{{acknowledged, 1}, {unknown, 0}}, runs: []int64{100}},
		"one that was not kept":     {attempts: both, runs: []int64{100}, want: []string{"1 runs are recorded of 2 that were committed"}},
		"one that nobody ran":       {attempts: both, runs: []int64{100, 120, 140}, want: []string{"3 runs are recorded of 2 that were committed"}},
		"twice":                     {attempts: both, runs: []int64{100, 100}, want: []string{"the interval at 100 was run twice"}},
		"an older one after it":     {attempts: both, runs: []int64{120, 100}, want: []string{"the interval at 100 was run after that at 120"}},
		"twice, and one in between": {attempts: append(both, attempt{unknown, 1}), runs: []int64{100, 120, 100}, want: []string{"the interval at 100 was run after that at 120"}},
	} {
		got := found(t, func(w *World) {
			there(w, runsKey, "at", c.runs)
			e := &every{world: w, ledger: attempted(w, c.attempts)}
			e.check()
		})
		assert.Equal(t, c.want, got, name)
	}
}

// An interval may be left out if a run of it has failed, or if no process was up during it and the next one. An
// interval near the end, for which that is not known, is not judged.
func TestEvery_ChecksForgottenIntervals(t *testing.T) {
	always := [][]int{{1}, {1}, {1}, {1}, {1}} // from 100 on, every 20 seconds
	left := []string{"the interval at 120 was forgotten"}
	for name, c := range map[string]struct {
		runs   []int64 // 100 and 140, unless set
		up     [][]int
		failed []int64
		rough  bool
		judged int
		want   []string
	}{
		"all of them":                 {runs: []int64{100, 120, 140}, up: always, judged: 3},
		"one left out":                {up: always, judged: 3, want: left},
		"one whose run has failed":    {up: always, failed: []int64{120}, judged: 2},
		"one after a run that failed": {up: always, failed: []int64{100}, judged: 2, want: left},
		"one after which all crashed": {up: [][]int{{1}, {1}, {1}, {2}, {2}}, judged: 1},
		"one before all booted":       {up: [][]int{{1}, {2}, {1}, {1}, {1}}, judged: 2},
		"one with nobody up":          {up: [][]int{{1}, {}, {1}, {}, {1}}, judged: 2},
		"one of two up through it":    {up: [][]int{{1}, {1, 2}, {1, 2}, {2}, {2}}, judged: 3, want: left},
		"the last two":                {runs: []int64{100}, up: always[:3], judged: 1},
		"in a world with pauses":      {up: always, rough: true},
	} {
		if c.runs == nil {
			c.runs = []int64{100, 140}
		}
		var tally Tally
		got := found(t, func(w *World) {
			there(w, runsKey, "at", c.runs)
			e := &every{Every: Every{Interval: 20 * time.Second}, world: w, begin: time.Unix(100, 0), failed: map[int64]bool{}, up: c.up, gentle: !c.rough}
			for _, at := range c.failed {
				e.failed[at] = true
			}
			e.ledger = attempted(w, slices.Repeat([]attempt{{acknowledged, 1}}, len(c.runs)))
			tally = e.check()
		})
		assert.Equal(t, c.want, got, name)
		assert.Equal(t, c.judged, tally.Audits, name)
	}
}

// Faults that can prevent a process from running its intervals make a world in which some may be left out. Crashes,
// wrong clocks and single requests that fail do not.
func TestGentleFor_IsAWorldThatPreventsNoRuns(t *testing.T) {
	gentle := EveryProfile(1)
	assert.True(t, gentleFor(gentle))
	for name, worsen := range map[string]func(p *Profile){
		"storms":             func(p *Profile) { p.Storms = time.Minute },
		"pauses":             func(p *Profile) { p.Pauses = time.Minute },
		"suspends":           func(p *Profile) { p.Suspends = time.Minute },
		"cuts":               func(p *Profile) { p.Cuts = time.Minute },
		"dates that are off": func(p *Profile) { p.SkewedDate = .1 },
		"slow requests":      func(p *Profile) { p.Slow = .1 },
	} {
		p := gentle
		worsen(&p)
		assert.False(t, gentleFor(p), name)
	}
}

// What is written under each lock is in the order of its fences. It agrees with what was applied, unless a restore
// has undone some of it.
func TestDeletion_ChecksWrittenFences(t *testing.T) {
	three := []attempt{{acknowledged, 1}, {acknowledged, 1}, {unknown, 1}}
	for name, c := range map[string]struct {
		attempts []attempt
		written  [][]int64 // by lock
		restored bool
		want     []string
	}{
		"in order":               {attempts: three, written: [][]int64{{11, 11}, {7}}},
		"a fence that goes back": {attempts: three, written: [][]int64{{11}, {8, 7}}, want: []string{"what was written under lock 2 is not in the order of fences"}},
		"one that was not kept":  {attempts: three, written: [][]int64{{11}, {7}}, want: []string{"2 fences are written by 3 writes that were applied"}},
		"one that nobody wrote":  {attempts: three, written: [][]int64{{11, 11}, {7, 7}}, want: []string{"4 fences are written by 3 writes that were applied"}},
		"undone by a restore":    {attempts: []attempt{{acknowledged, 1}, {acknowledged, 0}}, written: [][]int64{{11}, {7}}, restored: true},
		"restored, and a fence that goes back": {
			attempts: three, written: [][]int64{{12, 11}, {7}}, restored: true,
			want: []string{"what was written under lock 1 is not in the order of fences"},
		},
	} {
		got := found(t, func(w *World) {
			for i, fences := range c.written {
				there(w, writtenKey(i), "fences", fences)
			}
			d := &deletion{Deletion: Deletion{Locks: len(c.written)}, world: w, ledger: attempted(w, c.attempts), floors: [][]int64{{0, 0}}}
			if c.restored {
				d.floors = append(d.floors, []int64{0, 0})
			}
			d.check()
		})
		assert.Equal(t, c.want, got, name)
	}
}

// A history that a model cannot decide within its patience does not pass, and neither does one that is illegal. It
// counts once, whatever the other models find.
func TestRegisters_JudgeHistories(t *testing.T) {
	acquire := func(fence, call int64) *operation {
		return &operation{kind: acquires, outcome: succeeded, fence: fence, call: call, ret: call + 1}
	}
	fits := []*operation{acquire(5, -4), acquire(6, -2)} // and the last read of the register
	twice := []*operation{acquire(5, -4), acquire(5, -2)}
	for name, c := range map[string]struct {
		history  [][]*operation
		patience int64
		tally    Linearity
		want     []string
	}{
		"just decided": {history: [][]*operation{fits}, patience: 3, tally: Linearity{Histories: 1, Operations: 3}},
		"undecided by all": {history: [][]*operation{fits}, patience: 2, tally: Linearity{Histories: 1, Operations: 3, Undecided: 1}, want: []string{
			"register 0: whether 3 operations are linearizable as a lock could not be decided",
			"register 0: whether 3 operations are linearizable as a register could not be decided",
			"register 0: whether 3 operations are linearizable as a guarded register could not be decided",
		}},
		"undecided by one, and illegal by the others": {
			history: [][]*operation{twice}, patience: 2,
			tally: Linearity{Histories: 1, Operations: 3, Undecided: 1, Illegal: 1, By: Verdict{Lock: 1, Object: 1}},
			want: []string{
				"register 0: 3 operations are not linearizable as a lock",
				"register 0: whether 3 operations are linearizable as a register could not be decided",
				"register 0: 3 operations are not linearizable as a guarded register",
			},
		},
		"illegal": {
			history: [][]*operation{twice}, patience: 3,
			tally: Linearity{Histories: 1, Operations: 3, Illegal: 1, By: Verdict{Lock: 1, Object: 1}},
			want: []string{
				"register 0: 3 operations are not linearizable as a lock",
				"register 0: 3 operations are not linearizable as a guarded register",
			},
		},
		"one history of two": {history: [][]*operation{{}, fits}, patience: 1, tally: Linearity{Histories: 2, Operations: 4, Undecided: 1}, want: []string{
			"register 1: whether 3 operations are linearizable as a lock could not be decided",
			"register 1: whether 3 operations are linearizable as a register could not be decided",
			"register 1: whether 3 operations are linearizable as a guarded register could not be decided",
		}},
	} {
		var tally Tally
		got := found(t, func(w *World) {
			r := &registers{world: w, begin: time.Now(), patience: c.patience, history: c.history}
			tally = r.check()
		})
		assert.Equal(t, c.want, got, name)
		assert.Equal(t, c.tally, tally.Linearity, name)
	}
}
