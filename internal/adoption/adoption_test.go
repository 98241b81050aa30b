// Package adoption shows what docs/how-to/adopt.md describes: a table that another program made and filled, used by this
// module without a row being changed that nobody asked to change.
package adoption

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mortise-go/mortise/internal/attrvalue"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/entity"
	"github.com/mortise-go/mortise/internal/engines"
	"github.com/mortise-go/mortise/internal/engines/faulty"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/migrations"
	"github.com/mortise-go/mortise/table"
)

func TestMain(m *testing.M) { os.Exit(engines.Main(m)) }

// naming is the other program's, as its configuration would hold it.
const naming = `{"pk":"PartKey","sk":"SortKey","type":"_t","ttl":"expiresAt","version":"_v","delimiter":":","prefix":"acme/"}`

// Customer rows have neither a type attribute nor a version.
type Customer struct {
	ID    string `dynamo:"-"` // in the key alone
	Name  string `dynamo:"name"`
	Email string `dynamo:"email,omitempty"`
}

// Order rows have a type attribute; versions begin with the first update that is made here.
type Order struct {
	Customer string    `dynamo:"-"`
	No       int       `dynamo:"-"`
	Total    int64     `dynamo:"total"`
	Placed   time.Time `dynamo:"placed,unixtime"`
	Version  int64     `dynamo:"version"`
	Expires  time.Time `dynamo:"expires"`
}

// Line rows have no type attribute; a key in the hierarchy below an order's is all their type.
type Line struct {
	Customer string `dynamo:"-"`
	Order    int    `dynamo:"-"`
	No       uint   `dynamo:"-"`
	SKU      string `dynamo:"sku"`
}

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
func number(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}

var (
	placed  = time.Date(2024, 3, 1, 12, 0, 0, 0, time.UTC)
	never   = time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)
	unknown = &types.AttributeValueMemberM{Value: table.Item{"a": &types.AttributeValueMemberNS{Value: []string{"1", "2"}}}}
)

// otherProgram fills the table as programs do that have no library for it.
func otherProgram(t *testing.T, e *engines.Engine) (client *dynamodb.Client, name string) {
	t.Helper()
	client, name = e.Client(), e.TableName(t)
	def := func(n string) types.AttributeDefinition {
		return types.AttributeDefinition{AttributeName: &n, AttributeType: types.ScalarAttributeTypeS}
	}
	num := func(n string) types.AttributeDefinition {
		return types.AttributeDefinition{AttributeName: &n, AttributeType: types.ScalarAttributeTypeN}
	}
	_, err := client.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: &name, BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{def("PartKey"), def("SortKey"), def("email"), def("sku"), num("placed"), num("total")},
		KeySchema: []types.KeySchemaElement{
			{AttributeName: aws.String("PartKey"), KeyType: types.KeyTypeHash}, {AttributeName: aws.String("SortKey"), KeyType: types.KeyTypeRange},
		},
		GlobalSecondaryIndexes: []types.GlobalSecondaryIndex{{
			IndexName: aws.String("by-email"), KeySchema: []types.KeySchemaElement{{AttributeName: aws.String("email"), KeyType: types.KeyTypeHash}},
			Projection: &types.Projection{ProjectionType: types.ProjectionTypeKeysOnly},
		}, {
			IndexName: aws.String("by-placed"), KeySchema: []types.KeySchemaElement{
				{AttributeName: aws.String("placed"), KeyType: types.KeyTypeHash}, {AttributeName: aws.String("total"), KeyType: types.KeyTypeRange},
			},
			Projection: &types.Projection{ProjectionType: types.ProjectionTypeAll},
		}, {
			IndexName: aws.String("by-sku"), KeySchema: []types.KeySchemaElement{{AttributeName: aws.String("sku"), KeyType: types.KeyTypeHash}},
			Projection: &types.Projection{ProjectionType: types.ProjectionTypeAll},
		}},
	})
	require.NoError(t, err)
	for _, customer := range []string{"7", "a$0b"} {
		pk := "acme/CUST::" + customer
		rows := []table.Item{{
			"SortKey": text("PROFILE"), "name": text("Ann " + customer), "email": text(customer + "@example.org"),
			"flags": unknown, "joined": &types.AttributeValueMemberNULL{Value: true},
		}}
		for no := range 3 {
			order := "ORD::" + strconv.Itoa(8+no)
			rows = append(rows, table.Item{
				"SortKey": text(order), "_t": text("order"), "total": number(int64(100 * no)), "placed": number(placed.Unix()),
				"expiresAt": number(never.Unix()), "history": &types.AttributeValueMemberL{Value: []types.AttributeValue{text("made"), unknown}},
			}, table.Item{
				"SortKey": text(fmt.Sprintf("%s::LINE::%02d", order, no)), "sku": text("hinge"), "photo": &types.AttributeValueMemberB{Value: []byte{0, 255}},
			})
		}
		rows = append(rows,
			table.Item{"SortKey": text("AUDIT::2024-03-01"), "_t": text("audit"), "who": text("root")},
			table.Item{"SortKey": text("something else"), "x": number(1)},
		)
		for _, row := range rows {
			row["PartKey"] = text(pk)
			_, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &name, Item: row})
			require.NoError(t, err)
		}
	}
	return client, name
}

