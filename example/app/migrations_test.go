package main

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/entity"
	"github.com/mortise-go/mortise/internal/engines"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/migrations"
	"github.com/mortise-go/mortise/table"
)

// withMigrator runs f on a table's migrator.
func withMigrator(t *testing.T, s *store, f func(m *migrations.Migrator)) {
	t.Helper()
	require.NoError(t, s.withMigrator(t.Context(), func(m *migrations.Migrator) error {
		f(m)
		return nil
	}))
}

// rows reads all orders of a table as they are stored, without their versions,
// which migrations count up.
func (b bench) rows(t *testing.T) map[string]table.Item {
	t.Helper()
	rows := map[string]table.Item{}
	for item, err := range b.table.Scan(t.Context(), table.Scan{Consistent: true}) {
		require.NoError(t, err)
		if !b.orders.Owns(item) {
			continue
		}
		o, err := b.orders.Decode(item)
		require.NoError(t, err)
		delete(item, b.table.Scheme().Version)
		rows[o.Order] = item
	}
	return rows
}

// What the backfill writes is what the entity writes, and down takes it back.
func TestIndexOrders_WritesWhatTheEntityWrites(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		b := newBench(t, e)
		before := b.rows(t)
		require.Len(t, before, 2)
		count := func(o Order) int {
			list, err := all(b.orders.Query(t.Context(), keys.Values{"batch": b.batch.ID, "customer": o.Customer}, entity.On(customerIndex)))
			require.NoError(t, err)
			return len(list)
		}
		o, err := b.orders.Get(t.Context(), b.order("10248"))
		require.NoError(t, err)
		withMigrator(t, b.store, func(m *migrations.Migrator) {
			_, err := m.Up(t.Context()) // the table is new: nothing changes
			require.NoError(t, err)
			assert.Equal(t, before, b.rows(t))
			assert.Equal(t, 2, count(o))

			report, err := m.Down(t.Context())
			require.NoError(t, err)
			require.Len(t, report.Done, 1)
			assert.Equal(t, "3_orders_by_customer", report.Done[0].ID)
			assert.Zero(t, count(o))
			for _, item := range b.rows(t) {
				assert.NotContains(t, item, customerIndex+"pk")
				assert.NotContains(t, item, customerIndex+"sk")
				assert.Contains(t, item, pendingIndex+"pk")
			}

			_, err = m.Up(t.Context())
			require.NoError(t, err)
			assert.Equal(t, before, b.rows(t))
			assert.Equal(t, 2, count(o))

			// All the way back and forth.
			report, err = m.DownTo(t.Context(), "")
			require.NoError(t, err)
			assert.Len(t, report.Done, 3)
			_, err = m.Up(t.Context())
			require.NoError(t, err)
			assert.Equal(t, before, b.rows(t))
		})
	})
}

// A table of the program before there were migrations: one index, orders
// without the keys of the other, a batch that is not finished.
func TestMigrations_TakeOverATableOfBefore(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		file, total := writeOrders(t, 30)
		o, err := parseOptions(words("-json -stall 0 -table "+e.TableName(t)+" -orders "+word(file)+" "+at(t, e)), nil)
		require.NoError(t, err)
		var stdout, stderr bytes.Buffer
		a := newApp(o, &stdout, &stderr)
		a.input, err = openInput(file, nil)
		require.NoError(t, err)
		s, err := openStore(e.Client(), o.tableName, keys.Scheme{})
		require.NoError(t, err)
		require.NoError(t, s.ensure(1)(t.Context(), nil))
		a.store = s
		a.locks, err = newLocks(s, "test", leaseTime)
		require.NoError(t, err)
		require.NoError(t, a.openBatch(t.Context()))
		require.NoError(t, a.load(t.Context()))
		require.NoError(t, a.locks.Close(t.Context()))
		for _, c := range a.input.Orders {
			require.NoError(t, s.table.Write(t.Context(), table.Update(s.orders.Key(Order{Batch: a.batch.ID, Order: c.order.Order}),
				table.Attr(customerIndex+"pk").Remove(), table.Attr(customerIndex+"sk").Remove())))
		}

		out := finished(t, exitCode(t.Context(), a.run(t.Context(), a.job), &stderr), &stdout, &stderr)
		requireSound(t, out, 30, total)
		assert.Contains(t, out.stdout, "-1 (resumed")
		assert.Contains(t, out.stdout, "from index gsi2: 10\n")
		assert.Contains(t, out.stderr, "3_orders_by_customer orders: ")
		assert.Contains(t, out.stderr, " items, 30 changed, ")
		require.NoError(t, s.table.Verify(t.Context()))
	})
}

