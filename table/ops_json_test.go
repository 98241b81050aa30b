package table_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/engines"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

func TestOpsFromJSON_AreAppliedAsTheyStand(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		ctx := t.Context()
		tbl, err := table.Open(e.Client(), table.Schema{Name: e.TableName(t), Keys: keys.Scheme{PK: "PK", SK: "SK"}})
		require.NoError(t, err)
		require.NoError(t, tbl.Ensure(ctx))
		require.NoError(t, tbl.Write(ctx, table.Put(tbl.KeyItem(keys.NewKey("p", "gone")))))
		require.NoError(t, tbl.Write(ctx, table.Update(keys.NewKey("p", "seen"), table.Attr("state").Set("open"))))
		write := func(text string, more ...table.Op) error {
			ops, err := tbl.OpsFromJSON([]byte(strings.ReplaceAll(text, "TABLE", tbl.Name())))
			require.NoError(t, err)
			return tbl.Write(ctx, append(ops, more...)...)
		}
		const text = `[
			{"Put": {"TableName": "TABLE", "Item": {"PK": {"S": "p"}, "SK": {"S": "put"}, "n": {"N": "1"}}, "ConditionExpression": "attribute_not_exists(PK)"}},
			{"Update": {"Key": {"PK": {"S": "p"}, "SK": {"S": "updated"}}, "UpdateExpression": "SET #n.#m = :m REMOVE #gone ADD hits :one", "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
				"ExpressionAttributeNames": {"#n": "list", "#m": "size", "#gone": "gone"}, "ExpressionAttributeValues": {":m": {"S": "x"}, ":one": {"N": "1"}}}},
			{"Delete": {"TableName": "TABLE", "Key": {"PK": {"S": "p"}, "SK": {"S": "gone"}}, "Item": null, "ConditionExpression": null, "ExpressionAttributeNames": null}},
			{"ConditionCheck": {"TableName": "TABLE", "Key": {"PK": {"S": "p"}, "SK": {"S": "seen"}}, "ConditionExpression": "#s = :open OR #s = :new",
				"ExpressionAttributeNames": {"#s": "state"}, "ExpressionAttributeValues": {":open": {"S": "open"}, ":new": {"S": "new"}}}}]`
		require.NoError(t, tbl.Write(ctx, table.Update(keys.NewKey("p", "updated"), table.Attr("list").Set(map[string]string{"a": "b"}), table.Attr("gone").Set(1))))
		require.NoError(t, write(text))
		item, err := tbl.Get(ctx, keys.NewKey("p", "updated"), true)
		require.NoError(t, err)
		want, err := table.ItemFromJSON([]byte(`{"PK": {"S": "p"}, "SK": {"S": "updated"}, "hits": {"N": "1"}, "list": {"M": {"a": {"S": "b"}, "size": {"S": "x"}}}}`))
		require.NoError(t, err)
		assert.Equal(t, want, item)
		_, err = tbl.Get(ctx, keys.NewKey("p", "gone"), true)
		require.ErrorIs(t, err, table.ErrNotFound)

		// The put's condition does not hold any more: nothing is applied, and the error has what stands there.
		err = write(text)
		var failed *table.ConditionError
		require.ErrorAs(t, err, &failed)
		assert.Zero(t, failed.Index)
		assert.Contains(t, failed.Item, "n")
		item, err = tbl.Get(ctx, keys.NewKey("p", "updated"), true)
		require.NoError(t, err)
		assert.Equal(t, want, item)

		// Conditions of the program's own are added to one from JSON, whatever words that has.
		ops, err := tbl.OpsFromJSON([]byte(`[{"Delete": {"Key": {"PK": {"S": "p"}, "SK": {"S": "seen"}},
			"ConditionExpression": "attribute_exists(PK) OR attribute_exists(SK)"}}]`))
		require.NoError(t, err)
		require.ErrorIs(t, tbl.Write(ctx, ops[0].If(table.Attr("state").Equal("done"))), table.ErrCondition)
		require.NoError(t, tbl.Write(ctx, ops[0].If(table.Attr("state").Equal("open"))))
	})
}

