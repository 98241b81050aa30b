package sim_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/sim"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table/tabletest"
)

// A world comes to its end while processes crash, boot and are stopped in it.
func TestWorldsEndInBadWeather(t *testing.T) {
	for seed := range uint64(20) {
		short := sim.Range{Least: time.Millisecond, Most: 2 * time.Second}
		p := sim.Profile{Pauses: time.Second, Suspends: time.Second, Cuts: time.Second, Crashes: 5 * time.Second, StopFor: short, Slow: .2, SlowBy: short}
		sim.Run(t, sim.Options{Seed: seed, Profile: p}, func(w *sim.World) {
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
	}
}

// Violations are counted, and stand in the history.
func TestViolations(t *testing.T) {
	r := sim.Run(t, sim.Options{History: true}, func(w *sim.World) { w.Violation("%d too many", 1) })
	assert.Equal(t, []string{"1 too many"}, r.Violations)
	require.Len(t, r.Events, 1)
	assert.Equal(t, sim.Violation, r.Events[0].Kind)
	assert.Contains(t, r.History, "VIOLATION: 1 too many")
}

// Whoever never ends, though nothing goes wrong any more, is stuck.
func TestStuck(t *testing.T) {
	r := sim.Run(t, sim.Options{}, func(w *sim.World) {
		w.Boot("a").Go("w", func(ctx context.Context, _ *sim.Worker) { <-ctx.Done() })
		w.Settle()
	})
	require.Len(t, r.Violations, 1)
	assert.Contains(t, r.Violations[0], "stuck")
}
