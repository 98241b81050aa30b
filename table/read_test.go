package table_test

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mortise-go/mortise/internal/engines"
	"github.com/mortise-go/mortise/internal/engines/faulty"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

func sortKeys(t require.TestingT, seq func(func(table.Item, error) bool), attr string) []string {
	var list []string
	for item, err := range seq {
		require.NoError(t, err)
		list = append(list, item[attr].(*types.AttributeValueMemberS).Value)
	}
	return list
}

func TestQuery_ReadsRanges(t *testing.T) {
	all := []string{"a", "a#1", "a#10", "a#2", "a\x00", "b", "b\x00", "é", "\U0010ffff", strings.Repeat("m", 1024)}
	slices.Sort(all)
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		for i, sk := range all {
			// Two rows at each sort key of the index, where keys may repeat.
			f.put(t, f.item("p", sk, "n", i, "g1pk", "p", "g1sk", sk, "l1sk", sk), f.item("p2", sk, "n", i, "g1pk", "p", "g1sk", sk))
		}
		ends := append([]string{"", "A", "a#", "zz", strings.Repeat("m", 1024) + "é", strings.Repeat("m", 1024) + "\x00"}, all...)
		check := func(t require.TestingT, q table.Query, repeat int) {
			attr := map[string]string{"": "SortKey", "gsi1": "g1sk", "lsi1": "l1sk"}[q.Index]
			var want []string
			for _, sk := range all {
				if q.SK.Contains(sk) && (q.SK.Lo != q.SK.Hi || q.SK.Lo == "") {
					for range repeat {
						want = append(want, sk)
					}
				}
			}
			if q.Descending {
				slices.Reverse(want)
			}
			if q.Limit > 0 && len(want) > q.Limit {
				want = want[:q.Limit]
			}
			got := sortKeys(t, f.Query(context.Background(), q), attr)
			require.Equal(t, want, got, "%+v", q)
		}
		for _, r := range []keys.Range{{}, {Lo: "a#", Hi: "b"}, {Lo: "a#1", Hi: "a#10"}, keys.PrefixRange("a#"), {Lo: "b", Hi: "b\x00"}, {Hi: "b"}, {Lo: "b"}, {Lo: "b", Hi: "b"}} {
			for _, descending := range []bool{false, true} {
				check(t, table.Query{PK: "p", SK: r, Descending: descending, Consistent: true}, 1)
				check(t, table.Query{PK: "p", SK: r, Descending: descending, Index: "gsi1"}, 2)
				check(t, table.Query{PK: "p", SK: r, Descending: descending, Index: "lsi1", Consistent: true}, 1)
			}
		}
		rapid.Check(t, func(t *rapid.T) {
			r := keys.Range{Lo: rapid.SampledFrom(ends).Draw(t, "lo"), Hi: rapid.SampledFrom(ends).Draw(t, "hi")}
			if r.Hi != "" && r.Lo > r.Hi {
				r.Lo, r.Hi = r.Hi, r.Lo
			}
			q := table.Query{
				PK: "p", SK: r, Descending: rapid.Bool().Draw(t, "descending"),
				Limit: rapid.IntRange(0, 12).Draw(t, "limit"), PageSize: rapid.IntRange(0, 4).Draw(t, "page"),
				Index: rapid.SampledFrom([]string{"", "gsi1", "lsi1"}).Draw(t, "index"),
			}
			repeat := 1
			if q.Index == "gsi1" {
				repeat = 2
			}
			check(t, q, repeat)
		})
	})
}

