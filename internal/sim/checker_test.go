package sim

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
)

// found is what a checker finds in a world that is made up.
func found(t *testing.T, check func(w *World)) []string {
	t.Helper()
	return Run(t, Options{}, check).Violations
}

// attempt is one to write: what its client knows of it, and how often it was applied.
type attempt struct {
	known state
	times int
}

// attempted makes up a ledger of attempts that are called a, b and so on, and their marks.
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

// What each check of a line finds by itself: a twin that breaks one promise mostly breaks others.
func TestQueueChecks(t *testing.T) {
	p, other := &Process{id: 1, Name: "process1"}, &Process{id: 2, Name: "process2"}
	begin := time.Now()
	at := func(second int) time.Time { return begin.Add(time.Duration(second) * time.Second) }
	visited := func(p *Process, worker string, fence int64, came, entered, left int) *visit {
		return &visit{process: p, worker: worker, fence: fence, came: at(came), entered: at(entered), left: at(left)}
	}
	row := func(n int, handed bool) (list []*visit) {
		for i := range n {
			v := visited(p, "w1", int64(i+1), i, i+1, i+1)
			v.handed = handed
			list = append(list, v)
		}
		return list
	}
	for name, c := range map[string]struct {
		visits []*visit
		failed []time.Time // releases of process 1
		want   []string
	}{
		"in order":                     {visits: []*visit{visited(p, "w1", 1, 0, 1, 2), visited(other, "w1", 2, 0, 3, 4), visited(p, "w2", 3, 1, 5, 6)}},
		"one that was not let in":      {visits: []*visit{visited(p, "w1", 1, 0, 1, 2), {process: p, came: at(0)}}},
		"the same fence":               {visits: []*visit{visited(p, "w1", 1, 0, 1, 2), visited(other, "w1", 1, 0, 3, 4)}, want: []string{"fence 1 was given out twice"}},
		"a fence that goes back":       {visits: []*visit{visited(p, "w1", 2, 0, 1, 2), visited(other, "w1", 1, 3, 4, 5)}, want: []string{"fence 1 was given out after fence 2"}},
		"a fence that was told late":   {visits: []*visit{visited(p, "w1", 2, 0, 1, 2), visited(other, "w1", 1, 0, 3, 4)}},
		"out of order":                 {visits: []*visit{visited(p, "w2", 1, 5, 6, 7), visited(p, "w1", 2, 0, 8, 9)}, want: []string{"w1 of process 1 came first and was served after w2, with fence 2 after 1"}},
		"out of order, since one fell": {visits: []*visit{visited(p, "w2", 1, 5, 6, 7), visited(p, "w1", 2, 0, 8, 9)}, failed: []time.Time{at(3)}},
		"out of order, and one fell before": {
			visits: []*visit{visited(p, "w2", 1, 5, 6, 7), visited(p, "w1", 2, 2, 8, 9)}, failed: []time.Time{at(1)},
			want: []string{"w1 of process 1 came first and was served after w2, with fence 2 after 1"},
		},
		"out of order, and one fell after it": {
			visits: []*visit{visited(p, "w2", 1, 5, 6, 7), visited(p, "w1", 2, 0, 8, 9)}, failed: []time.Time{at(9)},
			want: []string{"w1 of process 1 came first and was served after w2, with fence 2 after 1"},
		},
		"out of order, and one fell in another process": {
			visits: []*visit{visited(other, "w2", 1, 5, 6, 7), visited(other, "w1", 2, 0, 8, 9)}, failed: []time.Time{at(3)},
			want: []string{"w1 of process 2 came first and was served after w2, with fence 2 after 1"},
		},
		"in order, but for one that was not let in": {visits: []*visit{visited(p, "w1", 1, 0, 1, 2), {process: p, worker: "w2", came: at(5)}}},
		"at once, in either order":                  {visits: []*visit{visited(p, "w2", 1, 0, 1, 2), visited(p, "w1", 2, 0, 3, 4)}},
		"out of order, and one in between": {
			visits: []*visit{visited(p, "w3", 1, 5, 6, 7), visited(other, "w1", 2, 4, 8, 9), visited(p, "w2", 3, 5, 10, 11), visited(p, "w1", 4, 0, 12, 13)},
			want:   []string{"w1 of process 1 came first and was served after w3, with fence 4 after 1"},
		},
		"out of order, and died inside": {
			visits: []*visit{visited(p, "w2", 1, 5, 6, 7), {process: p, worker: "w1", fence: 2, came: at(0), entered: at(8)}},
			want:   []string{"w1 of process 1 came first and was served after w2, with fence 2 after 1"},
		},
		"before and after a crash": {
			visits: []*visit{{process: p, worker: "w2", fence: 1, came: at(5), entered: at(6)}, visited(&Process{id: 3, Name: p.Name}, "w1", 2, 0, 8, 9)},
		},
		"of two processes": {visits: []*visit{visited(p, "w2", 1, 5, 6, 7), visited(other, "w1", 2, 0, 8, 9)}},
		"the same fence as one that has died": {
			visits: []*visit{{process: p, worker: "w1", fence: 1, came: at(0), entered: at(1)}, visited(other, "w1", 1, 0, 4, 6)},
			want:   []string{"fence 1 was given out twice"},
		},
		"two inside":          {visits: []*visit{visited(p, "w1", 1, 0, 1, 5), visited(other, "w1", 2, 0, 4, 6)}, want: []string{"fence 2 was let in while fence 1 was inside"}},
		"one that has died":   {visits: []*visit{{process: p, worker: "w1", fence: 1, came: at(0), entered: at(1)}, visited(other, "w1", 2, 0, 4, 6)}},
		"as often as allowed": {visits: row(handoffs, true)},
		"too often":           {visits: row(handoffs+1, true), want: []string{"process 1 has handed the lock over more than 16 times in a row, up to fence 17"}},
		"not in a row":        {visits: slices.Delete(row(handoffs+2, true), handoffs, handoffs+1)}, // somebody has had the fence that is left out
		"not handed over":     {visits: row(handoffs+1, false)},
	} {
		got := found(t, func(w *World) {
			q := &queue{world: w, visits: c.visits, failed: map[*Process][]time.Time{p: c.failed}}
			q.check()
		})
		assert.Equal(t, c.want, got, name)
	}
}

