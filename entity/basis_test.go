package entity_test

import (
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/entity"
	"github.com/mortise-go/mortise/internal/engines"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
)

type Bundle struct {
	ID    string
	Bytes []byte               `dynamo:"bytes"`
	Any   map[string]any       `dynamo:"any"`
	Value types.AttributeValue `dynamo:"value"`
}

func TestModify_SeesWhatIsChangedInPlace(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		bundles := define(t, f.Table, entity.Spec[Bundle]{Type: "Bundle", PK: "BUNDLE#{id}", SK: "P"})
		ctx := t.Context()
		_, err := bundles.Create(ctx, Bundle{
			ID: "1", Bytes: []byte("abc"), Any: map[string]any{"b": []byte("xyz")},
			Value: &types.AttributeValueMemberM{Value: table.Item{"a": &types.AttributeValueMemberS{Value: "x"}}},
		})
		require.NoError(t, err)
		_, err = bundles.Modify(ctx, Bundle{ID: "1"}, func(p *Bundle) error {
			p.Bytes[0] = 'X'
			p.Any["b"].([]byte)[0] = 'X'
			p.Value.(*types.AttributeValueMemberM).Value["a"] = &types.AttributeValueMemberS{Value: "y"}
			return nil
		})
		require.NoError(t, err)
		got, err := bundles.Get(ctx, Bundle{ID: "1"}, entity.Consistent())
		require.NoError(t, err)
		assert.Equal(t, "Xbc", string(got.Bytes))
		assert.Equal(t, "Xyz", string(got.Any["b"].([]byte)))
		assert.Equal(t, "y", text(got.Value.(*types.AttributeValueMemberM).Value, "a"))

		rows, err := bundles.BatchGet(ctx, []Bundle{{ID: "1"}, {ID: "1"}}, entity.Consistent())
		require.NoError(t, err)
		rows[0].Bytes[0] = '!'
		assert.Equal(t, "Xbc", string(rows[1].Bytes), "a copy of its own")
	})
}

type Tenancy struct {
	Tenant *string `dynamo:"tenant"`
	Count  int     `dynamo:"count"`
}

func TestUpsert_DoesNotLetItsFunctionMoveTheRow(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		tenancies := define(t, f.Table, entity.Spec[Tenancy]{Type: "Tenancy", PK: "TENANCY#{tenant}", SK: "T"})
		name := "a"
		_, err := tenancies.Upsert(t.Context(), Tenancy{Tenant: &name}, func(o *Tenancy) error { *o.Tenant = "b"; return nil })
		require.ErrorIs(t, err, entity.ErrInvalid)
		assert.Nil(t, f.row(t, tenancies.Key(Tenancy{Tenant: &name})))
	})
}

func TestModify_DoesNotWriteBackARowWithAnotherKeyThanItsOwn(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		spec := entity.Spec[Tenancy]{
			Type: "Tenancy", PK: "TENANCY#{tenant}", SK: "T",
			Unique: []entity.Unique[Tenancy]{{Name: "count", Key: "{count:uint4}"}},
		}
		tenancies := define(t, f.Table, spec)
		ctx := t.Context()
		a, b := "a", "b"
		for i, name := range []*string{&a, &b} {
			_, err := tenancies.Create(ctx, Tenancy{Tenant: name, Count: i})
			require.NoError(t, err)
		}
		// By a program that keeps keys and attributes apart.
		require.NoError(t, f.raw.Write(ctx, table.Update(tenancies.Key(Tenancy{Tenant: &a}), table.Attr("tenant").Set("b"))))
		for name, write := range map[string]func() error{
			"Modify": func() error {
				_, err := tenancies.Modify(ctx, Tenancy{Tenant: &a}, func(o *Tenancy) error { o.Count = 7; return nil })
				return err
			},
			"Update": func() error {
				_, err := tenancies.Update(ctx, Tenancy{Tenant: &a}, entity.Set("count", 7))
				return err
			},
			"Put":    func() error { _, err := tenancies.Put(ctx, Tenancy{Tenant: &a, Count: 7}); return err },
			"Delete": func() error { return tenancies.Delete(ctx, Tenancy{Tenant: &a}) },
		} {
			err := write()
			var decode *entity.DecodeError
			require.ErrorAs(t, err, &decode, name)
			assert.ErrorIs(t, err, entity.ErrInvalid, name)
			assert.Equal(t, "PK", decode.Attribute, name)
			assert.Equal(t, tenancies.Key(Tenancy{Tenant: &a}), decode.Key, name)
		}
		got, err := tenancies.Get(ctx, Tenancy{Tenant: &b}, entity.Consistent())
		require.NoError(t, err)
		assert.Equal(t, 1, got.Count)
	})
}

