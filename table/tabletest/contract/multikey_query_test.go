package contract_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// fillSeveral writes seven items of the partition ("x", 1), and one of
// another; their keys sort as they do in the index.
func fillSeveral(tb table) {
	tb.Helper()
	for sk, d := range map[string]document{
		"a": {"r1": "q", "r2": 5},
		"b": {"r2": -1},
		"c": {"r2": 1, "r3": []byte("a")},
		"d": {"r2": 1, "r3": []byte("a\x00")},
		"e": {"r2": 1},
		"f": {"r2": 10},
		"g": {"r1": "r\x00", "r2": 0},
		"h": {"r1": "ra", "r2": 0},
		"z": {"h2": 2},
	} {
		require.NoError(tb, tb.putIndexed(sk, d))
	}
}

func TestQuery_TakesConditionsOnSeveralAttributes(t *testing.T) {
	type d = document
	cases := []struct {
		condition string
		values    document
		want      string
	}{
		{"h1 = :h AND h2 = :g", nil, "abcdefgh"},
		{"h2 = :g AND h1 = :h", nil, "abcdefgh"},
		{"h1 = :h AND h2 = :g AND r1 = :r", d{"r": "r"}, "bcdef"},
		{"r1 = :r AND h2 = :g AND h1 = :h", d{"r": "r"}, "bcdef"},
		{"h1 = :h AND h2 = :g AND r1 > :r", d{"r": "r"}, "gh"},
		{"h1 = :h AND h2 = :g AND r1 >= :r", d{"r": "r"}, "bcdefgh"},
		{"h1 = :h AND h2 = :g AND r1 < :r", d{"r": "r"}, "a"},
		{"h1 = :h AND h2 = :g AND r1 <= :r", d{"r": "r"}, "abcdef"},
		{"h1 = :h AND h2 = :g AND r1 BETWEEN :r AND :s", d{"r": "q", "s": "r"}, "abcdef"},
		{"h1 = :h AND h2 = :g AND begins_with(r1, :r)", d{"r": "r"}, "bcdefgh"},
		{"h1 = :h AND h2 = :g AND r1 = :r AND r2 = :s", d{"r": "r", "s": 1}, "cde"},
		{"r2 = :s AND h1 = :h AND r1 = :r AND h2 = :g", d{"r": "r", "s": number("1.0")}, "cde"},
		{"h1 = :h AND h2 = :g AND r1 = :r AND r2 > :s", d{"r": "r", "s": 1}, "f"},
		{"h1 = :h AND h2 = :g AND r1 = :r AND r2 <= :s", d{"r": "r", "s": 1}, "bcde"},
		{"h1 = :h AND h2 = :g AND r1 = :r AND r2 BETWEEN :s AND :t", d{"r": "r", "s": 0, "t": 9}, "cde"},
		{"h1 = :h AND h2 = :g AND r1 = :r AND r2 = :s AND r3 = :t", d{"r": "r", "s": 1, "t": []byte("a")}, "c"},
		{"h1 = :h AND h2 = :g AND r1 = :r AND r2 = :s AND r3 > :t", d{"r": "r", "s": 1, "t": []byte("a")}, "de"},
		{"h1 = :h AND h2 = :g AND r1 = :r AND r2 = :s AND begins_with(r3, :t)", d{"r": "r", "s": 1, "t": []byte("a")}, "cd"},
		{"h1 = :h AND h2 = :g AND r1 = :r AND r2 = :s", d{"r": "r", "s": 2}, ""},
	}
	onSeveral(t, func(tb table) {
		fillSeveral(tb)
		for _, tc := range cases {
			tb.Run(tc.condition, func(t *testing.T) {
				vals := d{"h": "x", "g": 1}
				maps.Copy(vals, tc.values)
				in := &dynamodb.QueryInput{TableName: tb.name, IndexName: ptr("several"), KeyConditionExpression: &tc.condition, ExpressionAttributeValues: values(vals)}
				out, err := tb.Query(t.Context(), in)
				require.NoError(t, err)
				assert.Equal(t, tc.want, strings.Join(sortKeys(out.Items), ""))
				assert.EqualValues(t, len(tc.want), out.ScannedCount)

				in.ScanIndexForward = aws.Bool(false)
				out, err = tb.Query(t.Context(), in)
				require.NoError(t, err)
				backwards := sortKeys(out.Items)
				slices.Reverse(backwards)
				assert.Equal(t, tc.want, strings.Join(backwards, ""), "backwards")
			})
		}
	})
}

