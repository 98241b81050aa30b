package contract_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// sortKeys returns the sort keys of items, in order.
func sortKeys(items []map[string]types.AttributeValue) []string {
	keys := []string{}
	for _, it := range items {
		if s, ok := it["sk"].(*types.AttributeValueMemberS); ok {
			keys = append(keys, s.Value)
		}
	}
	return keys
}

// partition returns a query for the partition "p".
func (tb table) partition() *dynamodb.QueryInput {
	return &dynamodb.QueryInput{
		TableName: tb.name, KeyConditionExpression: ptr("pk = :p"), ExpressionAttributeValues: values(document{"p": "p"}),
	}
}

func TestQuery_ReadsWhatTheKeyConditionSelects(t *testing.T) {
	type d = document
	for _, tc := range []struct {
		name, condition string
		values          document
		want            []string
	}{
		{"partition only, in order of bytes", "pk = :p", d{"p": "p"}, []string{"B", "a1", "a2", "b", "é"}},
		{"equal", "pk = :p AND sk = :v", d{"p": "p", "v": "a1"}, []string{"a1"}},
		{"less", "pk = :p AND sk < :v", d{"p": "p", "v": "a2"}, []string{"B", "a1"}},
		{"at most", "pk = :p AND sk <= :v", d{"p": "p", "v": "a2"}, []string{"B", "a1", "a2"}},
		{"greater", "pk = :p AND sk > :v", d{"p": "p", "v": "a2"}, []string{"b", "é"}},
		{"at least", "sk >= :v AND pk = :p", d{"p": "p", "v": "a2"}, []string{"a2", "b", "é"}},
		{"between", "pk = :p AND sk BETWEEN :v AND :w", d{"p": "p", "v": "a", "w": "b"}, []string{"a1", "a2", "b"}},
		{"prefix", "pk = :p AND begins_with(sk, :v)", d{"p": "p", "v": "a"}, []string{"a1", "a2"}},
		{"less, exchanged", ":p = pk AND :v > sk", d{"p": "p", "v": "a2"}, []string{"B", "a1"}},
		{"at most, exchanged", "pk = :p AND (:v) >= sk", d{"p": "p", "v": "a2"}, []string{"B", "a1", "a2"}},
		{"greater, exchanged", "pk = :p AND :v < sk", d{"p": "p", "v": "a2"}, []string{"b", "é"}},
		{"at least, exchanged", "pk = :p AND :v <= sk", d{"p": "p", "v": "a2"}, []string{"a2", "b", "é"}},
		{"nothing there", "pk = :p", d{"p": "q"}, []string{}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			onTable(t, func(tb table) {
				for _, sk := range []string{"é", "b", "a2", "B", "a1"} {
					tb.put(sk, nil)
				}
				out, err := tb.Query(tb.ctx(), &dynamodb.QueryInput{TableName: tb.name, KeyConditionExpression: &tc.condition, ExpressionAttributeValues: values(tc.values)})
				require.NoError(tb, err)
				assert.Equal(tb, tc.want, sortKeys(out.Items))
				assert.EqualValues(tb, len(tc.want), out.Count)
				assert.EqualValues(tb, len(tc.want), out.ScannedCount)
				assert.Empty(tb, out.LastEvaluatedKey)
			})
		})
	}
}

func TestQuery_ReadsBackwards(t *testing.T) {
	onTable(t, func(tb table) {
		for _, sk := range []string{"a", "b", "c"} {
			tb.put(sk, nil)
		}
		in := tb.partition()
		in.ScanIndexForward = aws.Bool(false)
		out, err := tb.Query(tb.ctx(), in)
		require.NoError(tb, err)
		assert.Equal(tb, []string{"c", "b", "a"}, sortKeys(out.Items))
	})
}

func TestQuery_TakesLegacyConditionsAndAFilterExpression(t *testing.T) {
	// The combination that guregu/dynamo sends.
	onTable(t, func(tb table) {
		tb.put("a1", document{"x": 1})
		tb.put("a2", document{"x": 2})
		tb.put("b", document{"x": 2})
		out, err := tb.Query(tb.ctx(), &dynamodb.QueryInput{
			TableName: tb.name,
			KeyConditions: map[string]types.Condition{
				"pk": {ComparisonOperator: types.ComparisonOperatorEq, AttributeValueList: []types.AttributeValue{value("p")}},
				"sk": {ComparisonOperator: types.ComparisonOperatorBeginsWith, AttributeValueList: []types.AttributeValue{value("a")}},
			},
			FilterExpression: ptr("x = :x"), ExpressionAttributeValues: values(document{"x": 2}),
		})
		require.NoError(tb, err)
		assert.Equal(tb, []string{"a2"}, sortKeys(out.Items))
		assert.EqualValues(tb, 2, out.ScannedCount)
		for op, want := range map[types.ComparisonOperator][]string{"EQ": {"a2"}, "LT": {"a1"}, "LE": {"a1", "a2"}, "GE": {"a2", "b"}, "GT": {"b"}} {
			out, err := tb.Query(tb.ctx(), &dynamodb.QueryInput{TableName: tb.name, KeyConditions: map[string]types.Condition{
				"pk": condition("EQ", "p"), "sk": condition(op, "a2"),
			}})
			require.NoError(tb, err)
			assert.Equal(tb, want, sortKeys(out.Items), op)
		}
	})
}