// snapshot is every row of the table, whole, by its key.
func snapshot(t *testing.T, client *dynamodb.Client, name string) map[string]table.Item {
	t.Helper()
	rows := map[string]table.Item{}
	pages := dynamodb.NewScanPaginator(client, &dynamodb.ScanInput{TableName: &name, ConsistentRead: aws.Bool(true)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(t.Context())
		require.NoError(t, err)
		for _, row := range page.Items {
			rows[row["PartKey"].(*types.AttributeValueMemberS).Value+" | "+row["SortKey"].(*types.AttributeValueMemberS).Value] = row
		}
	}
	return rows
}

// requireRows compares every attribute of every row.
func requireRows(t *testing.T, want, got map[string]table.Item, why string) {
	t.Helper()
	for key, row := range want {
		require.True(t, attrvalue.SameItem(row, got[key]), "%s: row %s was %v and is %v", why, key, row, got[key])
	}
	require.Len(t, got, len(want), why)
}

// with is a row with some attributes set.
func with(row table.Item, set table.Item) table.Item {
	row = maps.Clone(row)
	maps.Copy(row, set)
	return row
}

// indexes are the other program's, but for by-sku, which is none of ours. Their keys are attributes of the rows.
var indexes = []table.Index{
	{Name: "by-email", PK: "email", Include: []string{}},
	{Name: "by-placed", PK: "placed", PKType: table.Number, SK: "total", SKType: table.Number},
}

type adopted struct {
	*table.Table
	faults    *faulty.Client
	client    *dynamodb.Client
	customers *entity.Entity[Customer]
	orders    *entity.Entity[Order]
	lines     *entity.Entity[Line]
}

func adopt(t *testing.T, e *engines.Engine) adopted {
	t.Helper()
	client, name := otherProgram(t, e)
	scheme, err := keys.ParseScheme([]byte(naming))
	require.NoError(t, err)
	a := adopted{client: client, faults: &faulty.Client{}}
	a.Table, err = table.Open(e.Client(a.faults.Options), table.Schema{Name: name, Keys: scheme, Indexes: indexes})
	require.NoError(t, err)
	// The delimiter is one byte; templates spell the second one out.
	a.customers, err = entity.Define(a.Table, entity.Spec[Customer]{
		Type: "customer", PK: "CUST::{id:raw}", SK: "PROFILE", Untyped: true,
		Indexes: []entity.Index[Customer]{{Name: "by-email"}},
	})
	require.NoError(t, err)
	a.orders, err = entity.Define(a.Table, entity.Spec[Order]{
		Type: "order", PK: "CUST::{customer:raw}", SK: "ORD::{no:raw}", Version: "version", TTL: "expires",
		Indexes: []entity.Index[Order]{{Name: "by-placed"}},
	})
	require.NoError(t, err)
	a.lines, err = entity.Define(a.Table, entity.Spec[Line]{
		Type: "line", PK: "CUST::{customer:raw}", SK: "ORD::{order:raw}::LINE::{no:uint2}", Untyped: true,
	})
	require.NoError(t, err)
	return a
}

func (a adopted) rows(t *testing.T) map[string]table.Item { return snapshot(t, a.client, a.Name()) }

func TestPlan_SaysWhatAnAdoptedTableLacks(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		a := adopt(t, e)
		before := a.rows(t)
		p, err := a.Plan(t.Context())
		require.NoError(t, err)
		assert.Equal(t, "table "+a.Name()+`
  + time to live on attribute expiresAt
  = keys PartKey:S, SortKey:S; index by-email; index by-placed; capacity on demand; index by-sku, which is not in the schema
`, p.String())
		var differs *table.SchemaError
		require.ErrorAs(t, a.Verify(t.Context()), &differs)
		assert.Equal(t, []string{"missing: time to live on attribute expiresAt"}, differs.Differences)
		require.NoError(t, a.Ensure(t.Context()))
		require.NoError(t, a.Verify(t.Context()))
		requireRows(t, before, a.rows(t), "provisioning")
	})
}

