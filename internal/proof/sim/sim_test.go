package sim_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/proof/sim"
	"github.com/mortise-go/mortise/internal/testkit"
	"github.com/mortise-go/mortise/table"
)

// Several workers of a process may send requests at one instant, since they waited for the same thing. The requests
// are applied in one order, also if only the workers' names differ.
func TestRequests_OfOneInstantHaveOneOrder(t *testing.T) {
	play := func() string {
		return sim.Run(t, sim.Options{Seed: 3, History: true}, func(w *sim.World) {
			p, gate := w.Boot("client"), make(chan struct{})
			for name := range 8 {
				p.Go(strconv.Itoa(name), func(ctx context.Context, x *sim.Worker) {
					<-gate
					x.Note("%v", p.Table().Write(ctx, set(1).If(table.Attr("n").NotExists())))
					x.Note("%v", p.Table().Write(ctx, set(name)))
				})
			}
			p.Go("opener", func(_ context.Context, x *sim.Worker) {
				x.Sleep(time.Second)
				close(gate)
			})
			require.True(t, w.Wait(time.Hour))
		}).History
	}
	first := play()
	require.Contains(t, first, "<nil>")
	for range 50 {
		require.Empty(t, sim.Difference(first, play()))
	}
}

// Keeping a history changes nothing.
func TestHistory_ChangesNothing(t *testing.T) {
	load := sim.Workloads()[0]
	for seed := range uint64(testkit.IfSmall(2, 5)) {
		kept := load.Play(t, sim.Options{Seed: seed, Rounds: .2, History: true})
		bare := load.Play(t, sim.Options{Seed: seed, Rounds: .2})
		require.Empty(t, bare.History)
		kept.History, kept.Events = "", nil
		assert.Equal(t, kept, bare)
	}
}

// A workload plays the given share of its rounds, and another seed is another world.
func TestWorkload_PlaysItsRoundsAndItsSeed(t *testing.T) {
	load := sim.Workloads()[0]
	all := load.Play(t, sim.Options{Seed: 1, Rounds: .5, History: true})
	some := load.Play(t, sim.Options{Seed: 1, Rounds: .1, History: true})
	other := load.Play(t, sim.Options{Seed: 2, Rounds: .1, History: true})
	assert.Less(t, some.Requests, all.Requests)
	assert.NotEqual(t, some.Digest(), other.Digest())
	assert.Contains(t, sim.Difference(some.History, other.History), "the histories differ from line 1 on")
	longer := load.Longer(5)
	same := longer.Play(t, sim.Options{Seed: 1, Rounds: .1, History: true})
	assert.Equal(t, all.Digest(), same.Digest())
	assert.Equal(t, "go run ./internal/proof/sim/cmd/replay -workload "+load.Name+" -rounds 5 -seed 1", longer.Replay(1))
}

// A twin that is named is played instead of the workload. Without a name, it is the first twin.
func TestTwin_IsPlayedInsteadOfTheWorkload(t *testing.T) {
	histories, played := map[string]string{}, 0
	for i, load := range sim.Workloads() {
		if i%testkit.IfSmall(12, 1) != 0 {
			continue
		}
		o := sim.Options{Seed: 1, Rounds: .4, History: true}
		played += 1 + len(load.Twins)
		plain := load.Play(t, o)
		histories[plain.Digest()] = load.Name
		require.NotEmpty(t, load.Twins, load.Name)
		for _, named := range load.Twins {
			l, twin, err := load.Twin(named.Name)
			require.NoError(t, err)
			name := load.Name + " " + named.Name
			assert.Equal(t, named.About, twin.About, name)
			assert.Equal(t, "go run ./internal/proof/sim/cmd/replay -workload "+load.Name+" -twin="+named.Name+" -seed 7", l.Replay(7))
			r := l.Play(t, o)
			assert.False(t, r.Broken, "%s: %v", name, r.Violations)
			histories[r.Digest()] = name
			_, _, err = l.Twin(named.Name)
			require.ErrorContains(t, err, "has no twin")
		}
		first, twin, err := load.Twin("")
		require.NoError(t, err)
		assert.Equal(t, load.Twins[0].Name, twin.Name)
		assert.Contains(t, first.Replay(1), "-twin="+twin.Name)
		_, _, err = load.Twin("nonsense")
		require.ErrorContains(t, err, `has no twin "nonsense"; there are`)
	}
	assert.Len(t, histories, played, "each is another world")
}

func TestWorkloadNamed_KnowsEachWorkload(t *testing.T) {
	for _, l := range sim.Workloads() {
		got, err := sim.WorkloadNamed(l.Name)
		require.NoError(t, err)
		assert.Equal(t, l.About, got.About)
		assert.NotEmpty(t, got.Counts())
	}
	_, err := sim.WorkloadNamed("nonsense")
	require.ErrorContains(t, err, `no workload "nonsense"; there are lockset`)
}
