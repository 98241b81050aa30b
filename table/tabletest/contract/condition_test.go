package contract_test

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// conditionItem is what the conditions below are evaluated on.
var conditionItem = document{
	"s": "hello", "n": 5, "b": []byte{1, 2, 3}, "t": true, "z": nil, "e": "",
	"ss": stringSet{"a", "b"}, "ns": numberSet{"1", "2.5"}, "bs": binarySet{{1}, {2}},
	"l": list{"x", 7, list{1, 2}, document{"k": "v"}},
	"m": document{"k": 1, "in": document{"deep": "yes"}, "a.b": "dotted"},
}

func TestCondition_DecidesWhetherAWriteIsMade(t *testing.T) {
	type d = document
	for _, tc := range []struct {
		name, condition string
		values          document
		names           map[string]string
		want            bool
	}{
		{"equal strings", "s = :v", d{"v": "hello"}, nil, true},
		{"equal ignores the spelling of a number", "n = :v", d{"v": number("5.00")}, nil, true},
		{"values of different types are unequal", "n = :v", d{"v": "5"}, nil, false},
		{"different types satisfy not equal", "n <> :v", d{"v": "5"}, nil, true},
		{"a missing attribute equals nothing", "q = :v", d{"v": "x"}, nil, false},
		{"a missing attribute satisfies not equal", "q <> :v", d{"v": "x"}, nil, true},
		{"two missing attributes are not equal", "q = r", nil, nil, false},
		{"sets are equal in any order", "ss = :v", d{"v": stringSet{"b", "a"}}, nil, true},
		{"lists are equal element by element", "l[2] = :v", d{"v": list{1, 2}}, nil, true},
		{"maps are equal in depth", "m.#in = :v", d{"v": d{"deep": "yes"}}, names("#in", "in"), true},
		{"null equals null", "z = :v", d{"v": nil}, nil, true},
		{"less compares numbers, not their text", "n < :v", d{"v": 10}, nil, true},
		{"less compares strings by bytes", "s < :v", d{"v": "z"}, nil, true},
		{"upper case sorts before lower case", "s < :v", d{"v": "Z"}, nil, false},
		{"less compares binary unsigned", "b < :v", d{"v": []byte{0xff}}, nil, true},
		{"order between types is false", "n < :v", d{"v": "9"}, nil, false},
		{"order with a missing attribute is false", "q < :v", d{"v": 9}, nil, false},
		{"negated order with a missing attribute is true", "NOT q < :v", d{"v": 9}, nil, true},
		{"at least includes the bound", "n >= :v", d{"v": 5}, nil, true},
		{"paths compare with paths", "n > m.k", nil, nil, true},
		{"between includes both bounds", "n BETWEEN :a AND :b", d{"a": 5, "b": 5}, nil, true},
		{"between takes paths", "n BETWEEN m.k AND l[1]", nil, nil, true},
		{"between excludes the rest", "n BETWEEN :a AND :b", d{"a": 6, "b": 9}, nil, false},
		{"in finds one of several", "s IN (:a, :b)", d{"a": "x", "b": "hello"}, nil, true},
		{"in respects types", "n IN (:a)", d{"a": "5"}, nil, false},
		{"and binds closer than or", "t = :f AND s = :x OR n = :five", d{"f": false, "x": "x", "five": 5}, nil, true},
		{"parentheses override", "t = :f AND (s = :x OR n = :five)", d{"f": false, "x": "x", "five": 5}, nil, false},
		{"not binds closest", "NOT t = :f AND n = :five", d{"f": false, "five": 5}, nil, true},
		{"keywords in any case", "not t = :f aNd n bEtWeEn :one And :nine", d{"f": false, "one": 1, "nine": 9}, nil, true},
		{"exists for null", "attribute_exists(z)", nil, nil, true},
		{"exists for an empty string", "attribute_exists(e)", nil, nil, true},
		{"exists in a list", "attribute_exists(l[3].k)", nil, nil, true},
		{"exists not past a list's end", "attribute_exists(l[4])", nil, nil, false},
		{"exists not through a scalar", "attribute_exists(s.k)", nil, nil, false},
		{"not exists in a map", "attribute_not_exists(m.q)", nil, nil, true},
		{"a placeholder is one name, dots and all", "attribute_exists(m.#ab)", nil, names("#ab", "a.b"), true},
		{"type of a set", "attribute_type(ns, :v)", d{"v": "NS"}, nil, true},
		{"type of a list", "attribute_type(l, :v)", d{"v": "SS"}, nil, false},
		{"begins with", "begins_with(s, :v)", d{"v": "hel"}, nil, true},
		{"begins with everything empty", "begins_with(s, :v)", d{"v": ""}, nil, true},
		{"begins with, binary", "begins_with(b, :v)", d{"v": []byte{1, 2}}, nil, true},
		{"begins with is false for a number", "begins_with(n, :v)", d{"v": "5"}, nil, false},
		{"contains a substring", "contains(s, :v)", d{"v": "ell"}, nil, true},
		{"contains a set's member", "contains(ns, :v)", d{"v": number("2.50")}, nil, true},
		{"contains a list's element", "contains(l, :v)", d{"v": list{1, 2}}, nil, true},
		{"contains not a map's key", "contains(m, :v)", d{"v": "k"}, nil, false},
		{"size of a string in bytes", "size(s) = :v", d{"v": 5}, nil, true},
		{"size of a list", "size(l) = :v", d{"v": 4}, nil, true},
		{"size of a set", "size(bs) = :v", d{"v": 2}, nil, true},
		{"size of a map", "size(m) = :v", d{"v": 3}, nil, true},
		{"size of a number is no size", "size(n) >= :v", d{"v": 0}, nil, false},
		{"operands in parentheses", "(n) BETWEEN (m.k) AND (l[1])", nil, nil, true},
		{"a condition among others in parentheses", "(s = :v AND n = :v OR n = :n)", d{"v": "hello", "n": 5}, nil, true},
		{"size may be compared from the right", ":v < size(b)", d{"v": 2}, nil, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			onTable(t, func(tb table) {
				tb.put("i", conditionItem)
				_, err := tb.DeleteItem(tb.ctx(), &dynamodb.DeleteItemInput{
					TableName: tb.name, Key: key("i"), ConditionExpression: &tc.condition,
					ExpressionAttributeValues: values(tc.values), ExpressionAttributeNames: tc.names,
				})
				if tc.want {
					require.NoError(tb, err)
					assert.Empty(tb, tb.get("i"), "deleted")
					return
				}
				_ = conditionFailed(tb, err) // fails the test where it is not
				tb.holds("i", conditionItem)
			})
		})
	}
}

