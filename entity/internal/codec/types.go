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

// method is the way in which a type encodes itself.
type method uint8

const (
	noMethod method = iota
	byDynamo
	byAWS
	byText
)

// methodOf returns the way in which values of t encode themselves. A method with a pointer receiver counts for a value
// too if the value is decoded by its counterpart, which could not read anything else: big.Int has such methods.
func methodOf(t reflect.Type) method {
	switch {
	case implements[dynamo.Marshaler](t):
		return byDynamo
	case implements[awsMarshaler](t):
		return byAWS
	case implements[encoding.TextMarshaler](t):
		return byText
	case t.Kind() == reflect.Pointer || t.Kind() == reflect.Interface:
		return noMethod
	}
	p := reflect.PointerTo(t)
	way, encodes := decodedBy(p), false
	switch way {
	case byDynamo:
		encodes = implements[dynamo.Marshaler](p)
	case byAWS:
		encodes = implements[awsMarshaler](p)
	case byText:
		encodes = implements[encoding.TextMarshaler](p)
	}
	if !encodes {
		return noMethod
	}
	return way
}

// HasMethods reports whether values of t encode themselves.
func HasMethods(t reflect.Type) bool { return methodOf(t) != noMethod }

// decodedBy returns the way in which a value is decoded through p, the pointer to its type.
func decodedBy(p reflect.Type) method {
	switch {
	case implements[dynamo.Unmarshaler](p):
		return byDynamo
	case implements[awsUnmarshaler](p):
		return byAWS
	case implements[encoding.TextUnmarshaler](p):
		return byText
	}
	return noMethod
}

// isText reports whether a value of t writes itself as text where only text can be: as the key of a map and in a set.
func isText(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return implements[encoding.TextMarshaler](t) || implements[encoding.TextMarshaler](p) && implements[encoding.TextUnmarshaler](p)
}

// readsText reports whether a value of t, or what it points to, can be read from text.
func readsText(t reflect.Type) bool {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.Kind() == reflect.String || isTime(t) || decodedBy(reflect.PointerTo(t)) != noMethod
}

// readsName is readsText for the key of a map.
func readsName(t reflect.Type) bool {
	return t.Kind() == reflect.String || implements[encoding.TextUnmarshaler](reflect.PointerTo(t))
}

func isTime(t reflect.Type) bool { return t == reflect.TypeFor[time.Time]() }

// isValue reports whether t is types.AttributeValue or one of its implementations.
func isValue(t reflect.Type) bool {
	av := reflect.TypeFor[types.AttributeValue]()
	return t == av || t.Kind() == reflect.Pointer && t.Elem().PkgPath() == av.PkgPath() && t.Implements(av)
}

// EncodesItself reports whether t or *t has a method that encodes it as one value.
func EncodesItself(t reflect.Type) bool {
	return MakesAttribute(t) || implements[encoding.TextMarshaler](reflect.PointerTo(t))
}

// MakesAttribute reports whether t or *t has a method that makes any attribute value of it, and not just a text.
func MakesAttribute(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return implements[dynamo.Marshaler](p) || implements[awsMarshaler](p)
}

type zeroFunc func(v reflect.Value) bool

// zero returns the test for values that omitempty omits. IsZero decides if the type has it. Otherwise dynamo.Marshaler and
// TextMarshaler are omitted only if they are nil. An empty list or map that is not nil is left to its encoder.
func (c *compiler) zero(t reflect.Type) zeroFunc {
	switch {
	case implements[zeroer](t):
		return func(v reflect.Value) bool { return isNil(v) || as[zeroer](v).IsZero() }
	case implements[dynamo.Marshaler](t), implements[encoding.TextMarshaler](t):
		return isNil
	case !implements[awsMarshaler](t) && methodOf(t) != noMethod: // its data is what its methods make of it
		return isNil
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
	if l.opaque() {
		return reflect.Value.IsZero
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

// isNil reports whether v is a nil pointer or interface. No method is called on nil: many would panic, and what some return
// could not be read back, like the text "<nil>" of a *big.Int.
func isNil(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Interface:
		return v.IsNil() || isNil(v.Elem())
	case reflect.Pointer:
		return v.IsNil()
	}
	return false
}

// as returns v as an interface that its type or the pointer to it implements. It copies v only if it has to: if v is not
// addressable, or if the method has a pointer receiver and so could change v.
func as[I any](v reflect.Value) I {
	switch k := v.Kind(); {
	case k == reflect.Pointer || k == reflect.Interface:
		return v.Interface().(I)
	case !implements[I](v.Type()):
		c := reflect.New(v.Type())
		c.Elem().Set(v)
		return c.Interface().(I)
	case v.CanAddr():
		return v.Addr().Interface().(I)
	}
	return v.Interface().(I)
}
