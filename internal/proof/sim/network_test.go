package sim_test

import (
	"context"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/proof/sim"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
)

var row = keys.NewKey("ROW", "ROW")

// reads returns the number in the row, or 0 if there is none.
func reads(ctx context.Context, t *testing.T, tbl *table.Table, consistent bool) string {
	item, err := tbl.Get(ctx, row, consistent)
	if err != nil {
		assert.ErrorIs(t, err, table.ErrNotFound)
		return "0"
	}
	n, ok := item["n"].(*types.AttributeValueMemberN)
	assert.True(t, ok)
	return n.Value
}

func set(n int) table.Op { return table.Update(row, table.Attr("n").Set(n)) }

// alone runs f as the only worker of the only process of a world.
func alone(t *testing.T, p sim.Profile, f func(ctx context.Context, w *sim.World, x *sim.Worker)) sim.Result {
	return sim.Run(t, sim.Options{Seed: 7, Profile: p, History: true}, func(w *sim.World) {
		w.Boot("client").Go("w", func(ctx context.Context, x *sim.Worker) { f(ctx, w, x) })
		require.True(t, w.Wait(time.Hour))
	})
}

// Each kind of fault does what its name says, to every request if its share is 1.
func TestFaultsDoWhatTheySay(t *testing.T) {
	soon := sim.Range{Least: 20 * time.Second, Most: 30 * time.Second}
	for _, tc := range []struct {
		name     string // as counted
		profile  sim.Profile
		fails    string // the text of the error; empty if there is none
		at, late string // the value in the row when the write has returned, and a minute later; 5 was written
	}{
		{"", sim.Profile{}, "", "5", "5"},
		{"lost", sim.Profile{Lost: 1}, "connection reset", "0", "0"},
		{"lost, arrives late", sim.Profile{LostLate: 1, LateBy: soon}, "connection reset", "0", "5"},
		{"reply lost", sim.Profile{LostReply: 1}, "connection reset", "5", "5"},
		{"duplicated", sim.Profile{Duplicated: 1, LateBy: soon}, "", "5", "5"},
		{"slow", sim.Profile{Slow: 1, SlowBy: soon}, "deadline exceeded", "", "5"},
		{"throttled", sim.Profile{Throttled: 1}, "throttled", "0", "0"},
		{"500", sim.Profile{Internal: 1}, "InternalServerError", "0", "0"},
		{"500 after", sim.Profile{InternalAfter: 1}, "InternalServerError", "5", "5"},
		{"conflict", sim.Profile{Conflict: 1}, "TransactionConflict", "0", "0"},
		{"expired credentials", sim.Profile{Expired: 1}, "ExpiredToken", "0", "0"},
		{"skewed date", sim.Profile{SkewedDate: 1}, "", "5", "5"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := alone(t, tc.profile, func(ctx context.Context, w *sim.World, x *sim.Worker) {
				bounded, cancel := x.Within(ctx, 10*time.Second)
				defer cancel()
				err := x.Process.Table().Write(bounded, set(5))
				if tc.fails == "" {
					assert.NoError(t, err)
				} else {
					assert.ErrorContains(t, err, tc.fails)
				}
				if tc.at != "" {
					assert.Equal(t, tc.at, reads(ctx, t, w.Table(), true))
				}
				x.Sleep(time.Minute)
				assert.Equal(t, tc.late, reads(ctx, t, w.Table(), true))
			})
			if tc.name != "" {
				assert.Positive(t, r.Faults[tc.name])
				assert.Regexp(t, "(: |, )"+tc.name+"\n", r.History)
				assert.Len(t, r.Faults, 1, "%v", r.Faults)
			}
		})
	}
}

// A late duplicate of a write undoes later writes.
func TestDuplicates_ArriveLate(t *testing.T) {
	alone(t, sim.Profile{Duplicated: 1, LateBy: sim.Range{Least: 20 * time.Second, Most: 30 * time.Second}}, func(ctx context.Context, w *sim.World, x *sim.Worker) {
		assert.NoError(t, x.Process.Table().Write(ctx, set(5)))
		assert.NoError(t, w.Table().Write(ctx, set(6)), "the test's own hand meets no faults")
		x.Sleep(15 * time.Second)
		assert.Equal(t, "6", reads(ctx, t, w.Table(), true))
		x.Sleep(20 * time.Second)
		assert.Equal(t, "5", reads(ctx, t, w.Table(), true))
	})
}

