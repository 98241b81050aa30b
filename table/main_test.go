package table_test

import (
	"os"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/cenkalti/backoff/v4"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/engines"
	"github.com/mortise-go/mortise/internal/engines/faulty"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
)

func TestMain(m *testing.M) { os.Exit(engines.Main(m)) }

// eager is a retry policy that does not wait and gives up after n more attempts. Its requests may take as long as they like, so that a
// slow machine adds none to those that a test counts.
func eager(n uint64) table.Option {
	return table.WithRetry(table.Retry{Timeout: -1, Backoff: func() backoff.BackOff {
		return backoff.WithMaxRetries(&backoff.ZeroBackOff{}, n)
	}})
}

// fixture is a live table and what stands between it and the engine.
type fixture struct {
	*table.Table
	usage  *table.Usage // of the table
	faults *faulty.Client
	engine *engines.Engine
}

// testSchema is what most tests use; NoTTL saves two requests a test.
func testSchema(name string) table.Schema {
	return table.Schema{
		Name: name, NoTTL: true, Keys: keys.Scheme{PK: "PartKey", SK: "SortKey"},
		Indexes: []table.Index{
			{Name: "gsi1", PK: "g1pk", SK: "g1sk"},
			{Name: "only-pk", PK: "g2pk", Include: []string{}},
			{Name: "lsi1", SK: "l1sk", Local: true},
		},
	}
}

func newFixture(t *testing.T, e *engines.Engine, opts ...table.Option) fixture {
	t.Helper()
	f := fixture{faults: &faulty.Client{}, engine: e}
	tbl, err := table.Open(e.Client(f.faults.Options), testSchema(e.TableName(t)), append([]table.Option{eager(5)}, opts...)...)
	require.NoError(t, err)
	require.NoError(t, tbl.Ensure(t.Context()))
	f.usage = &table.Usage{}
	f.Table = tbl.Metered(f.usage)
	f.faults.Script()
	return f
}

func (f fixture) item(pk, sk string, rest ...any) table.Item {
	item := f.KeyItem(keys.NewKey(pk, sk))
	for i := 0; i < len(rest); i += 2 {
		av, err := table.Encode(rest[i+1])
		if err != nil {
			panic(err)
		}
		item[rest[i].(string)] = av
	}
	return item
}

func (f fixture) put(t *testing.T, items ...table.Item) {
	t.Helper()
	for _, item := range items {
		require.NoError(t, f.Write(t.Context(), table.Put(item)))
	}
}

func (f fixture) get(t *testing.T, pk, sk string) table.Item {
	t.Helper()
	item, err := f.Get(t.Context(), keys.NewKey(pk, sk), true)
	if err != nil {
		require.ErrorIs(t, err, table.ErrNotFound)
		return nil
	}
	return item
}

func str(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
func num(n string) types.AttributeValue { return &types.AttributeValueMemberN{Value: n} }

func strs(s ...string) types.AttributeValue { return &types.AttributeValueMemberSS{Value: s} }
func nums(s ...string) types.AttributeValue { return &types.AttributeValueMemberNS{Value: s} }

func blobs(s ...string) types.AttributeValue {
	v := &types.AttributeValueMemberBS{}
	for _, e := range s {
		v.Value = append(v.Value, []byte(e))
	}
	return v
}

func list(v ...types.AttributeValue) types.AttributeValue {
	return &types.AttributeValueMemberL{Value: v}
}

func key(pk, sk string) keys.Key { return keys.NewKey(pk, sk) }
