package contract_test

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/engines"
)

func TestUpdate_DoesWhatItsExpressionSays(t *testing.T) {
	type d = document
	for _, tc := range []struct {
		name   string
		before document
		update string
		values document
		names  map[string]string
		after  document
	}{
		{"set replaces", d{"a": 1}, "SET a = :v", d{"v": "x"}, nil, d{"a": "x"}},
		{"set makes the item", nil, "SET a = :v", d{"v": 1}, nil, d{"a": 1}},
		{"set reads the item as it was", d{"a": 1, "b": 2}, "SET a = b, b = a", nil, nil, d{"a": 2, "b": 1}},
		{"set adds", d{"a": 1}, "SET a = a + :v", d{"v": number("0.5")}, nil, d{"a": number("1.5")}},
		{"set subtracts from a value", d{"a": 1}, "SET b = :v - a", d{"v": 10}, nil, d{"a": 1, "b": 9}},
		{"set adds exactly with 38 digits", d{"a": number("12345678901234567890123456789012345677")}, "SET a = a + :v", d{"v": 1}, nil, d{"a": number("12345678901234567890123456789012345678")}},
		{"set into a map", d{"m": d{"k": 1}}, "SET m.q = :v", d{"v": 2}, nil, d{"m": d{"k": 1, "q": 2}}},
		{"set into a list", d{"l": list{1, 2}}, "SET l[0] = :v", d{"v": 9}, nil, d{"l": list{9, 2}}},
		{"set past a list's end appends", d{"l": list{1}}, "SET l[9] = :v", d{"v": 2}, nil, d{"l": list{1, 2}}},
		{"several past the end append in order of index", d{"l": list{1}}, "SET l[9] = :a, l[5] = :b", d{"a": 9, "b": 5}, nil, d{"l": list{1, 5, 9}}},
		{"if_not_exists keeps", d{"a": 1}, "SET a = if_not_exists(a, :v)", d{"v": 2}, nil, d{"a": 1}},
		{"if_not_exists supplies", nil, "SET a = if_not_exists(a, :z) + :v", d{"z": 0, "v": 2}, nil, d{"a": 2}},
		{"list_append at the end", d{"l": list{1}}, "SET l = list_append(l, :v)", d{"v": list{2}}, nil, d{"l": list{1, 2}}},
		{"list_append at the front", d{"l": list{1}}, "SET l = list_append(:v, l)", d{"v": list{2}}, nil, d{"l": list{2, 1}}},
		{"list_append to what may be missing", nil, "SET l = list_append(if_not_exists(l, :e), :v)", d{"e": list{}, "v": list{2}}, nil, d{"l": list{2}}},
		{"remove an attribute", d{"a": 1, "b": 2}, "REMOVE a", nil, nil, d{"b": 2}},
		{"remove what is missing", d{"b": 2}, "REMOVE a", nil, nil, d{"b": 2}},
		{"remove from a map", d{"m": d{"k": 1, "q": 2}}, "REMOVE m.k", nil, nil, d{"m": d{"q": 2}}},
		{"remove list elements by their old index", d{"l": list{0, 1, 2, 3}}, "REMOVE l[0], l[2]", nil, nil, d{"l": list{1, 3}}},
		{"remove past a list's end", d{"l": list{0}}, "REMOVE l[5]", nil, nil, d{"l": list{0}}},
		{"add to a number", d{"a": 1}, "ADD a :v", d{"v": -3}, nil, d{"a": -2}},
		{"add to what is missing counts from zero", nil, "ADD a :v", d{"v": 5}, nil, d{"a": 5}},
		{"add to a set", d{"s": stringSet{"a"}}, "ADD s :v", d{"v": stringSet{"a", "b"}}, nil, d{"s": stringSet{"a", "b"}}},
		{"add makes a set", nil, "ADD s :v", d{"v": numberSet{"1"}}, nil, d{"s": numberSet{"1"}}},
		{"delete from a set", d{"s": stringSet{"a", "b"}}, "DELETE s :v", d{"v": stringSet{"b", "c"}}, nil, d{"s": stringSet{"a"}}},
		{"delete of the last member removes the set", d{"s": stringSet{"a"}}, "DELETE s :v", d{"v": stringSet{"a"}}, nil, d{}},
		{"all clauses at once", d{"a": 1, "b": 2, "c": 3, "s": stringSet{"x", "y"}}, "SET a = :v REMOVE b ADD c :v DELETE s :s", d{"v": 1, "s": stringSet{"x"}}, nil, d{"a": 1, "c": 4, "s": stringSet{"y"}}},
		{"placeholders name what cannot be written", d{"a.b": 1}, "SET #d = #d + :v", d{"v": 1}, names("#d", "a.b"), d{"a.b": 2}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			onTable(t, func(tb table) {
				if tc.before != nil {
					tb.put("i", tc.before)
				}
				_, err := tb.UpdateItem(tb.ctx(), &dynamodb.UpdateItemInput{
					TableName: tb.name, Key: key("i"), UpdateExpression: &tc.update,
					ExpressionAttributeValues: values(tc.values), ExpressionAttributeNames: tc.names,
				})
				require.NoError(tb, err)
				tb.holds("i", tc.after)
			})
		})
	}
}