func TestQuery_PagesByLimit(t *testing.T) {
	for _, forward := range []bool{true, false} {
		t.Run(fmt.Sprint("forward ", forward), func(t *testing.T) {
			onTable(t, func(tb table) {
				want := []string{"a", "b", "c", "d", "e"}
				for _, sk := range want {
					tb.put(sk, nil)
				}
				if !forward {
					want = []string{"e", "d", "c", "b", "a"}
				}
				in := tb.partition()
				in.Limit, in.ScanIndexForward = aws.Int32(2), &forward
				var got []string
				pages := 0
				for {
					out, err := tb.Query(tb.ctx(), in)
					require.NoError(tb, err)
					pages++
					got = append(got, sortKeys(out.Items)...)
					if in.ExclusiveStartKey = out.LastEvaluatedKey; in.ExclusiveStartKey == nil {
						break
					}
					same(tb, key(got[len(got)-1]), out.LastEvaluatedKey)
				}
				assert.Equal(tb, want, got)
				assert.Equal(tb, 3, pages)
			})
		})
	}
}

func TestQuery_LimitCountsBeforeTheFilter(t *testing.T) {
	onTable(t, func(tb table) {
		for i := range 4 {
			tb.put(fmt.Sprint(i), document{"x": i})
		}
		in := tb.partition()
		in.FilterExpression, in.Limit = ptr("x >= :x"), aws.Int32(3)
		in.ExpressionAttributeValues = values(document{"p": "p", "x": 2})
		out, err := tb.Query(tb.ctx(), in)
		require.NoError(tb, err)
		assert.Equal(tb, []string{"2"}, sortKeys(out.Items))
		assert.EqualValues(tb, 1, out.Count)
		assert.EqualValues(tb, 3, out.ScannedCount)
		same(tb, key("2"), out.LastEvaluatedKey)
	})
}

func TestQuery_LimitThatIsReachedExactlyStillHasALastKey(t *testing.T) {
	onTable(t, func(tb table) {
		tb.put("a", nil)
		in := tb.partition()
		in.Limit = aws.Int32(1)
		out, err := tb.Query(tb.ctx(), in)
		require.NoError(tb, err)
		require.NotEmpty(tb, out.LastEvaluatedKey)
		in.ExclusiveStartKey = out.LastEvaluatedKey
		out, err = tb.Query(tb.ctx(), in)
		require.NoError(tb, err)
		assert.Empty(tb, out.Items)
		assert.Empty(tb, out.LastEvaluatedKey)
	})
}

// Nothing can follow the bound of <=, >= and BETWEEN, so a query neither stops there nor goes on from there. This holds for tables only,
// as several items of an index can have the same key.
func TestQuery_IsCompleteAtTheBoundOfItsCondition(t *testing.T) {
	for _, tc := range []struct {
		condition string
		forward   bool
		want      []string
		complete  bool
	}{
		{"sk <= :to", true, []string{"a", "b", "c"}, true},
		{"sk >= :from", false, []string{"d", "c", "b"}, true},
		{"sk BETWEEN :from AND :to", true, []string{"b", "c"}, true},
		{"sk BETWEEN :from AND :to", false, []string{"c", "b"}, true},
		{"sk <= :to", false, []string{"c", "b", "a"}, false},
		{"sk >= :from", true, []string{"b", "c", "d"}, false},
		{"sk < :to", true, []string{"a", "b"}, false},
		{"sk > :from", false, []string{"d", "c"}, false},
		{"sk = :to", true, []string{"c"}, false},
		{"begins_with(sk, :to)", false, []string{"c"}, false},
	} {
		t.Run(fmt.Sprint(tc.condition, " forward ", tc.forward), func(t *testing.T) {
			onTable(t, func(tb table) {
				for _, sk := range []string{"a", "b", "c", "d"} {
					tb.put(sk, document{"lsk": sk})
				}
				operands := document{"p": "p"}
				for name, value := range map[string]string{"from": "b", "to": "c"} {
					if strings.Contains(tc.condition, ":"+name) {
						operands[name] = value
					}
				}
				in := &dynamodb.QueryInput{
					TableName: tb.name, KeyConditionExpression: ptr("pk = :p AND " + tc.condition), ExpressionAttributeValues: values(operands),
					ScanIndexForward: &tc.forward, Limit: aws.Int32(int32(len(tc.want))),
				}
				last := tc.want[len(tc.want)-1]
				out, err := tb.Query(tb.ctx(), in)
				require.NoError(tb, err)
				assert.Equal(tb, tc.want, sortKeys(out.Items))
				assert.Equal(tb, tc.complete, len(out.LastEvaluatedKey) == 0)
				in.ExclusiveStartKey = key(last)
				out, err = tb.Query(tb.ctx(), in)
				if tc.complete {
					tb.exactly(err, "ValidationException", "The provided starting key does not match the range key predicate", "The provided starting key does not match the range key predicate")
				} else {
					require.NoError(tb, err)
					assert.Empty(tb, out.Items)
				}

				in.IndexName, in.ExclusiveStartKey = ptr("lsi"), nil
				in.KeyConditionExpression = ptr(strings.ReplaceAll(*in.KeyConditionExpression, "sk", "lsk"))
				out, err = tb.Query(tb.ctx(), in)
				require.NoError(tb, err)
				assert.Equal(tb, tc.want, sortKeys(out.Items))
				require.NotEmpty(tb, out.LastEvaluatedKey, "of an index")
				in.ExclusiveStartKey = out.LastEvaluatedKey
				out, err = tb.Query(tb.ctx(), in)
				require.NoError(tb, err)
				assert.Empty(tb, out.Items)
			})
		})
	}
}

