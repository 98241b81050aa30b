package sim

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// found is what a checker finds in a world that is made up.
func found(check func(w *World)) []string {
	w := &World{history: &history{}}
	check(w)
	return w.violations
}

// What each check of a line finds by itself: a twin that breaks one promise mostly breaks others.
func TestQueueChecks(t *testing.T) {
	p, other := &Process{id: 1}, &Process{id: 2}
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
		"of two processes":    {visits: []*visit{visited(p, "w2", 1, 5, 6, 7), visited(other, "w1", 2, 0, 8, 9)}},
		"two inside":          {visits: []*visit{visited(p, "w1", 1, 0, 1, 5), visited(other, "w1", 2, 0, 4, 6)}, want: []string{"fence 2 was let in while fence 1 was inside"}},
		"one that has died":   {visits: []*visit{{process: p, worker: "w1", fence: 1, came: at(0), entered: at(1)}, visited(other, "w1", 2, 0, 4, 6)}},
		"as often as allowed": {visits: row(handoffs, true)},
		"too often":           {visits: row(handoffs+1, true), want: []string{"process 1 has handed the lock over more than 16 times in a row, up to fence 17"}},
		"not handed over":     {visits: row(handoffs+1, false)},
	} {
		got := found(func(w *World) {
			q := &queue{world: w, visits: c.visits, failed: map[*Process][]time.Time{p: c.failed}}
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
		assert.Equal(t, c.want, found(func(w *World) { new(Tally).settle(w, "x", c.known, c.times) }), name)
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
		got := found(func(w *World) {
			d := &deletion{world: w, grants: c.grants, floors: [][]int64{{0}, {20}}}
			d.checkFences(0)
		})
		assert.Equal(t, c.want, got, name)
	}
}

// A call of Lead has one term at a time.
func TestTermsAreCounted(t *testing.T) {
	x, other := &Worker{Process: &Process{Name: "candidate"}}, &Worker{Process: &Process{Name: "another"}}
	assert.Equal(t, []string{"candidate leads twice at once"}, found(func(w *World) {
		l := &leader{world: w, leading: map[*Worker]bool{}}
		l.enter(x, true)
		l.enter(other, true) // others judge that by fences
		l.enter(x, false)
		l.enter(x, true)
		l.enter(x, true)
	}))
}
