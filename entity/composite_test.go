package entity_test

import (
	"context"
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mortise-go/mortise/entity"
	"github.com/mortise-go/mortise/internal/attrvalue"
	"github.com/mortise-go/mortise/internal/engines"
	"github.com/mortise-go/mortise/internal/engines/faulty"
	"github.com/mortise-go/mortise/internal/testkit"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
)

// Venue keeps where it is in the sort key of an index and nowhere else.
type Venue struct {
	ID      string    `dynamo:"id"`
	Kind    string    `dynamo:"kind,omitempty"`
	Country string    `dynamo:"-"`
	Region  string    `dynamo:"-"`
	Rank    uint8     `dynamo:"-"`
	Opened  time.Time `dynamo:"-"`
	Address string    `dynamo:"-"`
	Seats   int       `dynamo:"seats"`
	Version int64     `dynamo:"-"`
}

func venueSpec() entity.Spec[Venue] {
	return entity.Spec[Venue]{
		Type: "Venue", PK: "VENUE#{id}", SK: "VENUE", Version: "Version",
		Indexes: []entity.Index[Venue]{
			{
				Name: "gsi1", PK: "KIND#{kind}", SK: "{country:raw}#{region}#{rank:uint2}{opened:time-s}{address:rest}",
				When: func(v Venue) bool { return v.Seats > 0 },
			},
			{Name: "gsi2", PK: "IN#{country}", SK: "{id}"}, // which keeps nothing: gsi1 does
		},
	}
}

func looseVenueSpec() entity.Spec[Venue] {
	spec := venueSpec()
	spec.Type, spec.PK, spec.Version = "Loose", "LOOSE#{id}", ""
	spec.Indexes[0].When = nil
	return spec
}

var opened = time.Date(2024, 3, 1, 12, 0, 0, 0, time.UTC)

func aVenue(id string) Venue {
	return Venue{ID: id, Kind: "hall", Country: "VE", Region: "T#$", Rank: 7, Opened: opened, Address: "Carrera 22 #8-35", Seats: 90}
}

const aPlace = "VE#T$0$1#072024-03-01T12:00:00ZCarrera 22 #8-35"

