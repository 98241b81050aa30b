package table_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/engines"
	"github.com/mortise-go/mortise/internal/engines/faulty"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
)

// leftKeys answers a BatchGetItem with nothing but unprocessed keys.
func (f fixture) leftKeys(sks ...string) faulty.Outcome {
	list := make([]string, len(sks))
	for i, sk := range sks {
		list[i] = fmt.Sprintf(`{"PartKey":{"S":"p"},"SortKey":{"S":%q}}`, sk)
	}
	return faulty.Reply(fmt.Sprintf(`{"Responses":{},"UnprocessedKeys":{%q:{"Keys":[%s]}}}`, f.Name(), strings.Join(list, ",")))
}

// leftPuts answers a BatchWriteItem with unprocessed puts.
func (f fixture) leftPuts(sks ...string) faulty.Outcome {
	list := make([]string, len(sks))
	for i, sk := range sks {
		list[i] = fmt.Sprintf(`{"PutRequest":{"Item":{"PartKey":{"S":"p"},"SortKey":{"S":%q}}}}`, sk)
	}
	return faulty.Reply(fmt.Sprintf(`{"UnprocessedItems":{%q:[%s]}}`, f.Name(), strings.Join(list, ",")))
}

func TestBatchGet_AnswersInTheOrderOfItsKeys(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		var ops []table.Op
		for i := range 130 {
			ops = append(ops, table.Put(f.item("p", fmt.Sprint(i), "n", i)))
		}
		require.NoError(t, f.BatchWrite(t.Context(), ops))
		var list []keys.Key
		for i := 129; i >= 0; i-- {
			list = append(list, key("p", fmt.Sprint(i)))
		}
		list = append(list, key("p", "missing"), key("p", "7"), key("p", "7"))
		f.faults.Script()
		items, err := f.BatchGet(t.Context(), list, true)
		require.NoError(t, err)
		assert.Len(t, f.faults.Sent(), 2, "131 distinct keys by 100")
		require.Len(t, items, len(list))
		for i := range 130 {
			assert.Equal(t, num(fmt.Sprint(129-i)), items[i]["n"])
		}
		assert.Nil(t, items[130])
		assert.Equal(t, num("7"), items[131]["n"])
		assert.Equal(t, num("7"), items[132]["n"])
		items[131]["n"] = num("0")
		assert.Equal(t, num("7"), items[132]["n"], "each answer is its caller's to change")
		assert.Equal(t, num("7"), items[129-7]["n"])

		none, err := f.BatchGet(t.Context(), nil, false)
		require.NoError(t, err)
		assert.Empty(t, none)
		f.faults.Script()
		_, err = f.BatchGet(t.Context(), []keys.Key{key("p", "1"), key("p", "")}, false)
		assert.ErrorIs(t, err, table.ErrInvalid)
		assert.ErrorContains(t, err, "key 1")
		assert.Empty(t, f.faults.Sent())
	})
}

func TestBatchGet_AsksAgainForWhatWasLeft(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e, eager(3))
		f.put(t, f.item("p", "1", "n", 1), f.item("p", "2", "n", 2))
		list := []keys.Key{key("p", "1"), key("p", "2"), key("p", "none")}

		f.faults.Script(f.leftKeys("2", "none", "1"), f.leftKeys("1", "none"), faulty.Throttle())
		items, err := f.BatchGet(t.Context(), list, true)
		require.NoError(t, err)
		assert.Len(t, f.faults.Sent(), 4)
		assert.Nil(t, items[2])
		assert.Equal(t, num("1"), items[0]["n"], "what was never answered is asked for until it is")

		stuck := f.leftKeys("1", "2", "none")
		f.faults.Script(stuck, stuck, stuck, stuck, stuck)
		items, err = f.BatchGet(t.Context(), list, true)
		var undone *table.UnprocessedError
		require.ErrorAs(t, err, &undone)
		assert.ErrorIs(t, err, table.ErrThrottled)
		assert.ElementsMatch(t, list, undone.Keys)
		assert.Len(t, f.faults.Sent(), 4, "without progress the policy ends it")
		assert.Equal(t, make([]table.Item, 3), items)

		f.faults.Script(f.leftKeys("1", "2", "3", "4", "5"), f.leftKeys("1", "2", "3", "4"), f.leftKeys("1", "2", "3"), f.leftKeys("1", "2"), f.leftKeys("1"))
		_, err = f.BatchGet(t.Context(), []keys.Key{key("p", "1"), key("p", "2"), key("p", "3"), key("p", "4"), key("p", "5"), key("p", "6")}, true)
		require.NoError(t, err, "as long as there is progress, the policy starts anew")
		assert.Len(t, f.faults.Sent(), 6)

		f.faults.Script(f.leftKeys("1", "2"), f.leftKeys("2"), f.leftKeys("2"))
		counted, usage := table.WithUsage(table.WithoutRetry(t.Context()))
		_, err = f.BatchGet(counted, list, true)
		assert.EqualValues(t, 2, usage.Totals().Retries, "what was left was asked for again")
		require.ErrorAs(t, err, &undone)
		require.ErrorIs(t, err, table.ErrThrottled)
		assert.Equal(t, []keys.Key{key("p", "2")}, undone.Keys)
		assert.Len(t, f.faults.Sent(), 3, "without retries, too, it goes on while there is progress, and no longer")

		f.faults.Script(f.leftKeys("2"), faulty.Refuse(400, "AccessDeniedException"))
		_, err = f.BatchGet(t.Context(), list, true)
		require.ErrorAs(t, err, &undone)
		assert.Equal(t, []keys.Key{key("p", "2")}, undone.Keys)
		assert.ErrorIs(t, err, table.ErrDenied)
	})
}