func TestCondition_ThatFailsReturnsTheItemWhenAsked(t *testing.T) {
	onTable(t, func(tb table) {
		tb.put("i", document{"holder": "a"})
		in := &dynamodb.UpdateItemInput{
			TableName: tb.name, Key: key("i"), UpdateExpression: ptr("SET o = :o"), ConditionExpression: ptr("holder = :o"),
			ExpressionAttributeValues: values(document{"o": "b"}),
		}
		in.ReturnValuesOnConditionCheckFailure = types.ReturnValuesOnConditionCheckFailureAllOld
		_, err := tb.UpdateItem(tb.ctx(), in)
		same(tb, keyed("i", document{"holder": "a"}), conditionFailed(tb, err).Item)

		in.ReturnValuesOnConditionCheckFailure = types.ReturnValuesOnConditionCheckFailureNone
		_, err = tb.UpdateItem(tb.ctx(), in)
		assert.Empty(tb, conditionFailed(tb, err).Item)

		// There is no item to return.
		in.Key, in.ReturnValuesOnConditionCheckFailure = key("missing"), types.ReturnValuesOnConditionCheckFailureAllOld
		_, err = tb.UpdateItem(tb.ctx(), in)
		assert.Empty(tb, conditionFailed(tb, err).Item)
	})
}

