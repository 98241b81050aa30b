package entity_test

import (
	"errors"
	"fmt"
	"maps"
	"strconv"
	"testing"
	"time"

	"github.com/mortise-go/mortise/internal/attrvalue"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/guregu/dynamo/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mortise-go/mortise/entity"
	"github.com/mortise-go/mortise/internal/engines"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
)

// Cents is kept as a number by its own methods.
type Cents struct{ N int64 }

func (c Cents) MarshalDynamo() (types.AttributeValue, error) {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(c.N, 10)}, nil
}

func (c *Cents) UnmarshalDynamo(av types.AttributeValue) (err error) {
	n, ok := av.(*types.AttributeValueMemberN)
	if !ok {
		return errors.New("not a number")
	}
	c.N, err = strconv.ParseInt(n.Value, 10, 64)
	return err
}

// Code is kept as text by its own methods, and part of a key.
type Code struct{ hi, lo uint16 }

func (c Code) MarshalText() ([]byte, error) {
	if c == (Code{}) {
		return nil, nil
	}
	return fmt.Appendf(nil, "%d-%d", c.hi, c.lo), nil
}

func (c *Code) UnmarshalText(b []byte) error {
	_, err := fmt.Sscanf(string(b), "%d-%d", &c.hi, &c.lo)
	return err
}

type Colour string

type Audit struct {
	By   string `dynamo:"by"`
	Deep *int   `dynamo:"deep"`
}

type Everything struct {
	Audit
	Region string  `dynamo:"-"` // key only
	Seq    uint32  `dynamo:"-"` // key only
	No     int16   `dynamo:"-"` // key only, by its digits
	Code   Code    `dynamo:"-"` // key only, by its text
	Day    *Moment `dynamo:"-"` // key only, behind a pointer

	Name    string             `dynamo:"name"`
	Colour  Colour             `dynamo:"colour,omitempty"`
	Small   int8               `dynamo:"small"`
	Big     uint64             `dynamo:"big"`
	Ratio   float64            `dynamo:"ratio"`
	Ok      bool               `dynamo:"ok"`
	Price   Cents              `dynamo:"price"`
	Maybe   *string            `dynamo:"maybe"`
	Bytes   []byte             `dynamo:"bytes"`
	Names   []string           `dynamo:"names,set"`
	Numbers map[int64]struct{} `dynamo:"numbers,set"`
	List    []Audit            `dynamo:"list,omitempty"`
	Map     map[string]int     `dynamo:"map"`
	At      time.Time          `dynamo:"at"`
	Unix    time.Time          `dynamo:"unix,unixtime"`

	Rev     int64     `dynamo:"rev"`     // in the scheme's version attribute
	Expires time.Time `dynamo:"expires"` // in the scheme's TTL attribute
}

// Moment is a time: keys take it by its codec only as a pointer to time.Time.
type Moment = time.Time

func everythingSpec() entity.Spec[Everything] {
	return entity.Spec[Everything]{
		Type: "Everything", PK: "{region}#{code}#{no:raw}", SK: "{day:date}#{seq:uint10}", Version: "rev", TTL: "expires",
		Indexes: []entity.Index[Everything]{{Name: "gsi1", PK: "{colour}", SK: "{by}#{maybe}"}},
	}
}

