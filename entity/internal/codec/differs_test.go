package codec_test

import (
	"encoding"
	"fmt"
	"math"
	"math/big"
	"net/url"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/guregu/dynamo/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mortise-go/mortise/entity/internal/codec"
)

func compile[T any](t *testing.T) *codec.Struct {
	t.Helper()
	s, err := codec.Compile(reflect.TypeFor[T]())
	require.NoError(t, err)
	return s
}

func roundTrip[T any](t *testing.T, o T) codec.Item {
	t.Helper()
	s := compile[T](t)
	item, err := s.Encode(reflect.ValueOf(&o).Elem(), 0)
	require.NoError(t, err)
	var got T
	require.NoError(t, s.Decode(item, reflect.ValueOf(&got).Elem()))
	require.Equal(t, o, got)
	return item
}

type Deep1 struct {
	A1 string
	Deep2
	Z1 string
}
type Deep2 struct {
	A2 string
	Deep3
	Z2 string
}
type Deep3 struct {
	A3 string
	Deep4
	Z3 string
}
type Deep4 struct{ A4, B4, C4, Z4 string }

// tag has both methods on the pointer, and the one that writes changes what it writes.
type tag string

func (g *tag) MarshalText() ([]byte, error) {
	*g = "<" + *g + ">"
	return []byte(*g), nil
}

func (g *tag) UnmarshalText(b []byte) error {
	*g = tag(strings.Trim(string(b), "<>"))
	return nil
}