// Reads miss writes, unless they are consistent.
func TestStaleReads_MissWrites(t *testing.T) {
	r := alone(t, sim.Profile{Stale: 1}, func(ctx context.Context, w *sim.World, x *sim.Worker) {
		assert.NoError(t, w.Table().Write(ctx, set(5)))
		assert.Equal(t, "0", reads(ctx, t, x.Process.Table(), false))
		assert.Equal(t, "5", reads(ctx, t, x.Process.Table(), true))
		items, err := x.Process.Table().BatchGet(ctx, []keys.Key{row}, false)
		assert.NoError(t, err)
		assert.Nil(t, items[0])
	})
	assert.Equal(t, map[string]int{"stale": 2}, r.Faults)
	assert.Equal(t, 2, strings.Count(r.History, "stale"))
}

// Only faults that have really happened to a request are counted and named in the history, and not faults that
// another fault has prevented.
func TestFaults_AreCountedWhereTheyHappen(t *testing.T) {
	all := sim.Profile{LostReply: 1, Duplicated: 1, Throttled: 1, Internal: 1, InternalAfter: 1, Conflict: 1, Stale: 1, SkewedDate: 1, Expired: 1}
	lost, late, early := all, all, all
	lost.Lost, lost.LostLate = 1, 1
	late.LostLate, early.LostReply, early.Duplicated = 1, 0, 0
	for name, tc := range map[string]struct {
		profile sim.Profile
		want    map[string]int
	}{
		"lost":                   {lost, map[string]int{"lost": 1}},
		"lost, arrives late":     {late, map[string]int{"lost, arrives late": 1}},
		"throttled, reply lost":  {all, map[string]int{"throttled": 1, "reply lost": 1, "duplicated": 1}},
		"throttled":              {early, map[string]int{"throttled": 1, "skewed date": 1}},
		"in order":               {sim.Profile{Stale: 1}, map[string]int{}},
		"applied, date is wrong": {sim.Profile{InternalAfter: 1, SkewedDate: 1}, map[string]int{"500 after": 1, "skewed date": 1}},
	} {
		t.Run(name, func(t *testing.T) {
			tc.profile.LateBy = sim.Range{Least: time.Second, Most: time.Second}
			r := alone(t, tc.profile, func(ctx context.Context, _ *sim.World, x *sim.Worker) {
				_ = x.Process.Table().Write(table.WithoutRetry(ctx), set(5)) // may fail
				x.Sleep(time.Minute)
			})
			sent := r.Requests
			want := map[string]int{}
			for name, n := range tc.want {
				want[name] = n * sent
			}
			assert.Equal(t, want, r.Faults, "of %d requests", sent)
			for _, name := range []string{"throttled", "500 after", "conflict", "stale", "skewed date", "expired", "duplicated", "reply lost"} {
				assert.Len(t, regexp.MustCompile("(: |, )"+name+"(,|\n)").FindAllString(r.History, -1), want[name], name)
			}
		})
	}
}

// Transactions have a share of conflicts of their own, and some meet none.
func TestConflicts_MeetOnlySomeTransactions(t *testing.T) {
	other := keys.NewKey("OTHER", "OTHER")
	write := func(ctx context.Context, x *sim.Worker) {
		once := table.WithoutRetry(ctx)
		tbl := x.Process.Table()
		_ = tbl.Write(once, set(5)) // may fail
		_ = tbl.Write(once, set(5), table.Update(other, table.Attr("n").Set(1)))
	}
	r := alone(t, sim.Profile{Conflict: 1}, func(ctx context.Context, _ *sim.World, x *sim.Worker) { write(ctx, x) })
	assert.Equal(t, []int{1, 1, 2}, []int{r.Transactions, r.Conflicts, r.Faults["conflict"]})
	r = alone(t, sim.Profile{Conflict: 1, Throttled: 1}, func(ctx context.Context, _ *sim.World, x *sim.Worker) { write(ctx, x) })
	assert.Equal(t, []int{1, 0, 0}, []int{r.Transactions, r.Conflicts, r.Faults["conflict"]})
}