func TestReading_ChangesNothing(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		a := adopt(t, e)
		before := a.rows(t)

		c, err := a.customers.Get(t.Context(), Customer{ID: "a$0b"})
		require.NoError(t, err)
		assert.Equal(t, Customer{ID: "a$0b", Name: "Ann a$0b", Email: "a$0b@example.org"}, c)
		o, err := a.orders.Get(t.Context(), Order{Customer: "7", No: 10}, entity.Consistent())
		require.NoError(t, err)
		assert.Equal(t, Order{Customer: "7", No: 10, Total: 200, Placed: placed, Expires: never}, withUTC(o))

		var numbers []int
		for o, err := range a.orders.Query(t.Context(), keys.Values{"customer": "7"}) {
			require.NoError(t, err)
			numbers = append(numbers, o.No)
		}
		assert.Equal(t, []int{10, 8, 9}, numbers, "in the order of the bytes that the other program wrote, lines left out")
		var lines []Line
		for l, err := range a.lines.Query(t.Context(), keys.Values{"customer": "7", "order": 9}) {
			require.NoError(t, err)
			lines = append(lines, l)
		}
		assert.Equal(t, []Line{{Customer: "7", Order: 9, No: 1, SKU: "hinge"}}, lines)

		var customers []Customer
		var orders []Order
		var rest []table.Item
		lines = nil
		pk := a.customers.Key(c).PK
		require.NoError(t, entity.Collect(t.Context(), a.Table, pk,
			entity.Into(a.customers, &customers), entity.Into(a.orders, &orders), entity.Into(a.lines, &lines), entity.Raw(&rest)))
		assert.Len(t, customers, 1)
		assert.Len(t, orders, 3)
		assert.Len(t, lines, 3)
		assert.Len(t, rest, 2, "rows of types that nobody defined here")
		var stranger *entity.UnknownTypeError
		require.ErrorAs(t, entity.Collect(t.Context(), a.Table, pk, entity.Into(a.customers, &customers)), &stranger, "unless allowed")

		requireRows(t, before, a.rows(t), "reading")
	})
}

func withUTC(o Order) Order {
	o.Placed = o.Placed.UTC()
	return o
}

func TestUpdate_WritesWhatItWasAskedFor(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		a := adopt(t, e)
		want := a.rows(t)

		_, err := a.customers.Update(t.Context(), Customer{ID: "7"}, entity.Set("name", "Bea"))
		require.NoError(t, err)
		want["acme/CUST::7 | PROFILE"] = with(want["acme/CUST::7 | PROFILE"], table.Item{"name": text("Bea")})
		requireRows(t, want, a.rows(t), "no type, no version, and what the struct does not know stays")

		_, err = a.lines.Update(t.Context(), Line{Customer: "7", Order: 8, No: 0}, entity.Set("sku", "tenon"))
		require.NoError(t, err)
		want["acme/CUST::7 | ORD::8::LINE::00"] = with(want["acme/CUST::7 | ORD::8::LINE::00"], table.Item{"sku": text("tenon")})
		requireRows(t, want, a.rows(t), "a row whose key is its type")

		o, err := a.orders.Get(t.Context(), Order{Customer: "7", No: 8})
		require.NoError(t, err)
		assert.Zero(t, o.Version)
		o, err = a.orders.Update(t.Context(), o, entity.Add("total", 5))
		require.NoError(t, err)
		assert.EqualValues(t, 1, o.Version)
		key := "acme/CUST::7 | ORD::8"
		want[key] = with(want[key], table.Item{"total": number(5), "_v": number(1)})
		requireRows(t, want, a.rows(t), "and the version, because the specification has one")

		stale := o
		stale.Version = 7
		_, err = a.orders.Update(t.Context(), stale, entity.Set("total", 1))
		require.ErrorIs(t, err, entity.ErrStale)
		o, err = a.orders.Update(t.Context(), o, entity.Set("total", 6))
		require.NoError(t, err)
		want[key] = with(want[key], table.Item{"total": number(6), "_v": number(2)})
		requireRows(t, want, a.rows(t), "from then on versions guard it")
		assert.EqualValues(t, 2, o.Version)
	})
}

