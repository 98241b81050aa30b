package differential

import (
	"fmt"
	"maps"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

func (g *Generator) batchWrite() any {
	in := &dynamodb.BatchWriteItemInput{
		RequestItems:                map[string][]types.WriteRequest{},
		ReturnConsumedCapacity:      g.writeCapacity(),
		ReturnItemCollectionMetrics: g.metrics(),
	}
	for _, t := range subset(g.source, g.tables, 2) {
		var reqs []types.WriteRequest
		seen := map[string]bool{}
		for range g.between(1, 6) {
			key := g.key(t)
			id := identity(key)
			if seen[id] && !g.chance(0.03) {
				continue
			}
			seen[id] = true
			if g.chance(0.4) {
				reqs = append(reqs, types.WriteRequest{DeleteRequest: &types.DeleteRequest{Key: key}})
				continue
			}
			reqs = append(reqs, types.WriteRequest{PutRequest: &types.PutRequest{Item: g.itemAt(t, key)}})
		}
		in.RequestItems[t.Name] = reqs
	}
	return in
}

// itemAt returns a random item with a given key.
func (g *Generator) itemAt(t *Table, key map[string]types.AttributeValue) map[string]types.AttributeValue {
	item := g.item(t)
	maps.Copy(item, key)
	return item
}

func (g *Generator) transactWrite() any {
	if len(g.tokens) > 0 && g.chance(0.15) {
		// The same token again: the same request, or another one.
		in := *pick(g.source, g.tokens)
		if g.chance(0.4) {
			in.TransactItems = g.actions(g.between(1, 3))
		}
		in.ReturnConsumedCapacity = g.writeCapacity()
		return &in
	}
	n := g.between(1, 5)
	if g.chance(0.03) {
		n = g.between(20, 100)
	}
	in := &dynamodb.TransactWriteItemsInput{
		TransactItems:               g.actions(n),
		ReturnConsumedCapacity:      g.writeCapacity(),
		ReturnItemCollectionMetrics: g.metrics(),
	}
	g.serial++
	// Always set: otherwise the SDK invents one.
	in.ClientRequestToken = aws.String(fmt.Sprintf("%s-%d", g.prefix, g.serial))
	if g.chance(0.3) && len(g.tokens) < 20 {
		g.tokens = append(g.tokens, in)
	}
	return in
}

// actions returns up to n actions on different items; 2 % repeat one.
func (g *Generator) actions(n int) []types.TransactWriteItem {
	var all []types.TransactWriteItem
	seen := map[string]bool{}
	for i := range n {
		t := g.table()
		key := g.key(t)
		if n > 5 {
			// More items than there are keys.
			t = g.tables[i%len(g.tables)]
			key = g.key(t)
			wide := t.Hash
			if t.Range.Name != "" {
				wide = t.Range
			}
			key[wide.Name] = g.wideKey(wide.Type, i)
		}
		id := t.Name + identity(key)
		if seen[id] && !g.chance(0.02) {
			continue
		}
		seen[id] = true
		all = append(all, g.action(t, key))
	}
	return all
}

func (g *Generator) wideKey(kind string, i int) types.AttributeValue {
	switch kind {
	case "N":
		return num(fmt.Sprint(1000 + i))
	case "B":
		return bin([]byte{9, byte(i)})
	default:
		return str(fmt.Sprintf("w%d", i))
	}
}

func (g *Generator) action(t *Table, key map[string]types.AttributeValue) types.TransactWriteItem {
	b := g.builder(t)
	name := aws.String(t.Name)
	// All conditions must be true for the transaction to succeed. So each is rarer here, and likely to be true.
	condition := func(p float64) *string {
		if !g.chance(p) {
			return nil
		}
		if g.chance(0.6) {
			return aws.String("attribute_not_exists(" + b.name("q2") + ")")
		}
		return aws.String(b.condition(1))
	}
	switch n := g.IntN(10); {
	case n < 4:
		put := &types.Put{TableName: name, Item: g.itemAt(t, key), ConditionExpression: condition(0.3)}
		if put.ConditionExpression != nil {
			put.ReturnValuesOnConditionCheckFailure = g.onFailure()
		}
		put.ExpressionAttributeNames, put.ExpressionAttributeValues = b.names, b.values
		return types.TransactWriteItem{Put: put}
	case n < 7:
		var up *string
		if g.chance(0.6) {
			up = aws.String("SET " + b.name("n") + " = " + b.value(g.value("N", 0)))
		} else {
			up = aws.String(b.update())
		}
		update := &types.Update{TableName: name, Key: key, UpdateExpression: up, ConditionExpression: b.ofExisting(up, condition(0.3))}
		if update.ConditionExpression != nil {
			update.ReturnValuesOnConditionCheckFailure = g.onFailure()
		}
		update.ExpressionAttributeNames, update.ExpressionAttributeValues = b.names, b.values
		return types.TransactWriteItem{Update: update}
	case n < 8:
		del := &types.Delete{TableName: name, Key: key, ConditionExpression: condition(0.3)}
		if del.ConditionExpression != nil {
			del.ReturnValuesOnConditionCheckFailure = g.onFailure()
		}
		del.ExpressionAttributeNames, del.ExpressionAttributeValues = b.names, b.values
		return types.TransactWriteItem{Delete: del}
	default:
		check := &types.ConditionCheck{TableName: name, Key: key, ConditionExpression: condition(1)}
		check.ReturnValuesOnConditionCheckFailure = g.onFailure()
		check.ExpressionAttributeNames, check.ExpressionAttributeValues = b.names, b.values
		return types.TransactWriteItem{ConditionCheck: check}
	}
}

// admin returns a request about tables and not about items.
func (g *Generator) admin() any {
	t := g.table()
	switch g.IntN(7) {
	case 0:
		// Other streams have tables, too, but none between these.
		return &dynamodb.ListTablesInput{ExclusiveStartTableName: aws.String(g.tables[0].Name), Limit: aws.Int32(1)}
	case 1:
		return t.Create() // exists already
	case 2:
		return &dynamodb.DeleteTableInput{TableName: aws.String(t.Name + "-missing")}
	case 3:
		return &dynamodb.DescribeTimeToLiveInput{TableName: aws.String(t.Name)}
	case 4:
		return &dynamodb.UpdateTimeToLiveInput{TableName: aws.String(t.Name), TimeToLiveSpecification: &types.TimeToLiveSpecification{
			AttributeName: aws.String(pick(g.source, []string{"expires", "q9"})), Enabled: aws.Bool(g.chance(0.5)),
		}}
	default:
		return &dynamodb.DescribeTableInput{TableName: aws.String(t.Name)}
	}
}
