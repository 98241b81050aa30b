package tabletest_test

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mortise-go/mortise/internal/differential"
)

type answer = differential.Answer

// knownDifferences lists where DynamoDB Local differs from the service, or
// where the service promises nothing. A rule forgives no more than it says.
var knownDifferences = []differential.Rule{
	{
		Name:    "number spelling",
		Reason:  "the service returns a number in one canonical form; DynamoDB Local returns the text that was sent",
		Forgive: spellNumbers,
	},
	{
		Name:    "capacity not asked for",
		Reason:  "DynamoDB Local reports the capacity of a DeleteItem of nothing whether or not the request asks for it",
		Forgive: capacityNotAskedFor,
	},
	{
		Name:    "empty reads are free",
		Reason:  "the service charges the minimum for a read that finds nothing; DynamoDB Local charges 0",
		Forgive: emptyReadsAreFree,
	},
	{
		Name:    "item collection metrics",
		Reason:  "the service returns them for tables with a local index when asked; DynamoDB Local never does",
		Forgive: itemCollectionMetrics,
	},
	{
		Name:    "order of names",
		Reason:  "error texts list names in an order that nobody promises",
		Forgive: orderOfNames,
	},
	{
		Name:    "half an index key",
		Reason:  "an item with only one of an index's two keys is not in it; DynamoDB Local charges the index when an item's one key gives way to the other",
		Forgive: halfIndexKey,
	},
	{
		Name:    "size of local index entries",
		Reason:  "an entry is as large as what it holds; DynamoDB Local counts some more bytes for local indexes",
		Forgive: sizeOfLocalEntries,
	},
	{
		Name: "capacity of a transaction",
		Reason: "the service doubles and adds up the cost of every action; DynamoDB Local counts actions of one table that cost the same " +
			"once, does not double the deletion of nothing, and does not look at the size of what is only checked",
		Forgive: capacityOfTransaction,
	},
	{
		Name:    "capacity of a batch that deletes nothing",
		Reason:  "the service charges one unit for the deletion of a missing item, as in DeleteItem; in a batch DynamoDB Local charges two",
		Forgive: capacityOfBatch,
	},
	{
		Name:    "one of several mistakes in an update",
		Reason:  "nobody promises which action of an update is looked at first; DynamoDB Local goes by a hash of the attribute's name",
		Forgive: oneOfSeveralInUpdate,
	},
	{
		Name:    "end of a range",
		Reason:  "with Limit the service stops and says where; DynamoDB Local does not if that is the bound of the range, and refuses to go on from there",
		Forgive: endOfRange,
	},
	{
		Name:    "paths in texts",
		Reason:  "the text about overlapping paths names two that do not overlap in DynamoDB Local, if there are more than two",
		Forgive: pathsInTexts,
	},
	{
		Name:    "one of several mistakes in an item",
		Reason:  "nobody promises which attribute of an item is looked at first; DynamoDB Local goes by a hash of the name",
		Forgive: oneOfSeveralInItem,
	},
	{
		Name:    "token and another mistake",
		Reason:  "of a request with two mistakes, a token of another transaction and a missing table, a malformed value or names without expressions, nobody promises which is reported",
		Forgive: tokenAndNames,
	},
	{
		Name:    "filter of an index scan",
		Reason:  "an index has only what is projected into it; DynamoDB Local shows a scan's filter the rest of the item too",
		Forgive: filterOfIndexScan,
	},
	{
		Name:    "local index keys in updates",
		Reason:  "the service checks type and length of an index's key in updates too; DynamoDB Local does not always do so for a local index",
		Forgive: localIndexKey,
	},
	{
		Name:    "one of several mistakes in a batch",
		Reason:  "a batch is a map of tables, so nobody promises which is looked at first, nor whether all values are looked at before any key",
		Forgive: oneOfSeveralInBatch,
	},
	{
		Name:    "one of several mistakes in key conditions",
		Reason:  "nobody promises which of the conditions on keys is looked at first",
		Forgive: oneOfSeveralInKeyConditions,
	},
	{
		Name:    "start of a scan",
		Reason:  "which items follow a key, and in which segment it is, depends on an engine's own order of partitions",
		Forgive: startOfScan,
	},
	{
		Name:    "size of an index scan",
		Reason:  "an index scan costs what the index holds; DynamoDB Local counts the whole items",
		Forgive: sizeOfIndexScan,
	},
	{
		Name:    "one of several mistakes in a transaction",
		Reason:  "nobody promises which of several actions is looked at first; DynamoDB Local looks at names and values without expressions late, and at updates in turn",
		Forgive: oneOfSeveralInTransaction,
	},
	{
		Name:    "fetches of a local index",
		Reason:  "the service reads the table for attributes that a local index does not hold; DynamoDB Local charges every query with a projection for that, and no scan",
		Forgive: fetchesOfLocalIndex,
	},
	{
		Name:    "item twice in a transaction",
		Reason:  "the service refuses the request; DynamoDB Local looks at keys, conditions and updates first",
		Forgive: itemTwice,
	},
	{
		Name:    "reasons left out",
		Reason:  "the service gives a reason for every action; DynamoDB Local gives only one, or none in TransactGetItems, if a key or an update does not fit the table",
		Forgive: reasonsLeftOut,
	},
	{
		Name:    "full stop",
		Reason:  "DynamoDB Local ends the text of some reasons of a cancelled transaction with a full stop",
		Forgive: fullStop,
	},
	{
		Name:    "operands in texts",
		Reason:  "the text about the bounds of a BETWEEN shows binary operands as Java objects, and numbers as they were sent",
		Forgive: operandsInTexts,
	},
	{
		Name:    "keys spelled differently",
		Reason:  "the service finds equal numbers in a request's keys however they are spelled; DynamoDB Local compares their text",
		Forgive: keysSpelledDifferently,
	},
	{
		Name:    "fragments of updated attributes",
		Reason:  "UPDATED_OLD and UPDATED_NEW hold only the updated paths in the service, whole attributes in DynamoDB Local",
		Forgive: updatedFragments,
	},
	{
		Name:    "invalid operand in a transaction",
		Reason:  "the service cancels the transaction with a reason ValidationError; DynamoDB Local answers a ValidationException",
		Forgive: invalidOperandInTransaction,
	},
	{
		Name:    "crash",
		Reason:  "DynamoDB Local answers some legacy conditions with an internal failure",
		Forgive: crash,
	},
	{
		Name:    severalMistakes,
		Reason:  "of a request with mistakes in different parts, nobody promises which is reported; rare, and kept rare by a limit in the test",
		Forgive: oneOfSeveral,
	},
}