func TestQuery_GoesOnAfterAKeyThatIsGone(t *testing.T) {
	onTable(t, func(tb table) {
		tb.put("a", nil)
		tb.put("c", nil)
		in := tb.partition()
		in.ExclusiveStartKey = key("b")
		out, err := tb.Query(tb.ctx(), in)
		require.NoError(tb, err)
		assert.Equal(tb, []string{"c"}, sortKeys(out.Items))
	})
}

func TestQuery_PagesByOneMegabyte(t *testing.T) {
	onTable(t, func(tb table) {
		for i := range 4 {
			tb.put(fmt.Sprint(i), document{"x": strings.Repeat("x", 350_000)})
		}
		out, err := tb.Query(tb.ctx(), tb.partition())
		require.NoError(tb, err)
		assert.Equal(tb, []string{"0", "1", "2"}, sortKeys(out.Items))
		in := tb.partition()
		in.ExclusiveStartKey = out.LastEvaluatedKey
		out, err = tb.Query(tb.ctx(), in)
		require.NoError(tb, err)
		assert.Equal(tb, []string{"3"}, sortKeys(out.Items))
		assert.Empty(tb, out.LastEvaluatedKey)
	})
}

// The page of a local index also ends after 1 MB of items that the query reads from the table.
func TestQuery_PagesByOneMegabyteOfFetchedItems(t *testing.T) {
	onTable(t, func(tb table) {
		for i := range 6 {
			tb.put(fmt.Sprint(i), document{"lsk": fmt.Sprint(i), "fill": strings.Repeat("x", 300<<10)})
		}
		in := tb.partition()
		in.IndexName, in.Select = ptr("lsi"), types.SelectAllAttributes
		out, err := tb.Query(tb.ctx(), in)
		require.NoError(tb, err)
		assert.Equal(tb, []string{"0", "1", "2", "3"}, sortKeys(out.Items))
		in.ExclusiveStartKey = out.LastEvaluatedKey
		out, err = tb.Query(tb.ctx(), in)
		require.NoError(tb, err)
		assert.Equal(tb, []string{"4", "5"}, sortKeys(out.Items))
		assert.Empty(tb, out.LastEvaluatedKey)
	})
}

// Each item that is read from the table counts as whole blocks of 4 KB, and the entries of the index do together.
func TestQuery_FetchedItemsCountAsWholeBlocks(t *testing.T) {
	onTable(t, func(tb table) {
		for i := range 260 {
			tb.put(fmt.Sprintf("%03d", i), document{"lsk": fmt.Sprintf("%03d", i), "extra": 1})
		}
		in := tb.partition()
		in.IndexName, in.ProjectionExpression = ptr("lsi"), ptr("sk, extra")
		out, err := tb.Query(tb.ctx(), in)
		require.NoError(tb, err)
		if tb.local() { // it counts bytes
			assert.EqualValues(tb, 260, out.Count)
			return
		}
		assert.EqualValues(tb, 255, out.Count, "256 blocks, of which one holds the entries of 14 bytes each")
	})
}

