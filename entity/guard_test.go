package entity_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/entity"
	"github.com/mortise-go/mortise/internal/engines"
	"github.com/mortise-go/mortise/table"
)

func TestGuard_ANumberBeyondItsFieldIsNotCutOff(t *testing.T) {
	type small struct {
		ID string `dynamo:"id"`
		U  uint8  `dynamo:"u"`
		I  int16  `dynamo:"i"`
	}
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		smalls := define(t, f.Table, entity.Spec[small]{Type: "Small", PK: "SMALL#{id}", SK: "SMALL"})
		o, err := smalls.Create(t.Context(), small{ID: "1", U: 255, I: -32768})
		require.NoError(t, err)
		_, err = smalls.Get(t.Context(), o)
		require.NoError(t, err)
		require.NoError(t, f.Table.Write(t.Context(), table.Update(smalls.Key(o), table.Attr("u").Add(1))))
		_, err = smalls.Get(t.Context(), o)
		var decode *entity.DecodeError
		require.ErrorAs(t, err, &decode)
		assert.Equal(t, "u", decode.Attribute)
	})
}

func TestReadOnly_RefusesToWrite(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		spec := orderSpec()
		writable := define(t, f.Table, spec)
		spec.ReadOnly = true
		orders := define(t, f.Table, spec)
		o, err := writable.Create(t.Context(), Order{Tenant: "acme", ID: "1", Status: "open"})
		require.NoError(t, err)
		for name, op := range map[string]table.Op{
			"create": orders.CreateOp(o), "put": orders.PutOp(o), "update": orders.UpdateOp(o, entity.Set("note", "x")), "delete": orders.DeleteOp(o),
		} {
			require.ErrorIs(t, f.Table.Write(t.Context(), op), entity.ErrInvalid, name)
		}
		got, err := orders.Get(t.Context(), o, entity.Consistent())
		require.NoError(t, err)
		assert.Equal(t, o.Version, got.Version)
	})
}

func TestGuard_RefusesAnOperationOfAnotherTable(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		other, err := table.Open(e.Client(), table.Schema{Name: "another-table", Indexes: f.Table.Schema().Indexes, Keys: f.Table.Scheme()})
		require.NoError(t, err)
		orders := define(t, other, orderSpec())
		op := orders.CreateOp(Order{Tenant: "acme", ID: "1", Status: "open"})
		require.ErrorIs(t, f.Table.Write(t.Context(), op), table.ErrInvalid)
		require.ErrorIs(t, f.Table.Write(t.Context(), table.Put(f.Table.KeyItem(orders.Key(Order{Tenant: "acme", ID: "2"}))).With(op)), table.ErrInvalid)
	})
}

func TestGuard_RefusesTextThatIsNotUTF8(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		orders := define(t, f.Table, orderSpec())
		_, err := orders.Create(t.Context(), Order{Tenant: "acme", ID: "1", Status: "open", Note: "a\xffb"})
		require.ErrorIs(t, err, entity.ErrInvalid)
		o, err := orders.Create(t.Context(), Order{Tenant: "acme", ID: "1", Status: "open"})
		require.NoError(t, err)
		_, err = orders.Update(t.Context(), o, entity.Set("note", "a\xffb"))
		require.ErrorIs(t, err, entity.ErrInvalid)
		assert.NotContains(t, err.Error(), "a\xffb")
	})
}
