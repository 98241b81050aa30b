package differential

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
)

func requests(seed, stream uint64, n int) []string {
	g := New(seed, stream, "t")
	g.Tables()
	out := make([]string, n)
	for i := range out {
		out[i] = Render(g.Next())
	}
	return out
}

func TestGenerator_SameSeedMakesTheSameRequests(t *testing.T) {
	first := requests(1, 2, 500)
	assert.Equal(t, first, requests(1, 2, 500))
	assert.NotEqual(t, first, requests(2, 2, 500), "another seed")
	assert.NotEqual(t, first, requests(1, 3, 500), "another stream")
}

func TestGenerator_MakesEveryOperation(t *testing.T) {
	g := New(1, 1, "t")
	kinds := map[string]int{}
	for range 10 {
		g.Tables()
		for range 1000 {
			kinds[Kind(g.Next())]++
		}
	}
	for _, kind := range []string{
		"PutItem", "GetItem", "UpdateItem", "DeleteItem", "Query", "Scan", "BatchGetItem", "BatchWriteItem", "TransactWriteItems", "TransactGetItems",
		"CreateTable", "DescribeTable", "DeleteTable", "ListTables", "UpdateTimeToLive", "DescribeTimeToLive",
	} {
		assert.Positive(t, kinds[kind], kind)
	}
}

func TestAnswers_DifferInWhatTheySay(t *testing.T) {
	item := func(v string) Answer {
		return Answer{Output: map[string]any{"Item": map[string]any{"x": map[string]any{"N": v}}}}
	}
	get := &dynamodb.GetItemInput{}
	assert.True(t, normal(get, item("1")).Equal(normal(get, item("1"))))
	assert.False(t, normal(get, item("1")).Equal(normal(get, item("2"))))
	assert.False(t, normal(get, item("1")).Equal(normal(get, Answer{Output: map[string]any{}})))
	assert.False(t, normal(get, Answer{Code: "A"}).Equal(normal(get, Answer{Code: "B"})))
	assert.False(t, normal(get, Answer{Code: "A", Message: "x"}).Equal(normal(get, Answer{Code: "A", Message: "y"})))
}

func TestAnswers_OfScansCompareWithoutOrderAndOfQueriesWithIt(t *testing.T) {
	answer := func(values ...string) Answer {
		var items []any
		for _, v := range values {
			items = append(items, map[string]any{"sk": map[string]any{"S": v}})
		}
		return Answer{Output: map[string]any{"Items": items}}
	}
	ab, ba := answer("a", "b"), answer("b", "a")
	assert.True(t, normal(&dynamodb.ScanInput{}, ab).Equal(normal(&dynamodb.ScanInput{}, ba)))
	assert.False(t, normal(&dynamodb.QueryInput{}, ab).Equal(normal(&dynamodb.QueryInput{}, ba)))
}

func TestSpell_MakesEqualNumbersEqual(t *testing.T) {
	spell := func(v types.AttributeValue) any {
		tree := Canonical(v)
		Spell(tree)
		return tree
	}
	for _, pair := range [][2]string{{"1", "1.0"}, {"100", "1e2"}, {"0", "-0"}, {"0.5", ".50"}, {"1e125", "10E124"}} {
		assert.Equal(t, spell(num(pair[0])), spell(num(pair[1])))
	}
	assert.NotEqual(t, spell(num("1")), spell(num("1.0000000000000000000000000000000000001")))
	assert.Equal(t, spell(&types.AttributeValueMemberNS{Value: []string{"2", "1.0"}}), spell(&types.AttributeValueMemberNS{Value: []string{"1", "2.0"}}))
	assert.Equal(t, map[string]any{"S": "1.0"}, spell(str("1.0")), "a string is no number")
}

func TestDifferences_WithOneCauseHaveOnePlace(t *testing.T) {
	d := func(v string) Difference {
		return Difference{
			Request: &dynamodb.GetItemInput{},
			Tested:  Answer{Output: map[string]any{"ConsumedCapacity": map[string]any{"CapacityUnits": 1.0}, "Item": map[string]any{"x": v}}},
			Reference: Answer{Output: map[string]any{
				"ConsumedCapacity": map[string]any{"CapacityUnits": 2.0},
				"Item":             map[string]any{"x": v},
			}},
		}
	}
	assert.Equal(t, d("a").Place(), d("b").Place())
	assert.Contains(t, d("a").Place(), "CapacityUnits")
}

func TestGenerator_QueriesIndexesOfSeveralKeyAttributes(t *testing.T) {
	g := New(1, 1, "t")
	expressions, legacy := 0, 0
	for range 20 {
		several := map[string]bool{}
		for _, tb := range g.Tables() {
			for _, ix := range tb.Indexes {
				several[tb.Name+ix.Name] = len(ix.Hash) > 1 || len(ix.Range) > 1
			}
		}
		for range 500 {
			if in, ok := g.Next().(*dynamodb.QueryInput); ok && in.IndexName != nil && several[*in.TableName+*in.IndexName] {
				if in.KeyConditions != nil {
					legacy++
				} else {
					expressions++
				}
			}
		}
	}
	assert.Greater(t, expressions, 50)
	assert.Greater(t, legacy, 20)
}