func TestQuery_RefusesAReversedRange(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		for name, q := range map[string]table.Query{
			"reversed range":      {PK: "p", SK: keys.Range{Lo: "b", Hi: "a"}},
			"empty partition key": {},
			"long partition key":  {PK: strings.Repeat("x", keys.MaxPK+1)},
			"unknown index":       {PK: "p", Index: "nope"},
			"consistent global":   {PK: "p", Index: "gsi1", Consistent: true},
			"range without key":   {PK: "p", Index: "only-pk", SK: keys.Range{Lo: "a"}},
			"negative limit":      {PK: "p", Limit: -1},
			"negative page size":  {PK: "p", PageSize: -1},
			"bad filter":          {PK: "p", Filter: table.Attr("").Exists()},
		} {
			n := 0
			for item, err := range f.Query(t.Context(), q) {
				n++
				assert.Nil(t, item, name)
				assert.ErrorIs(t, err, table.ErrInvalid, name)
			}
			assert.Equal(t, 1, n, name)
		}
		for name, s := range map[string]table.Scan{
			"unknown index":      {Index: "nope"},
			"consistent global":  {Index: "gsi1", Consistent: true},
			"negative limit":     {Limit: -1},
			"negative page size": {PageSize: -1},
			"segment beyond":     {Segment: 2, Segments: 2},
			"segment of none":    {Segment: 1},
			"negative segment":   {Segment: -1, Segments: 2},
			"too many segments":  {Segments: 1_000_001},
			"bad filter":         {Filter: table.Attr("").Exists()},
		} {
			for _, err := range f.Scan(t.Context(), s) {
				assert.ErrorIs(t, err, table.ErrInvalid, name)
			}
		}
		assert.Empty(t, f.faults.Sent())
	})
}

// DynamoDB refuses such a query. A scan with such a filter would show nothing or, with NotExists, everything.
func TestFilter_NamesOnlyAttributesThatTheIndexHolds(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		f.put(t, f.item("p", "s", "n", 1, "g2pk", "x", "l1sk", "y"))
		ctx := t.Context()
		_, err := e.Client().Query(ctx, &dynamodb.QueryInput{
			TableName: aws.String(f.Schema().Name), IndexName: aws.String("only-pk"), FilterExpression: aws.String("attribute_not_exists(n)"),
			KeyConditionExpression: aws.String("g2pk = :x"), ExpressionAttributeValues: table.Item{":x": str("x")},
		})
		require.ErrorContains(t, err, "Secondary index only-pk does not project one or more filter attributes: [n]")

		for _, filter := range []table.Cond{
			table.Attr("n").NotExists(), table.Attr("n").Field("PartKey").Equal(1), table.Value(1).Equal(table.Attr("n")),
			table.Not(table.And(table.Attr("PartKey").Exists(), table.Attr("n").Size().Less(3))),
		} {
			_, queried := f.QueryPage(ctx, table.Query{Index: "only-pk", PK: "x", Filter: filter})
			_, scanned := f.ScanPage(ctx, table.Scan{Index: "only-pk", Filter: filter})
			for _, err := range []error{queried, scanned} {
				require.ErrorIs(t, err, table.ErrInvalid)
				require.ErrorContains(t, err, `index "only-pk" does not hold attribute "n", which the filter names`)
			}
		}
		require.Eventually(t, func() bool {
			queried := sortKeys(t, f.Query(ctx, table.Query{Index: "only-pk", PK: "x", Filter: table.Attr("SortKey").Equal("s")}), "SortKey")
			scanned := sortKeys(t, f.Scan(ctx, table.Scan{Index: "only-pk", Filter: table.Attr("g2pk").Equal("x")}), "SortKey")
			return len(queried) == 1 && len(scanned) == 1
		}, 10*time.Second, 10*time.Millisecond)
		assert.Len(t, sortKeys(t, f.Query(ctx, table.Query{Index: "lsi1", PK: "p", Filter: table.Attr("n").Equal(1)}), "SortKey"), 1)
	})
}