func TestUpdate_RefusesBadRequests(t *testing.T) {
	type d = document
	for _, tc := range []struct {
		name, update string
		values       document
		text         string
	}{
		{"key", "SET sk = :v", d{"v": "x"}, "Cannot update attribute sk. This attribute is part of the key"},
		{"overlap", "SET m = :v, m.k = :v", d{"v": 1}, "Two document paths overlap with each other"},
		{"conflict", "SET m.k = :v, m[0] = :v", d{"v": 1}, "Two document paths conflict with each other"},
		{"clause twice", "SET a = :v SET b = :v", d{"v": 1}, `The "SET" section can only be used once in an update expression`},
		{"missing parent", "SET q.k = :v", d{"v": 1}, "The document path provided in the update expression is invalid for update"},
		{"missing parent of a number to add to", "ADD q.k :v", d{"v": 1}, "The document path provided in the update expression is invalid for update"},
		{"missing parent of a set to delete from", "DELETE q.k :v", d{"v": stringSet{"x"}}, "The document path provided in the update expression is invalid for update"},
		{"missing parent of what to remove", "REMOVE q.k", nil, "The document path provided in the update expression is invalid for update"},
		{"map parent of a list step", "REMOVE m[0]", nil, "The document path provided in the update expression is invalid for update"},
		{"missing parent inside of a list", "SET l[5].k = :v", d{"v": 1}, "The document path provided in the update expression is invalid for update"},
		{"open parenthesis", "SET a = (a + :v", d{"v": 1}, `Syntax error; token: "<EOF>", near: ":v"`},
		{"nothing to add", "SET a = a +", nil, `Syntax error; token: "<EOF>", near: "+"`},
		{"nothing in parentheses", "SET a = ()", nil, `Syntax error; token: ")", near: "()"`},
		{"too large", "SET big = :v", d{"v": strings.Repeat("x", 400<<10)}, "Item size to update has exceeded the maximum allowed size"},
		{"list parent of a map step", "SET l.k = :v", d{"v": 1}, "The document path provided in the update expression is invalid for update"},
		{"missing alternative", "SET b = if_not_exists(a, q)", nil, "The provided expression refers to an attribute that does not exist in the item"},
		{"missing alternative inside of another", "SET b = if_not_exists(a, if_not_exists(s, q))", nil, "The provided expression refers to an attribute that does not exist in the item"},
		{"same alternative", "SET b = if_not_exists(a, a)", nil, "The first operand must be distinct from the remaining operands for this operator or function; operator: if_not_exists, first operand: [a]"},
		{"missing operand", "SET a = q + :v", d{"v": 1}, "The provided expression refers to an attribute that does not exist in the item"},
		{"arithmetic on a string", "SET a = s + :v", d{"v": 1}, "An operand in the update expression has an incorrect data type"},
		{"missing operand beside a string", "SET a = s + q", nil, "An operand in the update expression has an incorrect data type"},
		{"missing alternative beside a string", "SET a = s + (if_not_exists(q, r))", nil, "The provided expression refers to an attribute that does not exist in the item"},
		{"missing alternative beside no list", "SET l = list_append(s, if_not_exists(q, r))", nil, "The provided expression refers to an attribute that does not exist in the item"},
		{"arithmetic with a string", "SET a = a + :v", d{"v": "x"}, "Incorrect operand type for operator or function; operator or function: +, operand type: S"},
		{"add to a string", "ADD s :v", d{"v": 1}, "An operand in the update expression has an incorrect data type"},
		{"add of a string", "ADD a :v", d{"v": "x"}, "Incorrect operand type for operator or function; operator: ADD, operand type: STRING"},
		{"delete of a number", "DELETE ss :v", d{"v": 1}, "operator: DELETE, operand type: NUMBER"},
		{"delete of another set type", "DELETE ss :v", d{"v": numberSet{"1"}}, "An operand in the update expression has an incorrect data type"},
		{"list_append to a number", "SET l = list_append(a, :v)", d{"v": list{1}}, "An operand in the update expression has an incorrect data type"},
		{"index key of wrong type", "SET gpk = :v", d{"v": 1}, "Type mismatch"},
		{"result out of range", "SET a = a + :v", d{"v": number("1E+126")}, "Number overflow"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			onTable(t, func(tb table) {
				before := document{"a": 1, "s": "x", "ss": stringSet{"x"}, "l": list{1}, "m": document{"k": 1}}
				tb.put("i", before)
				_, err := tb.UpdateItem(tb.ctx(), &dynamodb.UpdateItemInput{
					TableName: tb.name, Key: key("i"), UpdateExpression: &tc.update, ExpressionAttributeValues: values(tc.values),
				})
				tb.refused(err, tc.text)
				tb.holds("i", before)
			})
		})
	}
}