// The catalogue follows the entities' definitions.
func TestCatalogue_FollowsTheDefinitions(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		s, err := openStore(e.Client(), e.TableName(t), keys.Scheme{})
		require.NoError(t, err)
		up := func() (ids []string) {
			withMigrator(t, s, func(m *migrations.Migrator) {
				report, err := m.Up(t.Context())
				require.NoError(t, err)
				for _, r := range report.Done {
					ids = append(ids, r.ID)
				}
			})
			return ids
		}
		read := func() (rows []CatalogueEntry) {
			for entry, err := range s.catalogue.Query(t.Context(), keys.Values{}, entity.Consistent()) {
				require.NoError(t, err)
				rows = append(rows, entry)
			}
			return rows
		}
		assert.Equal(t, []string{"1_pending_index", "2_customer_index", "3_orders_by_customer", "catalogue"}, up())
		assert.ElementsMatch(t, s.contents, read())
		assert.Contains(t, s.contents, CatalogueEntry{Row: "OrderLine", Partition: "BATCH#{batch}#ORDER#{order}", Sort: "LINE#{no:uint4}"})
		assert.Empty(t, up(), "nothing has changed")

		s.contents = slices.Delete(slices.Clone(s.contents), 0, 1)
		s.contents[0].Sort = "ELSEWHERE"
		assert.Equal(t, []string{"catalogue"}, up())
		assert.ElementsMatch(t, s.contents, read(), "an entry that is gone is deleted")
	})
}

// Migrations that are recorded do not tell what somebody has done by hand since.
func TestMigrations_ReportAnIndexDroppedByHand(t *testing.T) {
	e, url := listen(t)
	file, total := writeOrders(t, 3)
	requireSound(t, start(t.Context(), t, "-json -orders "+word(file)+" -endpoint "+url, nil), 3, total)
	name, index := "mortise-example", customerIndex
	_, err := e.Client().UpdateTable(t.Context(), &dynamodb.UpdateTableInput{TableName: &name, GlobalSecondaryIndexUpdates: []types.GlobalSecondaryIndexUpdate{
		{Delete: &types.DeleteGlobalSecondaryIndexAction{IndexName: &index}},
	}})
	require.NoError(t, err)
	out := start(t.Context(), t, "-json -orders "+word(file)+" -endpoint "+url, nil)
	assert.Equal(t, exitFailure, out.code)
	assert.Contains(t, out.stderr, "missing: index gsi2")
}

// migrate runs the program with arguments.
func migrate(t *testing.T, args string) outcome {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code := run(t.Context(), words(args), strings.NewReader(""), &stdout, &stderr)
	return outcome{code: code, stdout: stdout.String(), stderr: stderr.String()}
}

// setHome names the directory that a table is kept in or below. Without -endpoint, the program needs one.
func setHome(t *testing.T) {
	t.Helper()
	for _, name := range []string{"XDG_CACHE_HOME", "HOME"} {
		t.Setenv(name, "/var/cache/x")
	}
}

