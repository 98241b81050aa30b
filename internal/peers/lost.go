package peers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
)

// patience is the time in addition to a lease after which a call with a lost answer is given up.
const patience = 10 * time.Second

// Fate is what happened to a lock after an answer was lost.
type Fate int

// Fates, from the best to the worst.
const (
	Resolved   Fate = iota // the call succeeded, and the lock is in the right state
	FailedFree             // the call reported a failure, and the lock is free
	LeftHeld               // the call reported a failure, and the lock stays held although nobody uses it
	SelfWait               // the call succeeded, but waited for the lock that its own first attempt had acquired
	Lost                   // the lock was lost
	Stuck                  // the call did not end
)

// Trial is a call during which one answer was lost, after the server had applied the request.
type Trial struct {
	Fate     Fate
	Took     time.Duration // of the call; for a renewal, until the lock was lost
	Requests int
}

// LostResult contains the trials of one candidate.
type LostResult struct {
	Name                           string
	Leases                         bool
	Acquire, Try, Release, Renewal []Trial
}

// losses measures calls during which one answer is lost. The trials wait most of the time, so all of them run at the same time, each with
// clients of its own.
func (b *bench) losses(ctx context.Context, report *Report) error {
	b.say("lost answers: all candidates at the same time")
	return b.lossesOf(ctx, report, []Candidate{Minimal(), Cirello(), Mortise()})
}

func (b *bench) lossesOf(ctx context.Context, report *Report, candidates []Candidate) (failed error) {
	results := make([]LostResult, len(candidates))
	g, gctx := errgroup.WithContext(ctx)
	for i, c := range candidates {
		r := &results[i]
		r.Name, r.Leases = c.Name, c.Leases
		for _, call := range []struct {
			name  string
			lease time.Duration
			to    *[]Trial
			run   func(context.Context, *process, *process, string) (Trial, error)
		}{
			{"acquire", b.config.Lease, &r.Acquire, b.loseAcquire},
			{"try", b.config.Lease, &r.Try, b.loseTry},
			{"release", b.config.Lease, &r.Release, b.loseRelease},
			{"renewal", b.config.Renewed, &r.Renewal, b.loseRenewal},
		} {
			if call.name == "renewal" && !c.Leases {
				continue
			}
			crew, err := b.start(ctx, c, 2*b.config.Trials, call.lease)
			if err != nil {
				return errors.Join(err, g.Wait())
			}
			defer func() { failed = errors.Join(failed, crew.end(ctx)) }()
			*call.to = make([]Trial, b.config.Trials)
			for k := range *call.to {
				g.Go(func() (err error) {
					(*call.to)[k], err = call.run(gctx, crew.list[2*k], crew.list[2*k+1], fmt.Sprintf("lost-%s-%d", call.name, k))
					if err != nil {
						return fmt.Errorf("%s: lost answer of %s: %w", c.Name, call.name, err)
					}
					return nil
				})
			}
		}
	}
	if err := g.Wait(); err != nil {
		return err
	}
	report.Lost = results
	return nil
}

// writesOf matches requests that write the row of a lock. No other name in the table may contain the lock's name.
func writesOf(name string) func(op string, body []byte) bool {
	return func(op string, body []byte) bool { return writes(op) && bytes.Contains(body, []byte(name)) }
}

func (b *bench) loseAcquire(ctx context.Context, p, other *process, name string) (Trial, error) {
	return b.loseFirst(ctx, p, other, name, p.Acquire)
}

func (b *bench) loseTry(ctx context.Context, p, other *process, name string) (Trial, error) {
	return b.loseFirst(ctx, p, other, name, p.Try)
}

// loseFirst loses the answer to the write that acquires a lock.
func (b *bench) loseFirst(ctx context.Context, p, other *process, name string, call func(context.Context, string) (Held, error)) (Trial, error) {
	limit, cancel := context.WithTimeout(ctx, b.config.Lease+patience)
	defer cancel()
	p.meter.Take()
	loss := p.meter.Lose(1, writesOf(name))
	begun := time.Now()
	held, err := call(limit, name)
	trial := Trial{Took: time.Since(begun), Requests: p.meter.Take().Requests}
	if missed := loss.check(); missed != nil {
		return trial, errors.Join(missed, err)
	}
	switch {
	case ctx.Err() != nil:
		return trial, ctx.Err()
	case err != nil && limit.Err() != nil:
		trial.Fate = Stuck
		return trial, nil
	case err != nil:
		free, probe := isFree(ctx, other, name)
		trial.Fate = LeftHeld
		if free {
			trial.Fate = FailedFree
		}
		return trial, probe
	case trial.Took >= b.config.Lease/2:
		trial.Fate = SelfWait
	}
	return trial, p.Release(ctx, held)
}

// loseRelease loses the answer to the write that releases a lock.
func (b *bench) loseRelease(ctx context.Context, p, other *process, name string) (Trial, error) {
	held, err := p.Acquire(ctx, name)
	if err != nil {
		return Trial{}, err
	}
	limit, cancel := context.WithTimeout(ctx, b.config.Lease+patience)
	defer cancel()
	p.meter.Take()
	loss := p.meter.Lose(1, writesOf(name))
	begun := time.Now()
	err = p.Release(limit, held)
	trial := Trial{Took: time.Since(begun), Requests: p.meter.Take().Requests}
	if missed := loss.check(); missed != nil {
		return trial, errors.Join(missed, err)
	}
	if ctx.Err() != nil {
		return trial, ctx.Err()
	}
	free, probe := isFree(ctx, other, name)
	switch {
	case !free && limit.Err() != nil:
		trial.Fate = Stuck
	case !free:
		trial.Fate = LeftHeld
	case err != nil:
		trial.Fate = FailedFree
	}
	return trial, probe
}

// loseRenewal loses the answer to a renewal, and watches the lock for two leases.
func (b *bench) loseRenewal(ctx context.Context, p, _ *process, name string) (Trial, error) {
	held, err := p.Acquire(ctx, name)
	if err != nil {
		return Trial{}, err
	}
	// This process holds only this lock, so all its writes are renewals.
	loss := p.meter.Lose(1, func(op string, _ []byte) bool { return writes(op) })
	select {
	case <-loss.lost:
	case <-ctx.Done():
		return Trial{}, ctx.Err()
	case <-time.After(b.config.Renewed + patience):
		return Trial{}, errors.New("no renewal was sent")
	}
	p.meter.Take()
	for since := time.Duration(0); since < 2*b.config.Renewed; since = time.Since(loss.at) {
		if p.Lost(held) {
			return Trial{Fate: Lost, Took: since, Requests: p.meter.Take().Requests}, nil
		}
		if sleep(ctx, 20*time.Millisecond); ctx.Err() != nil {
			return Trial{}, ctx.Err()
		}
	}
	return Trial{Fate: Resolved, Requests: p.meter.Take().Requests}, p.Release(ctx, held)
}

// check returns an error if no answer was lost, since then the trial is without meaning.
func (l *Loss) check() error {
	select {
	case <-l.lost:
		return nil
	default:
		return errors.New("no request was sent whose answer could be lost")
	}
}

// isFree reports whether another process can acquire the lock.
func isFree(ctx context.Context, other *process, name string) (bool, error) {
	held, err := other.Try(ctx, name)
	if errors.Is(err, errHeld) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, other.Release(ctx, held)
}
