package peers

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/table/tabletest"
)

// virtual runs a scene on the in-process engine in virtual time.
func virtual(t *testing.T, change func(*Config), scene func(t *testing.T, b *bench, r *Report)) {
	synctest.Test(t, func(t *testing.T) {
		engine := tabletest.New(t)
		next := roundTrip(func(req *http.Request) (*http.Response, error) { return engine.HTTPClient().Do(req) })
		config := Defaults()
		if change != nil {
			change(&config)
		}
		require.NoError(t, config.Check())
		scene(t, &bench{config: config, progress: io.Discard, id: "test", connect: func() (*dynamodb.Client, *Meter) {
			return newClient(engine.Config(), next)
		}}, &Report{Config: config})
	})
}

func TestPairs_CountRequests(t *testing.T) {
	virtual(t, func(c *Config) { c.Rounds, c.Pairs, c.Blocks, c.Warm = 2, 8, 8, 2 }, func(t *testing.T, b *bench, r *Report) {
		require.NoError(t, b.pairs(t.Context(), r))
		p := r.Pairs
		require.Len(t, p.Rounds, 2)
		for i, name := range p.Names {
			want := map[string]float64{cirelloName: 3}[name]
			if want == 0 {
				want = 2
			}
			for _, round := range p.Rounds {
				assert.InDelta(t, want, round.Requests[i], 0.01, name)
				assert.Greater(t, round.Allocations[i], 100.0, name)
			}
			assert.Equal(t, int(want-1)*sizedPairs, p.Acquire[i].Requests, name)
			assert.Equal(t, sizedPairs, p.Release[i].Requests, name)
			assert.Greater(t, p.Acquire[i].Largest, p.Release[i].Largest/2, name)
		}
		assert.Equal(t, p.Acquire[0], p.Acquire[1], "the baseline and its double")
	})
}

func TestHerd_ServesEverybody(t *testing.T) {
	virtual(t, func(c *Config) { c.Clients, c.Goroutines, c.Limit = 3, 4, 10*time.Minute }, func(t *testing.T, b *bench, r *Report) {
		require.NoError(t, b.herds(t.Context(), r))
		require.Len(t, r.Herds, 4)
		for _, h := range r.Herds {
			assert.Equal(t, 12, h.Wanted, h.Name)
			assert.Equal(t, 12, h.Grants, h.Name)
			assert.Equal(t, []int{4, 4, 4}, h.ByProcess, h.Name)
			assert.Zero(t, h.Overlaps+h.Errors, h.Name)
			assert.Equal(t, 12*b.config.Hold, h.Held, h.Name)
			assert.GreaterOrEqual(t, h.Took, h.Held, h.Name)
			assert.Positive(t, h.Requests, h.Name)
		}
	})
}

func TestHerd_IsGivenUp(t *testing.T) {
	virtual(t, func(c *Config) {
		c.Clients, c.Goroutines, c.Hold, c.Limit = 2, 2, 20*time.Second, 30*time.Second
	}, func(t *testing.T, b *bench, r *Report) {
		require.NoError(t, b.herds(t.Context(), r))
		for _, h := range r.Herds {
			assert.Less(t, h.Grants, h.Wanted, h.Name)
			assert.Equal(t, b.config.Limit, h.Took, h.Name)
			assert.Equal(t, b.config.Limit, h.Longest, "%s: the waits of those that were not served count", h.Name)
		}
	})
}

func TestContention_CountsWithinItsWindow(t *testing.T) {
	virtual(t, func(c *Config) { c.Clients, c.Goroutines, c.Window = 2, 3, time.Second }, func(t *testing.T, b *bench, r *Report) {
		require.NoError(t, b.contentions(t.Context(), r))
		require.Len(t, r.Contentions, 2)
		for _, c := range r.Contentions {
			for _, got := range c.Results {
				assert.Equal(t, b.config.Window, got.Took, got.Name)
				assert.Positive(t, got.Grants, got.Name)
				assert.LessOrEqual(t, got.Grants, int(b.config.Window/b.config.Hold), got.Name)
				assert.Len(t, got.ByProcess, c.Clients, got.Name)
				assert.Zero(t, got.Overlaps+got.Errors, got.Name)
			}
		}
	})
}

// broken grants every lock to every caller.
type broken struct{ Locker }

func (broken) Acquire(context.Context, string) (Held, error) { return 0, nil }
func (broken) Release(context.Context, Held) error           { return nil }

// failing acquires a lock and does not release it.
type failing struct{ broken }

func (failing) Release(context.Context, Held) error { return errors.New("out of order") }

func TestCrowd_CountsErrors(t *testing.T) {
	virtual(t, nil, func(t *testing.T, b *bench, _ *Report) {
		got, err := b.herd(t.Context(), []*process{{Locker: failing{}, meter: &Meter{}}})
		require.NoError(t, err)
		assert.Equal(t, b.config.Goroutines, got.Errors)
		assert.Zero(t, got.Grants)
	})
}

