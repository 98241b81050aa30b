package clock_test

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/machine"
	"github.com/mortise-go/mortise/lock/internal/clock"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// world is a process in virtual time whose wall clock can be set.
type world struct {
	*testing.T
	engine *tabletest.Engine
	table  *table.Table
	clock  clock.Clock

	mu     sync.Mutex
	offset time.Duration
	events []string
}

func virtual(t *testing.T, f func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{T: t, engine: tabletest.New(t)}
		var err error
		w.table, err = table.Open(w.engine.Client(), table.Schema{Name: "app"}, table.WithClock(w.wall))
		require.NoError(t, err)
		w.clock = clock.New(w.table)
		f(w)
	})
}

func (w *world) wall() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Now().Add(w.offset)
}

// set moves the wall clock.
func (w *world) set(by time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.offset += by
}

// ask has DynamoDB tell its time.
func (w *world) ask() { require.NoError(w, w.table.Ensure(w.Context())) }

func (w *world) tell(event string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events = append(w.events, event)
}

// told are the events so far, once all goroutines are at rest.
func (w *world) told() []string {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.events)
}

func (w *world) term(terms *clock.Terms, length time.Duration) *clock.Term {
	return terms.Begin(w.clock.Instant(), length, clock.Watch{End: func(cause error) { w.tell("ended: " + cause.Error()) }})
}

// counting counts how often a timer is set.
type counting struct {
	machine.Real

	set atomic.Int64
}

type counted struct {
	machine.Timer

	by *counting
}

func (c *counting) AfterFunc(d time.Duration, f func()) machine.Timer {
	c.set.Add(1)
	return counted{c.Real.AfterFunc(d, f), c}
}

func (t counted) Reset(d time.Duration) bool {
	t.by.set.Add(1)
	return t.Timer.Reset(d)
}

// However many leases there are, one timer goes off once a second.
func TestTerms_TickTogether(t *testing.T) {
	virtual(t, func(w *world) {
		m := &counting{}
		w.clock.Machine = m
		terms := clock.NewTerms(w.clock)
		list := make([]*clock.Term, 50_000)
		for i := range list {
			list[i] = terms.Begin(w.clock.Instant(), time.Hour, clock.Watch{End: func(error) {}})
		}
		time.Sleep(time.Minute)
		assert.LessOrEqual(t, m.set.Load(), int64(62))
		for _, term := range list {
			term.End(errors.New("released"))
		}
	})
}

// A term that has to be looked at earlier than all others sets the one timer anew.
func TestTerms_AShortTermBehindLongOnesEndsOnTime(t *testing.T) {
	virtual(t, func(w *world) {
		m := &counting{}
		w.clock.Machine = m
		terms := clock.NewTerms(w.clock)
		long := w.term(terms, time.Hour)
		for i := range 100 {
			w.term(terms, time.Duration(999-i)*time.Millisecond).End(errors.New("released"))
		}
		m.set.Store(0)
		time.Sleep(time.Minute + 500*time.Millisecond) // between two looks
		assert.LessOrEqual(t, m.set.Load(), int64(62), "one timer, however often it was set anew")
		w.events = nil
		w.term(terms, 10*time.Millisecond)
		time.Sleep(10 * time.Millisecond)
		assert.Equal(t, []string{"ended: the lease ended without a renewal"}, w.told())
		long.End(errors.New("released"))
	})
}

func TestTerm_EndsOnTimeAndOnce(t *testing.T) {
	virtual(t, func(w *world) {
		term := w.term(clock.NewTerms(w.clock), 10*time.Second)
		time.Sleep(7 * time.Second)
		assert.Empty(t, w.told())
		assert.Equal(t, 3*time.Second, term.Remaining())
		time.Sleep(3 * time.Second)
		assert.Equal(t, []string{"ended: the lease ended without a renewal"}, w.told())
		assert.Zero(t, term.Remaining())
		require.ErrorIs(t, term.Cause(), clock.ErrEnded)
		assert.False(t, term.Extend(w.clock.Instant()), "it stays ended")
		term.End(errors.New("again"))
		require.ErrorIs(t, term.Cause(), clock.ErrEnded, "the first cause counts")
		assert.Len(t, w.told(), 1)
	})
}

func TestTerm_IsExtendedFromWhenTheRequestBegan(t *testing.T) {
	virtual(t, func(w *world) {
		term := w.term(clock.NewTerms(w.clock), 10*time.Second)
		time.Sleep(8 * time.Second)
		start := w.clock.Instant()
		term.Failed(errors.New("no answer"))
		time.Sleep(time.Second)
		require.True(t, term.Extend(start))
		require.NoError(t, term.Failure())
		assert.Equal(t, 9*time.Second, term.Remaining())
		assert.True(t, term.Extend(clock.Instant{Wall: start.Wall.Add(-time.Second), Mono: start.Mono.Add(-time.Second)}))
		assert.Equal(t, 9*time.Second, term.Remaining(), "a late answer sets nothing back")
		term.Failed(errors.New("no answer"))
		time.Sleep(9 * time.Second)
		assert.Equal(t, []string{"ended: the lease ended without a renewal; last renewal: no answer"}, w.told())
	})
}

