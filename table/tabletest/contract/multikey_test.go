package contract_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/engines"
)

// roles returns a key schema from names: those before the semicolon are
// partition attributes, those behind it sort attributes.
func roles(names string) []types.KeySchemaElement {
	var schema []types.KeySchemaElement
	hash, sort, _ := strings.Cut(names, ";")
	for n := range strings.FieldsSeq(hash) {
		schema = append(schema, types.KeySchemaElement{AttributeName: &n, KeyType: types.KeyTypeHash})
	}
	for n := range strings.FieldsSeq(sort) {
		schema = append(schema, types.KeySchemaElement{AttributeName: &n, KeyType: types.KeyTypeRange})
	}
	return schema
}

// definitions returns AttributeDefinitions from pairs of name and type.
func definitions(pairs ...string) []types.AttributeDefinition {
	var all []types.AttributeDefinition
	for pair := range slices.Chunk(pairs, 2) {
		all = append(all, types.AttributeDefinition{AttributeName: &pair[0], AttributeType: types.ScalarAttributeType(pair[1])})
	}
	return all
}

// onSeveral runs f on a new table on every engine. Its key is sk; its index
// "several" has the partition attributes h1 (a string) and h2 (a number), and
// the sort attributes r1 (a string), r2 (a number) and r3 (binary).
func onSeveral(t *testing.T, f func(tb table)) {
	t.Helper()
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		tb := newTable(t, e)
		tb.create(&dynamodb.CreateTableInput{
			TableName: tb.name, BillingMode: types.BillingModePayPerRequest, KeySchema: roles("sk"),
			AttributeDefinitions: definitions("sk", "S", "h1", "S", "h2", "N", "r1", "S", "r2", "N", "r3", "B"),
			GlobalSecondaryIndexes: []types.GlobalSecondaryIndex{
				{IndexName: aws.String("several"), KeySchema: roles("h1 h2; r1 r2 r3"), Projection: &types.Projection{ProjectionType: types.ProjectionTypeKeysOnly}},
			},
		})
		f(tb)
	})
}

// indexed returns an item with the key sk and the index's attributes, changed
// by d; an attribute that is nil there is left out.
func indexed(sk string, d document) map[string]types.AttributeValue {
	all := document{"sk": sk, "h1": "x", "h2": 1, "r1": "r", "r2": 1, "r3": []byte("b")}
	maps.Copy(all, d)
	maps.DeleteFunc(all, func(_ string, v any) bool { return v == nil })
	return item(all)
}

func (tb table) putIndexed(sk string, d document) error {
	_, err := tb.PutItem(tb.ctx(), &dynamodb.PutItemInput{TableName: tb.name, Item: indexed(sk, d)})
	return err
}

// inIndex returns the keys of the items in the partition ("x", 1) of the
// index, in order.
func (tb table) inIndex() []string {
	tb.Helper()
	out, err := tb.Query(tb.ctx(), &dynamodb.QueryInput{
		TableName: tb.name, IndexName: ptr("several"), KeyConditionExpression: ptr("h1 = :h AND h2 = :g"), ExpressionAttributeValues: values(document{"h": "x", "g": 1}),
	})
	require.NoError(tb, err)
	return sortKeys(out.Items)
}

func TestGlobalIndex_TakesFourAttributesInEachRole(t *testing.T) {
	for _, schema := range []string{"a b", "a b; c", "a; b c", "a b c d; e f g h", "a sk; b c"} {
		t.Run(schema, func(t *testing.T) {
			engines.Run(t, func(t *testing.T, e *engines.Engine) {
				tb := newTable(t, e)
				defs := definitions("sk", "S")
				for _, k := range roles(schema) {
					if *k.AttributeName != "sk" {
						defs = append(defs, definitions(*k.AttributeName, "S")...)
					}
				}
				tb.create(&dynamodb.CreateTableInput{
					TableName: tb.name, BillingMode: types.BillingModePayPerRequest, KeySchema: roles("sk"), AttributeDefinitions: defs,
					GlobalSecondaryIndexes: []types.GlobalSecondaryIndex{
						{IndexName: ptr("several"), KeySchema: roles(schema), Projection: &types.Projection{ProjectionType: types.ProjectionTypeAll}},
					},
				})
				out, err := tb.DescribeTable(tb.ctx(), &dynamodb.DescribeTableInput{TableName: tb.name})
				require.NoError(tb, err)
				assert.Equal(tb, roles(schema), out.Table.GlobalSecondaryIndexes[0].KeySchema)
			})
		})
	}
}