// The differences in the package comment to guregu/dynamo.
func TestStruct_LosesNothingWhereGuregusLoses(t *testing.T) {
	s := func(v string) types.AttributeValue { return &types.AttributeValueMemberS{Value: v} }
	t.Run("embedded four deep", func(t *testing.T) {
		type deep struct{ Deep1 }
		item := roundTrip(t, deep{Deep1{"1", Deep2{"2", Deep3{"3", Deep4{"4", "5", "6", "7"}, "8"}, "9"}, "0"}})
		assert.Len(t, item, 10)
	})
	t.Run("a field of an embedded struct's name", func(t *testing.T) {
		type after struct {
			Left
			X string `dynamo:"Left"`
		}
		assert.Equal(t, codec.Item{"name": s("n"), "L": &types.AttributeValueMemberN{Value: "1"}, "Left": s("x")}, roundTrip(t, after{Left{"n", 1}, "x"}))
		type before struct {
			X string `dynamo:"Left"`
			Left
		}
		roundTrip(t, before{"x", Left{"n", 1}})
	})
	t.Run("a field of an embedded struct's type", func(t *testing.T) {
		type twice struct {
			Left
			Before Left
		}
		assert.NotContains(t, roundTrip(t, twice{Left{"n", 1}, Left{"m", 2}}), "Left")
	})
	t.Run("pointers to pointers", func(t *testing.T) {
		type pointers struct{ P **int }
		n := 7
		p := &n
		roundTrip(t, pointers{&p})
		roundTrip(t, pointers{})
	})
	t.Run("sets of arrays", func(t *testing.T) {
		type hashes struct {
			Set map[[2]byte]bool `dynamo:",set"`
		}
		item := roundTrip(t, hashes{map[[2]byte]bool{{3, 4}: true, {1, 2}: true}})
		assert.Equal(t, &types.AttributeValueMemberBS{Value: [][]byte{{1, 2}, {3, 4}}}, item["Set"])
	})
	t.Run("short binaries", func(t *testing.T) {
		type hash struct{ H [4]letter }
		var got hash
		require.NoError(t, compile[hash](t).Decode(codec.Item{"H": &types.AttributeValueMemberB{Value: []byte{1, 2}}}, reflect.ValueOf(&got).Elem()))
		assert.Equal(t, hash{[4]letter{1, 2}}, got)
		roundTrip(t, hash{[4]letter{1, 2, 3}})
	})
	t.Run("nil interfaces", func(t *testing.T) {
		type bare struct {
			AV  types.AttributeValue
			S   *types.AttributeValueMemberS
			Any any `dynamo:",null"`
		}
		assert.Equal(t, codec.Item{"Any": &types.AttributeValueMemberNULL{Value: true}}, roundTrip(t, bare{}))
	})
	t.Run("numbers that are none", func(t *testing.T) {
		type number struct {
			F any `dynamo:"f"`
		}
		for _, f := range []any{math.NaN(), math.Inf(1), float32(math.Inf(-1)), []float64{math.NaN()}} {
			_, err := compile[number](t).Encode(reflect.ValueOf(&number{f}).Elem(), 0)
			require.ErrorIs(t, err, codec.ErrRange)
			require.EqualError(t, err, `attribute "f"`)
		}
	})
	t.Run("numbers cut off inside", func(t *testing.T) {
		type narrow struct {
			L []int8
			P *float32
			M map[string]uint16
		}
		huge := &types.AttributeValueMemberN{Value: "1e300"}
		big := &types.AttributeValueMemberN{Value: "65536"}
		row := codec.Item{
			"L": &types.AttributeValueMemberL{Value: []types.AttributeValue{big}}, "P": huge,
			"M": &types.AttributeValueMemberM{Value: codec.Item{"x": big}},
		}
		for name, av := range row {
			var got narrow
			err := compile[narrow](t).Decode(codec.Item{name: av}, reflect.ValueOf(&got).Elem())
			require.ErrorIs(t, err, codec.ErrRange, name)
		}
	})
	t.Run("values with methods on their pointers", func(t *testing.T) {
		type row struct {
			I  big.Int            `dynamo:",omitempty"`
			R  big.Rat            `dynamo:"r"`
			L  []big.Int          `dynamo:"l"`
			M  map[string]sdk     `dynamo:"m"`
			N  tag                `dynamo:"n"`
			ID sdk                `dynamo:"id,omitempty"`
			By map[tag]big.Int    `dynamo:"by"`
			S  []tag              `dynamo:"s,set"`
			MS map[tag]struct{}   `dynamo:"ms,set"`
			P  map[string]*sdk    `dynamo:"p"`
			A  [1]big.Int         `dynamo:"a,omitempty"`
			In struct{ X, Y sdk } `dynamo:"in"`
		}
		o := row{
			I: *big.NewInt(7), R: *big.NewRat(1, 3), L: []big.Int{*big.NewInt(1), *big.NewInt(-1)}, M: map[string]sdk{"a": {"x"}}, N: "n", ID: sdk{"y"},
			By: map[tag]big.Int{"b": *big.NewInt(5)}, S: []tag{"c"}, MS: map[tag]struct{}{"d": {}}, P: map[string]*sdk{"p": {"z"}}, A: [1]big.Int{*big.NewInt(3)},
		}
		item := roundTrip(t, o)
		assert.Equal(t, s("7"), item["I"])
		assert.Equal(t, s("<n>"), item["n"])
		assert.Equal(t, s("<y>"), item["id"])
		assert.Equal(t, tag("n"), o.N, "MarshalText changed a value that it was not given")
	})
	t.Run("nil pointers with methods", func(t *testing.T) {
		type row struct {
			I   *big.Int `dynamo:"i"`
			O   *big.Int `dynamo:"o,omitempty"`
			N   *big.Rat `dynamo:"n,null"`
			L   []*big.Int
			Any any
		}
		item := roundTrip(t, row{L: []*big.Int{nil, big.NewInt(2)}})
		null := &types.AttributeValueMemberNULL{Value: true}
		assert.Equal(t, codec.Item{"n": null, "L": &types.AttributeValueMemberL{Value: []types.AttributeValue{null, s("2")}}}, item)
		item, err := compile[row](t).Encode(reflect.ValueOf(&row{Any: (*big.Rat)(nil)}).Elem(), 0)
		require.NoError(t, err)
		assert.NotContains(t, item, "Any")
	})
	t.Run("types that only read text", func(t *testing.T) {
		type row struct {
			N level          `dynamo:"n"`
			P *level         `dynamo:"p"`
			S []level        `dynamo:"s,set"`
			M map[level]bool `dynamo:"m,set"`
			D reader         `dynamo:"d"`
		}
		two := level(2)
		item := roundTrip(t, row{1, &two, []level{3}, map[level]bool{4: true}, reader{5}})
		assert.Equal(t, &types.AttributeValueMemberN{Value: "1"}, item["n"])
		var got row
		require.NoError(t, compile[row](t).Decode(codec.Item{"n": s("L7"), "d": s("L8")}, reflect.ValueOf(&got).Elem()))
		assert.Equal(t, row{N: 7, D: reader{8}}, got, "as other programs may write them")
	})
	t.Run("NULL in values of any type", func(t *testing.T) {
		null := &types.AttributeValueMemberNULL{Value: true}
		type row struct {
			AV types.AttributeValue
			N  *types.AttributeValueMemberNULL
			M  map[string]types.AttributeValue
			L  []types.AttributeValue
		}
		roundTrip(t, row{null, null, map[string]types.AttributeValue{"a": null}, []types.AttributeValue{null}})
	})
	t.Run("positions in arrays", func(t *testing.T) {
		type row struct {
			A [3]string   `dynamo:",omitemptyelem"`
			B [][2]*int   `dynamo:",omitemptyelem,omitempty"`
			C [2][]string `dynamo:",omitemptyelem,omitempty"`
		}
		roundTrip(t, row{[3]string{"", "b", ""}, [][2]*int{{nil, new(int)}}, [2][]string{nil, {"x"}}})
		roundTrip(t, struct {
			A [3]strict `dynamo:",omitemptyelem"`
		}{[3]strict{{}, {"b"}, {}}})
	})
	t.Run("types inside of themselves", func(t *testing.T) {
		roundTrip(t, struct{ L endless }{endless{{}, {{}}}})
		roundTrip(t, struct{ M endlessMap }{endlessMap{"a": {"b": {}}}})
	})
}

