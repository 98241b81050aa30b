package soak

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
)

const (
	longDwell = 150 * time.Millisecond // at least; at most twice that
	longOne   = 10                     // one operation in so many is long
)

// round is one round of a workload.
type round func(*lane, context.Context) error

// lane is a goroutine of a worker.
type lane struct {
	*worker
	rand     *rand.Rand
	workload string
}

// lane runs rounds until ctx ends.
func (w *worker) lane(ctx context.Context, name string, r round) {
	h := fnv.New64a()
	_, _ = io.WriteString(h, w.Name+" "+name) // a hash never fails
	l := &lane{worker: w, rand: rand.New(rand.NewPCG(w.Seed, h.Sum64())), workload: workloadOf(name)}
	for ctx.Err() == nil {
		switch err := r(l, ctx); {
		case unexpected(err):
			w.journal.write(record{Kind: odd, Workload: l.workload, Error: err.Error()})
		case err != nil && ctx.Err() == nil:
			w.journal.write(record{Kind: idle, Workload: l.workload, Error: err.Error()})
		}
		l.rest(ctx, l.upTo(60*time.Millisecond))
	}
}

// upTo returns a random time.
func (l *lane) upTo(d time.Duration) time.Duration { return time.Duration(l.rand.Int64N(int64(d))) }

// maybe is true half of the time.
func (l *lane) maybe() bool { return l.rand.IntN(2) == 0 }

// rest waits for d, or until ctx ends.
func (*lane) rest(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// dwell is the time that a holder takes between reading and writing.
func (l *lane) dwell(ctx context.Context, long bool) {
	d := 5*time.Millisecond + l.upTo(15*time.Millisecond)
	if long {
		d = longDwell + l.upTo(longDwell)
	}
	l.rest(ctx, d)
}

// holder is a *lock.Lease or a *lock.Bundle.
type holder interface {
	Write(ctx context.Context, ops ...table.Op) error
	Commit(ctx context.Context, ops ...table.Op) error
	Release(ctx context.Context) error
}

// hold acquires a lock, runs f under it, and releases it unless f has. f reports whether its last write was a commit
// that succeeded.
func (l *lane) hold(ctx context.Context, target lock.Target, f func(ctx context.Context, lease *lock.Lease) (given bool, err error)) error {
	ctx, cancel := context.WithTimeout(ctx, roundTime)
	defer cancel()
	acquire, opts := l.locks.Acquire, []lock.Option(nil)
	if l.rand.IntN(5) == 0 {
		acquire = l.locks.TryAcquire
	}
	if l.rand.IntN(5) == 0 {
		opts = append(opts, lock.Fixed(leaseTime))
	}
	lease, err := acquire(ctx, target, opts...)
	if err != nil {
		return err
	}
	given, err := f(ctx, lease)
	if given {
		return err
	}
	return errors.Join(err, l.release(ctx, lease))
}

// release releases a lock. It is normal that the lock was lost, or that there was no answer.
func (*lane) release(ctx context.Context, h holder) error {
	if err := h.Release(ctx); unexpected(err) {
		return err
	}
	return nil
}

// write does one operation, by a commit if commits is true. It reports that the operation begins, dwells, sends it,
// and reports the outcome. err is only an error that must not occur.
func (l *lane) write(ctx context.Context, h holder, o *operation, commits bool, ops ...table.Op) (given bool, result outcome, err error) {
	apply := h.Write
	switch {
	case l.Unguarded:
		apply, commits = l.table.Write, false
	case commits:
		apply = h.Commit
	}
	o.Long = l.rand.IntN(longOne) == 0
	if l.Unguarded { // it is about sets
		o.Long = o.Workload == setWorkload && l.maybe()
	}
	l.journal.write(record{Kind: begun, Operation: o})
	l.dwell(ctx, o.Long)
	err = apply(ctx, ops...)
	result = outcomeOf(err)
	if result == unknown && commits && ctx.Err() == nil && l.maybe() {
		// Commit may be called again, whatever happened to the first call.
		if err = apply(ctx, ops...); errors.Is(err, lock.ErrReleased) {
			err = nil // by the first call
		}
		if outcomeOf(err) == acknowledged {
			result = acknowledged
		}
	}
	end := record{Kind: ended, Op: o.Op, Outcome: result}
	if err != nil {
		end.Error = err.Error()
	}
	l.journal.write(end)
	if !unexpected(err) {
		err = nil // the record has the outcome
	}
	return commits && result == acknowledged, result, err
}

// operation names a write that is about to be made under leases.
func (l *lane) operation(row, lease string, leases ...*lock.Lease) *operation {
	o := &operation{Op: fmt.Sprintf("%s/%s/%d", l.Name, l.workload, l.ops.Add(1)), Workload: l.workload, Row: row, Lease: lease}
	for _, held := range leases {
		o.Held = append(o.Held, holding{Lock: lockName(held.Target()), Fence: held.Fence()})
	}
	return o
}

// lease names an acquisition.
func (l *lane) lease() string { return fmt.Sprintf("%s/%d", l.Name, l.leases.Add(1)) }

// workloadOf returns the workload of a goroutine's name: "set 1" belongs to set.
func workloadOf(name string) string {
	workload, _, _ := strings.Cut(name, " ")
	return workload
}

// lockName returns a name that no other lock has.
func lockName(t lock.Target) string {
	if t.Name() != "" {
		return t.Name()
	}
	return "beside " + t.Beside().SK
}