func TestKeySchema_RefusesWhatNoIndexMayHave(t *testing.T) {
	hash, sort := types.KeyTypeHash, types.KeyTypeRange
	element := func(name string, role types.KeyType) types.KeySchemaElement {
		return types.KeySchemaElement{AttributeName: &name, KeyType: role}
	}
	for _, tc := range []struct {
		name   string
		schema []types.KeySchemaElement
		text   string // the service's, then DynamoDB Local's
	}{
		{
			"five partition attributes", roles("a b c d e"),
			"The KeySchema exceeds the maximum allowed number of HASH key attributes | Too many partition keys. GSI can have at most 4 partition keys",
		},
		{
			"five sort attributes", roles("a; b c d e f"),
			"The KeySchema exceeds the maximum allowed number of RANGE key attributes | Too many sort keys. GSI can have at most 4 sort keys",
		},
		{
			"a partition attribute behind a sort attribute",
			[]types.KeySchemaElement{element("a", hash), element("b", sort), element("c", hash)},
			"All HASH key attributes must precede RANGE key attributes in the KeySchema | Invalid key order.",
		},
		{
			"sort attributes only", roles("; a b"),
			"Invalid KeySchema: The first KeySchemaElement is not a HASH key type | No Hash Key specified in schema.",
		},
		{"an attribute twice in a role", roles("a a"), "The KeySchema contains multiple key attributes with the same name | Two keys can not have the same name"},
		{"an attribute in both roles", roles("a b; a"), "The KeySchema contains multiple key attributes with the same name | Two keys can not have the same name"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			engines.Run(t, func(t *testing.T, e *engines.Engine) {
				name, defs := e.TableName(t), definitions("sk", "S")
				for _, k := range tc.schema {
					if one := definitions(*k.AttributeName, "S")[0]; !slices.ContainsFunc(defs, func(d types.AttributeDefinition) bool { return *d.AttributeName == *k.AttributeName }) {
						defs = append(defs, one)
					}
				}
				projection := &types.Projection{ProjectionType: types.ProjectionTypeAll}
				in := &dynamodb.CreateTableInput{
					TableName: &name, BillingMode: types.BillingModePayPerRequest, KeySchema: roles("sk"), AttributeDefinitions: defs,
					GlobalSecondaryIndexes: []types.GlobalSecondaryIndex{{IndexName: ptr("several"), KeySchema: tc.schema, Projection: projection}},
				}
				_, err := e.Client().CreateTable(t.Context(), in)
				failed(t, e, err, "ValidationException", tc.text)

				in.GlobalSecondaryIndexes, in.AttributeDefinitions = nil, definitions("sk", "S")
				table{T: t, Client: e.Client(), engine: e, name: &name}.create(in)
				_, err = e.Client().UpdateTable(t.Context(), &dynamodb.UpdateTableInput{
					TableName: &name, AttributeDefinitions: defs,
					GlobalSecondaryIndexUpdates: []types.GlobalSecondaryIndexUpdate{{
						Create: &types.CreateGlobalSecondaryIndexAction{IndexName: ptr("several"), KeySchema: tc.schema, Projection: projection},
					}},
				})
				failed(t, e, err, "ValidationException", tc.text)
			})
		})
	}
}

