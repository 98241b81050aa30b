package table_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/engines"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
)

// keyCalls are calls whose requests name keys.
func keyCalls(tbl *table.Table) map[string]func(context.Context) error {
	k, other := key("p", "s"), key("p", "t")
	calls := allCalls(tbl)
	delete(calls, "plan")
	delete(calls, "ensure")
	calls["check"] = func(ctx context.Context) error { return tbl.Write(ctx, table.Check(k, table.Attr("v").Exists())) }
	calls["puts"] = func(ctx context.Context) error {
		return tbl.Write(ctx, table.Put(tbl.KeyItem(k)), table.Put(tbl.KeyItem(other)))
	}
	calls["update and delete"] = func(ctx context.Context) error {
		return tbl.Write(ctx, table.Update(k, table.Attr("v").Set(1)), table.Delete(other))
	}
	calls["batch put"] = func(ctx context.Context) error { return tbl.BatchWrite(ctx, []table.Op{table.Put(tbl.KeyItem(k))}) }
	calls["query a range"] = func(ctx context.Context) error {
		_, err := tbl.QueryPage(ctx, table.Query{PK: "p", SK: keys.Range{Lo: "a", Hi: "b"}})
		return err
	}
	return calls
}

// That the live table has other keys than the schema says is one kind of error, whatever call
// finds it out.
func TestOtherKeysThanTheSchemaSaysAreErrSchema(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		live := newFixture(t, e)
		live.put(t, live.item("p", "s"))
		for _, names := range []keys.Scheme{{PK: "other", SK: "SortKey"}, {PK: "PartKey", SK: "other"}, {PK: "one", SK: "two"}} {
			tbl, _ := open(t, e, table.Schema{Name: live.Name(), NoTTL: true, Keys: names})
			for name, call := range keyCalls(tbl) {
				err := call(t.Context())
				require.ErrorIs(t, err, table.ErrSchema, "%s with %s and %s", name, names.PK, names.SK)
				assert.NotErrorIs(t, err, table.ErrInvalid, "%s with %s and %s", name, names.PK, names.SK)
				assert.ErrorContains(t, err, " on "+live.Name()+": ", name)
			}
		}
	})
}

func TestKeysOfAnotherTypeThanTheSchemaSaysAreErrSchema(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		name := existing(t, e, func(in *dynamodb.CreateTableInput) {
			in.AttributeDefinitions[1].AttributeType = types.ScalarAttributeTypeN
		})
		tbl, _ := open(t, e, table.Schema{Name: name, NoTTL: true, Keys: keys.Scheme{PK: "PartKey", SK: "SortKey"}})
		_, err := e.Client().PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &name, Item: table.Item{"PartKey": str("p"), "SortKey": num("1")}})
		require.NoError(t, err)
		for name, call := range keyCalls(tbl) {
			err := call(t.Context())
			require.ErrorIs(t, err, table.ErrSchema, name)
			assert.NotErrorIs(t, err, table.ErrInvalid, name)
		}
	})
}

func TestOtherKeysOfAnIndexThanTheSchemaSaysAreErrSchema(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		live := newFixture(t, e)
		schema := testSchema(live.Name())
		schema.Indexes = []table.Index{{Name: "gsi1", PK: "other", SK: "g1sk"}, {Name: "only-pk", PK: "g2pk", PKType: table.Number}}
		tbl, _ := open(t, e, schema)
		for index, pk := range map[string]string{"gsi1": "p", "only-pk": "1"} {
			_, err := tbl.QueryPage(t.Context(), table.Query{Index: index, PK: pk})
			require.ErrorIs(t, err, table.ErrSchema, index)
			assert.NotErrorIs(t, err, table.ErrInvalid, index)
		}
	})
}

// A value that does not fit is the program's fault, not the table's.
func TestValuesThatDoNotFitAnIndexAreErrInvalid(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		for name, err := range map[string]error{
			"alone":            f.Write(t.Context(), table.Put(f.item("p", "s", "g1pk", 1))),
			"in a transaction": f.Write(t.Context(), table.Put(f.item("p", "s", "g1pk", 1)), table.Delete(key("p", "t"))),
		} {
			require.ErrorIs(t, err, table.ErrInvalid, name)
			assert.NotErrorIs(t, err, table.ErrSchema, name)
		}
	})
}

// cancelling refuses every transaction for a reason that its second action gives.
type cancelling struct{ code, message string }

func (c cancelling) Do(r *http.Request) (*http.Response, error) {
	body := `{"__type":"com.amazonaws.dynamodb.v20120810#TransactionCanceledException","Message":"Transaction cancelled",` +
		`"CancellationReasons":[{"Code":"None"},{"Code":"` + c.code + `","Message":"` + c.message + `"}]}`
	return &http.Response{
		StatusCode: http.StatusBadRequest, Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}},
		Body: io.NopCloser(strings.NewReader(body)), Request: r,
	}, nil
}

// The service finds keys of a wrong type while it runs a transaction, and says so in a reason.
func TestReasonsOfACancelledTransactionHaveTheSameKinds(t *testing.T) {
	for message, kind := range map[string]error{
		"The provided key element does not match the schema":                                                             table.ErrSchema,
		"One or more parameter values were invalid: Type mismatch for key SortKey expected: N actual: S":                 table.ErrSchema,
		"One or more parameter values were invalid: Type mismatch for Index Key data Expected: S Actual: N IndexName: x": table.ErrInvalid,
		"The provided expression refers to an attribute that does not exist in the item":                                 table.ErrInvalid,
	} {
		client := dynamodb.NewFromConfig(config(), func(o *dynamodb.Options) { o.HTTPClient = cancelling{"ValidationError", message} })
		tbl, err := table.Open(client, table.Schema{Name: "app"}, eager(0))
		require.NoError(t, err)
		err = tbl.Write(t.Context(), table.Delete(key("p", "s")), table.Delete(key("p", "t")))
		require.ErrorIs(t, err, kind, message)
		var api smithy.APIError
		require.ErrorAs(t, err, &api)
		for _, other := range []error{table.ErrSchema, table.ErrInvalid} {
			assert.Equal(t, errors.Is(kind, other), errors.Is(err, other), message)
		}
	}
}
