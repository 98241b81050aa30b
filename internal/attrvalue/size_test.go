package attrvalue_test

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/attrvalue"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// Values are counted as DynamoDB does: an item padded to exactly a KB costs one unit, and two
// with one byte more.
func TestSize_CountsAsDynamoDBDoes(t *testing.T) {
	s := func(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
	n := func(s string) types.AttributeValue { return &types.AttributeValueMemberN{Value: s} }
	list := func(v ...types.AttributeValue) types.AttributeValue { return &types.AttributeValueMemberL{Value: v} }
	for name, v := range map[string]types.AttributeValue{
		"string": s("héllo"), "numbers": list(n("1"), n("-12"), n("100"), n("1234.5"), n("0.001"), n("0"), n("1e20")),
		"binary": &types.AttributeValueMemberB{Value: []byte{1, 2}}, "flags": list(&types.AttributeValueMemberBOOL{}, &types.AttributeValueMemberNULL{Value: true}),
		"map":  &types.AttributeValueMemberM{Value: table.Item{"näme": list(), "b": s("")}},
		"sets": list(&types.AttributeValueMemberSS{Value: []string{"a", "bcd"}}, &types.AttributeValueMemberNS{Value: []string{"1", "200"}}, &types.AttributeValueMemberBS{Value: [][]byte{{1}, {2, 3}}}),
	} {
		engine := tabletest.New(t)
		tbl, err := table.Open(engine.Client(), table.Schema{Name: "app"})
		require.NoError(t, err)
		require.NoError(t, tbl.Ensure(t.Context()))
		size, err := attrvalue.Size(v)
		require.NoError(t, err)
		for extra, want := range []float64{1, 2} {
			item := tbl.KeyItem(keys.NewKey("p", "s"))
			// pk, sk, data and pad are names of 12 bytes, and p and s are 2 more.
			item["data"], item["pad"] = v, s(strings.Repeat("x", 1024-2-2-1-1-4-3-size+extra))
			whole, err := attrvalue.ItemSize(item)
			require.NoError(t, err)
			assert.Equal(t, 1024+extra, whole)
			ctx, usage := table.WithUsage(t.Context())
			require.NoError(t, tbl.Write(ctx, table.Delete(keys.NewKey("p", "s")), table.Put(tbl.KeyItem(keys.NewKey("q", "s")))))
			before := usage.Totals().WriteUnits
			require.NoError(t, tbl.Write(ctx, table.Put(item)))
			assert.InDelta(t, want, usage.Totals().WriteUnits-before, 0, "%s of %d bytes, %d more", name, size, extra)
		}
	}
}

func TestItemSize_RefusesWhatDynamoDBCannotHold(t *testing.T) {
	_, err := attrvalue.ItemSize(table.Item{"a": &types.AttributeValueMemberNULL{}})
	require.Error(t, err)
}

func TestSize_RefusesNamesThatDynamoDBRefuses(t *testing.T) {
	for _, name := range []string{"", "\xff", strings.Repeat("n", 65536)} {
		item := table.Item{name: &types.AttributeValueMemberBOOL{}}
		_, err := attrvalue.ItemSize(item)
		require.Error(t, err)
		_, err = attrvalue.Size(&types.AttributeValueMemberM{Value: item})
		require.Error(t, err)
	}
}
