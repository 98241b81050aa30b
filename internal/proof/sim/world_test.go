package sim_test

import (
	"context"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mortise-go/mortise/internal/inside"
	"github.com/mortise-go/mortise/internal/testkit"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/proof/sim"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table/tabletest"
)

// A world comes to its end while processes crash, boot and are stopped in it.
func TestWorld_EndsInBadWeather(t *testing.T) {
	for seed := range uint64(20) {
		short := sim.Range{Least: time.Millisecond, Most: 2 * time.Second}
		p := sim.Profile{Pauses: time.Second, Suspends: time.Second, Cuts: time.Second, Crashes: 5 * time.Second, StopFor: short, Slow: .2, SlowBy: short}
		r := sim.Run(t, sim.Options{Seed: seed, Profile: p}, func(w *sim.World) {
			for _, name := range []string{"a", "b", "c"} {
				w.Supervise(name, func(p *sim.Process) {
					locks := p.Locks(lock.Config{Lease: 3 * time.Second, HomeRegion: tabletest.Region})
					p.Go("w", func(ctx context.Context, x *sim.Worker) {
						for ctx.Err() == nil {
							if l, err := locks.Acquire(ctx, lock.Name(name)); err == nil {
								x.Pause(x.Between(0, 3*time.Second), true)
								_ = l.Release(ctx) // may fail
							}
						}
					})
				})
			}
			time.Sleep(10*time.Second + time.Duration(seed)*time.Microsecond)
		})
		assert.False(t, r.Broken, "seed %d", seed)
		assert.Empty(t, r.Violations, "seed %d", seed)
		for _, kind := range []string{"paused", "crashed"} {
			assert.NotZero(t, r.Faults[kind], "seed %d: %s", seed, kind)
		}
	}
}

// Violations are counted, and are in the history.
func TestViolation_IsCountedAndInTheHistory(t *testing.T) {
	r := sim.Run(t, sim.Options{History: true}, func(w *sim.World) { w.Violation("%d too many", 1) })
	assert.Equal(t, []string{"1 too many"}, r.Violations)
	require.Len(t, r.Events, 1)
	assert.Equal(t, sim.Violation, r.Events[0].Kind)
	assert.Contains(t, r.History, "VIOLATION: 1 too many")
}

// A worker that does not end after all faults have ended is stuck.
func TestWorker_ThatDoesNotEndIsStuck(t *testing.T) {
	r := sim.Run(t, sim.Options{}, func(w *sim.World) {
		w.Boot("a").Go("w", func(ctx context.Context, _ *sim.Worker) { <-ctx.Done() })
		w.Settle()
	})
	require.Len(t, r.Violations, 1)
	assert.Contains(t, r.Violations[0], "stuck")
}

// When a world has settled, everything has arrived that was late, also requests from its very end.
func TestSettle_WaitsForWhatIsLate(t *testing.T) {
	late := sim.Range{Least: time.Minute, Most: 2 * time.Minute}
	for name, profile := range map[string]sim.Profile{
		"duplicated": {Duplicated: 1, LateBy: late}, "lost, arrives late": {LostLate: 1, LateBy: late}, "slow": {Slow: 1, SlowBy: late},
	} {
		t.Run(name, func(t *testing.T) {
			play := func(settle bool) sim.Result {
				return sim.Run(t, sim.Options{Seed: 3, Profile: profile}, func(w *sim.World) {
					w.Boot("a").Go("w", func(ctx context.Context, x *sim.Worker) {
						bounded, cancel := x.Within(ctx, time.Second)
						defer cancel()
						_ = x.Process.Table().Write(bounded, set(5)) // may fail
					})
					require.True(t, w.Wait(time.Hour))
					if settle {
						require.NoError(t, w.Table().Write(w.Context(), set(6)))
						w.Settle()
						if name != "slow" { // of slow, perhaps only the answer is late
							assert.Equal(t, "5", reads(w.Context(), t, w.Table(), true))
						}
					}
				})
			}
			r := play(false)
			assert.Equal(t, r.Requests, r.Missing)
			r = play(true)
			assert.Zero(t, r.Missing)
			assert.Equal(t, r.Requests, r.Faults[name])
		})
	}
}