func drawEverything(t *rapid.T) Everything {
	// No empty strings in sets, lists and keys: those DynamoDB or the encoder leave out.
	word := rapid.StringMatching(`[a-zäé#$\x00 ]{1,8}`)
	instant := rapid.Custom(func(t *rapid.T) time.Time {
		return time.Unix(rapid.Int64Range(0, 4e9).Draw(t, "s"), rapid.Int64Range(0, 1e9-1).Draw(t, "ns")).UTC()
	})
	second := rapid.Map(instant, func(at time.Time) time.Time { return at.Truncate(time.Second) })
	day := rapid.Map(instant, func(at time.Time) time.Time { return at.Truncate(24 * time.Hour) }).Draw(t, "day")
	audit := rapid.Custom(func(t *rapid.T) Audit {
		return Audit{By: word.Draw(t, "by"), Deep: rapid.Ptr(rapid.Int(), true).Draw(t, "deep")}
	})
	o := Everything{
		Audit: audit.Draw(t, "audit"), Region: word.Draw(t, "region"), Seq: rapid.Uint32().Draw(t, "seq"), No: rapid.Int16().Draw(t, "no"),
		Code: Code{rapid.Uint16().Draw(t, "hi"), rapid.Uint16Min(1).Draw(t, "lo")}, Day: &day,
		Name: rapid.String().Draw(t, "name"), Colour: Colour(rapid.SampledFrom([]string{"", "red"}).Draw(t, "colour")),
		Small: rapid.Int8().Draw(t, "small"), Big: rapid.Uint64().Draw(t, "big"), Ratio: float64(rapid.Float32Range(-1e6, 1e6).Draw(t, "ratio")),
		Ok: rapid.Bool().Draw(t, "ok"), Price: Cents{rapid.Int64Range(0, 1e12).Draw(t, "price")}, Maybe: rapid.Ptr(word, true).Draw(t, "maybe"),
		At: instant.Draw(t, "at"), Unix: second.Draw(t, "unix"), Rev: rapid.Int64Range(0, 1<<40).Draw(t, "rev"),
	}
	if rapid.Bool().Draw(t, "collections") {
		o.Bytes = rapid.SliceOfN(rapid.Byte(), 1, 9).Draw(t, "bytes")
		o.Names = rapid.SliceOfNDistinct(word, 1, 5, rapid.ID[string]).Draw(t, "names")
		o.Numbers = rapid.MapOfN(rapid.Int64(), rapid.Just(struct{}{}), 1, 4).Draw(t, "numbers")
		o.List = rapid.SliceOfN(audit, 1, 3).Draw(t, "list")
		o.Map = rapid.MapOfN(word, rapid.Int(), 1, 3).Draw(t, "map")
		o.Expires = second.Draw(t, "expires")
	}
	return o
}

func TestCodec_EncodingRoundTrips(t *testing.T) {
	all := define(t, offline(t, schema("app")), everythingSpec())
	rapid.Check(t, func(t *rapid.T) {
		o := drawEverything(t)
		op := all.PutOp(o)
		require.NoError(t, op.Err())
		item := op.Item()
		got, err := all.Decode(item)
		require.NoError(t, err)
		want := o
		want.Rev++
		if o.Expires.Unix() == 0 {
			want.Expires = time.Unix(1, 0).UTC() // 0 would mean never
		}
		require.Equal(t, want, got)
		require.Equal(t, all.Key(o), all.Key(got))

		// What the entity adds aside, the row is what guregu/dynamo makes of the struct.
		plain, err := dynamo.MarshalItem(o)
		require.NoError(t, err)
		for name, av := range plain {
			if name != "rev" && name != "expires" {
				require.True(t, attrvalue.Same(av, item[name]), name)
			}
		}
		for name := range item {
			if _, ok := plain[name]; !ok {
				require.Contains(t, []string{"PK", "SK", "_t", "_v", "_ttl", "g1pk", "g1sk"}, name)
			}
		}
		require.NotContains(t, item, "rev")
		require.NotContains(t, item, "expires")
		_, indexed := item["g1pk"]
		require.Equal(t, o.Colour != "" && o.Maybe != nil, indexed, "sparse")
	})
}

func TestDecode_RecognisesRows(t *testing.T) {
	tbl := offline(t, schema("app"))
	plain := define(t, tbl, plainSpec())
	row := func(pk, sk string, typ types.AttributeValue) table.Item {
		item := table.Item{"PK": &types.AttributeValueMemberS{Value: pk}, "SK": &types.AttributeValueMemberS{Value: sk}}
		if typ != nil {
			item["_t"] = typ
		}
		return item
	}
	s := func(v string) types.AttributeValue { return &types.AttributeValueMemberS{Value: v} }
	for _, c := range []struct {
		name string
		item table.Item
		want bool
	}{
		{"by type", row("x", "y", s("Plain")), true},
		{"of another type", row("shop/PLAIN#1", "PLAIN", s("Other")), false},
		{"by key", row("shop/PLAIN#1", "PLAIN", nil), true},
		{"by key, other prefix", row("PLAIN#1", "PLAIN", nil), false},
		{"by key, other sort key", row("shop/PLAIN#1", "PLAINER", nil), false},
		{"type of another kind", row("shop/PLAIN#1", "PLAIN", &types.AttributeValueMemberBOOL{Value: true}), false},
		{"nothing", table.Item{}, false},
		{"nil", nil, false},
	} {
		assert.Equal(t, c.want, plain.Owns(c.item), c.name)
		_, err := plain.Decode(c.item)
		if c.want {
			continue
		}
		var decode *entity.DecodeError
		require.ErrorAs(t, err, &decode, c.name)
		assert.ErrorIs(t, err, entity.ErrType, c.name)
	}
	_, err := plain.Decode(row("elsewhere", "y", s("Plain")))
	var decode *entity.DecodeError
	require.ErrorAs(t, err, &decode, "the id is only in the key, which is no key of this entity")
	assert.Equal(t, "PK", decode.Attribute)
}