func TestQuery_GoesAcrossPages(t *testing.T) {
	const rows = 25
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		var want []string
		for i := range rows {
			sk := fmt.Sprintf("%03d", i)
			want = append(want, sk)
			f.put(t, f.item("p", sk, "odd", i%2 == 1, "g2pk", "x"))
		}
		ctx := t.Context()
		f.faults.Script()
		assert.Equal(t, want, sortKeys(t, f.Query(ctx, table.Query{PK: "p", PageSize: 4}), "SortKey"))
		assert.Len(t, f.faults.Sent(), 7, "25 rows by 4")

		f.faults.Script()
		assert.Equal(t, want[:10], sortKeys(t, f.Query(ctx, table.Query{PK: "p", Limit: 10}), "SortKey"))
		assert.Len(t, f.faults.Sent(), 1, "what is limited is asked for at once")

		odd := table.Attr("odd").Equal(true)
		f.faults.Script()
		assert.Equal(t, []string{"001", "003", "005", "007"}, sortKeys(t, f.Query(ctx, table.Query{PK: "p", Limit: 4, Filter: odd}), "SortKey"))
		assert.Len(t, f.faults.Sent(), 1, "a limit does not make filtered pages small")
		assert.Equal(t, []string{"023", "021"}, sortKeys(t, f.Query(ctx, table.Query{PK: "p", Limit: 2, Filter: odd, PageSize: 3, Descending: true}), "SortKey"))

		for item, err := range f.Query(ctx, table.Query{PK: "p", PageSize: 4}) {
			require.NoError(t, err)
			require.Equal(t, str("000"), item["SortKey"])
			break // must not hang or panic
		}
		assert.Len(t, sortKeys(t, f.Query(ctx, table.Query{PK: "x", Index: "only-pk"}), "SortKey"), rows)

		t.Run("page by page", func(t *testing.T) {
			var got []string
			q := table.Query{PK: "p", Limit: 3, Filter: odd}
			for pages := 0; ; pages++ {
				page, err := f.QueryPage(ctx, q)
				require.NoError(t, err)
				require.LessOrEqual(t, len(page.Items), 3, "a filter does not make a page longer than its limit")
				for _, item := range page.Items {
					got = append(got, item["SortKey"].(*types.AttributeValueMemberS).Value)
				}
				if page.Next == nil {
					break
				}
				require.Less(t, pages, rows)
				q.Start = page.Next
			}
			assert.Len(t, got, 12)
			assert.True(t, slices.IsSorted(got))
		})
		t.Run("page by page of an index", func(t *testing.T) {
			got := map[string]bool{}
			q := table.Query{Index: "only-pk", PK: "x", Limit: 4, Filter: table.Attr("PartKey").Equal("p")}
			for {
				page, err := f.QueryPage(ctx, q)
				require.NoError(t, err)
				for _, item := range page.Items {
					got[item["SortKey"].(*types.AttributeValueMemberS).Value] = true
				}
				if q.Start = page.Next; q.Start == nil {
					break
				}
			}
			assert.Len(t, got, rows, "a cut page goes on where it was cut")
		})
	})
}

func TestQuery_EndsAtItsFirstError(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		for i := range 4 {
			f.put(t, f.item("p", fmt.Sprint(i)))
		}
		f.faults.Script(faulty.Pass, faulty.Refuse(400, "AccessDeniedException"))
		var items, errs int
		for item, err := range f.Query(t.Context(), table.Query{PK: "p", PageSize: 2}) {
			if err != nil {
				errs++
				assert.Nil(t, item)
				assert.ErrorIs(t, err, table.ErrDenied)
				continue
			}
			items++
		}
		assert.Equal(t, 2, items)
		assert.Equal(t, 1, errs)
	})
}

func TestScan_SeesEveryItemOnce(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		const rows = 30
		for i := range rows {
			item := f.item(fmt.Sprint("p", i), "s", "n", i)
			if i%3 == 0 {
				item["g2pk"] = str("x")
			}
			f.put(t, item)
		}
		ctx := t.Context()
		distinct := func(s table.Scan) map[string]bool {
			seen := map[string]bool{}
			for _, pk := range sortKeys(t, f.Scan(ctx, s), "PartKey") {
				assert.False(t, seen[pk], "twice: %s", pk)
				seen[pk] = true
			}
			return seen
		}
		assert.Len(t, distinct(table.Scan{}), rows)
		assert.Len(t, distinct(table.Scan{PageSize: 7, Consistent: true}), rows)
		assert.Len(t, distinct(table.Scan{Limit: 11, PageSize: 4}), 11)
		assert.Len(t, distinct(table.Scan{Index: "only-pk"}), 10, "an index holds what has its keys")
		assert.Len(t, distinct(table.Scan{Filter: table.Attr("n").Less(5), PageSize: 3}), 5)
		assert.Len(t, distinct(table.Scan{Filter: table.Attr("n").Less(5), Limit: 2}), 2)

		together := map[string]bool{}
		for segment := range 4 {
			for pk := range distinct(table.Scan{Segment: segment, Segments: 4, PageSize: 3}) {
				assert.False(t, together[pk], "in two segments: %s", pk)
				together[pk] = true
			}
		}
		assert.Len(t, together, rows)
		assert.Len(t, distinct(table.Scan{Segments: 1}), rows)

		s := table.Scan{Limit: 4, Filter: table.Attr("n").AtLeast(0)}
		paged := map[string]bool{}
		for {
			page, err := f.ScanPage(ctx, s)
			require.NoError(t, err)
			for _, item := range page.Items {
				paged[item["PartKey"].(*types.AttributeValueMemberS).Value] = true
			}
			if s.Start = page.Next; s.Start == nil {
				break
			}
		}
		assert.Len(t, paged, rows)
	})
}

