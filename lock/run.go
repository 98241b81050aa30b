package lock

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/mortise-go/mortise/lock/internal/lockrow"
	"github.com/mortise-go/mortise/table"
)

// run is the run of one interval of Every, under one acquisition. The lock's row decides which interval runs: it has the start of the
// last interval that has finished, and of the one that has begun. nil means no run; all methods except settled can be called on it.
type run struct {
	at        int64 // start of the interval, epoch milliseconds
	intervals intervals
	behind    bool // others were in the line when the row was read

	ending atomic.Uint32 // the lockrow.RunChange that a release records. With none, another instance begins the interval again
}

// errSettled means that an interval must not be run any more, or that another interval must be run first.
var errSettled = errors.New("the interval is settled")

// start is the start of the interval; 0 for no run.
func (r *run) start() int64 {
	if r == nil {
		return 0
	}
	return r.at
}

// waits reports whether the lock is known not to be free.
func (r *run) waits() bool { return r != nil && r.behind }

// recorded reports whether a row shows that the run has finished. Once that is recorded, it stays so.
func (r *run) recorded(row *lockrow.Row) bool { return r != nil && row.Ran >= r.at }

// settled reports whether a row shows that the run has finished, or that the run of another interval has begun and must be finished
// first: the interval before, or a later one. now is DynamoDB's time.
func (r *run) settled(row *lockrow.Row, now time.Time) bool {
	return r.recorded(row) || row.Running != r.at && begun(row, r.intervals.before(r.at), r.intervals.next(now.UnixMilli()))
}

// begun reports whether the run of an interval that starts between least and most has begun and not finished. An older run is given
// up: a job that crashes its process must not be run for ever instead of all other intervals. This package never writes a later start.
func begun(row *lockrow.Row, least, most int64) bool {
	return row.Running > row.Ran && row.Running >= least && row.Running <= most
}

// beginRun records that a run has begun, under a lease whose ticket was entered without that record.
func (l *Lease) beginRun(ctx context.Context, r *run) error {
	if now, _ := l.client.clk().Told(); r.settled(l.turn.row, now) {
		return errSettled
	}
	row, _, err := l.update(ctx, l.client.layout.rows.BeginRun(l.key, l.holding, r.at))
	switch {
	case !errors.Is(err, table.ErrCondition):
		return err
	case row.Holds(l.holding):
		return errSettled
	}
	return l.gone(ctx, &row)
}
