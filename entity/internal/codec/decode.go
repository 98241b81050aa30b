package codec

import (
	"encoding"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/guregu/dynamo/v2"
)

// decodeFunc sets v, which must be settable and zero, from av, which is neither nil nor NULL. depth is the number of lists
// and maps around av.
type decodeFunc func(av types.AttributeValue, v reflect.Value, depth int) error

// decode calls dec, except for nil and NULL. For these v stays zero, unless its type is that of a NULL.
func decode(dec decodeFunc, av types.AttributeValue, v reflect.Value, depth int) error {
	if av == nil {
		return nil
	}
	if null, ok := av.(*types.AttributeValueMemberNULL); ok {
		if null != nil && isValue(v.Type()) && reflect.TypeOf(av).AssignableTo(v.Type()) {
			v.Set(reflect.ValueOf(av))
		}
		return nil
	}
	return dec(av, v, depth)
}

func mismatch(av types.AttributeValue, v reflect.Value) error {
	return fmt.Errorf("%w: %s for %s", ErrKind, kind(av), v.Type())
}

// kind returns DynamoDB's name of a type, such as N.
func kind(av types.AttributeValue) string {
	return strings.TrimPrefix(fmt.Sprintf("%T", av), "*types.AttributeValueMember")
}

func (c *compiler) decoder(t reflect.Type) decodeFunc {
	if have, ok := c.decoders[t]; ok {
		return func(av types.AttributeValue, v reflect.Value, depth int) error { return (*have)(av, v, depth) }
	}
	if c.decoders == nil {
		c.decoders = map[reflect.Type]*decodeFunc{}
	}
	slot := new(decodeFunc)
	c.decoders[t] = slot
	*slot = c.newDecoder(t)
	return *slot
}

func (c *compiler) newDecoder(t reflect.Type) decodeFunc {
	p := reflect.PointerTo(t)
	if isTime(t) {
		return decodeTime
	}
	switch decodedBy(p) {
	case byDynamo:
		return customDecoder(dynamo.Unmarshaler.UnmarshalDynamo)
	case byAWS:
		return customDecoder(awsUnmarshaler.UnmarshalDynamoDBAttributeValue)
	case byText:
		if methodOf(t) == noMethod { // such a type is not written as text, but other programs may do that
			return textDecoder(c.byKind(t))
		}
		return decodeText
	}
	switch {
	case isValue(t) && t.Kind() == reflect.Interface:
		return decodeValue
	case isValue(p):
		return valueDecoder(p, c.byKind(t))
	}
	return c.byKind(t)
}

func (c *compiler) byKind(t reflect.Type) decodeFunc {
	switch t.Kind() {
	case reflect.Pointer:
		elem := c.decoder(t.Elem())
		return func(av types.AttributeValue, v reflect.Value, depth int) error {
			p := reflect.New(t.Elem())
			v.Set(p)
			return elem(av, p.Elem(), depth)
		}
	case reflect.Bool:
		return decodeBool
	case reflect.Int, reflect.Int64, reflect.Int32, reflect.Int16, reflect.Int8:
		return decodeInt
	case reflect.Uint, reflect.Uint64, reflect.Uint32, reflect.Uint16, reflect.Uint8:
		return decodeUint
	case reflect.Float64, reflect.Float32:
		return decodeFloat
	case reflect.String:
		return decodeString
	case reflect.Slice:
		return c.sliceDecoder(t)
	case reflect.Array:
		return c.arrayDecoder(t)
	case reflect.Map:
		return c.mapDecoder(t)
	case reflect.Struct:
		return c.structDecoder(t)
	case reflect.Interface:
		if t.NumMethod() == 0 {
			return decodeAny
		}
	}
	return func(av types.AttributeValue, v reflect.Value, _ int) error { return mismatch(av, v) }
}

