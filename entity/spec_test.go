package entity_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/guregu/dynamo/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/entity"
	"github.com/mortise-go/mortise/internal/engines"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
)

// Ticket has a field whose attribute, but for a prefix, is a key of an index, of another type.
type Ticket struct {
	Tenant  string   `dynamo:"-"`
	No      int      `dynamo:"no"`
	Data    []string `dynamo:"data,omitempty"`
	Level   string   `dynamo:"level,omitempty"`
	Mail    string   `dynamo:"mail,omitempty"`
	Version int64    `dynamo:"version"`

	*TicketOrigin
}

// TicketOrigin is embedded by a pointer: its fields are kept and cannot be named.
type TicketOrigin struct {
	Source string `dynamo:"source,omitempty"`
}

// overloaded is a table in which another program has an index over an attribute called data.
func overloaded(t *testing.T, e *engines.Engine) *table.Table {
	t.Helper()
	s := schema(e.TableName(t))
	s.Indexes = []table.Index{
		{Name: "by-data", PK: "SK", SK: "data"},
		{Name: "gsi1", PK: "g1pk", SK: "g1sk"},
		{Name: "by-level", PK: "t_level", SK: "t_no", SKType: table.Number},
	}
	tbl, err := table.Open(e.Client(), s, eager(5))
	require.NoError(t, err)
	require.NoError(t, tbl.Ensure(t.Context()))
	return tbl
}

func ticketSpec() entity.Spec[Ticket] {
	return entity.Spec[Ticket]{
		Type: "Ticket", AttributePrefix: "t_", PK: "TENANT#{tenant}", SK: "TICKET#{no:uint6}", Version: "version",
		Indexes: []entity.Index[Ticket]{{Name: "gsi1", PK: "MAIL#{mail}", SK: "{no:uint6}"}, {Name: "by-level"}},
		Unique:  []entity.Unique[Ticket]{{Name: "mail", Key: "{mail}"}},
	}
}

func TestAttributePrefix_RenamesAttributes(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		ctx := t.Context()
		tbl := overloaded(t, e)
		unprefixed := ticketSpec()
		unprefixed.AttributePrefix, unprefixed.Indexes = "", unprefixed.Indexes[:1]
		_, err := entity.Define(tbl, unprefixed)
		require.ErrorIs(t, err, entity.ErrInvalid, "or there would be nothing to show")

		tickets := define(t, tbl, ticketSpec())
		a, err := tickets.Create(ctx, Ticket{
			Tenant: "acme", No: 7, Data: []string{"x"}, Level: "high", Mail: "a@b", TicketOrigin: &TicketOrigin{Source: "web"},
		})
		require.NoError(t, err)
		item, err := tbl.Get(ctx, tickets.Key(a), true)
		require.NoError(t, err)
		assert.ElementsMatch(t, []string{"PK", "SK", "_t", "_v", "g1pk", "g1sk", "t_no", "t_data", "t_level", "t_mail", "t_source"}, slices.Collect(maps.Keys(item)))

		got, err := tickets.Get(ctx, Ticket{Tenant: "acme", No: 7}, entity.Consistent())
		require.NoError(t, err)
		assert.Equal(t, a, got)
		decoded, err := tickets.Decode(item)
		require.NoError(t, err)
		assert.Equal(t, a, decoded)

		// Fields are named as ever: by their tags, or by their names in Go.
		a, err = tickets.Update(ctx, a, entity.Set("data", []string{"y", "z"}), entity.Set("Level", "low"), entity.Set("mail", "c@d"))
		require.NoError(t, err)
		a, err = tickets.Modify(ctx, a, func(o *Ticket) error { o.Data = append(o.Data, "more"); return nil })
		require.NoError(t, err)
		assert.Equal(t, []string{"y", "z", "more"}, a.Data)
		err = tickets.If(tickets.Field("level").Equal("high")).Delete(ctx, a)
		require.ErrorIs(t, err, table.ErrCondition)
		_, err = tickets.Create(ctx, Ticket{Tenant: "acme", No: 8, Mail: "c@d"})
		var taken *entity.UniqueError
		require.ErrorAs(t, err, &taken)

		assert.Equal(t, []Ticket{a}, collect(t, tickets.Query(ctx, keys.Values{"mail": "c@d"}, entity.On("gsi1"))))
		assert.Equal(t, []Ticket{a}, collect(t, tickets.Query(ctx, keys.Values{"level": "low"}, entity.On("by-level"), entity.From("no", 3))))
		assert.Equal(t, []Ticket{a}, collect(t, tickets.Scan(ctx, entity.Filter(tickets.Field("data").Contains("z")))))
		var into []Ticket
		require.NoError(t, entity.CollectQuery(ctx, tbl, table.Query{PK: "shop/TENANT#acme", SK: keys.PrefixRange("TICKET#")}, entity.Into(tickets, &into)))
		assert.Equal(t, []Ticket{a}, into)

		require.NoError(t, tbl.Write(ctx, table.Update(tickets.Key(a), table.Attr("data").Set("another program's"))))
		a, err = tickets.Update(ctx, a, entity.Remove("data"))
		require.NoError(t, err)
		item, err = tbl.Get(ctx, tickets.Key(a), true)
		require.NoError(t, err)
		assert.Equal(t, "another program's", text(item, "data"), "what is not the entity's stays")
		assert.NotContains(t, item, "t_data")

		require.NoError(t, tbl.Write(ctx, table.Update(tickets.Key(a), table.Attr("t_data").Set(1))))
		_, err = tickets.Get(ctx, a, entity.Consistent())
		var misfit *entity.DecodeError
		require.ErrorAs(t, err, &misfit)
		assert.Equal(t, "t_data", misfit.Attribute, "errors name attributes as they are in the row")
	})
}

// Own makes its rows itself.
type Own struct{ ID string }

func (o *Own) MarshalDynamoItem() (dynamo.Item, error) { return dynamo.MarshalItem(*o) }

func TestAttributePrefix_RefusesPrefixesThatCannotBe(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		_, err := entity.Define(f.Table, entity.Spec[Own]{Type: "Own", PK: "{ID}", SK: "OWN", AttributePrefix: "x"})
		require.ErrorIs(t, err, entity.ErrInvalid)
		assert.ErrorContains(t, err, "AttributePrefix: entity_test.Own makes or reads whole rows itself")
		_, err = entity.Define(f.Table, entity.Spec[Plain]{Type: "Plain", PK: "{id}", SK: "PLAIN", AttributePrefix: "\xff"})
		require.ErrorIs(t, err, entity.ErrInvalid)
		assert.ErrorContains(t, err, "AttributePrefix: not valid UTF-8")
		type pk struct {
			ID string `dynamo:"id"`
			L  string `dynamo:"K"`
		}
		_, err = entity.Define(f.Table, entity.Spec[pk]{Type: "K", PK: "K#{id}", SK: "K", AttributePrefix: "P"})
		require.ErrorIs(t, err, entity.ErrInvalid)
		assert.ErrorContains(t, err, `field L: attribute "PK" is the table's partition key`)
	})
}