func TestKeySchema_OfTablesAndLocalIndexesHasOneAttributeInEachRole(t *testing.T) {
	const second, local = "Invalid KeySchema: The second KeySchemaElement is not a RANGE key type", " | ey schema too big | ey Schema too big | length less than or equal to 2 | Too many hash keys specified"
	const long = "failed to satisfy constraint: Member must have length less than or equal to 2"
	for schema, text := range map[string]string{"a b": second + local, "a b; c": long + local, "a; b c": long + local} {
		t.Run(schema, func(t *testing.T) {
			engines.Run(t, func(t *testing.T, e *engines.Engine) {
				name, defs := e.TableName(t), definitions("a", "S", "b", "S", "c", "S")[:len(roles(schema))]
				_, err := e.Client().CreateTable(t.Context(), &dynamodb.CreateTableInput{
					TableName: &name, BillingMode: types.BillingModePayPerRequest, KeySchema: roles(schema), AttributeDefinitions: defs,
				})
				failed(t, e, err, "ValidationException", text)
				_, err = e.Client().CreateTable(t.Context(), &dynamodb.CreateTableInput{
					TableName: &name, BillingMode: types.BillingModePayPerRequest, KeySchema: roles("a; b"), AttributeDefinitions: definitions("a", "S", "b", "S", "c", "S"),
					LocalSecondaryIndexes: []types.LocalSecondaryIndex{
						{IndexName: ptr("local"), KeySchema: roles(schema), Projection: &types.Projection{ProjectionType: types.ProjectionTypeAll}},
					},
				})
				failed(t, e, err, "ValidationException", text)
			})
		})
	}
}

func TestIndex_OfSeveralAttributesIsSparse(t *testing.T) {
	onSeveral(t, func(tb table) {
		for _, missing := range []string{"h1", "h2", "r1", "r2", "r3"} {
			require.NoError(tb, tb.putIndexed(missing, document{missing: nil}))
		}
		require.NoError(tb, tb.putIndexed("all", nil))
		assert.Equal(tb, []string{"all"}, tb.inIndex())

		// An update moves an item into, within and out of the index.
		update := func(sk, expression string, d document) {
			tb.Helper()
			_, err := tb.UpdateItem(tb.ctx(), &dynamodb.UpdateItemInput{
				TableName: tb.name, Key: item(document{"sk": sk}), UpdateExpression: &expression, ExpressionAttributeValues: values(d),
			})
			require.NoError(tb, err)
		}
		update("h2", "SET h2 = :v, r1 = :r", document{"v": 1, "r": "a"})
		assert.Equal(tb, []string{"h2", "all"}, tb.inIndex())
		update("h2", "SET r1 = :r, r2 = :n", document{"r": "r", "n": 2})
		assert.Equal(tb, []string{"all", "h2"}, tb.inIndex())
		update("all", "SET h2 = :v", document{"v": 2})
		assert.Equal(tb, []string{"h2"}, tb.inIndex())
		update("h2", "REMOVE r2", nil)
		assert.Empty(tb, tb.inIndex())

		_, err := tb.BatchWriteItem(tb.ctx(), &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{*tb.name: {
			{PutRequest: &types.PutRequest{Item: indexed("b1", nil)}},
			{PutRequest: &types.PutRequest{Item: indexed("b2", document{"r1": nil})}},
		}}})
		require.NoError(tb, err)
		_, err = tb.TransactWriteItems(tb.ctx(), &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{
			{Put: &types.Put{TableName: tb.name, Item: indexed("t1", document{"r1": "z"})}},
			{Delete: &types.Delete{TableName: tb.name, Key: item(document{"sk": "b1"})}},
		}})
		require.NoError(tb, err)
		assert.Equal(tb, []string{"t1"}, tb.inIndex())
	})
}

