package waitqueue_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"

	"github.com/mortise-go/mortise/internal/machine"
	"github.com/mortise-go/mortise/internal/testkit"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock/internal/waitqueue"
	"github.com/mortise-go/mortise/table"
)

// lineGame is a line of tickets in a row, and processes that want to be first in it again and again: the least that the
// owner of this package does with it, without faults.
type lineGame struct {
	processes, goroutines int
	work                  func() time.Duration
	duration              time.Duration // after which nobody begins anew
	skew                  time.Duration // of the clocks, to either side
	naive                 bool          // the time until the holder notices counts as part of its hold

	t  *testing.T
	mu sync.Mutex
	// The row.
	line  []string
	since time.Time
	hold  time.Duration
	// What is measured.
	inside, looks, passes int
	grants                []int
	worked, longest       time.Duration
	lasted                time.Duration
}

const (
	lineLatency  = 2 * ms
	lineHandoffs = 16
)

// player is one process.
type player struct {
	*lineGame

	number int
	skew   time.Duration
	poller *waitqueue.Poller
	queues waitqueue.Queues[string, string]
	n      int
	turn   time.Time // since when it knows that the lock is its own, passes included; its place orders this
}

// seen is what an answer shows of the row.
type seen struct {
	line  []string
	since time.Time
	hold  time.Duration
}

// request runs f on the row, and returns what it is then.
func (g *lineGame) request(f func()) seen {
	time.Sleep(lineLatency / 2)
	g.mu.Lock()
	f()
	s := seen{slices.Clone(g.line), g.since, g.hold}
	g.mu.Unlock()
	time.Sleep(lineLatency / 2)
	return s
}

func (g *lineGame) read(_ context.Context, list []keys.Key) ([]table.Item, error) {
	s := g.request(func() { g.looks++ })
	return slices.Repeat([]table.Item{{
		"line": &types.AttributeValueMemberS{Value: strings.Join(s.line, " ")},
		"row":  &types.AttributeValueMemberS{Value: fmt.Sprint(s.since.UnixNano(), s.hold.Nanoseconds())},
	}}, len(list)), nil
}

// wait returns when the ticket is first.
func (p *player) wait(ticket string, s seen) {
	if s.line[0] == ticket {
		return
	}
	first, firstSeen := s.since, time.Now()
	next := func(s seen) time.Duration {
		if s.since != first {
			first, firstSeen = s.since, time.Now()
		}
		return waitqueue.Estimate{
			Ahead: slices.Index(s.line, ticket), Hold: s.hold, Held: time.Since(s.since) + p.skew, Unchanged: time.Since(firstSeen), Longest: 20 * time.Second,
		}.Look(machine.Real{})
	}
	done := make(chan struct{})
	watch(p.poller, key(1), next(s), func(look waitqueue.Look) time.Duration {
		var since, hold int64
		_, err := fmt.Sscan(look.Item["row"].(*types.AttributeValueMemberS).Value, &since, &hold)
		assert.NoError(p.t, err)
		s := seen{strings.Fields(look.Item["line"].(*types.AttributeValueMemberS).Value), time.Unix(0, since), time.Duration(hold)}
		if s.line[0] == ticket {
			close(done)
			return -1
		}
		return next(s)
	})
	<-done
}

// round takes the lock once, and returns when it is released or passed on.
func (p *player) round() {
	start := time.Now()
	w := p.queues.Join(key(1), "")
	turn := <-w.Turn()
	ticket, place := turn.Grant, turn.Place
	if ticket == "" {
		p.n++ // the place orders this
		ticket = fmt.Sprintf("%d/%d", p.number, p.n)
		p.wait(ticket, p.request(func() {
			if p.line = append(p.line, ticket); len(p.line) == 1 {
				p.since = time.Now()
			}
		}))
		p.turn = time.Now()
	}
	work := p.work()
	p.mu.Lock()
	p.inside++
	assert.Equal(p.t, 1, p.inside)
	assert.Equal(p.t, ticket, p.line[0])
	p.grants[p.number]++
	p.worked += work
	p.longest = max(p.longest, time.Since(start))
	p.mu.Unlock()
	time.Sleep(work)
	p.mu.Lock()
	p.inside--
	others := len(p.line) > 1
	p.mu.Unlock()

	if place.MayPass(lineHandoffs, others) {
		if w := place.First(); w != nil {
			s := p.request(func() { p.line[0], p.passes = ticket+"+", p.passes+1 })
			place.Passed(len(s.line) > 1)
			assert.True(p.t, place.Hand(w, ticket+"+"))
			return
		}
	}
	p.request(func() {
		turn := p.turn
		if p.naive {
			turn = p.since
		}
		p.line, p.since, p.hold = p.line[1:], time.Now(), waitqueue.Smooth(p.hold, time.Since(turn))
	})
	place.Over()
}