func TestQuery_CountsWithoutItems(t *testing.T) {
	onTable(t, func(tb table) {
		tb.put("a", document{"x": 1})
		tb.put("b", nil)
		in := tb.partition()
		in.Select, in.FilterExpression = types.SelectCount, ptr("attribute_exists(x)")
		out, err := tb.Query(tb.ctx(), in)
		require.NoError(tb, err)
		assert.Empty(tb, out.Items)
		assert.EqualValues(tb, 1, out.Count)
		assert.EqualValues(tb, 2, out.ScannedCount)
	})
}

func TestProjection_KeepsTheShape(t *testing.T) {
	onTable(t, func(tb table) {
		tb.put("i", document{"a": 1, "m": document{"k": 1, "q": 2, "l": list{"x", "y", "z"}}, "l": list{0, document{"v": 1, "w": 2}}})
		out, err := tb.GetItem(tb.ctx(), &dynamodb.GetItemInput{
			TableName: tb.name, Key: key("i"), ProjectionExpression: ptr("#a, m.k, m.l[2], m.l[0], l[1].v, l[9], q.r"), ExpressionAttributeNames: names("#a", "a"),
		})
		require.NoError(tb, err)
		same(tb, item(document{"a": 1, "m": document{"k": 1, "l": list{"x", "z"}}, "l": list{document{"v": 1}}}), out.Item)
	})
}

func TestGet_OfNothingReturnsNothing(t *testing.T) {
	onTable(t, func(tb table) {
		out, err := tb.GetItem(tb.ctx(), &dynamodb.GetItemInput{TableName: tb.name, Key: key("i"), ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal})
		require.NoError(tb, err)
		assert.Nil(tb, out.Item)
	})
}

func TestGlobalIndex_IsSparseAndSorted(t *testing.T) {
	onTable(t, func(tb table) {
		tb.put("a", document{"gpk": "g", "gsk": 10})
		tb.put("b", document{"gpk": "g", "gsk": 9})
		tb.put("c", document{"gpk": "g"})
		tb.put("d", document{"gsk": 1})
		in := &dynamodb.QueryInput{TableName: tb.name, IndexName: ptr("gsi"), KeyConditionExpression: ptr("gpk = :g"), ExpressionAttributeValues: values(document{"g": "g"})}
		out, err := tb.Query(tb.ctx(), in)
		require.NoError(tb, err)
		assert.Equal(tb, []string{"b", "a"}, sortKeys(out.Items), "numbers in order, rows without a key left out")

		// An update moves a row into, within and out of the index.
		for _, change := range []struct {
			update string
			want   []string
		}{{"SET gsk = :n", []string{"c", "b", "a"}}, {"REMOVE gpk", []string{"b", "a"}}} {
			up := &dynamodb.UpdateItemInput{TableName: tb.name, Key: key("c"), UpdateExpression: &change.update}
			if strings.Contains(change.update, ":n") {
				up.ExpressionAttributeValues = values(document{"n": 1})
			}
			_, err = tb.UpdateItem(tb.ctx(), up)
			require.NoError(tb, err)
			out, err = tb.Query(tb.ctx(), in)
			require.NoError(tb, err)
			assert.Equal(tb, change.want, sortKeys(out.Items))
		}
		_, err = tb.DeleteItem(tb.ctx(), &dynamodb.DeleteItemInput{TableName: tb.name, Key: key("a")})
		require.NoError(tb, err)
		out, err = tb.Query(tb.ctx(), in)
		require.NoError(tb, err)
		assert.Equal(tb, []string{"b"}, sortKeys(out.Items))
	})
}

func TestIndex_SortsNumbersOfAnySize(t *testing.T) {
	onTable(t, func(tb table) {
		want := []string{"-9e125", "-1e125", "-5", "-1e-130", "0", "1e-130", "5", "1e125", "9e125"}
		for _, i := range []int{3, 8, 0, 5, 1, 7, 2, 6, 4} {
			tb.put(want[i], document{"gpk": "g", "gsk": number(want[i])})
		}
		out, err := tb.Query(tb.ctx(), &dynamodb.QueryInput{TableName: tb.name, IndexName: ptr("gsi"), KeyConditionExpression: ptr("gpk = :g"), ExpressionAttributeValues: values(document{"g": "g"})})
		require.NoError(tb, err)
		assert.Equal(tb, want, sortKeys(out.Items))
	})
}

