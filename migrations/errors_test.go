package migrations_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
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

// What the error names is possible.
func TestUnfinishedError_SaysWhatGoesOnWithIt(t *testing.T) {
	for name, c := range map[string]struct {
		idempotent, down bool // whether it failed while it was taken back
		want             string
	}{
		"taken back, idempotent": {true, true, "failed while it was taken back: Down goes on with it, or Repair decides"},
		"taken back":             {false, true, "failed while it was taken back: Repair decides"},
		"applied, idempotent":    {true, false, "failed: Up goes on with it"},
		"applied":                {false, false, "failed: Repair decides"},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				fails := func(context.Context, *migrations.Run) error { return assert.AnError }
				a := migrations.Migration{ID: "1_a", Idempotent: c.idempotent, Up: fails}
				if c.down {
					a.Up, a.Down = simple("1_a").Up, fails
				}
				m := w.migrator([]migrations.Migration{a})
				_, err := m.Up(ctx)
				if c.down {
					require.NoError(w, err)
					_, err = m.Down(ctx)
				}
				require.ErrorIs(w, err, assert.AnError)

				_, baseline := m.Baseline(ctx, "1_a")
				unfinished := map[string]error{"baseline": baseline}
				if c.down {
					_, unfinished["up"] = m.Up(ctx)
				}
				if c.down && !c.idempotent {
					_, unfinished["down"] = m.Down(ctx)
				}
				for call, err := range unfinished {
					require.ErrorIs(w, err, migrations.ErrUnfinished, call)
					assert.ErrorContains(w, err, "1_a "+c.want, call)
				}
				fixes, err := m.Repair(ctx, nil)
				require.NoError(w, err)
				assert.Equal(w, strings.Contains(c.want, "Repair"), len(fixes) > 0)
			})
		})
	}
}

// A panic is an error with its value and its stack, and what the value is if it is an error.
func TestPanic_IsAnErrorWithItsStack(t *testing.T) {
	for name, value := range map[string]any{"an error": assert.AnError, "a text": "oops"} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				m := w.migrator([]migrations.Migration{{ID: "1_a", Up: func(context.Context, *migrations.Run) error { return panics(value) }}})
				_, err := m.Up(ctx)
				require.ErrorIs(w, err, migrations.ErrPanic)
				var panicked *migrations.PanicError
				require.ErrorAs(w, err, &panicked)
				assert.Equal(w, value, panicked.Value)
				assert.Contains(w, string(panicked.Stack), "migrations_test.panics")
				assert.Equal(w, name == "an error", errors.Is(err, assert.AnError))
			})
		})
	}
}

func panics(value any) error { panic(value) }

// A nil pointer that is returned as an error fails the migration like any other error, although its text panics.
func TestPanic_OfTheTextOfAnError(t *testing.T) {
	var none *fs.PathError
	fails := func(context.Context) error { return none }
	for name, up := range map[string]func(ctx context.Context, run *migrations.Run) error{
		"a migration": func(ctx context.Context, _ *migrations.Run) error { return fails(ctx) },
		"a step": func(ctx context.Context, run *migrations.Run) error {
			_ = run.Step(ctx, "a", fails)
			return nil
		},
		"a backfill": func(ctx context.Context, run *migrations.Run) error {
			_, err := run.Backfill(ctx, migrations.Backfill{Name: "a", Transform: func(context.Context, table.Item) (table.Item, error) { return nil, none }})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				w.fill(1)
				m := w.migrator([]migrations.Migration{{ID: "1_a", Up: up}})
				_, err := m.Up(ctx)
				require.ErrorIs(w, err, migrations.ErrPanic)
				list, err := m.Status(ctx)
				require.NoError(w, err)
				assert.Equal(w, migrations.Failed, list[0].State)
				assert.Contains(w, list[0].Record.Error, "nil pointer")
			})
		})
	}
}
