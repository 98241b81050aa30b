package tabletest_test

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mortise-go/mortise/internal/proof/differential"
)

// Rules about which refusal a request gets, and its text.

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

func fullStop(_ any, _, reference *answer) bool {
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
	if len(keysOf(in, false)) == len(keysOf(in, true)) {
		return false
	}
	if tested.OK() && reference.OK() {
		once, _ := tested.Output["Responses"].(map[string]any)
		tables, _ := reference.Output["Responses"].(map[string]any)
		for name := range tables {
			want, _ := once[name].([]any)
			items, _ := tables[name].([]any) // sorted
			for i := 1; i < len(items) && len(items) > len(want); {
				if reflect.DeepEqual(items[i], items[i-1]) {
					items = slices.Delete(items, i, i+1)
				} else {
					i++
				}
			}
			tables[name] = items
		}
		delete(tested.Output, "ConsumedCapacity")
		delete(reference.Output, "ConsumedCapacity")
		return len(tables) > 0
	}
	if tested.Message != "Transaction request cannot include multiple operations on one item" || reference.Message == tested.Message {
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

func oneOfSeveralInUpdate(in any, tested, reference *answer) bool {
	up, ok := in.(*dynamodb.UpdateItemInput)
	if !ok || tested.Message == reference.Message || up.UpdateExpression == nil {
		return false
	}
	if !updateMistake(tested.Message) || !updateMistake(reference.Message) {
		return false
	}
	if strings.HasPrefix(tested.Message, "One or more parameter values were invalid: Type mismatch for Index Key") {
		tested.Message = reference.Message // the service finds a type that the request tells before it looks at the item
		return true
	}
	// More than one action: separated by commas outside of functions, or by clauses.
	actions := 0
	depth := 0
	for _, r := range *up.UpdateExpression {
		switch {
		case r == '(':
			depth++
		case r == ')':
			depth--
		case r == ',' && depth == 0:
			actions++
		}
	}
	for _, clause := range []string{"SET ", "REMOVE ", "ADD ", "DELETE "} {
		actions += strings.Count(strings.ToUpper(*up.UpdateExpression), clause)
	}
	if actions < 2 {
		return false
	}
	tested.Message = reference.Message
	return true
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

func tokenAndNames(_ any, tested, reference *answer) bool {
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
	if own == "" || local == "" || own == local && own != "update" {
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

func itemTwice(_ any, tested, reference *answer) bool {
	if reference.OK() || tested.Message != "Transaction request cannot include multiple operations on one item" {
		return false
	}
	*tested = *reference
	return true
}