// severalMistakes is the rule that explains at most one in a thousand
// answers: an error that the in-process engine confuses with another one
// would show up more often than that.
const severalMistakes = "one of several mistakes"

// spellNumbers puts the numbers of both answers into one form.
func spellNumbers(_ any, tested, reference *answer) bool {
	changed := false
	for _, a := range []*answer{tested, reference} {
		for _, tree := range []map[string]any{a.Output, a.Detail} {
			changed = differential.Spell(tree) || changed
		}
	}
	return changed
}

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

func itemCollectionMetrics(_ any, tested, reference *answer) bool {
	if _, have := reference.Output["ItemCollectionMetrics"]; have {
		return false
	}
	_, have := tested.Output["ItemCollectionMetrics"]
	delete(tested.Output, "ItemCollectionMetrics")
	return have
}

var nameList = regexp.MustCompile(`[\[{][^\]}]*[\]}]`)

func orderOfNames(_ any, tested, reference *answer) bool {
	if tested.Message == reference.Message {
		return false
	}
	sorted := func(s string) string {
		return nameList.ReplaceAllStringFunc(s, func(l string) string {
			names := strings.Split(l[1:len(l)-1], ", ")
			slices.Sort(names)
			return strings.Join(names, ", ")
		})
	}
	a, b := sorted(tested.Message), sorted(reference.Message)
	if a != b {
		return false
	}
	tested.Message, reference.Message = a, b
	return true
}