// With the race detector.
func TestPages_SeveralGoroutinesCanUseOneSequence(t *testing.T) {
	tbl, err := table.Open(tabletest.New(t).Client(), table.Schema{Name: "app"})
	require.NoError(t, err)
	require.NoError(t, tbl.Ensure(t.Context()))
	const rows = 8
	for i := range rows {
		require.NoError(t, tbl.Write(t.Context(), table.Put(tbl.KeyItem(key("p", fmt.Sprint(i))))))
	}
	for name, seq := range map[string]iter.Seq2[table.Item, error]{
		"query": tbl.Query(t.Context(), table.Query{PK: "p", PageSize: 1}), "scan": tbl.Scan(t.Context(), table.Scan{PageSize: 1}),
	} {
		var group sync.WaitGroup
		for range 4 {
			group.Go(func() {
				n := 0
				for _, err := range seq {
					assert.NoError(t, err, name)
					n++
				}
				assert.Equal(t, rows, n, name)
			})
		}
		group.Wait()
	}
}

func TestTransactGet_AnswersInTheOrderOfItsKeys(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		var ops []table.Op
		var list []keys.Key
		for i := range table.MaxOps - 1 {
			ops = append(ops, table.Put(f.item("p", fmt.Sprint(i), "n", i)))
			list = append(list, key("p", fmt.Sprint(i)))
		}
		require.NoError(t, f.BatchWrite(t.Context(), ops))
		slices.Reverse(list)
		list = append(list, key("p", "missing"), key("p", "7"), key("p", "7"))
		f.faults.Script()
		items, err := f.TransactGet(t.Context(), list)
		require.NoError(t, err)
		assert.Equal(t, []string{"TransactGetItems"}, f.faults.Sent())
		require.Len(t, items, len(list))
		for i := range table.MaxOps - 1 {
			assert.Equal(t, num(fmt.Sprint(table.MaxOps-2-i)), items[i]["n"])
		}
		assert.Nil(t, items[99])
		assert.Equal(t, num("7"), items[100]["n"])
		items[100]["n"] = num("0")
		assert.Equal(t, num("7"), items[101]["n"], "each answer is its caller's to change")

		f.faults.Script()
		none, err := f.TransactGet(t.Context(), nil)
		require.NoError(t, err)
		assert.Empty(t, none)
		_, err = f.TransactGet(t.Context(), append(list, key("p", "another")))
		assert.ErrorIs(t, err, table.ErrInvalid)
		assert.ErrorContains(t, err, "table: transact get: ")
		assert.ErrorContains(t, err, "101 items")
		_, err = f.TransactGet(t.Context(), []keys.Key{key("p", "1"), key("p", "")})
		assert.ErrorIs(t, err, table.ErrInvalid)
		assert.ErrorContains(t, err, "key 1")
		assert.Empty(t, f.faults.Sent())
	})
}

func TestTransactGet_IsRepeated(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e, eager(3))
		f.put(t, f.item("p", "1", "n", 1))
		list := []keys.Key{key("p", "1"), key("p", "2")}
		conflict := faulty.Cancel("TransactionConflict", "None")

		f.faults.Script(conflict, faulty.Throttle(), faulty.DropReply)
		items, err := f.TransactGet(t.Context(), list)
		require.NoError(t, err)
		assert.Equal(t, num("1"), items[0]["n"])
		assert.Nil(t, items[1])
		assert.Len(t, f.faults.Sent(), 4)

		f.faults.Script(conflict, conflict, conflict, conflict)
		items, err = f.TransactGet(t.Context(), list)
		require.ErrorIs(t, err, table.ErrConflict)
		assert.Nil(t, items)
		assert.Len(t, f.faults.Sent(), 4)

		f.faults.Script(faulty.Cancel("ValidationError", "None"))
		_, err = f.TransactGet(t.Context(), list)
		require.ErrorIs(t, err, table.ErrInvalid)
		assert.Len(t, f.faults.Sent(), 1)

		f.faults.Script(faulty.Reply(`{"Responses":[{}]}`))
		items, err = f.TransactGet(t.Context(), list)
		require.Error(t, err, "an answer to another number of keys tells nothing")
		assert.Nil(t, items)
	})
}