// customDecoder calls a type's own method. It first refuses values that no SDK client returns: those with nil in them, and
// those that are deeper than DynamoDB allows.
func customDecoder[I any](unmarshal func(I, types.AttributeValue) error) decodeFunc {
	return func(av types.AttributeValue, v reflect.Value, depth int) error {
		if err := sound(av, depth); err != nil {
			return err
		}
		return unmarshal(v.Addr().Interface().(I), av)
	}
}

func decodeText(av types.AttributeValue, v reflect.Value, _ int) error {
	s, _ := av.(*types.AttributeValueMemberS)
	if s == nil {
		return mismatch(av, v)
	}
	return v.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(s.Value))
}

// textDecoder decodes text with the type's method. It leaves all other values to other.
func textDecoder(other decodeFunc) decodeFunc {
	return func(av types.AttributeValue, v reflect.Value, depth int) error {
		if _, ok := av.(*types.AttributeValueMemberS); ok {
			return decodeText(av, v, depth)
		}
		return other(av, v, depth)
	}
}

func decodeTime(av types.AttributeValue, v reflect.Value, _ int) error {
	at := v.Addr().Interface().(*time.Time)
	switch av := av.(type) {
	case *types.AttributeValueMemberS:
		if av != nil {
			if at.UnmarshalText([]byte(av.Value)) != nil { // this error quotes the value
				return fmt.Errorf("%w: want a time of RFC 3339, or seconds as a number", ErrKind)
			}
			return nil
		}
	case *types.AttributeValueMemberN:
		if av != nil {
			s, err := strconv.ParseInt(av.Value, 10, 64)
			if err != nil {
				return numberError(err, "a whole number")
			}
			*at = time.Unix(s, 0).UTC()
			return nil
		}
	}
	return mismatch(av, v)
}

// decodeValue stores any attribute value unchanged.
func decodeValue(av types.AttributeValue, v reflect.Value, depth int) error {
	if err := sound(av, depth); err != nil {
		return err
	}
	v.Set(reflect.ValueOf(av))
	return nil
}

// valueDecoder stores an attribute value of type p unchanged. It leaves all other values to other.
func valueDecoder(p reflect.Type, other decodeFunc) decodeFunc {
	return func(av types.AttributeValue, v reflect.Value, depth int) error {
		rv := reflect.ValueOf(av)
		if rv.Type() != p {
			return other(av, v, depth)
		}
		if err := sound(av, depth); err != nil {
			return err
		}
		v.Set(rv.Elem())
		return nil
	}
}

func decodeBool(av types.AttributeValue, v reflect.Value, _ int) error {
	b, _ := av.(*types.AttributeValueMemberBOOL)
	if b == nil {
		return mismatch(av, v)
	}
	v.SetBool(b.Value)
	return nil
}

func decodeString(av types.AttributeValue, v reflect.Value, _ int) error {
	s, _ := av.(*types.AttributeValueMemberS)
	if s == nil {
		return mismatch(av, v)
	}
	v.SetString(s.Value)
	return nil
}

// numberError replaces the error of a number parser, because its text quotes the value. want is what the field needs.
func numberError(err error, want string) error {
	if errors.Is(err, strconv.ErrRange) {
		return ErrRange
	}
	return fmt.Errorf("%w: want %s", ErrKind, want)
}

func decodeInt(av types.AttributeValue, v reflect.Value, _ int) error {
	n, _ := av.(*types.AttributeValueMemberN)
	if n == nil {
		return mismatch(av, v)
	}
	i, err := strconv.ParseInt(n.Value, 10, 64)
	switch {
	case err != nil:
		return numberError(err, "a whole number")
	case v.OverflowInt(i):
		return ErrRange
	}
	v.SetInt(i)
	return nil
}