// Wrong clocks and processes that are stopped let two be inside at once, and nothing else does.
func TestExclusionIsCheckedWhereItHolds(t *testing.T) {
	p, begin := &Process{id: 1}, time.Now()
	at := func(second int) time.Time { return begin.Add(time.Duration(second) * time.Second) }
	inside := []string{"fence 2 was let in while fence 1 was inside"}
	for name, c := range map[string]struct {
		profile Profile
		want    []string
	}{
		"all that neither stops nor misleads": {
			profile: Profile{
				Lost: 1, LostLate: 1, LostReply: 1, Duplicated: 1, Slow: 1, Throttled: 1, Internal: 1, InternalAfter: 1, Conflict: 1, Stale: 1, Expired: 1,
				Storms: time.Minute, Cuts: time.Minute, Crashes: time.Minute, Sweeps: time.Minute,
			},
			want: inside,
		},
		"pauses":             {profile: Profile{Pauses: time.Minute}},
		"suspends":           {profile: Profile{Suspends: time.Minute}},
		"jumps":              {profile: Profile{Jumps: time.Minute}},
		"dates that are off": {profile: Profile{SkewedDate: .1}},
		"clocks that are":    {profile: Profile{Offset: time.Hour}},
		"clocks too fast":    {profile: Profile{Rate: .1}},
	} {
		got := found(t, func(w *World) {
			w.Profile = c.profile
			q := &queue{world: w, visits: []*visit{
				{process: p, worker: "w1", fence: 1, came: at(0), entered: at(1), left: at(5)},
				{process: p, worker: "w2", fence: 2, came: at(1), entered: at(4), left: at(6)},
			}}
			q.check()
		})
		assert.Equal(t, c.want, got, name)
	}
}

