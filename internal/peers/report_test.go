package peers

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// measured is a result in which Mortise takes 1.2 times the minimal lock and cirello's 1.5 times.
func measured() *PairResult {
	names := []string{minimalName, cirelloName, mortiseName}
	r := &PairResult{
		Names: names, P50: []time.Duration{1000, 1500, 1200}, P95: []time.Duration{2000, 3000, 2400},
		Acquire: []Counts{{Largest: 300}, {Largest: 400}, {Largest: 900}},
		Release: []Counts{{Largest: 200}, {Largest: 400}, {Largest: 1000}},
	}
	for range 5 {
		r.Rounds = append(r.Rounds, PairRound{
			P50: []time.Duration{1000, 1500, 1200}, P95: []time.Duration{2000, 3000, 2400},
			Allocations: []float64{700, 1200, 800}, Requests: []float64{2, 3, 2.01},
		})
	}
	return r
}

func TestVerdicts_TellWhichGoalsWereMissed(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*PairResult)
		missed []int // indices of goals
	}{
		{"all are met", func(*PairResult) {}, nil},
		{"one round above the minimal lock's", func(r *PairResult) { r.Rounds[3].P50[2] = 1251 }, []int{0}},
		{"one round at the limit", func(r *PairResult) { r.Rounds[3].P50[2] = 1250 }, nil},
		{"one round as slow as cirello's", func(r *PairResult) { r.Rounds[0].P50[1] = 1200 }, []int{1}},
		{"allocations of most rounds", func(r *PairResult) {
			for n := range 3 {
				r.Rounds[n].Allocations[2] = 806
			}
		}, []int{2}},
		{"allocations of one round", func(r *PairResult) { r.Rounds[1].Allocations[2] = 806 }, nil},
		{"requests", func(r *PairResult) { r.Rounds[1].Requests[2] = 3 }, []int{3}},
		{"body of an acquisition", func(r *PairResult) { r.Acquire[2].Largest = 1001 }, []int{4}},
		{"body of a release", func(r *PairResult) { r.Release[2].Largest = 1001 }, []int{4}},
		{"nothing was measured", func(r *PairResult) { r.Rounds = nil }, []int{0, 1, 2, 3}},
	} {
		r := measured()
		tc.change(r)
		var missed []int
		for i, v := range r.Verdicts() {
			if !v.Met {
				missed = append(missed, i)
			}
		}
		assert.Equal(t, tc.missed, missed, tc.name)
	}
}

func TestReport_IsMarkdown(t *testing.T) {
	report := &Report{
		Config: Defaults(), Engine: "DynamoDB Local 3.3.0", Took: 5 * time.Minute,
		Begun:   time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC),
		Machine: Machine{Platform: "linux/amd64", Cores: 2, Go: "go1.26.8", Modules: map[string]string{"cirello.io/dynamolock/v2": "v2.1.0"}},
		Pairs:   measured(),
		Herds:   []CrowdResult{{Name: minimalName, Wanted: 200, Took: time.Second}, {Name: mortiseName, Wanted: 200, Grants: 200, Requests: 500, Took: time.Second, Held: time.Second / 2}},
		Contentions: []Contention{{Clients: 4, Goroutines: 1, Results: []CrowdResult{
			{Name: mortiseName, Grants: 8, Requests: 20, Took: time.Second, ByProcess: []int{2, 2, 2, 2}, ByGoroutine: []int{2, 2, 2, 2}},
		}}},
		Lost: []LostResult{
			{Name: minimalName, Acquire: []Trial{{Fate: Stuck, Took: 30 * time.Second}}, Try: []Trial{{Fate: LeftHeld}}, Release: []Trial{{}, {Fate: FailedFree}}},
			{Name: mortiseName, Leases: true, Acquire: []Trial{{Took: time.Second, Requests: 2}}, Try: []Trial{{Fate: SelfWait}}, Release: []Trial{{Took: 1}}, Renewal: []Trial{{Fate: Lost}, {}}},
		},
		Held: []HeldResult{{Name: mortiseName, Renewals: 1}},
	}
	var text strings.Builder
	n, err := report.WriteTo(&text)
	require.NoError(t, err)
	assert.Equal(t, int64(text.Len()), n)

	for _, want := range []string{
		"2026-11-23 12:00 UTC, 2 cores (linux/amd64), go1.26.8, DynamoDB Local 3.3.0.",
		"| Mortise | 0.00 ms | 0.00 ms | 1.20 × | 2.01 | 800 | 1.14 × | 900 B | 1,000 B |",
		"| minimal lock | 0 of 200 | 1.00 s | 0 % | – | 0.00 s | 0 | 0 |",
		"| Mortise | 200 of 200 | 1.00 s | 50 % | 2.5 | 0.00 s | 0 | 0 |",
		"### 4 processes that ask again at once, from 1 goroutine each",
		"| Mortise | 8 | 0 % | 2.5 | 1.000 | 1.000 | 2, 2 | 0.00 s | 0 | 0 |",
		"**waits for itself**: given up after 30.00 s",
		"reports a failure after 0.00 s; the lock is free | has no renewals |",
		"resolved in 1.00 s, 2 requests",
		"**lock lost** after 0.00 s |",
		"### 4,000 held locks",
		"- p50 at most 1.25 × the minimal lock, in each round: met. Measured: 1.20, 1.20, 1.20, 1.20, 1.20 ×.",
		"The run took 5m0s.",
	} {
		assert.Contains(t, text.String(), want)
	}

	cells := 0 // of the table that a row is in
	for line := range strings.Lines(text.String()) {
		row := strings.Count(line, "|")
		switch {
		case row == 0:
			cells = 0
		case cells == 0:
			cells = row
		default:
			assert.Equal(t, cells, row, line)
		}
	}
}

func TestReport_OfNothingHasNoSections(t *testing.T) {
	var text strings.Builder
	_, err := (&Report{}).WriteTo(&text)
	require.NoError(t, err)
	assert.NotContains(t, text.String(), "###")
	assert.NotContains(t, text.String(), "The run took", "it did not get to its end")
}

func TestThousands_HaveCommas(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567"} {
		assert.Equal(t, want, thousands(n))
	}
}

func TestEngineName_HasTheVersion(t *testing.T) {
	assert.Equal(t, "DynamoDB Local 3.3.0", engineName("Initializing DynamoDB Local with the following configuration:\nPort:\t8000\nVersion:\t3.3.0\n"))
	assert.Equal(t, "DynamoDB Local", engineName("something else"))
}