type (
	endless    []endless
	endlessMap map[string]endlessMap
	loop       struct {
		*loop //nolint:unused // what the test is about
		X     int
	}
)

func TestCompile_RefusesStructsThatEmbedThemselves(t *testing.T) {
	_, err := codec.Compile(reflect.TypeFor[loop]())
	require.ErrorContains(t, err, "embeds itself")
	_, err = codec.Compile(reflect.TypeFor[struct{ L *loop }]())
	require.Error(t, err)
}

func TestCompile_RefusesEmbeddedStructsThatWouldBeLost(t *testing.T) {
	for typ, want := range map[reflect.Type]string{
		reflect.TypeFor[struct{ *base }]():                "embedded *codec_test.base is not exported",
		reflect.TypeFor[struct{ Base struct{ *base } }](): "embedded *codec_test.base is not exported",
		reflect.TypeFor[struct{ cents }]():                "embedded codec_test.cents encodes itself",
		reflect.TypeFor[struct{ *sdk }]():                 "embedded *codec_test.sdk encodes itself",
		reflect.TypeFor[struct{ pair }]():                 "embedded codec_test.pair encodes itself",
		reflect.TypeFor[struct {
			time.Time `dynamo:"at"`
		}](): "embedded time.Time encodes itself",
	} {
		_, err := codec.Compile(typ)
		require.ErrorContains(t, err, want)
	}
	for _, typ := range []reflect.Type{
		reflect.TypeFor[struct{ *void }](), // has no attributes to lose
		reflect.TypeFor[struct {
			*base `dynamo:"-"`
			cents `dynamo:"-"`
		}](),
	} {
		_, err := codec.Compile(typ)
		require.NoError(t, err)
	}
}

// Of several fields with one name, one is stored. That is the one that Go selects, or the type is refused.
func TestCompile_RefusesFieldsThatOthersOfTheSameNameReplace(t *testing.T) {
	type after struct {
		Left
		Name string `dynamo:"name"`
	}
	type pointer struct {
		*Left
		Name string `dynamo:"name"`
	}
	type both struct {
		Left
		Right
	}
	type twice struct{ A, B string }
	type tagged struct {
		A string `dynamo:"name"`
		B string `dynamo:"name"`
	}
	for typ, want := range map[reflect.Type]string{
		reflect.TypeFor[after]():                        `fields Name and Name are both attribute "name"`,
		reflect.TypeFor[struct{ In after }]():           `attribute "In": fields Name and Name are both attribute "name"`,
		reflect.TypeFor[struct{ In []pointer }]():       `attribute "In": fields Name and Name are both attribute "name"`,
		reflect.TypeFor[struct{ In map[string]both }](): `attribute "In": fields Name and Name are both attribute "name"`,
		reflect.TypeFor[struct{ In *tagged }]():         `attribute "In": fields A and B are both attribute "name"`,
	} {
		_, err := codec.Compile(typ)
		require.EqualError(t, err, want, "%v", typ)
	}
	roundTrip(t, struct{ In twice }{twice{"a", "b"}})
	type row struct{ Any any }
	_, err := compile[row](t).Encode(reflect.ValueOf(&row{after{Name: "x"}}).Elem(), 0)
	require.Error(t, err)

	_, err = codec.Compile(reflect.TypeFor[struct {
		A, B string `dynamo:"x"`
		C    chan int
	}]())
	assert.Len(t, codec.Problems(err), 2, "all problems at once: %v", err)
}