func TestTerm_TellsThatLittleIsLeft(t *testing.T) {
	virtual(t, func(w *world) {
		term := clock.NewTerms(w.clock).Begin(w.clock.Instant(), 9*time.Second, clock.Watch{
			End: func(error) { w.tell("ended") }, Low: func() { w.tell("low") }, LowAt: 1100 * time.Millisecond,
		})
		time.Sleep(7899 * time.Millisecond)
		assert.Empty(t, w.told())
		time.Sleep(time.Millisecond)
		assert.Equal(t, []string{"low"}, w.told())
		term.Extend(w.clock.Instant())
		time.Sleep(7899 * time.Millisecond)
		assert.Equal(t, []string{"low"}, w.told(), "no more after it was extended")
		time.Sleep(1101 * time.Millisecond)
		told := w.told()
		assert.Equal(t, []string{"low", "ended"}, slices.Compact(told))
		assert.LessOrEqual(t, len(told), 6)
	})
}

func TestTerm_EndsByEitherClock(t *testing.T) {
	t.Run("the machine was suspended", func(t *testing.T) {
		virtual(t, func(w *world) {
			w.term(clock.NewTerms(w.clock), 20*time.Second)
			time.Sleep(time.Second)
			w.set(time.Hour) // the monotonic clock stood still
			time.Sleep(time.Second)
			assert.Equal(t, []string{"ended: the lease ended without a renewal"}, w.told(), "within a twentieth of the length")
		})
	})
	t.Run("the wall clock was set back", func(t *testing.T) {
		virtual(t, func(w *world) {
			w.term(clock.NewTerms(w.clock), 20*time.Second)
			w.set(-time.Hour)
			time.Sleep(20 * time.Second)
			assert.Contains(t, w.told(), "ended: the lease ended without a renewal")
		})
	})
	t.Run("nobody has looked yet", func(t *testing.T) {
		virtual(t, func(w *world) {
			term := w.term(clock.NewTerms(w.clock), 20*time.Second)
			w.set(time.Hour)
			require.ErrorIs(t, term.Cause(), clock.ErrEnded)
			assert.Equal(t, []string{"ended: the lease ended without a renewal"}, w.told())
		})
	})
}

func TestTerms_WatchManyAtOnce(t *testing.T) {
	virtual(t, func(w *world) {
		terms := clock.NewTerms(w.clock)
		const many = 5000
		var mu sync.Mutex
		var order []time.Duration
		began := time.Now()
		for i := range many {
			length := time.Duration(1+(i*7919)%many) * time.Millisecond
			terms.Begin(w.clock.Instant(), length, clock.Watch{End: func(error) {
				mu.Lock()
				defer mu.Unlock()
				order = append(order, length)
				assert.Equal(t, length, time.Since(began))
			}})
		}
		time.Sleep(many * time.Millisecond)
		synctest.Wait()
		require.Len(t, order, many)
		assert.True(t, slices.IsSorted(order))
	})
}

func TestTerms_CostNothingWhereNothingIsHeld(t *testing.T) {
	virtual(t, func(w *world) {
		m := &counting{}
		w.clock.Machine = m
		terms := clock.NewTerms(w.clock)
		term := w.term(terms, time.Second)
		term.End(errors.New("released"))
		assert.Zero(t, term.Remaining())
		time.Sleep(time.Hour)
		assert.Equal(t, []string{"ended: released"}, w.told())
		assert.EqualValues(t, 1, m.set.Load(), "the timer was not set again")
		w.term(terms, time.Second)
		time.Sleep(time.Second)
		assert.Len(t, w.told(), 2)
	})
}

func TestTerms_AreSafeForConcurrentUse(t *testing.T) {
	virtual(t, func(w *world) {
		terms := clock.NewTerms(w.clock)
		var all sync.WaitGroup
		for i := range 50 {
			all.Go(func() {
				ends := 0
				term := terms.Begin(w.clock.Instant(), time.Duration(100+i)*time.Millisecond, clock.Watch{End: func(error) { ends++ }})
				for range 20 {
					time.Sleep(10 * time.Millisecond)
					term.Extend(w.clock.Instant())
					_, _ = term.Remaining(), term.Cause()
				}
				term.End(errors.New("done"))
				term.End(errors.New("done"))
				assert.Equal(t, 1, ends)
			})
		}
		all.Wait()
	})
}
