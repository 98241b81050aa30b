package peers

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"time"
)

// lockNames is how many locks the pairs use in turn.
const lockNames = 16

// sizedPairs is how many pairs are used to measure the size of requests.
const sizedPairs = 2 * lockNames

// PairRound is one round of acquire and release without contention. Slices are in the order of the candidates.
type PairRound struct {
	P50, P95    []time.Duration
	Allocations []float64 // per pair
	Requests    []float64 // per pair
}

// PairResult is the result of all rounds.
type PairResult struct {
	Names    []string
	Rounds   []PairRound
	P50, P95 []time.Duration // over the pairs of all rounds

	Acquire, Release []Counts // of sizedPairs pairs
}

// pairs measures acquire and release without contention. The candidates' pairs alternate, in random order, so that
// other work of the machine affects all of them.
func (b *bench) pairs(ctx context.Context, report *Report) (failed error) {
	result := &PairResult{}
	var list []*process
	for _, c := range []Candidate{Minimal(), MinimalAgain(), Guregu(), Cirello(), Mortise()} {
		crew, err := b.start(ctx, c, 1, b.config.Lease)
		if err != nil {
			return err
		}
		defer func() { failed = errors.Join(failed, crew.end(ctx)) }()
		result.Names, list = append(result.Names, c.Name), append(list, crew.list...)
	}
	b.say("acquire and release, uncontended: warming up")
	if _, err := alternate(ctx, list, b.config.Warm); err != nil {
		return err
	}
	for _, p := range list {
		acquire, release, err := sized(ctx, p)
		if err != nil {
			return err
		}
		result.Acquire, result.Release = append(result.Acquire, acquire), append(result.Release, release)
	}
	all := make([][]time.Duration, len(list))
	for n := range b.config.Rounds {
		b.say("acquire and release, uncontended: round %d of %d", n+1, b.config.Rounds)
		runtime.GC()
		times, err := alternate(ctx, list, b.config.Pairs)
		if err != nil {
			return err
		}
		var round PairRound
		for i := range list {
			all[i] = append(all[i], times[i]...)
			round.P50 = append(round.P50, median(times[i]))
			round.P95 = append(round.P95, quantile(times[i], 0.95))
		}
		round.Allocations, round.Requests = make([]float64, len(list)), make([]float64, len(list))
		for _, i := range rand.Perm(len(list)) {
			if round.Allocations[i], round.Requests[i], err = block(ctx, list[i], b.config.Blocks); err != nil {
				return err
			}
		}
		result.Rounds = append(result.Rounds, round)
	}
	for i := range list {
		result.P50 = append(result.P50, median(all[i]))
		result.P95 = append(result.P95, quantile(all[i], 0.95))
	}
	report.Pairs = result
	return nil
}

func lockName(i int) string { return fmt.Sprintf("lock-%02d", i%lockNames) }

// alternate runs n pairs of each process, and returns how long each pair took.
func alternate(ctx context.Context, list []*process, n int) ([][]time.Duration, error) {
	times := make([][]time.Duration, len(list))
	for i := range times {
		times[i] = make([]time.Duration, 0, n)
	}
	for k := range n {
		name := lockName(k)
		for _, i := range rand.Perm(len(list)) {
			begun := time.Now()
			if err := list[i].pair(ctx, name); err != nil {
				return nil, err
			}
			times[i] = append(times[i], time.Since(begun))
		}
	}
	return times, nil
}

// block runs n pairs of one process, and returns its allocations and requests per pair.
func block(ctx context.Context, p *process, n int) (allocations, requests float64, err error) {
	names := make([]string, lockNames)
	for i := range names {
		names[i] = lockName(i)
	}
	p.meter.Take()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for k := range n {
		if err := p.pair(ctx, names[k%lockNames]); err != nil {
			return 0, 0, err
		}
	}
	runtime.ReadMemStats(&after)
	return ratio(float64(after.Mallocs-before.Mallocs), float64(n)), ratio(p.meter.Take().Requests, n), nil
}

// sized runs sizedPairs pairs. It counts the requests of acquisitions and releases separately.
func sized(ctx context.Context, p *process) (acquire, release Counts, err error) {
	p.meter.Take()
	held := make([]Held, lockNames)
	for range sizedPairs / lockNames {
		for i := range held {
			if held[i], err = p.Acquire(ctx, lockName(i)); err != nil {
				return acquire, release, err
			}
		}
		acquire = acquire.plus(p.meter.Take())
		for i := range held {
			if err = p.Release(ctx, held[i]); err != nil {
				return acquire, release, err
			}
		}
		release = release.plus(p.meter.Take())
	}
	return acquire, release, nil
}
