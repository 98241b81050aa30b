package soak

import (
	"math/rand/v2"
	"sync"
	"time"
)

// fault is what happens to a request.
type fault int

const (
	pass fault = iota
	dropRequest
	dropAnswer
	cutBefore
	cutAfter
	lateRequest
	lateAnswer
	duplicate
	errorBefore
	errorAfter
	throttle
	conflict
	skew
	partition
	faults // the number of faults
)

// String returns the name of the fault in reports.
func (f fault) String() string {
	return [faults]string{
		"passed", "request dropped", "answer dropped after applying", "connection cut before", "connection cut after applying",
		"request late, beyond timeouts", "answer late, beyond timeouts", "duplicate delivered late", "5xx", "5xx after applying",
		"throttled", "transaction conflict", "skewed Date", "during a partition",
	}[f]
}

// weight is how often a plan draws the fault, relative to others. Partitions are made by the supervisor, and skew
// lasts for a stretch of requests.
func (f fault) weight() int {
	switch f {
	case dropAnswer, lateRequest, duplicate:
		return 3 // the most difficult ones
	case pass, skew, partition:
		return 0
	}
	return 2
}

// Limits of what a plan draws.
const (
	minDuplicate = 50 * time.Millisecond
	maxLate      = 3 * time.Second // longer than any timeout and two leases
	minLate      = requestTimeout + 200*time.Millisecond

	maxSkew        = 4 // in seconds; more than lock.Config.Skew
	skewStretch    = 60
	skewOneStretch = 4 // one stretch in so many has skew
)

// decision is what a plan decides for one request.
type decision struct {
	fault fault
	after time.Duration // for late requests, late answers and duplicates
	pick  float64       // for any other choice, from 0 to 1
	skew  time.Duration // of the answer's date
}

// plan draws what happens to requests, in their order. It is safe for concurrent use.
type plan struct {
	rate float64 // share of requests with a fault

	mu      sync.Mutex
	rand    *rand.Rand
	stretch int // requests until the skew is drawn again
	skew    time.Duration
}

func newPlan(seed uint64, process int, rate float64) *plan {
	return &plan{rate: rate, rand: rand.New(rand.NewPCG(seed, uint64(process)))}
}

// next returns the decision for the next request. It always draws the same number of random values.
func (p *plan) next() decision {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stretch == 0 {
		p.stretch, p.skew = 1+p.rand.IntN(2*skewStretch), 0
		seconds := p.rand.IntN(2*maxSkew+1) - maxSkew
		if p.rand.IntN(skewOneStretch) == 0 && p.rate > 0 {
			p.skew = time.Duration(seconds) * time.Second
		}
	}
	p.stretch--
	d := decision{skew: p.skew}
	chosen, at := p.rand.Float64(), p.rand.Float64()
	d.pick = p.rand.Float64()
	if chosen < p.rate {
		d.fault = weighted(at)
	}
	low := minLate
	if d.fault == duplicate {
		low = minDuplicate
	}
	d.after = low + time.Duration(d.pick*float64(maxLate-low))
	return d
}

// weighted picks a fault by its weight, for at from 0 to 1.
func weighted(at float64) fault {
	sum := 0
	for f := range faults {
		sum += f.weight()
	}
	left := int(at * float64(sum))
	for f := range faults {
		if left < f.weight() {
			return f
		}
		left -= f.weight()
	}
	return pass
}