func TestCreate_MakesTheOtherProgramsOwnRows(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		a := adopt(t, e)
		want := a.rows(t)
		_, err := a.customers.Create(t.Context(), Customer{ID: "8", Name: "Cid"})
		require.NoError(t, err)
		_, err = a.orders.Create(t.Context(), Order{Customer: "8", No: 1, Total: 3, Placed: placed})
		require.NoError(t, err)
		_, err = a.lines.Put(t.Context(), Line{Customer: "8", Order: 1, No: 2, SKU: "bolt"})
		require.NoError(t, err)
		pk := text("acme/" + "CUST::" + "8")
		want["acme/CUST::8 | PROFILE"] = table.Item{"PartKey": pk, "SortKey": text("PROFILE"), "name": text("Cid")}
		want["acme/CUST::8 | ORD::1"] = table.Item{
			"PartKey": pk, "SortKey": text("ORD::1"), "_t": text("order"), "_v": number(1), "total": number(3), "placed": number(placed.Unix()),
		}
		want["acme/CUST::8 | ORD::1::LINE::02"] = table.Item{"PartKey": pk, "SortKey": text("ORD::1::LINE::02"), "sku": text("bolt")}
		requireRows(t, want, a.rows(t), "creating")

		_, err = a.customers.Create(t.Context(), Customer{ID: "7", Name: "Eve"})
		require.ErrorIs(t, err, entity.ErrExists, "a row that has no type attribute exists all the same")
		_, err = a.orders.Put(t.Context(), Order{Customer: "7", No: 8, Version: 3})
		require.ErrorIs(t, err, entity.ErrStale)
		requireRows(t, want, a.rows(t), "refused writes")
		require.NoError(t, a.lines.Delete(t.Context(), Line{Customer: "8", Order: 1, No: 2}))
		delete(want, "acme/CUST::8 | ORD::1::LINE::02")
		requireRows(t, want, a.rows(t), "deleting")
	})
}

// An index whose keys are attributes of the rows is followed by whatever changes them.
func TestIndex_FollowsAttributesOfTheRows(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		a := adopt(t, e)
		want := a.rows(t)
		find := func(email string) (ids []string) {
			for c, err := range a.customers.Query(t.Context(), keys.Values{"email": email}, entity.On("by-email")) {
				require.NoError(t, err)
				assert.Equal(t, Customer{ID: c.ID, Email: email}, c, "the index holds the keys only")
				ids = append(ids, c.ID)
			}
			return ids
		}
		totals := func(opts ...entity.ReadOption) (list []int64) {
			for o, err := range a.orders.Query(t.Context(), keys.Values{"placed": placed}, append(opts, entity.On("by-placed"))...) {
				require.NoError(t, err)
				list = append(list, o.Total)
			}
			return list
		}
		assert.Equal(t, []string{"7"}, find("7@example.org"))
		assert.Equal(t, []int64{0, 0, 100, 100, 200, 200}, totals())
		assert.Equal(t, []int64{100, 100}, totals(entity.From("total", 1), entity.Until("total", 200)))

		key := "acme/CUST::7 | PROFILE"
		_, err := a.customers.Update(t.Context(), Customer{ID: "7"}, entity.Set("email", "ann@example.org"))
		require.NoError(t, err)
		want[key] = with(want[key], table.Item{"email": text("ann@example.org")})
		requireRows(t, want, a.rows(t), "nothing but the field")
		assert.Equal(t, []string{"7"}, find("ann@example.org"))
		assert.Empty(t, find("7@example.org"))
		_, err = a.customers.Update(t.Context(), Customer{ID: "7"}, entity.Set("email", ""))
		require.NoError(t, err)
		delete(want[key], "email")
		requireRows(t, want, a.rows(t), "an empty one is left out")
		assert.Empty(t, find("ann@example.org"))
		_, err = a.customers.Create(t.Context(), Customer{ID: "8", Email: "cid@example.org"})
		require.NoError(t, err)
		_, err = a.customers.Create(t.Context(), Customer{ID: "9"})
		require.NoError(t, err)
		assert.Equal(t, []string{"8"}, find("cid@example.org"))
		_, err = a.orders.AnyVersion().Update(t.Context(), Order{Customer: "7", No: 8}, entity.Add("total", 150))
		require.NoError(t, err)
		assert.Equal(t, []int64{100, 100, 150}, totals(entity.From("total", 1), entity.Until("total", 200)))
		model, err := a.Schema().Workbench(a.customers.Facet(), a.orders.Facet(), a.lines.Facet())
		require.NoError(t, err)
		assert.Contains(t, string(model), "by-placed")
	})
}