func invalidOperandInTransaction(in any, tested, reference *answer) bool {
	if _, ok := in.(*dynamodb.TransactWriteItemsInput); !ok ||
		tested.Code != "TransactionCanceledException" || reference.Code != "ValidationException" {
		return false
	}
	reasons, _ := tested.Detail["CancellationReasons"].([]any)
	for _, r := range reasons {
		r, _ := r.(map[string]any)
		message, _ := r["Message"].(string)
		if r["Code"] == "ValidationError" && (message == reference.Message ||
			updateMistake(message) && updateMistake(reference.Message)) {
			*reference = *tested
			return true
		}
	}
	return false
}

// updatedFragments reduces the reference's attributes to the tested ones, as
// long as those are a part of them.
func updatedFragments(in any, tested, reference *answer) bool {
	up, ok := in.(*dynamodb.UpdateItemInput)
	if !ok || up.ReturnValues != types.ReturnValueUpdatedNew && up.ReturnValues != types.ReturnValueUpdatedOld {
		return false
	}
	a, _ := tested.Output["Attributes"].(map[string]any)
	b, _ := reference.Output["Attributes"].(map[string]any)
	if reflect.DeepEqual(a, b) || !partOf(map[string]any{"M": a}, map[string]any{"M": b}) {
		return false
	}
	delete(tested.Output, "Attributes")
	delete(reference.Output, "Attributes")
	return true
}

// partOf reports whether a value is what some paths of another one hold: the
// same, a map of some of its entries, or a list of some of its elements in
// their order.
func partOf(a, b any) bool {
	if reflect.DeepEqual(a, b) {
		return true
	}
	va, _ := a.(map[string]any)
	vb, _ := b.(map[string]any)
	if ma, ok := va["M"].(map[string]any); ok {
		mb, _ := vb["M"].(map[string]any)
		for k, e := range ma {
			if other, have := mb[k]; !have || !partOf(e, other) {
				return false
			}
		}
		return mb != nil
	}
	la, ok := va["L"].([]any)
	lb, okb := vb["L"].([]any)
	if !ok || !okb {
		return false
	}
	for _, e := range la {
		i := slices.IndexFunc(lb, func(other any) bool { return partOf(e, other) })
		if i < 0 {
			return false
		}
		lb = lb[i+1:]
	}
	return true
}

func fullStop(_ any, tested, reference *answer) bool {
	changed := false
	reasons, _ := reference.Detail["CancellationReasons"].([]any)
	for _, r := range reasons {
		r, _ := r.(map[string]any)
		if r["Message"] == "The conditional request failed." {
			r["Message"] = "The conditional request failed"
			changed = true
		}
	}
	return changed
}

var operandText = regexp.MustCompile(`(?s)operand: AttributeValue: \{[BN]:.*?\}`)

func operandsInTexts(_ any, tested, reference *answer) bool {
	if tested.Message == reference.Message || !strings.Contains(reference.Message, "The BETWEEN operator requires") {
		return false
	}
	tested.Message = operandText.ReplaceAllString(tested.Message, "operand")
	reference.Message = operandText.ReplaceAllString(reference.Message, "operand")
	return true
}

func keysSpelledDifferently(in any, tested, reference *answer) bool {
	if tested.Message != "Provided list of item keys contains duplicates" &&
		tested.Message != "Transaction request cannot include multiple operations on one item" || reference.Message == tested.Message {
		return false
	}
	before, after := len(keysOf(in, false)), len(keysOf(in, true))
	if before == after {
		return false
	}
	*tested = *reference
	return true
}