func TestUpdate_ReturnsValues(t *testing.T) {
	type d = document
	before := d{"a": 1, "b": 2, "m": d{"k": 1}}
	for _, tc := range []struct {
		returns types.ReturnValue
		want    document
	}{
		{types.ReturnValueNone, nil},
		{types.ReturnValueAllOld, d{"pk": "p", "sk": "i", "a": 1, "b": 2, "m": d{"k": 1}}},
		{types.ReturnValueAllNew, d{"pk": "p", "sk": "i", "a": 5, "c": 3, "m": d{"k": 7}}},
		{types.ReturnValueUpdatedOld, d{"a": 1, "b": 2, "m": d{"k": 1}}},
		{types.ReturnValueUpdatedNew, d{"a": 5, "c": 3, "m": d{"k": 7}}},
	} {
		t.Run(string(tc.returns), func(t *testing.T) {
			onTable(t, func(tb table) {
				tb.put("i", before)
				out, err := tb.UpdateItem(tb.ctx(), &dynamodb.UpdateItemInput{
					TableName: tb.name, Key: key("i"), ReturnValues: tc.returns,
					UpdateExpression:          ptr("SET a = :a, c = :c, m.k = :k REMOVE b"),
					ExpressionAttributeValues: values(d{"a": 5, "c": 3, "k": 7}),
				})
				require.NoError(tb, err)
				if tc.want == nil {
					assert.Empty(tb, out.Attributes)
					return
				}
				same(tb, item(tc.want), out.Attributes)
			})
		})
	}
}

func TestUpdatedValues_HoldNoMoreThanTheUpdatedPaths(t *testing.T) {
	onTable(t, func(tb table) {
		engines.Only(tb.T, engines.InProcess, "DynamoDB Local returns the whole attribute around an updated path, the service does not")
		tb.put("i", document{"m": document{"k": 1, "q": 2}, "l": list{1, 2}})
		out, err := tb.UpdateItem(tb.ctx(), &dynamodb.UpdateItemInput{
			TableName: tb.name, Key: key("i"), ReturnValues: types.ReturnValueUpdatedNew,
			UpdateExpression: ptr("SET m.k = :v, l[1] = :v"), ExpressionAttributeValues: values(document{"v": 7}),
		})
		require.NoError(tb, err)
		same(tb, item(document{"m": document{"k": 7}, "l": list{7}}), out.Attributes)
	})
}

func TestPut_ReplacesTheWholeItemAndReturnsTheOld(t *testing.T) {
	onTable(t, func(tb table) {
		tb.put("i", document{"a": 1, "b": 2})
		out, err := tb.PutItem(tb.ctx(), &dynamodb.PutItemInput{TableName: tb.name, Item: keyed("i", document{"c": 3}), ReturnValues: types.ReturnValueAllOld})
		require.NoError(tb, err)
		same(tb, keyed("i", document{"a": 1, "b": 2}), out.Attributes)
		tb.holds("i", document{"c": 3})
	})
}

func TestDelete_OfNothingSucceedsAndReturnsNothing(t *testing.T) {
	onTable(t, func(tb table) {
		out, err := tb.DeleteItem(tb.ctx(), &dynamodb.DeleteItemInput{TableName: tb.name, Key: key("i"), ReturnValues: types.ReturnValueAllOld})
		require.NoError(tb, err)
		assert.Empty(tb, out.Attributes)
	})
}

func TestUpdate_WithoutExpressionMakesTheKeysOnly(t *testing.T) {
	onTable(t, func(tb table) {
		_, err := tb.UpdateItem(tb.ctx(), &dynamodb.UpdateItemInput{TableName: tb.name, Key: key("i")})
		require.NoError(tb, err)
		tb.holds("i", nil)
	})
}

