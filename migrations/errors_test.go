package migrations_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/migrations"
	"github.com/mortise-go/mortise/table"
)

// What an application put into keys and items is its own business.
func TestError_ACanaryStaysOutOfErrorsAndLogs(t *testing.T) {
	const canary = "s3cret-canary"
	for name, value := range map[string]types.AttributeValue{
		"sk":     text(canary),
		"number": &types.AttributeValueMemberN{Value: canary},
		"set":    &types.AttributeValueMemberSS{Value: []string{canary, canary}},
		"large":  text(strings.Repeat(canary, 50_000)),
	} {
		t.Run(name, func(t *testing.T) {
			modes(t, func(ctx context.Context, w *world, exact bool) {
				require.NoError(w, w.table.Write(ctx, table.Update(keys.NewKey("I#"+canary, canary), table.Attr("n").Set(1), table.Attr("s").Set(canary))))
				var log journal
				var p migrations.Progress
				m := w.migrator(backfill(migrations.Backfill{Exact: exact, Filter: only(), Transform: func(_ context.Context, item table.Item) (table.Item, error) {
					item[name] = value
					if name == "sk" {
						item[name] = text(canary + "2")
					}
					return item, nil
				}}, &p), migrations.WithLogger(log.logger()))
				_, err := m.Up(ctx)
				require.Error(w, err)
				log.logger().Error("failed", "error", err)
				fixes, err := m.Repair(ctx, nil)
				require.NoError(w, err)
				st, err := m.Status(ctx)
				require.NoError(w, err)
				assert.NotContains(w, fmt.Sprintf("%s %v %+v %s", log.String(), fixes, st, st[0].Record.Error), canary)
			})
		})
	}
}
