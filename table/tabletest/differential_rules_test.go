package tabletest_test

import (
	"reflect"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mortise-go/mortise/internal/proof/differential"
)

type answer = differential.Answer

// knownDifferences lists where DynamoDB Local differs from the service, or
// where the service promises nothing. A rule forgives no more than it says.
var knownDifferences = []differential.Rule{
	{
		Name:    "start in a partition of one row",
		Reason:  "the service refuses ExclusiveStartKey in a query of a table without sort key; DynamoDB Local answers that nothing follows",
		Forgive: startAtTheOnlyRow,
	},
	{
		Name:    "texts of the service",
		Reason:  "DynamoDB Local words many refusals in its own way; the engine words them as the service does",
		Forgive: serviceTexts(compileWordings()),
	},
	{
		Name:    "table first",
		Reason:  "the service reads all of a request before it looks for the table; DynamoDB Local begins with the table and the key",
		Forgive: tableFirst,
	},
	{
		Name:    "first invalid action",
		Reason:  "the service cancels a transaction at the first action that does not fit its table; DynamoDB Local gives the reasons of the other actions too",
		Forgive: firstInvalidAction,
	},
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
		Name:    "indexes in a transaction",
		Reason:  "the service doubles the units of items, and not those of indexes; DynamoDB Local doubles both",
		Forgive: indexesOfTransaction,
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
		Reason:  "an item with only some of an index's key attributes is not in it; DynamoDB Local charges the index when these give way to others",
		Forgive: halfIndexKey,
	},
	{
		Name:    "size of local index entries",
		Reason:  "an entry is as large as what it holds; DynamoDB Local counts some more bytes for local indexes",
		Forgive: sizeOfLocalEntries,
	},
	{
		Name:    "reads and writes apart",
		Reason:  "the service reports the units of a transaction as reads or writes too; DynamoDB Local reports only their sum",
		Forgive: readsAndWritesApart,
	},
	{
		Name: "capacity of a transaction",
		Reason: "the service adds up the cost of every action; DynamoDB Local counts actions of one table that cost the same " +
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
		Name:    "partitions of a scan",
		Reason:  "the service rounds up what a scan reads in each physical partition, of which a new on-demand table has four; DynamoDB Local has one",
		Forgive: partitionsOfScan,
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
		Name:    "projection of nothing",
		Reason:  "the service leaves out an item of TransactGetItems of which the projection selects nothing; DynamoDB Local returns an empty one",
		Forgive: projectionOfNothing,
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
		Reason:  "the service finds equal numbers in a transaction's keys however they are spelled, and reads an item of a batch once; DynamoDB Local compares their text, and reads it several times",
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
		Name:    "empty key condition beside the older one",
		Reason:  "the service says that the two kinds of parameters cannot be mixed; DynamoDB Local says first that the expression is empty",
		Forgive: emptyKeyCondition,
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

func itemCollectionMetrics(_ any, tested, reference *answer) bool {
	if _, have := reference.Output["ItemCollectionMetrics"]; have {
		return false
	}
	_, have := tested.Output["ItemCollectionMetrics"]
	delete(tested.Output, "ItemCollectionMetrics")
	return have
}

func projectionOfNothing(in any, tested, reference *answer) bool {
	if _, ok := in.(*dynamodb.TransactGetItemsInput); !ok {
		return false
	}
	own, _ := tested.Output["Responses"].([]any)
	local, _ := reference.Output["Responses"].([]any)
	if len(own) != len(local) {
		return false
	}
	changed := false
	for i := range own {
		a, _ := own[i].(map[string]any)
		b, _ := local[i].(map[string]any)
		empty, have := b["Item"].(map[string]any)
		if _, also := a["Item"]; have && len(empty) == 0 && !also {
			delete(b, "Item")
			changed = true
		}
	}
	return changed
}

func invalidOperandInTransaction(in any, tested, reference *answer) bool {
	_, write := in.(*dynamodb.TransactWriteItemsInput)
	_, get := in.(*dynamodb.TransactGetItemsInput)
	if !write && !get ||
		tested.Code != "TransactionCanceledException" || reference.Code != "ValidationException" {
		return false
	}
	reasons, _ := tested.Detail["CancellationReasons"].([]any)
	for _, r := range reasons {
		r, _ := r.(map[string]any)
		message, _ := r["Message"].(string)
		if r["Code"] == "ValidationError" && (message == reference.Message ||
			strings.HasPrefix(message, indexKeyMismatch) && reference.Message == "Invalid attribute value type" ||
			updateMistake(message) && updateMistake(reference.Message)) {
			*reference = *tested
			return true
		}
	}
	return false
}

func emptyKeyCondition(in any, tested, reference *answer) bool {
	q, ok := in.(*dynamodb.QueryInput)
	if !ok || q.KeyConditions == nil || reference.Message != "Invalid KeyConditionExpression: The expression can not be empty;" ||
		!strings.HasPrefix(tested.Message, "Can not use both expression and non-expression parameters in the same request") {
		return false
	}
	*reference = *tested
	return true
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

func localIndexKey(in any, tested, reference *answer) bool {
	if _, ok := in.(*dynamodb.TransactWriteItemsInput); ok && tested.Code == "TransactionCanceledException" {
		return localIndexKeyInTransaction(tested, reference)
	}
	if _, ok := in.(*dynamodb.UpdateItemInput); !ok || !reference.OK() ||
		tested.Message != "Hash primary key values must be under 2048 bytes, and range primary key values must be under 1024 bytes" &&
			tested.Message != indexKeyMismatch {
		return false
	}
	*tested = *reference
	return true
}

func reasonsLeftOut(_ any, tested, reference *answer) bool {
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
