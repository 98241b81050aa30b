package tabletest_test

import (
	"reflect"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Rules about consumed capacity.

func capacityNotAskedFor(in any, tested, reference *answer) bool {
	del, ok := in.(*dynamodb.DeleteItemInput)
	if !ok || del.ReturnConsumedCapacity != "" && del.ReturnConsumedCapacity != types.ReturnConsumedCapacityNone {
		return false
	}
	if _, have := tested.Output["ConsumedCapacity"]; have {
		return false
	}
	_, have := reference.Output["ConsumedCapacity"]
	delete(reference.Output, "ConsumedCapacity")
	return have
}

func emptyReadsAreFree(in any, tested, reference *answer) bool {
	switch in.(type) {
	case *dynamodb.QueryInput, *dynamodb.ScanInput, *dynamodb.BatchGetItemInput:
	default:
		return false
	}
	a, b := tested.Output["ConsumedCapacity"], reference.Output["ConsumedCapacity"]
	if a == nil || b == nil || reflect.DeepEqual(a, b) {
		return false
	}
	if n, _ := reference.Output["ScannedCount"].(float64); n != 0 {
		return false
	}
	delete(tested.Output, "ConsumedCapacity")
	delete(reference.Output, "ConsumedCapacity")
	return true
}

// capacities returns the consumed capacities of an answer by table.
func capacities(a *answer) map[string]map[string]any {
	all, _ := a.Output["ConsumedCapacity"].([]any)
	byTable := map[string]map[string]any{}
	if one, ok := a.Output["ConsumedCapacity"].(map[string]any); ok {
		all = []any{one}
	}
	for _, c := range all {
		c, _ := c.(map[string]any)
		name, _ := c["TableName"].(string)
		byTable[name] = c
	}
	return byTable
}

// readsAndWritesApart removes the units that DynamoDB Local leaves out, from
// a table's sum and its parts. A repeated TransactWriteItems only reads.
func readsAndWritesApart(in any, tested, _ *answer) bool {
	var kinds []string
	switch in.(type) {
	case *dynamodb.TransactGetItemsInput:
		kinds = []string{"ReadCapacityUnits"}
	case *dynamodb.TransactWriteItemsInput:
		kinds = []string{"ReadCapacityUnits", "WriteCapacityUnits"}
	}
	changed := false
	var remove func(c map[string]any)
	remove = func(c map[string]any) {
		i := slices.IndexFunc(kinds, func(k string) bool { return c[k] != nil && c[k] == c["CapacityUnits"] })
		if i >= 0 {
			delete(c, kinds[i])
			changed = true
		}
		for _, part := range c {
			if part, ok := part.(map[string]any); ok {
				remove(part)
			}
		}
	}
	for _, c := range capacities(tested) {
		remove(c)
	}
	return changed
}

// indexesOfTransaction halves the reference's units of indexes.
func indexesOfTransaction(in any, _, reference *answer) bool {
	if _, ok := in.(*dynamodb.TransactWriteItemsInput); !ok {
		return false
	}
	changed := false
	for _, c := range capacities(reference) {
		for _, kind := range []string{"GlobalSecondaryIndexes", "LocalSecondaryIndexes"} {
			indexes, _ := c[kind].(map[string]any)
			for _, x := range indexes {
				x, _ := x.(map[string]any)
				units, _ := x["CapacityUnits"].(float64)
				total, _ := c["CapacityUnits"].(float64)
				x["CapacityUnits"], c["CapacityUnits"] = units/2, total-units/2
				changed = true
			}
		}
	}
	return changed
}

func capacityOfTransaction(in any, tested, reference *answer) bool {
	tx, ok := in.(*dynamodb.TransactWriteItemsInput)
	if !ok {
		return false
	}
	actions, deletions := map[string]int{}, map[string]int{} // and checks
	for _, a := range tx.TransactItems {
		switch {
		case a.Put != nil:
			actions[*a.Put.TableName]++
		case a.Update != nil:
			actions[*a.Update.TableName]++
		case a.ConditionCheck != nil:
			actions[*a.ConditionCheck.TableName]++
			deletions[*a.ConditionCheck.TableName]++
		case a.Delete != nil:
			actions[*a.Delete.TableName]++
			deletions[*a.Delete.TableName]++
		}
	}
	changed := false
	own, local := capacities(tested), capacities(reference)
	for name, c := range own {
		other, have := local[name]
		if !have || reflect.DeepEqual(c, other) || actions[name] < 2 && deletions[name] == 0 {
			continue
		}
		more, _ := c["CapacityUnits"].(float64)
		less, _ := other["CapacityUnits"].(float64)
		if more < less {
			continue
		}
		for _, field := range []string{"CapacityUnits", "Table", "GlobalSecondaryIndexes", "LocalSecondaryIndexes"} {
			delete(c, field)
			delete(other, field)
		}
		changed = true
	}
	return changed
}

func capacityOfBatch(in any, tested, reference *answer) bool {
	batch, ok := in.(*dynamodb.BatchWriteItemInput)
	if !ok {
		return false
	}
	changed := false
	own, local := capacities(tested), capacities(reference)
	for name, c := range own {
		deletions := 0
		for _, r := range batch.RequestItems[name] {
			if r.DeleteRequest != nil {
				deletions++
			}
		}
		less, _ := c["CapacityUnits"].(float64)
		more, _ := local[name]["CapacityUnits"].(float64)
		if d := more - less; d <= 0 || d > float64(deletions) {
			continue
		}
		// The whole difference is in the table's own part.
		for _, place := range []any{local[name], local[name]["Table"]} {
			if place, ok := place.(map[string]any); ok && place != nil {
				units, _ := place["CapacityUnits"].(float64)
				place["CapacityUnits"] = units - (more - less)
			}
		}
		changed = true
	}
	return changed
}

// halfIndexKey takes the surplus of the one index with two keys of its own
// out of the reference's capacities.
func halfIndexKey(in any, tested, reference *answer) bool {
	changed := false
	for _, index := range []string{"gsi0", "gsi5", "gsi6", "gsi7", "gsi8"} { // those with several attributes that items may lack
		changed = withoutSurplus(in, tested, reference, "GlobalSecondaryIndexes", index) || changed
	}
	return changed
}

func sizeOfLocalEntries(in any, tested, reference *answer) bool {
	return withoutSurplus(in, tested, reference, "LocalSecondaryIndexes", "lsi")
}

// withoutSurplus lowers the reference's capacity of an index that was
// written to what the tested engine counted, where that is less.
func withoutSurplus(in any, tested, reference *answer, kind, index string) bool {
	switch in.(type) {
	case *dynamodb.QueryInput, *dynamodb.ScanInput:
		return false
	}
	own, local := capacities(tested), capacities(reference)
	changed := false
	for name, c := range own {
		other := local[name]
		units := func(c map[string]any) float64 {
			g, _ := c[kind].(map[string]any)
			x, _ := g[index].(map[string]any)
			n, _ := x["CapacityUnits"].(float64)
			return n
		}
		surplus := units(other) - units(c)
		if surplus <= 0 {
			continue
		}
		indexes, _ := other[kind].(map[string]any)
		if units(c) > 0 {
			indexes[index] = map[string]any{"CapacityUnits": units(c)}
		} else if delete(indexes, index); len(indexes) == 0 {
			delete(other, kind)
		}
		total, _ := other["CapacityUnits"].(float64)
		other["CapacityUnits"] = total - surplus
		changed = true
	}
	return changed
}

func partitionsOfScan(in any, tested, reference *answer) bool {
	s, ok := in.(*dynamodb.ScanInput)
	a, _ := tested.Output["ConsumedCapacity"].(map[string]any)
	b, _ := reference.Output["ConsumedCapacity"].(map[string]any)
	if !ok || a == nil || b == nil {
		return false
	}
	units, _ := a["CapacityUnits"].(float64)
	local, _ := b["CapacityUnits"].(float64)
	pages, _ := tested.Output["Pages"].(float64)
	least := 0.5
	if s.ConsistentRead != nil && *s.ConsistentRead {
		least = 1
	}
	if units <= local || units > local+4*max(1, pages)*least {
		return false
	}
	delete(tested.Output, "ConsumedCapacity")
	delete(reference.Output, "ConsumedCapacity")
	return true
}

func sizeOfIndexScan(in any, tested, reference *answer) bool {
	s, ok := in.(*dynamodb.ScanInput)
	if !ok || s.IndexName == nil {
		return false
	}
	a, _ := tested.Output["ConsumedCapacity"].(map[string]any)
	b, _ := reference.Output["ConsumedCapacity"].(map[string]any)
	less, _ := a["CapacityUnits"].(float64)
	more, _ := b["CapacityUnits"].(float64)
	if less >= more {
		return false
	}
	delete(tested.Output, "ConsumedCapacity")
	delete(reference.Output, "ConsumedCapacity")
	return true
}

func fetchesOfLocalIndex(in any, tested, reference *answer) bool {
	scan, query := false, false
	switch in := in.(type) {
	case *dynamodb.QueryInput:
		query = in.IndexName != nil && *in.IndexName == "lsi" && in.ProjectionExpression != nil
	case *dynamodb.ScanInput:
		scan = in.IndexName != nil && *in.IndexName == "lsi" && (in.ProjectionExpression != nil || in.Select == types.SelectAllAttributes)
	}
	a, _ := tested.Output["ConsumedCapacity"].(map[string]any)
	b, _ := reference.Output["ConsumedCapacity"].(map[string]any)
	less, _ := a["CapacityUnits"].(float64)
	more, _ := b["CapacityUnits"].(float64)
	if less == more || less < more && !query || less > more && !scan {
		return false
	}
	delete(tested.Output, "ConsumedCapacity")
	delete(reference.Output, "ConsumedCapacity")
	return true
}
