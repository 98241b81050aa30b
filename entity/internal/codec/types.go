package codec

import (
	"encoding"
	"reflect"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/guregu/dynamo/v2"
)

// The SDK's attributevalue.Marshaler and Unmarshaler, which guregu/dynamo supports too.
type (
	awsMarshaler interface {
		MarshalDynamoDBAttributeValue() (types.AttributeValue, error)
	}
	awsUnmarshaler interface {
		UnmarshalDynamoDBAttributeValue(av types.AttributeValue) error
	}
	zeroer interface{ IsZero() bool }
)

func implements[I any](t reflect.Type) bool { return t.Implements(reflect.TypeFor[I]()) }

func isTime(t reflect.Type) bool { return t == reflect.TypeFor[time.Time]() }

// isValue reports whether t is types.AttributeValue or one of its implementations.
func isValue(t reflect.Type) bool {
	av := reflect.TypeFor[types.AttributeValue]()
	return t == av || t.Kind() == reflect.Pointer && t.Elem().PkgPath() == av.PkgPath() && t.Implements(av)
}

// encodesItself reports whether t or *t has a method that encodes it as one value.
func encodesItself(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return implements[dynamo.Marshaler](p) || implements[awsMarshaler](p) || implements[encoding.TextMarshaler](p)
}

type zeroFunc func(v reflect.Value) bool

// zero returns the test for values that omitempty omits. IsZero decides if the type has it. Otherwise dynamo.Marshaler and
// TextMarshaler are omitted only if they are nil. An empty list or map that is not nil is left to its encoder.
func (c *compiler) zero(t reflect.Type) zeroFunc {
	switch {
	case implements[zeroer](t):
		return func(v reflect.Value) bool { return isNilOf[zeroer](v) || as[zeroer](v).IsZero() }
	case implements[dynamo.Marshaler](t):
		return isNilOf[dynamo.Marshaler]
	case implements[encoding.TextMarshaler](t):
		return isNilOf[encoding.TextMarshaler]
	}
	switch t.Kind() {
	case reflect.Array:
		elem := c.zero(t.Elem())
		return func(v reflect.Value) bool {
			for i := range v.Len() {
				if !elem(v.Index(i)) {
					return false
				}
			}
			return true
		}
	case reflect.Struct:
		return c.zeroStruct(t)
	}
	return reflect.Value.IsZero
}

// zeroStruct returns the test for a struct: all fields that are encoded must be zero.
func (c *compiler) zeroStruct(t reflect.Type) zeroFunc {
	l, err := layoutOf(t)
	if err != nil {
		return reflect.Value.IsZero // the type cannot be encoded anyway
	}
	zeros := make([]zeroFunc, len(l.members))
	for i := range l.members {
		zeros[i] = c.zero(l.members[i].typ)
	}
	return func(v reflect.Value) bool {
		for i := range l.members {
			if fv := l.members[i].of(v); fv.IsValid() && !zeros[i](fv) {
				return false
			}
		}
		return true
	}
}

// isNilOf reports whether v is nil and a method of I must not be called on it. That is so for a nil interface, and for a nil
// pointer if the method has a value receiver. A method with a pointer receiver can be called on nil.
func isNilOf[I any](v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Interface:
		return v.IsNil() || isNilOf[I](v.Elem())
	case reflect.Pointer:
		return v.IsNil() && implements[I](v.Type().Elem())
	}
	return false
}

// as returns v as an interface that its type implements. It does not copy v if v is addressable.
func as[I any](v reflect.Value) I {
	if k := v.Kind(); k != reflect.Pointer && k != reflect.Interface && v.CanAddr() {
		return v.Addr().Interface().(I)
	}
	return v.Interface().(I)
}
