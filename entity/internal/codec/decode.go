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