// A write is judged by what its client was told and by how often it is there.
func TestWritesAreSettled(t *testing.T) {
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

// Fences go on from those of a backup that was restored, and from those of whoever came before.
func TestFencesAreChecked(t *testing.T) {
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
func TestTermsAreCounted(t *testing.T) {
	x, other := &Worker{Process: &Process{Name: "candidate"}}, &Worker{Process: &Process{Name: "another"}}
	assert.Equal(t, []string{"candidate leads twice at once"}, found(t, func(w *World) {
		l := &leader{world: w, leading: map[*Worker]bool{}}
		l.enter(x, true)
		l.enter(other, true) // others judge that by fences
		l.enter(x, false)
		l.enter(x, true)
		l.enter(x, true)
	}))
}

// One line for each that was applied, in the order of fences.
func TestLogIsChecked(t *testing.T) {
	both := []attempt{{acknowledged, 1}, {unknown, 1}}
	for name, c := range map[string]struct {
		attempts []attempt
		fences   []int64
		want     []string
	}{
		"in order":               {attempts: both, fences: []int64{5, 5}},
		"one that nobody wrote":  {attempts: both, fences: []int64{5, 5, 6}, want: []string{"the log has 3 lines of 2 that were applied"}},
		"one that was not kept":  {attempts: both, fences: []int64{5}, want: []string{"the log has 1 lines of 2 that were applied"}},
		"a fence that goes back": {attempts: both, fences: []int64{6, 5}, want: []string{"the log's fences decrease"}},
		"unknown, not there":     {attempts: []attempt{{acknowledged, 1}, {unknown, 0}}, fences: []int64{5}},
	} {
		got := found(t, func(w *World) {
			there(w, logKey, "fences", c.fences)
			l := &leader{world: w, ledger: attempted(w, c.attempts)}
			l.check()
		})
		assert.Equal(t, c.want, got, name)
	}
}

// The counter is what was applied, and no other than what its clients were told.
func TestCounterIsChecked(t *testing.T) {
	for name, c := range map[string]struct {
		attempts []attempt
		n        int
		want     []string
	}{
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
			r := &counter{world: w, ledger: attempted(w, c.attempts)}
			r.check()
		})
		assert.Equal(t, c.want, got, name)
	}
}