func TestIndex_HasWhatItProjects(t *testing.T) {
	onTable(t, func(tb table) {
		tb.put("a", document{"gpk": "g", "gsk": 1, "lsk": "l", "inc": 1, "x": 2})
		for _, tc := range []struct {
			index, condition string
			values           document
			want             document
		}{
			{"gsi", "gpk = :v", document{"v": "g"}, document{"gpk": "g", "gsk": 1, "lsk": "l", "inc": 1, "x": 2}},
			{"keys", "gpk = :v", document{"v": "g"}, document{"gpk": "g"}},
			{"lsi", "pk = :v", document{"v": "p"}, document{"lsk": "l", "inc": 1}},
		} {
			out, err := tb.Query(tb.ctx(), &dynamodb.QueryInput{TableName: tb.name, IndexName: &tc.index, KeyConditionExpression: &tc.condition, ExpressionAttributeValues: values(tc.values)})
			require.NoError(tb, err)
			require.Len(tb, out.Items, 1, tc.index)
			same(tb, keyed("a", tc.want), out.Items[0])
		}
		// A local index fetches the rest from the table, a global one cannot.
		out, err := tb.Query(tb.ctx(), &dynamodb.QueryInput{TableName: tb.name, IndexName: ptr("lsi"), Select: types.SelectAllAttributes, KeyConditionExpression: ptr("pk = :p"), ExpressionAttributeValues: values(document{"p": "p"})})
		require.NoError(tb, err)
		same(tb, keyed("a", document{"gpk": "g", "gsk": 1, "lsk": "l", "inc": 1, "x": 2}), out.Items[0])
		_, err = tb.Query(tb.ctx(), &dynamodb.QueryInput{TableName: tb.name, IndexName: ptr("keys"), Select: types.SelectAllAttributes, KeyConditionExpression: ptr("gpk = :g"), ExpressionAttributeValues: values(document{"g": "g"})})
		tb.refused(err, "Select type ALL_ATTRIBUTES is not supported for global secondary index keys because its projection type is not ALL")
	})
}

// The filter of a scan sees an index's items as they are in the index. DynamoDB Local shows it the whole items of the table.
func TestIndex_ScanFiltersByWhatItProjects(t *testing.T) {
	onTable(t, func(tb table) {
		tb.put("a", document{"gpk": "g", "lsk": "l", "inc": 1, "x": 2})
		for _, index := range []string{"keys", "lsi"} {
			for filter, want := range map[string]struct{ service, local int32 }{
				"attribute_exists(x)":                           {0, 1},
				"attribute_not_exists(x)":                       {1, 0},
				"attribute_exists(x) AND attribute_exists(gpk)": {0, 1},
				"attribute_exists(pk)":                          {1, 1},
			} {
				out, err := tb.Scan(tb.ctx(), &dynamodb.ScanInput{TableName: tb.name, IndexName: &index, FilterExpression: &filter})
				require.NoError(tb, err)
				assert.EqualValues(tb, 1, out.ScannedCount)
				if tb.local() {
					want.service = want.local
				}
				assert.Equal(tb, want.service, out.Count, "%s: %s", index, filter)
			}
			in := &dynamodb.ScanInput{TableName: tb.name, IndexName: &index, ScanFilter: map[string]types.Condition{"x": {ComparisonOperator: types.ComparisonOperatorNotNull}}}
			out, err := tb.Scan(tb.ctx(), in)
			require.NoError(tb, err)
			assert.Equal(tb, tb.local(), out.Count == 1, "%s: ScanFilter", index)
		}
		// All attributes of a local index come from the table, so its filter sees them.
		out, err := tb.Scan(tb.ctx(), &dynamodb.ScanInput{TableName: tb.name, IndexName: ptr("lsi"), Select: types.SelectAllAttributes, FilterExpression: ptr("attribute_exists(x)")})
		require.NoError(tb, err)
		same(tb, keyed("a", document{"gpk": "g", "lsk": "l", "inc": 1, "x": 2}), out.Items[0])
	})
}

func TestIndex_PagesCarryBothKeys(t *testing.T) {
	onTable(t, func(tb table) {
		for i := range 3 {
			tb.put(fmt.Sprint(i), document{"gpk": "g", "gsk": i})
		}
		in := &dynamodb.QueryInput{TableName: tb.name, IndexName: ptr("gsi"), Limit: aws.Int32(2), KeyConditionExpression: ptr("gpk = :g"), ExpressionAttributeValues: values(document{"g": "g"})}
		out, err := tb.Query(tb.ctx(), in)
		require.NoError(tb, err)
		same(tb, keyed("1", document{"gpk": "g", "gsk": 1}), out.LastEvaluatedKey)
		in.ExclusiveStartKey = out.LastEvaluatedKey
		out, err = tb.Query(tb.ctx(), in)
		require.NoError(tb, err)
		assert.Equal(tb, []string{"2"}, sortKeys(out.Items))
	})
}