func TestComposite_KeysKeepFields(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		ctx := t.Context()
		for _, spec := range []entity.Spec[Venue]{venueSpec(), looseVenueSpec()} {
			venues := define(t, f.Table, spec)
			versioned := spec.Version != ""
			get := func() Venue {
				v, err := venues.Get(ctx, Venue{ID: "1"}, entity.Consistent())
				require.NoError(t, err)
				return v
			}
			v, err := venues.Create(ctx, aVenue("1"))
			require.NoError(t, err)
			assert.Equal(t, v, get())
			row := f.row(t, venues.Key(v))
			assert.Equal(t, aPlace, text(row, "g1sk"))
			assert.Equal(t, "shop/IN#VE", text(row, "g2pk"))
			for _, name := range []string{"Country", "country", "Region", "Rank", "Opened", "Address"} {
				assert.NotContains(t, row, name)
			}
			assert.Equal(t, []Venue{v}, collect(t, venues.Query(ctx, keys.Values{"kind": "hall", "country": "VE"}, entity.On("gsi1"))))
			assert.Equal(t, []Venue{v}, collect(t, venues.Query(ctx, keys.Values{"country": "VE"}, entity.On("gsi2"))))

			// One of the parts changes, the others stay as they are in the row.
			v, err = venues.Update(ctx, v, entity.Set("address", "a#b"))
			require.NoError(t, err)
			want := aVenue("1")
			want.Address, want.Version = "a#b", v.Version
			assert.Equal(t, want, v)
			assert.Equal(t, want, get())
			v, err = venues.AnyVersion().Update(ctx, Venue{ID: "1"}, entity.Set("country", "CO"), entity.Add("seats", 1))
			require.NoError(t, err)
			want.Country, want.Seats, want.Version = "CO", 91, v.Version
			assert.Equal(t, want, get())
			assert.Equal(t, "shop/IN#CO", text(f.row(t, venues.Key(v)), "g2pk"), "an index that depends on a part follows")
			v, err = venues.Modify(ctx, v, func(v *Venue) error { v.Region, v.Rank = "N", 8; return nil })
			require.NoError(t, err)
			want.Region, want.Rank, want.Version = "N", 8, v.Version
			assert.Equal(t, want, get())
			is := v
			is.Country = "PE"
			require.NoError(t, f.Write(ctx, venues.ModifyOp(v, is)))
			require.ErrorIs(t, f.Write(ctx, venues.ModifyOp(v, is)), entity.ErrStale)
			v = get()
			assert.Equal(t, "PE", v.Country)
			require.NoError(t, f.Write(ctx, venues.UpdateOp(v, entity.Set("rank", 9))))
			stale := v
			v = get()
			assert.EqualValues(t, 9, v.Rank)
			require.ErrorIs(t, f.Write(ctx, venues.UpdateOp(stale, entity.Set("country", "BR"))), entity.ErrStale, "the other parts are not as they were")

			// What the row is not in the index for is kept all the same.
			v, err = venues.Update(ctx, v, entity.Remove("kind"))
			require.NoError(t, err)
			assert.Equal(t, v, get())
			assert.NotContains(t, f.row(t, venues.Key(v)), "g1pk")
			assert.Equal(t, "PE", v.Country)
			v, err = venues.Update(ctx, v, entity.Set("kind", "hall"), entity.Set("seats", 0))
			require.NoError(t, err)
			assert.Equal(t, v, get())
			assert.Equal(t, "PE", v.Country)
			assert.Equal(t, versioned, f.row(t, venues.Key(v))["g1pk"] == nil, "a predicate leaves out the other key")

			// All of it, or nothing.
			v, err = venues.Update(ctx, v, entity.Remove("country"), entity.Remove("region"), entity.Remove("rank"), entity.Remove("opened"), entity.Set("address", ""))
			require.NoError(t, err)
			assert.Equal(t, v, get())
			row = f.row(t, venues.Key(v))
			assert.NotContains(t, row, "g1sk")
			assert.NotContains(t, row, "g2pk")
			v.Country, v.Region, v.Opened, v.Address = "CL", "M", opened, "x"
			v, err = venues.Put(ctx, v)
			require.NoError(t, err)
			assert.Equal(t, v, get())
			assert.Zero(t, v.Rank)
		}
	})
}

func TestComposite_UpdateReadsTheRowForAValueThatLacksAPart(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		spec := venueSpec()
		spec.Indexes[0].When = nil
		venues := define(t, f.Table, spec)
		ctx := t.Context()
		want, err := venues.Create(ctx, aVenue("1"))
		require.NoError(t, err)
		want.Region, want.Version = "U", 2
		got, err := venues.Update(ctx, Venue{ID: "1", Version: 1}, entity.Set("region", "U"))
		require.NoError(t, err)
		assert.Equal(t, want, got)
		_, err = venues.Update(ctx, Venue{ID: "1", Version: 1}, entity.Set("region", "W"))
		require.ErrorIs(t, err, entity.ErrStale)
		_, err = venues.Update(ctx, Venue{ID: "1", Version: 2}, entity.Set("address", ""))
		require.ErrorIs(t, err, entity.ErrInvalid, "the row does not help")
		require.ErrorIs(t, venues.UpdateOp(Venue{ID: "1", Version: 2}, entity.Set("region", "W")).Err(), entity.ErrInvalid)
	})
}