// level and reader can be read from text and do not write it. mute and its pointer write text that cannot be read.
type (
	level  int
	reader struct{ N int }
	mute   int
	silent struct{ N int }
)

func (l *level) UnmarshalText(b []byte) error {
	_, err := fmt.Sscanf(string(b), "L%d", (*int)(l))
	return err
}

func (r *reader) UnmarshalText(b []byte) error { return (*level)(&r.N).UnmarshalText(b) }

func (m mute) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "M%d", int(m)), nil }

func (s *silent) MarshalText() ([]byte, error) { return mute(s.N).MarshalText() }

func TestCompile_RefusesWhatCouldNotBeReadBack(t *testing.T) {
	for _, typ := range []reflect.Type{
		reflect.TypeFor[struct{ F mute }](),
		reflect.TypeFor[struct{ F *mute }](),
		reflect.TypeFor[struct{ F *silent }](),
		reflect.TypeFor[struct{ F []mute }](),
		reflect.TypeFor[struct{ F encoding.TextMarshaler }](),
		reflect.TypeFor[struct{ F map[string]dynamo.Marshaler }](),
		reflect.TypeFor[struct{ F map[mute]int }](),
		reflect.TypeFor[struct{ F map[*big.Int]int }](),
		reflect.TypeFor[struct {
			F map[encoding.TextMarshaler]int
		}](),
		reflect.TypeFor[struct {
			F []mute `dynamo:",set"`
		}](),
		reflect.TypeFor[struct {
			F []encoding.TextMarshaler `dynamo:",set"`
		}](),
		reflect.TypeFor[struct {
			F map[mute]bool `dynamo:",set"`
		}](),
		reflect.TypeFor[struct {
			F map[*big.Int]bool `dynamo:",set"`
		}](),
	} {
		_, err := codec.Compile(typ)
		require.ErrorContains(t, err, "could not be read back", "%v", typ)
	}
	for _, typ := range []reflect.Type{
		reflect.TypeFor[struct{ F types.AttributeValueMemberM }](),
		reflect.TypeFor[struct{ F []types.AttributeValueMemberM }](),
	} {
		_, err := codec.Compile(typ)
		require.ErrorContains(t, err, "only as a pointer", "%v", typ)
	}
	roundTrip(t, struct{ F silent }{silent{3}}) // whose value does not write text
	roundTrip(t, struct {
		F []*big.Int `dynamo:",set"`
	}{[]*big.Int{big.NewInt(1)}})

	roundTrip(t, struct{ F []types.AttributeValueMemberN }{[]types.AttributeValueMemberN{{Value: "1"}}})

	// An interface takes any text.
	type row struct{ Any any }
	for v, want := range map[any]any{
		mute(1):                  "M1",
		&silent{2}:               "M2",
		struct{ F mute }{3}:      map[string]any{"F": "M3"},
		&map[mute]string{4: "x"}: map[string]any{"M4": "x"},
		struct{ F encoding.TextMarshaler }{mute(5)}: map[string]any{"F": "M5"},
	} {
		item, err := compile[row](t).Encode(reflect.ValueOf(&row{v}).Elem(), 0)
		require.NoError(t, err)
		var got row
		require.NoError(t, compile[row](t).Decode(item, reflect.ValueOf(&got).Elem()))
		assert.Equal(t, want, got.Any)
	}
}

// strict cannot be read from the empty text, which it writes if it is zero.
type strict struct{ s string }

func (s strict) MarshalText() ([]byte, error) { return []byte(s.s), nil }