func TestKeyAttributes_OfAnIndexAreChecked(t *testing.T) {
	cases := []struct {
		name string
		d    document
		text string
	}{
		{"type of a partition attribute", document{"h2": "1"}, "Type mismatch for Index Key h2 Expected: N Actual: S IndexName: several | Type mismatch for Index Key"},
		{"type of a sort attribute", document{"r3": "b"}, "Type mismatch for Index Key r3 Expected: B Actual: S IndexName: several | Type mismatch for Index Key"},
		{"type without the other attributes", document{"h1": nil, "r1": nil, "r2": "1"}, "Type mismatch for Index Key r2 Expected: N Actual: S IndexName: several | Type mismatch for Index Key"},
		{"document", document{"r1": document{}}, "Type mismatch for Index Key r1 Expected: S Actual: M IndexName: several | Invalid attribute value type"},
		{"empty partition attribute", document{"h1": ""}, "cannot contain an empty string value. IndexName: several, IndexKey: h1"},
		{"empty sort attribute", document{"r3": []byte{}}, "cannot contain an empty binary value. IndexName: several, IndexKey: r3"},
		{"partition attribute too long", document{"h1": strings.Repeat("x", 2049)}, "Size of hashkey has exceeded the maximum size limit of2048 bytes | Size limit exceeded"},
		{"sort attribute too long", document{"r1": strings.Repeat("x", 1025)}, "Aggregated size of all range keys has exceeded the size limit of 1024 bytes | Size limit exceeded"},
		{
			"partition attributes too long together",
			document{"h1": strings.Repeat("x", 2047)},
			"Aggregate size for HASH key attributes h1, h2 of index several has exceeded limit 2048 bytes, with actual size 2049 bytes",
		},
		{
			"sort attributes too long together",
			document{"r1": strings.Repeat("x", 1022), "h1": nil},
			"Aggregate size for RANGE key attributes r1, r2, r3 of index several has exceeded limit 1024 bytes, with actual size 1025 bytes",
		},
	}
	onSeveral(t, func(tb table) {
		for _, tc := range cases {
			tb.Run(tc.name, func(t *testing.T) {
				_, err := tb.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: tb.name, Item: indexed("a", tc.d)})
				failed(t, tb.engine, err, "ValidationException", tc.text)
				_, err = tb.BatchWriteItem(t.Context(), &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{*tb.name: {
					{PutRequest: &types.PutRequest{Item: indexed("b", nil)}}, {PutRequest: &types.PutRequest{Item: indexed("a", tc.d)}},
				}}})
				failed(t, tb.engine, err, "ValidationException", tc.text)
			})
		}
		assert.Empty(tb, tb.inIndex())
	})
}

func TestKeyAttributes_MayBeAsLongAsTheirRoleAllows(t *testing.T) {
	onSeveral(t, func(tb table) {
		// A number of one digit has two bytes.
		require.NoError(tb, tb.putIndexed("a", document{"h1": strings.Repeat("x", 2046), "r1": strings.Repeat("x", 1021)}))
		// Attributes do not add up as long as the item lacks one of them.
		require.NoError(tb, tb.putIndexed("b", document{"h1": strings.Repeat("x", 2048), "h2": nil}))
	})
}

func TestUpdate_MayNotMakeKeyAttributesTooLongTogether(t *testing.T) {
	onSeveral(t, func(tb table) {
		engines.Only(tb.T, engines.InProcess, "DynamoDB Local looks at the sum of sizes only where an item is put")
		require.NoError(tb, tb.putIndexed("a", nil))
		_, err := tb.UpdateItem(tb.ctx(), &dynamodb.UpdateItemInput{
			TableName: tb.name, Key: item(document{"sk": "a"}), UpdateExpression: ptr("SET r1 = :v"), ExpressionAttributeValues: values(document{"v": strings.Repeat("x", 1022)}),
		})
		tb.refused(err, "Aggregate size for RANGE key attributes r1, r2, r3 of index several has exceeded limit 1024 bytes, with actual size 1025 bytes")
	})
}

