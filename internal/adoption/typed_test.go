package adoption

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/entity"
	"github.com/mortise-go/mortise/internal/engines"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
)

// In many tables the keys are bare IDs, and the type attribute alone tells the rows apart. A Match of that attribute does so here.
func TestMatch_OfTheTypeAttributeTellsRowsWithTheSameKeysApart(t *testing.T) {
	type principal struct {
		ID   string `dynamo:"-"`
		Name string `dynamo:"name"`
	}
	type privilege struct {
		Of   string `dynamo:"-"`
		User string `dynamo:"-"`
		May  string `dynamo:"permissions"`
	}
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		ctx := t.Context()
		client, name := e.Client(), e.TableName(t)
		s := table.Schema{Name: name, Keys: keys.Scheme{PK: "PartKey", SK: "SortKey"}, Indexes: []table.Index{{Name: "GSI1", PK: "GSI1PK", SK: "GSI1SK"}}, NoTTL: true}
		tbl, err := table.Open(client, s)
		require.NoError(t, err)
		require.NoError(t, tbl.Ensure(ctx))
		for _, row := range []table.Item{
			{"PartKey": text("U1"), "SortKey": text("U1"), "type": text("user"), "name": text("Ann")},
			{"PartKey": text("G1"), "SortKey": text("G1"), "type": text("group"), "name": text("all")},
			{"PartKey": text("R1"), "SortKey": text("R1"), "type": text("role"), "name": text("root")}, // no entity has this type
			{"PartKey": text("G1"), "SortKey": text("U1"), "type": text("privilege"), "permissions": text("r"), "GSI1PK": text("U1"), "GSI1SK": text("G1")},
			{"PartKey": text("R1"), "SortKey": text("U1"), "type": text("privilege"), "permissions": text("w"), "GSI1PK": text("U1"), "GSI1SK": text("R1")},
		} {
			require.NoError(t, tbl.Write(ctx, table.Put(row)))
		}
		want := snapshot(t, client, name)

		of := func(typ string) entity.Spec[principal] {
			return entity.Spec[principal]{Type: typ, PK: "{id:raw}", SK: "{id:raw}", Match: entity.AttrEquals("type", typ)}
		}
		users, err := entity.Define(tbl, of("user"))
		require.NoError(t, err)
		_, err = entity.Define(tbl, of("group"))
		require.NoError(t, err)
		privileges, err := entity.Define(tbl, entity.Spec[privilege]{
			Type: "privilege", PK: "{of:raw}", SK: "{user:raw}", Match: entity.AttrEquals("type", "privilege"),
			Indexes: []entity.Index[privilege]{{Name: "GSI1", PK: "{user:raw}", SK: "{of:raw}"}},
		})
		require.NoError(t, err)

		assert.Equal(t, 1, count(t, users.Scan(ctx)))
		assert.Equal(t, 2, count(t, privileges.Scan(ctx)), "the role is nobody's, and is left out")
		assert.Equal(t, 1, count(t, privileges.Query(ctx, keys.Values{"of": "R1"})))
		assert.Equal(t, 2, count(t, privileges.Query(ctx, keys.Values{"user": "U1"}, entity.On("GSI1"))))
		_, err = privileges.Get(ctx, privilege{Of: "R1", User: "R1"})
		require.ErrorIs(t, err, entity.ErrType)
		_, err = privileges.Update(ctx, privilege{Of: "G1", User: "G1"}, entity.Set("permissions", "x"))
		require.ErrorIs(t, err, entity.ErrType)

		p := privilege{Of: "G1", User: "U1", May: "r"}
		_, err = privileges.Put(ctx, p)
		require.NoError(t, err)
		requireRows(t, want, snapshot(t, client, name), "put as it was")
		_, err = privileges.Update(ctx, p, entity.Set("permissions", "rw"))
		require.NoError(t, err)
		require.NoError(t, privileges.Delete(ctx, privilege{Of: "R1", User: "U1"}))
		_, err = privileges.Create(ctx, privilege{Of: "G1", User: "U2", May: "r"})
		require.NoError(t, err)
		want["G1 | U1"] = with(want["G1 | U1"], table.Item{"permissions": text("rw")})
		delete(want, "R1 | U1")
		want["G1 | U2"] = with(want["G1 | U1"], table.Item{"SortKey": text("U2"), "permissions": text("r"), "GSI1PK": text("U2")})
		requireRows(t, want, snapshot(t, client, name), "written")
	})
}