func (s *strict) UnmarshalText(b []byte) error {
	if len(b) == 0 {
		return fmt.Errorf("no text")
	}
	s.s = string(b)
	return nil
}

// shape is one of several types, of which circle is one. drawing, gallery and album know how to read them.
type (
	shape   interface{ MarshalText() ([]byte, error) }
	circle  struct{ R int }
	drawing struct {
		Shapes []shape         `dynamo:"shapes"`
		ByName map[mute]circle `dynamo:"byname,omitempty"`
		Inner  []drawing       `dynamo:"inner,omitempty"`
	}
	gallery []shape
	album   struct{ Cover shape }
)

func (c circle) MarshalText() ([]byte, error) { return fmt.Append(nil, c.R), nil }

func circleOf(av types.AttributeValue) (c circle, err error) {
	_, err = fmt.Sscan(av.(*types.AttributeValueMemberS).Value, &c.R)
	return c, err
}

func (g *gallery) UnmarshalDynamo(av types.AttributeValue) error {
	for _, av := range av.(*types.AttributeValueMemberL).Value {
		c, err := circleOf(av)
		if err != nil {
			return err
		}
		*g = append(*g, c)
	}
	return nil
}

func (d *drawing) UnmarshalDynamoDBAttributeValue(av types.AttributeValue) error {
	m := av.(*types.AttributeValueMemberM).Value
	if inner, ok := m["inner"].(*types.AttributeValueMemberL); ok {
		d.Inner = make([]drawing, len(inner.Value))
		for i, av := range inner.Value {
			if err := d.Inner[i].UnmarshalDynamoDBAttributeValue(av); err != nil {
				return err
			}
		}
	}
	if byName, ok := m["byname"].(*types.AttributeValueMemberM); ok {
		d.ByName = map[mute]circle{}
		for name, av := range byName.Value {
			var key mute
			if _, err := fmt.Sscanf(name, "M%d", (*int)(&key)); err != nil {
				return err
			}
			c, err := circleOf(av)
			if err != nil {
				return err
			}
			d.ByName[key] = c
		}
	}
	return (*gallery)(&d.Shapes).UnmarshalDynamo(m["shapes"])
}

func (a *album) UnmarshalDynamoItem(item dynamo.Item) (err error) {
	a.Cover, err = circleOf(item["Cover"])
	return err
}

func TestCompile_LeavesToATypeThatDecodesItselfWhatIsInIt(t *testing.T) {
	type row struct {
		Drawing drawing  `dynamo:"drawing"`
		Pointer *drawing `dynamo:"pointer"`
		Gallery gallery  `dynamo:"gallery"`
	}
	one := drawing{Shapes: []shape{circle{1}}, ByName: map[mute]circle{2: {3}}}
	roundTrip(t, row{one, &drawing{Shapes: []shape{circle{4}}, Inner: []drawing{one}}, gallery{circle{5}, circle{6}}})

	a := album{circle{7}}
	item, err := compile[album](t).Encode(reflect.ValueOf(&a).Elem(), 0)
	require.NoError(t, err)
	var got album
	require.NoError(t, dynamo.UnmarshalItem(item, &got))
	assert.Equal(t, a, got)

	_, err = codec.Compile(reflect.TypeFor[struct {
		Drawing drawing
		Shape   shape
	}]())
	require.ErrorContains(t, err, `attribute "Shape": unsupported type codec_test.shape`, "outside of such a type")
	assert.Len(t, codec.Problems(err), 1)
}

// same has one text for all values.
type same int

func (same) MarshalText() ([]byte, error)  { return []byte("x"), nil }
func (*same) UnmarshalText(_ []byte) error { return nil }

func TestEncode_RefusesAMapOfWhichTwoKeysHaveTheSameText(t *testing.T) {
	type row struct{ M map[same]int }
	roundTrip(t, row{map[same]int{0: 1}})
	_, err := compile[row](t).Encode(reflect.ValueOf(&row{map[same]int{0: 1, 1: 2}}).Elem(), 0)
	require.ErrorIs(t, err, codec.ErrKind)
}

// date is what people write who take the methods of a time.Time with it.
type date time.Time