// A world has not settled while the successor of a crashed process is about to boot.
func TestSettle_WaitsForWhoBoots(t *testing.T) {
	sim.Run(t, sim.Options{}, func(w *sim.World) {
		lives := 0
		w.Supervise("a", func(p *sim.Process) {
			lives++
			first := lives == 1
			p.Go("w", func(_ context.Context, x *sim.Worker) {
				if first {
					w.At(time.Now().Add(time.Second), p.Crash)
				}
				x.Sleep(time.Minute)
			})
		})
		begin := time.Now()
		w.Settle()
		assert.Equal(t, 2, lives)
		assert.Greater(t, time.Since(begin), time.Minute)
	})
}

// A process that was stopped twice continues when both stops have ended, in whichever order. The end of a stop has no
// effect after Resume has ended all stops.
func TestStops_AddUp(t *testing.T) {
	sim.Run(t, sim.Options{}, func(w *sim.World) {
		p := w.Boot("a")
		var slept time.Duration
		p.Go("w", func(_ context.Context, x *sim.Worker) {
			begin := time.Now()
			x.Sleep(time.Second)
			slept = time.Since(begin)
			x.Pause(5*time.Second, false)
			assert.InDelta(t, 26, time.Since(begin).Seconds(), .1)
		})
		begin := time.Now()
		at := func(d time.Duration, do func()) { w.At(begin.Add(d), do) }
		at(0, func() {
			at(20*time.Second, p.Stop(true))
			end := p.Stop(false)
			at(10*time.Second, func() {
				end()
				end() // a second call has no effect
			})
		})
		at(15*time.Second, func() { assert.Zero(t, slept) })
		require.True(t, w.Wait(time.Hour))
		assert.InDelta(t, 21, slept.Seconds(), .1, "a machine that was suspended does not count the time")

		var end func()
		w.At(time.Now(), func() { end = p.Stop(false) })
		time.Sleep(time.Second)
		w.Calm()
		p.Go("w", func(_ context.Context, x *sim.Worker) {
			begin := time.Now()
			w.At(begin.Add(time.Second), end)
			x.Pause(5*time.Second, false)
			assert.InDelta(t, 5, time.Since(begin).Seconds(), .1)
		})
		w.Settle()
	})
}

// In a world with deletion by time to live there are old rows at the beginning. They are deleted while the locks are
// acquired again. Worlds without it have no such rows, and the history does not show them.
func TestRelics_AreDeletedWhileLocksAreAcquiredAgain(t *testing.T) {
	load, err := sim.WorkloadNamed("bank")
	require.NoError(t, err)
	deleted, between := 0, 0
	seeds := testkit.IfSmall(4, 12)
	for seed := range uint64(seeds) {
		r := load.Play(t, sim.Options{Seed: seed, Rounds: .1, History: true})
		assert.Empty(t, r.Violations, "seed %d", seed)
		assert.NotRegexp(t, `p\S+ +ancestor`, r.History, "the history begins after it; others may meet its locks")
		assert.Less(t, r.Virtual, 2*time.Hour)
		n := r.Faults["deleted by time to live"]
		if r.Profile.Sweeps == 0 {
			assert.Zero(t, n)
		}
		deleted += n
		held := false
		for _, e := range r.Events {
			held = held || e.Kind == sim.Holding
			if held && e.Kind == sim.Swept {
				between++
			}
		}
	}
	assert.GreaterOrEqual(t, deleted, seeds)
	assert.Positive(t, between, "all were deleted before anybody held a lock")
}

