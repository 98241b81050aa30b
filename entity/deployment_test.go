package entity_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/entity"
	"github.com/mortise-go/mortise/internal/engines"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
)

// Permit is a row as an old instance of a program knows it, and NewPermit as a new one does.
type Permit struct {
	ID     string `dynamo:"id"`
	Holder string `dynamo:"holder,omitempty"`
	Note   string `dynamo:"note,omitempty"`
}

type NewPermit struct {
	ID      string    `dynamo:"id"`
	Holder  string    `dynamo:"holder,omitempty"`
	Note    string    `dynamo:"note,omitempty"`
	Colour  string    `dynamo:"colour,omitempty"`
	Version int64     `dynamo:"-"`
	Ends    time.Time `dynamo:"-"`
}

func permitSpec[T any]() entity.Spec[T] {
	return entity.Spec[T]{Type: "Permit", PK: "PERMIT#{id}", SK: "PERMIT"}
}

// docs/how-to/migrate.md, During a deployment, lists what writes of an old instance do to what a new one has added.
func TestDeployment_OldInstancesDoNotMaintainWhatTheyDoNotKnow(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		ctx := t.Context()
		old := define(t, f.Table, permitSpec[Permit]())
		spec := permitSpec[NewPermit]()
		spec.Version, spec.TTL = "version", "ends"
		spec.Indexes = []entity.Index[NewPermit]{{Name: "gsi1", PK: "HOLDER#{holder}", SK: "{id}"}}
		spec.Unique = []entity.Unique[NewPermit]{{Name: "holder", Key: "{holder}"}}
		permits := define(t, f.raw, spec)
		row := func(id string) table.Item { return f.row(t, old.Key(Permit{ID: id})) }
		at := f.clock.now().Add(time.Hour)
		made, err := permits.Create(ctx, NewPermit{ID: "1", Holder: "ann", Colour: "red", Ends: at})
		require.NoError(t, err)

		_, err = old.Update(ctx, Permit{ID: "1"}, entity.Set("note", "x"))
		require.NoError(t, err)
		_, err = old.Modify(ctx, Permit{ID: "1"}, func(b *Permit) error { b.Holder = "bob"; return nil })
		require.NoError(t, err)
		got, err := permits.Get(ctx, made, entity.Consistent())
		require.NoError(t, err)
		assert.Equal(t, NewPermit{ID: "1", Holder: "bob", Note: "x", Colour: "red", Version: 1, Ends: made.Ends}, got, "fields stay, and the version does not count")
		assert.Equal(t, "shop/HOLDER#ann", text(row("1"), "g1pk"), "the index key is stale")
		_, err = permits.Update(ctx, made, entity.Set("colour", "blue"))
		require.NoError(t, err, "not noticed")

		// Nobody has claimed bob, and nobody has ann any more.
		_, err = permits.Create(ctx, NewPermit{ID: "2", Holder: "ann"})
		require.NoError(t, err)
		_, err = permits.Create(ctx, NewPermit{ID: "3", Holder: "bob"})
		require.NoError(t, err)
		require.NoError(t, old.Delete(ctx, Permit{ID: "3"}))
		_, err = permits.Create(ctx, NewPermit{ID: "4", Holder: "bob"})
		require.NoError(t, err)

		got, err = permits.Get(ctx, made, entity.Consistent())
		require.NoError(t, err)
		_, err = old.Put(ctx, Permit{ID: "1", Holder: "cy"})
		require.NoError(t, err)
		for _, attr := range []string{"colour", "_v", "_ttl", "g1pk", "g1sk"} {
			assert.Nil(t, row("1")[attr], attr)
		}
		_, err = permits.Update(ctx, got, entity.Set("note", "y"))
		require.ErrorIs(t, err, entity.ErrStale, "noticed")

		made, err = permits.Create(ctx, NewPermit{ID: "5", Holder: "dee", Ends: at})
		require.NoError(t, err)
		_, err = old.Put(ctx, Permit{ID: "5", Holder: "dee"})
		require.NoError(t, err)
		assert.Nil(t, row("5")["_ttl"])
		assert.NotNil(t, f.row(t, keys.NewKey("shop/UNIQUE#Permit#holder#dee", "UNIQUE"))["_ttl"], "expires although the row does not")
		_, err = permits.AnyVersion().Update(ctx, made, entity.Set("ends", at))
		require.NoError(t, err)
		f.clock.advance(2 * time.Hour)
		_, err = permits.Get(ctx, made)
		require.ErrorIs(t, err, entity.ErrNotFound)
		_, err = old.Update(ctx, Permit{ID: "5"}, entity.Set("note", "x"))
		require.NoError(t, err, "an expired row")
	})
}

