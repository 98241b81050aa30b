package lock

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/mortise-go/mortise/lock/internal/clock"
	"github.com/mortise-go/mortise/lock/internal/lease"
	"github.com/mortise-go/mortise/lock/internal/lockrow"
	"github.com/mortise-go/mortise/table"
)

// run is the run of one interval (Every), under one acquisition. The lock's row decides what runs: it has the start of the last
// interval that has finished, and of the one that has begun. All methods but settled can be called on nil, which is no run.
type run struct {
	at        int64 // start of the interval, epoch milliseconds
	intervals intervals
	clock     clock.Clock
	behind    bool // others were in the line when the row was read

	ending atomic.Uint32 // the lockrow.RunChange that a release records. With none, another instance takes the interval up
}

// errSettled means that an interval is not to be run any more, or another one before it.
var errSettled = errors.New("the interval is settled")

// start is that of the interval; 0 for no run.
func (r *run) start() int64 {
	if r == nil {
		return 0
	}
	return r.at
}

// waits reports whether the lock is known not to be free.
func (r *run) waits() bool { return r != nil && r.behind }

// recorded reports whether a row shows that the run has finished, which stays so.
func (r *run) recorded(row *lockrow.Row) bool { return r != nil && row.Ran >= r.at }

// settled reports whether a row shows that the run has finished, or that the run of another interval is to be finished first:
// of the one before, or of a later one.
func (r *run) settled(row *lockrow.Row) bool {
	now, _ := r.clock.Told()
	return r.recorded(row) || row.Running != r.at && begun(row, r.intervals.before(r.at), r.intervals.next(now.UnixMilli()))
}

// begun reports whether the run of an interval from one start to another has begun and not finished. One that lies further
// back is left at that: a job that brings its process down must not be run for ever in the place of all others. One that lies
// ahead was written by nobody of this package.
func begun(row *lockrow.Row, least, most int64) bool {
	return row.Running > row.Ran && row.Running >= least && row.Running <= most
}

// beginRun records that a run has begun, under a lease that waited for its lock.
func (l *Lease) beginRun(ctx context.Context, r *run) error {
	if r.settled(l.turn.row) {
		return errSettled
	}
	row, _, err := l.update(ctx, l.client.layout.rows.BeginRun(l.key, l.holding, r.at))
	switch {
	case !errors.Is(err, table.ErrCondition):
		return err
	case row.Holds(l.holding):
		return errSettled
	}
	l.on(lease.Taken, nil)
	return ErrStolen
}
