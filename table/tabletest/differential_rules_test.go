package tabletest_test

import (
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/cockroachdb/apd/v3"

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
		Name:    "invalid operand in a transaction",
		Reason:  "the service cancels the transaction with a reason ValidationError; DynamoDB Local answers a ValidationException",
		Forgive: invalidOperandInTransaction,
	},
}

// spellNumbers puts the numbers of both answers into one form.
func spellNumbers(_ any, tested, reference *answer) bool {
	changed := false
	for _, a := range []*answer{tested, reference} {
		for _, tree := range []map[string]any{a.Output, a.Detail} {
			respell(tree, &changed)
		}
	}
	return changed
}

func respell(v any, changed *bool) {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			switch e := e.(type) {
			case string:
				if k == "N" && len(v) == 1 {
					v[k] = spelled(e, changed)
				}
			case []any:
				if k == "NS" && len(v) == 1 {
					for i := range e {
						if s, ok := e[i].(string); ok {
							e[i] = spelled(s, changed)
						}
					}
					slices.SortFunc(e, func(a, b any) int { return strings.Compare(a.(string), b.(string)) })
					continue
				}
				respell(e, changed)
			default:
				respell(e, changed)
			}
		}
	case []any:
		for _, e := range v {
			respell(e, changed)
		}
	}
}

func spelled(n string, changed *bool) string {
	d, _, err := apd.NewFromString(n)
	if err != nil {
		return n
	}
	d.Reduce(d)
	if d.IsZero() {
		d.Negative = false
	}
	s := d.Text('E')
	if s != n {
		*changed = true
	}
	return s
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
		if r["Code"] == "ValidationError" && r["Message"] == reference.Message {
			*reference = *tested
			return true
		}
	}
	return false
}