func TestCondition_RefusesBadExpressions(t *testing.T) {
	type d = document
	for _, tc := range []struct {
		name, condition string
		values          document
		names           map[string]string
		text            string
	}{
		{"empty", "", nil, nil, "Invalid ConditionExpression: The expression can not be empty;"},
		{"unfinished", "s =", nil, nil, `Invalid ConditionExpression: Syntax error; token: "<EOF>", near: "="`},
		{"without operator", "s :v", d{"v": 1}, nil, `Syntax error; token: ":v", near: "s :v"`},
		{"reserved word", "status = :v", d{"v": 1}, nil, "Attribute name is a reserved keyword; reserved keyword: status"},
		{"undefined value", "s = :v", nil, nil, "An expression attribute value used in expression is not defined; attribute value: :v"},
		{"undefined name", "#s = :v", d{"v": 1}, nil, "An expression attribute name used in the document path is not defined; attribute name: #s"},
		{"unused value", "s = :v", d{"v": 1, "w": 1}, nil, "Value provided in ExpressionAttributeValues unused in expressions: keys: {:w}"},
		{"unused name", "s = :v", d{"v": 1}, names("#u", "u"), "Value provided in ExpressionAttributeNames unused in expressions: keys: {#u}"},
		{"unknown function", "foo(s)", nil, nil, "Invalid function name; function: foo"},
		{"function of too many", "attribute_exists(s, n)", nil, nil, "Incorrect number of operands for operator or function; operator or function: attribute_exists, number of operands: 2"},
		{"function as condition", "size(s)", nil, nil, "The function is not allowed to be used this way in an expression; function: size"},
		{"condition as operand", "attribute_exists(s) = :v", d{"v": true}, nil, "The function is not allowed to be used this way in an expression; function: attribute_exists"},
		{"order of a boolean", "t < :v", d{"v": true}, nil, "Incorrect operand type for operator or function; operator or function: <, operand type: BOOL"},
		{"prefix of wrong type", "begins_with(s, :v)", d{"v": 1}, nil, "operator or function: begins_with, operand type: N"},
		{"unknown type", "attribute_type(s, :v)", d{"v": "STRING"}, nil, "Invalid attribute type name found; type: STRING"},
		{"same operands", "s = s", nil, nil, "The first operand must be distinct from the remaining operands"},
		{"bounds out of order", "n BETWEEN :a AND :b", d{"a": 2, "b": 1}, nil, "The BETWEEN operator requires upper bound to be greater than or equal to lower bound"},
		{"bounds of two types", "n BETWEEN :a AND :b", d{"a": 1, "b": "x"}, nil, "The BETWEEN operator requires same data type for lower and upper bounds"},
		{"type that is a path", "attribute_type(s, n)", nil, nil, "Incorrect operand type for operator or function; operator or function: attribute_type, operand type: {"},
		{"type of itself", "attribute_type(s, s)", nil, nil, "The first operand must be distinct from the remaining operands for this operator or function; operator: attribute_type"},
		{"type that is a number", "attribute_type(s, :v)", d{"v": 1}, nil, "Incorrect operand type for operator or function; operator or function: attribute_type, operand type: N"},
		{"path too deep", "attribute_exists(a" + strings.Repeat(".a", 32) + ")", nil, nil, "The document path has too many nesting levels; nesting levels: 33"},
		{"in with too many", "s IN (:v" + strings.Repeat(",:v", 100) + ")", d{"v": "x"}, nil, "The IN operator is provided with too many operands; number of operands: 101"},
		{"nothing after or", "s = :v OR", d{"v": 1}, nil, `Syntax error; token: "<EOF>", near: "OR"`},
		{"nothing after and", "s = :v AND", d{"v": 1}, nil, `Syntax error; token: "<EOF>", near: "AND"`},
		{"nothing to negate", "NOT", nil, nil, `Syntax error; token: "<EOF>", near: "NOT"`},
		{"nothing after and in parentheses", "(s = :v AND )", d{"v": 1}, nil, `Syntax error; token: ")", near: "AND )"`},
		{"nothing after or in parentheses", "(s = :v OR )", d{"v": 1}, nil, `Syntax error; token: ")", near: "OR )"`},
		{"open parenthesis", "(s = :v", d{"v": 1}, nil, `Syntax error; token: "<EOF>", near: ":v"`},
		{"open parenthesis of an operand", "s = (:v", d{"v": 1}, nil, `Syntax error; token: "<EOF>", near: ":v"`},
		{"nothing in an operand's parentheses", "s = ()", nil, nil, `Syntax error; token: ")", near: "()"`},
		{"between without and", "s BETWEEN :v OR :v", d{"v": 1}, nil, `Syntax error; token: "OR", near: ":v OR :v"`},
		{"between with one bound", "s BETWEEN :v AND", d{"v": 1}, nil, `Syntax error; token: "<EOF>", near: "AND"`},
		{"in without parentheses", "s IN :v", d{"v": 1}, nil, `Syntax error; token: ":v", near: "IN :v"`},
		{"redundant parentheses", "((s = :v))", d{"v": 1}, nil, "The expression has redundant parentheses"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			onTable(t, func(tb table) {
				_, err := tb.PutItem(tb.ctx(), &dynamodb.PutItemInput{
					TableName: tb.name, Item: keyed("i", nil), ConditionExpression: &tc.condition,
					ExpressionAttributeValues: values(tc.values), ExpressionAttributeNames: tc.names,
				})
				tb.refused(err, tc.text)
				assert.Empty(tb, tb.get("i"), "nothing written")
			})
		})
	}
}

func ptr[T any](v T) *T { return &v }