// condition returns an entry of KeyConditions.
func condition(op types.ComparisonOperator, operands ...any) types.Condition {
	c := types.Condition{ComparisonOperator: op}
	for _, o := range operands {
		c.AttributeValueList = append(c.AttributeValueList, value(o))
	}
	return c
}

func TestQuery_TakesLegacyConditionsOnSeveralAttributes(t *testing.T) {
	const eq = types.ComparisonOperatorEq
	cases := []struct {
		name string
		more map[string]types.Condition
		want string
	}{
		{"partition attributes", nil, "abcdefgh"},
		{"a prefix", map[string]types.Condition{"r1": condition(types.ComparisonOperatorBeginsWith, "r")}, "bcdefgh"},
		{"a range", map[string]types.Condition{"r1": condition(eq, "r"), "r2": condition(types.ComparisonOperatorGt, 0)}, "cdef"},
		{"all", map[string]types.Condition{"r1": condition(eq, "r"), "r2": condition(eq, 1), "r3": condition(types.ComparisonOperatorBetween, []byte("a"), []byte("ab"))}, "cd"},
	}
	onSeveral(t, func(tb table) {
		fillSeveral(tb)
		for _, tc := range cases {
			tb.Run(tc.name, func(t *testing.T) {
				conditions := map[string]types.Condition{"h1": condition(eq, "x"), "h2": condition(eq, 1)}
				maps.Copy(conditions, tc.more)
				out, err := tb.Query(t.Context(), &dynamodb.QueryInput{TableName: tb.name, IndexName: ptr("several"), KeyConditions: conditions})
				require.NoError(t, err)
				assert.Equal(t, tc.want, strings.Join(sortKeys(out.Items), ""))
			})
		}
		_, err := tb.Query(tb.ctx(), &dynamodb.QueryInput{TableName: tb.name, IndexName: ptr("several"), KeyConditions: map[string]types.Condition{
			"h1": condition(eq, "x"), "h2": condition(eq, 1), "r2": condition(eq, 1),
		}})
		tb.refused(err, "RANGE key attributes r1 must have equality conditions specified in the query because a condition is present on key attribute r2")
	})
}

