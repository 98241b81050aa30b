package differential

import (
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Generator makes requests. It is not safe for concurrent use. Several generators with different streams are
// independent of each other.
type Generator struct {
	source
	prefix string
	round  int
	tables []*Table
	// next is a request that continues an earlier one.
	next any
	// tokens are transactions that had a token, to be sent again.
	tokens []*dynamodb.TransactWriteItemsInput
	serial int
}

// New returns a generator. The names of its tables start with prefix.
func New(seed, stream uint64, prefix string) *Generator {
	return &Generator{source: newSource(seed, stream), prefix: prefix}
}

// Tables starts a round: it returns the tables that the following requests
// use and that have to be created first.
func (g *Generator) Tables() []*Table {
	g.round++
	g.tables = g.newTables(fmt.Sprintf("%s-%d", g.prefix, g.round))
	g.next, g.tokens = nil, nil
	return g.tables
}

// invalidShare is how often a request is spoiled on purpose.
const invalidShare = 0.12

// Next returns a request, a pointer to one of the SDK's Input structs.
func (g *Generator) Next() any {
	if in := g.next; in != nil {
		g.next = nil
		return in
	}
	makers := []weighted[func() any]{
		{20, g.put},
		{12, g.get},
		{28, g.update},
		{7, g.remove},
		{14, g.query},
		{6, g.scan},
		{3, g.batchGet},
		{3, g.batchWrite},
		{6, g.transactWrite},
		{2, g.transactGet},
		{1, g.admin},
	}
	in := pickWeighted(g.source, makers)()
	if g.chance(invalidShare) {
		g.spoil(in)
	}
	return in
}

// Observe tells the generator how the reference engine answered, so that it can ask for the next page.
func (g *Generator) Observe(in any, a Answer) {
	if out, ok := a.raw.(*dynamodb.QueryOutput); ok && len(out.LastEvaluatedKey) > 0 && g.chance(0.7) {
		next := *in.(*dynamodb.QueryInput)
		next.ExclusiveStartKey = out.LastEvaluatedKey
		g.next = &next
	}
}

func (g *Generator) table() *Table { return pick(g.source, g.tables) }

func (g *Generator) capacity() types.ReturnConsumedCapacity {
	return pick(g.source, []types.ReturnConsumedCapacity{"", "", types.ReturnConsumedCapacityTotal, types.ReturnConsumedCapacityIndexes, types.ReturnConsumedCapacityNone})
}

// writeCapacity selects the capacity of writes that is returned. If tables have indexes, it includes each index's
// share, since a total tells less.
func (g *Generator) writeCapacity() types.ReturnConsumedCapacity {
	c := g.capacity()
	if c == types.ReturnConsumedCapacityTotal {
		for _, t := range g.tables {
			if len(t.Indexes) > 0 {
				c = types.ReturnConsumedCapacityIndexes
			}
		}
	}
	return c
}

func (g *Generator) metrics() types.ReturnItemCollectionMetrics {
	if g.chance(0.05) {
		return types.ReturnItemCollectionMetricsSize
	}
	return ""
}

func (g *Generator) onFailure() types.ReturnValuesOnConditionCheckFailure {
	return pick(g.source, []types.ReturnValuesOnConditionCheckFailure{"", types.ReturnValuesOnConditionCheckFailureAllOld, types.ReturnValuesOnConditionCheckFailureNone})
}

func (g *Generator) put() any {
	t := g.table()
	in := &dynamodb.PutItemInput{
		TableName:                   aws.String(t.Name),
		Item:                        g.item(t),
		ReturnValues:                pick(g.source, []types.ReturnValue{"", "", types.ReturnValueAllOld, types.ReturnValueNone}),
		ReturnConsumedCapacity:      g.writeCapacity(),
		ReturnItemCollectionMetrics: g.metrics(),
	}
	if g.chance(0.4) {
		b := g.builder(t)
		in.ConditionExpression = aws.String(b.condition(2))
		in.ExpressionAttributeNames, in.ExpressionAttributeValues = b.names, b.values
		in.ReturnValuesOnConditionCheckFailure = g.onFailure()
	}
	return in
}

func (g *Generator) get() any {
	t := g.table()
	in := &dynamodb.GetItemInput{
		TableName:              aws.String(t.Name),
		Key:                    g.key(t),
		ReturnConsumedCapacity: g.capacity(),
	}
	if g.chance(0.5) {
		in.ConsistentRead = aws.Bool(g.chance(0.8))
	}
	if g.chance(0.5) {
		b := g.builder(t)
		in.ProjectionExpression = aws.String(b.projection())
		in.ExpressionAttributeNames = b.names
	}
	return in
}

func (g *Generator) update() any {
	t := g.table()
	in := &dynamodb.UpdateItemInput{
		TableName: aws.String(t.Name),
		Key:       g.key(t),
		ReturnValues: pick(g.source, []types.ReturnValue{
			"", types.ReturnValueNone, types.ReturnValueAllOld, types.ReturnValueAllNew, types.ReturnValueUpdatedOld, types.ReturnValueUpdatedNew,
			types.ReturnValueUpdatedOld, types.ReturnValueUpdatedNew,
		}),
		ReturnConsumedCapacity:      g.writeCapacity(),
		ReturnItemCollectionMetrics: g.metrics(),
	}
	b := g.builder(t)
	if !g.chance(0.03) {
		in.UpdateExpression = aws.String(b.update())
	}
	if g.chance(0.4) {
		in.ConditionExpression = aws.String(b.condition(2))
		in.ReturnValuesOnConditionCheckFailure = g.onFailure()
	}
	in.ConditionExpression = b.ofExisting(in.UpdateExpression, in.ConditionExpression)
	in.ExpressionAttributeNames, in.ExpressionAttributeValues = b.names, b.values
	return in
}

func (g *Generator) remove() any {
	t := g.table()
	in := &dynamodb.DeleteItemInput{
		TableName:                   aws.String(t.Name),
		Key:                         g.key(t),
		ReturnValues:                pick(g.source, []types.ReturnValue{"", types.ReturnValueAllOld, types.ReturnValueNone}),
		ReturnConsumedCapacity:      g.writeCapacity(),
		ReturnItemCollectionMetrics: g.metrics(),
	}
	if g.chance(0.6) {
		b := g.builder(t)
		in.ConditionExpression = aws.String(b.condition(2))
		in.ExpressionAttributeNames, in.ExpressionAttributeValues = b.names, b.values
		in.ReturnValuesOnConditionCheckFailure = g.onFailure()
	}
	return in
}
