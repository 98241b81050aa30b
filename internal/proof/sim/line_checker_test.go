package sim

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// Each check of a line is tested by itself, since a twin that breaks one promise mostly breaks others, too.
func TestQueue_ChecksItsVisits(t *testing.T) {
	p, other := &Process{id: 1, Name: "process1"}, &Process{id: 2, Name: "process2"}
	begin := time.Now()
	at := func(second int) time.Time { return begin.Add(time.Duration(second) * time.Second) }
	visited := func(p *Process, worker string, fence int64, came, entered, left int) *visit {
		return &visit{process: p, worker: worker, fence: fence, came: at(came), entered: at(entered), left: at(left)}
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
		"two inside":        {visits: []*visit{visited(p, "w1", 1, 0, 1, 5), visited(other, "w1", 2, 0, 4, 6)}, want: []string{"fence 2 was let in while fence 1 was inside"}},
		"one that has died": {visits: []*visit{{process: p, worker: "w1", fence: 1, came: at(0), entered: at(1)}, visited(other, "w1", 2, 0, 4, 6)}},
	} {
		got := found(t, func(w *World) {
			q := &queue{world: w, visits: c.visits, failed: map[*Process][]time.Time{p: c.failed}}
			q.check()
		})
		assert.Equal(t, c.want, got, name)
	}
}

// Two holders at once are allowed only with wrong clocks or stopped processes.
func TestExclusion_IsCheckedWhereItHolds(t *testing.T) {
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

// logged makes up the log of a line from rows in words: the tickets, and the fence if it changes.
func logged(states ...string) *lineLog {
	l := &lineLog{first: map[string]lineChange{}}
	is := lineState{fence: 10}
	for i, text := range states {
		was := is
		is = lineState{tickets: strings.Fields(text), fence: was.fence}
		if was.holder() != "" && was.holder() != is.holder() {
			is.fence++
		}
		l.changes = append(l.changes, lineChange{number: i + 1, before: was, after: is})
	}
	return l
}

// A new ticket stands behind all others. Only the next ticket of the same process may come in before them.
func TestLineLog_ChecksTheOrder(t *testing.T) {
	const overtakes = "somebody overtakes in the line: "
	for name, c := range map[string]struct {
		line *lineLog
		want []string
	}{
		"in order":          {line: logged("a", "a b", "a b c", "b c", "b", "", "d")},
		"gives up waiting":  {line: logged("a", "a b", "a b c", "a c", "c")},
		"evicted with more": {line: logged("a", "a b", "a b a2", "b")},
		"passed on":         {line: logged("a", "a b", "a2 b", "b")},
		"a ghost":           {line: logged("a", "", "b", "b a")},
		"to the second":     {line: logged("a", "a b", "a c b"), want: []string{overtakes + "[a b] became [a c b]"}},
		"to the front":      {line: logged("a", "a b", "c a b"), want: []string{overtakes + "[a b] became [c a b]"}},
		"turned around":     {line: logged("a", "a b", "a b c", "a c b"), want: []string{overtakes + "[a b c] became [a c b]"}},
		"moved up":          {line: logged("a", "a b", "a b c", "c b"), want: []string{overtakes + "[a b c] became [c b]"}},
		"comes and goes":    {line: logged("a", "a b", "b c"), want: []string{overtakes + "[a b] became [b c]"}},
		"the same fence": {
			line: &lineLog{changes: []lineChange{{before: lineState{[]string{"a", "b"}, 5}, after: lineState{[]string{"b"}, 5}}}},
			want: []string{"the fence grew by 0, from 5, as the first place changed 1 times"},
		},
		"a fence for nothing": {
			line: &lineLog{changes: []lineChange{{before: lineState{[]string{"a"}, 5}, after: lineState{[]string{"a", "b"}, 6}}}},
			want: []string{"the fence grew by 1, from 5, as the first place changed 0 times"},
		},
		"a new row": {line: &lineLog{changes: []lineChange{{after: lineState{[]string{"a"}, 1000}}}}},
	} {
		assert.Equal(t, c.want, found(t, c.line.checkOrder), name)
	}
}

// Passes count while others wait. The count begins again when another process gets the lock, or when nobody else
// waits for a moment.
func TestLineLog_CountsPasses(t *testing.T) {
	for name, c := range map[string]struct {
		states string
		passes int
		want   []string
	}{
		"as often as allowed":     {"a|a b|c b|d b|b", 2, nil},
		"too often":               {"a|a b|c b|d b|e b|b", 3, []string{"the lock was passed on within a process more than 2 times in a row while others waited, up to fence 13"}},
		"nobody waits":            {"a|c|d|e|f", 4, nil},
		"from when somebody does": {"a|c|d|e|e b|f b|g b|b", 5, nil},
		"alone for a moment":      {"a|a b|c b|d b|d|d e|f e|g e|e", 4, nil},
		"not in a row":            {"a|a b|c b|d b|b|b e|f e|g e", 4, nil},
	} {
		passes := 0
		got := found(t, func(w *World) { passes = logged(strings.Split(c.states, "|")...).checkPasses(w, 2) })
		assert.Equal(t, c.want, got, name)
		assert.Equal(t, c.passes, passes, name)
	}
}