func TestDecode_RowsThatDoNotDecode(t *testing.T) {
	const canary = "cAnArY"
	orders := define(t, offline(t, schema("app")), orderSpec())
	op := orders.PutOp(Order{Tenant: canary, ID: canary, Note: canary, Placed: time.Unix(1e9, 0)})
	require.NoError(t, op.Err())
	s := func(v string) types.AttributeValue { return &types.AttributeValueMemberS{Value: v} }
	n := func(v string) types.AttributeValue { return &types.AttributeValueMemberN{Value: v} }
	for attr, c := range map[string]struct {
		av     types.AttributeValue
		reason string // the types, but nothing of the row
	}{
		"total":   {s(canary), ": wrong type: S for int64"},
		"placed":  {s(canary), ": wrong type: want a time of RFC 3339, or seconds as a number"},
		"created": {s(canary), ": wrong type: want a time of RFC 3339, or seconds as a number"},
		"tags":    {n("7777"), ": wrong type: N for []string"},
		"lines":   {s(canary), ": wrong type: S for []string"},
		"note":    {n("7777"), ": wrong type: N for string"},
		"_v":      {s(canary), ": wrong type: want a whole number"},
		"_ttl":    {n("7777.5"), ": wrong type: want a whole number"},
	} {
		item := maps.Clone(op.Item())
		item[attr] = c.av
		o, err := orders.Decode(item)
		assert.Zero(t, o)
		var decode *entity.DecodeError
		require.ErrorAs(t, err, &decode, attr)
		assert.Equal(t, attr, decode.Attribute)
		assert.Equal(t, orders.Key(Order{Tenant: canary, ID: canary}), decode.Key)
		assert.Error(t, decode.Err)
		assert.EqualError(t, err, fmt.Sprintf(`entity: decode Order: attribute %q does not fit%s`, attr, c.reason))
	}
}

// A row whose attributes make another key than it has is read, but not written: the write would go to that other key.
func TestModify_RefusesARowThatWouldMove(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		orders := define(t, f.Table, orderSpec())
		ctx := t.Context()
		row := orders.PutOp(Order{Tenant: "acme", ID: "1"}).Item()
		row["id"] = str("2")
		require.NoError(t, f.raw.Write(ctx, table.Put(row)))
		f.faults.Script()
		_, err := orders.Modify(ctx, Order{Tenant: "acme", ID: "1"}, func(o *Order) error { o.Total++; return nil })
		var decode *entity.DecodeError
		require.ErrorAs(t, err, &decode)
		assert.Equal(t, "SK", decode.Attribute)
		require.ErrorIs(t, err, entity.ErrInvalid)
		assert.Equal(t, []string{"GetItem"}, f.faults.Sent())

		// Deleting needs no more than the key. A condition of the caller counts also if there is no row.
		other := orders.AnyVersion()
		require.NoError(t, other.Delete(ctx, Order{Tenant: "acme", ID: "1"}))
		require.ErrorIs(t, other.If(other.Field("total").Exists()).Delete(ctx, Order{Tenant: "acme", ID: "1"}), table.ErrCondition)
	})
}

