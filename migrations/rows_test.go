package migrations_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/engines"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/migrations"
	"github.com/mortise-go/mortise/table"
)

// An older program starts although a newer one's migration was there, once that was taken back.
func TestRollbackLetsTheOlderProgramStart(t *testing.T) {
	contract(t, func(ctx context.Context, w *world) {
		newer := w.migrator([]migrations.Migration{simple("1_a"), simple("2_b")})
		_, err := newer.Up(ctx)
		require.NoError(w, err)
		m := w.migrator([]migrations.Migration{simple("1_a")})
		_, err = m.Up(ctx)
		require.ErrorIs(w, err, migrations.ErrUnknown)
		_, err = m.Down(ctx)
		require.ErrorIs(w, err, migrations.ErrUnknown, "that would take back the wrong one")
		_, err = newer.Down(ctx)
		require.NoError(w, err)
		_, err = m.Up(ctx)
		require.NoError(w, err)
		require.NoError(w, m.Validate(ctx))
		fixes, err := m.Repair(ctx, nil)
		require.NoError(w, err)
		assert.Empty(w, fixes)
	})
}

// The rows of REFERENCE.md, under two schemes.
func TestRowsAreAsDocumented(t *testing.T) {
	for name, scheme := range map[string]keys.Scheme{
		"defaults": {},
		"renamed":  {PK: "PartKey", SK: "SortKey", Type: "_t", TTL: "expiresAt", Version: "_v", Delimiter: '|', Prefix: "shop/"},
	} {
		t.Run(name, func(t *testing.T) {
			engines.Run(t, func(t *testing.T, e *engines.Engine) {
				documented(newWorld(t, table.Schema{Name: e.TableName(t), Keys: scheme}, e.Client))
			})
		})
	}
}

func documented(w *world) {
	const items = 30
	ctx := w.Context()
	for i := range items {
		require.NoError(w, w.table.Write(ctx, table.Update(itemKey(i), table.Attr("n").Set(i))))
	}
	s := w.table.Scheme()
	d := string(rune(s.Delimiter))
	calls := 0
	up := func(ctx context.Context, run *migrations.Run) error {
		if err := run.Step(ctx, "s", func(context.Context) error { return nil }); err != nil {
			return err
		}
		_, err := run.Backfill(ctx, migrations.Backfill{
			Name: "fill", Segments: 1, PageSize: 5, Filter: only(), Exact: true,
			Transform: func(ctx context.Context, item table.Item) (table.Item, error) {
				if calls++; calls == 20 {
					return nil, assert.AnError
				}
				return increment(ctx, item)
			},
		})
		return err
	}
	m := w.start(lock.Config{Owner: "me"}, []migrations.Migration{{ID: "1_a", Name: "n", Revision: "r", Idempotent: true, Up: up}}).m
	_, err := m.Up(ctx)
	require.ErrorIs(w, err, assert.AnError)
	at := func(parts ...string) table.Item {
		w.Helper()
		return w.get(keys.NewKey(s.Prefix+"MIGRATIONS"+d+"main", strings.Join(parts, d)))
	}
	names := func(item table.Item) []string { return slices.Collect(maps.Keys(item)) }
	record := at("MIGRATION", "1_a")
	assert.ElementsMatch(w, []string{
		s.PK, s.SK, s.Type, "state", "name", "revision", "owner", "fence", "base", "attempts", "started", "finished", "took", "step", "error",
	}, names(record))
	assert.Equal(w, text("mortise.Migration"), record[s.Type])
	assert.Equal(w, text("failed"), record["state"])
	assert.Equal(w, text("me"), record["owner"])
	assert.Equal(w, text("fill"), record["step"])
	step := at("CHECKPOINT", "1_a", "s", "000000")
	assert.ElementsMatch(w, []string{s.PK, s.SK, s.Type, "done", "base", "seq", "fence", "at"}, names(step))
	assert.Equal(w, text("mortise.MigrationCheckpoint"), step[s.Type])
	part := at("CHECKPOINT", "1_a", "fill", "000001")
	assert.ElementsMatch(w, []string{
		s.PK, s.SK, s.Type, "done", "base", "seq", "fence", "at", "segments", "after_pk", "after_sk", "seen", "changed",
	}, names(part))

	// The item at the position is gone: the segment goes on after its place all the same.
	last := func(name string) string { return part[name].(*types.AttributeValueMemberS).Value }
	// A page may also end at a row of the toolkit, as the session's with its random key: that is not ours to delete.
	gone, place := 0, keys.NewKey(last("after_pk"), last("after_sk"))
	if w.get(place)["n"] != nil {
		require.NoError(w, w.table.Write(ctx, table.Delete(place)))
		gone++
	}
	_, err = m.Up(ctx)
	require.NoError(w, err)
	record = at("MIGRATION", "1_a")
	assert.Equal(w, text("applied"), record["state"])
	assert.EqualValues(w, 2, integer(record["attempts"]))
	assert.Equal(w, part["base"], record["base"])
	seen := 0
	for item, err := range w.table.Scan(ctx, table.Scan{Consistent: true, Filter: only()}) {
		require.NoError(w, err)
		assert.EqualValues(w, 1, integer(item["m"]))
		seen++
	}
	assert.Equal(w, items-gone, seen)
}

// What an application put into keys and items is its own business.
func TestCanaryStaysOutOfErrorsAndLogs(t *testing.T) {
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