// What concatenation by hand could not have told apart is refused, before anything is sent.
func TestKeys_RefuseValuesThatWouldForgeThem(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		a := adopt(t, e)
		before := a.rows(t)
		a.faults.Script()
		for _, id := range []string{"7:x", "7::8", ":", "", strings.Repeat("x", 2049)} {
			_, err := a.customers.Create(t.Context(), Customer{ID: id, Name: "Eve"})
			require.ErrorIs(t, err, entity.ErrInvalid)
			_, err = a.customers.Get(t.Context(), Customer{ID: id})
			require.ErrorIs(t, err, entity.ErrInvalid)
		}
		var refused *keys.Error
		_, err := a.customers.Get(t.Context(), Customer{ID: "7:x"})
		require.ErrorAs(t, err, &refused)
		assert.Equal(t, "id", refused.Field)
		require.ErrorIs(t, err, keys.ErrDelimiter)
		assert.Empty(t, a.faults.Sent())
		requireRows(t, before, a.rows(t), "refused values")
	})
}

// A lock stands beside a row of the other program's, which keeps every attribute it had.
func TestLock_LeavesTheAdoptedRowAsItIs(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		a := adopt(t, e)
		want := a.rows(t)
		locks, err := lock.New(a.Table, lock.Config{})
		require.NoError(t, err)
		o, err := a.orders.Get(t.Context(), Order{Customer: "7", No: 9})
		require.NoError(t, err)
		lease, err := locks.Acquire(t.Context(), lock.Beside(a.orders.Key(o)))
		require.NoError(t, err)
		assert.Equal(t, "acme/CUST::7", lease.Key().PK, "in the same item collection")

		theirs := func() map[string]table.Item {
			rows := a.rows(t)
			maps.DeleteFunc(rows, func(key string, _ table.Item) bool { _, had := want[key]; return !had })
			return rows
		}
		requireRows(t, want, theirs(), "acquiring")
		require.NoError(t, lease.Commit(t.Context(), a.orders.UpdateOp(o, entity.Set("total", 77))))
		key := "acme/CUST::7 | ORD::9"
		want[key] = with(want[key], table.Item{"total": number(77), "_v": number(1)})
		requireRows(t, want, theirs(), "a guarded write")
		err = lease.Write(t.Context(), a.orders.UpdateOp(o, entity.Set("total", 78)))
		require.ErrorIs(t, err, lock.ErrReleased)

		var orders []Order
		var held []lock.Record
		require.NoError(t, entity.Collect(t.Context(), a.Table, lease.Key().PK,
			entity.Into(a.orders, &orders), entity.Into(locks.Records(), &held), entity.SkipUnknown()))
		assert.Len(t, orders, 3)
		assert.Len(t, held, 1, "one query reads both")
		require.NoError(t, locks.Close(t.Context()))
		requireRows(t, want, theirs(), "closing")
	})
}