// A transfer is whole: its mark, its entry of the journal, and what both accounts have.
func TestJournalIsChecked(t *testing.T) {
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

// One record for each run that was committed, in the order of the intervals.
func TestRunsAreChecked(t *testing.T) {
	both := []attempt{{acknowledged, 1}, {unknown, 1}}
	for name, c := range map[string]struct {
		attempts []attempt
		runs     []int64
		want     []string
	}{
		"in order":                  {attempts: both, runs: []int64{100, 120}},
		"one left out":              {attempts: both, runs: []int64{100, 160}}, // nobody may have been up
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

// An interval may be left out where a run of it has failed, and where nobody was up through it
// and the next one. What begins too late to see that is not judged.
func TestForgottenIntervalsAreChecked(t *testing.T) {
	always := [][]int{{1}, {1}, {1}, {1}, {1}} // from 100 on, every 20 seconds
	left := []string{"the interval at 120 was forgotten"}
	for name, c := range map[string]struct {
		runs   []int64 // 100 and 140, unless it says something else
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

// What can keep a process from running its intervals makes a world one in which some may be
// left out; crashes, wrong clocks and single requests that fail do not.
func TestGentleWorlds(t *testing.T) {
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

// What is written under each lock is in the order of its fences; and it is what was applied,
// unless a restore has undone some of it.
func TestWrittenFencesAreChecked(t *testing.T) {
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

// Each row with a value has a sentinel that names it, and there are no others.
func TestSentinelsAreChecked(t *testing.T) {
	row, sentinel := keys.NewKey("ACCOUNT#A1", "ACCOUNT"), keys.NewKey("UNIQUE#Account#email#e1", "UNIQUE")
	owner := table.Attr("uniqueowner")
	for name, c := range map[string]struct {
		change []table.Op // of what the entity has written
		want   []string
	}{
		"in order":                  {},
		"neither":                   {change: []table.Op{table.Delete(row), table.Delete(sentinel)}},
		"a row alone":               {change: []table.Op{table.Delete(sentinel)}, want: []string{`the value of "ACCOUNT#A1" is kept for ""`}},
		"a sentinel alone":          {change: []table.Op{table.Delete(row)}, want: []string{`the value of "" is kept for "ACCOUNT#A1"`}},
		"a sentinel of another row": {change: []table.Op{table.Update(sentinel, owner.Set(map[string]string{"pk": "ACCOUNT#A2", "sk": "ACCOUNT"}))}, want: []string{`the value of "ACCOUNT#A1" is kept for "ACCOUNT#A2"`}},
		"a sentinel of no value":    {change: []table.Op{table.Update(keys.NewKey("UNIQUE#Account#email#", "UNIQUE"), owner.Set(map[string]string{"pk": "ACCOUNT#A3", "sk": "ACCOUNT"}))}, want: []string{`the value of "" is kept for "ACCOUNT#A3"`}},
		"a sentinel of nobody":      {change: []table.Op{table.Delete(row), table.Update(sentinel, owner.Remove())}, want: []string{"a sentinel names nobody"}},
	} {
		got := found(t, func(w *World) {
			r := &uniques{Unique: Unique{Values: 2}, world: w}
			for _, a := range []Account{{ID: "A1", Email: "e1"}, {ID: "A2", Email: "e2"}, {ID: "A3"}} {
				_, err := r.define(w.Table()).Create(w.Context(), a)
				w.must(err)
			}
			for _, op := range c.change {
				w.must(w.Table().Write(w.Context(), op))
			}
			r.audit()
		})
		assert.Equal(t, c.want, got, name)
	}
}

// A row counts what it lists. A mark is there twice, or though its write was refused, only as
// often as a request was carried out late that had been refused at first, and named the row.
func TestCountedRowsAreChecked(t *testing.T) {
	told := map[int64]state{1001: acknowledged, 1002: unknown, 1003: refused}
	counted := func(marks ...int64) Counted { return Counted{ID: "C1", Count: int64(len(marks)), Marks: marks} }
	for name, c := range map[string]struct {
		row     Counted
		revived map[string]int // by the rows that were named
		want    []string
	}{
		"in order":                         {row: counted(1001, 1002)},
		"unknown, not there":               {row: counted(1001)},
		"counted twice":                    {row: Counted{ID: "C1", Count: 3, Marks: []int64{1001, 1002}}, want: []string{"row C1 counts 3 and lists 2"}},
		"not counted":                      {row: Counted{ID: "C1", Count: 1, Marks: []int64{1001, 1002}}, want: []string{"row C1 counts 1 and lists 2"}},
		"lost, though one was revived":     {row: counted(1002), revived: map[string]int{"C1": 1}, want: []string{"1001 was acknowledged and is lost"}},
		"doubled":                          {row: counted(1001, 1001), want: []string{"1001 is there 2 times"}},
		"doubled, revived":                 {row: counted(1001, 1001), revived: map[string]int{"C1": 1}},
		"doubled, another row's revived":   {row: counted(1001, 1001), revived: map[string]int{"C2": 1}, want: []string{"1001 is there 2 times"}},
		"tripled, one revived":             {row: counted(1001, 1001, 1001), revived: map[string]int{"C1": 1}, want: []string{"1001 is there 2 times"}},
		"tripled, both revived":            {row: counted(1001, 1001, 1001), revived: map[string]int{"C1": 2}},
		"two doubled, one revived":         {row: counted(1001, 1001, 1002, 1002), revived: map[string]int{"C1": 1}, want: []string{"1002 is there 2 times"}},
		"refused":                          {row: counted(1001, 1003), want: []string{"1003 was refused and is there"}},
		"refused, revived":                 {row: counted(1001, 1003), revived: map[string]int{"C1": 1}},
		"refused, another row's revived":   {row: counted(1001, 1003), revived: map[string]int{"C2": 1}, want: []string{"1003 was refused and is there"}},
		"refused, and another one doubled": {row: counted(1001, 1001, 1003), revived: map[string]int{"C1": 1}, want: []string{"1003 was refused and is there"}},
		"refused and doubled, one revived": {row: counted(1001, 1003, 1003), revived: map[string]int{"C1": 1}, want: []string{"1003 was refused and is there"}},
		"refused and doubled, both":        {row: counted(1001, 1003, 1003), revived: map[string]int{"C1": 2}},
	} {
		got := found(t, func(w *World) {
			w.stragglers["COUNTER#C1|COUNTER"] = 9 // these excuse nothing: they had not been refused
			for id, n := range c.revived {
				w.revived["COUNTER#"+id+"|COUNTER"] = n
			}
			r := &versions{world: w, marks: &marks{state: told}}
			w.must(w.Table().Write(w.Context(), r.define(w.Table()).CreateOp(c.row)))
			r.check()
		})
		assert.Equal(t, c.want, got, name)
	}
}

// A mark that was refused is never seen, unless a request came in late that named its row.
// That one was not seen tells nothing: rows are overwritten and deleted.
func TestSeenMarksAreChecked(t *testing.T) {
	row := map[int64]string{1001: "ACCOUNT#A1|ACCOUNT", 1002: "ACCOUNT#A2|ACCOUNT"}
	for name, c := range map[string]struct {
		known      state // of both
		seen       []int64
		stragglers map[string]int
		want       []string
	}{
		"acknowledged":             {known: acknowledged, seen: []int64{1001, 1002}},
		"acknowledged, never seen": {known: acknowledged},
		"refused, never seen":      {known: refused},
		"refused and seen":         {known: refused, seen: []int64{1001}, want: []string{"1001 was refused and is there"}},
		"refused and seen, with a straggler": {
			known: refused, seen: []int64{1001}, stragglers: map[string]int{"ACCOUNT#A1|ACCOUNT": 1},
		},
		"refused and seen, with a straggler of another row": {
			known: refused, seen: []int64{1001, 1002}, stragglers: map[string]int{"ACCOUNT#A2|ACCOUNT": 1},
			want: []string{"1001 was refused and is there"},
		},
		"refused and seen, with a straggler of the value alone": {
			known: refused, seen: []int64{1001}, stragglers: map[string]int{"UNIQUE#Account#email#e1|UNIQUE": 1},
			want: []string{"1001 was refused and is there"},
		},
	} {
		got := found(t, func(w *World) {
			maps.Copy(w.stragglers, c.stragglers)
			r := &uniques{world: w, marks: &marks{state: map[int64]state{1001: c.known, 1002: c.known}}, row: row, seen: map[int64]bool{}}
			for _, mark := range c.seen {
				r.seen[mark] = true
			}
			r.check()
		})
		assert.Equal(t, c.want, got, name)
	}
}

// A history for which a model has not enough patience passes no more than one that is illegal,
// and counts once, whatever the other models say.
func TestHistoriesAreJudged(t *testing.T) {
	acquire := func(fence, call int64) *operation {
		return &operation{kind: acquires, outcome: succeeded, fence: fence, call: call, ret: call + 1}
	}
	fits := []*operation{acquire(5, -4), acquire(6, -2)} // and the last look at the register
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