// A panic breaks its own world and no other. It is a violation, which tells where it began.
func TestPanic_BreaksItsOwnWorldAlone(t *testing.T) {
	forever := func(w *sim.World) {
		w.Boot("b").Go("w", func(ctx context.Context, _ *sim.Worker) { <-ctx.Done() })
		w.Settle()
		t.Error("the workload goes on in a broken world")
	}
	for who, body := range map[string]func(w *sim.World){
		"a, w": func(w *sim.World) {
			w.Boot("a").Go("w", func(context.Context, *sim.Worker) { explode() })
			forever(w)
		},
		"the workload": func(*sim.World) { explode() },
		"the network": func(w *sim.World) {
			w.At(time.Now().Add(time.Second), explode)
			forever(w)
		},
		"a, a timer": func(w *sim.World) {
			w.Boot("a").Go("w", func(ctx context.Context, x *sim.Worker) {
				x.Process.Table().Inside(inside.Key{}).Machine.AfterFunc(time.Second, explode)
				<-ctx.Done()
			})
			forever(w)
		},
	} {
		t.Run(who, func(t *testing.T) {
			r := sim.Run(t, sim.Options{}, body)
			require.Len(t, r.Violations, 1)
			assert.True(t, strings.HasPrefix(r.Violations[0], who+" broke down: exploded\n"), r.Violations[0])
			assert.Contains(t, r.Violations[0], "sim_test.explode (world_test.go:")
			assert.NotContains(t, r.Violations[0], "goroutine")
			assert.True(t, r.Broken)
			assert.Less(t, r.Virtual, time.Minute)
		})
	}
}

func explode() { panic("exploded") }

// An error of the world itself breaks it as well: here a process makes a lock client with invalid settings.
func TestWorld_BreaksOnAnErrorOfItsOwn(t *testing.T) {
	r := sim.Run(t, sim.Options{Seed: 4}, func(w *sim.World) {
		w.Supervise("a", func(p *sim.Process) {
			p.Go("w", func(context.Context, *sim.Worker) { p.Locks(lock.Config{Lease: -1}) })
		})
		w.Settle()
		t.Error("the workload goes on in a broken world")
	})
	require.Len(t, r.Violations, 1)
	assert.Contains(t, r.Violations[0], "a, w broke down: sim: seed 4: lock: ")
}

// If a profile has wrong clocks, all processes have them, wall clocks and monotonic clocks. TestClocks_RunAtTheirRates
// checks that they are as wrong as the history tells.
func TestClocksAreWrong(t *testing.T) {
	load, err := sim.WorkloadNamed("clocks")
	require.NoError(t, err)
	booted := regexp.MustCompile(`boots: wall clock (\S+) (fast|slow), at (\S+) times the rate; timers at (\S+)$`)
	parsed := func(text string) float64 {
		rate, err := strconv.ParseFloat(text, 64)
		require.NoError(t, err)
		return rate
	}
	var offsets, walls, timers []float64
	for seed := range uint64(4) {
		for _, e := range load.Play(t, sim.Options{Seed: seed, Rounds: .1, History: true}).Events {
			if e.Kind != sim.Booted {
				continue
			}
			clock := booted.FindStringSubmatch(e.Text)
			require.NotNil(t, clock, e.Text)
			by, err := time.ParseDuration(clock[1])
			require.NoError(t, err)
			if clock[2] == "slow" {
				by = -by
			}
			offsets, walls, timers = append(offsets, by.Hours()), append(walls, parsed(clock[3])), append(timers, parsed(clock[4]))
		}
	}
	for _, drawn := range []struct {
		list        []float64
		middle, off float64
	}{{offsets, 0, 1}, {walls, 1, .2}, {timers, 1, .2}} {
		assert.GreaterOrEqual(t, len(drawn.list), 4*5)
		assert.InDelta(t, drawn.middle-drawn.off, slices.Min(drawn.list), .4*drawn.off)
		assert.InDelta(t, drawn.middle+drawn.off, slices.Max(drawn.list), .4*drawn.off)
	}
}
