package contract_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/engines"
)

// The tests of this package state what the project relies on in DynamoDB.
// Each runs on the in-process engine and on DynamoDB Local.

func TestMain(m *testing.M) { os.Exit(engines.Main(m)) }

// number is a DynamoDB number in a test's literals, and set types mark slices.
type (
	number    string
	stringSet []string
	numberSet []string
	binarySet [][]byte
	list      []any
	document  map[string]any
)

// table is a table made for one test, with the keys pk and sk, a global index
// "gsi" on (gpk, gsk number) with all attributes, a global index "keys" on gpk
// with the keys only, and a local index "lsi" on lsk that includes the
// attribute "inc".
type table struct {
	*testing.T
	*dynamodb.Client
	engine *engines.Engine
	name   *string
}

func (tb table) ctx() context.Context { return tb.Context() }

// newTable names a table that the test has to create.
func newTable(t *testing.T, e *engines.Engine) table {
	t.Helper()
	return table{T: t, Client: e.Client(), engine: e, name: aws.String(e.TableName(t))}
}

// onTable runs f on a new table on every engine.
func onTable(t *testing.T, f func(tb table)) {
	t.Helper()
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		tb := newTable(t, e)
		tb.create(createInput(*tb.name))
		f(tb)
	})
}

// create makes a table, waits for it, and returns the answer.
func (tb table) create(in *dynamodb.CreateTableInput) *types.TableDescription {
	tb.Helper()
	out, err := tb.CreateTable(tb.ctx(), in)
	require.NoError(tb, err)
	require.NoError(tb, dynamodb.NewTableExistsWaiter(tb).Wait(tb.ctx(), &dynamodb.DescribeTableInput{TableName: in.TableName}, time.Minute))
	return out.TableDescription
}

func createInput(name string) *dynamodb.CreateTableInput {
	attr := func(name string, t types.ScalarAttributeType) types.AttributeDefinition {
		return types.AttributeDefinition{AttributeName: &name, AttributeType: t}
	}
	key := func(names ...string) []types.KeySchemaElement {
		out := []types.KeySchemaElement{{AttributeName: &names[0], KeyType: types.KeyTypeHash}}
		for _, n := range names[1:] {
			out = append(out, types.KeySchemaElement{AttributeName: &n, KeyType: types.KeyTypeRange})
		}
		return out
	}
	return &dynamodb.CreateTableInput{
		TableName:   &name,
		BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{
			attr("pk", "S"), attr("sk", "S"), attr("gpk", "S"), attr("gsk", "N"), attr("lsk", "S"),
		},
		KeySchema: key("pk", "sk"),
		GlobalSecondaryIndexes: []types.GlobalSecondaryIndex{
			{IndexName: aws.String("gsi"), KeySchema: key("gpk", "gsk"), Projection: &types.Projection{ProjectionType: types.ProjectionTypeAll}},
			{IndexName: aws.String("keys"), KeySchema: key("gpk"), Projection: &types.Projection{ProjectionType: types.ProjectionTypeKeysOnly}},
		},
		LocalSecondaryIndexes: []types.LocalSecondaryIndex{{
			IndexName: aws.String("lsi"), KeySchema: key("pk", "lsk"),
			Projection: &types.Projection{ProjectionType: types.ProjectionTypeInclude, NonKeyAttributes: []string{"inc"}},
		}},
	}
}

// value turns a literal into an attribute value.
func value(v any) types.AttributeValue {
	switch v := v.(type) {
	case nil:
		return &types.AttributeValueMemberNULL{Value: true}
	case string:
		return &types.AttributeValueMemberS{Value: v}
	case number:
		return &types.AttributeValueMemberN{Value: string(v)}
	case int:
		return &types.AttributeValueMemberN{Value: fmt.Sprint(v)}
	case bool:
		return &types.AttributeValueMemberBOOL{Value: v}
	case []byte:
		return &types.AttributeValueMemberB{Value: v}
	case stringSet:
		return &types.AttributeValueMemberSS{Value: v}
	case numberSet:
		return &types.AttributeValueMemberNS{Value: v}
	case binarySet:
		return &types.AttributeValueMemberBS{Value: v}
	case list:
		l := make([]types.AttributeValue, len(v))
		for i, e := range v {
			l[i] = value(e)
		}
		return &types.AttributeValueMemberL{Value: l}
	case document:
		return &types.AttributeValueMemberM{Value: item(v)}
	}
	panic(fmt.Sprintf("no attribute value for a %T", v))
}

func item(d document) map[string]types.AttributeValue {
	m := make(map[string]types.AttributeValue, len(d))
	for k, e := range d {
		m[k] = value(e)
	}
	return m
}

// keyed returns the item with the key ("p", sk).
func keyed(sk string, d document) map[string]types.AttributeValue {
	m := item(d)
	maps.Copy(m, key(sk))
	return m
}

func key(sk string) map[string]types.AttributeValue { return item(document{"pk": "p", "sk": sk}) }