type Stay struct {
	Guest string
	From  time.Time `dynamo:"from,unixtime"`
	Until time.Time `dynamo:"until,unixtime"`
	Beds  int       `dynamo:"beds"`
}

func TestKey_HoldsTimesAsTheirAttributesKeepThem(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		stays := define(t, f.Table, entity.Spec[Stay]{
			Type: "Stay", PK: "STAY#{guest}", SK: "FROM#{from:time}",
			Indexes: []entity.Index[Stay]{{Name: "gsi1", PK: "STAYS", SK: "{until:time}"}},
		})
		ctx := t.Context()
		from := time.Unix(1e9, 5e8)
		o, err := stays.Create(ctx, Stay{Guest: "g", From: from, Until: from})
		require.NoError(t, err)
		_, err = stays.Update(ctx, o, entity.Set("until", from.Add(time.Hour)))
		require.NoError(t, err)
		row := f.row(t, stays.Key(o))
		assert.Equal(t, "FROM#2001-09-09T01:46:40.000000000Z", text(row, "SK"))
		assert.Equal(t, "2001-09-09T02:46:40.000000000Z", text(row, "g1sk"))
		n := 0
		for got, err := range stays.Query(ctx, keys.Values{"guest": "g", "from": from}) {
			require.NoError(t, err)
			assert.Equal(t, stays.Key(o), stays.Key(got), "what was read finds the row again")
			_, err = stays.Update(ctx, got, entity.Set("beds", 2))
			require.NoError(t, err)
			n++
		}
		assert.Equal(t, 1, n)
	})
}

// Address is text that is stored in lower case.
type Address string

func (a Address) MarshalDynamo() (types.AttributeValue, error) {
	return &types.AttributeValueMemberS{Value: strings.ToLower(string(a))}, nil
}

// Points is a number that is omitted if it is 0.
type Points int

func (p Points) IsZero() bool { return p == 0 }

type Subscriber struct {
	List   string  `dynamo:"list"`
	Email  Address `dynamo:"email"`
	Backup Address `dynamo:"backup"`
	Points *Points `dynamo:"points,omitempty"`
}

// A type's own encoding can store another value than a key of the raw value would have. Then a row had two keys, and two rows the same
// unique value.
func TestKey_HoldsValuesAsTheirAttributesKeepThem(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		subscribers := define(t, f.Table, entity.Spec[Subscriber]{
			Type: "Subscriber", PK: "LIST#{list}", SK: "{email}",
			Indexes: []entity.Index[Subscriber]{{Name: "gsi1", PK: "BACKUP#{backup}", SK: "{email}"}, {Name: "gsi2", PK: "POINTS", SK: "{points:uint6}"}},
			Unique:  []entity.Unique[Subscriber]{{Name: "backup", Key: "{backup}"}},
		})
		ctx := t.Context()
		ada, err := subscribers.Create(ctx, Subscriber{List: "l", Email: "Ada@X", Backup: "Ada@Y", Points: new(Points)})
		require.NoError(t, err)
		_, err = subscribers.Create(ctx, Subscriber{List: "l", Email: "ada@x"})
		require.ErrorIs(t, err, entity.ErrExists)
		_, err = subscribers.Create(ctx, Subscriber{List: "l", Email: "bob@x", Backup: "ada@y"})
		require.ErrorIs(t, err, entity.ErrUnique)

		check := func(backup string) {
			t.Helper()
			row := f.row(t, subscribers.Key(ada))
			require.Equal(t, backup, text(row, "backup"))
			require.Equal(t, "shop/BACKUP#"+backup, text(row, "g1pk"))
			require.Equal(t, "ada@x", text(row, "g1sk"))
			require.Nil(t, row["points"])
			require.Empty(t, text(row, "g2sk"), "no points are read back")
			for _, value := range []string{backup, strings.ToUpper(backup)} {
				found := collect(t, subscribers.Query(ctx, keys.Values{"backup": value}, entity.On("gsi1"), entity.From("email", "ADA@X")))
				require.Len(t, found, 1)
				require.Equal(t, subscribers.Key(ada), subscribers.Key(found[0]))
			}
		}
		check("ada@y")
		_, err = subscribers.Update(ctx, ada, entity.Set("backup", "ADA@Z"))
		require.NoError(t, err)
		check("ada@z")
		_, err = subscribers.Modify(ctx, ada, func(s *Subscriber) error { s.Backup = "Ada@W"; return nil })
		require.NoError(t, err)
		check("ada@w")
		require.NoError(t, subscribers.Delete(ctx, ada))
		for item, err := range f.Scan(ctx, table.Scan{}) {
			require.NoError(t, err)
			t.Errorf("%s is left", text(item, "PK"))
		}
	})
}
