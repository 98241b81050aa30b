package sim

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// late is more than any timer of a simulated machine is late.
const late = time.Millisecond

func bubble(t *testing.T, name string, f func(t *testing.T)) {
	t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
}

func fired(m *alarm) bool {
	synctest.Wait()
	select {
	case <-m.c:
		return true
	default:
		return false
	}
}

func newAlarm(t *testing.T, m *simulated, d time.Duration) *alarm {
	a, ok := m.NewTimer(d).(*alarm)
	require.True(t, ok)
	return a
}

func TestClocks_RunAtTheirRates(t *testing.T) {
	bubble(t, "rates", func(t *testing.T) {
		begin := time.Now()
		m := newMachine(1, Clock{Offset: time.Hour, Wall: .5, Rate: 2})
		start := m.Now()
		assert.Equal(t, time.Hour, m.Wall().Sub(begin))
		time.Sleep(10 * time.Second)
		assert.Equal(t, 20*time.Second, m.Now().Sub(start))
		assert.Equal(t, time.Hour+5*time.Second, m.Wall().Sub(begin))
		m.jump(-2 * time.Hour)
		assert.Equal(t, -time.Hour+5*time.Second, m.Wall().Sub(begin))
		assert.Equal(t, 20*time.Second, m.Now().Sub(start), "nobody can set it")
	})
	bubble(t, "timers", func(t *testing.T) {
		m := newMachine(1, Clock{Rate: 2})
		a := newAlarm(t, m, 20*time.Second)
		time.Sleep(10*time.Second - late)
		assert.False(t, fired(a))
		time.Sleep(2 * late)
		assert.True(t, fired(a))
	})
	bubble(t, "timeouts", func(t *testing.T) {
		m := newMachine(1, Clock{Rate: .5})
		ctx, cancel := m.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		time.Sleep(10*time.Second - late)
		require.NoError(t, ctx.Err())
		time.Sleep(2 * late)
		assert.ErrorIs(t, ctx.Err(), context.DeadlineExceeded)
	})
}

// A simulated timer behaves like a time.Timer.
func TestTimers_BehaveLikeThoseOfTime(t *testing.T) {
	bubble(t, "stopped", func(t *testing.T) {
		a := newAlarm(t, newMachine(1, Clock{}), time.Second)
		assert.True(t, a.Stop(), "it was active")
		assert.False(t, a.Stop(), "it was not")
		time.Sleep(time.Minute)
		assert.False(t, fired(a))
	})
	bubble(t, "gone off", func(t *testing.T) {
		a := newAlarm(t, newMachine(1, Clock{}), time.Second)
		time.Sleep(time.Second + late)
		synctest.Wait()
		assert.False(t, a.Stop(), "it has gone off")
		assert.False(t, fired(a), "nothing stale is received after Stop")
	})
	bubble(t, "reset", func(t *testing.T) {
		a := newAlarm(t, newMachine(1, Clock{}), time.Second)
		assert.True(t, a.Reset(10*time.Second), "it was active")
		time.Sleep(10*time.Second - late)
		assert.False(t, fired(a))
		time.Sleep(2 * late)
		assert.True(t, fired(a))
		assert.False(t, a.Reset(time.Second), "it had gone off")
		time.Sleep(time.Second + late)
		assert.True(t, fired(a))
	})
	bubble(t, "functions", func(t *testing.T) {
		m := newMachine(1, Clock{})
		calls := 0
		a := m.AfterFunc(time.Second, func() { calls++ })
		assert.Nil(t, a.C())
		time.Sleep(time.Second + late)
		synctest.Wait()
		assert.Equal(t, 1, calls)
		assert.False(t, a.Reset(-time.Second), "it had gone off; what is due is due at once")
		time.Sleep(late)
		synctest.Wait()
		assert.Equal(t, 2, calls)
	})
}

