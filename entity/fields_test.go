package entity_test

import (
	"errors"
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

// A caller who passes only the key and a version, or a row with other values than the
// table's, must not make an index key stale.
func TestIndex_KeysAreMadeOfWhatTheRowHas(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		spec := orderSpec()
		spec.Indexes = spec.Indexes[:1]
		orders := define(t, f.Table, spec)
		o, err := orders.Create(t.Context(), Order{Tenant: "acme", ID: "1", Status: "open", Placed: time.Unix(1e9, 0)})
		require.NoError(t, err)
		want := text(f.row(t, orders.Key(o)), "g1sk")
		for _, partial := range []Order{
			{Tenant: "acme", ID: "1", Version: o.Version},
			{Tenant: "acme", ID: "1", Version: o.Version, Placed: time.Unix(2e9, 0)},
		} {
			require.ErrorIs(t, f.Table.Write(t.Context(), orders.UpdateOp(partial, entity.Set("status", "paid"))), entity.ErrStale, "it cannot read")
		}
		paid, err := orders.Update(t.Context(), Order{Tenant: "acme", ID: "1", Version: o.Version, Placed: time.Unix(2e9, 0)}, entity.Set("status", "paid"))
		require.NoError(t, err)
		assert.Equal(t, "shop/STATUS#paid", text(f.row(t, orders.Key(o)), "g1pk"))
		assert.Equal(t, want, text(f.row(t, orders.Key(o)), "g1sk"), "of what the row has")
		_, err = orders.Update(t.Context(), Order{Tenant: "acme", ID: "1", Version: paid.Version}, entity.Set("note", "touches no index"))
		require.NoError(t, err)
		_, err = orders.Update(t.Context(), Order{Tenant: "acme", ID: "1", Version: o.Version}, entity.Set("status", "void"))
		require.ErrorIs(t, err, entity.ErrStale, "another version")
	})
}

type Stamped struct {
	ID      string    `dynamo:"id"`
	Group   string    `dynamo:"group"`
	Updated time.Time `dynamo:"updated"`
	Expires time.Time `dynamo:"expires,omitempty"`
}

func TestIndex_KeysMadeOfMaintainedFields(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		stamped := define(t, f.Table, entity.Spec[Stamped]{
			Type: "Stamped", PK: "S#{id}", SK: "S", Updated: "updated", TTL: "expires",
			Indexes: []entity.Index[Stamped]{
				{Name: "gsi1", PK: "RECENT#{group}", SK: "{updated:time}"},
				{Name: "gsi3", PK: "{expires:time-s}"},
			},
		})
		s, err := stamped.Create(t.Context(), Stamped{ID: "1", Group: "g", Expires: f.clock.now().Add(time.Hour)})
		require.NoError(t, err)
		assert.NotEmpty(t, text(f.row(t, stamped.Key(s)), "g3pk"))
		f.clock.advance(time.Second)
		s, err = stamped.Update(t.Context(), Stamped{ID: "1"}, entity.Set("group", "h"))
		require.NoError(t, err)
		row := f.row(t, stamped.Key(s))
		assert.Equal(t, f.clock.now().Format("2006-01-02T15:04:05.000000000Z"), text(row, "g1sk"))
		assertStamp := func(want string) {
			f.clock.advance(time.Second)
			s, err = stamped.Update(t.Context(), Stamped{ID: "1"}, entity.Set("expires", s.Expires.Add(time.Hour)))
			require.NoError(t, err)
			row := f.row(t, stamped.Key(s))
			assert.Equal(t, f.clock.now().Format("2006-01-02T15:04:05.000000000Z"), text(row, "g1sk"), "the time of every write")
			assert.Equal(t, "shop/"+s.Expires.Format("2006-01-02T15:04:05Z"), text(row, "g3pk"))
			assert.Equal(t, want, text(row, "g1pk"))
		}
		assertStamp("shop/RECENT#h")
	})
}

type Member struct {
	Team string `dynamo:"team"`
	User string `dynamo:"user"`
	Role string `dynamo:"role,omitempty"`
}

func TestIndex_InvertedAndLocal(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		members := define(t, f.Table, entity.Spec[Member]{
			Type: "Member", PK: "TEAM#{team}", SK: "USER#{user}",
			Indexes: []entity.Index[Member]{{Name: "inverted"}, {Name: "lsi1", SK: "ROLE#{role}"}},
		})
		ctx := t.Context()
		for _, m := range []Member{{"red", "ann", "lead"}, {"red", "bob", ""}, {"blue", "ann", ""}} {
			_, err := members.Create(ctx, m)
			require.NoError(t, err)
		}
		assert.Equal(t, []Member{{"blue", "ann", ""}, {"red", "ann", "lead"}},
			collect(t, members.Query(ctx, keys.Values{"user": "ann"}, entity.On("inverted"))), "many to many, from the other side")
		assert.Len(t, collect(t, members.Query(ctx, keys.Values{"user": "ann", "team": "red"}, entity.On("inverted"))), 1)
		lead := collect(t, members.Query(ctx, keys.Values{"team": "red"}, entity.On("lsi1"), entity.Consistent()))
		assert.Equal(t, []Member{{"red", "ann", "lead"}}, lead, "sparse by an empty field")
		bob, err := members.Update(ctx, Member{Team: "red", User: "bob"}, entity.Set("role", "lead"))
		require.NoError(t, err)
		assert.Equal(t, "ROLE#lead", text(f.row(t, members.Key(bob)), "l1sk"))
		assert.Len(t, collect(t, members.Query(ctx, keys.Values{"team": "red", "role": "lead"}, entity.On("lsi1"))), 2)
		_, err = members.Update(ctx, bob, entity.Remove("role"))
		require.NoError(t, err)
		assert.NotContains(t, f.row(t, members.Key(bob)), "l1sk")
	})
}

