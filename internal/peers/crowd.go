package peers

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// CrowdResult is what happened when many processes wanted one lock.
type CrowdResult struct {
	Name     string
	Wanted   int // grants that a herd needs; 0 in a contention, whose processes ask again and again
	Grants   int
	Overlaps int // grants while the lock was held: must be 0
	Errors   int // calls that failed before the end
	Requests int
	Took     time.Duration
	Held     time.Duration // how much of that time the lock was held

	Longest     time.Duration // longest wait, including waits that ended without a grant
	ByProcess   []int         // grants of each process
	ByGoroutine []int         // grants of each goroutine
}

// crowd counts what happens on one lock.
type crowd struct {
	hold time.Duration

	inside         atomic.Int32
	overlaps, held atomic.Int64
	errors         atomic.Int64
	first          sync.Once // prints the first error
}

// grant acquires a lock, holds it for a while and releases it.
func (c *crowd) grant(ctx context.Context, p *process, name string) (waited time.Duration, err error) {
	begun := time.Now()
	held, err := p.Acquire(ctx, name)
	waited = time.Since(begun)
	if err != nil {
		return waited, err
	}
	if c.inside.Add(1) != 1 {
		c.overlaps.Add(1)
	}
	granted := time.Now()
	time.Sleep(c.hold)
	c.held.Add(int64(time.Since(granted)))
	c.inside.Add(-1)
	// The lock is released even if the measurement has ended.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	return waited, p.Release(ctx, held)
}

// crowded returns the candidates of the crowds.
func (b *bench) crowded() []Candidate {
	return []Candidate{Minimal(), Cirello(), CirelloRefreshing(b.config.Refresh), Mortise()}
}

// herds measures a lock that every goroutine wants once, at the same time.
func (b *bench) herds(ctx context.Context, report *Report) error {
	for _, c := range b.crowded() {
		b.say("%d waiters: %s", b.config.Clients*b.config.Goroutines, c.Name)
		crew, err := b.start(ctx, c, b.config.Clients, b.config.Lease)
		if err != nil {
			return err
		}
		result, err := b.herd(ctx, crew.list)
		if err := errors.Join(err, crew.end(ctx)); err != nil {
			return fmt.Errorf("%s: %w", c.Name, err)
		}
		result.Name = c.Name
		report.Herds = append(report.Herds, result)
	}
	return nil
}

func (b *bench) herd(ctx context.Context, list []*process) (CrowdResult, error) {
	limit, cancel := context.WithTimeout(ctx, b.config.Limit)
	defer cancel()
	return b.crowd(ctx, limit, list, b.config.Goroutines, 1)
}

// Contention is the result for processes that ask again and again.
type Contention struct {
	Clients, Goroutines int
	Results             []CrowdResult
}

// contentions measures a lock that every goroutine asks for again as soon as it has released it.
func (b *bench) contentions(ctx context.Context, report *Report) error {
	for _, crowd := range []Contention{
		{Clients: 4, Goroutines: 1},
		{Clients: b.config.Clients, Goroutines: b.config.Goroutines},
	} {
		for _, c := range b.crowded() {
			b.say("%d × %d that ask again and again: %s", crowd.Clients, crowd.Goroutines, c.Name)
			crew, err := b.start(ctx, c, crowd.Clients, b.config.Lease)
			if err != nil {
				return err
			}
			result, err := b.contention(ctx, crew.list, crowd.Goroutines)
			if err := errors.Join(err, crew.end(ctx)); err != nil {
				return fmt.Errorf("%s: %w", c.Name, err)
			}
			result.Name = c.Name
			crowd.Results = append(crowd.Results, result)
		}
		report.Contentions = append(report.Contentions, crowd)
	}
	return nil
}

func (b *bench) contention(ctx context.Context, list []*process, goroutines int) (CrowdResult, error) {
	window, cancel := context.WithTimeout(ctx, b.config.Window)
	defer cancel()
	return b.crowd(ctx, window, list, goroutines, 0)
}

// crowd makes several goroutines of each process acquire one lock. Each does so the given number of times, or until window ends if times
// is 0. The measurement ends when all are done or when window ends.
func (b *bench) crowd(ctx, window context.Context, list []*process, goroutines, times int) (CrowdResult, error) {
	const name = "crowd"
	c := &crowd{hold: b.config.Hold}
	waits := make([]time.Duration, len(list)*goroutines) // the longest wait of each goroutine
	grants := make([]int, len(list)*goroutines)
	for _, p := range list {
		p.meter.Take()
	}

	var all sync.WaitGroup
	begun := time.Now()
	for i := range grants {
		p := list[i/goroutines]
		all.Go(func() {
			for n := 0; times == 0 || n < times; n++ {
				waited, err := c.grant(window, p, name)
				waits[i] = max(waits[i], waited)
				switch {
				case window.Err() != nil:
					return // any error after the end does not count
				case err != nil:
					c.errors.Add(1)
					c.first.Do(func() { b.say("the first error: %v", err) })
				default:
					grants[i]++
				}
			}
		})
	}
	var counts Counts
	counted := make(chan struct{})
	done, finish := context.WithCancel(window)
	go func() {
		defer close(counted)
		<-done.Done() // requests after the window do not count
		for _, p := range list {
			counts = counts.plus(p.meter.Take())
		}
	}()
	all.Wait()
	finish()
	<-counted
	took := time.Since(begun)
	if window.Err() != nil {
		deadline, _ := window.Deadline()
		took = deadline.Sub(begun)
	}
	if ctx.Err() != nil {
		return CrowdResult{}, ctx.Err()
	}

	result := CrowdResult{
		Wanted: times * len(grants), Overlaps: int(c.overlaps.Load()), Errors: int(c.errors.Load()), Requests: counts.Requests,
		Took: took, Held: time.Duration(c.held.Load()),
		ByProcess: make([]int, len(list)), ByGoroutine: grants,
	}
	for i, n := range grants {
		result.Grants += n
		result.ByProcess[i/goroutines] += n
		result.Longest = max(result.Longest, waits[i])
	}
	return result, nil
}