// values returns ExpressionAttributeValues, without the colon in d.
func values(d document) map[string]types.AttributeValue {
	if len(d) == 0 {
		return nil
	}
	m := map[string]types.AttributeValue{}
	for k, e := range d {
		m[":"+k] = value(e)
	}
	return m
}

// names returns ExpressionAttributeNames from pairs.
func names(pairs ...string) map[string]string {
	m := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = pairs[i+1]
	}
	return m
}

func (tb table) put(sk string, d document) {
	tb.Helper()
	_, err := tb.PutItem(tb.ctx(), &dynamodb.PutItemInput{TableName: tb.name, Item: keyed(sk, d)})
	require.NoError(tb, err)
}

func (tb table) get(sk string) map[string]types.AttributeValue {
	tb.Helper()
	out, err := tb.GetItem(tb.ctx(), &dynamodb.GetItemInput{TableName: tb.name, Key: key(sk), ConsistentRead: aws.Bool(true)})
	require.NoError(tb, err)
	return out.Item
}

// holds checks that the item with the key ("p", sk) has exactly the other
// attributes d; sets compare without order.
func (tb table) holds(sk string, d document) {
	tb.Helper()
	same(tb, keyed(sk, d), tb.get(sk))
}

func same(t assert.TestingT, want, got map[string]types.AttributeValue) {
	if h, ok := t.(interface{ Helper() }); ok {
		h.Helper()
	}
	assert.Equal(t, unordered(want), unordered(got))
}

// unordered turns sets into maps, so that order does not count.
func unordered(v any) any {
	switch v := v.(type) {
	case map[string]types.AttributeValue:
		if v == nil {
			return map[string]any(nil)
		}
		m := map[string]any{}
		for k, e := range v {
			m[k] = unordered(e)
		}
		return m
	case *types.AttributeValueMemberM:
		return unordered(v.Value)
	case *types.AttributeValueMemberL:
		l := []any{}
		for _, e := range v.Value {
			l = append(l, unordered(e))
		}
		return l
	case *types.AttributeValueMemberSS:
		return members("SS", v.Value)
	case *types.AttributeValueMemberNS:
		return members("NS", v.Value)
	case *types.AttributeValueMemberBS:
		return members("BS", v.Value)
	}
	return v
}

func members[T any](kind string, set []T) map[string]int {
	m := map[string]int{}
	for _, e := range set {
		m[fmt.Sprintf("%s %v", kind, e)]++
	}
	return m
}

// refused checks for a ValidationException with a text, or one of several
// that are separated by " | ": the service's own, then DynamoDB Local's.
func (tb table) refused(err error, text string) {
	tb.Helper()
	failed(tb.T, tb.engine, err, "ValidationException", text)
}

// exactly checks for an error with a code and the service's whole text, or on
// DynamoDB Local a part of its own.
func (tb table) exactly(err error, code, service, local string) {
	tb.Helper()
	var api smithy.APIError
	require.ErrorAs(tb, err, &api)
	assert.Equal(tb, code, api.ErrorCode(), api.ErrorMessage())
	if tb.local() {
		assert.Contains(tb, api.ErrorMessage(), local)
		return
	}
	assert.Equal(tb, service, api.ErrorMessage())
}

// failed checks for an error with a code and a text. Where DynamoDB Local
// words the text differently, both are given as for refused; all other
// engines have to answer as the service does.
func failed(t *testing.T, e *engines.Engine, err error, code, text string) {
	t.Helper()
	var api smithy.APIError
	require.ErrorAs(t, err, &api)
	assert.Equal(t, code, api.ErrorCode(), api.ErrorMessage())
	service, local, differs := strings.Cut(text, " | ")
	if !differs || e.Name != engines.DynamoDBLocal {
		assert.Contains(t, api.ErrorMessage(), service)
		return
	}
	for one := range strings.SplitSeq(local, " | ") {
		if strings.Contains(api.ErrorMessage(), one) {
			return
		}
	}
	assert.Fail(t, "DynamoDB Local's text is none of those given", "%q is none of %q", api.ErrorMessage(), local)
}

func conditionFailed(t testing.TB, err error) *types.ConditionalCheckFailedException {
	t.Helper()
	var failed *types.ConditionalCheckFailedException
	require.ErrorAs(t, err, &failed)
	assert.Equal(t, "The conditional request failed", failed.ErrorMessage())
	return failed
}

// cancelled checks for a cancelled transaction and returns its reasons' codes.
func cancelled(t testing.TB, err error) (codes []string, reasons []types.CancellationReason) {
	t.Helper()
	var c *types.TransactionCanceledException
	if !errors.As(err, &c) {
		require.FailNow(t, "not a cancelled transaction", "%v", err)
	}
	for _, r := range c.CancellationReasons {
		codes = append(codes, aws.ToString(r.Code))
	}
	return codes, c.CancellationReasons
}

// loosely lets the SDK send a request that it takes for incomplete.
func loosely(o *dynamodb.Options) {
	o.APIOptions = append(o.APIOptions, func(s *middleware.Stack) error {
		_, err := s.Initialize.Remove("OperationInputValidation")
		return err
	})
}