// A key that no template accepts is refused by the name of the template, which tells what the key should look like.
func TestDecode_NamesTheTemplateThatAKeyDoesNotFit(t *testing.T) {
	type line struct {
		Order string `dynamo:"-"`
		No    string `dynamo:"-"`
		Place string `dynamo:"-"` // in a key of the index alone
	}
	lines := define(t, offline(t, schema("app")), entity.Spec[line]{
		Type: "Line", PK: "ORDER#{order:raw}", SK: "LINE#{no:raw}", Indexes: []entity.Index[line]{{Name: "gsi1", PK: "PLACE#{place:raw}", SK: "LINE#{no:raw}"}},
	})
	const canary = "cAnArY"
	for attr, want := range map[string]string{
		"PK":   `keys: parse "ORDER#{order:raw}": key does not match`,
		"SK":   `keys: parse "LINE#{no:raw}": key does not match`,
		"g1pk": `keys: parse "PLACE#{place:raw}": key does not match`,
	} {
		op := lines.PutOp(line{Order: "a", No: "b", Place: "c"})
		require.NoError(t, op.Err())
		item := maps.Clone(op.Item())
		require.Contains(t, item, attr)
		item[attr] = &types.AttributeValueMemberS{Value: item[attr].(*types.AttributeValueMemberS).Value + "#" + canary} // a value with the delimiter
		_, err := lines.Decode(item)
		assert.EqualError(t, err, fmt.Sprintf("entity: decode Line: attribute %q does not fit: %s", attr, want))
		assert.ErrorIs(t, err, keys.ErrNoMatch)
	}
}

// A field of the key that has an attribute is read from it, as it was written, also if another field of the same key has none.
func TestDecode_KeyFieldsComeFromTheirAttributes(t *testing.T) {
	type visit struct {
		Page string    `dynamo:"page"`
		At   time.Time `dynamo:"at"`
		Who  string    `dynamo:"-"`
		N    int       `dynamo:"n"`
	}
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		tbl := newFixture(t, e).Table
		visits := define(t, tbl, entity.Spec[visit]{Type: "Visit", PK: "PAGE#{page}", SK: "{at:time}#{who}"})
		wrote, err := visits.Create(t.Context(), visit{Page: "p", At: time.Date(2026, 2, 3, 4, 5, 6, 0, time.FixedZone("", 3600)), Who: "a"})
		require.NoError(t, err)
		read, err := visits.Get(t.Context(), wrote, entity.Consistent())
		require.NoError(t, err)
		assert.Equal(t, wrote, read)
		changed := read
		changed.N = 1
		require.NoError(t, tbl.Write(t.Context(), visits.ModifyOp(read, changed)))
	})
}

// grade has a text for keys that cannot be read back, and an attribute that can.
type grade int

func (g grade) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "grade-%d", int(g)), nil }

func (g grade) MarshalDynamo() (types.AttributeValue, error) { return num(strconv.Itoa(int(g))), nil }

func (g *grade) UnmarshalDynamo(av types.AttributeValue) error {
	n, _ := av.(*types.AttributeValueMemberN)
	if n == nil {
		return errors.New("not a number")
	}
	i, err := strconv.Atoi(n.Value)
	*g = grade(i)
	return err
}

// A key gives back the fields that it alone stores. The text of another field in it need not be readable.
func TestDecode_KeyFieldsWithAttributesNeedNotBeReadableFromTheKey(t *testing.T) {
	type exam struct {
		Pupil string `dynamo:"-"`
		Grade grade  `dynamo:"grade"`
		No    int    `dynamo:"-"`
		Room  string `dynamo:"-"`
	}
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		tbl := newFixture(t, e).Table
		exams := define(t, tbl, entity.Spec[exam]{
			Type: "Exam", PK: "PUPIL#{pupil}", SK: "{grade}#{no:uint4}",
			Indexes: []entity.Index[exam]{{Name: "gsi1", PK: "ROOM", SK: "{grade}#{room}"}},
		})
		wrote, err := exams.Create(t.Context(), exam{Pupil: "p", Grade: 3, No: 7, Room: "r"})
		require.NoError(t, err)
		read, err := exams.Get(t.Context(), wrote, entity.Consistent())
		require.NoError(t, err)
		assert.Equal(t, wrote, read)

		bare, err := tbl.Get(t.Context(), exams.Key(wrote), true)
		require.NoError(t, err)
		delete(bare, "grade") // as in an index that does not project it
		read, err = exams.Decode(bare)
		require.NoError(t, err)
		assert.Equal(t, exam{Pupil: "p", No: 7, Room: "r"}, read)
	})
}