func TestEncode_RefusesAStructOfWhichNothingIsExported(t *testing.T) {
	type row struct {
		At   date     `dynamo:"at"`
		Omit *date    `dynamo:"omit,omitempty"`
		Zero date     `dynamo:"zero,omitempty"`
		URL  *url.URL `dynamo:"url,omitempty"`
		None void     `dynamo:"none"`
	}
	roundTrip(t, row{URL: &url.URL{Scheme: "https", Host: "x"}})
	type excluded struct {
		Conn *int `dynamo:"-"`
		n    int
	}
	item, err := compile[struct{ In excluded }](t).Encode(reflect.ValueOf(&struct{ In excluded }{excluded{new(int), 1}}).Elem(), 0)
	require.NoError(t, err, "its author excluded what is exported")
	assert.Equal(t, codec.Item{"In": &types.AttributeValueMemberM{Value: codec.Item{}}}, item)
	at := date(time.Unix(1, 0))
	for _, o := range []row{{At: at}, {Omit: &at}, {Zero: at}, {URL: &url.URL{Host: "x", User: url.User("ada")}}} {
		_, err := compile[row](t).Encode(reflect.ValueOf(&o).Elem(), 0)
		require.ErrorIs(t, err, codec.ErrKind)
	}
}

func TestDepth_IsBoundedAsByDynamoDB(t *testing.T) {
	type row struct {
		Any   any     `dynamo:"any"`
		Node  *node   `dynamo:"node,omitempty"`
		List  endless `dynamo:"list,omitempty"`
		Raw   sdk2    `dynamo:"raw,omitempty"`
		Array [1]any  `dynamo:"array,omitempty"`
	}
	s := compile[row](t)
	lists := func(n int) (av types.AttributeValue) {
		av = &types.AttributeValueMemberL{Value: []types.AttributeValue{}}
		for range n - 1 {
			av = &types.AttributeValueMemberL{Value: []types.AttributeValue{av}}
		}
		return av
	}
	maps := func(n int) (av types.AttributeValue) {
		av = &types.AttributeValueMemberM{Value: codec.Item{}}
		for range n - 1 {
			av = &types.AttributeValueMemberM{Value: codec.Item{"next": av}}
		}
		return av
	}
	for _, c := range []struct {
		name string
		make func(int) types.AttributeValue
	}{{"any", lists}, {"any", maps}, {"node", maps}, {"list", lists}, {"raw", lists}, {"raw", maps}, {"array", lists}} {
		for n, want := range map[int]error{codec.MaxDepth: nil, codec.MaxDepth + 1: codec.ErrDepth, 100_000: codec.ErrDepth} {
			var got row
			err := s.Decode(codec.Item{c.name: c.make(n)}, reflect.ValueOf(&got).Elem())
			require.ErrorIs(t, err, want, "%s of %d levels", c.name, n)
			if want == nil && c.name != "raw" {
				item, err := s.Encode(reflect.ValueOf(&got).Elem(), 0)
				require.NoError(t, err)
				require.NotNil(t, item[c.name])
			}
		}
	}
	ring := &node{}
	ring.Next = ring
	_, err := s.Encode(reflect.ValueOf(&row{Node: ring}).Elem(), 0)
	require.ErrorIs(t, err, codec.ErrDepth)
	self := []any{nil}
	self[0] = self
	_, err = s.Encode(reflect.ValueOf(&row{Any: self}).Elem(), 0)
	require.ErrorIs(t, err, codec.ErrDepth)
}

// sdk2 takes anything.
type sdk2 struct{ seen bool }

func (s *sdk2) UnmarshalDynamo(types.AttributeValue) error {
	s.seen = true
	return nil
}

// voids are values that no client of the SDK makes, but a caller of Decode can.
var voids = []types.AttributeValue{
	(*types.AttributeValueMemberS)(nil), (*types.AttributeValueMemberN)(nil), (*types.AttributeValueMemberB)(nil), (*types.AttributeValueMemberBOOL)(nil),
	(*types.AttributeValueMemberNULL)(nil), (*types.AttributeValueMemberSS)(nil), (*types.AttributeValueMemberNS)(nil), (*types.AttributeValueMemberBS)(nil),
	(*types.AttributeValueMemberL)(nil), (*types.AttributeValueMemberM)(nil), &types.UnknownUnionMember{Tag: "X"}, (*types.UnknownUnionMember)(nil),
	&types.AttributeValueMemberL{Value: []types.AttributeValue{nil}}, &types.AttributeValueMemberM{Value: codec.Item{"x": nil}},
	&types.AttributeValueMemberL{Value: []types.AttributeValue{(*types.AttributeValueMemberL)(nil)}},
}