// A transaction that writes several items is seen as a whole.
func TestTransactGet_ShowsOneMoment(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		list := []keys.Key{key("p", "a"), key("p", "b")}
		written := make(chan error, 1)
		go func() {
			for i := range 50 {
				if err := f.Write(t.Context(), table.Put(f.item("p", "a", "n", i)), table.Put(f.item("p", "b", "n", i))); err != nil {
					written <- err
					return
				}
			}
			written <- nil
		}()
		for done := false; !done; {
			select {
			case err := <-written:
				require.NoError(t, err)
				done = true
			default:
			}
			items, err := f.TransactGet(t.Context(), list)
			require.NoError(t, err)
			assert.Equal(t, items[0]["n"], items[1]["n"])
		}
	})
}

func TestQuery_ReadsRangesOfNumbers(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		tbl, err := table.Open(e.Client(), table.Schema{Name: e.TableName(t), NoTTL: true, Indexes: []table.Index{
			{Name: "numbers", PK: "group", PKType: table.Number, SK: "rank", SKType: table.Number},
			{Name: "binary", PK: "group", PKType: table.Number, SK: "blob", SKType: table.Binary},
		}})
		require.NoError(t, err)
		require.NoError(t, tbl.Ensure(t.Context()))
		ranks := []float64{-10, -9.5, 0, 1, 2, 10, 1e20}
		for i, rank := range ranks {
			text := strconv.FormatFloat(rank, 'f', -1, 64)
			require.NoError(t, tbl.Write(t.Context(), table.Put(table.Item{
				"pk": &types.AttributeValueMemberS{Value: "p"}, "sk": &types.AttributeValueMemberS{Value: fmt.Sprint(i)},
				"group": &types.AttributeValueMemberN{Value: "7"}, "rank": &types.AttributeValueMemberN{Value: text},
			})))
		}
		read := func(q table.Query) (got []float64) {
			for item, err := range tbl.Query(t.Context(), q) {
				require.NoError(t, err)
				n, err := strconv.ParseFloat(item["rank"].(*types.AttributeValueMemberN).Value, 64)
				require.NoError(t, err)
				got = append(got, n)
			}
			return got
		}
		value := func(bound string, open float64) float64 {
			if bound == "" {
				return open
			}
			n, err := strconv.ParseFloat(bound, 64)
			require.NoError(t, err)
			return n
		}
		for _, lo := range []string{"", "-10", "-9.7", "0", "1.0", "2", "1e20"} {
			for _, hi := range []string{"", "-9.50", "0", "1", "9", "10", "100000000000000000000", "1e21"} {
				least, most := value(lo, -1e30), value(hi, 1e30)
				if least > most {
					continue
				}
				var want []float64
				for _, rank := range ranks {
					if rank >= least && rank < most {
						want = append(want, rank)
					}
				}
				q := table.Query{Index: "numbers", PK: "7.0", SK: keys.Range{Lo: lo, Hi: hi}}
				assert.Equal(t, want, read(q), "from %q until %q", lo, hi)
				if q.Limit = 2; len(want) > 2 {
					want = want[:2]
				}
				q.PageSize = 1
				assert.Equal(t, want, read(q), "from %q until %q, page by page", lo, hi)
			}
		}
		assert.Equal(t, []float64{2}, read(table.Query{Index: "numbers", PK: "7", SK: keys.Range{Lo: "2.00", Hi: "2.00\x00"}}))
		assert.Equal(t, []float64{1, 0}, read(table.Query{Index: "numbers", PK: "7", SK: keys.Range{Lo: "0", Hi: "2"}, Descending: true}))

		for name, q := range map[string]table.Query{
			"no number":            {Index: "numbers", PK: "secret"},
			"infinity":             {Index: "numbers", PK: "Infinity"},
			"a bound":              {Index: "numbers", PK: "7", SK: keys.Range{Lo: "secret"}},
			"another":              {Index: "numbers", PK: "7", SK: keys.Range{Hi: "NaN"}},
			"a value":              {Index: "numbers", PK: "7", SK: keys.Range{Lo: "secret", Hi: "secret\x00"}},
			"bounds the wrong way": {Index: "numbers", PK: "7", SK: keys.Range{Lo: "10", Hi: "9"}},
			"binary":               {Index: "binary", PK: "7"},
		} {
			_, err := tbl.QueryPage(context.Background(), q)
			require.ErrorIs(t, err, table.ErrInvalid, name)
			assert.NotContains(t, err.Error(), "secret", name)
		}
	})
}

