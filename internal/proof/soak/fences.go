package soak

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
)

const (
	fencesWorkload = "fences"
	fencesRows     = 2
	fencesAtOnce   = 4 // under one lease, at most
)

// fencesRow is a list to which each write appends its fence and its name. DynamoDB appends, so the list is in the
// order of the commits. Full lists are moved to pages. A holder that is not alone would lose entries when it does
// that. N counts all entries, also those that were lost.
type fencesRow struct {
	N       int64    `dynamo:"n"`
	Page    int64    `dynamo:"page"`
	Entries []string `dynamo:"entries"`
}

func fencesName(i int) string { return fmt.Sprint("fences ", i) }

// fence appends a few times under one lease.
func (l *lane) fence(ctx context.Context) error {
	name := fencesName(l.rand.IntN(fencesRows))
	return l.hold(ctx, lock.Name(name), func(ctx context.Context, lease *lock.Lease) (given bool, err error) {
		var row fencesRow
		if err := read(ctx, l.table, headKey(name), &row); err != nil {
			return false, err
		}
		leaseName, result := l.lease(), acknowledged
		for n := 1 + l.rand.IntN(fencesAtOnce); n > 0 && result == acknowledged; n-- {
			o := l.operation(name, leaseName, lease)
			entry := fmt.Sprint(lease.Fence(), " ", o.Op)
			given, result, err = l.write(ctx, lease, o, n == 1 && l.maybe(), row.with(name, entry)...)
			row.added(entry)
		}
		return given, err
	})
}

// with appends an entry.
func (r *fencesRow) with(name, entry string) []table.Op {
	n, page, entries := table.Attr("n"), table.Attr("page"), table.Attr("entries")
	if len(r.Entries) < pageSize {
		return []table.Op{table.Update(headKey(name), n.Add(1), entries.Set(entries.OrElse([]string{}).Append([]string{entry})))}
	}
	return []table.Op{
		table.Update(pageKey(name, r.Page), entries.Set(r.Entries)),
		table.Update(headKey(name), n.Add(1), page.Set(r.Page+1), entries.Set([]string{entry})),
	}
}

// added is the row after with.
func (r *fencesRow) added(entry string) {
	if len(r.Entries) < pageSize {
		r.Entries = append(r.Entries, entry)
		return
	}
	r.Page, r.Entries = r.Page+1, []string{entry}
}

// checkFences checks that no fence in the lists comes after a greater one.
func (a *audit) checkFences(ctx context.Context) error {
	for i := range fencesRows {
		if err := a.checkFencesOf(ctx, fencesName(i)); err != nil {
			return err
		}
	}
	return nil
}

func (a *audit) checkFencesOf(ctx context.Context, name string) error {
	var head fencesRow
	var entries []string
	err := rows(ctx, a.table, name, func(key keys.Key, row fencesRow) {
		if key == headKey(name) {
			head = row
			return
		}
		entries = append(entries, row.Entries...) // in the order of the pages
	})
	if err != nil {
		return err
	}
	entries = append(entries, head.Entries...)
	if int64(len(entries)) != head.N {
		a.violate(fencesWorkload, "%s: %d entries were committed, %d are there", name, head.N, len(entries))
	}
	fences := map[string]int64{}
	for _, o := range a.operations(fencesWorkload, name) {
		fences[o.Op] = o.Held[0].Fence
	}
	found, last, lastOp := make([]string, 0, len(entries)), int64(0), ""
	for _, entry := range entries {
		text, op, _ := strings.Cut(entry, " ")
		fence, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return fmt.Errorf("%w: %w", errNotAsWritten, err)
		}
		found = append(found, op)
		if fence < last {
			a.violate(fencesWorkload, "%s: %s with fence %d was committed after %s with %d", name, op, fence, lastOp, last)
		}
		if want, known := fences[op]; known && want != fence {
			a.violate(fencesWorkload, "%s: %s has fence %d, and wrote %d", name, op, want, fence)
		}
		last, lastOp = max(last, fence), op
	}
	a.present(fencesWorkload, name, found)
	return nil
}