// Values that would not come back are refused before anything is sent.
func TestComposite_RefusesWhatAKeyWouldLose(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		venues := define(t, f.Table, venueSpec())
		ctx := t.Context()
		good, err := venues.Create(ctx, aVenue("1"))
		require.NoError(t, err)
		for name, c := range map[string]struct {
			change func(*Venue)
			want   string
		}{
			"a part is missing":          {func(v *Venue) { v.Address = "" }, `field "Country" is kept in attribute "g1sk" alone, which needs a value of field "Address" too`},
			"all but one are missing":    {func(v *Venue) { *v = Venue{ID: "1", Rank: 3, Version: v.Version} }, `field "Rank" is kept in attribute "g1sk" alone, which needs a value of field "Country" too`},
			"a delimiter in a raw part":  {func(v *Venue) { v.Country = "V#E" }, "delimiter not allowed"},
			"a fraction of a second":     {func(v *Venue) { v.Opened = opened.Add(1) }, "more precise than the codec"},
			"a number that is too large": {func(v *Venue) { v.Rank = 100 }, "out of range"},
			"no text":                    {func(v *Venue) { v.Address = "\xff" }, "invalid UTF-8"},
		} {
			bad := good
			c.change(&bad)
			is := bad
			fresh := bad
			fresh.ID, fresh.Version = "2", 0
			f.faults.Script()
			for how, err := range map[string]error{
				"create":   second(venues.Create(ctx, fresh)),
				"put":      second(venues.Put(ctx, bad)),
				"modifyOp": f.Write(ctx, venues.ModifyOp(good, is)),
			} {
				require.ErrorIs(t, err, entity.ErrInvalid, "%s: %s", name, how)
				assert.ErrorContains(t, err, c.want, "%s: %s", name, how)
				assert.NotContains(t, err.Error(), "Carrera")
			}
			assert.Empty(t, f.faults.Sent(), name)
			err := second(venues.Modify(ctx, good, func(v *Venue) error { *v = bad; return nil }))
			require.ErrorContains(t, err, c.want, name)
		}
		for _, change := range []entity.Change{
			entity.Remove("address"), entity.Set("country", ""), entity.Add("rank", 1), entity.Append("address", []string{"x"}), entity.Set("rank", "x"),
		} {
			f.faults.Script()
			require.ErrorIs(t, second(venues.Update(ctx, good, change)), entity.ErrInvalid)
			assert.Empty(t, f.faults.Sent())
		}
		now, err := venues.Get(ctx, good, entity.Consistent())
		require.NoError(t, err)
		assert.Equal(t, good, now)
		require.ErrorIs(t, venues.If(venues.Field("country").Exists()).Delete(ctx, good), entity.ErrInvalid, "it has no attribute of its own")
	})
}

// mood writes some values as a text that it reads as another one, or not at all, and some not at all.
type mood string

func (m mood) MarshalText() ([]byte, error) {
	if m == "mute" {
		return nil, errors.New("no text")
	}
	return []byte(m), nil
}

func (m *mood) UnmarshalText(b []byte) error {
	if *m = mood(b); *m == "cAnArY" {
		return errors.New("no such mood: " + string(b))
	}
	if *m == "glad" {
		*m = "happy"
	}
	return nil
}

func TestComposite_RefusesATextThatIsNotReadBack(t *testing.T) {
	type day struct {
		ID   string `dynamo:"-"`
		Mood mood   `dynamo:"-"`
	}
	days := define(t, offline(t, schema("app")), entity.Spec[day]{
		Type: "Day", PK: "DAY#{id}", SK: "DAY", Indexes: []entity.Index[day]{{Name: "gsi1", PK: "MOOD#{mood}", SK: "{id}"}},
	})
	for mood, want := range map[mood]string{
		"glad": `field "Mood" could not be read back from attribute "g1pk"`, "cAnArY": `attribute "g1pk" could not be read back`, "happy": "",
		"mute": `field "Mood": `,
	} {
		for _, op := range []table.Op{days.PutOp(day{"1", mood}), days.UpdateOp(day{ID: "1"}, entity.Set("mood", mood))} {
			if want == "" {
				require.NoError(t, op.Err())
				continue
			}
			require.ErrorIs(t, op.Err(), entity.ErrInvalid)
			require.ErrorContains(t, op.Err(), want)
			assert.NotContains(t, op.Err().Error(), "cAnArY")
		}
	}
	row := days.PutOp(day{"1", "happy"}).Item()
	for attr, av := range map[string]types.AttributeValue{"g1pk": num("1"), "PK": str("DAY#1#2")} {
		bad := maps.Clone(row)
		bad[attr] = av
		_, err := days.Decode(bad)
		var decode *entity.DecodeError
		require.ErrorAs(t, err, &decode, attr)
		assert.Equal(t, attr, decode.Attribute)
	}
}