func decodeUint(av types.AttributeValue, v reflect.Value, _ int) error {
	n, _ := av.(*types.AttributeValueMemberN)
	if n == nil {
		return mismatch(av, v)
	}
	i, err := strconv.ParseUint(n.Value, 10, 64)
	switch {
	case err != nil:
		return numberError(err, "a whole number from 0 on")
	case v.OverflowUint(i):
		return ErrRange
	}
	v.SetUint(i)
	return nil
}

func decodeFloat(av types.AttributeValue, v reflect.Value, _ int) error {
	n, _ := av.(*types.AttributeValueMemberN)
	if n == nil {
		return mismatch(av, v)
	}
	f, err := strconv.ParseFloat(n.Value, 64)
	switch {
	case err != nil:
		return numberError(err, "a number")
	case v.OverflowFloat(f):
		return ErrRange
	}
	v.SetFloat(f)
	return nil
}

// sliceDecoder accepts lists, sets and, for slices of bytes, binaries.
func (c *compiler) sliceDecoder(t reflect.Type) decodeFunc {
	elem := c.decoder(t.Elem())
	return func(av types.AttributeValue, v reflect.Value, depth int) error {
		if b, ok := av.(*types.AttributeValueMemberB); ok && b != nil && t.Elem().Kind() == reflect.Uint8 {
			v.SetBytes(b.Value)
			return nil
		}
		n, at, err := members(av, depth)
		if err != nil {
			return fmt.Errorf("%w for %s", err, t)
		}
		v.Set(reflect.MakeSlice(t, n, n))
		for i := range n {
			if err := decode(elem, at(i), v.Index(i), depth+1); err != nil {
				return err
			}
		}
		return nil
	}
}

// members returns the number of elements of a list or set, and a function that returns an element as an attribute value.
func members(av types.AttributeValue, depth int) (n int, at func(int) types.AttributeValue, err error) {
	switch av := av.(type) {
	case *types.AttributeValueMemberL:
		if av == nil {
			break
		}
		if depth >= MaxDepth {
			return 0, nil, ErrDepth
		}
		return len(av.Value), func(i int) types.AttributeValue { return av.Value[i] }, nil
	case *types.AttributeValueMemberSS:
		if av != nil {
			return len(av.Value), func(i int) types.AttributeValue { return &types.AttributeValueMemberS{Value: av.Value[i]} }, nil
		}
	case *types.AttributeValueMemberNS:
		if av != nil {
			return len(av.Value), func(i int) types.AttributeValue { return &types.AttributeValueMemberN{Value: av.Value[i]} }, nil
		}
	case *types.AttributeValueMemberBS:
		if av != nil {
			return len(av.Value), func(i int) types.AttributeValue { return &types.AttributeValueMemberB{Value: av.Value[i]} }, nil
		}
	}
	return 0, nil, fmt.Errorf("%w: %s", ErrKind, kind(av))
}

// arrayDecoder accepts a value that is not longer than the array. The remaining elements stay zero.
func (c *compiler) arrayDecoder(t reflect.Type) decodeFunc {
	elem := c.decoder(t.Elem())
	return func(av types.AttributeValue, v reflect.Value, depth int) error {
		switch av := av.(type) {
		case *types.AttributeValueMemberB:
			if av != nil && t.Elem().Kind() == reflect.Uint8 {
				return setArray(v, av.Value)
			}
		case *types.AttributeValueMemberL:
			switch {
			case av == nil:
				return mismatch(av, v)
			case depth >= MaxDepth:
				return ErrDepth
			case len(av.Value) > t.Len():
				return fmt.Errorf("%w: %d elements for %s", ErrRange, len(av.Value), t)
			}
			for i, e := range av.Value {
				if err := decode(elem, e, v.Index(i), depth+1); err != nil {
					return err
				}
			}
			return nil
		}
		return mismatch(av, v)
	}
}

func setArray(v reflect.Value, b []byte) error {
	if len(b) > v.Len() {
		return fmt.Errorf("%w: %d bytes for %s", ErrRange, len(b), v.Type())
	}
	for i, x := range b {
		v.Index(i).SetUint(uint64(x))
	}
	return nil
}

