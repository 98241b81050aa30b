package migrations_test

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"math"
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

// Rows that this version cannot have written stop it, before anything is run.
func TestRecord_RefusesMalformedRecords(t *testing.T) {
	contract(t, func(ctx context.Context, w *world) {
		record := keys.NewKey("MIGRATIONS#main", "MIGRATION#1_a")
		try := func(want error, changes ...table.Change) {
			w.Helper()
			require.NoError(w, w.table.Write(ctx, table.Delete(record)))
			require.NoError(w, w.table.Write(ctx, table.Update(record, changes...)))
			m := w.migrator([]migrations.Migration{simple("0_z"), simple("1_a")}, migrations.OutOfOrder(migrations.RunAnyway))
			_, err := m.Up(ctx)
			require.ErrorIs(w, err, want)
			assert.Zero(w, w.count("1_a"))
		}
		typ := table.Attr("type").Set("mortise.Migration")
		try(migrations.ErrMalformed, typ)
		try(migrations.ErrMalformed, typ, table.Attr("state").Set("paused")) // by a newer version
		try(migrations.ErrMalformed, typ, table.Attr("state").Set(5))
		try(migrations.ErrMalformed, typ, table.Attr("state").Set("running"))
		try(migrations.ErrMalformed, typ, table.Attr("state").Set("failed"), table.Attr("attempts").Set(-1))
		try(migrations.ErrMalformed, typ, table.Attr("state").Set("applied"), table.Attr("took").Set("long"))
		assert.Zero(w, w.count("0_z"))
		require.NoError(w, w.table.Write(ctx, table.Delete(record)))
		require.NoError(w, w.table.Write(ctx, table.Update(record, table.Attr("type").Set("Bird"))))
		_, err := w.migrator([]migrations.Migration{simple("1_a")}).Up(ctx)
		require.ErrorContains(w, err, "another type")
		assert.Zero(w, w.count("1_a"))
		assert.Equal(w, text("Bird"), w.get(record)["type"])
	})
}

func TestRecord_RefusesMalformedCheckpoints(t *testing.T) {
	contract(t, func(ctx context.Context, w *world) {
		w.fill(30)
		var p migrations.Progress
		calls := 0
		b := migrations.Backfill{Segments: 1, PageSize: 5, Exact: true, Filter: only(), Transform: func(ctx context.Context, item table.Item) (table.Item, error) {
			if calls++; calls > 20 {
				return nil, assert.AnError
			}
			return increment(ctx, item)
		}}
		m := w.migrator(backfill(b, &p))
		_, err := m.Up(ctx)
		require.ErrorIs(w, err, assert.AnError)
		key := keys.NewKey("MIGRATIONS#main", "CHECKPOINT#1_fill#fill#000001")
		good := w.get(key)
		for _, change := range []table.Change{
			table.Attr("after_pk").Remove(), table.Attr("done").Set("yes"), table.Attr("segments").Set(0), table.Attr("seq").Set(0), table.Attr("seen").Set(-1),
			table.Attr("seen").Set(int64(math.MaxInt64)), table.Attr("changed").Set(int64(math.MaxInt64)), // their sums and percentages would be negative
			table.Attr("segments").Set(migrations.MaxSegments + 1),
		} {
			require.NoError(w, w.table.Write(ctx, table.Put(good)))
			require.NoError(w, w.table.Write(ctx, table.Update(key, change)))
			_, err := m.Up(ctx)
			require.ErrorIs(w, err, migrations.ErrMalformed)
			_, err = m.Status(ctx)
			require.ErrorIs(w, err, migrations.ErrMalformed)
		}
	})
}

// The rows of REFERENCE.md, under two schemes.
func TestRecord_RowsAreAsDocumented(t *testing.T) {
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

// In a table whose indexes are over attributes that records have, all of them begin with the prefix
// of the lock client.
func TestRecord_HasThePrefixOfTheLockClient(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		w := newWorld(t, table.Schema{Name: e.TableName(t), Indexes: []table.Index{
			{Name: "by-state", PK: "state", SK: "name"},
			{Name: "by-base", PK: "base", SK: "data"},
		}}, e.Client)
		ctx := t.Context()
		w.fill(20)
		stop := 12
		list := []migrations.Migration{stepped(&stop), {ID: "2_one", Name: "once", Up: func(ctx context.Context, run *migrations.Run) error {
			return run.Atomic(ctx, table.Update(keys.NewKey("ONE", "ONE"), table.Attr("n").Add(1)))
		}}}
		m := w.start(lock.Config{AttributePrefix: "m_", Logger: slog.New(slog.DiscardHandler)}, list).m
		_, err := m.Up(ctx)
		require.Error(t, err)
		found, err := m.Status(ctx)
		require.NoError(t, err)
		assert.Len(t, found[0].Steps, 2)
		stop = 0
		_, err = m.Up(ctx)
		require.NoError(t, err)
		require.NoError(t, m.Validate(ctx))

		rows := 0
		for item, err := range w.table.Query(ctx, table.Query{PK: "MIGRATIONS#main", Consistent: true}) {
			require.NoError(t, err)
			rows++
			for name := range item {
				switch name {
				case "pk", "sk", "type", "ttl":
				default:
					assert.True(t, strings.HasPrefix(name, "m_"), name)
				}
			}
		}
		assert.GreaterOrEqual(t, rows, 5, "records, checkpoints and the lock")
		page, err := w.table.QueryPage(ctx, table.Query{Index: "by-state", PK: "applied"})
		require.NoError(t, err)
		assert.Empty(t, page.Items, "the application's index is the application's")
	})
}

// A checkpoint that cannot be read stops the migration that has it, after those that were finished before.
func TestDown_StopsAtAMalformedCheckpoint(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		m := w.migrator(bothWays(1, 5))
		_, err := m.Up(ctx)
		require.NoError(w, err)
		require.NoError(w, w.table.Write(ctx, table.Update(keys.NewKey("MIGRATIONS#main", "CHECKPOINT#2_steps#first#000000"), table.Attr("seq").Set(0))))
		_, err = m.DownTo(ctx, "")
		require.ErrorIs(w, err, migrations.ErrMalformed)
		var partial *migrations.PartialError
		require.ErrorAs(w, err, &partial)
		assert.Len(w, partial.Done, 2)
		assert.EqualValues(w, 1, w.count("first"))
		list, err := m.Status(ctx)
		require.NoError(w, err)
		assert.Equal(w, migrations.Applied, list[1].State)
	})
}

// A count by another hand does not turn into one that cannot be read.
func TestRecord_AHugeCountOfAttemptsStaysReadable(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		fails := true
		m := w.migrator([]migrations.Migration{{ID: "1_a", Idempotent: true, Up: func(context.Context, *migrations.Run) error {
			if fails {
				return errors.New(strings.Repeat("ä", 1000))
			}
			return nil
		}}})
		_, err := m.Up(ctx)
		require.Error(w, err)
		record := keys.NewKey("MIGRATIONS#main", "MIGRATION#1_a")
		require.NoError(w, w.table.Write(ctx, table.Update(record, table.Attr("attempts").Set(int64(math.MaxInt64)))))
		_, err = m.Up(ctx)
		require.Error(w, err)
		list, err := m.Status(ctx)
		require.NoError(w, err)
		assert.LessOrEqual(w, len(list[0].Record.Error), 1000, "bytes of the text, as documented")
		fails = false
		_, err = m.Up(ctx)
		require.NoError(w, err)
		list, err = m.Status(ctx)
		require.NoError(w, err)
		assert.Equal(w, migrations.Applied, list[0].State)
	})
}
