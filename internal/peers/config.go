package peers

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Scenes returns the names of the measurements, in their order.
func Scenes() []string { return []string{"pairs", "herd", "contention", "lost", "held"} }

// Config is what to measure, and how much.
type Config struct {
	Endpoint string   // URL of a running DynamoDB Local; if empty, one is started
	Scenes   []string // names out of Scenes()

	Rounds int // of the uncontended pairs
	Pairs  int // timed pairs, per round and candidate
	Blocks int // pairs whose allocations are counted, per round and candidate
	Warm   int // pairs before all rounds, per candidate

	Clients    int           // processes of the crowd
	Goroutines int           // in each process of the crowd
	Hold       time.Duration // how long the crowd holds a lock
	Limit      time.Duration // time after which a herd that has not finished is given up
	Window     time.Duration // duration of the contention
	Refresh    time.Duration // refresh period in the second setting of cirello's client

	Trials int // trials with a lost answer, for each call

	Locks   int           // held at the same time by one client
	Leases  float64       // time for which they are held, in leases
	Lease   time.Duration // in all scenes except for lost renewals
	Renewed time.Duration // the lease for lost renewals
	Latency time.Duration // added to each request while many locks are held
}

// Defaults returns the configuration of `make peers`.
func Defaults() Config {
	return Config{
		Scenes: Scenes(),
		Rounds: 5, Pairs: 1000, Blocks: 100,
		Warm: 1500, // with fewer, DynamoDB Local's JIT compiler is still at work during the rounds

		Clients: 10, Goroutines: 20, Hold: 10 * time.Millisecond, Limit: 30 * time.Second,
		Window: 6 * time.Second, Refresh: 250 * time.Millisecond,
		Trials: 3,
		Locks:  4000, Leases: 2, Lease: 20 * time.Second, Renewed: 4 * time.Second, Latency: 5 * time.Millisecond,
	}
}

// Check returns an error for the first setting that is out of its range.
func (c Config) Check() error {
	for _, scene := range c.Scenes {
		if !slices.Contains(Scenes(), scene) {
			return fmt.Errorf("-only: %q is none of %s", scene, strings.Join(Scenes(), ", "))
		}
	}
	if len(c.Scenes) == 0 {
		return fmt.Errorf("-only: none of %s", strings.Join(Scenes(), ", "))
	}
	for _, n := range []struct {
		flag  string
		value int
	}{
		{"-rounds", c.Rounds},
		{"-pairs", c.Pairs},
		{"-blocks", c.Blocks},
		{"-warm", c.Warm},
		{"-clients", c.Clients},
		{"-goroutines", c.Goroutines},
		{"-trials", c.Trials},
		{"-locks", c.Locks},
	} {
		if n.value < 1 || n.value > 1_000_000 {
			return fmt.Errorf("%s: %d is not 1 to 1,000,000", n.flag, n.value)
		}
	}
	for _, d := range []struct {
		flag     string
		value    time.Duration
		min, max time.Duration
	}{
		{"-hold", c.Hold, 0, time.Minute},
		{"-limit", c.Limit, time.Second, time.Hour},
		{"-window", c.Window, time.Second, time.Hour},
		{"-refresh", c.Refresh, time.Millisecond, time.Minute},
		{"-lease", c.Lease, time.Second, time.Hour},
		{"-renewed-lease", c.Renewed, time.Second, time.Hour},
		{"-latency", c.Latency, 0, time.Second},
	} {
		if d.value < d.min || d.value > d.max {
			return fmt.Errorf("%s: %v is not %v to %v", d.flag, d.value, d.min, d.max)
		}
	}
	if !(c.Leases >= 0.5 && c.Leases <= 1000) { // also if it is NaN
		return fmt.Errorf("-leases: %g is not 0.5 to 1,000", c.Leases)
	}
	return nil
}
