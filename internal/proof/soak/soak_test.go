package soak

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/engines"
)

func TestMain(m *testing.M) {
	if os.Getenv(WorkerEnv) != "" {
		os.Exit(Work(os.Stdin, os.Stdout, os.Stderr))
	}
	if endpoint := os.Getenv(supervisorEnv); endpoint != "" {
		os.Exit(supervise(endpoint))
	}
	os.Exit(engines.Main(m))
}

// supervisorEnv makes this binary a supervisor on the engine that it names.
const supervisorEnv = "MORTISE_TEST_SOAK_SUPERVISOR"

// supervise prints again and again how many processes have been stopped, and does not end by itself.
func supervise(endpoint string) int {
	_, err := Run(context.Background(), Config{
		Endpoint: endpoint, Duration: time.Hour, Workers: 4, Calm: 500 * time.Millisecond, Period: 20 * time.Millisecond,
		Progress: func(r *Report) { fmt.Println(r.Troubles[paused].N) },
	})
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// runUntil ends a run when it has reached its purpose, however slow the machine is.
func runUntil(ctx context.Context, config Config, enough func(*Report) bool) (*Report, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	config.Duration, config.Period = 10*time.Minute, 100*time.Millisecond // after which the test shows what was missing
	config.Progress = func(r *Report) {
		if enough(r) {
			cancel()
		}
	}
	return Run(ctx, config)
}

// busy reports whether everything has happened once: each trouble, and an operation of each workload.
func busy(r *Report) bool {
	for _, w := range r.Workloads {
		if w.Acknowledged == 0 {
			return false
		}
	}
	for _, c := range r.Troubles[:restarted] {
		if c.N == 0 {
			return false
		}
	}
	return r.Total().Acknowledged >= 50 && r.Injected() >= 30
}

// Guarded writes survive what is done to processes and their network, and unguarded writes do not.
func TestSoak_LosesNoGuardedWrites(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		engines.Only(t, engines.DynamoDBLocal, "processes of their own on an engine of its own are what this is about")
		if testing.Short() {
			t.Skip("takes three quarters of a minute, most of which is waiting: make race runs it")
		}
		config := Config{Endpoint: *e.Client().Options().BaseEndpoint, Seed: 6, Workers: 3, Calm: time.Second}
		var guarded, control *Report
		var errGuarded, errControl error
		var both sync.WaitGroup
		both.Go(func() { guarded, errGuarded = runUntil(t.Context(), config, busy) })
		both.Go(func() {
			config := config
			config.Unguarded, config.untilOvertaken, config.spared = true, true, 2
			control, errControl = runUntil(t.Context(), config, func(r *Report) bool { return r.Workloads[0].Twice > 0 })
		})
		both.Wait()
		require.NoError(t, errGuarded)
		require.NoError(t, errControl)
		for _, r := range []*Report{guarded, control} {
			var text strings.Builder
			_, err := r.WriteTo(&text)
			require.NoError(t, err)
			t.Log(text.String())
		}
		assert.Empty(t, guarded.Violations)
		for _, w := range guarded.Workloads {
			assert.Positive(t, w.Acknowledged, w.Workload)
		}
		assert.Positive(t, guarded.Injected())
		for _, c := range guarded.Troubles[:restarted] {
			assert.Positive(t, c.N, c.What)
		}
		assert.Positive(t, control.Lost, "the control must fail, or this tests nothing")
		assert.NotEmpty(t, control.Violations)
		t.Logf("guarded: %d of %d acknowledged updates of sets lost (goal 0); control: %d of %d (goal: some)",
			guarded.Lost, guarded.Workloads[0].Acknowledged, control.Lost, control.Workloads[0].Acknowledged)
	})
}

func TestConfig_IsChecked(t *testing.T) {
	for field, c := range map[string]Config{
		"Endpoint": {Duration: time.Second},
		"Duration": {Endpoint: "x"},
		"Workers":  {Endpoint: "x", Duration: time.Second, Workers: 1},
		"Faults":   {Endpoint: "x", Duration: time.Second, Faults: 0.6},
		"Calm":     {Endpoint: "x", Duration: time.Second, Calm: time.Millisecond},
		"Period":   {Endpoint: "x", Duration: time.Second, Period: -1},
	} {
		_, err := Run(t.Context(), c)
		require.ErrorIs(t, err, ErrInvalid, field)
		assert.ErrorContains(t, err, field+": want")
	}
}
