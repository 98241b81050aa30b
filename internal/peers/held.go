package peers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
)

// acquirers is the number of goroutines that acquire the locks.
const acquirers = 16

// HeldResult is the cost of holding many locks.
type HeldResult struct {
	Name                string
	Renewals            float64 // requests per quarter of a lease
	LostEarly, LostLate int     // lost locks: before all were acquired, and after
}

// holds measures many locks that one client holds for a few leases. All candidates hold theirs at the same time,
// since most of the time there is little to do.
func (b *bench) holds(ctx context.Context, report *Report) (failed error) {
	candidates := []Candidate{Cirello(), Mortise()}
	processes := make([]*process, len(candidates))
	held := make([][]Held, len(candidates))
	// The candidate with the most renewals comes last: otherwise its renewals delay the others while they acquire.
	for i, c := range slices.Backward(candidates) {
		b.say("%d held locks: %s acquires them", b.config.Locks, c.Name)
		crew, err := b.start(ctx, c, 1, b.config.Lease)
		if err != nil {
			return err
		}
		defer func() { failed = errors.Join(failed, crew.end(ctx)) }()
		p := crew.list[0]
		p.meter.SetLatency(b.config.Latency)
		defer p.meter.SetLatency(0) // the end of the crew is not measured
		processes[i] = p
		if held[i], err = acquireMany(ctx, p, b.config.Locks); err != nil {
			return fmt.Errorf("%s: %w", c.Name, err)
		}
	}

	window := time.Duration(b.config.Leases * float64(b.config.Lease))
	b.say("%d held locks: holding them for %v", b.config.Locks, window)
	results := make([]HeldResult, len(candidates))
	for i, p := range processes {
		results[i] = HeldResult{Name: candidates[i].Name, LostEarly: lostOf(p, held[i])}
		p.meter.Take()
	}
	if sleep(ctx, window); ctx.Err() != nil {
		return ctx.Err()
	}
	for i, p := range processes {
		r := &results[i]
		r.Renewals = ratio(float64(p.meter.Take().Requests)*float64(b.config.Lease/4), float64(window))
		r.LostLate = lostOf(p, held[i]) - r.LostEarly
	}
	report.Held = results
	return nil
}

// lostOf returns how many of the locks are lost.
func lostOf(p *process, held []Held) int {
	n := 0
	for _, h := range held {
		if p.Lost(h) {
			n++
		}
	}
	return n
}

func acquireMany(ctx context.Context, p *process, n int) ([]Held, error) {
	held := make([]Held, n)
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(acquirers)
	for i := range held {
		g.Go(func() (err error) {
			held[i], err = p.Acquire(ctx, fmt.Sprintf("held-%05d", i))
			return err
		})
	}
	return held, g.Wait()
}
