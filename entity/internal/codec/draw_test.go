package codec_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"pgregory.net/rapid"
)

var leaves = []reflect.Type{
	reflect.TypeFor[bool](), reflect.TypeFor[yes](), reflect.TypeFor[int](), reflect.TypeFor[int8](), reflect.TypeFor[count](), reflect.TypeFor[int32](),
	reflect.TypeFor[int64](), reflect.TypeFor[uint](), reflect.TypeFor[uint8](), reflect.TypeFor[uint16](), reflect.TypeFor[uint64](),
	reflect.TypeFor[float32](), reflect.TypeFor[float64](), reflect.TypeFor[string](), reflect.TypeFor[word](), reflect.TypeFor[[]byte](),
	reflect.TypeFor[blob](), reflect.TypeFor[[3]byte](), reflect.TypeFor[time.Time](), reflect.TypeFor[cents](), reflect.TypeFor[*sdk](),
	reflect.TypeFor[pair](), reflect.TypeFor[span](), reflect.TypeFor[any](), reflect.TypeFor[void](), reflect.TypeFor[node](), reflect.TypeFor[embeds](),
}

// unsupported types make compiling fail.
var unsupported = []reflect.Type{
	reflect.TypeFor[chan int](), reflect.TypeFor[func()](), reflect.TypeFor[complex128](), reflect.TypeFor[uintptr](), reflect.TypeFor[fmt.Stringer](),
	reflect.TypeFor[map[int]string](), reflect.TypeFor[map[string]chan int](), reflect.TypeFor[[]struct{ F func() }](),
}

func drawType(t *rapid.T, depth int) reflect.Type {
	kind := 0
	if depth > 0 {
		kind = rapid.IntRange(0, 8).Draw(t, "kind")
	}
	switch kind {
	case 1:
		elem := drawType(t, depth-1)
		if elem.Kind() == reflect.Pointer {
			return elem // guregu/dynamo panics on pointers to pointers
		}
		return reflect.PointerTo(elem)
	case 2, 3:
		return reflect.SliceOf(drawType(t, depth-1))
	case 4:
		elem := drawType(t, depth-1)
		if elem == reflect.TypeFor[*sdk]() {
			return elem // an array that is left empty would have nil elements: see fill
		}
		return reflect.ArrayOf(rapid.IntRange(0, 3).Draw(t, "len"), elem)
	case 5:
		key := rapid.SampledFrom([]reflect.Type{reflect.TypeFor[string](), reflect.TypeFor[word](), reflect.TypeFor[pair]()}).Draw(t, "key")
		return reflect.MapOf(key, drawType(t, depth-1))
	case 6:
		key := rapid.SampledFrom([]reflect.Type{
			reflect.TypeFor[string](), reflect.TypeFor[int](), reflect.TypeFor[uint8](), reflect.TypeFor[float64](), reflect.TypeFor[pair](), reflect.TypeFor[[2]byte](),
		}).Draw(t, "element")
		return reflect.MapOf(key, rapid.SampledFrom([]reflect.Type{reflect.TypeFor[bool](), reflect.TypeFor[struct{}](), reflect.TypeFor[void]()}).Draw(t, "truth"))
	case 7:
		return drawStruct(t, depth-1)
	}
	return rapid.SampledFrom(leaves).Draw(t, "leaf")
}

// keepsPositions reports whether omitemptyelem can reach an array.
func keepsPositions(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Array, reflect.Interface:
		return true
	case reflect.Pointer, reflect.Slice:
		return keepsPositions(t.Elem())
	}
	return false
}

func drawStruct(t *rapid.T, depth int) reflect.Type {
	n := rapid.IntRange(0, 5).Draw(t, "fields")
	fields := make([]reflect.StructField, n)
	used := map[string]bool{}
	for i := range fields {
		typ := drawType(t, depth)
		name := rapid.SampledFrom([]string{"", "", fmt.Sprint("a", i), "same", "F0", "F3", "-", "ä#:"}).Draw(t, "name")
		if rapid.IntRange(0, 40).Draw(t, "supported") == 0 {
			typ, name = rapid.SampledFrom(unsupported).Draw(t, "unsupported"), fmt.Sprint("u", i) // a name of its own: else nobody looks
		}
		flags := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{
			"set", "omitempty", "omitemptyelem", "allowempty", "allowemptyelem", "null", "unixtime", "unknown",
		}), 0, 3, rapid.ID[string]).Draw(t, "flags")
		if k := typ.Kind(); k != reflect.Slice && k != reflect.Map && rapid.IntRange(0, 9).Draw(t, "strict") > 0 {
			flags = slices.DeleteFunc(flags, func(f string) bool { return f == "set" }) // few other types can be one
		}
		if keepsPositions(typ) {
			flags = slices.DeleteFunc(flags, func(f string) bool { return f == "omitemptyelem" }) // guregu/dynamo moves the elements of arrays
		}
		if name == "" && used[fmt.Sprint("F", i)] || used[name] {
			name = fmt.Sprint("a", i) // guregu/dynamo does not store the second field of a name
		}
		if used[name] = true; name == "" {
			used[fmt.Sprint("F", i)] = true
		}
		delete(used, "")
		delete(used, "-")
		fields[i] = reflect.StructField{
			Name: fmt.Sprint("F", i), Type: typ,
			Tag: reflect.StructTag(`dynamo:"` + strings.Join(append([]string{name}, flags...), ",") + `"`),
		}
	}
	return reflect.StructOf(fields)
}

