package migrations_test

import (
	"context"
	"maps"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/engines"
	"github.com/mortise-go/mortise/migrations"
	"github.com/mortise-go/mortise/table"
)

// DynamoDB refuses an item with an attribute that cannot be the key of an index, or with a value that is none. A dry run finds the same
// items as the writes do.
func TestDryRun_ChecksIndexKeysAndValues(t *testing.T) {
	t.Parallel()
	binary := func(n int) types.AttributeValue { return &types.AttributeValueMemberB{Value: make([]byte, n)} }
	long := func(n int) types.AttributeValue { return text(strings.Repeat("x", n)) }
	cases := []struct {
		name string
		set  table.Item
		fits bool
	}{
		{"all keys", table.Item{"group": text("a"), "rank": num(1), "code": binary(1), "label": text("b")}, true},
		{"one key of two", table.Item{"group": text("a")}, true},
		{"longest keys", table.Item{"group": long(2048), "code": binary(2048), "label": long(1024)}, true},
		{"wrong type", table.Item{"group": num(1)}, false},
		{"wrong type of sort key", table.Item{"rank": text("1")}, false},
		{"null", table.Item{"group": &types.AttributeValueMemberNULL{Value: true}}, false},
		{"empty text", table.Item{"group": text("")}, false},
		{"empty binary", table.Item{"code": binary(0)}, false},
		{"empty text of sort key", table.Item{"label": text("")}, false},
		{"empty text of a local index", table.Item{"other": text("")}, false},
		{"too long", table.Item{"group": long(2049)}, false},
		{"too long binary", table.Item{"code": binary(2049)}, false},
		{"too long to sort", table.Item{"label": long(1025)}, false},
		{"binary without keys", table.Item{"b": binary(0)}, true},
		{"nil binary", table.Item{"b": &types.AttributeValueMemberB{}}, false},
		{"nil binary in a list", table.Item{"b": &types.AttributeValueMemberL{Value: []types.AttributeValue{&types.AttributeValueMemberB{}}}}, false},
	}
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		w := newWorld(t, table.Schema{Name: e.TableName(t), Indexes: []table.Index{
			{Name: "by-group", PK: "group", SK: "rank", SKType: table.Number},
			{Name: "by-code", PK: "code", PKType: table.Binary, SK: "label"},
			{Name: "local", Local: true, SK: "other"},
		}}, e.Client)
		w.fill(len(cases))
		preview, err := w.migrator(nil).DryRun(t.Context(), migrations.Backfill{Transform: func(_ context.Context, item table.Item) (table.Item, error) {
			maps.Copy(item, cases[integer(item["n"])].set)
			return item, nil
		}}, len(cases))
		require.NoError(t, err)
		require.Len(t, preview.Samples, len(cases))
		for _, sample := range preview.Samples {
			i := integer(sample.Before["n"])
			c := cases[i]
			var changes []table.Change
			for name, v := range c.set {
				changes = append(changes, table.Attr(name).Set(v))
			}
			err := w.table.Write(t.Context(), table.Update(itemKey(int(i)), changes...))
			if c.fits {
				require.NoError(t, err, c.name)
				require.NoError(t, sample.Err, c.name)
				continue
			}
			require.ErrorIs(t, err, table.ErrInvalid, c.name)
			require.ErrorIs(t, sample.Err, table.ErrInvalid, c.name)
			var failed *migrations.ItemError
			require.ErrorAs(t, sample.Err, &failed, c.name)
		}
	})
}

// DynamoDB leaves an item out of a new index if its attribute cannot be the key, and refuses all writes of the item that leave this
// attribute as it is.
func TestDryRun_ChecksIndexKeysThatItLeavesAsTheyAre(t *testing.T) {
	t.Parallel()
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		schema := table.Schema{Name: e.TableName(t)}
		w := newWorld(t, schema, e.Client)
		w.fill(2)
		require.NoError(t, w.table.Write(t.Context(), table.Update(itemKey(0), table.Attr("group").Set(1))))
		schema.Indexes = []table.Index{{Name: "by-group", PK: "group"}}
		w = newWorld(t, schema, e.Client)
		for mends, failed := range map[bool]int64{false: 1, true: 0} {
			preview, err := w.migrator(nil).DryRun(t.Context(), migrations.Backfill{Transform: func(ctx context.Context, item table.Item) (table.Item, error) {
				if mends {
					delete(item, "group")
				}
				return increment(ctx, item)
			}}, 0)
			require.NoError(t, err)
			assert.Equal(t, failed, preview.Failed)
			assert.Equal(t, 2-failed, preview.Changes)
		}
		err := w.table.Write(t.Context(), table.Update(itemKey(0), table.Attr("m").Set(1)))
		require.ErrorIs(t, err, table.ErrInvalid, "what the dry run has found")
		require.NoError(t, w.table.Write(t.Context(), table.Update(itemKey(0), table.Attr("m").Set(1), table.Attr("group").Remove())))
	})
}