func TestMigrate_RunsItsSubcommands(t *testing.T) {
	_, url := listen(t)
	file, _ := writeOrders(t, 5)
	at := "-table shop -pk PartKey -prefix shop/ -endpoint " + url
	for _, step := range []struct {
		args, stdout, stderr string
		code                 int
	}{
		{"migrate " + at + " status", "4 pending", "", 0},
		{"migrate plan " + at, "run 2_customer_index index of customers' orders", "", 0},
		{at + " migrate up --to 2_customer_index", "applied: 1_pending_index, 2_customer_index", "applied id=1_pending_index", 0},
		{at + " -json migrate validate", `"valid": true`, "", 0},
		{"migrate up " + at, "applied: 3_orders_by_customer, catalogue", "3_orders_by_customer orders: ", 0},
		{"-json -stall 0 -orders " + word(file) + " " + at, `"orders":5`, "", 0},
		{"migrate down " + at + " -json", `"id": "3_orders_by_customer"`, " 5 changed", 0},
		{"migrate status " + at, "taken back", "", 0},
		{"-json -stall 0 -orders " + word(file) + " " + at, `"orders":5`, "migrated: 3_orders_by_customer, put all orders into the index", 0},
		{"migrate down --to 9_none " + at, "", `no migration "9_none"`, exitFailure},
		{"migrate repair " + at, "nothing to repair", "", 0},
	} {
		out := migrate(t, step.args)
		assert.Equal(t, step.code, out.code, "%s: %s", step.args, out.stderr)
		assert.Contains(t, out.stdout, step.stdout, step.args)
		assert.Contains(t, out.stderr, step.stderr, step.args)
	}
}

// Help and mistakes need no table.
func TestMigrate_NeedsNoTableToExplain(t *testing.T) {
	setHome(t)
	for args, want := range map[string]struct {
		code int
		text string
	}{
		"migrate help":                        {0, "usage: app migrate SUBCOMMAND"},
		"migrate -h":                          {0, "usage: app migrate SUBCOMMAND"},
		"migrate up -h -endpoint http://x":    {0, "usage: app migrate up [-to ID]"},
		"migrate":                             {exitUsage, "app migrate: usage: no subcommand"},
		"migrate sideways":                    {exitUsage, `no subcommand "sideways"`},
		"migrate -workers 2 status":           {exitUsage, "-workers: not with migrate"},
		"-stall 1 migrate status":             {exitUsage, "-stall: not with migrate"},
		"migrate status -endpoint":            {exitUsage, "needs an argument: -endpoint"},
		"migrate -endpoint localhost status":  {exitUsage, "-endpoint: want a URL"},
		"migrate -data d -aws status":         {exitUsage, "-data excludes"},
		"migrate -data d -endpoint http://x ": {exitUsage, "-data excludes"},
		"status":                              {exitUsage, `unexpected argument "status"`},
	} {
		out := migrate(t, args)
		assert.Equal(t, want.code, out.code, args)
		assert.Contains(t, out.stdout+out.stderr, want.text, args)
	}
}

func TestSplitArgs_LeavesTheSubcommandItsOwn(t *testing.T) {
	setHome(t)
	o, err := parseOptions(strings.Fields("-prefix a/ migrate --to -aws=false -x -table=shop 1_a --json -pk p -- -sk s"), nil)
	require.NoError(t, err)
	assert.Equal(t, strings.Fields("--to -x 1_a --json -- -sk s"), o.command)
	assert.Equal(t, []string{"shop", "p", "sk", "a/"}, []string{o.tableName, o.scheme.PK, o.scheme.SK, o.scheme.Prefix})

	o, err = parseOptions([]string{"migrate"}, nil)
	require.NoError(t, err)
	assert.Empty(t, o.command)
	assert.NotNil(t, o.command)
	assert.Equal(t, "mortise-example", filepath.Base(o.target.Data))
	assert.Equal(t, "dynamodb-local", o.target.String())
}

// What one start of the program leaves behind the next one finds.
func TestKeptTable_IsFoundByTheNextStart(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts DynamoDB Local four times: make proof does, and every run without -short")
	}
	engines.Run(t, func(t *testing.T, _ *engines.Engine) {
		engines.Only(t, engines.DynamoDBLocal, "the in-process engine keeps nothing")
		at := " -data " + word(filepath.Join(t.TempDir(), "kept"))
		file, total := writeOrders(t, 5)
		requireSound(t, start(t.Context(), t, "-json -processes 2 -orders "+word(file)+at, nil), 5, total)
		out := migrate(t, "migrate down"+at)
		require.Zero(t, out.code, out.stderr)
		assert.Contains(t, out.stderr, "kept in ")
		assert.Contains(t, out.stderr, " 5 changed")
		out = migrate(t, "migrate status"+at)
		require.Zero(t, out.code, out.stderr)
		assert.Contains(t, out.stdout, "3 applied, 1 pending")
	})
}
