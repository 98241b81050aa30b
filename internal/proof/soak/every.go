package soak

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
)

const (
	everyWorkload  = "every"
	everyName      = "every"
	everyPartition = "RUNS"
	interval       = lock.MinInterval
)

// runsRow lists the intervals of an hour that were run, each with the operation that ran it.
type runsRow struct {
	Runs []string `dynamo:"runs"`
}

// errNotRun makes Every treat the interval as one that was not run.
var errNotRun = errors.New("not committed")

// every runs a job once per interval. An interval whose run was not committed is run again. The row lists the
// intervals that were committed.
func (l *lane) every(ctx context.Context) error {
	return l.locks.Every(ctx, lock.Name(everyName), interval, func(ctx context.Context, lease *lock.Lease, at time.Time) error {
		o := l.operation(everyPartition, l.lease(), lease)
		o.Value = at.UnixMilli()
		runs := table.Attr("runs")
		// Without the context of the lease, which would stop a stale run before it tries to write.
		detached, cancel := context.WithTimeout(context.WithoutCancel(ctx), roundTime)
		defer cancel()
		given, _, err := l.write(detached, lease, o, true,
			table.Update(runsKey(at), runs.Set(runs.OrElse([]string{}).Append([]string{fmt.Sprint(o.Value, " ", o.Op)}))))
		if err == nil && !given {
			err = errNotRun
		}
		return err
	}, lock.RetryFailed(func() backoff.BackOff { return backoff.NewConstantBackOff(interval / 10) }))
}

func runsKey(at time.Time) keys.Key {
	return keys.NewKey(everyPartition, at.UTC().Format("2006-01-02T15"))
}

// checkEvery counts how often each interval was run.
func (a *audit) checkEvery(ctx context.Context) error {
	var found []string
	by, last := map[int64]string{}, int64(0)
	var failed error
	err := rows(ctx, a.table, everyPartition, func(_ keys.Key, row runsRow) {
		for _, entry := range row.Runs {
			text, op, _ := strings.Cut(entry, " ")
			at, err := strconv.ParseInt(text, 10, 64)
			failed = errors.Join(failed, err)
			found = append(found, op)
			if by[at] != "" {
				a.violate(everyWorkload, "the interval of %s was run by %s and by %s", time.UnixMilli(at).UTC().Format(time.TimeOnly), by[at], op)
			}
			by[at], last = op, max(last, at)
		}
	})
	if err := errors.Join(err, failed); err != nil {
		return err
	}
	a.present(everyWorkload, everyPartition, found)
	record, err := a.locks.Inspect(ctx, lock.Name(everyName))
	switch {
	case errors.Is(err, table.ErrNotFound) && last == 0:
	case err != nil:
		return err
	case record.Ran != last:
		a.violate(everyWorkload, "the lock's row has recorded %d last, and the runs %d", record.Ran, last)
	}
	return nil
}
