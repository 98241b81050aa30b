package tabletest_test

import (
	"regexp"
	"strings"
)

// wording is a refusal that DynamoDB Local words differently from the service. local is a pattern for what it says
// instead, and canonical one of these texts, which takes the place of both.
type wording struct{ service, local, canonical string }

// wordings follow the service as it was recorded in public conformance suites. The contract tests hold each text.
var wordings = []wording{
	{`^Requested resource not found(: Table: .* not found)?$`, ``, `Cannot do operations on a non-existent table`},
	{`^Table already exists: .*$`, ``, `Cannot create preexisting table`},
	{
		`The provided key element does not match the schema|One or more parameter values were invalid: (Missing the key \S+ in the item|Type mismatch for key \S+ expected: \S+ actual: \S+)`,
		`The number of conditions on the keys is invalid|One of the required keys was not given a value|One or more parameter values were invalid: Type mismatch for key$|Invalid attribute value type`,
		`The number of conditions on the keys is invalid`,
	},
	{indexKeyMismatch + ` \S+ Expected: \S+ Actual: \S+ IndexName: \S+|` + updatedKeyMismatch, ``, indexKeyMismatch},
	{
		`One or more parameter values were invalid: (Size of hashkey has exceeded the maximum size limit of2048 bytes|Aggregated size of all range keys has exceeded the size limit of 1024 bytes)|` +
			`The update expression attempted to update the secondary index key beyond allowed size limits`,
		`One or more parameter values were invalid: Size limit exceeded`,
		`Hash primary key values must be under 2048 bytes, and range primary key values must be under 1024 bytes`,
	},
	{`The parameter cannot be converted to a numeric value(: .*?)?(?P<rest>$| for key )`, ``, `A value provided cannot be converted into a number${rest}`},
	{`^TimeToLive is active on a different AttributeName: current AttributeName is .*$`, ``, `TimeToLive is active on a different AttributeName`},
	{`Attempting to store more than 38 significant digits in a Number`, ``, `DynamoDB only supports precision up to 38 digits`},
	{`contains duplicates\.`, ``, `contains duplicates`},
	{`^Query condition missed key schema element: \S+$`, `^Query key condition not supported$`, `Query condition missed key schema element`},
	{`^KeyConditionExpressions cannot have conditions on nested attributes$`, `Key attributes must be scalars; list random access '\[\]' and map lookup '\.' are not allowed: Key: \S+`, `Key attributes must be scalars`},
	{
		`^(The provided starting key is outside query boundaries based on provided conditions|The query can return at most one row and cannot be restarted|The provided exclusive start key is invalid: .*)$`, ``,
		`The provided starting key does not match the range key predicate`,
	},
	{
		`^The provided starting key is invalid(: The number of conditions on the keys is invalid)?$`,
		`^(Exclusive Start Key must have same size as table's key schema|Type mismatch for attribute to update)$`,
		`The provided starting key is invalid`,
	},
	{`^The provided starting key is invalid: Invalid ExclusiveStartKey\. Please use .*$`, ``, `Exclusive start key must lie within the segment`},
	{
		`(?s)^\d+ validation errors? detected: .*$|^ReturnValues can only be ALL_OLD or NONE$|^The requestItems parameter is required for \w+$|^The (Total)?Segments? parameter is .*$`,
		`^Return values set to invalid value$|^Limit must be greater than or equal to 1$|^Invalid table/index name\..*$|^Select must be .*$|` +
			`^Batch(Get|Write)Item (must have some|cannot have a null or no) requests set$|^The (list of keys in RequestItems|batch write request list for a table) .*$|` +
			`^Too many items requested for the \w+ call$|(?s)^(Value .* failed to satisfy constraint: )?Member must .*$|^If (total segments|segment) is specified, .*$|` +
			`^The table does not have the specified index: .{0,2}$`,
		`1 validation error detected`,
	},
}

const (
	indexKeyMismatch   = `One or more parameter values were invalid: Type mismatch for Index Key`
	updatedKeyMismatch = `The update expression attempted to update the secondary index key to unsupported type`
)

// serviceTexts puts both answers' texts into the same words.
func serviceTexts(compiled []compiledWording) func(_ any, tested, reference *answer) bool {
	return func(_ any, tested, reference *answer) bool {
		if tested.OK() && reference.OK() {
			return false
		}
		changed := false
		if (strings.HasPrefix(tested.Message, indexKeyMismatch) || tested.Message == updatedKeyMismatch) && reference.Message == "Invalid attribute value type" {
			reference.Message = indexKeyMismatch // DynamoDB Local says the same of the table's keys
		}
		if tested.Message == "The provided key element does not match the schema" && reference.Message == "Type mismatch for attribute to update" {
			reference.Message = tested.Message // of a start key
		}
		for _, a := range []*answer{tested, reference} {
			reworded(&a.Message, compiled, &changed)
			reasons, _ := a.Detail["CancellationReasons"].([]any)
			for _, r := range reasons {
				r, _ := r.(map[string]any)
				if m, ok := r["Message"].(string); ok {
					reworded(&m, compiled, &changed)
					r["Message"] = m
				}
			}
		}
		return changed
	}
}

type compiledWording struct {
	either    *regexp.Regexp
	canonical string
}

func compileWordings() []compiledWording {
	out := make([]compiledWording, len(wordings))
	for i, w := range wordings {
		patterns := []string{w.service}
		if w.local != "" {
			patterns = append(patterns, w.local)
		}
		out[i] = compiledWording{regexp.MustCompile(strings.Join(patterns, "|")), w.canonical}
	}
	return out
}

func reworded(text *string, compiled []compiledWording, changed *bool) {
	for _, w := range compiled {
		if next := w.either.ReplaceAllString(*text, w.canonical); next != *text {
			*text, *changed = next, true
		}
	}
}
