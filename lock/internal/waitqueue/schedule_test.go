package waitqueue_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/mortise-go/mortise/internal/machine"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock/internal/waitqueue"
	"github.com/mortise-go/mortise/table"
)

// Whatever is watched, and ended: every request has a row that is due. Nobody is told before half of its
// interval, or later than its interval and what the rate and the requests' own time make necessary, or after its Stop.
// And the rate is kept.
func TestPoller_TellsInTimeAndKeepsTheRate(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := drawSchedule(rt)
		synctest.Test(t, s.play)
		if s.wrong != "" {
			rt.Fatal(s.wrong)
		}
	})
}

// schedule is what watchers do, and what comes of it.
type schedule struct {
	latency time.Duration
	steps   []step

	mu       sync.Mutex // of what follows
	watchers []*scheduled
	of       map[keys.Key][]*scheduled
	requests []request
	wrong    string
}

// step is one thing that is done, a while after the one before.
type step struct {
	wait    time.Duration
	what    string // watch, stop
	many    int    // watches
	key     int
	which   int // watcher
	d       time.Duration
	nexts   []time.Duration // what seen returns, in turn
	endless bool
}

// scheduled is a watcher as the test knows it.
type scheduled struct {
	s         *schedule
	key       keys.Key
	w         *watching
	told      int
	from, due time.Time // of the interval
	ended     bool
}

func drawSchedule(t *rapid.T) *schedule {
	interval := rapid.Custom(func(t *rapid.T) time.Duration {
		scale := rapid.SampledFrom([]time.Duration{0, ms, 20 * ms, 200 * ms, 3 * time.Second}).Draw(t, "scale")
		return scale * time.Duration(rapid.IntRange(1, 10).Draw(t, "times"))
	})
	s := &schedule{
		latency: rapid.SampledFrom([]time.Duration{0, ms, 30 * ms}).Draw(t, "latency"),
		of:      map[keys.Key][]*scheduled{},
	}
	s.steps = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) step {
		return step{
			wait:    rapid.SampledFrom([]time.Duration{0, 0, ms, 10 * ms, 300 * ms, 2 * time.Second}).Draw(t, "wait"),
			what:    rapid.SampledFrom([]string{"watch", "watch", "watch", "stop"}).Draw(t, "what"),
			many:    rapid.SampledFrom([]int{1, 1, 1, 3, 150}).Draw(t, "many"),
			key:     rapid.SampledFrom([]int{0, 0, 0, 1, 2, 100, 200}).Draw(t, "key"),
			which:   rapid.IntRange(0, 1000).Draw(t, "which"),
			d:       interval.Draw(t, "d"),
			nexts:   rapid.SliceOfN(interval, 1, 3).Draw(t, "nexts"),
			endless: rapid.Bool().Draw(t, "endless"),
		}
	}), 1, 30).Draw(t, "steps")
	return s
}

func (s *schedule) fail(format string, args ...any) {
	if s.wrong == "" {
		s.wrong = fmt.Sprintf(format, args...)
	}
}

func (s *schedule) play(*testing.T) {
	p := waitqueue.NewPoller(waitqueue.PollerConfig{Machine: machine.Real{}, Read: s.read, Fatal: never, Timeout: 5 * time.Second})
	defer p.Close()
	for _, step := range s.steps {
		time.Sleep(step.wait)
		synctest.Wait()
		s.do(p, step)
		synctest.Wait()
	}
	time.Sleep(5 * time.Second)
	synctest.Wait()
	for i, w := range s.watchers {
		w.check(i, time.Now())
		w.w.Stop()
	}
	for i := range s.requests {
		n := 0
		for _, r := range s.requests[i:] {
			n += len(r.list)
			if r.at.Sub(s.requests[i].at) > 2*time.Second {
				break
			}
			if most := 0.3*waitqueue.Rate + r.at.Sub(s.requests[i].at).Seconds()*waitqueue.Rate + 1; float64(n) > most {
				s.fail("%d rows in %v", n, r.at.Sub(s.requests[i].at))
			}
		}
	}
}

func (s *schedule) do(p *waitqueue.Poller, step step) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.pick(step)
	switch {
	case step.what == "watch":
		for i := range step.many {
			s.watch(p, step, step.key+i)
		}
	case w == nil || w.ended:
	case step.what == "stop":
		w.w.Stop()
		w.ended = true
	}
}

func (s *schedule) pick(step step) *scheduled {
	if len(s.watchers) == 0 {
		return nil
	}
	return s.watchers[step.which%len(s.watchers)]
}

func (s *schedule) watch(p *waitqueue.Poller, step step, k int) {
	w := &scheduled{s: s, key: key(k)}
	number := len(s.watchers)
	s.watchers, s.of[w.key] = append(s.watchers, w), append(s.of[w.key], w)
	w.from, w.due = time.Now(), time.Now().Add(step.d)
	w.w = watch(p, w.key, step.d, func(look waitqueue.Look) time.Duration {
		s.mu.Lock()
		defer s.mu.Unlock()
		if w.ended {
			s.fail("watcher %d is told after its end", number)
		}
		if half := w.from.Add(w.due.Sub(w.from) / 2); look.At.Before(half) {
			s.fail("watcher %d is told at %v, before %v", number, look.At, half)
		}
		w.check(number, look.At)
		next := step.nexts[w.told%len(step.nexts)]
		if w.told++; w.told == 3 && !step.endless {
			next, w.ended = -1, true
		}
		w.from, w.due = time.Now(), time.Now().Add(next)
		return next
	})
}

// check has now not be later than the watcher can expect a look.
func (w *scheduled) check(number int, now time.Time) {
	if w.ended {
		return
	}
	due := w.due
	if late, most := now.Sub(due), w.s.lateness(); late > most {
		w.s.fail("watcher %d was not told for %v after %v, beyond %v", number, late, due, most)
	}
}

// lateness is how long the rate and the requests can keep a watcher waiting: its interval is longer by one read for each
// watcher at most, and then as many are before it at most.
func (s *schedule) lateness() time.Duration {
	rows := float64(len(s.watchers) + 1)
	requests := rows/(waitqueue.Rate/20) + 2 // which have so many rows at least where there are more
	each := s.latency + 50*ms
	return time.Duration(2*rows/waitqueue.Rate*float64(time.Second) + requests*float64(each))
}

func (s *schedule) read(_ context.Context, list []keys.Key) ([]table.Item, error) {
	now := time.Now()
	s.mu.Lock()
	s.requests = append(s.requests, request{now, list})
	if !slices.ContainsFunc(list, func(key keys.Key) bool {
		return slices.ContainsFunc(s.of[key], func(w *scheduled) bool { return !w.ended && !w.due.After(now) })
	}) {
		s.fail("at %v nothing was due", now)
	}
	s.mu.Unlock()
	time.Sleep(s.latency)
	return make([]table.Item, len(list)), nil
}