// What is written comes back, whatever it is, or is refused.
func TestComposite_RoundTrips(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		venues := define(t, f.Table, looseVenueSpec())
		ctx := context.Background()
		word := rapid.StringOfN(rapid.RuneFrom([]rune("#$01aé \U0010ffff")), 0, 3, -1)
		accepted, refused := 0, 0
		rapid.Check(t, func(rt *rapid.T) {
			v := Venue{
				ID: "r", Kind: word.Draw(rt, "kind"), Country: word.Draw(rt, "country"), Region: word.Draw(rt, "region"),
				Rank: rapid.Uint8Range(0, 110).Draw(rt, "rank"), Address: word.Draw(rt, "address"), Seats: 1,
			}
			if rapid.Bool().Draw(rt, "opened") {
				v.Opened = opened.Add(time.Duration(rapid.IntRange(0, 1e9).Draw(rt, "after")) * time.Second)
			}
			if rapid.IntRange(0, 3).Draw(rt, "empty") == 0 {
				v.Country, v.Region, v.Rank, v.Opened, v.Address = "", "", 0, time.Time{}, ""
			}
			if _, err := venues.Put(ctx, v); err != nil {
				require.ErrorIs(rt, err, entity.ErrInvalid)
				refused++
				return
			}
			accepted++
			got, err := venues.Get(ctx, v, entity.Consistent())
			require.NoError(rt, err)
			require.Equal(rt, v, got)
		})
		testkit.Met(t, accepted, "accepted")
		testkit.Met(t, refused, "refused")
	})
}

func TestComposite_KeysOfOtherProgramsMatchOrAreReported(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		venues := define(t, f.Table, venueSpec())
		ctx := t.Context()
		put := func(attr string) {
			row := f.KeyItem(venues.Key(Venue{ID: "1"}))
			row["g1sk"], row["seats"] = str(attr), num("1")
			require.NoError(t, f.raw.Write(ctx, table.Put(row)))
		}
		put(aPlace)
		v, err := venues.Get(ctx, Venue{ID: "1"}, entity.Consistent())
		require.NoError(t, err)
		assert.Equal(t, "Carrera 22 #8-35", v.Address)
		for _, bad := range []string{"VE", "VE#T#", "VE##072024-03-01T12:00:00Zx", "VE#T#07tomorrowx", "VE#T#072024-03-01T12:00:00Z"} {
			put(bad)
			_, err := venues.Get(ctx, Venue{ID: "1"}, entity.Consistent())
			var decode *entity.DecodeError
			require.ErrorAs(t, err, &decode, bad)
			assert.Equal(t, "g1sk", decode.Attribute)
			require.ErrorIs(t, err, keys.ErrNoMatch)
			require.ErrorAs(t, second(venues.Modify(ctx, Venue{ID: "1"}, func(v *Venue) error { v.Seats++; return nil })), &decode)
		}

		// A row without a version is told by what is kept in keys, too.
		put(aPlace)
		changed := aPlace + "b"
		for name, write := range map[string]func() error{
			"update":   func() error { return second(venues.Update(ctx, v, entity.Set("seats", 2))) },
			"updateOp": func() error { return f.Write(ctx, venues.UpdateOp(v, entity.Set("seats", 2))) },
			"delete":   func() error { return venues.Delete(ctx, v) },
			"deleteOp": func() error { return f.Write(ctx, venues.DeleteOp(v)) },
		} {
			put(changed)
			err := write()
			require.ErrorIs(t, err, entity.ErrStale, name)
			assert.ErrorContains(t, err, `attribute "g1sk"`, name)
		}
		put(aPlace)
		v, err = venues.Update(ctx, v, entity.Set("country", "CO"))
		require.NoError(t, err)
		assert.Equal(t, "CO"+aPlace[2:], text(f.row(t, venues.Key(v)), "g1sk"))
	})
}

