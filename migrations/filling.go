package migrations

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mortise-go/mortise/internal/errs"
	"github.com/mortise-go/mortise/internal/inside"
	"github.com/mortise-go/mortise/internal/nilctx"
	"github.com/mortise-go/mortise/table"
)

// filling is a backfill in progress.
type filling struct {
	run    *Run
	spec   Backfill
	reads  budget
	writes budget

	throttle *throttle

	shapes  shapes
	usage   *table.Usage
	started time.Time
	total   int64 // estimated number of items to read; 0 if unknown
	earlier int64 // items read in earlier attempts
	done    atomic.Bool

	seen, changed, conflicts atomic.Int64
}

func newFilling(r *Run, spec Backfill) *filling {
	return &filling{run: r, spec: spec, reads: budget{rate: spec.ReadUnits}, writes: budget{rate: spec.WriteUnits}, throttle: newThrottle(), started: time.Now()}
}

// progress returns the progress of all segments.
func (f *filling) progress() Progress {
	p := Progress{
		Migration: f.run.migration.ID, Step: f.spec.Name, Seen: f.seen.Load(), Changed: f.changed.Load(), Conflicts: f.conflicts.Load(),
		Total: f.total, Elapsed: time.Since(f.started), Done: f.done.Load(),
	}
	if f.usage != nil {
		totals := f.usage.Totals()
		p.ReadUnits, p.WriteUnits = totals.ReadUnits, totals.WriteUnits
	}
	if s := p.Elapsed.Seconds(); s > 0 {
		p.Rate = float64(p.Seen-f.earlier) / s
	}
	if p.Total > p.Seen && p.Rate > 0 && !p.Done {
		p.Left = time.Duration(float64(p.Total-p.Seen) / p.Rate * float64(time.Second))
	}
	return p
}

// recall sets the counts of a step that an earlier attempt has finished.
func (f *filling) recall(c checkpoint) {
	if c.Done {
		f.seen.Store(c.Seen)
		f.changed.Store(c.Changed)
		f.earlier = c.Seen
		f.done.Store(true)
	}
}

// fill runs all unfinished segments. The first error ends all of them.
func (f *filling) fill(ctx context.Context) error {
	ctx, f.usage = table.WithUsage(nilctx.Checked(ctx, ErrInvalid))
	r := f.run
	parts := r.steps[f.spec.Name]
	for _, c := range parts {
		if c.Segments != f.spec.Segments {
			return fmt.Errorf("%w: from %d to %d: finish it with the old number, or give the step another name, which starts from the beginning", ErrSegments, c.Segments, f.spec.Segments)
		}
		f.seen.Add(c.Seen)
		f.changed.Add(c.Changed)
	}
	f.earlier = f.seen.Load()
	whole, ok := parts[0]
	if !ok { // record the number of segments first: a later attempt must not change it
		whole = checkpoint{Step: f.spec.Name, Segments: f.spec.Segments, Seq: 1}
		if err := f.record(ctx, whole); err != nil {
			return err
		}
	}
	inner, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := f.report(inner, cancel)
	defer stop()

	var group sync.WaitGroup
	for i := range f.spec.Segments {
		c, ok := parts[uint32(i+1)]
		if !ok {
			c = checkpoint{Step: f.spec.Name, Part: uint32(i + 1), Segments: f.spec.Segments}
		}
		if c.Done {
			continue
		}
		worker(&group, cancel, func() error {
			s := segment{filling: f, at: c}
			return s.run(inner)
		})
	}
	group.Wait()
	if inner.Err() != nil {
		return endOf(ctx, inner)
	}
	whole.Done, whole.Seen, whole.Changed = true, f.seen.Load(), f.changed.Load()
	whole.Seq++
	err := f.record(ctx, whole)
	f.done.Store(err == nil)
	return err
}

// record writes a checkpoint. It repeats that as paid does, so an attempt can find what an earlier one has written. Pages of which no item
// changes write nothing else, so it waits for the budget, too.
func (f *filling) record(ctx context.Context, c checkpoint) error {
	if err := f.writes.wait(ctx); err != nil {
		return err
	}
	err := f.paid(ctx, func(ctx context.Context) error { return f.run.lease.Write(ctx, f.run.checkpointOp(c)) })
	if errors.As(err, new(*reachedError)) {
		return nil
	}
	return err
}

// paid runs request, and charges the units that it used to the budgets. Being throttled is the ordinary case if a backfill uses up what a
// table has, and no failure: the request is repeated for as long as that takes. The error covers all attempts ([table.MayBeApplied]).
func (f *filling) paid(ctx context.Context, request func(ctx context.Context) error) error {
	unclear := false // an earlier attempt may have been applied: it got no answer before it was throttled
	for {
		if err := f.throttle.wait(ctx); err != nil {
			return err
		}
		err := f.charged(ctx, request)
		if unclear = unclear || table.MayBeApplied(err); err != nil {
			err = errs.WithOutcome(err, unclear)
		}
		if !errors.Is(err, table.ErrThrottled) || ctx.Err() != nil {
			f.throttle.passed()
			return err
		}
		if f.throttle.throttled() {
			f.run.migrator.logger.Warn("migrations: a backfill is throttled, and goes on as fast as the table allows", "id", f.run.migration.ID, "step", f.spec.Name)
		}
	}
}

// charged runs request once.
func (f *filling) charged(ctx context.Context, request func(ctx context.Context) error) error {
	ctx = inside.Paced(ctx)
	if f.reads.rate == 0 && f.writes.rate == 0 {
		return request(ctx)
	}
	ctx, usage := table.WithUsage(ctx)
	err := request(ctx)
	totals := usage.Totals()
	f.reads.spend(totals.ReadUnits)
	f.writes.spend(totals.WriteUnits)
	return err
}

// report calls the application's function about once per second until stop is called, and then once more. A panic in
// the function ends the backfill.
func (f *filling) report(ctx context.Context, cancel context.CancelCauseFunc) (stop func()) {
	report := f.run.migrator.progress
	if report == nil {
		return func() {}
	}
	if f.spec.Filter.IsZero() { // nobody knows how many items a Filter selects
		if size, err := f.run.migrator.table.Estimate(ctx); err == nil {
			f.total = size.Items
		}
	}
	end := make(chan struct{})
	var group sync.WaitGroup
	worker(&group, cancel, func() error {
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				report(f.progress())
			case <-end:
				return nil
			}
		}
	})
	return func() {
		close(end)
		group.Wait()
		report(f.progress())
	}
}
