package migrations_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/mortise-go/mortise/internal/attrvalue"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/migrations"
	"github.com/mortise-go/mortise/table"
)

// Items of one list of attributes become different things, and there are more lists than a
// backfill remembers: each is written as it should be, and what others change meanwhile, in
// an attribute that is kept, replaced, removed or added, is seen.
func TestShape_BackfillOfManyShapes(t *testing.T) {
	modes(t, func(ctx context.Context, w *world, exact bool) {
		const items, bits = 384, 6
		names := func(i int) (list []string) {
			for bit := range bits {
				if i>>bit&1 == 1 {
					list = append(list, fmt.Sprint("a", bit))
				}
			}
			return list
		}
		become := func(item table.Item) table.Item {
			i := int(integer(item["n"]))
			for at, name := range names(i) {
				if item[name] == nil {
					continue
				}
				switch (i/64 + at) % 4 {
				case 0:
					item[name] = num(integer(item[name]) + 1000)
				case 1:
					item["was "+name] = item[name]
					delete(item, name)
				case 2:
					item["copy"] = item[name]
				}
			}
			item["m"] = num(integer(item["m"]) + 1)
			return item
		}
		want := make([]table.Item, items)
		for i := range items {
			item := w.table.KeyItem(itemKey(i))
			item["n"] = num(int64(i))
			for _, name := range names(i) {
				item[name] = num(int64(i))
			}
			require.NoError(w, w.table.Write(ctx, table.Put(item)))
		}
		var raced [items]atomic.Bool
		transform := func(ctx context.Context, item table.Item) (table.Item, error) {
			i := int(integer(item["n"]))
			if i%7 == 0 && !raced[i].Swap(true) {
				change := table.Attr("m").Set(41)
				if list := names(i); len(list) > 0 && i%2 == 0 {
					change = table.Attr(list[i%len(list)]).Set(7)
				}
				if err := w.table.Write(ctx, table.Update(itemKey(i), change)); err != nil {
					return nil, err
				}
			}
			return become(item), nil
		}
		for i := range items { // what they become, with what was changed meanwhile
			item := w.get(itemKey(i))
			if i%7 == 0 {
				if list := names(i); len(list) > 0 && i%2 == 0 {
					item[list[i%len(list)]] = num(7)
				} else {
					item["m"] = num(41)
				}
			}
			want[i] = become(item)
		}
		var p migrations.Progress
		_, err := w.migrator(backfill(migrations.Backfill{Transform: transform, Exact: exact, Filter: only()}, &p)).Up(ctx)
		require.NoError(w, err)
		for i := range items {
			have := w.get(itemKey(i))
			assert.True(w, attrvalue.SameItem(want[i], have), "item %d: %v", i, len(have))
		}
		assert.EqualValues(w, items, p.Changed)
		assert.EqualValues(w, (items+6)/7, p.Conflicts)
	})
}

// An item with many attributes is compared as a whole only if the filter still fits into the condition.
func TestShape_WideItemsLeaveRoomForTheFilter(t *testing.T) {
	for _, n := range []int{100, 136, 150} {
		t.Run(fmt.Sprint(n, " attributes"), func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				item := w.table.KeyItem(itemKey(1))
				for i := range n {
					item[fmt.Sprintf("attribute_%d", i)] = num(int64(i))
				}
				require.NoError(w, w.table.Write(ctx, table.Put(item)))
				var conds []table.Cond
				for i := range 20 {
					conds = append(conds, table.Attr(fmt.Sprintf("status_%d", i)).NotExists())
				}
				var p migrations.Progress
				_, err := w.migrator(backfill(migrations.Backfill{Transform: double, Filter: table.And(conds...)}, &p)).Up(ctx)
				require.NoError(w, err)
				assert.EqualValues(w, 1, p.Changed)
			})
		})
	}
}

// A Filter can take up most of what DynamoDB allows for the condition: 300 operators, or 4 KB. Then fewer attributes are compared.
func TestShape_ALargeFilterLeavesLessRoom(t *testing.T) {
	for name, is := range map[string]func(pk string) table.Cond{
		"operators": func(pk string) table.Cond { return table.Attr("pk").Equal(pk) },
		"size":      func(pk string) table.Cond { return table.Attr("pk").HasPrefix(pk) },
	} {
		t.Run(name, func(t *testing.T) {
			modes(t, func(ctx context.Context, w *world, exact bool) {
				item := w.table.KeyItem(itemKey(1))
				for i := range 90 {
					item[fmt.Sprint("attribute ", i)] = num(int64(i))
				}
				require.NoError(w, w.table.Write(ctx, table.Put(item)))
				conds := make([]table.Cond, 140)
				for i := range conds {
					conds[i] = is(itemKey(i).PK)
				}
				var p migrations.Progress
				_, err := w.migrator(backfill(migrations.Backfill{Transform: increment, Exact: exact, Filter: table.Or(conds...)}, &p)).Up(ctx)
				require.NoError(w, err)
				assert.EqualValues(w, 1, p.Changed)
				item["m"] = num(1)
				assert.True(w, attrvalue.SameItem(item, w.get(itemKey(1))))
			})
		})
	}
}
