package entity_test

import (
	"errors"
	"maps"
	"math"
	"reflect"
	"slices"
	"testing"
	"time"

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

// Sealed is its own ItemMarshaler and ItemUnmarshaler: it keeps its text backwards.
type Sealed struct {
	ID      string    `dynamo:"id"`
	Text    string    `dynamo:"text"`
	Small   int8      `dynamo:"small"`
	Few     *uint16   `dynamo:"few,omitempty"`
	Ratio   float32   `dynamo:"ratio"`
	Rev     int64     `dynamo:"rev"`
	Expires time.Time `dynamo:"expires"`
}

func backwards(s string) string {
	b := []byte(s)
	for i := range len(b) / 2 {
		b[i], b[len(b)-1-i] = b[len(b)-1-i], b[i]
	}
	return string(b)
}

func (s Sealed) MarshalDynamoItem() (dynamo.Item, error) {
	if s.Text == "refuse" {
		return nil, errors.New("refused")
	}
	type plain Sealed
	s.Text = backwards(s.Text)
	return dynamo.MarshalItem(plain(s))
}

func (s *Sealed) UnmarshalDynamoItem(item dynamo.Item) error {
	type plain Sealed
	if err := dynamo.UnmarshalItem(item, (*plain)(s)); err != nil {
		return err
	}
	if s.Text == "cAnArY" {
		return errors.New("read " + s.Text)
	}
	s.Text = backwards(s.Text)
	return nil
}

func sealedSpec() entity.Spec[Sealed] {
	return entity.Spec[Sealed]{Type: "Sealed", PK: "SEALED#{id}", SK: "SEALED", Version: "rev", TTL: "expires"}
}

func TestRow_TypesEncodeTheirOwn(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		sealed := define(t, f.Table, sealedSpec())
		s, err := sealed.Create(t.Context(), Sealed{ID: "1", Text: "abc", Small: 5, Expires: f.clock.now().Add(time.Hour)})
		require.NoError(t, err)
		row := f.row(t, sealed.Key(s))
		assert.Equal(t, "cba", text(row, "text"))
		assert.NotContains(t, row, "rev")
		assert.NotContains(t, row, "expires")
		got, err := sealed.Get(t.Context(), Sealed{ID: "1"}, entity.Consistent())
		require.NoError(t, err)
		assert.Equal(t, s, got)

		_, err = sealed.Put(t.Context(), Sealed{ID: "2", Text: "refuse"})
		var encode *table.EncodeError
		require.ErrorAs(t, err, &encode)

		misfits := table.Item{
			"small": &types.AttributeValueMemberN{Value: "300"}, "few": &types.AttributeValueMemberN{Value: "70000"},
			"ratio": &types.AttributeValueMemberN{Value: "1e39"}, "text": &types.AttributeValueMemberBOOL{Value: true},
		}
		var decode *entity.DecodeError
		for attr, av := range misfits {
			bad := maps.Clone(row)
			bad[attr] = av
			_, err = sealed.Decode(bad)
			require.ErrorAs(t, err, &decode, attr)
			assert.Equal(t, attr, decode.Attribute)
		}
		row["text"] = &types.AttributeValueMemberS{Value: "cAnArY"}
		_, err = sealed.Decode(row)
		require.ErrorAs(t, err, &decode)
		assert.Empty(t, decode.Attribute, "it is the type's own error")
		assert.Equal(t, "entity: decode Sealed: row does not fit", err.Error())
	})

	// The scheme may name the fields' own attributes.
	sealed := define(t, offline(t, table.Schema{Name: "app", Keys: keys.Scheme{TTL: "expires", Version: "rev"}}), sealedSpec())
	s := Sealed{ID: "1", Text: "abc", Expires: time.Unix(1e9, 0).UTC()}
	got, err := sealed.Decode(sealed.PutOp(s).Item())
	require.NoError(t, err)
	s.Rev = 1
	assert.Equal(t, s, got)
}

func TestEncodeError_NamesTheAttribute(t *testing.T) {
	type Odd struct {
		ID    string         `dynamo:"id"`
		Extra map[string]any `dynamo:"extra"`
		Ratio float64        `dynamo:"ratio"`
	}
	odd := define(t, offline(t, schema("app")), entity.Spec[Odd]{Type: "Odd", PK: "ODD#{id}", SK: "ODD"})
	ring := map[string]any{}
	ring["cAnArY"] = ring
	bad := map[string]Odd{
		"extra": {ID: "cAnArY", Extra: map[string]any{"cAnArY": make(chan int)}},
		"ratio": {ID: "cAnArY", Ratio: math.Inf(1)},
	}
	for attr, o := range bad {
		err := odd.PutOp(o).Err()
		var encode *table.EncodeError
		require.ErrorAs(t, err, &encode)
		assert.Equal(t, `attribute "`+attr+`"`, encode.What)
		assert.ErrorIs(t, err, entity.ErrInvalid)
		assert.NotContains(t, err.Error(), "cAnArY")
	}
	assert.ErrorIs(t, odd.PutOp(Odd{ID: "1", Extra: ring}).Err(), entity.ErrInvalid, "a map inside of itself")
}