// A predicate may look at any field, so an update that keeps a field relies on what the
// row has in it.
func TestIndex_ThePredicateSeesWhatTheRowHas(t *testing.T) {
	type job struct {
		ID      string `dynamo:"id"`
		State   string `dynamo:"state"`
		Total   int64  `dynamo:"total"`
		Version int64  `dynamo:"version"`
	}
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		jobs := define(t, f.Table, entity.Spec[job]{
			Type: "Job", PK: "JOB#{id}", SK: "JOB", Version: "version",
			Indexes: []entity.Index[job]{{Name: "gsi1", PK: "STATE#{state}", SK: "{id}", When: func(j job) bool { return j.Total > 0 }}},
		})
		j, err := jobs.Create(t.Context(), job{ID: "1", State: "open", Total: 5})
		require.NoError(t, err)
		changed := j
		changed.Total = 0
		require.ErrorIs(t, f.Table.Write(t.Context(), jobs.UpdateOp(changed, entity.Set("state", "done"))), entity.ErrStale)
		_, err = jobs.Update(t.Context(), changed, entity.Set("state", "done"))
		require.NoError(t, err)
		assert.Equal(t, "shop/STATE#done", text(f.row(t, jobs.Key(j)), "g1pk"), "total is 5 in the row")
	})
}

// tag is a type that cannot read all that it writes.
type tag string

func (g tag) MarshalDynamo() (types.AttributeValue, error) { return str(string(g)), nil }

func (g *tag) UnmarshalDynamo(av types.AttributeValue) error {
	if *g = tag(text(table.Item{"": av}, "")); *g == "bad" {
		return errors.New("bad tag")
	}
	return nil
}

// A key is made of what will be read. Without it, a row would be in no index, and its value not unique.
func TestIndex_RefusesAValueThatIsNotReadBack(t *testing.T) {
	type row struct {
		ID  string `dynamo:"id"`
		Tag tag    `dynamo:"tag"`
	}
	base := entity.Spec[row]{Type: "Row", PK: "ROW#{id}", SK: "ROW"}
	for name, change := range map[string]func(*entity.Spec[row]){
		"key": func(s *entity.Spec[row]) { s.SK = "ROW#{tag}" },
		"index": func(s *entity.Spec[row]) {
			s.Indexes = []entity.Index[row]{{Name: "gsi1", PK: "TAG#{tag}", SK: "{id}"}}
		},
		"unique": func(s *entity.Spec[row]) { s.Unique = []entity.Unique[row]{{Name: "tag", Key: "{tag}"}} },
	} {
		spec := base
		change(&spec)
		rows := define(t, offline(t, schema("app")), spec)
		require.NoError(t, rows.CreateOp(row{"1", "good"}).Err(), name)
		err := rows.CreateOp(row{"1", "bad"}).Err()
		require.ErrorIs(t, err, entity.ErrInvalid, name)
		require.ErrorContains(t, err, "a entity_test.tag cannot be read back", name)
	}
}

// medal is an enumeration: its zero is no medal, and has no text.
type medal int

func (m medal) IsZero() bool { return m == 0 }

func (m medal) MarshalText() ([]byte, error) {
	if m == 0 {
		return nil, errors.New("no medal")
	}
	return []byte{'a' + byte(m)}, nil
}

func (m *medal) UnmarshalText(b []byte) error {
	*m = medal(b[0] - 'a')
	return nil
}

// A zero without a text is an empty field: nothing of it is stored, so that the row loses nothing. A pointer to it is not empty.
func TestIndex_AZeroWithoutATextIsEmpty(t *testing.T) {
	type row struct {
		ID    string `dynamo:"id"`
		Medal medal  `dynamo:"medal,omitempty"`
		Kept  medal  `dynamo:"-"`
		At    *medal `dynamo:"-"`
	}
	base := entity.Spec[row]{Type: "Row", PK: "ROW#{id}", SK: "ROW"}
	index := func(pk string) func(*entity.Spec[row]) {
		return func(s *entity.Spec[row]) { s.Indexes = []entity.Index[row]{{Name: "gsi1", PK: pk, SK: "{id}"}} }
	}
	none := medal(0)
	for name, change := range map[string]func(*entity.Spec[row]){
		"index": index("MEDAL#{medal}"), "home": index("MEDAL#{Kept}"),
		"unique": func(s *entity.Spec[row]) { s.Unique = []entity.Unique[row]{{Name: "medal", Key: "{medal}"}} },
	} {
		spec := base
		change(&spec)
		rows := define(t, offline(t, schema("app")), spec)
		put := rows.CreateOp(row{ID: "1"})
		require.NoError(t, put.Err(), name)
		assert.Nil(t, put.Item()["g1pk"], name)
		require.NoError(t, rows.UpdateOp(row{ID: "1", Medal: 1}, entity.Remove("medal")).Err(), name)
		require.NoError(t, rows.DeleteOp(row{ID: "1"}).Err(), name)
	}
	spec := base
	index("MEDAL#{At}")(&spec)
	rows := define(t, offline(t, schema("app")), spec)
	require.NoError(t, rows.CreateOp(row{ID: "1"}).Err())
	require.ErrorIs(t, rows.CreateOp(row{ID: "1", At: &none}).Err(), entity.ErrInvalid)
}