func TestComposite_SurvivesLostAnswers(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		venues, others := define(t, f.Table, venueSpec()), define(t, f.raw, venueSpec())
		ctx := t.Context()
		v, err := venues.Create(ctx, aVenue("1"))
		require.NoError(t, err)
		f.faults.Script(faulty.DropReply)
		v, err = venues.Update(ctx, v, entity.Set("country", "CO"))
		require.NoError(t, err)
		assert.Equal(t, "CO", v.Country)
		assert.EqualValues(t, 2, v.Version)

		// The same version, but with another's value, is not one's own.
		f.faults.Script(faulty.DropRequest)
		writes := 0
		f.faults.Before(func(string) {
			if writes++; writes == 2 {
				f.faults.Before(nil)
				_, err := others.Update(ctx, v, entity.Set("country", "BR"))
				require.NoError(t, err)
			}
		})
		_, err = venues.Update(ctx, v, entity.Set("country", "PE"))
		require.Error(t, err)
		now, err := venues.Get(ctx, v, entity.Consistent())
		require.NoError(t, err)
		assert.Equal(t, "BR", now.Country)
	})
}

// Unique values of fields that only a key of an index keeps.
func TestComposite_WithUniqueValues(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		spec := venueSpec()
		spec.Unique = []entity.Unique[Venue]{{Name: "address", Key: "{country}#{address}"}}
		venues := define(t, f.Table, spec)
		ctx := t.Context()
		v, err := venues.Create(ctx, aVenue("1"))
		require.NoError(t, err)
		require.ErrorIs(t, second(venues.Create(ctx, aVenue("2"))), entity.ErrUnique)
		v, err = venues.Update(ctx, v, entity.Set("address", "elsewhere"))
		require.NoError(t, err)
		require.NoError(t, second(venues.Create(ctx, aVenue("2"))))
		require.NoError(t, venues.Delete(ctx, v))
		assert.Len(t, f.sentinels(t), 1)
	})
}

func TestDefine_NamesIndexFieldsThatAreMissing(t *testing.T) {
	type row struct {
		ID     string `dynamo:"id"`
		Email  string // is attribute "Email"
		Hidden string `dynamo:"-"`
		Size   int    `dynamo:"size"`
		Rev    int64  `dynamo:"rev"`
	}
	for name, c := range map[string]struct {
		index table.Index
		spec  entity.Index[row]
		want  string
	}{
		"missing": {
			table.Index{PK: "mail"},
			entity.Index[row]{},
			`Indexes[0].PK: attribute "mail" is a key of index "idx", of type S: no field of entity_test.row is that attribute, and there is no template to make it of`,
		},
		"a number": {
			table.Index{PK: "id", SK: "rank", SKType: table.Number},
			entity.Index[row]{},
			`Indexes[0].SK: attribute "rank" is a key of index "idx", of type N: no field of entity_test.row is that attribute, and`,
		},
		"mis-tagged": {
			table.Index{PK: "email"},
			entity.Index[row]{},
			`attribute "email" is a key of index "idx", of type S: no field of entity_test.row is that attribute (field Email is attribute "Email": is it to be tagged dynamo:"email"?)`,
		},
		"no attribute": {
			table.Index{PK: "hidden"},
			entity.Index[row]{},
			`no field of entity_test.row is that attribute (field Hidden has no attribute: it is tagged "-")`,
		},
		"the scheme's": {
			table.Index{PK: "rev"}, entity.Index[row]{}, `(field Rev is kept in an attribute of the scheme's)`,
		},
		"a template of a number": {
			table.Index{PK: "rank", PKType: table.Number},
			entity.Index[row]{PK: "{id}"},
			`Indexes[0].PK: attribute "rank", a key of index "idx" of type N, is no field's, and keys made of templates are strings`,
		},
		"of another type": {
			table.Index{PK: "size"}, entity.Index[row]{}, `field Size: attribute "size" is a key of index idx, of type S, and the field's is N`,
		},
		"a predicate over what is kept in the only key": {
			table.Index{PK: "place"},
			entity.Index[row]{PK: "{hidden}", When: func(row) bool { return true }},
			`Indexes[0].When: no key of index "idx" is made of a template of fields that are kept elsewhere too`,
		},
		"a shard of what is kept nowhere": {
			table.Index{PK: "place"}, entity.Index[row]{PK: "ALL#{hidden:shard4}"}, `field "Hidden" has no attribute and cannot be read back from a shard`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			c.index.Name, c.spec.Name = "idx", "idx"
			tbl := offline(t, table.Schema{Name: "app", Keys: keys.Scheme{Version: "_v"}, Indexes: []table.Index{c.index}})
			_, err := entity.Define(tbl, entity.Spec[row]{Type: "Row", PK: "ROW#{id}", SK: "ROW", Version: "rev", Indexes: []entity.Index[row]{c.spec}})
			var wrong *entity.SpecError
			require.ErrorAs(t, err, &wrong)
			assert.ErrorContains(t, err, c.want)
			assert.NotContains(t, err.Error(), "template: empty")
		})
	}
}

