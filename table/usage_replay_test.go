package table_test

import (
	"crypto/rand"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/engines"
	"github.com/mortise-go/mortise/table"
)

// The answer to a repeated transaction reports what reading its items costs:
// an item of 5 KB costs ten units to write and four to read.
func TestUsage_OfARepeatedWriteOnceIsRead(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		engines.Only(t, engines.InProcess, "DynamoDB Local does not say which units are reads")
		f := newFixture(t, e)
		token, put := rand.Text(), table.Put(f.item("p", "s", "b", make([]byte, 5000)))
		for _, want := range []table.Totals{{Requests: 1, WriteUnits: 10}, {Requests: 1, ReadUnits: 4}} {
			ctx, usage := table.WithUsage(t.Context())
			require.NoError(t, f.WriteOnce(ctx, token, put))
			assert.Equal(t, want, usage.Totals())
		}
	})
}
