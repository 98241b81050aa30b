package table_test

import (
	"errors"
	"sync"
	"testing"

	"github.com/mortise-go/mortise/internal/attrvalue"
	"github.com/mortise-go/mortise/internal/engines"
	"github.com/mortise-go/mortise/internal/inside"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

func openPrepared(t *testing.T) *table.Table {
	t.Helper()
	tbl, err := table.Open(tabletest.New(t).Client(), table.Schema{Name: "prepared"})
	require.NoError(t, err)
	require.NoError(t, tbl.Ensure(t.Context()))
	return tbl
}

func param(i int) table.Operand { return table.Value(inside.Param(i)) }

func TestPrepared_DoesWhatItsOperationDoes(t *testing.T) {
	tbl, ctx := openPrepared(t), t.Context()
	key := keys.NewKey("a", "b")
	n, by := table.Attr("n"), table.Attr("by")
	raise, err := tbl.Inside(inside.Key{}).Prepare(table.Update(keys.Key{}, n.Set(param(0)), by.Set(param(1)), table.Attr("fixed").Set("x")).
		If(table.Or(n.NotExists(), n.Less(param(0)))))
	require.NoError(t, err)
	require.NoError(t, tbl.Write(ctx, raise(key, 1, "first")))
	require.NoError(t, tbl.Write(ctx, raise(key, 5, "second")))
	require.ErrorIs(t, tbl.Write(ctx, raise(key, 5, "third")), table.ErrCondition)
	plain := keys.NewKey("a", "c")
	require.NoError(t, tbl.Write(ctx, table.Update(plain, n.Set(5), by.Set("second"), table.Attr("fixed").Set("x"))))
	got, err := tbl.Get(ctx, key, true)
	require.NoError(t, err)
	want, err := tbl.Get(ctx, plain, true)
	require.NoError(t, err)
	want["sk"] = got["sk"]
	assert.True(t, attrvalue.SameItem(want, got))

	// In a transaction, and with what is added to it.
	is, err := tbl.Inside(inside.Key{}).Prepare(table.Check(keys.Key{}, by.Equal(param(0))))
	require.NoError(t, err)
	require.NoError(t, tbl.Write(ctx, raise(plain, 6, "third"), is(key, "second")))
	require.ErrorIs(t, tbl.Write(ctx, raise(plain, 7, "fourth"), is(key, "first")), table.ErrCondition)
	require.ErrorIs(t, tbl.Write(ctx, raise(key, 7, "fourth").If(by.Equal("nobody"))), table.ErrCondition)
	require.NoError(t, tbl.Write(ctx, raise(key, 7, "fourth").If(by.Equal("second")).Changing(table.Attr("more").Set(1))))
	got, err = tbl.Get(ctx, key, true)
	require.NoError(t, err)
	assert.Contains(t, got, "more")

	var group sync.WaitGroup
	for i := range 20 {
		group.Go(func() {
			own := keys.NewKey("many", string(rune('a'+i)))
			assert.NoError(t, tbl.Write(ctx, raise(own, i, "x")))
			item, err := tbl.Get(ctx, own, true)
			assert.NoError(t, err)
			i64, err := table.Encode(i)
			assert.NoError(t, err)
			assert.Equal(t, i64, item["n"])
		})
	}
	group.Wait()
}

// What a parameter is shows only later.
func TestPrepared_AddAndRemoveFromTakeParameters(t *testing.T) {
	tbl, ctx := openPrepared(t), t.Context()
	key := keys.NewKey("a", "b")
	p, err := tbl.Inside(inside.Key{}).Prepare(table.Update(keys.Key{}, table.Attr("n").Add(param(0)), table.Attr("more").Add(param(1)), table.Attr("less").RemoveFrom(param(2))))
	require.NoError(t, err)
	require.NoError(t, tbl.Write(ctx, table.Update(key, table.Attr("less").Set(strs("x", "y")))))
	require.NoError(t, tbl.Write(ctx, p(key, 2, strs("z"), strs("y"))))
	got, err := tbl.Get(ctx, key, true)
	require.NoError(t, err)
	assert.Equal(t, num("2"), got["n"])
	assert.Equal(t, strs("z"), got["more"])
	assert.Equal(t, strs("x"), got["less"])
}

func TestPrepared_RefusesWhatCannotBeSent(t *testing.T) {
	tbl, ctx := openPrepared(t), t.Context()
	key := keys.NewKey("a", "b")
	for name, op := range map[string]table.Op{
		"nothing": {}, "error": table.Invalid(table.ErrInvalid), "update with an error": table.Update(key, table.Attr("n").Set(1)).In(nil), "put": table.Put(nil), "delete": table.Delete(key), "companions": table.Update(key, table.Attr("n").Set(1)).With(table.Delete(key)),
		"negative": table.Update(key, table.Attr("n").Set(param(-1))), "misplaced": table.Update(key, table.Attr("n").Set(table.Attr("m").Size())),
	} {
		_, err := tbl.Inside(inside.Key{}).Prepare(op)
		require.ErrorIs(t, err, table.ErrInvalid, name)
	}
	p, err := tbl.Inside(inside.Key{}).Prepare(table.Update(keys.Key{}, table.Attr("n").Set(param(1))))
	require.NoError(t, err)
	require.ErrorIs(t, tbl.Write(ctx, p(key, 1)), table.ErrInvalid, "too few")
	require.ErrorIs(t, tbl.Write(ctx, p(key, 1, (*int)(nil))), table.ErrInvalid, "no value")
	require.ErrorIs(t, tbl.Write(ctx, p(keys.Key{}, 1, 2)), table.ErrInvalid, "no key")
	require.ErrorIs(t, tbl.Write(ctx, table.Update(key, table.Attr("n").Set(param(0)))), table.ErrInvalid, "not prepared")
	none, err := tbl.Inside(inside.Key{}).Prepare(table.Update(keys.Key{}))
	require.NoError(t, err)
	require.ErrorIs(t, tbl.Write(ctx, none(key)), table.ErrInvalid, "no changes")
}

// A condition over 300 operators or 4 KB is refused by Prepare exactly if DynamoDB refuses it.
func TestPrepared_RefusesALargeConditionAsDynamoDBDoes(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		n := table.Attr("n")
		for name, one := range map[string]table.Cond{
			"equal": n.Equal(1), "in": n.In(1, 2, 3), "between": n.Between(1, 2), "not": table.Not(n.Equal(1)), "size": n.Size().Equal(1),
			"exists": n.Exists(), "and": table.And(n.Equal(1), n.Exists()), "text": n.HasPrefix("a"),
		} {
			refused := 0
			for size := 60; size <= 160; size++ {
				conds := make([]table.Cond, size)
				for i := range conds {
					conds[i] = one
				}
				op := table.Update(keys.NewKey("a", "b"), n.Set(1)).If(table.Or(table.Or(conds...), table.Attr("PartKey").NotExists()))
				_, err := f.Inside(inside.Key{}).Prepare(op)
				if err == nil && size%10 > 0 && refused == 0 {
					continue
				}
				sent := f.Write(t.Context(), op)
				if errors.Is(sent, table.ErrCondition) {
					sent = nil
				}
				require.Equal(t, sent == nil, err == nil, "%s, %d: %v, %v", name, size, err, sent)
				if err != nil {
					require.ErrorIs(t, err, table.ErrInvalid)
					if refused++; refused > 2 {
						break
					}
				}
			}
			assert.Positive(t, refused, name)
		}
	})
}