func TestComposite_AdoptedAttributesAreReadBack(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		n := openNorthwind(t, e)
		ctx := t.Context()
		c, err := n.contacts.Get(ctx, Contact{ID: "HILAA", Name: "Carlos Hernández"})
		require.NoError(t, err)
		assert.Equal(t, Contact{
			ID: "HILAA", Name: "Carlos Hernández", Company: "HILARION-Abastos",
			Country: "Venezuela", Region: "Táchira", City: "San Cristóbal", Address: "Carrera 22 con Ave. Carlos Soublette #8-35",
		}, c)
		by := collect(t, n.contacts.Query(ctx, keys.Values{"name": "Maria Anders"}, entity.On("gsi_1")))
		require.Len(t, by, 1, "customers by contact")
		assert.Equal(t, "Obere Str. 57", by[0].Address)

		// An update of a part rewrites the attribute in that program's form, and nothing else.
		was := n.raw(t, "HILAA", "Carlos Hernández")
		_, err = n.contacts.Update(ctx, c, entity.Set("address", "Calle #9"), entity.Set("city", "Caracas"))
		require.NoError(t, err)
		was["data"] = str("Venezuela#Táchira#Caracas#Calle #9")
		assert.True(t, attrvalue.SameItem(was, n.raw(t, "HILAA", "Carlos Hernández")))
		_, err = n.contacts.Update(ctx, c, entity.Set("city", "a#b"))
		require.ErrorIs(t, err, keys.ErrDelimiter)
		_, err = n.contacts.Update(ctx, c, entity.Remove("city"))
		require.ErrorIs(t, err, entity.ErrInvalid)
		assert.True(t, attrvalue.SameItem(was, n.raw(t, "HILAA", "Carlos Hernández")))
	})
}