// While a storm lasts, it throttles nine of ten requests. Then it is over.
func TestStorm_ThrottlesUntilItIsOver(t *testing.T) {
	r := sim.Run(t, sim.Options{Profile: sim.Profile{
		Storms: 10 * time.Minute, StopFor: sim.Range{Least: time.Minute, Most: 2 * time.Minute},
	}, History: true}, func(w *sim.World) {
		w.Boot("client").Go("w", func(ctx context.Context, x *sim.Worker) {
			for range 3600 {
				_ = x.Process.Table().Write(ctx, set(5)) // may fail
				x.Sleep(time.Second)
			}
		})
		require.True(t, w.Wait(24*time.Hour))
	})
	var storm bool
	var storms, in, hit int
	for _, e := range r.Events {
		switch {
		case e.Kind == sim.Storm:
			storm = true
			storms++
		case e.Kind == sim.Abated:
			storm = false
		case e.Kind == sim.Traffic && !strings.Contains(e.Text, "sends"):
			throttled := strings.HasSuffix(e.Text, ", throttled")
			assert.False(t, throttled && !storm, "%v", e)
			if storm {
				in++
			}
			if throttled {
				hit++
			}
		}
	}
	assert.Positive(t, storms)
	assert.InDelta(t, .9, float64(hit)/float64(in), .05)
}

// A process that is cut off reaches nothing until it is connected again.
func TestCut_ReachesNothingUntilConnectedAgain(t *testing.T) {
	r := alone(t, sim.Profile{}, func(ctx context.Context, w *sim.World, x *sim.Worker) {
		x.Process.Cut(true)
		bounded, cancel := x.Within(ctx, 5*time.Second)
		defer cancel()
		assert.Error(t, x.Process.Table().Write(bounded, set(5)))
		assert.Equal(t, "0", reads(ctx, t, w.Table(), true))
		x.Process.Cut(false)
		assert.NoError(t, x.Process.Table().Write(ctx, set(6)))
		assert.Equal(t, "6", reads(ctx, t, w.Table(), true))
	})
	assert.Positive(t, r.Faults["cut off"])
}

// Requests of a process arrive while it is paused. It gets the answers when it continues.
func TestAnswers_WaitForThePaused(t *testing.T) {
	alone(t, sim.Profile{Latency: sim.Range{Least: time.Second, Most: time.Second}}, func(ctx context.Context, w *sim.World, x *sim.Worker) {
		p, begin := x.Process, time.Now()
		w.At(begin.Add(500*time.Millisecond), func() { p.Stop(false) })
		w.At(begin.Add(3*time.Second), func() { assert.Equal(t, "5", reads(ctx, t, w.Table(), true), "applied") })
		w.At(begin.Add(3500*time.Millisecond), p.Resume)
		assert.NoError(t, p.Table().Write(ctx, set(5)))
		assert.InDelta(t, 3.5, time.Since(begin).Seconds(), .01)
	})
}

// A supervised process that crashes has a successor within seconds. Its requests still arrive. It gets no answer.
func TestCrash_HasASuccessorAndGetsNoAnswer(t *testing.T) {
	sim.Run(t, sim.Options{Profile: sim.Profile{Latency: sim.Range{Least: time.Second, Most: time.Second}}}, func(w *sim.World) {
		var lives int
		begin := time.Now()
		w.Supervise("client", func(p *sim.Process) {
			lives++
			first := lives == 1
			p.Go("w", func(ctx context.Context, x *sim.Worker) {
				if !first {
					assert.Equal(t, "5", reads(ctx, t, x.Process.Table(), true))
					assert.Less(t, time.Since(begin), 10*time.Second)
					return
				}
				w.At(begin.Add(500*time.Millisecond), p.Crash)
				err := p.Table().Write(ctx, set(5))
				assert.Error(t, ctx.Err(), "it goes on after the end of the world alone: %v", err)
			})
		})
		time.Sleep(10 * time.Second)
		require.True(t, w.Wait(time.Hour))
		assert.Equal(t, 2, lives)
	})
}

// After Calm there are no faults.
func TestCalm_EndsTheFaults(t *testing.T) {
	alone(t, sim.Profile{Lost: 1, Pauses: time.Second}, func(ctx context.Context, w *sim.World, x *sim.Worker) {
		w.Calm()
		assert.NoError(t, x.Process.Table().Write(ctx, set(5)))
	})
}