func TestBatchWrite_WritesAllOrTellsWhatNot(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e, eager(3))
		var ops []table.Op
		for i := range 60 {
			ops = append(ops, table.Put(f.item("p", fmt.Sprint(i))))
		}
		f.faults.Script()
		require.NoError(t, f.BatchWrite(t.Context(), ops))
		assert.Len(t, f.faults.Sent(), 3)
		for i := range ops {
			ops[i] = table.Delete(key("p", fmt.Sprint(i)))
		}
		require.NoError(t, f.BatchWrite(t.Context(), ops))
		assert.Empty(t, sortKeys(t, f.Query(t.Context(), table.Query{PK: "p", Consistent: true}), "SortKey"))
		require.NoError(t, f.BatchWrite(t.Context(), nil))

		a, b := table.Put(f.item("p", "a")), table.Put(f.item("p", "b"))
		f.faults.Script(f.leftPuts("b", "a"), faulty.DropReply, f.leftPuts("a"))
		require.NoError(t, f.BatchWrite(t.Context(), []table.Op{a, b}))
		assert.NotNil(t, f.get(t, "p", "a"))

		gone := faulty.Reply(fmt.Sprintf(`{"UnprocessedItems":{%q:[{"DeleteRequest":{"Key":{"PartKey":{"S":"p"},"SortKey":{"S":"a"}}}}]}}`, f.Name()))
		f.faults.Script(gone)
		require.NoError(t, f.BatchWrite(t.Context(), []table.Op{table.Delete(key("p", "a")), b}))
		assert.Nil(t, f.get(t, "p", "a"), "what was left is deleted")
		f.faults.Script(gone, gone, gone, gone)
		var undone *table.UnprocessedError
		require.ErrorAs(t, f.BatchWrite(t.Context(), []table.Op{table.Delete(key("p", "a"))}), &undone)
		assert.Equal(t, []table.Op{table.Delete(key("p", "a"))}, undone.Ops)

		stuck := f.leftPuts("a", "b")
		f.faults.Script(stuck, stuck, stuck, stuck, stuck)
		err := f.BatchWrite(t.Context(), []table.Op{a.With(b)})
		require.ErrorAs(t, err, &undone)
		assert.ErrorIs(t, err, table.ErrThrottled)
		require.Len(t, undone.Ops, 2)
		require.NoError(t, f.BatchWrite(t.Context(), undone.Ops), "what is returned can be sent again")

		f.faults.Script(f.leftPuts("nobody asked for this"))
		require.ErrorAs(t, f.BatchWrite(t.Context(), []table.Op{a}), &undone)

		f.faults.Script()
		for name, bad := range map[string][]table.Op{
			"update":     {table.Update(key("p", "s"), table.Attr("v").Set(1))},
			"check":      {table.Check(key("p", "s"), table.Attr("v").Exists())},
			"condition":  {a.If(table.Attr("v").Exists())},
			"duplicates": {a, b, a},
		} {
			assert.ErrorIs(t, f.BatchWrite(t.Context(), bad), table.ErrInvalid, name)
		}
		assert.Empty(t, f.faults.Sent())
	})
}

func TestBatchGet_EndsWithItsContext(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		cause := errors.New("shutting down")
		ctx, cancel := context.WithCancelCause(t.Context())
		f.faults.Before(func(string) { cancel(cause) })
		f.faults.Script(f.leftPuts("a"))
		err := f.BatchWrite(ctx, []table.Op{table.Put(f.item("p", "a"))})
		var undone *table.UnprocessedError
		require.ErrorAs(t, err, &undone)
		assert.ErrorIs(t, err, context.Canceled)
		assert.ErrorIs(t, err, cause)
		assert.Len(t, undone.Ops, 1)
	})
}