// Other programs put the digits of a number into keys, without leading zeros: "e#7" beside the attribute 7.
func TestDecode_AUintptrIsReadFromTheKeyLikeOtherIntegers(t *testing.T) {
	type row struct {
		ID uintptr `dynamo:"-"`
	}
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		for _, pk := range []string{"ROW#{id:uint20}", "ROW#{id:raw}"} {
			rows := define(t, newFixture(t, e).Table, entity.Spec[row]{Type: "Row", PK: pk, SK: "ROW"})
			want, err := rows.Create(t.Context(), row{7})
			require.NoError(t, err)
			got, err := rows.Get(t.Context(), row{7})
			require.NoError(t, err)
			assert.Equal(t, want, got)
		}
	})
}

func TestKey_ContainsTheDigitsOfANumberAsOtherProgramsWriteThem(t *testing.T) {
	type employee struct {
		ID   int    `dynamo:"employeeid"`
		Name string `dynamo:"name"`
	}
	type revision struct {
		ID    int    `dynamo:"-"`
		No    uint8  `dynamo:"-"`
		State string `dynamo:"state"`
	}
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		ctx := t.Context()
		employees := define(t, f.Table, entity.Spec[employee]{
			Type: "employee", PK: "e#{employeeid:raw}", SK: "root", Untyped: true, Indexes: []entity.Index[employee]{{Name: "gsi1", PK: "ALL", SK: "{employeeid:raw}"}},
		})
		revisions := define(t, f.Table, entity.Spec[revision]{Type: "revision", PK: "e#{id:raw}", SK: "v{no:raw}", Untyped: true})
		theirs := func(sk string, more table.Item) {
			row := table.Item{"PK": str("shop/e#7"), "SK": str(sk)}
			maps.Copy(row, more)
			require.NoError(t, f.raw.Write(ctx, table.Put(row)))
		}
		theirs("root", table.Item{"employeeid": num("7"), "name": str("Ann"), "g1pk": str("shop/ALL"), "g1sk": str("7")})
		for _, sk := range []string{"v0", "v9", "v10"} {
			theirs(sk, table.Item{"state": str(sk)})
		}
		was := f.row(t, employees.Key(employee{ID: 7}))

		o, err := employees.Get(ctx, employee{ID: 7})
		require.NoError(t, err)
		assert.Equal(t, employee{7, "Ann"}, o)
		_, err = employees.Put(ctx, o)
		require.NoError(t, err)
		assert.Equal(t, was, f.row(t, employees.Key(o)), "written in the same form")
		assert.Equal(t, []employee{o}, collect(t, employees.Query(ctx, keys.Values{"employeeid": 7}, entity.On("gsi1"))))

		list := collect(t, revisions.Query(ctx, keys.Values{"id": 7}))
		assert.Equal(t, []revision{{7, 0, "v0"}, {7, 10, "v10"}, {7, 9, "v9"}}, list, "in the order of their text")
		assert.Equal(t, list[1:2], collect(t, revisions.Query(ctx, keys.Values{"id": 7, "no": 10})))
		for _, bound := range []entity.ReadOption{entity.From("no", 9), entity.Until("no", 10)} {
			for _, err := range revisions.Query(ctx, keys.Values{"id": 7}, bound) {
				require.ErrorIs(t, err, keys.ErrNoPrefix, "numbers do not sort like that")
			}
		}
		for _, no := range []any{"9", "x", "", 9.5} {
			for _, err := range revisions.Query(ctx, keys.Values{"id": 7, "no": no}) {
				require.ErrorIs(t, err, entity.ErrInvalid, "%v is no number of a revision", no)
			}
		}
		assert.Empty(t, collect(t, revisions.Query(ctx, keys.Values{"id": 7, "no": 256})), "above every uint8")

		for _, sk := range []string{"v007", "v+7", "v-7", "v256", "vx", "v7 "} {
			theirs(sk, nil)
			_, err := revisions.Decode(f.row(t, keys.NewKey("shop/e#7", sk)))
			var refused *entity.DecodeError
			require.ErrorAs(t, err, &refused, sk)
			assert.Equal(t, "SK", refused.Attribute)
		}
	})
}