// A row that is older than the index whose key stores a field has the field in the key of another index. It is read from there, so that
// an update of that other key does not lose it. So is a row of an index that projects its own keys only.
func TestComposite_AnotherKeyStoresAFieldThatItsFirstKeyLacks(t *testing.T) {
	type item struct {
		Order    string `dynamo:"-"`
		Product  string `dynamo:"-"`
		Customer string `dynamo:"-"`
		At       string `dynamo:"-"` // in the sort keys of both indexes, and nowhere else
		Price    int    `dynamo:"price"`
	}
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		ctx := t.Context()
		tbl, err := table.Open(e.Client(), table.Schema{Name: e.TableName(t), NoTTL: true, Indexes: []table.Index{
			{Name: "by-product", PK: "g1pk", SK: "g1sk"}, {Name: "by-customer", PK: "g2pk", SK: "g2sk", Include: []string{}},
		}})
		require.NoError(t, err)
		require.NoError(t, tbl.Ensure(ctx))
		items, err := entity.Define(tbl, entity.Spec[item]{
			Type: "Item", PK: "ORDER#{order}", SK: "ITEM#{product}", Untyped: true,
			Indexes: []entity.Index[item]{
				{Name: "by-product", PK: "PRODUCT#{product}", SK: "AT#{at:raw}"}, {Name: "by-customer", PK: "CUSTOMER#{customer}", SK: "{at:raw}"},
			},
		})
		require.NoError(t, err)
		text := func(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
		old := table.Item{"pk": text("ORDER#1"), "sk": text("ITEM#2"), "g2pk": text("CUSTOMER#3"), "g2sk": text("2020"), "price": &types.AttributeValueMemberN{Value: "5"}}
		require.NoError(t, tbl.Write(ctx, table.Put(old)))
		want := item{Order: "1", Product: "2", Customer: "3", At: "2020", Price: 5}
		got, err := items.Get(ctx, want)
		require.NoError(t, err)
		assert.Equal(t, want, got)

		got, err = items.Update(ctx, item{Order: "1", Product: "2"}, entity.Set("customer", "4"))
		require.NoError(t, err)
		want.Customer, old["g2pk"] = "4", text("CUSTOMER#4")
		assert.Equal(t, want, got)
		row, err := tbl.Get(ctx, items.Key(want), true)
		require.NoError(t, err)
		assert.True(t, attrvalue.SameItem(old, row), "%v", row)
		_, err = items.Modify(ctx, want, func(i *item) error { i.Customer = "3"; return nil })
		require.NoError(t, err)

		// An update that sets the field writes the key that the row lacks.
		_, err = items.Update(ctx, want, entity.Set("at", "2020"))
		require.NoError(t, err)
		row, err = tbl.Get(ctx, items.Key(want), true)
		require.NoError(t, err)
		assert.Equal(t, text("AT#2020"), row["g1sk"])

		got, err = items.Create(ctx, item{Order: "6", Product: "7", Customer: "3", At: "2021", Price: 8})
		require.NoError(t, err)
		var at []string
		for i, err := range items.Query(ctx, keys.Values{"customer": "3"}, entity.On("by-customer")) {
			require.NoError(t, err)
			assert.Zero(t, i.Price, "not projected")
			at = append(at, i.At)
		}
		assert.Equal(t, []string{"2020", got.At}, at)
	})
}

