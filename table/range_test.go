package table_test

import (
	"context"
	"fmt"
	"strconv"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/engines"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
)

func TestQueryReadsRangesOfNumbers(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		tbl, err := table.Open(e.Client(), table.Schema{Name: e.TableName(t), NoTTL: true, Indexes: []table.Index{
			{Name: "numbers", PK: "group", PKType: table.Number, SK: "rank", SKType: table.Number},
			{Name: "binary", PK: "group", PKType: table.Number, SK: "blob", SKType: table.Binary},
		}})
		require.NoError(t, err)
		require.NoError(t, tbl.Ensure(t.Context()))
		ranks := []float64{-10, -9.5, 0, 1, 2, 10, 1e20}
		for i, rank := range ranks {
			text := strconv.FormatFloat(rank, 'f', -1, 64)
			require.NoError(t, tbl.Write(t.Context(), table.Put(table.Item{
				"pk": &types.AttributeValueMemberS{Value: "p"}, "sk": &types.AttributeValueMemberS{Value: fmt.Sprint(i)},
				"group": &types.AttributeValueMemberN{Value: "7"}, "rank": &types.AttributeValueMemberN{Value: text},
			})))
		}
		read := func(q table.Query) (got []float64) {
			for item, err := range tbl.Query(t.Context(), q) {
				require.NoError(t, err)
				n, err := strconv.ParseFloat(item["rank"].(*types.AttributeValueMemberN).Value, 64)
				require.NoError(t, err)
				got = append(got, n)
			}
			return got
		}
		value := func(bound string, open float64) float64 {
			if bound == "" {
				return open
			}
			n, err := strconv.ParseFloat(bound, 64)
			require.NoError(t, err)
			return n
		}
		for _, lo := range []string{"", "-10", "-9.7", "0", "1.0", "2", "1e20"} {
			for _, hi := range []string{"", "-9.50", "0", "1", "9", "10", "100000000000000000000", "1e21"} {
				least, most := value(lo, -1e30), value(hi, 1e30)
				if least > most {
					continue
				}
				var want []float64
				for _, rank := range ranks {
					if rank >= least && rank < most {
						want = append(want, rank)
					}
				}
				q := table.Query{Index: "numbers", PK: "7.0", SK: keys.Range{Lo: lo, Hi: hi}}
				assert.Equal(t, want, read(q), "from %q until %q", lo, hi)
				if q.Limit = 2; len(want) > 2 {
					want = want[:2]
				}
				q.PageSize = 1
				assert.Equal(t, want, read(q), "from %q until %q, page by page", lo, hi)
			}
		}
		assert.Equal(t, []float64{2}, read(table.Query{Index: "numbers", PK: "7", SK: keys.Range{Lo: "2.00", Hi: "2.00\x00"}}))
		assert.Equal(t, []float64{1, 0}, read(table.Query{Index: "numbers", PK: "7", SK: keys.Range{Lo: "0", Hi: "2"}, Descending: true}))

		for name, q := range map[string]table.Query{
			"no number":            {Index: "numbers", PK: "secret"},
			"infinity":             {Index: "numbers", PK: "Infinity"},
			"a bound":              {Index: "numbers", PK: "7", SK: keys.Range{Lo: "secret"}},
			"another":              {Index: "numbers", PK: "7", SK: keys.Range{Hi: "NaN"}},
			"a value":              {Index: "numbers", PK: "7", SK: keys.Range{Lo: "secret", Hi: "secret\x00"}},
			"bounds the wrong way": {Index: "numbers", PK: "7", SK: keys.Range{Lo: "10", Hi: "9"}},
			"binary":               {Index: "binary", PK: "7"},
		} {
			_, err := tbl.QueryPage(context.Background(), q)
			require.ErrorIs(t, err, table.ErrInvalid, name)
			assert.NotContains(t, err.Error(), "secret", name)
		}
	})
}