func TestOpsFromJSON_ConditionsInParenthesesTakeOthers(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		f.put(t, f.item("p", "s", "v", 1))
		for text, holds := range map[string]bool{
			"(attribute_exists(v))":                               true,
			" ( (attribute_exists(v)) AND attribute_exists(v) ) ": true,
			"(attribute_exists(v)) AND (attribute_not_exists(w))": true,
			"(:one = :one) OR (attribute_exists(w))":              true,
			"(:one IN (:one)) OR attribute_exists(w)":             true,
			"(attribute_not_exists(v))":                           false,
			"(attribute_not_exists(v)) OR (attribute_exists(w))":  false,
		} {
			ops, err := f.OpsFromJSON([]byte(`[{"Update": {"Key": {"PartKey": {"S": "p"}, "SortKey": {"S": "s"}}, "UpdateExpression": "SET n = :one",
				"ConditionExpression": "` + text + `", "ExpressionAttributeValues": {":one": {"N": "1"}}}}]`))
			require.NoError(t, err)
			for name, err := range map[string]error{
				"alone": f.Write(t.Context(), ops[0]),
				"and":   f.Write(t.Context(), ops[0].If(table.Attr("v").Exists())),
			} {
				if holds {
					require.NoError(t, err, "%s: %s", name, text)
				} else {
					require.ErrorIs(t, err, table.ErrCondition, "%s: %s", name, text)
				}
			}
			require.ErrorIs(t, f.Write(t.Context(), ops[0].If(table.Attr("v").NotExists())), table.ErrCondition, text)
		}
	})
}

// DynamoDB would refuse each of these texts alone. Inside of the parentheses that other conditions need, the first ones are valid.
func TestOpsFromJSON_AConditionCannotCloseTheParenthesesAroundIt(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		f.put(t, f.item("p", "s", "v", 1))
		for _, text := range []string{
			"attribute_exists(v)) OR (attribute_exists(w)", "attribute_exists(v)) OR attribute_exists(v) AND (attribute_exists(w)",
			")(", "attribute_exists(v))", "(attribute_exists(v)", "attribute_exists(v",
		} {
			ops, err := f.OpsFromJSON([]byte(`[{"Delete": {"Key": {"PartKey": {"S": "p"}, "SortKey": {"S": "s"}}, "ConditionExpression": "` + text + `"}}]`))
			if err == nil {
				err = f.Write(t.Context(), ops[0].If(table.Attr("v").Equal(2)))
			}
			assert.ErrorIs(t, err, table.ErrInvalid, text)
		}
		assert.NotNil(t, f.get(t, "p", "s"), "v is not 2")
	})
}

