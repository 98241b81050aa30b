package lock

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/mortise-go/mortise/table"
)

// run is the run of one interval (Every), under one acquisition. The row decides what runs:
// it has the start of the last interval that has finished, and of the one that has begun.
type run struct {
	at        int64 // start of the interval, epoch milliseconds
	intervals intervals

	clock clock // that tells what may have begun
	names

	ending  atomic.Int32 // what a release says of it
	commits atomic.Bool  // a commit, which says that it has finished, is under way, or may have been applied
}

const (
	leftOff  = iota // it was broken off: the interval is for another instance to take up
	finished        // it is recorded
	failed          // so is that it has failed
	repeated        // it has failed, and is run again while the interval lasts
)

// errSettled says that an interval is not to be run any more, or another one before it.
var errSettled = errors.New("the interval is settled")

// errRecorded says that the row still names the holder, and yet the run of this interval or
// of a later one as finished, which nobody else can have recorded by this package.
var errRecorded = fmt.Errorf("%w: the row says that the interval has been run", ErrLost)

// settled says whether the row shows that r has finished, or that the interval before it, or
// a later one, has begun and not finished. It can be asked of no run.
func (r *run) settled(row *Record) bool {
	return r != nil && (row.Ran >= r.at || unfinished(row, r.at, r.intervals.before(r.at)) || begunSince(row, r.at, r.latest()))
}

// told is for how long the row has to tell of the run, from now: until the end of the next
// interval, up to which it may be begun again. It can be asked of no run.
func (r *run) told() time.Duration {
	if r == nil {
		return 0
	}
	return 2 * r.intervals.longest()
}

// latest is the start of the next interval, the last one that others may know to have begun.
func (r *run) latest() int64 {
	now, _ := r.clock.server()
	return r.intervals.next(now.UnixMilli())
}

// begunSince says whether the run of a later interval than the one at at has begun and not
// finished: an older one would wipe that out. What says to be later than latest nobody of
// this package has written.
func begunSince(row *Record, at, latest int64) bool {
	return row.Running > row.Ran && row.Running > at && row.Running <= latest
}

// unfinished says whether the run of the interval before the one at at was broken off. One
// that lies further back is left at that: a job that brings its process down must not be
// run for ever in the place of all others.
func unfinished(row *Record, at, before int64) bool {
	return row.Running > row.Ran && row.Running < at && row.Running >= before
}

// begin adds to an acquiring update that it takes the lock for this run, if the row has not
// settled that meanwhile.
func (r *run) begin(op table.Op) table.Op {
	ran, running := r.attr(attrRan), r.attr(attrRunning)
	return op.Changing(running.Set(r.at)).If(
		table.Or(ran.NotExists(), ran.Less(r.at)),
		table.Or(running.NotExists(), running.Equal(r.at), running.Greater(max(r.at, r.latest())), running.Less(r.intervals.before(r.at)), running.AtMost(ran)))
}

// end adds to a release what becomes of the run.
func (r *run) end(op table.Op, nonce string, commits bool) table.Op {
	ran, running := r.attr(attrRan), r.attr(attrRunning)
	ending := r.ending.Load()
	if ending == failed && !commits {
		op = op.Changing(r.attr(attrFailed).Set(r.at))
	}
	switch {
	case commits || ending == finished || ending == failed:
		return op.Changing(ran.Set(r.at), running.Remove()).If(table.Or(ran.NotExists(), ran.Less(r.at))).
			Explain(func(item table.Item) error {
				if isString(r.of(item, attrNonce), nonce) {
					return errRecorded
				}
				return nil
			})
	case ending == repeated:
		return op.Changing(running.Remove())
	}
	return op
}

// committing takes in that a commit is about to be sent, and says whether one was before that may
// have been applied. Like settled it can be told of no run.
func (r *run) committing() (tried bool) { return r != nil && r.commits.Swap(true) }

// refused takes in that the commit has failed.
func (r *run) refused(tried bool, err error) {
	if r != nil && !mayHaveApplied(err) {
		r.commits.Store(tried)
	}
}
