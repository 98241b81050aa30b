package soak

import (
	"context"
	"fmt"
	"slices"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
)

const (
	setWorkload = "set"
	setRows     = 4

	// pageSize is the largest number of elements in a row. Then they are moved to a row of their own, since an item
	// has at most 400 KB and each write costs by its size.
	pageSize = 200
)

// setRow holds the elements of a set, from the page that it names. An element is the name of the operation that has
// added it.
type setRow struct {
	Page     int64    `dynamo:"page"`
	Elements []string `dynamo:"elements"`
}

func setName(i int) string                 { return fmt.Sprint("set ", i) }
func headKey(row string) keys.Key          { return keys.NewKey(row, "HEAD") }
func pageKey(row string, n int64) keys.Key { return keys.NewKey(row, fmt.Sprintf("PAGE#%08d", n)) }

// set adds an element to a set: it reads the whole row and writes it back.
func (l *lane) set(ctx context.Context) error {
	name := setName(l.rand.IntN(setRows))
	return l.hold(ctx, lock.Name(name), func(ctx context.Context, lease *lock.Lease) (bool, error) {
		var row setRow
		if err := read(ctx, l.table, headKey(name), &row); err != nil {
			return false, err
		}
		o := l.operation(name, l.lease(), lease)
		o.Value = row.Page*pageSize + int64(len(row.Elements)) + 1
		given, _, err := l.write(ctx, lease, o, l.maybe(), row.with(name, o.Op)...)
		return given, err
	})
}

// with writes the set with one element more.
func (r setRow) with(name, element string) []table.Op {
	elements := table.Attr("elements")
	if len(r.Elements) < pageSize {
		return []table.Op{table.Update(headKey(name), elements.Set(append(slices.Clip(r.Elements), element)))}
	}
	return []table.Op{
		table.Update(pageKey(name, r.Page), elements.Set(r.Elements)),
		table.Update(headKey(name), table.Attr("page").Set(r.Page+1), elements.Set([]string{element})),
	}
}

// checkSets looks for the elements of all operations.
func (a *audit) checkSets(ctx context.Context) error {
	for i := range setRows {
		var found []string
		err := rows(ctx, a.table, setName(i), func(_ keys.Key, row setRow) { found = append(found, row.Elements...) })
		if err != nil {
			return err
		}
		a.lost += a.present(setWorkload, setName(i), found)
	}
	return nil
}