var texts = rapid.SampledFrom([]string{"", "", "a", "b", "1-2", "Zürich", "\x00", "7"})

// fill sets v, as far down as depth, with a preference for what is empty.
func fill(t *rapid.T, v reflect.Value, depth int) {
	empty := rapid.IntRange(0, 3).Draw(t, "empty") == 0
	if v.Type().Implements(reflect.TypeFor[types.AttributeValue]()) && depth < 4 {
		empty = false // no nil inside of lists and maps, which no row has
	}
	if v.Type() == reflect.TypeFor[*sdk]() && depth < 4 {
		empty, depth = false, max(depth, 1) // guregu/dynamo calls the method of a nil pointer, and leaves such an element out of a list
	}
	switch v.Type() {
	case reflect.TypeFor[time.Time]():
		if !empty {
			v.Set(reflect.ValueOf(time.Unix(rapid.Int64Range(-1e9, 4e9).Draw(t, "s"), rapid.SampledFrom([]int64{0, 5, 1e8}).Draw(t, "ns")).UTC()))
		}
		return
	case reflect.TypeFor[cents]():
		v.Set(reflect.ValueOf(cents{rapid.Int64Range(0, 15).Draw(t, "cents")}))
		return
	case reflect.TypeFor[types.AttributeValue]():
		if !empty {
			v.Set(reflect.ValueOf(drawAV(t, depth)))
		}
		return
	}
	if k := v.Kind(); empty || depth <= 0 && (k == reflect.Slice || k == reflect.Map) {
		return // types that contain themselves have an end
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(rapid.Int64().Draw(t, "int"))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(rapid.Uint64().Draw(t, "uint"))
	case reflect.Float32, reflect.Float64:
		v.SetFloat(rapid.Float64Range(-1e30, 1e30).Draw(t, "float"))
	case reflect.String:
		v.SetString(texts.Draw(t, "text"))
	case reflect.Pointer:
		if depth > 0 {
			v.Set(reflect.New(v.Type().Elem()))
			fill(t, v.Elem(), depth-1)
		}
	case reflect.Slice:
		n := rapid.IntRange(0, 2).Draw(t, "n")
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			fill(t, v.Index(i), depth-1)
		}
	case reflect.Array:
		for i := range v.Len() {
			fill(t, v.Index(i), depth-1)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		n := rapid.IntRange(0, 3).Draw(t, "n")
		if v.Type().Key().Kind() == reflect.Array {
			n = min(n, 1) // guregu/dynamo writes the last element for all
		}
		for range n {
			key, elem := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			fill(t, key, 0)
			fill(t, elem, depth-1)
			v.SetMapIndex(key, elem)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Field(i); f.CanSet() || v.Type().Field(i).Anonymous && f.Kind() == reflect.Struct {
				fill(t, f, depth-1)
			}
		}
	case reflect.Interface:
		if v.NumMethod() == 0 && depth > 0 {
			x := reflect.New(drawType(t, 2)).Elem()
			fill(t, x, depth-1)
			v.Set(x)
		}
	}
}

var numerals = rapid.SampledFrom([]string{"0", "1", "-1", "127", "300", "70000", "1.5", "1e3", "3.5e38", "9223372036854775808", "1e999", "abc", "", "12345678901234567890123456789012345678"})

// drawAV is any attribute value.
func drawAV(t *rapid.T, depth int) types.AttributeValue {
	kind := rapid.IntRange(0, 9).Draw(t, "av")
	if depth <= 0 {
		kind %= 5
	}
	list := func() []string { return rapid.SliceOfN(texts, 0, 3).Draw(t, "set") }
	switch kind {
	case 0:
		return &types.AttributeValueMemberS{Value: texts.Draw(t, "s")}
	case 1:
		return &types.AttributeValueMemberN{Value: numerals.Draw(t, "n")}
	case 2:
		return &types.AttributeValueMemberBOOL{Value: rapid.Bool().Draw(t, "bool")}
	case 3:
		return &types.AttributeValueMemberNULL{Value: true}
	case 4:
		return &types.AttributeValueMemberB{Value: []byte(texts.Draw(t, "b"))}
	case 5:
		return &types.AttributeValueMemberSS{Value: list()}
	case 6:
		return &types.AttributeValueMemberNS{Value: rapid.SliceOfN(numerals, 0, 3).Draw(t, "ns")}
	case 7:
		var bs [][]byte
		for _, s := range list() {
			bs = append(bs, []byte(s))
		}
		return &types.AttributeValueMemberBS{Value: bs}
	case 8:
		l := make([]types.AttributeValue, rapid.IntRange(0, 3).Draw(t, "n"))
		for i := range l {
			l[i] = drawAV(t, depth-1)
		}
		return &types.AttributeValueMemberL{Value: l}
	}
	m := map[string]types.AttributeValue{}
	for range rapid.IntRange(0, 3).Draw(t, "n") {
		name := rapid.SampledFrom([]string{"name", "next", "kids", "by", "rev", "F0", "F1", "same", "1-2", ""}).Draw(t, "name")
		m[name] = drawAV(t, depth-1)
	}
	return &types.AttributeValueMemberM{Value: m}
}

func tagName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("dynamo"), ",")
	return name
}
