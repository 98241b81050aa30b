package codec_test

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/guregu/dynamo/v2"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mortise-go/mortise/entity/internal/codec"
	"github.com/mortise-go/mortise/internal/attrvalue"
	"github.com/mortise-go/mortise/internal/testkit"
)

var errPanic = errors.New("panic")

// guarded makes an error of a panic of guregu/dynamo's.
func guarded(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: %v", errPanic, r)
		}
	}()
	return f()
}

// sorted is a copy with all sets in order, to compare.
func sorted(item codec.Item) types.AttributeValue {
	return attrvalue.InOrder(&types.AttributeValueMemberM{Value: item})
}

// outcomes counts what was compared, so that a test cannot pass by comparing nothing.
type outcomes map[string]int

func (o outcomes) of(what string, ours, theirs error) {
	switch {
	case errors.Is(theirs, errPanic):
		o[what+": they panic"]++
	case ours != nil:
		o[what+": error"]++
	default:
		o[what+": equal"]++
	}
}

// encode compares the encodings of what p points to.
func encode(t require.TestingT, s *codec.Struct, p reflect.Value, o outcomes) codec.Item {
	var want dynamo.Item
	theirs := guarded(func() (err error) {
		want, err = dynamo.MarshalItem(p.Interface())
		return err
	})
	got, ours := s.Encode(p.Elem(), 3)
	o.of("encode", ours, theirs)
	if errors.Is(theirs, errPanic) {
		return nil
	}
	require.Equal(t, theirs != nil, ours != nil, "%v: guregu/dynamo: %v, ours: %v", p.Type(), theirs, ours)
	if ours != nil {
		var at *codec.Error
		require.ErrorAs(t, ours, &at)
		return nil
	}
	require.Equal(t, sorted(want), sorted(got), "%v", p.Type())
	return got
}

// decode compares what is decoded from an item. Where guregu/dynamo cuts numbers off, ours is an error.
func decode(t require.TestingT, s *codec.Struct, typ reflect.Type, item codec.Item, o outcomes) {
	want, got := reflect.New(typ), reflect.New(typ)
	theirs := guarded(func() error { return dynamo.UnmarshalItem(item, want.Interface()) })
	ours := s.Decode(item, got.Elem())
	o.of("decode", ours, theirs)
	switch {
	case errors.Is(theirs, errPanic):
	case theirs == nil && errors.Is(ours, codec.ErrRange):
		o["decode: cut off"]++
	default:
		require.Equal(t, theirs != nil, ours != nil, "%v: guregu/dynamo: %v, ours: %v of %#v", typ, theirs, ours, item)
		if ours == nil {
			require.Equal(t, want.Interface(), got.Interface(), "%v", typ)
		}
	}
	if ours != nil {
		var at *codec.Error
		require.ErrorAs(t, ours, &at)
		require.Contains(t, item, at.Attribute)
	}
}

// compare compares both directions, over a value, its row, and rows with other things in them.
func compare(t *rapid.T, s *codec.Struct, typ reflect.Type, o outcomes) {
	p := reflect.New(typ)
	fill(t, p.Elem(), 5)
	item := encode(t, s, p, o)
	if item == nil {
		item = codec.Item{}
	}
	decode(t, s, typ, item, o)
	names := slices.Sorted(maps.Keys(item))
	for i := range typ.NumField() {
		names = append(names, typ.Field(i).Name)
	}
	names = append(names, "same", "by", "name", "at")
	hostile := maps.Clone(item)
	for range rapid.IntRange(1, 3).Draw(t, "changed") {
		hostile[rapid.SampledFrom(names).Draw(t, "attribute")] = drawAV(t, 3)
	}
	decode(t, s, typ, hostile, o)
}

func TestStruct_WritesAndReadsNamedTypesLikeGuregus(t *testing.T) {
	for _, typ := range named {
		t.Run(typ.Name(), func(t *testing.T) {
			s, err := codec.Compile(typ)
			require.NoError(t, err)
			o := outcomes{}
			rapid.Check(t, func(t *rapid.T) { compare(t, s, typ, o) })
			t.Log(o)
			testkit.Met(t, o["encode: equal"], "encode")
			testkit.Met(t, o["decode: equal"], "decode")
		})
	}
}

func TestStruct_WritesAndReadsGeneratedTypesLikeGuregus(t *testing.T) {
	o := outcomes{}
	one := func(t *rapid.T) {
		typ := drawStruct(t, 3)
		theirs := guarded(func() error {
			_, err := dynamo.MarshalItem(reflect.New(typ).Interface())
			return err
		})
		s, ours := codec.Compile(typ)
		o.of("compile", ours, theirs)
		if ours != nil {
			require.Error(t, theirs, "%v: ours: %v", typ, ours)
			return
		}
		for range 3 {
			compare(t, s, typ, o)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		for range 30 { // types: one at a time would be small ones only
			one(t)
		}
	})
	t.Log(o)
	for _, what := range []string{"compile: error", "encode: equal", "decode: equal", "decode: error"} {
		testkit.Met(t, o[what], what)
	}
}

// Before about 1900, clocks differed from UTC by seconds too. RFC 3339 has no such offsets: the text would be of another moment.
func TestCodec_ATimeWithAnOffsetInSecondsIsReadAsTheSameMoment(t *testing.T) {
	type T struct {
		At    time.Time
		Ptr   *time.Time
		Any   any
		Set   []time.Time `dynamo:",set"`
		Names map[time.Time]int
	}
	at := time.Date(1890, 2, 3, 4, 5, 6, 7, time.FixedZone("LMT", 1172))
	v := T{at, &at, at, []time.Time{at}, map[time.Time]int{at: 1}}
	c, err := codec.Compile(reflect.TypeFor[T]())
	require.NoError(t, err)
	item, err := c.Encode(reflect.ValueOf(&v).Elem(), 0)
	require.NoError(t, err)
	var back T
	require.NoError(t, c.Decode(item, reflect.ValueOf(&back).Elem()))
	require.Equal(t, at.UTC(), back.At.UTC())
	require.Equal(t, at.UTC(), back.Ptr.UTC())
	require.Equal(t, at.UTC().Format(time.RFC3339Nano), back.Any)
	require.Equal(t, []time.Time{at.UTC()}, back.Set)
	require.Equal(t, map[time.Time]int{at.UTC(): 1}, back.Names)
}