func TestQuery_RefusesBadConditionsOnSeveralAttributes(t *testing.T) {
	type d = document
	const hash = "HASH key attributes %s must have equality conditions specified in the query"
	const gap = "RANGE key attributes %s must have equality conditions specified in the query because a condition is present on key attribute %s"
	cases := []struct {
		condition string
		values    document
		text      string
	}{
		{"h1 = :h", d{"h": "x"}, fmt.Sprintf(hash, "h2")},
		{"r1 = :h", d{"h": "x"}, fmt.Sprintf(hash, "h1, h2")},
		{"h1 = :h AND h2 > :g", d{"h": "x", "g": 1}, fmt.Sprintf(hash, "h2")},
		{"begins_with(h1, :h) AND h2 = :g", d{"h": "x", "g": 1}, fmt.Sprintf(hash, "h1")},
		{"h1 > :h", d{"h": "x"}, fmt.Sprintf(hash, "h2")},
		{"h2 > :g", d{"g": 1}, fmt.Sprintf(hash, "h1")},
		{"h1 > :h AND h2 < :g", d{"h": "x", "g": 1}, fmt.Sprintf(hash, "h1, h2")},
		{"h1 = :h AND x = :h", d{"h": "x"}, fmt.Sprintf(hash, "h2")},
		{"h1 = :h AND h2 = :g AND r2 = :g", d{"h": "x", "g": 1}, fmt.Sprintf(gap, "r1", "r2")},
		{"h1 = :h AND h2 = :g AND r3 > :b", d{"h": "x", "g": 1, "b": []byte("b")}, fmt.Sprintf(gap, "r1, r2", "r3")},
		{"h1 = :h AND h2 = :g AND r1 = :h AND r3 = :b", d{"h": "x", "g": 1, "b": []byte("b")}, fmt.Sprintf(gap, "r2", "r3")},
		{"h1 = :h AND h2 = :g AND r1 > :h AND r3 = :b", d{"h": "x", "g": 1, "b": []byte("b")}, fmt.Sprintf(gap, "r2", "r3")},
		{"h1 = :h AND h2 = :g AND r1 > :h AND r2 = :g", d{"h": "x", "g": 1}, fmt.Sprintf(gap, "r1", "r2")},
		{"h1 = :h AND h2 = :g AND r1 > :h AND r2 < :g AND r3 = :b", d{"h": "x", "g": 1, "b": []byte("b")}, fmt.Sprintf(gap, "r1, r2", "r3")},
		{"h1 = :h AND h2 = :g AND begins_with(r1, :h) AND r2 = :g", d{"h": "x", "g": 1}, fmt.Sprintf(gap, "r1", "r2")},
		{"h1 = :h AND h2 = :g AND x = :g", d{"h": "x", "g": 1}, "Query condition missed key schema element: r1 | Query condition missed key schema element"},
		{"h1 = :h AND h2 = :g AND sk = :h", d{"h": "x", "g": 1}, "Query condition missed key schema element: r1 | Query condition missed key schema element"},
		{"h1 = :h AND h2 = :g AND r1 = :h AND r2 = :g AND r3 = :b AND x = :g", d{"h": "x", "g": 1, "b": []byte("b")}, "Query key condition not supported"},
		{"h1 = :h AND h2 = :h", d{"h": "x"}, "Condition parameter type does not match schema type"},
		{"h1 = :h AND h2 = :g AND r1 = :g", d{"h": "x", "g": 1}, "Condition parameter type does not match schema type"},
		{"h1 = :h AND h2 = :g AND r1 = :h AND begins_with(r2, :h)", d{"h": "x", "g": 1}, "Condition parameter type does not match schema type"},
		{"h1 = :e AND h2 = :g", d{"e": "", "g": 1}, "cannot contain an empty string value. IndexName: several, IndexKey: h1"},
		{"h1 = :h AND h2 = :g AND r1 >= :e", d{"h": "x", "e": "", "g": 1}, "cannot contain an empty string value. IndexName: several, IndexKey: r1"},
		{"h1 = :h AND h2 = :g AND r1 >= :l", d{"h": "x", "l": strings.Repeat("x", 1025), "g": 1}, "Aggregated size of all range keys has exceeded the size limit of 1024 bytes"},
		{"h1 = :h AND h2 = :g AND r1 = :h AND r1 = :h", d{"h": "x", "g": 1}, "KeyConditionExpressions must only contain one condition per key"},
	}
	onSeveral(t, func(tb table) {
		for _, tc := range cases {
			tb.Run(tc.condition, func(t *testing.T) {
				_, err := tb.Query(t.Context(), &dynamodb.QueryInput{TableName: tb.name, IndexName: ptr("several"), KeyConditionExpression: &tc.condition, ExpressionAttributeValues: values(tc.values)})
				failed(t, tb.engine, err, "ValidationException", tc.text)
			})
		}
		tb.refused(tb.raw("Query", `{"TableName":"TABLE","IndexName":"several","KeyConditions":{}}`), "Conditions must be at least length 1")
	})
}

func TestFilter_MayNotUseKeyAttributesOfTheIndex(t *testing.T) {
	onSeveral(t, func(tb table) {
		fillSeveral(tb)
		in := &dynamodb.QueryInput{TableName: tb.name, IndexName: ptr("several"), KeyConditionExpression: ptr("h1 = :h AND h2 = :g")}
		for name, operand := range map[string]any{"h2": 1, "r1": "r", "r3": []byte("b")} {
			in.FilterExpression, in.ExpressionAttributeValues = ptr(name+" = :f"), values(document{"h": "x", "g": 1, "f": operand})
			_, err := tb.Query(tb.ctx(), in)
			tb.refused(err, "Filter Expression can only contain non-primary key attributes: Primary key attribute: "+name)
		}
		// The table's own key is an attribute like others there.
		in.FilterExpression, in.ExpressionAttributeValues = ptr("sk > :f"), values(document{"h": "x", "g": 1, "f": "e"})
		out, err := tb.Query(tb.ctx(), in)
		require.NoError(tb, err)
		assert.Equal(tb, []string{"f", "g", "h"}, sortKeys(out.Items))
	})
}