func (g *lineGame) play(t *testing.T) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		g.t, g.grants = t, make([]int, g.processes)
		start := time.Now()
		var wg sync.WaitGroup
		for i := range g.processes {
			p := &player{lineGame: g, number: i}
			if g.skew > 0 {
				p.skew = rand.N(2*g.skew) - g.skew
			}
			p.poller = waitqueue.NewPoller(waitqueue.PollerConfig{Machine: machine.Real{}, Read: g.read, Fatal: never, Timeout: 5 * time.Second})
			defer p.poller.Close()
			for range g.goroutines {
				wg.Go(func() {
					for p.round(); time.Since(start) < g.duration; {
						p.round()
					}
				})
			}
		}
		wg.Wait()
		g.lasted = time.Since(start)
		assert.Empty(t, g.line)
	})
}

func (g *lineGame) total() (grants int) {
	for _, n := range g.grants {
		grants += n
	}
	return grants
}

func (g *lineGame) busy() float64 { return float64(g.worked) / float64(g.lasted) }

// fair is Jain's index of the processes' grants: 1 where all have as many.
func (g *lineGame) fair() float64 {
	var squares float64
	for _, n := range g.grants {
		squares += float64(n) * float64(n)
	}
	return float64(g.total()) * float64(g.total()) / squares / float64(g.processes)
}

func always50() time.Duration { return 50 * ms }

// The queues, the poller and the estimates together: what a line costs, how much of the time somebody works, and that all
// processes get the same.
func TestLine_ServesAllProcessesTheSame(t *testing.T) {
	for _, tc := range []struct {
		name                  string
		processes, goroutines int
		duration, skew        time.Duration
		work                  func() time.Duration
		looks, busy           float64
	}{
		{"once", 2, 1, 0, 0, always50, 2, 0.8},
		{"once", 10, 1, 0, 0, always50, 5, 0.8},
		{"once", 50, 1, 0, 0, always50, 6, 0.8},
		{"once", 100, 1, 0, 0, always50, 6, 0.8},
		{"again", 4, 1, time.Minute, 0, always50, 4, 0.85},
		{"again", 20, 1, time.Minute, 0, always50, 5, 0.85},
		{"again", 100, 1, time.Minute, 0, always50, 6, 0.85},
		{"again, of 10 goroutines", 4, 10, time.Minute, 0, always50, 1, 0.85},
		{"again, 1 s", 20, 1, 10 * time.Minute, 0, func() time.Duration { return time.Second }, 11, 0.92},
		{"again, clocks off by up to 2 s", 20, 1, time.Minute, 2 * time.Second, always50, 8, 0.65},
		{"again, 0 to 100 ms", 20, 1, time.Minute, 0, func() time.Duration { return rand.N(100 * ms) }, 12, 0.8},
		{"again, mostly 5 ms, else 500 ms", 20, 1, 2 * time.Minute, 0, func() time.Duration {
			if rand.IntN(10) == 0 {
				return 500 * ms
			}
			return 5 * ms
		}, 35, 0.5},
	} {
		t.Run(fmt.Sprintf("%d %s", tc.processes, tc.name), func(t *testing.T) {
			g := &lineGame{processes: tc.processes, goroutines: tc.goroutines, work: tc.work, duration: tc.duration, skew: tc.skew}
			g.play(t)
			t.Logf("%d grants, %d of them passed on; longest wait %v", g.total(), g.passes, g.longest)
			testkit.Check(t, "line",
				testkit.AtMost(float64(g.looks)/float64(g.total()), "looks per grant", tc.looks),
				testkit.AtLeast(g.busy(), "of the time used", tc.busy),
				testkit.AtLeast(g.fair(), "Jain's index", 0.98),
			)
		})
	}
}

// What Smooth says of its second argument: the twin that counts the time until the holder notices leaves the lock unused
// for half of the time.
func TestSmooth_HoldsBeginWhenTheyAreNoticed(t *testing.T) {
	var busy [2]float64
	for i, naive := range []bool{false, true} {
		g := &lineGame{processes: 100, goroutines: 1, work: always50, duration: time.Minute, naive: naive}
		g.play(t)
		busy[i] = g.busy()
	}
	t.Logf("%.2f of the time used, and %.2f by the twin", busy[0], busy[1])
	assert.Less(t, busy[1], busy[0]-0.2)
}