func TestQuery_RefusesBadRequests(t *testing.T) {
	type d = document
	for _, tc := range []struct {
		name string
		in   dynamodb.QueryInput
		text string
	}{
		{"without condition", dynamodb.QueryInput{}, "Either the KeyConditions or KeyConditionExpression parameter must be specified in the request."},
		{"range on the partition key", dynamodb.QueryInput{KeyConditionExpression: ptr("pk > :p"), ExpressionAttributeValues: values(d{"p": "p"})}, "Query key condition not supported"},
		{"without the partition key", dynamodb.QueryInput{KeyConditionExpression: ptr("sk = :p"), ExpressionAttributeValues: values(d{"p": "p"})}, "Query condition missed key schema element"},
		{"or", dynamodb.QueryInput{KeyConditionExpression: ptr("pk = :p OR pk = :q"), ExpressionAttributeValues: values(d{"p": "p", "q": "q"})}, "Invalid operator used in KeyConditionExpression: OR"},
		{"not equal", dynamodb.QueryInput{KeyConditionExpression: ptr("pk = :p AND sk <> :p"), ExpressionAttributeValues: values(d{"p": "p"})}, "Invalid operator used in KeyConditionExpression: <>"},
		{"another function", dynamodb.QueryInput{KeyConditionExpression: ptr("pk = :p AND contains(sk, :p)"), ExpressionAttributeValues: values(d{"p": "p"})}, "Invalid operator used in KeyConditionExpression: contains"},
		{"no attribute", dynamodb.QueryInput{KeyConditionExpression: ptr("pk = :p AND :q = :p"), ExpressionAttributeValues: values(d{"p": "p", "q": "q"})}, "Invalid condition in KeyConditionExpression: No key attribute specified"},
		{"two attributes", dynamodb.QueryInput{KeyConditionExpression: ptr("pk = :p AND sk > pk"), ExpressionAttributeValues: values(d{"p": "p"})}, "Invalid condition in KeyConditionExpression: Multiple attribute names used in one condition"},
		{"key as bound", dynamodb.QueryInput{KeyConditionExpression: ptr("pk = :p AND :p BETWEEN sk AND :q"), ExpressionAttributeValues: values(d{"p": "p", "q": "q"})}, "Invalid condition in KeyConditionExpression: BETWEEN operator must have the key attribute as its first operand"},
		{"key as prefix", dynamodb.QueryInput{KeyConditionExpression: ptr("pk = :p AND begins_with(:p, sk)"), ExpressionAttributeValues: values(d{"p": "p"})}, "Invalid condition in KeyConditionExpression: begins_with operator must have the key attribute as its first operand"},
		{"another attribute", dynamodb.QueryInput{KeyConditionExpression: ptr("pk = :p AND x = :p"), ExpressionAttributeValues: values(d{"p": "p"})}, "Query condition missed key schema element"},
		{"key of wrong type", dynamodb.QueryInput{KeyConditionExpression: ptr("pk = :p"), ExpressionAttributeValues: values(d{"p": 1})}, "Condition parameter type does not match schema type"},
		{"filter on a key", dynamodb.QueryInput{KeyConditionExpression: ptr("pk = :p"), FilterExpression: ptr("sk = :p"), ExpressionAttributeValues: values(d{"p": "p"})}, "Filter Expression can only contain non-primary key attributes: Primary key attribute: sk"},
		{"invalid filter", dynamodb.QueryInput{KeyConditionExpression: ptr("pk = :p"), FilterExpression: ptr("x ="), ExpressionAttributeValues: values(d{"p": "p"})}, `Invalid FilterExpression: Syntax error; token: "<EOF>", near: "="`},
		{"invalid projection", dynamodb.QueryInput{KeyConditionExpression: ptr("pk = :p"), ProjectionExpression: ptr("x, x.y"), ExpressionAttributeValues: values(d{"p": "p"})}, "Invalid ProjectionExpression: Two document paths overlap with each other"},
		{"unused value", dynamodb.QueryInput{KeyConditionExpression: ptr("pk = :p"), ExpressionAttributeValues: values(d{"p": "p", "q": "q"})}, "Value provided in ExpressionAttributeValues unused in expressions: keys: {:q}"},
		{"names without expressions", dynamodb.QueryInput{ExpressionAttributeNames: names("#p", "pk")}, "ExpressionAttributeNames can only be specified when using expressions"},
		{"values without expressions", dynamodb.QueryInput{ProjectionExpression: ptr("x"), ExpressionAttributeValues: values(d{"p": "p"})}, "ExpressionAttributeValues can only be specified when using expressions: FilterExpression and KeyConditionExpression are null"},
		{"specific attributes without a projection", dynamodb.QueryInput{KeyConditionExpression: ptr("pk = :p"), Select: types.SelectSpecificAttributes, ExpressionAttributeValues: values(d{"p": "p"})}, "Must specify the AttributesToGet or ProjectionExpression when choosing to get SPECIFIC_ATTRIBUTES"},
		{"attribute that a global index does not have", dynamodb.QueryInput{IndexName: ptr("keys"), KeyConditionExpression: ptr("gpk = :p"), ProjectionExpression: ptr("sk, x.y"), ExpressionAttributeValues: values(d{"p": "p"})}, "One or more parameter values were invalid: Global secondary index keys does not project [x]"},
		{"start in another partition within the range", dynamodb.QueryInput{ExclusiveStartKey: item(d{"pk": "q", "sk": "b"}), KeyConditionExpression: ptr("pk = :p AND sk > :a"), ExpressionAttributeValues: values(d{"p": "p", "a": "a"})}, "The query can return at most one row and cannot be restarted | does not match the range key predicate"},
		{"limit of zero", dynamodb.QueryInput{KeyConditionExpression: ptr("pk = :p"), Limit: ptr(int32(0)), ExpressionAttributeValues: values(d{"p": "p"})}, "greater than or equal to 1"},
		{"unknown index", dynamodb.QueryInput{IndexName: ptr("none"), KeyConditionExpression: ptr("pk = :p"), ExpressionAttributeValues: values(d{"p": "p"})}, "The table does not have the specified index: none"},
		{"consistent read of a global index", dynamodb.QueryInput{IndexName: ptr("gsi"), ConsistentRead: ptr(true), KeyConditionExpression: ptr("gpk = :p"), ExpressionAttributeValues: values(d{"p": "p"})}, "Consistent reads are not supported on global secondary indexes"},
		{"start key of another shape", dynamodb.QueryInput{ExclusiveStartKey: item(d{"pk": "p"}), KeyConditionExpression: ptr("pk = :p"), ExpressionAttributeValues: values(d{"p": "p"})}, "The provided starting key is invalid | xclusive Start Key must have same size as table's key schema"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			onTable(t, func(tb table) {
				tb.put("a", nil)
				in := tc.in
				in.TableName = tb.name
				_, err := tb.Query(tb.ctx(), &in)
				tb.refused(err, tc.text)
			})
		})
	}
}

