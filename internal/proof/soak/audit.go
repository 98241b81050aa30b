package soak

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
)

// auditTime limits the time for reading all rows and acquiring all locks. It is longer than a dead holder's lease and
// the skew.
const auditTime = 60 * time.Second

// audit compares the rows with what the workers have reported, after the run.
type audit struct {
	*ledger
	table *table.Table // without a proxy
	locks *lock.Client
	lost  int // acknowledged elements that are in no set
}

// run makes all checks. An error means that they could not be made.
func (a *audit) run(ctx context.Context, unguarded bool) error {
	ctx, cancel := context.WithTimeout(ctx, auditTime)
	defer cancel()
	err := errors.Join(a.checkSets(ctx), a.checkCounter(ctx), a.checkBank(ctx), a.checkFences(ctx))
	if unguarded {
		return err
	}
	last := a.checkHoldings()
	return errors.Join(err, a.checkEvery(ctx), a.checkLocks(ctx, last))
}

// checkHoldings looks for fences that two acquisitions had, and returns the greatest fence of each lock.
func (a *audit) checkHoldings() (last map[string]int64) {
	last = map[string]int64{}
	by := map[holding]string{}
	a.mu.Lock()
	list := a.inOrder
	a.mu.Unlock()
	for _, e := range list {
		for _, h := range e.Held {
			if other := by[h]; other != "" && other != e.Lease {
				a.violate(e.Workload, "%s and %s have both held %q with fence %d", other, e.Lease, h.Lock, h.Fence)
			}
			by[h], last[h.Lock] = e.Lease, max(last[h.Lock], h.Fence)
		}
	}
	return last
}

// checkLocks acquires every lock. No holder may be left, and fences must continue.
func (a *audit) checkLocks(ctx context.Context, last map[string]int64) error {
	targets := []lock.Target{lock.Name(counterName), lock.Name(everyName)}
	for i := range setRows {
		targets = append(targets, lock.Name(setName(i)))
	}
	for i := range fencesRows {
		targets = append(targets, lock.Name(fencesName(i)))
	}
	for i := range accounts {
		targets = append(targets, lock.Beside(accountKey(i)))
	}
	var all sync.WaitGroup
	failed := make(chan error, len(targets))
	for _, target := range targets {
		all.Go(func() {
			name := lockName(target)
			lease, err := a.locks.Acquire(ctx, target)
			if errors.Is(err, lock.ErrHeld) {
				a.violate("locks", "%q is still held when all is over: %v", name, err)
				return
			}
			if err != nil {
				failed <- err
				return
			}
			if lease.Fence() <= last[name] {
				a.violate("locks", "%q has fence %d after %d", name, lease.Fence(), last[name])
			}
			failed <- lease.Release(ctx)
		})
	}
	all.Wait()
	close(failed)
	var errs []error
	for err := range failed {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// present compares the operations found in rows with those that should be there. It returns how many acknowledged
// ones are missing.
func (a *audit) present(workload, row string, found []string) (missing int) {
	times := map[string]int{}
	for _, op := range found {
		times[op]++
	}
	for _, o := range a.operations(workload, row) {
		n := times[o.Op]
		delete(times, o.Op)
		switch {
		case n > 1:
			a.violate(workload, "%s: %s is there %d times", row, o.Op, n)
		case n == 0 && o.outcome == acknowledged:
			missing++
			a.violate(workload, "%s: %s was acknowledged and is lost", row, o.Op)
		case n == 1 && o.outcome == refused:
			a.violate(workload, "%s: %s was refused and is there", row, o.Op)
		}
	}
	for op := range times {
		a.violate(workload, "%s: nobody has written %s", row, op)
	}
	return missing
}