// mapDecoder accepts maps and, if the map type can be a set, sets.
func (c *compiler) mapDecoder(t reflect.Type) decodeFunc {
	elem, key := c.decoder(t.Elem()), c.decoder(t.Key())
	isSet := truth(t)
	named := nameDecoder(t.Key())
	return func(av types.AttributeValue, v reflect.Value, depth int) error {
		if m, ok := av.(*types.AttributeValueMemberM); ok && m != nil {
			if depth >= MaxDepth {
				return ErrDepth
			}
			v.Set(reflect.MakeMapWithSize(t, len(m.Value)))
			k, x := reflect.New(t.Key()).Elem(), reflect.New(t.Elem()).Elem() // copied into the map
			for name, e := range m.Value {
				k.SetZero()
				x.SetZero()
				if err := named(name, k); err != nil {
					return err
				}
				if err := decode(elem, e, x, depth+1); err != nil {
					return err
				}
				v.SetMapIndex(k, x)
			}
			return nil
		}
		if _, isList := av.(*types.AttributeValueMemberL); isList || !isSet.IsValid() {
			return mismatch(av, v)
		}
		n, at, err := members(av, depth)
		if err != nil {
			return fmt.Errorf("%w for %s", err, t)
		}
		v.Set(reflect.MakeMapWithSize(t, n))
		for i := range n {
			k := reflect.New(t.Key()).Elem()
			switch e := at(i).(type) {
			case *types.AttributeValueMemberS:
				err = named(e.Value, k)
			case *types.AttributeValueMemberB:
				err = setKey(k, e.Value)
			default:
				err = key(e, k, depth)
			}
			if err != nil {
				return err
			}
			v.SetMapIndex(k, isSet)
		}
		return nil
	}
}

// setKey sets a map key from a binary. The key must be an array of bytes of the same length.
func setKey(k reflect.Value, b []byte) error {
	switch {
	case k.Kind() != reflect.Array || k.Type().Elem().Kind() != reflect.Uint8:
		return fmt.Errorf("%w: binary for %s", ErrKind, k.Type())
	case k.Len() != len(b):
		return fmt.Errorf("%w: %d bytes for %s", ErrRange, len(b), k.Type())
	}
	return setArray(k, b)
}

// nameDecoder returns the function that sets a map key from a name in a DynamoDB map, or from text in a string set.
func nameDecoder(t reflect.Type) func(name string, k reflect.Value) error {
	switch {
	case implements[encoding.TextUnmarshaler](reflect.PointerTo(t)):
		return func(name string, k reflect.Value) error {
			return k.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(name))
		}
	case t.Kind() == reflect.String:
		return func(name string, k reflect.Value) error {
			k.SetString(name)
			return nil
		}
	}
	return func(string, reflect.Value) error { return fmt.Errorf("%w: a name for %s", ErrKind, t) }
}

func (c *compiler) structDecoder(t reflect.Type) decodeFunc {
	l, err := layoutOf(t)
	if err != nil {
		return func(types.AttributeValue, reflect.Value, int) error { return err }
	}
	decoders := make([]decodeFunc, len(l.members))
	for i := range l.members {
		decoders[i] = c.decoder(l.members[i].typ)
	}
	return func(av types.AttributeValue, v reflect.Value, depth int) error {
		m, _ := av.(*types.AttributeValueMemberM)
		switch {
		case m == nil:
			return mismatch(av, v)
		case depth >= MaxDepth:
			return ErrDepth
		}
		allocate(l.embedded, v)
		for i := range l.members {
			e := m.Value[l.members[i].name]
			if e == nil {
				continue
			}
			if fv := l.members[i].of(v); fv.IsValid() {
				if err := decode(decoders[i], e, fv, depth+1); err != nil {
					return err
				}
			}
		}
		return nil
	}
}