func TestScan_RefusesBadRequests(t *testing.T) {
	type d = document
	onTable(t, func(tb table) {
		for _, tc := range []struct {
			in   dynamodb.ScanInput
			text string
		}{
			{dynamodb.ScanInput{ExpressionAttributeNames: names("#p", "pk")}, "ExpressionAttributeNames can only be specified when using expressions"},
			{dynamodb.ScanInput{ProjectionExpression: ptr("x"), ExpressionAttributeValues: values(d{"p": "p"})}, "ExpressionAttributeValues can only be specified when using expressions: FilterExpression is null"},
			{dynamodb.ScanInput{AttributesToGet: []string{"x"}, FilterExpression: ptr("")}, "Can not use both expression and non-expression parameters in the same request: Non-expression parameters: {AttributesToGet} Expression parameters: {FilterExpression} | Invalid FilterExpression: The expression can not be empty;"},
			{dynamodb.ScanInput{ExclusiveStartKey: item(d{"pk": "p", "sk": stringSet{}}), FilterExpression: ptr("x")}, "The provided starting key is invalid: One or more parameter values were invalid: An string set  may not be empty | Invalid FilterExpression: Syntax error"},
			{dynamodb.ScanInput{IndexName: ptr("keys"), ProjectionExpression: ptr("sk, x.y")}, "One or more parameter values were invalid: Global secondary index keys does not project [x]"},
		} {
			tc.in.TableName = tb.name
			_, err := tb.Scan(tb.ctx(), &tc.in)
			tb.refused(err, tc.text)
		}
		for names, text := range map[string]string{
			`"ExpressionAttributeNames":{},"ExpressionAttributeValues":{}`: "ExpressionAttributeNames must not be empty",
			`"ExpressionAttributeValues":{}`:                               "ExpressionAttributeValues must not be empty",
		} {
			tb.refused(tb.raw("Scan", `{"TableName":"TABLE","FilterExpression":"",`+names+`}`), text)
		}
	})
}

func TestScan_SegmentsCoverTheTableOnce(t *testing.T) {
	onTable(t, func(tb table) {
		const rows, segments = 40, 4
		for i := range rows {
			_, err := tb.PutItem(tb.ctx(), &dynamodb.PutItemInput{TableName: tb.name, Item: item(document{"pk": fmt.Sprint(i), "sk": fmt.Sprint(i)})})
			require.NoError(tb, err)
		}
		seen := map[string]int{}
		for s := range int32(segments) {
			in := &dynamodb.ScanInput{TableName: tb.name, Segment: &s, TotalSegments: aws.Int32(segments), Limit: aws.Int32(3)}
			for {
				out, err := tb.Scan(tb.ctx(), in)
				require.NoError(tb, err)
				for _, sk := range sortKeys(out.Items) {
					seen[sk]++
				}
				if in.ExclusiveStartKey = out.LastEvaluatedKey; in.ExclusiveStartKey == nil {
					break
				}
			}
		}
		assert.Len(tb, seen, rows)
		for sk, n := range seen {
			assert.Equal(tb, 1, n, sk)
		}
	})
}