// keysOf returns the different keys of a batch or a transaction, numbers as
// they are spelled or in one form.
func keysOf(in any, spell bool) map[string]bool {
	keys := map[string]bool{}
	add := func(table string, attributes map[string]types.AttributeValue) {
		key := map[string]types.AttributeValue{}
		for _, name := range []string{"pk", "sk"} {
			if v, ok := attributes[name]; ok {
				key[name] = v
			}
		}
		tree := differential.Canonical(key)
		if spell {
			differential.Spell(tree)
		}
		keys[table+fmt.Sprint(tree)] = true
	}
	switch in := in.(type) {
	case *dynamodb.BatchGetItemInput:
		for table, ka := range in.RequestItems {
			for _, k := range ka.Keys {
				add(table, k)
			}
		}
	case *dynamodb.BatchWriteItemInput:
		for table, reqs := range in.RequestItems {
			for _, r := range reqs {
				switch {
				case r.PutRequest != nil:
					add(table, r.PutRequest.Item)
				case r.DeleteRequest != nil:
					add(table, r.DeleteRequest.Key)
				}
			}
		}
	case *dynamodb.TransactWriteItemsInput:
		for _, a := range in.TransactItems {
			switch {
			case a.Put != nil:
				add(*a.Put.TableName, a.Put.Item)
			case a.Update != nil:
				add(*a.Update.TableName, a.Update.Key)
			case a.Delete != nil:
				add(*a.Delete.TableName, a.Delete.Key)
			case a.ConditionCheck != nil:
				add(*a.ConditionCheck.TableName, a.ConditionCheck.Key)
			}
		}
	case *dynamodb.TransactGetItemsInput:
		for _, a := range in.TransactItems {
			add(*a.Get.TableName, a.Get.Key)
		}
	}
	return keys
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

// updateMistakes are the texts that an action of an update expression can be
// answered with when it meets the item.
var updateMistakes = []string{
	"The document path provided in the update expression is invalid for update",
	"The provided expression refers to an attribute that does not exist in the item",
	"An operand in the update expression has an incorrect data type",
	"DynamoDB only supports precision up to 38 digits",
	"Number overflow. Attempting to store a number with magnitude larger than supported range",
	"Number underflow. Attempting to store a number with magnitude smaller than supported range",
	"One or more parameter values were invalid: Type mismatch for Index Key",
	"Item size to update has exceeded the maximum allowed size",
}

func updateMistake(text string) bool {
	return slices.Contains(updateMistakes, text) || strings.HasPrefix(text, "Key attributes must be scalars")
}

// operandMistake reports whether a text is about one action of an update
// expression, as opposed to the syntax of all of it.
func operandMistake(prefix, text string) bool {
	return strings.HasPrefix(text, prefix) && slices.ContainsFunc([]string{
		"Incorrect operand type", "Two document paths overlap", "is not defined", "requires",
	}, func(part string) bool { return strings.Contains(text, part) })
}

func oneOfSeveralInUpdate(in any, tested, reference *answer) bool {
	up, ok := in.(*dynamodb.UpdateItemInput)
	if !ok || tested.Message == reference.Message || up.UpdateExpression == nil {
		return false
	}
	const prefix = "Invalid UpdateExpression: "
	atItem := updateMistake(tested.Message) && updateMistake(reference.Message)
	atOperands := operandMistake(prefix, tested.Message) && operandMistake(prefix, reference.Message)
	if !atItem && !atOperands {
		return false
	}
	// More than one action: separated by commas or by clauses.
	actions := strings.Count(*up.UpdateExpression, ",") - strings.Count(*up.UpdateExpression, "(")
	for _, clause := range []string{"SET ", "REMOVE ", "ADD ", "DELETE "} {
		actions += strings.Count(strings.ToUpper(*up.UpdateExpression), clause)
	}
	if actions < 2 {
		return false
	}
	tested.Message = reference.Message
	return true
}

func endOfRange(in any, tested, reference *answer) bool {
	q, ok := in.(*dynamodb.QueryInput)
	if !ok || q.Limit == nil && q.ExclusiveStartKey == nil || !tested.OK() {
		return false
	}
	bounds := map[string]bool{}
	add := func(v types.AttributeValue) {
		tree := differential.Canonical(v)
		differential.Spell(tree)
		bounds[fmt.Sprint(tree)] = true
	}
	for _, v := range q.ExpressionAttributeValues {
		add(v)
	}
	for _, c := range q.KeyConditions {
		for _, v := range c.AttributeValueList {
			add(v)
		}
	}
	atBound := func(key map[string]any) bool {
		differential.Spell(key)
		n := 0
		for _, v := range key {
			if bounds[fmt.Sprint(v)] {
				n++
			}
		}
		return n > 1 // the partition's value, and a bound
	}
	if reference.Message == "The provided starting key does not match the range key predicate" {
		start, _ := differential.Canonical(q.ExclusiveStartKey).(map[string]any)
		if items, _ := tested.Output["Items"].([]any); len(items) > 0 || !atBound(start) {
			return false
		}
		*tested = *reference
		return true
	}
	if q.IndexName != nil {
		// All pages were put together; there is one more, an empty one.
		a, _ := tested.Output["Pages"].(float64)
		b, _ := reference.Output["Pages"].(float64)
		if a != max(b, 1)+1 {
			return false
		}
		for _, field := range []string{"Pages", "ConsumedCapacity"} {
			delete(tested.Output, field)
			delete(reference.Output, field)
		}
		return true
	}
	last, have := tested.Output["LastEvaluatedKey"].(map[string]any)
	if _, also := reference.Output["LastEvaluatedKey"]; !have || also || !atBound(last) {
		return false
	}
	delete(tested.Output, "LastEvaluatedKey")
	return true
}

// halfIndexKey takes the surplus of the one index with two keys of its own
// out of the reference's capacities.
func halfIndexKey(in any, tested, reference *answer) bool {
	return withoutSurplus(in, tested, reference, "GlobalSecondaryIndexes", "gsi0")
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

func pathsInTexts(_ any, tested, reference *answer) bool {
	before := func(s string) string {
		text, _, _ := strings.Cut(s, "; path one:")
		return text
	}
	if tested.Message == reference.Message || !strings.Contains(tested.Message, "Two document paths overlap") ||
		before(tested.Message) != before(reference.Message) {
		return false
	}
	tested.Message = reference.Message
	return true
}

// attributeMistakes begin the texts about attribute values.
var attributeMistakes = []string{
	"A value provided cannot be converted into a number", "Input collection contains duplicates", "DynamoDB only supports precision up to 38 digits",
	"Number overflow", "Number underflow", "One or more parameter values were invalid: An", "One or more parameter values were invalid: Input collection", "One or more parameter values were invalid: Null attribute",
	"Supplied AttributeValue", "Nesting Levels", "Invalid attribute value type", "One or more parameter values were invalid: Type mismatch for Index Key",
	"One or more parameter values are not valid. A value specified for a secondary index key", "Item size has exceeded the maximum allowed size",
	"Empty attribute name", "The number of conditions on the keys is invalid", "One of the required keys was not given a value", "Hash primary key values must be under 2048 bytes",
}

func oneOfSeveralInItem(_ any, tested, reference *answer) bool {
	known := func(m string) bool {
		if _, of, found := strings.Cut(m, "ExpressionAttributeValues contains invalid value: "); found {
			m = of
		}
		return slices.ContainsFunc(attributeMistakes, func(prefix string) bool { return strings.HasPrefix(m, prefix) })
	}
	if tested.Message == reference.Message || !known(tested.Message) || !known(reference.Message) {
		return false
	}
	tested.Message = reference.Message
	return true
}

func tokenAndNames(in any, tested, reference *answer) bool {
	if tested.Code == "IdempotentParameterMismatchException" &&
		slices.ContainsFunc(attributeMistakes, func(prefix string) bool { return strings.HasPrefix(reference.Message, prefix) }) {
		*tested = *reference
		return true
	}
	if reference.Code != "IdempotentParameterMismatchException" || tested.Code != "ResourceNotFoundException" &&
		!strings.Contains(tested.Message, "can only be specified when using expressions") &&
		!strings.Contains(tested.Message, "Invalid table/index name") {
		return false
	}
	*tested = *reference
	return true
}

func filterOfIndexScan(in any, tested, reference *answer) bool {
	s, ok := in.(*dynamodb.ScanInput)
	if !ok || s.IndexName == nil || s.FilterExpression == nil || !tested.OK() || !reference.OK() {
		return false
	}
	for _, a := range []*answer{tested, reference} {
		delete(a.Output, "Items")
		delete(a.Output, "Count")
		delete(a.Output, "ConsumedCapacity") // by the size of what was filtered
	}
	return true
}

func oneOfSeveralInBatch(in any, tested, reference *answer) bool {
	tables := 0
	switch in := in.(type) {
	case *dynamodb.BatchGetItemInput:
		tables = len(in.RequestItems)
	case *dynamodb.BatchWriteItemInput:
		tables = len(in.RequestItems)
	}
	if tables == 0 || tested.OK() || reference.OK() || tested.Message == reference.Message {
		return false
	}
	value := slices.ContainsFunc(attributeMistakes, func(prefix string) bool { return strings.HasPrefix(reference.Message, prefix) })
	if tables == 1 && (!value || tested.Message != "Provided list of item keys contains duplicates") {
		return false
	}
	*tested = *reference
	return true
}

func oneOfSeveralInTransaction(in any, tested, reference *answer) bool {
	if _, ok := in.(*dynamodb.TransactWriteItemsInput); !ok || tested.OK() || reference.OK() || tested.Message == reference.Message {
		return false
	}
	if reference.Code == "TransactionCanceledException" && tested.Code != reference.Code {
		// An action that cannot be done at all, after one that is a reason.
		*tested = *reference
		return true
	}
	if tested.Code != "ValidationException" || reference.Code != tested.Code {
		return false
	}
	own, local := transactionMistake(tested.Message), transactionMistake(reference.Message)
	if own == "" || local == "" || own == local && own != "update" && own != "operand" {
		return false
	}
	tested.Message = reference.Message
	return true
}

// transactionMistake returns what part of a transaction's action a text is
// about; "" for others.
func transactionMistake(text string) string {
	starts := func(prefix string) bool { return strings.HasPrefix(text, prefix) }
	switch {
	case updateMistake(text):
		return "update"
	case operandMistake("Invalid UpdateExpression: ", text):
		return "operand"
	case starts("Invalid Request: TransactWriteRequest"):
		return "shape"
	case strings.Contains(text, "can only be specified when using expressions"):
		return "users"
	case starts("Value provided in ExpressionAttribute"):
		return "unused"
	case starts("Invalid table/index name"):
		return "table"
	case starts("Invalid "):
		if starts("Invalid attribute value type") {
			return "value"
		}
		return "expression"
	case slices.ContainsFunc(attributeMistakes, starts):
		return "value"
	}
	return ""
}

// keyMistakes are the texts that conditions on keys can be answered with.
var keyMistakes = []string{
	"Type mismatch for attribute to update",
	"Query key condition not supported",
	"Query condition missed key schema element",
	"One or more parameter values were invalid: Condition parameter type does not match schema type",
	"Attempted conditional constraint is not an indexable operation",
}

func keyMistake(text string) bool {
	return slices.Contains(keyMistakes, text) || strings.Contains(text, "The provided starting key is invalid")
}

func oneOfSeveralInKeyConditions(in any, tested, reference *answer) bool {
	q, ok := in.(*dynamodb.QueryInput)
	if !ok || len(q.KeyConditions) < 2 && q.KeyConditionExpression == nil || tested.Message == reference.Message ||
		!keyMistake(tested.Message) || !keyMistake(reference.Message) {
		return false
	}
	tested.Message = reference.Message
	return true
}

func startOfScan(in any, tested, reference *answer) bool {
	s, ok := in.(*dynamodb.ScanInput)
	if !ok || s.ExclusiveStartKey == nil {
		return false
	}
	const outside = "Exclusive start key must lie within the segment"
	if !tested.OK() && tested.Message != outside || !reference.OK() && reference.Message != outside {
		return false
	}
	*tested = *reference
	return true
}

// localIndexKeyInTransaction takes the reasons that DynamoDB Local does not
// see out of the tested engine's.
func localIndexKeyInTransaction(tested, reference *answer) bool {
	reasons, _ := tested.Detail["CancellationReasons"].([]any)
	local, _ := reference.Detail["CancellationReasons"].([]any)
	none := map[string]any{"Code": "None"}
	found, others := false, false
	for i, r := range reasons {
		r, _ := r.(map[string]any)
		unseen := reference.OK() || i < len(local) && reflect.DeepEqual(local[i], any(none))
		switch {
		case unseen && r["Message"] == "One or more parameter values were invalid: Type mismatch for Index Key":
			reasons[i], found = none, true
		case r["Code"] != "None":
			others = true
		}
	}
	if !found || !others && !reference.OK() || others && reference.OK() {
		return false
	}
	if others {
		tested.Message = reference.Message // it lists the codes
		return true
	}
	*tested = *reference
	return true
}

func crash(_ any, tested, reference *answer) bool {
	if reference.Code != "InternalFailure" && reference.Code != "InternalServerError" {
		return false
	}
	*tested = *reference
	return true
}

// oneOfSeveral forgives two refusals that are about different parts of a
// request. TestDifferential limits how often.
func oneOfSeveral(_ any, tested, reference *answer) bool {
	if tested.OK() || reference.OK() || tested.Message == reference.Message {
		return false
	}
	own, local := mistake(tested), mistake(reference)
	switch {
	case own == "" || local == "":
		return false
	case own == local && own != "scalars" && own != "filter keys":
		return false
	}
	*tested = *reference
	return true
}

// mistake returns what part of a request an error is about; "" for others.
func mistake(a *answer) string {
	switch a.Code {
	case "ResourceNotFoundException", "IdempotentParameterMismatchException", "TransactionCanceledException":
		return a.Code
	case "ValidationException":
	default:
		return ""
	}
	parts := []struct{ prefix, part string }{
		{"Key attributes must be scalars", "scalars"},
		{"Filter Expression can only contain non-primary key", "filter keys"},
		{"One or more parameter values were invalid: Type mismatch for key", "key type"},
		{"One or more parameter values are not valid. The AttributeValue for a key attribute", "key value"},
		{"One or more parameter values were invalid: Global secondary index", "projection"},
		{"One or more parameter values were invalid: Secondary index", "filter"},
		{"One or more parameter values were invalid: Select", "select"},
		{"1 validation error detected", "range"},
		{"If segment is specified", "range"},
		{"If total segments is specified", "range"},
		{"The provided starting key", "start"},
		{"Exclusive Start Key", "start"},
		{"Can not use both expression", "mixed"},
		{"Consistent reads are not supported", "consistency"},
		{"Transaction request cannot include", "duplicates"},
		{"Provided list of item keys contains duplicates", "duplicates"},
	}
	for _, p := range parts {
		if strings.HasPrefix(a.Message, p.prefix) {
			return p.part
		}
	}
	if slices.Contains(keyMistakes, a.Message) {
		return "key condition"
	}
	if part := transactionMistake(a.Message); part != "expression" {
		return part
	}
	// Which of the request's expressions.
	name, _, _ := strings.Cut(a.Message, ":")
	return name
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

func localIndexKey(in any, tested, reference *answer) bool {
	if _, ok := in.(*dynamodb.TransactWriteItemsInput); ok && tested.Code == "TransactionCanceledException" {
		return localIndexKeyInTransaction(tested, reference)
	}
	if _, ok := in.(*dynamodb.UpdateItemInput); !ok || !reference.OK() ||
		tested.Message != "One or more parameter values were invalid: Size limit exceeded" &&
			tested.Message != "One or more parameter values were invalid: Type mismatch for Index Key" {
		return false
	}
	*tested = *reference
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

func itemTwice(_ any, tested, reference *answer) bool {
	if reference.OK() || tested.Message != "Transaction request cannot include multiple operations on one item" {
		return false
	}
	*tested = *reference
	return true
}

func reasonsLeftOut(in any, tested, reference *answer) bool {
	if tested.Code != "TransactionCanceledException" || reference.Code != tested.Code {
		return false
	}
	all, _ := tested.Detail["CancellationReasons"].([]any)
	left, _ := reference.Detail["CancellationReasons"].([]any)
	var want any = map[string]any{"Code": "ValidationError", "Message": reference.Message}
	switch {
	case len(left) == 1 && len(all) > 1:
		want = left[0]
	case len(left) > 0:
		return false
	}
	if !slices.ContainsFunc(all, func(r any) bool { return reflect.DeepEqual(r, want) }) {
		return false
	}
	*tested = *reference
	return true
}