func TestAddedIndex_MayHaveSeveralAttributes(t *testing.T) {
	onTable(t, func(tb table) {
		for i, d := range []document{{"x": "p", "y": 2, "z": "q"}, {"x": "p", "y": 10, "z": "q"}, {"x": "p", "y": 1}} {
			tb.put(fmt.Sprint(i), d)
		}
		_, err := tb.UpdateTable(tb.ctx(), &dynamodb.UpdateTableInput{
			TableName: tb.name, AttributeDefinitions: definitions("x", "S", "y", "N", "z", "S"),
			GlobalSecondaryIndexUpdates: []types.GlobalSecondaryIndexUpdate{{Create: &types.CreateGlobalSecondaryIndexAction{
				IndexName: ptr("added"), KeySchema: roles("x z; y"), Projection: &types.Projection{ProjectionType: types.ProjectionTypeAll},
			}}},
		})
		require.NoError(tb, err)
		tb.awaitIndex("added", true)
		in := &dynamodb.QueryInput{TableName: tb.name, IndexName: ptr("added"), KeyConditionExpression: ptr("x = :x AND z = :z"), ExpressionAttributeValues: values(document{"x": "p", "z": "q"})}
		out, err := tb.Query(tb.ctx(), in)
		require.NoError(tb, err)
		assert.Equal(tb, []string{"0", "1"}, sortKeys(out.Items))

		_, err = tb.UpdateTable(tb.ctx(), &dynamodb.UpdateTableInput{
			TableName: tb.name, GlobalSecondaryIndexUpdates: []types.GlobalSecondaryIndexUpdate{{Delete: &types.DeleteGlobalSecondaryIndexAction{IndexName: ptr("added")}}},
		})
		require.NoError(tb, err)
		tb.awaitIndex("added", false)
		_, err = tb.Query(tb.ctx(), in)
		tb.refused(err, "The table does not have the specified index: added")
		described, err := tb.DescribeTable(tb.ctx(), &dynamodb.DescribeTableInput{TableName: tb.name})
		require.NoError(tb, err)
		assert.ElementsMatch(tb, createInput(*tb.name).AttributeDefinitions, described.Table.AttributeDefinitions)
		tb.put("0", document{"x": 1, "y": "a", "z": nil})
	})
}

func TestAddedIndex_LeavesOutWhatViolatesItsKey(t *testing.T) {
	onTable(t, func(tb table) {
		engines.Only(tb.T, engines.InProcess, "DynamoDB Local puts items into an added index whose key attributes have another type or are too long")
		tb.put("good", document{"x": "p", "y": 1, "z": "q"})
		tb.put("type", document{"x": "p", "y": "1", "z": "q"})
		tb.put("long", document{"x": "p", "y": 1, "z": strings.Repeat("q", 1025)})
		tb.put("long together", document{"x": "p", "y": 1, "z": strings.Repeat("q", 1024)})
		_, err := tb.UpdateTable(tb.ctx(), &dynamodb.UpdateTableInput{
			TableName: tb.name, AttributeDefinitions: definitions("x", "S", "y", "N", "z", "S"),
			GlobalSecondaryIndexUpdates: []types.GlobalSecondaryIndexUpdate{{Create: &types.CreateGlobalSecondaryIndexAction{
				IndexName: ptr("added"), KeySchema: roles("x; y z"), Projection: &types.Projection{ProjectionType: types.ProjectionTypeAll},
			}}},
		})
		require.NoError(tb, err)
		out, err := tb.Scan(tb.ctx(), &dynamodb.ScanInput{TableName: tb.name, IndexName: ptr("added")})
		require.NoError(tb, err)
		assert.Equal(tb, []string{"good"}, sortKeys(out.Items))
	})
}

// An index with one attribute in each role is refused in the words for a table's own key.
func TestKeySchema_MayNotNameAnAttributeInBothRoles(t *testing.T) {
	onTable(t, func(tb table) {
		err := tb.raw("CreateTable", `{"TableName":"TABLE-2","BillingMode":"PAY_PER_REQUEST","AttributeDefinitions":[{"AttributeName":"a","AttributeType":"S"},{"AttributeName":"b","AttributeType":"S"}],`+
			`"KeySchema":[{"AttributeName":"a","KeyType":"HASH"}],"GlobalSecondaryIndexes":[{"IndexName":"one","Projection":{"ProjectionType":"ALL"},`+
			`"KeySchema":[{"AttributeName":"b","KeyType":"HASH"},{"AttributeName":"b","KeyType":"RANGE"}]}]}`)
		tb.exactly(err, "ValidationException", "Both the Hash Key and the Range Key element in the KeySchema have the same name", "Two keys can not have the same name")
	})
}