// While a process is paused, its clocks go on and everything else stops. In a suspended machine the monotonic clock
// stops, too, and timers keep the time that they had left.
func TestMachine_StopsTimersAndKeepsClocks(t *testing.T) {
	for _, tc := range []struct {
		name    string
		suspend bool
		passed  time.Duration // by the machine's clock
		rest    time.Duration // until the timer fires
	}{
		{"paused", false, 61 * time.Second, 0},
		{"suspended", true, time.Second, 9 * time.Second},
	} {
		bubble(t, tc.name, func(t *testing.T) {
			m := newMachine(1, Clock{})
			start := m.Now()
			a := newAlarm(t, m, 10*time.Second)
			time.Sleep(time.Second)
			m.stop(tc.suspend)
			time.Sleep(time.Minute)
			assert.False(t, fired(a))
			assert.Equal(t, tc.passed, m.Now().Sub(start))
			assert.Equal(t, 61*time.Second, m.Wall().Sub(start), "the wall clock goes on")
			m.resume()
			time.Sleep(max(tc.rest-late, 0))
			assert.False(t, fired(a))
			time.Sleep(2 * late)
			assert.True(t, fired(a))
		})
	}
	bubble(t, "stopped while nothing was due", func(t *testing.T) {
		m := newMachine(1, Clock{})
		a := newAlarm(t, m, 10*time.Second)
		m.stop(false)
		time.Sleep(time.Second)
		m.resume()
		time.Sleep(9*time.Second + late)
		assert.True(t, fired(a))
	})
	bubble(t, "a timer that is stopped while its machine is", func(t *testing.T) {
		m := newMachine(1, Clock{})
		a := newAlarm(t, m, time.Second)
		m.stop(false)
		time.Sleep(time.Minute)
		assert.True(t, a.Stop())
		m.resume()
		time.Sleep(time.Minute)
		assert.False(t, fired(a))
	})
}

// Timers that were due while the machine was stopped fire in an order that the seed decides, and always in the same
// one.
func TestMachine_HasOneOrderAfterAPause(t *testing.T) {
	order := func(seed uint64) (list []int) {
		synctest.Test(t, func(*testing.T) {
			m := newMachine(seed, Clock{})
			var mu sync.Mutex
			for i := range 6 {
				m.AfterFunc(time.Duration(i+1)*time.Second, func() {
					mu.Lock()
					defer mu.Unlock()
					list = append(list, i)
				})
			}
			m.stop(false)
			time.Sleep(time.Minute)
			m.resume()
			time.Sleep(late)
			mu.Lock()
			defer mu.Unlock()
		})
		return list
	}
	different := map[int]bool{}
	for seed := range uint64(20) {
		first := order(seed)
		require.ElementsMatch(t, []int{0, 1, 2, 3, 4, 5}, first)
		assert.Equal(t, first, order(seed), "seed %d", seed)
		different[first[0]] = true
	}
	assert.Greater(t, len(different), 2, "others than the first may come first")
}

// Random values depend only on the seed and the instant, however often they are drawn.
func TestMachine_DrawsBySeedAndInstant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, other := newMachine(1, Clock{}), newMachine(1, Clock{}), newMachine(2, Clock{})
		assert.Equal(t, a.N(time.Hour), b.N(time.Hour))
		assert.NotEqual(t, a.N(time.Hour), other.N(time.Hour))
		first := a.Text()
		assert.Len(t, first, 26)
		assert.Equal(t, first, b.Text())
		assert.NotEqual(t, first, a.Text(), "each is unique")
		assert.NotEqual(t, first, other.Text())
		before := a.N(time.Hour)
		time.Sleep(time.Nanosecond)
		assert.NotEqual(t, before, a.N(time.Hour))
		for range 1000 {
			time.Sleep(time.Nanosecond)
			n := a.N(3)
			require.True(t, n >= 0 && n < 3, "%d", n)
		}
	})
}

func TestClock_IsToldInWords(t *testing.T) {
	assert.Equal(t, "wall clock right, at 1 times the rate; timers at 1", Clock{}.String())
	assert.Equal(t, "wall clock 1.5s fast, at 0.9 times the rate; timers at 1.1", Clock{Offset: 1500 * time.Millisecond, Wall: .9, Rate: 1.1}.String())
	assert.Equal(t, "wall clock 1h0m0s slow, at 1 times the rate; timers at 1", Clock{Offset: -time.Hour}.String())
}