func TestQuery_PagesAnIndexOfSeveralAttributes(t *testing.T) {
	onSeveral(t, func(tb table) {
		fillSeveral(tb)
		for _, limit := range []int32{1, 3, 8} {
			for _, forward := range []bool{true, false} {
				tb.Run(fmt.Sprintf("%d, forward %v", limit, forward), func(t *testing.T) {
					want := []string{"a", "b", "c", "d", "e", "f", "g", "h"}
					if !forward {
						slices.Reverse(want)
					}
					in := &dynamodb.QueryInput{
						TableName: tb.name, IndexName: ptr("several"), Limit: &limit, ScanIndexForward: &forward,
						KeyConditionExpression: ptr("h1 = :h AND h2 = :g"), ExpressionAttributeValues: values(document{"h": "x", "g": 1}),
					}
					var got []string
					for {
						out, err := tb.Query(t.Context(), in)
						require.NoError(t, err)
						got = append(got, sortKeys(out.Items)...)
						if in.ExclusiveStartKey = out.LastEvaluatedKey; in.ExclusiveStartKey == nil {
							break
						}
						// The index holds keys only, so the last item is the start of the next page.
						same(t, out.Items[len(out.Items)-1], out.LastEvaluatedKey)
						assert.Len(t, out.LastEvaluatedKey, 6)
					}
					assert.Equal(t, want, got)
				})
			}
		}
	})
}

func TestStartKey_HasEveryAttributeOfTheIndex(t *testing.T) {
	cases := []struct {
		name   string
		change document
		more   string // of the key condition
		want   string // keys, or a text in quotes
	}{
		{"goes on after the item", nil, "", "fgh"},
		{"need not be an item's", document{"r2": 3}, "", "fgh"},
		{"without a partition attribute", document{"h2": nil}, "", "'The provided starting key is invalid'"},
		{"without a sort attribute", document{"r3": nil}, "", "'The provided starting key is invalid'"},
		{"without the table's key", document{"sk": nil}, "", "'The provided starting key is invalid'"},
		{"with another attribute", document{"x": "y"}, "", "'The provided starting key is invalid'"},
		{"of another type", document{"r2": "1"}, "", "'The provided key element does not match the schema | Type mismatch for attribute to update'"},
		{"with an empty attribute", document{"r1": ""}, "", "'The provided starting key is invalid: One or more parameter values are not valid.'"},
		{"of another partition", document{"h2": 2}, "", "'The provided starting key is outside query boundaries based on provided conditions | The provided starting key does not match the range key predicate'"},
		{"outside the range", nil, " AND r1 = :r AND r2 > :s", "'The provided starting key does not match the range key predicate'"},
		{"within the range", nil, " AND r1 = :r AND r2 >= :s", "f"},
	}
	onSeveral(t, func(tb table) {
		fillSeveral(tb)
		for _, tc := range cases {
			tb.Run(tc.name, func(t *testing.T) {
				vals := document{"h": "x", "g": 1}
				if tc.more != "" {
					maps.Copy(vals, document{"r": "r", "s": 1})
				}
				out, err := tb.Query(t.Context(), &dynamodb.QueryInput{
					TableName: tb.name, IndexName: ptr("several"), ExclusiveStartKey: indexed("e", tc.change),
					KeyConditionExpression: ptr("h1 = :h AND h2 = :g" + tc.more), ExpressionAttributeValues: values(vals),
				})
				if text, ok := strings.CutPrefix(tc.want, "'"); ok {
					failed(t, tb.engine, err, "ValidationException", strings.TrimSuffix(text, "'"))
					return
				}
				require.NoError(t, err)
				assert.Equal(t, tc.want, strings.Join(sortKeys(out.Items), ""))
			})
		}
	})
}

func TestScan_ReadsAnIndexOfSeveralAttributes(t *testing.T) {
	onSeveral(t, func(tb table) {
		fillSeveral(tb)
		require.NoError(tb, tb.putIndexed("sparse", document{"h2": nil}))
		var got []string
		for segment := range int32(2) {
			in := &dynamodb.ScanInput{TableName: tb.name, IndexName: ptr("several"), Limit: aws.Int32(2), Segment: &segment, TotalSegments: aws.Int32(2)}
			for {
				out, err := tb.Scan(tb.ctx(), in)
				require.NoError(tb, err)
				got = append(got, sortKeys(out.Items)...)
				if in.ExclusiveStartKey = out.LastEvaluatedKey; in.ExclusiveStartKey == nil {
					break
				}
				assert.ElementsMatch(tb, []string{"sk", "h1", "h2", "r1", "r2", "r3"}, slices.Collect(maps.Keys(out.LastEvaluatedKey)))
			}
		}
		assert.ElementsMatch(tb, []string{"a", "b", "c", "d", "e", "f", "g", "h", "z"}, got)
		_, err := tb.Scan(tb.ctx(), &dynamodb.ScanInput{TableName: tb.name, IndexName: ptr("several"), ConsistentRead: aws.Bool(true)})
		tb.refused(err, "Consistent reads are not supported on global secondary indexes")
	})
}