func TestItem_BeyondTheLimitsIsRefused(t *testing.T) {
	type d = document
	deep := any(1)
	for range 33 {
		deep = list{deep}
	}
	for _, tc := range []struct {
		name string
		item document
		text string
	}{
		{"missing sort key", d{"pk": "p"}, "Missing the key sk in the item | One of the required keys was not given a value"},
		{"key of wrong type", d{"pk": "p", "sk": 1}, "Type mismatch for key"},
		{"empty key", d{"pk": "", "sk": "s"}, "cannot contain an empty string value. Key: pk"},
		{"partition key over 2048 bytes", d{"pk": strings.Repeat("k", 2049), "sk": "s"}, "Size of hashkey has exceeded the maximum size limit of2048 bytes | must be under 2048 bytes"},
		{"sort key over 1024 bytes", d{"pk": "p", "sk": strings.Repeat("k", 1025)}, "Aggregated size of all range keys has exceeded the size limit of 1024 bytes | must be under 1024 bytes"},
		{"index key of wrong type", d{"pk": "p", "sk": "s", "gpk": 1}, "Type mismatch for Index Key"},
		{"empty index key", d{"pk": "p", "sk": "s", "gpk": ""}, "empty string value"},
		{"item over 400 KB", d{"pk": "p", "sk": "s", "x": strings.Repeat("x", 409_600)}, "Item size has exceeded the maximum allowed size"},
		{"item over 400 KB with its entry in a local index", d{"pk": "p", "sk": "s", "lsk": "l", "inc": strings.Repeat("x", 209_000)}, "Item size has exceeded the maximum allowed size"},
		{"empty set", d{"pk": "p", "sk": "s", "x": stringSet{}}, "may not be empty"},
		{"set with duplicates", d{"pk": "p", "sk": "s", "x": stringSet{"a", "a"}}, "contains duplicates"},
		{"number set with equal numbers", d{"pk": "p", "sk": "s", "x": numberSet{"1", "1.0"}}, "contains duplicates"},
		{"39 digits", d{"pk": "p", "sk": "s", "x": number("123456789012345678901234567890123456789")}, "Attempting to store more than 38 significant digits in a Number | only supports precision up to 38 digits"},
		{"number too large", d{"pk": "p", "sk": "s", "x": number("1E+126")}, "Number overflow. Attempting to store a number with magnitude larger than supported range"},
		{"number too small", d{"pk": "p", "sk": "s", "x": number("1E-131")}, "Number underflow. Attempting to store a number with magnitude smaller than supported range"},
		{"no number", d{"pk": "p", "sk": "s", "x": number("abc")}, "The parameter cannot be converted to a numeric value: abc | cannot be converted into a number"},
		{"nested too deep", d{"pk": "p", "sk": "s", "x": deep}, "Nesting Levels have exceeded supported limits"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			onTable(t, func(tb table) {
				_, err := tb.PutItem(tb.ctx(), &dynamodb.PutItemInput{TableName: tb.name, Item: item(tc.item)})
				tb.refused(err, tc.text)
				out, err := tb.Scan(tb.ctx(), &dynamodb.ScanInput{TableName: tb.name})
				require.NoError(tb, err)
				assert.Empty(tb, out.Items, "nothing written")
			})
		})
	}
}

func TestItem_AtTheLimitsIsAccepted(t *testing.T) {
	type d = document
	pk, sk := strings.Repeat("p", 2048), strings.Repeat("s", 1024)
	nested := any(1)
	for range 31 {
		nested = list{nested}
	}
	for name, it := range map[string]document{
		"longest keys":        {"pk": pk, "sk": sk},
		"400 KB":              {"pk": "p", "sk": "s", "x": strings.Repeat("x", 409_600-2*3-1)},
		"empty values":        {"pk": "p", "sk": "s", "e": "", "b": []byte{}, "l": list{}, "m": d{}},
		"deepest nesting":     {"pk": "p", "sk": "s", "x": nested},
		"38 digits":           {"pk": "p", "sk": "s", "x": number("99999999999999999999999999999999999999")},
		"empty string in set": {"pk": "p", "sk": "s", "x": stringSet{"", "a"}},
	} {
		t.Run(name, func(t *testing.T) {
			onTable(t, func(tb table) {
				_, err := tb.PutItem(tb.ctx(), &dynamodb.PutItemInput{TableName: tb.name, Item: item(it)})
				require.NoError(tb, err)
				out, err := tb.GetItem(tb.ctx(), &dynamodb.GetItemInput{TableName: tb.name, Key: item(d{"pk": it["pk"], "sk": it["sk"]})})
				require.NoError(tb, err)
				same(tb, item(it), out.Item)
			})
		})
	}
}