func TestRow_NumbersAreNotCutOffInside(t *testing.T) {
	type Narrow struct {
		ID string           `dynamo:"id"`
		L  []int8           `dynamo:"l"`
		M  map[string]uint8 `dynamo:"m"`
		P  *int16           `dynamo:"p"`
		S  []uint32         `dynamo:"s,set"`
	}
	narrow := define(t, offline(t, schema("app")), entity.Spec[Narrow]{Type: "Narrow", PK: "NARROW#{id}", SK: "NARROW"})
	big := &types.AttributeValueMemberN{Value: "9999999999"}
	misfits := table.Item{
		"l": &types.AttributeValueMemberL{Value: []types.AttributeValue{big}}, "m": &types.AttributeValueMemberM{Value: table.Item{"x": big}},
		"p": big, "s": &types.AttributeValueMemberNS{Value: []string{"9999999999"}},
	}
	for attr, av := range misfits {
		item := narrow.PutOp(Narrow{ID: "1"}).Item()
		item[attr] = av
		_, err := narrow.Decode(item)
		var decode *entity.DecodeError
		require.ErrorAs(t, err, &decode, attr)
		assert.Equal(t, attr, decode.Attribute)
		assert.ErrorIs(t, err, entity.ErrInvalid)
	}
}

func TestRow_IgnoresLeftoversOfFieldsThatTheSchemeKeeps(t *testing.T) {
	all := define(t, offline(t, schema("app")), everythingSpec())
	day := time.Unix(0, 0).UTC()
	o := Everything{Region: "r", Code: Code{1, 2}, Day: &day, Rev: 4}
	item := all.PutOp(o).Item()
	item["rev"] = &types.AttributeValueMemberS{Value: "another program's"}
	item["expires"] = &types.AttributeValueMemberBOOL{Value: true}
	got, err := all.Decode(item)
	require.NoError(t, err)
	assert.Equal(t, int64(5), got.Rev)
	assert.Zero(t, got.Expires)
}

// hostileRow puts anything at the names that an entity knows.
func hostileRow(t *rapid.T, known table.Item) table.Item {
	n := &types.AttributeValueMemberN{Value: rapid.SampledFrom([]string{"1", "1e400", "-1", "", "x", "99999999999999999999", "0.5"}).Draw(t, "n")}
	deep := types.AttributeValue(&types.AttributeValueMemberL{})
	for range rapid.IntRange(0, 60).Draw(t, "depth") {
		deep = &types.AttributeValueMemberL{Value: []types.AttributeValue{deep}}
	}
	values := []types.AttributeValue{
		nil, n, deep, (*types.AttributeValueMemberS)(nil), (*types.AttributeValueMemberN)(nil), (*types.AttributeValueMemberM)(nil),
		&types.AttributeValueMemberS{Value: rapid.String().Draw(t, "s")}, &types.AttributeValueMemberNULL{Value: true}, &types.AttributeValueMemberBOOL{},
		&types.AttributeValueMemberB{Value: []byte{1}}, &types.AttributeValueMemberSS{Value: []string{"", ""}}, &types.AttributeValueMemberNS{Value: []string{"x", n.Value}},
		&types.AttributeValueMemberBS{Value: [][]byte{nil, {1}}}, &types.AttributeValueMemberM{Value: table.Item{"by": n, "deep": deep, "": nil}},
		&types.AttributeValueMemberL{Value: []types.AttributeValue{nil, n, &types.AttributeValueMemberM{Value: table.Item{"by": n}}}}, &types.UnknownUnionMember{},
	}
	item := maps.Clone(known)
	for _, name := range slices.Sorted(maps.Keys(known)) {
		if rapid.IntRange(0, 4).Draw(t, "hostile") == 0 {
			item[name] = rapid.SampledFrom(values).Draw(t, "value")
		}
	}
	return item
}

// decodesOrTells holds that a row decodes or is a *DecodeError, without a panic.
func decodesOrTells[T any](t *rapid.T, e *entity.Entity[T], known table.Item) {
	item := hostileRow(t, known)
	o, err := e.Decode(item)
	if err == nil {
		return
	}
	var decode *entity.DecodeError
	require.ErrorAs(t, err, &decode)
	require.Equal(t, e.Type(), decode.Type)
	require.True(t, reflect.ValueOf(o).IsZero(), "half a value")
}

// hostileRows checks rows of two entities that have all kinds of fields.
func hostileRows(tb testing.TB) func(*rapid.T) {
	tb.Helper()
	tbl := offline(tb, schema("app"))
	all, err := entity.Define(tbl, everythingSpec())
	require.NoError(tb, err)
	orders, err := entity.Define(tbl, orderSpec())
	require.NoError(tb, err)
	day := time.Unix(0, 0).UTC()
	everything := all.PutOp(Everything{
		Region: "r", Code: Code{1, 2}, Day: &day, Bytes: []byte{1}, Names: []string{"a"}, Numbers: map[int64]struct{}{1: {}}, List: []Audit{{By: "b"}},
		Map: map[string]int{"a": 1}, Expires: day.Add(time.Hour), Colour: "red",
	}).Item()
	order := orders.PutOp(Order{Tenant: "t", ID: "1", Tags: []string{"a"}, Lines: []string{"l"}, Expires: day.Add(time.Hour), Placed: day.Add(time.Hour)}).Item()
	for _, item := range []table.Item{everything, order} {
		require.Greater(tb, len(item), 10)
	}
	return func(t *rapid.T) {
		decodesOrTells(t, all, everything)
		decodesOrTells(t, orders, order)
	}
}

func TestRow_HostileRowsAreDecodeErrors(t *testing.T) { rapid.Check(t, hostileRows(t)) }

func FuzzDecode(f *testing.F) { f.Fuzz(rapid.MakeFuzz(hostileRows(f))) }