func TestCrowd_SeesALockThatIsNone(t *testing.T) {
	virtual(t, nil, func(t *testing.T, b *bench, _ *Report) {
		got, err := b.herd(t.Context(), []*process{{Locker: broken{}, meter: &Meter{}}, {Locker: broken{}, meter: &Meter{}}})
		require.NoError(t, err)
		assert.Equal(t, 2*b.config.Goroutines, got.Grants)
		assert.Equal(t, got.Grants-1, got.Overlaps)
	})
}

// The results of these versions of the peers do not change.
func TestLosses_AreThoseOfTheseVersions(t *testing.T) {
	virtual(t, nil, func(t *testing.T, b *bench, r *Report) {
		// Its renewals wait for the network while they hold a mutex, which stops virtual time.
		cirello := Cirello()
		cirello.Leases = false
		require.NoError(t, b.lossesOf(t.Context(), r, []Candidate{Minimal(), cirello, Mortise()}))

		fates := map[string][]Fate{}
		for _, l := range r.Lost {
			for _, trials := range [][]Trial{l.Acquire, l.Try, l.Release, l.Renewal} {
				for i, trial := range trials {
					assert.Equal(t, trials[0].Fate, trial.Fate, "%s, trial %d", l.Name, i)
				}
				if len(trials) > 0 {
					fates[l.Name] = append(fates[l.Name], trials[0].Fate)
				}
			}
		}
		assert.Equal(t, map[string][]Fate{
			minimalName: {Stuck, LeftHeld, FailedFree},
			cirelloName: {SelfWait, LeftHeld, Resolved},
			mortiseName: {Resolved, Resolved, Resolved, Resolved},
		}, fates)
		assert.Equal(t, b.config.Lease+patience, r.Lost[0].Acquire[0].Took)
		assert.Greater(t, r.Lost[1].Acquire[0].Took, b.config.Lease)
	})
}

// renewing acquires locks that are lost after a time, and writes something in between.
type renewing struct {
	Locker
	after time.Duration
	begun time.Time
}

func (r *renewing) Acquire(ctx context.Context, name string) (Held, error) {
	r.begun = time.Now()
	time.AfterFunc(r.after/2, func() { _, _ = r.Try(ctx, "renewal") }) // its answer is the one to be lost
	return r.Locker.Acquire(ctx, name)
}

func (r *renewing) Lost(Held) bool { return time.Since(r.begun) > r.after }

func TestLosses_WatchALostRenewal(t *testing.T) {
	virtual(t, nil, func(t *testing.T, b *bench, _ *Report) {
		crew, err := b.start(t.Context(), Minimal(), 1, b.config.Renewed)
		require.NoError(t, err)
		defer func() { require.NoError(t, crew.end(t.Context())) }()
		p := crew.list[0]
		p.Locker = &renewing{Locker: p.Locker, after: 6 * time.Second}
		trial, err := b.loseRenewal(t.Context(), p, nil, "a")
		require.NoError(t, err)
		assert.Equal(t, Lost, trial.Fate)
		assert.InDelta(t, 3, trial.Took.Seconds(), 0.1, "since the answer was lost")
	})
}

// leaving reports releases of locks that it does not release.
type leaving struct {
	Locker
	write bool // before that, a row whose name contains the lock's
}

func (l leaving) Release(ctx context.Context, _ Held) error {
	if !l.write {
		return nil
	}
	_, err := l.Try(ctx, "lock-and-more")
	if errors.Is(err, errHeld) { // its own first attempt holds it
		return nil
	}
	return err
}

func TestLosses_LookAtTheLockAfterALostRelease(t *testing.T) {
	virtual(t, nil, func(t *testing.T, b *bench, _ *Report) {
		crew, err := b.start(t.Context(), Minimal(), 2, b.config.Lease)
		require.NoError(t, err)
		defer func() { require.NoError(t, crew.end(t.Context())) }()
		p, other := crew.list[0], crew.list[1]

		locker := p.Locker
		p.Locker = leaving{Locker: locker}
		_, err = b.loseRelease(t.Context(), p, other, "unsent")
		require.ErrorContains(t, err, "no request was sent", "without a lost answer it is no trial")

		p.Locker = leaving{Locker: locker, write: true}
		trial, err := b.loseRelease(t.Context(), p, other, "lock")
		require.NoError(t, err)
		assert.Equal(t, LeftHeld, trial.Fate)
	})
}

func TestHolds_CountHeldLocks(t *testing.T) {
	virtual(t, func(c *Config) { c.Locks, c.Leases, c.Latency = 100, 4, 0 }, func(t *testing.T, b *bench, r *Report) {
		require.NoError(t, b.holds(t.Context(), r))
		require.Len(t, r.Held, 2)
		for _, h := range r.Held {
			assert.Zero(t, h.LostEarly+h.LostLate, h.Name)
		}
		assert.Equal(t, cirelloName, r.Held[0].Name)
		assert.InDelta(t, 100, r.Held[0].Renewals, 10, "one for each lock")
		assert.InDelta(t, 1, r.Held[1].Renewals, 0.5, "one for all")
	})
}

// losing loses every second lock.
type losing struct{ Locker }

func (losing) Lost(held Held) bool { return held.(int)%2 == 0 }

func TestLostOf_CountsLostLocks(t *testing.T) {
	assert.Equal(t, 2, lostOf(&process{Locker: losing{}}, []Held{1, 2, 3, 4, 5}))
}