// A page from elsewhere is the caller's fault, not the table's.
func TestPages_AStartThatDoesNotFitIsInvalid(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		for name, start := range map[string]table.Item{
			"a key is missing": {"PartKey": str("p")},
			"other keys":       {"other": str("p")},
			"another type":     {"PartKey": str("p"), "SortKey": num("1")},
			"too many keys":    f.item("p", "s", "other", "x"),
		} {
			for call, read := range map[string]func() error{
				"query": func() error { _, err := f.QueryPage(t.Context(), table.Query{PK: "p", Start: start}); return err },
				"scan":  func() error { _, err := f.ScanPage(t.Context(), table.Scan{Start: start}); return err },
			} {
				err := read()
				require.ErrorIs(t, err, table.ErrInvalid, "%s: %s", call, name)
				assert.NotErrorIs(t, err, table.ErrSchema, "%s: %s", call, name)
			}
		}
		start := f.item("p", "s", "g1pk", 1, "g1sk", "s")
		_, err := f.QueryPage(t.Context(), table.Query{Index: "gsi1", PK: "p", Start: start})
		require.ErrorContains(t, err, `Start: attribute "g1pk" is not of type S`)
		require.ErrorIs(t, err, table.ErrInvalid)
	})
}

func TestQueryPage_AtTheEndOfTheRangeIsEmpty(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		for _, sk := range []string{"a", "b", "c", "d"} {
			f.put(t, f.item("p", sk))
		}
		page := func(r keys.Range, descending bool, start string) table.Page {
			p, err := f.QueryPage(t.Context(), table.Query{PK: "p", SK: r, Descending: descending, Start: f.item("p", start)})
			require.NoError(t, err)
			return p
		}
		sent := len(f.faults.Sent())
		for _, r := range []keys.Range{{Lo: "b"}, {Lo: "b", Hi: "d"}, {Lo: "b", Hi: "c"}, {Lo: "b", Hi: "b\x00"}} {
			assert.Equal(t, table.Page{}, page(r, true, "b"), "%v", r)
		}
		for _, r := range []keys.Range{{Hi: "d"}, {Lo: "b", Hi: "d"}, {Lo: "c", Hi: "d"}} {
			assert.Equal(t, table.Page{}, page(r, false, "d"), "%v", r)
		}
		assert.Equal(t, table.Page{}, page(keys.Range{Lo: "b", Hi: "b\x00"}, false, "b"), "a single key")
		assert.Len(t, f.faults.Sent(), sent)
		assert.Len(t, page(keys.Range{Lo: "b", Hi: "d"}, true, "c").Items, 1)
		assert.Len(t, page(keys.Range{Lo: "b", Hi: "d"}, false, "b").Items, 1)
		_, err := f.QueryPage(t.Context(), table.Query{PK: "p", SK: keys.Range{Lo: "b"}, Descending: true, Start: f.item("other", "b")})
		assert.ErrorIs(t, err, table.ErrInvalid)
	})
}

func TestPages_AStartWithoutAValueIsInvalid(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		for _, none := range []types.AttributeValue{nil, (*types.AttributeValueMemberS)(nil)} {
			start := table.Item{"PartKey": str("p"), "SortKey": none}
			_, err := f.QueryPage(t.Context(), table.Query{PK: "p", Start: start})
			assert.ErrorIs(t, err, table.ErrInvalid)
			_, err = f.ScanPage(t.Context(), table.Scan{Start: start})
			assert.ErrorIs(t, err, table.ErrInvalid)
		}
		assert.Empty(t, f.faults.Sent())
	})
}
