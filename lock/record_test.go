package lock_test

import (
	"context"
	"maps"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
)

// Owns also knows the rows of sessions.
func TestOwns_LocksAndSessions(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(lock.Config{})
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		require.NoError(t, w.table.Write(ctx, w.put("x")))
		for key, want := range map[keys.Key]bool{l.Key(): true, sessionKey(c): true, w.row("x"): false} {
			item, err := w.table.Get(ctx, key, true)
			require.NoError(t, err)
			assert.Equal(t, want, c.Owns(item), "%v", item)
		}
	})
}

// Records does not check what it decodes. Whatever a row has, its record answers without a panic.
func TestRecords_AMalformedRowIsARecordOrAnError(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(lock.Config{})
		var rows []table.Item
		for name, opts := range map[string][]lock.Option{"lock": nil, "fixed": {lock.Fixed(time.Minute)}, "shared": {lock.Shared()}, "permits": {lock.Permits(2)}} {
			l, err := c.Acquire(ctx, lock.Name(name), opts...)
			require.NoError(t, err)
			row, err := w.table.Get(ctx, l.Key(), true)
			require.NoError(t, err)
			rows = append(rows, row)
		}
		numbers := func(n int64) []types.AttributeValue {
			return []types.AttributeValue{numeral(n), listOf(numeral(n)), listOf(numeral(n), numeral(n), numeral(n))}
		}
		odd := slices.Concat(
			numbers(-1), numbers(0), numbers(1), numbers(math.MaxInt64), numbers(math.MinInt64),
			[]types.AttributeValue{nil, (*types.AttributeValueMemberS)(nil), text(""), text("A@1+1 x"), listOf(), listOf((*types.AttributeValueMemberS)(nil)), listOf(text("")), listOf(text("A@9223372036854775807+9223372036854775807 x"), text("A"))},
		)
		decoded := 0
		for _, row := range rows {
			for _, attribute := range []string{"line", "fence", "permits", "stays", "next", "kept", "renewed", "since", "hold", "ran", "failed"} {
				for _, value := range odd {
					changed := maps.Clone(row)
					changed[attribute] = value
					assert.NotPanics(t, func() {
						r, err := c.Records().Decode(changed)
						if err != nil {
							return
						}
						decoded++
						assert.Equal(t, len(r.Line), len(r.Holders())+r.Waiting())
						_, _, _, _, _ = r.Holder(), r.Since(), r.Until(), r.LastRun(), r.LastFailed()
					}, "%s: %#v", attribute, value)
				}
			}
		}
		assert.Greater(t, decoded, 200)
	})
}