// An index that is declared in one deployment, and filled in the next one, is never stale.
func TestDeployment_AnIndexInTwoSteps(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		ctx := t.Context()
		spec := permitSpec[Permit]()
		first := define(t, f.Table, spec)
		for _, id := range []string{"1", "2", "3", "4"} {
			_, err := first.Create(ctx, Permit{ID: id, Holder: "ann"})
			require.NoError(t, err)
		}
		declared, err := table.Open(e.Client(), schema(f.Name()), table.WithClock(f.clock.now))
		require.NoError(t, err)
		spec.Indexes = []entity.Index[Permit]{{Name: "gsi1", PK: "HOLDER#{holder}", SK: "{id}"}}
		second := define(t, declared, spec)
		spec.Upgrades = []func(table.Item) (table.Item, error){func(row table.Item) (table.Item, error) { return row, nil }}
		third := define(t, f.raw, spec)

		// The third deployment updates each row. Meanwhile instances of the second one write, before and after that.
		_, err = second.Update(ctx, Permit{ID: "1"}, entity.Set("holder", "bob"))
		require.NoError(t, err)
		for _, id := range []string{"1", "2", "3", "4"} {
			_, err = third.Update(ctx, Permit{ID: id})
			require.NoError(t, err)
		}
		_, err = second.Update(ctx, Permit{ID: "2"}, entity.Set("holder", "bob"))
		require.NoError(t, err)
		_, err = second.Put(ctx, Permit{ID: "3", Holder: "bob"})
		require.NoError(t, err)
		_, err = second.Modify(ctx, Permit{ID: "4"}, func(b *Permit) error { b.Holder = ""; return nil })
		require.NoError(t, err)
		assert.Eventually(t, func() bool {
			return len(collect(t, third.Query(ctx, keys.Values{"holder": "bob"}, entity.On("gsi1")))) == 3 &&
				len(collect(t, third.Query(ctx, keys.Values{"holder": "ann"}, entity.On("gsi1")))) == 0
		}, 5*time.Second, 10*time.Millisecond)
	})
}

// An old instance that names the attribute of the schema refuses rows of a new one. Without it, the row gets attributes of both.
func TestDeployment_OldInstancesRefuseANewSchemaOnlyIfTheyNameIt(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		ctx := t.Context()
		type named struct { // holder is called owner
			ID    string `dynamo:"id"`
			Owner string `dynamo:"owner,omitempty"`
			Note  string `dynamo:"note,omitempty"`
		}
		spec := permitSpec[named]()
		spec.Upgrades = []func(table.Item) (table.Item, error){func(row table.Item) (table.Item, error) {
			row["owner"] = row["holder"]
			delete(row, "holder")
			return row, nil
		}}
		permits := define(t, f.raw, spec)
		careful := permitSpec[Permit]()
		careful.Schema = "schema"
		tbl, err := table.Open(e.Client(), schema(f.Name()), eager(5), table.WithClock(f.clock.now))
		require.NoError(t, err)
		prepared, unprepared := define(t, tbl, careful), define(t, f.Table, permitSpec[Permit]())

		made, err := permits.Create(ctx, named{ID: "1", Owner: "ann"})
		require.NoError(t, err)
		_, err = prepared.Update(ctx, Permit{ID: "1"}, entity.Set("holder", "bob"))
		require.ErrorIs(t, err, entity.ErrNewer)
		_, err = prepared.Get(ctx, Permit{ID: "1"})
		require.ErrorIs(t, err, entity.ErrNewer)
		require.NoError(t, f.Write(ctx, table.Update(prepared.Key(Permit{ID: "2"}), table.Attr("holder").Set("cy"))))
		_, err = prepared.Update(ctx, Permit{ID: "2"}, entity.Set("note", "x"))
		require.NoError(t, err, "its own rows it writes")

		_, err = unprepared.Update(ctx, Permit{ID: "1"}, entity.Set("holder", "bob"))
		require.NoError(t, err)
		row := f.row(t, permits.Key(made))
		assert.Equal(t, "bob", text(row, "holder"), "lost to new instances")
		assert.Equal(t, "ann", text(row, "owner"))
		_, err = unprepared.Put(ctx, Permit{ID: "1", Holder: "bob"})
		require.NoError(t, err)
		got, err := permits.Get(ctx, made, entity.Consistent())
		require.NoError(t, err)
		assert.Equal(t, "bob", got.Owner, "a Put is of the old schema, and converted")
	})
}

// An old instance that does not know a unique value gives its row another one. Then the first value is free, although the row is of an
// older schema, unless the old instance takes it back.
func TestDeployment_AValueThatAnOldInstanceGaveUpIsFree(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		ctx := t.Context()
		old := define(t, f.raw, permitSpec[Permit]())
		type named struct { // holder is called owner
			ID    string `dynamo:"id"`
			Owner string `dynamo:"owner,omitempty"`
		}
		spec := permitSpec[named]()
		spec.Unique = []entity.Unique[named]{{Name: "owner", Key: "{owner}"}}
		spec.Upgrades = []func(table.Item) (table.Item, error){func(row table.Item) (table.Item, error) {
			row["owner"] = row["holder"]
			delete(row, "holder")
			return row, nil
		}}
		permits := define(t, f.Table, spec)
		_, err := permits.Create(ctx, named{ID: "1", Owner: "ann"})
		require.NoError(t, err)
		_, err = old.Put(ctx, Permit{ID: "1", Holder: "ann"})
		require.NoError(t, err)
		_, err = permits.Create(ctx, named{ID: "2", Owner: "ann"})
		require.ErrorIs(t, err, entity.ErrUnique, "the older row has the value")

		_, err = old.Put(ctx, Permit{ID: "1", Holder: "bob"})
		require.NoError(t, err)
		f.faults.Before(func(op string) {
			if op == "GetItem" { // of the owner; then the old instance is faster than the transaction
				f.faults.Before(func(string) {
					f.faults.Before(nil)
					_, err := old.Put(ctx, Permit{ID: "1", Holder: "ann"})
					require.NoError(t, err)
				})
			}
		})
		_, err = permits.Create(ctx, named{ID: "2", Owner: "ann"})
		require.ErrorIs(t, err, entity.ErrUnique)

		_, err = old.Put(ctx, Permit{ID: "1", Holder: "bob"})
		require.NoError(t, err)
		_, err = permits.Create(ctx, named{ID: "2", Owner: "ann"})
		require.NoError(t, err)
		_, err = permits.Create(ctx, named{ID: "3", Owner: "ann"})
		require.ErrorIs(t, err, entity.ErrUnique)
	})
}
