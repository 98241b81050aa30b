package soak

import (
	"context"

	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
)

const (
	counterWorkload = "counter"
	counterName     = "counter"
	countsAtOnce    = 3 // under one lease, at most
)

// counterRow is a number. Holders read it and write it back plus one.
type counterRow struct {
	N int64 `dynamo:"n"`
}

func (l *lane) count(ctx context.Context) error {
	return l.hold(ctx, lock.Name(counterName), func(ctx context.Context, lease *lock.Lease) (given bool, err error) {
		var row counterRow
		if err := read(ctx, l.table, headKey(counterName), &row); err != nil {
			return false, err
		}
		name, result := l.lease(), acknowledged
		for n := 1 + l.rand.IntN(countsAtOnce); n > 0 && result == acknowledged; n-- {
			row.N++
			o := l.operation(counterName, name, lease)
			o.Value = row.N
			commits := n == 1 && l.maybe()
			given, result, err = l.write(ctx, lease, o, commits, table.Update(headKey(counterName), table.Attr("n").Set(row.N)))
		}
		return given, err
	})
}

// checkCounter checks that each number was written by one operation.
func (a *audit) checkCounter(ctx context.Context) error {
	var row counterRow
	if err := read(ctx, a.table, headKey(counterName), &row); err != nil {
		return err
	}
	by, perhaps := map[int64]string{}, map[int64]bool{}
	for _, o := range a.operations(counterWorkload, counterName) {
		switch {
		case o.outcome == unknown:
			perhaps[o.Value] = true
		case o.outcome == refused:
		case by[o.Value] != "":
			a.violate(counterWorkload, "%s and %s have both written %d", by[o.Value], o.Op, o.Value)
		case o.Value > row.N:
			a.violate(counterWorkload, "%s has written %d, and the counter is at %d", o.Op, o.Value, row.N)
		default:
			by[o.Value] = o.Op
		}
	}
	for n := range row.N {
		if by[n+1] == "" && !perhaps[n+1] {
			a.violate(counterWorkload, "nobody has written %d, and the counter is at %d", n+1, row.N)
		}
	}
	return nil
}
