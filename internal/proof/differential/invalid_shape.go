package differential

import (
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// spoilShape makes a mistake that is possible in one kind of request only.
func (g *Generator) spoilShape(in any) bool {
	switch in := in.(type) {
	case *dynamodb.PutItemInput:
		if g.chance(0.7) {
			return false
		}
		in.ReturnValues = pick(g.source, []types.ReturnValue{types.ReturnValueAllNew, types.ReturnValueUpdatedOld, "NOPE"})
	case *dynamodb.DeleteItemInput:
		if g.chance(0.7) {
			return false
		}
		in.ReturnValues = pick(g.source, []types.ReturnValue{types.ReturnValueAllNew, types.ReturnValueUpdatedNew, "NOPE"})
	case *dynamodb.UpdateItemInput:
		if g.chance(0.7) {
			return false
		}
		in.ReturnValues = "NOPE"
	case *dynamodb.QueryInput:
		g.spoilQuery(in)
	case *dynamodb.ScanInput:
		g.spoilScan(in)
	case *dynamodb.BatchGetItemInput:
		g.spoilBatchGet(in)
	case *dynamodb.BatchWriteItemInput:
		g.spoilBatchWrite(in)
	case *dynamodb.TransactWriteItemsInput:
		g.spoilTransactWrite(in)
	case *dynamodb.TransactGetItemsInput:
		switch g.IntN(3) {
		case 0:
			in.TransactItems = []types.TransactGetItem{}
		case 1:
			in.TransactItems = append(in.TransactItems, in.TransactItems[0])
		default:
			for len(in.TransactItems) < 101 {
				in.TransactItems = append(in.TransactItems, in.TransactItems[0])
			}
		}
	default:
		return false
	}
	return true
}

func (g *Generator) spoilQuery(in *dynamodb.QueryInput) {
	switch g.IntN(9) {
	case 0:
		in.Limit = aws.Int32(int32(pick(g.source, []int{0, -1})))
	case 1:
		in.IndexName = aws.String(pick(g.source, []string{"missing", "x", ""}))
	case 2:
		in.Select = pick(g.source, []types.Select{types.SelectAllProjectedAttributes, types.SelectSpecificAttributes, types.SelectCount, types.SelectAllAttributes, "NOPE"})
	case 3:
		in.ConsistentRead = aws.Bool(true)
	case 4:
		in.KeyConditionExpression, in.KeyConditions = aws.String("pk = :v0"), map[string]types.Condition{"pk": {
			ComparisonOperator: types.ComparisonOperatorEq, AttributeValueList: []types.AttributeValue{str("a")},
		}}
	case 5:
		in.KeyConditionExpression, in.KeyConditions = nil, nil
	case 6:
		in.KeyConditions = nil
		in.KeyConditionExpression = aws.String(pick(g.source, []string{
			"pk > :v0", "pk = :v0 OR pk = :v0", "NOT pk = :v0", "sk = :v0", "pk = :v0 AND pk = :v0", "pk = :v0 AND s = :v0",
			"pk = :v0 AND sk <> :v0", "pk = :v0 AND contains(sk, :v0)", "pk = :v0 AND sk IN (:v0)", "attribute_exists(pk)",
			"pk = :v0 AND sk = :v0 AND sk < :v0", ":v0 = pk", "pk = pk", "pk = :v0 AND begins_with(pk, :v0)", "pk.a = :v0", "pk[0] = :v0",
			"pk = :v0 AND size(sk) > :v0", "begins_with(pk, :v0)", "pk = :v0 AND sk BETWEEN :v0 AND pk", "(pk = :v0) AND ((sk > :v0))",
		}))
		if in.ExpressionAttributeValues == nil {
			in.ExpressionAttributeValues = map[string]types.AttributeValue{":v0": str("a")}
		}
	case 7:
		in.ExclusiveStartKey = map[string]types.AttributeValue{"pk": g.anyValue(0)}
		if g.chance(0.5) {
			in.ExclusiveStartKey["sk"] = g.anyValue(0)
		}
	default:
		in.KeyConditionExpression = nil
		in.KeyConditions = map[string]types.Condition{
			"pk": {ComparisonOperator: types.ComparisonOperatorEq, AttributeValueList: []types.AttributeValue{str("a")}},
		}
		switch g.IntN(5) {
		case 0:
			in.KeyConditions["pk"] = types.Condition{ComparisonOperator: types.ComparisonOperatorGt, AttributeValueList: []types.AttributeValue{str("a")}}
		case 1:
			in.KeyConditions["sk"] = types.Condition{ComparisonOperator: types.ComparisonOperatorBetween, AttributeValueList: []types.AttributeValue{str("a")}}
		case 2:
			in.KeyConditions["sk"] = types.Condition{ComparisonOperator: types.ComparisonOperatorNe, AttributeValueList: []types.AttributeValue{str("a")}}
		case 3:
			in.KeyConditions["s"] = types.Condition{ComparisonOperator: types.ComparisonOperatorEq, AttributeValueList: []types.AttributeValue{str("a")}}
		default:
			in.KeyConditions["pk"] = types.Condition{ComparisonOperator: types.ComparisonOperatorEq}
		}
	}
}

func (g *Generator) spoilScan(in *dynamodb.ScanInput) {
	switch g.IntN(6) {
	case 0:
		in.Limit = aws.Int32(int32(pick(g.source, []int{0, -1})))
	case 1:
		in.IndexName = aws.String(pick(g.source, []string{"missing", "x"}))
	case 2:
		in.Select = pick(g.source, []types.Select{types.SelectAllProjectedAttributes, types.SelectSpecificAttributes, types.SelectCount, types.SelectAllAttributes, "NOPE"})
	case 3:
		in.ConsistentRead = aws.Bool(true)
	case 4:
		in.TotalSegments, in.Segment = pick(g.source, []*int32{nil, aws.Int32(0), aws.Int32(2), aws.Int32(1000001)}),
			pick(g.source, []*int32{nil, aws.Int32(-1), aws.Int32(2), aws.Int32(3)})
	default:
		in.ExclusiveStartKey = map[string]types.AttributeValue{"pk": g.anyValue(0)}
	}
}

func (g *Generator) spoilBatchGet(in *dynamodb.BatchGetItemInput) {
	name := pick(g.source, slices.Sorted(maps.Keys(in.RequestItems)))
	ka := in.RequestItems[name]
	switch g.IntN(6) {
	case 0:
		in.RequestItems = map[string]types.KeysAndAttributes{}
	case 1:
		ka.Keys = append(ka.Keys, ka.Keys[0])
		in.RequestItems[name] = ka
	case 2:
		ka.Keys = slices.Clone(ka.Keys)
		for i := len(ka.Keys); i < pick(g.source, []int{101, 102}); i++ {
			ka.Keys = append(ka.Keys, map[string]types.AttributeValue{"pk": g.wideKey("S", i)})
		}
		in.RequestItems[name] = ka
	case 3:
		ka.Keys = []map[string]types.AttributeValue{}
		in.RequestItems[name] = ka
	case 4:
		in.RequestItems[name+"-missing"] = ka
	default:
		key := cloned(ka.Keys[0])
		g.spoilKey(parts{key: &key})
		ka.Keys = append(slices.Clone(ka.Keys), key)
		in.RequestItems[name] = ka
	}
}

func (g *Generator) spoilBatchWrite(in *dynamodb.BatchWriteItemInput) {
	name := pick(g.source, slices.Sorted(maps.Keys(in.RequestItems)))
	reqs := slices.Clone(in.RequestItems[name])
	switch g.IntN(7) {
	case 0:
		in.RequestItems = map[string][]types.WriteRequest{}
		return
	case 1:
		reqs = append(reqs, reqs[0])
	case 2:
		for i := len(reqs); i < 26; i++ {
			reqs = append(reqs, types.WriteRequest{DeleteRequest: &types.DeleteRequest{Key: map[string]types.AttributeValue{"pk": g.wideKey("S", i)}}})
		}
	case 3:
		reqs = []types.WriteRequest{}
	case 4:
		in.RequestItems[name+"-missing"] = reqs
	case 5:
		reqs = append(reqs, types.WriteRequest{})
	default:
		item := g.item(g.tables[0])
		if !g.spoilItem(parts{item: &item}) || g.chance(0.5) {
			g.spoilKey(parts{item: &item})
		}
		reqs = append(reqs, types.WriteRequest{PutRequest: &types.PutRequest{Item: item}})
	}
	in.RequestItems[name] = reqs
}

func (g *Generator) spoilTransactWrite(in *dynamodb.TransactWriteItemsInput) {
	in.TransactItems = slices.Clone(in.TransactItems)
	switch g.IntN(6) {
	case 0:
		in.TransactItems = []types.TransactWriteItem{}
	case 1:
		in.TransactItems = append(in.TransactItems, in.TransactItems[0])
	case 2:
		t := g.tables[0]
		for i := len(in.TransactItems); i < 101; i++ {
			key := g.key(t)
			key[t.Hash.Name] = g.wideKey(t.Hash.Type, i)
			in.TransactItems = append(in.TransactItems, types.TransactWriteItem{Delete: &types.Delete{TableName: &t.Name, Key: key}})
		}
	case 3:
		in.TransactItems = append(in.TransactItems, types.TransactWriteItem{})
	case 4:
		both := in.TransactItems[0]
		t := g.tables[0]
		if both.Delete == nil {
			both.Delete = &types.Delete{TableName: &t.Name, Key: g.key(t)}
		} else {
			both.Put = &types.Put{TableName: &t.Name, Item: g.item(t)}
		}
		in.TransactItems[0] = both
	default:
		in.ClientRequestToken = aws.String(strings.Repeat("t", 37))
	}
}