// hostile decodes what nobody would write; nothing panics.
func hostile(t *rapid.T) {
	typ := rapid.SampledFrom(named).Draw(t, "type")
	if rapid.Bool().Draw(t, "generated") {
		typ = drawStruct(t, 3)
	}
	s, err := codec.Compile(typ)
	if err != nil {
		return
	}
	item := codec.Item{}
	for i := range typ.NumField() {
		f := typ.Field(i)
		for _, name := range []string{f.Name, tagName(f)} {
			if rapid.IntRange(0, 3).Draw(t, "void") == 0 {
				item[name] = rapid.SampledFrom(voids).Draw(t, "value")
			} else {
				item[name] = drawAV(t, 4)
			}
		}
	}
	p := reflect.New(typ)
	if err := s.Decode(item, p.Elem()); err != nil {
		var at *codec.Error
		require.ErrorAs(t, err, &at)
		return
	}
	_, _ = s.Encode(p.Elem(), 0)
}

func TestDecode_DoesNotPanicOnHostileRows(t *testing.T) { rapid.Check(t, hostile) }

func FuzzHostileRows(f *testing.F) { f.Fuzz(rapid.MakeFuzz(hostile)) }

func TestStruct_IsSafeForConcurrentUse(t *testing.T) {
	s := compile[collections](t)
	o := collections{Strings: []string{"a", ""}, Any: map[string]any{"x": 1.5}, Map: map[string]string{"k": "v"}, Struct: base{By: "b"}}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				item, err := s.Encode(reflect.ValueOf(&o).Elem(), 1)
				if !assert.NoError(t, err) {
					return
				}
				var got collections
				assert.NoError(t, s.Decode(item, reflect.ValueOf(&got).Elem()))
				assert.Equal(t, o.Map, got.Map)
			}
		})
	}
	wg.Wait()
}

func TestField_OfAnyAttributeValueIsReadAsItWasWritten(t *testing.T) {
	type row struct{ AV types.AttributeValue }
	roundTrip(t, row{&types.AttributeValueMemberS{Value: "a"}})
	roundTrip(t, row{&types.AttributeValueMemberM{Value: codec.Item{"n": &types.AttributeValueMemberN{Value: "1"}}}})
	var got row
	err := compile[row](t).Decode(codec.Item{"AV": (*types.AttributeValueMemberS)(nil)}, reflect.ValueOf(&got).Elem())
	assert.ErrorIs(t, err, codec.ErrKind)
}

func TestEncode_RefusesPointersThatLeadBackToThemselves(t *testing.T) {
	type row struct{ Any any }
	var loop any
	loop = &loop
	type self *self
	var p self
	p = &p
	for name, v := range map[string]any{"interface": loop, "named pointer": p, "in a list": []any{loop}} {
		t.Run(name, func(t *testing.T) {
			o := row{v}
			_, err := compile[row](t).Encode(reflect.ValueOf(&o).Elem(), 0)
			assert.ErrorIs(t, err, codec.ErrDepth)
		})
	}
	one := 1
	two := &one
	o := row{&two}
	item, err := compile[row](t).Encode(reflect.ValueOf(&o).Elem(), 0)
	require.NoError(t, err)
	assert.Equal(t, &types.AttributeValueMemberN{Value: "1"}, item["Any"])
}

func TestCompile_NamesEveryTypeThatCannotBeEncoded(t *testing.T) {
	_, err := codec.Compile(reflect.TypeFor[struct {
		A, B chan int
		C    struct {
			D func()
			E []func()
		}
	}]())
	var texts []string
	for _, problem := range codec.Problems(err) {
		texts = append(texts, problem.Error())
	}
	assert.Equal(t, []string{
		`attribute "A": unsupported type chan int`, `attribute "B": unsupported type chan int`,
		`attribute "C": attribute "D": unsupported type func()`, `attribute "C": attribute "E": unsupported type func()`,
	}, texts)
	assert.Empty(t, codec.Problems(nil))
}