// What reads an adopted table reads the same when locks, migrations and unique values have rows of their own in it, also in a
// program that knows of none of them. Only a sink that asks for what is left gets those rows.
func TestAdoptedTable_ReadsTheSameWithRowsOfTheToolkit(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		a := adopt(t, e)
		ctx := t.Context()
		for _, no := range []int{1, 2} {
			_, err := a.orders.Create(ctx, Order{Customer: "8", No: no, Placed: placed})
			require.NoError(t, err)
		}
		type account struct {
			ID    string `dynamo:"id"`
			Email string `dynamo:"mail"`
		}
		accounts, err := entity.Define(a.Table, entity.Spec[account]{
			Type: "account", PK: "ACCOUNT::{id:raw}", SK: "ACCOUNT", Unique: []entity.Unique[account]{{Name: "mail", Key: "{mail}"}},
		})
		require.NoError(t, err)
		_, err = accounts.Create(ctx, account{"1", "a@example.org"})
		require.NoError(t, err)
		locks, err := lock.New(a.Table, lock.Config{})
		require.NoError(t, err)
		m, err := migrations.New(a.Table, locks, []migrations.Migration{{ID: "1", Idempotent: true, Up: func(ctx context.Context, run *migrations.Run) error {
			_, err := run.Backfill(ctx, migrations.Backfill{Name: "nothing", Transform: func(_ context.Context, item table.Item) (table.Item, error) { return item, nil }})
			return err
		}}}, migrations.WithLogger(slog.New(slog.DiscardHandler)))
		require.NoError(t, err)
		_, err = m.Up(ctx)
		require.NoError(t, err)
		at := a.orders.Key(Order{Customer: "8", No: 1})
		lease, err := locks.Acquire(ctx, lock.Beside(at))
		require.NoError(t, err)
		own := map[string]int{}
		for _, row := range a.rows(t) {
			if typ, ok := row["_t"].(*types.AttributeValueMemberS); ok && strings.HasPrefix(typ.Value, "mortise.") {
				own[typ.Value]++
			}
		}
		for _, typ := range []string{"mortise.Lock", "mortise.LockSession", "mortise.Migration", "mortise.MigrationCheckpoint", "mortise.Unique.account.mail"} {
			require.Positive(t, own[typ], typ)
		}
		for _, when := range []string{"held", "released"} {
			for _, reader := range []*table.Table{a.Table, reopened(t, e, a)} {
				orders, err := entity.Define(reader, entity.Spec[Order]{
					Type: "order", PK: "CUST::{customer:raw}", SK: "ORD::{no:raw}", Version: "version", TTL: "expires",
					Indexes: []entity.Index[Order]{{Name: "by-placed"}},
				})
				require.NoError(t, err)
				var list []Order
				require.NoError(t, entity.Collect(ctx, reader, at.PK, entity.Into(orders, &list)), when)
				assert.Len(t, list, 2, when)
				var rest []table.Item
				require.NoError(t, entity.Collect(ctx, reader, at.PK, entity.Into(orders, &list), entity.Raw(&rest)), when)
				require.Len(t, rest, 1, when)
				assert.Equal(t, text("mortise.Lock"), rest[0]["_t"], when)
				assert.Equal(t, 2, count(t, orders.Query(ctx, keys.Values{"customer": "8"})), when)
				assert.Equal(t, 8, count(t, orders.Scan(ctx)), when)
				for _, row := range a.rows(t) { // as a stream would bring them
					if typ, ok := row["_t"].(*types.AttributeValueMemberS); ok && strings.HasPrefix(typ.Value, "mortise.") {
						require.NoError(t, entity.Sort(reader, row, entity.Into(orders, &list)), when)
					}
				}
				assert.Len(t, list, 4, when)
			}
			if when == "held" {
				require.NoError(t, lease.Release(ctx))
			}
		}
		var held []lock.Record
		var orders []Order
		require.NoError(t, entity.Collect(ctx, a.Table, at.PK, entity.Into(locks.Records(), &held), entity.Into(a.orders, &orders)))
		assert.Len(t, held, 1, "a sink of their own takes them")
		require.NoError(t, locks.Close(ctx))
		// An entity whose keys fit every row of the table, in a program that knows of nothing else.
		type anything struct {
			PK string `dynamo:"-"`
			SK string `dynamo:"-"`
		}
		all, err := entity.Define(reopened(t, e, a), entity.Spec[anything]{
			Type: "anything", PK: "{pk:key}", SK: "{sk:key}", Match: entity.Not(entity.AttrEquals("_t", "order", "audit", "account")),
		})
		require.NoError(t, err)
		n := 0
		for row, err := range all.Scan(ctx) {
			require.NoError(t, err)
			require.NotContains(t, row.SK, "LOCK")
			n++
		}
		assert.Equal(t, 2*(1+3+1), n, "the profile, the lines, and what has no type")
		assert.Zero(t, count(t, all.Query(ctx, keys.Values{"pk": at.PK})), "orders, and a lock")
	})
}

// count is how many rows there are.
func count[T any](t *testing.T, rows func(func(T, error) bool)) (n int) {
	t.Helper()
	for _, err := range rows {
		require.NoError(t, err)
		n++
	}
	return n
}

// reopened is the table as another process sees it.
func reopened(t *testing.T, e *engines.Engine, a adopted) *table.Table {
	t.Helper()
	tbl, err := table.Open(e.Client(), a.Schema())
	require.NoError(t, err)
	return tbl
}
