package migrations_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/migrations"
	"github.com/mortise-go/mortise/table"
)

// Old and new instances with different lists of migrations. docs/how-to/migrate.md, During a deployment, says what happens.

// A migration was interrupted, and another version of the program goes on with it: finished steps stay finished, whatever their code is now.
func TestDeployment_AnotherVersionGoesOnWithAnInterruptedMigration(t *testing.T) {
	everywhere(t, func(ctx context.Context, w *world) {
		var ran []string
		version := func(revision string, fail error) *migrations.Migrator {
			return w.start(lock.Config{}, []migrations.Migration{{ID: "1", Revision: revision, Idempotent: true, Up: func(ctx context.Context, run *migrations.Run) error {
				step := func(name string, err error) error {
					return run.Step(ctx, name, func(context.Context) error {
						ran = append(ran, name+" of "+revision)
						return err
					})
				}
				if err := step("first", nil); err != nil {
					return err
				}
				return step("second", fail)
			}}}).m
		}
		cut := errors.New("cut off")
		_, err := version("a", cut).Up(ctx)
		require.ErrorIs(t, err, cut)
		_, err = version("b", nil).Up(ctx)
		require.NoError(t, err)
		assert.Equal(t, []string{"first of a", "second of a", "second of b"}, ran)
		_, err = version("a", nil).Up(ctx)
		require.ErrorIs(t, err, migrations.ErrDrift, "the old version, when it starts again")
	})
}

// Each version runs its own revision of a repeatable migration when it starts, the old one too.
func TestDeployment_TheOldRevisionOfARepeatableMigrationRunsAgain(t *testing.T) {
	everywhere(t, func(ctx context.Context, w *world) {
		key := keys.NewKey("SETTINGS", "SETTINGS")
		up := func(revision string) int {
			report, err := w.start(lock.Config{}, []migrations.Migration{{ID: "settings", Repeatable: true, Idempotent: true, Revision: revision, Up: func(ctx context.Context, run *migrations.Run) error {
				return run.Atomic(ctx, table.Update(key, table.Attr("of").Set(revision)))
			}}}).m.Up(ctx)
			require.NoError(t, err)
			return len(report.Done)
		}
		assert.Equal(t, []int{1, 1, 0, 1}, []int{up("a"), up("b"), up("b"), up("a")})
	})
}

// An instance with fewer migrations is refused, or runs what it knows, and takes nothing back that another version has built on.
func TestDeployment_AnInstanceWithFewerMigrations(t *testing.T) {
	everywhere(t, func(ctx context.Context, w *world) {
		both := []migrations.Migration{simple("1"), simple("2")}
		_, err := w.start(lock.Config{}, both).m.Up(ctx)
		require.NoError(t, err)
		_, err = w.start(lock.Config{}, both[:1]).m.Up(ctx)
		require.ErrorIs(t, err, migrations.ErrUnknown)
		old := w.start(lock.Config{}, both[:1], migrations.OnUnknown(migrations.Warn)).m
		report, err := old.Up(ctx)
		require.NoError(t, err)
		assert.Empty(t, report.Done)
		_, err = old.Down(ctx)
		require.ErrorIs(t, err, migrations.ErrUnknown)
		report, err = w.start(lock.Config{}, both).m.Down(ctx)
		require.NoError(t, err)
		require.Len(t, report.Done, 1)
		_, err = w.start(lock.Config{}, both[:1]).m.Up(ctx)
		require.NoError(t, err, "taken back, it is not unknown")
	})
}

// With another prefix, the records cannot be read. They must not count as missing: everything would run again.
func TestDeployment_AnotherAttributePrefixRunsNothingAgain(t *testing.T) {
	everywhere(t, func(ctx context.Context, w *world) {
		list := []migrations.Migration{simple("1")}
		_, err := w.start(lock.Config{}, list).m.Up(ctx)
		require.NoError(t, err)
		other := w.start(lock.Config{AttributePrefix: "p_"}, list).m
		_, err = other.Up(ctx)
		require.ErrorIs(t, err, migrations.ErrMalformed)
		_, err = other.Plan(ctx)
		require.ErrorIs(t, err, migrations.ErrMalformed)
		key, err := w.start(lock.Config{}, list).locks.Key(lock.Beside(keys.NewKey("MIGRATIONS#main", "MIGRATIONS")))
		require.NoError(t, err)
		require.NoError(t, w.table.Write(ctx, table.Delete(key).If(table.Attr("fence").Exists())), "as by time to live")
		_, err = other.Baseline(ctx, "1")
		require.ErrorIs(t, err, migrations.ErrMalformed)
	})
}
