package tabletest_test

import (
	"reflect"
	"slices"
	"strings"
)

// Rules about what is looked at first, and what is looked at at all.

// atTable begins the texts of mistakes that only the schema of the table shows.
var atTable = []string{
	"The number of conditions on the keys is invalid", "Hash primary key values must be under 2048 bytes",
	"One or more parameter values are not valid. The AttributeValue for a key attribute", "The table does not have the specified index",
	"One or more parameter values were invalid: Type mismatch for Index Key", "Consistent reads are not supported",
}

func needsTable(a *answer) bool {
	return a.Code == "ResourceNotFoundException" || slices.ContainsFunc(atTable, func(prefix string) bool { return strings.HasPrefix(a.Message, prefix) })
}

// tableFirst forgives that DynamoDB Local looks for the table, and at the keys, before it reads the rest of the request.
func tableFirst(_ any, tested, reference *answer) bool {
	if tested.Code != "ValidationException" || reference.OK() || needsTable(tested) || !needsTable(reference) || mistake(tested) == "" && !legacyMistake(tested.Message) {
		return false
	}
	*tested = *reference
	return true
}

// legacyMistake reports whether a text is about the older form of a condition.
func legacyMistake(text string) bool {
	return strings.HasPrefix(text, "The BETWEEN condition was provided a range") || strings.Contains(text, "ComparisonOperator") ||
		strings.Contains(text, "AttributeValueList")
}

func firstInvalidAction(_ any, tested, reference *answer) bool {
	own, _ := tested.Detail["CancellationReasons"].([]any)
	local, _ := reference.Detail["CancellationReasons"].([]any)
	if len(own) == 0 || len(own) != len(local) || reflect.DeepEqual(own, local) {
		return false
	}
	invalid := 0
	for i, r := range own {
		switch r, _ := r.(map[string]any); r["Code"] {
		case "None":
		case "ValidationError":
			invalid++
			if !reflect.DeepEqual(own[i], local[i]) {
				return false
			}
		default:
			return false
		}
	}
	if invalid != 1 {
		return false
	}
	*tested = *reference
	return true
}

func startAtTheOnlyRow(_ any, tested, reference *answer) bool {
	if !strings.HasPrefix(tested.Message, "The provided exclusive start key is invalid: ExclusiveStartKey: ") {
		return false
	}
	*tested = *reference
	return true
}