// A write requires that the key from which a field was read is as it was, also if that is not the first key that stores the field.
func TestComposite_WritesRequireTheKeyThatWasRead(t *testing.T) {
	type item struct {
		ID       string `dynamo:"-"`
		Product  string `dynamo:"product"`
		Customer string `dynamo:"-"`
		At       string `dynamo:"-"` // in a key of each index
		Level    uint8  `dynamo:"-"` // likewise: its zero value can be in a key
		Price    int    `dynamo:"price"`
		Version  int64  `dynamo:"-"`
	}
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		ctx := t.Context()
		for _, version := range []string{"", "Version"} {
			tbl, err := table.Open(e.Client(), table.Schema{Name: e.TableName(t) + version, NoTTL: true, Indexes: []table.Index{
				{Name: "first", PK: "g1pk", SK: "g1sk"}, {Name: "second", PK: "g2pk", SK: "g2sk"}, {Name: "third", PK: "g3pk", SK: "g3sk"},
			}})
			require.NoError(t, err)
			require.NoError(t, tbl.Ensure(ctx))
			items, err := entity.Define(tbl, entity.Spec[item]{
				Type: "Item", PK: "ITEM#{id}", SK: "ITEM", Version: version, Indexes: []entity.Index[item]{
					{Name: "first", PK: "{product:raw}#{level:uint2}", SK: "AT#{at:raw}"},
					{Name: "second", PK: "CUSTOMER#{customer}", SK: "{at:raw}"},
					{Name: "third", PK: "LEVEL#{level:uint2}", SK: "{at:raw}"},
				},
			})
			require.NoError(t, err)
			text := func(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
			key := item{ID: "1"}
			put := func(row table.Item) {
				row["pk"], row["sk"], row["type"] = text("ITEM#1"), text("ITEM"), text("Item")
				require.NoError(t, tbl.Write(ctx, table.Put(row)))
			}
			second := func(at string) table.Item {
				return table.Item{"product": text("p"), "g2pk": text("CUSTOMER#3"), "g2sk": text(at), "g3pk": text("LEVEL#05")}
			}
			third := func(at string) table.Item {
				return table.Item{"product": text("p"), "g3pk": text("LEVEL#05"), "g3sk": text(at)}
			}
			none := func(at string) table.Item { return table.Item{"g2pk": text("CUSTOMER#" + at)} }
			zero := func(at string) table.Item { return table.Item{"g3pk": text("LEVEL#00"), "g3sk": text(at)} }
			for name, row := range map[string]func(at string) table.Item{"second": second, "third": third, "none": none, "zero": zero} {
				change := func(i *item) error { i.Price++; i.Customer += "a"; return nil }
				later := row("2021")
				if name == "none" {
					later = second("2021")
				}
				put(row("2020"))
				calls := 0
				got, err := items.Modify(ctx, key, func(i *item) error {
					if calls++; calls == 1 {
						put(later)
					}
					return change(i)
				})
				require.NoError(t, err)
				assert.Equal(t, "2021", got.At, "%s %q", name, version)
				assert.Equal(t, 2, calls)

				for how, op := range map[string]func(was item) table.Op{
					"modify": func(was item) table.Op { is := was; _ = change(&is); return items.ModifyOp(was, is) },
					"update": func(was item) table.Op { return items.UpdateOp(was, entity.Set("customer", "4")) },
					"delete": func(was item) table.Op { return items.DeleteOp(was) },
				} {
					put(row("2020"))
					was, err := items.Get(ctx, key, entity.Consistent())
					require.NoError(t, err)
					require.NoError(t, tbl.Write(ctx, op(was)), "%s of %s %q", how, name, version)
					put(later)
					if err := tbl.Write(ctx, op(was)); how != "delete" || version != "" {
						require.ErrorIs(t, err, entity.ErrStale, "%s of %s %q", how, name, version)
					}
				}
			}
		}
	})
}

// A key that lacks another part does not store the field, so a row that has lost the one that does is not as it was read.
func TestComposite_AKeyThatLacksAPartDoesNotStandIn(t *testing.T) {
	type item struct {
		ID    string `dynamo:"-"`
		At    string `dynamo:"-"`
		Group string `dynamo:"group,omitempty"`
		Owner string `dynamo:"owner,omitempty"`
		Price int    `dynamo:"price"`
	}
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		items := define(t, f.Table, entity.Spec[item]{Type: "Item", PK: "ITEM#{id}", SK: "ITEM", Indexes: []entity.Index[item]{
			{Name: "gsi1", PK: "GROUP#{group}", SK: "{at}"}, {Name: "gsi2", PK: "ALL", SK: "{at}#{owner}"},
		}})
		ctx := t.Context()
		was, err := items.Create(ctx, item{ID: "1", At: "2020"})
		require.NoError(t, err)
		is := was
		is.Price = 5
		require.NoError(t, f.Write(ctx, items.ModifyOp(was, is)))
		require.NoError(t, f.raw.Write(ctx, table.Update(items.Key(was), table.Attr("g1sk").Remove())))
		was, is.Price = is, 6
		require.ErrorIs(t, f.Write(ctx, items.ModifyOp(was, is)), entity.ErrStale)
	})
}