func TestOpsFromJSON_Refuses(t *testing.T) {
	tbl, err := table.Open(tabletest.New(t).Client(), table.Schema{Name: "app"})
	require.NoError(t, err)
	for name, text := range map[string]string{
		"no JSON": "x", "nothing": "", "null": "null", "an object": `{"TransactItems": []}`, "text behind it": "[] []", "not text": "[\"\xff\"]",
		"no action": `[{}]`, "two kinds": `[{"Put": {}, "Delete": {}}]`, "unknown kind": `[{"Get": {}}]`, "unknown member": `[{"Delete": {"Keys": {}}}]`,
		"another table":    `[{"Delete": {"TableName": "other", "Key": {"pk": {"S": "a"}, "sk": {"S": "b"}}}}]`,
		"no item":          `[{"Put": {}}]`,
		"an item's key":    `[{"Put": {"Item": {"pk": {"S": "a"}}}}]`,
		"an item and key":  `[{"Delete": {"Key": {"pk": {"S": "a"}, "sk": {"S": "b"}}, "Item": {"pk": {"S": "a"}, "sk": {"S": "b"}}}}]`,
		"no key":           `[{"Delete": {}}]`,
		"a longer key":     `[{"Delete": {"Key": {"pk": {"S": "a"}, "sk": {"S": "b"}, "n": {"S": "c"}}}}]`,
		"no update":        `[{"Update": {"Key": {"pk": {"S": "a"}, "sk": {"S": "b"}}}}]`,
		"empty update":     `[{"Update": {"Key": {"pk": {"S": "a"}, "sk": {"S": "b"}}, "UpdateExpression": " "}}]`,
		"update of put":    `[{"Put": {"Item": {"pk": {"S": "a"}, "sk": {"S": "b"}}, "UpdateExpression": "SET a = b"}}]`,
		"no condition":     `[{"ConditionCheck": {"Key": {"pk": {"S": "a"}, "sk": {"S": "b"}}}}]`,
		"empty condition":  `[{"Delete": {"Key": {"pk": {"S": "a"}, "sk": {"S": "b"}}, "ConditionExpression": ""}}]`,
		"wrong type":       `[{"Delete": {"Key": {"pk": {"S": "a"}, "sk": {"S": "b"}}, "ConditionExpression": 5}}]`,
		"member twice":     `[{"Delete": {"Key": {"pk": {"S": "a"}, "sk": {"S": "b"}}, "Key": {"pk": {"S": "a"}, "sk": {"S": "c"}}}}]`,
		"kind twice":       `[{"Delete": {"Key": {"pk": {"S": "a"}, "sk": {"S": "b"}}}, "Delete": {"Key": {"pk": {"S": "a"}, "sk": {"S": "c"}}}}]`,
		"small letters":    `[{"Delete": {"Key": {"pk": {"S": "a"}, "sk": {"S": "b"}}, "conditionexpression": "attribute_exists(pk)"}}]`,
		"both cases":       `[{"Delete": {"Key": {"pk": {"S": "a"}, "sk": {"S": "b"}}, "ConditionExpression": "attribute_exists(pk)", "conditionexpression": "attribute_exists(sk)"}}]`,
		"name twice":       `[{"Delete": {"Key": {"pk": {"S": "a"}, "sk": {"S": "b"}}, "ExpressionAttributeNames": {"#a": "a", "#a": "b"}}}]`,
		"name's type":      `[{"Delete": {"Key": {"pk": {"S": "a"}, "sk": {"S": "b"}}, "ExpressionAttributeNames": {"#a": 1}}}]`,
		"half a surrogate": `[{"Delete": {"Key": {"pk": {"S": "a\ud800"}, "sk": {"S": "b"}}}}]`,
		"bad value":        `[{"Delete": {"Key": {"pk": {"S": "a"}, "sk": {"S": "b"}}, "ExpressionAttributeValues": {":a": 5}}}]`,
	} {
		ops, err := tbl.OpsFromJSON([]byte(text))
		require.ErrorIs(t, err, table.ErrInvalid, name)
		assert.Nil(t, ops, name)
		assert.NotContains(t, err.Error(), "json:", name)
		assert.NotContains(t, err.Error(), "\n", name)
	}
	ops, err := tbl.OpsFromJSON([]byte(" [] "))
	require.NoError(t, err)
	require.ErrorIs(t, tbl.Write(t.Context(), ops...), table.ErrInvalid)

	const at = `"Key": {"pk": {"S": "a"}, "sk": {"S": "b"}}`
	ops, err = tbl.OpsFromJSON([]byte(`[{"Update": {` + at + `, "UpdateExpression": "SET #n = :n"}}]`))
	require.NoError(t, err)
	require.ErrorIs(t, tbl.Write(t.Context(), ops...), table.ErrInvalid, "a placeholder without a name")
	require.ErrorIs(t, tbl.Write(t.Context(), ops[0].Changing(table.Attr("a").Set(1))), table.ErrInvalid)
	ops, err = tbl.OpsFromJSON([]byte(`[{"Delete": {` + at + `, "ConditionExpression": "attribute_exists(pk)"}}]`))
	require.NoError(t, err)
	require.ErrorIs(t, tbl.BatchWrite(t.Context(), ops), table.ErrInvalid, "a batch has no conditions")
}