func TestScan_FilterMaySeeKeys(t *testing.T) {
	onTable(t, func(tb table) {
		tb.put("a", nil)
		tb.put("b", nil)
		out, err := tb.Scan(tb.ctx(), &dynamodb.ScanInput{TableName: tb.name, FilterExpression: ptr("sk > :v"), ExpressionAttributeValues: values(document{"v": "a"})})
		require.NoError(tb, err)
		assert.Equal(tb, []string{"b"}, sortKeys(out.Items))
		assert.EqualValues(tb, 2, out.ScannedCount)
	})
}

func TestScan_GoesOnOnlyInItsSegment(t *testing.T) {
	onTable(t, func(tb table) {
		in := &dynamodb.ScanInput{TableName: tb.name, Segment: ptr(int32(0)), TotalSegments: ptr(int32(2)), Limit: ptr(int32(1))}
		for i := 0; in.ExclusiveStartKey == nil; i++ {
			_, err := tb.PutItem(tb.ctx(), &dynamodb.PutItemInput{TableName: tb.name, Item: item(document{"pk": fmt.Sprint(i), "sk": "s"})})
			require.NoError(tb, err)
			out, err := tb.Scan(tb.ctx(), in)
			require.NoError(tb, err)
			in.ExclusiveStartKey = out.LastEvaluatedKey
		}
		in.Segment = ptr(int32(1))
		_, err := tb.Scan(tb.ctx(), in)
		tb.refused(err, "The provided starting key is invalid: Invalid ExclusiveStartKey. Please use ExclusiveStartKey with correct Segment. TotalSegments: 2 Segment: 1 | Exclusive start key must lie within the segment")
	})
}

// A query refuses the keys that it reads by in its filter, with or without a path. Dynalite's tests have the texts and their order from
// the service; DynamoDB Local looks for paths into keys first.
func TestFilter_AndKeyConditionsHaveNoPathsIntoKeys(t *testing.T) {
	const scalars = "Key attributes must be scalars; list random access '[]' and map lookup '.' are not allowed: "
	onTable(t, func(tb table) {
		const keys = "Filter Expression can only contain non-primary key attributes: Primary key attribute: "
		for filter, text := range map[string]struct{ scan, query string }{
			"sk.a = :p":   {scalars + "Key: sk", keys + "sk"},
			"pk[1] = :p":  {scalars + "Key: pk", keys + "pk"},
			"gpk[0] = :p": {scalars + "IndexKey: gpk", scalars + "IndexKey: gpk"},
		} {
			_, err := tb.Scan(tb.ctx(), &dynamodb.ScanInput{TableName: tb.name, FilterExpression: &filter, ExpressionAttributeValues: values(document{"p": "p"})})
			tb.refused(err, text.scan+" | Key attributes must be scalars")
			_, err = tb.Query(tb.ctx(), &dynamodb.QueryInput{TableName: tb.name, KeyConditionExpression: ptr("pk = :p"), FilterExpression: &filter, ExpressionAttributeValues: values(document{"p": "p"})})
			tb.refused(err, text.query+" | Key attributes must be scalars")
		}
		// All attributes of a global index that does not have them are refused before that.
		const all = "Select type ALL_ATTRIBUTES is not supported for global secondary index keys because its projection type is not ALL"
		_, err := tb.Query(tb.ctx(), &dynamodb.QueryInput{
			TableName: tb.name, IndexName: ptr("keys"), Select: types.SelectAllAttributes, KeyConditionExpression: ptr("gpk = :p"),
			FilterExpression: ptr("pk = :p AND pk.a = :p"), ExpressionAttributeValues: values(document{"p": "p"}),
		})
		tb.refused(err, all+" | Key attributes must be scalars")
		for conditions, text := range map[string]string{
			``: "Conditions can be of length 1 or 2 only | Conditions must be at least length 1",
			`"pk":{"ComparisonOperator":"EQ","AttributeValueList":[{"S":"p"}]},"sk":{"ComparisonOperator":"GT","AttributeValueList":[{"S":"p"}]},"x":{"ComparisonOperator":"EQ","AttributeValueList":[{"S":"p"}]}`: "Conditions can be of length 1 or 2 only",
			`"pk":{"ComparisonOperator":"NE","AttributeValueList":[{"S":"p"}]}`: "Attempted conditional constraint is not an indexable operation | Query key condition not supported",
		} {
			tb.refused(tb.raw("Query", `{"TableName":"TABLE","KeyConditions":{`+conditions+`}}`), text)
		}
	})
}
