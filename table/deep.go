package table

import (
	"encoding"
	"errors"
	"reflect"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/guregu/dynamo/v2"
)

// maxHops is how many pointers, interfaces, lists, maps and structs an encoded value can have in one another. It is far more than DynamoDB
// holds, and far less than the stack.
const maxHops = 1000

var errEndless = errors.New("it contains itself, or is nested too deeply")

// endless reports whether v has more than hops values in one another. The encoder would follow a value that contains itself until the stack
// overflows, which ends the process. endless goes where the encoder goes: not into values that encode themselves, nor into fields that are
// left out.
func endless(v reflect.Value, hops int) bool {
	if !v.IsValid() || encodesItself(v.Type()) {
		return false
	}
	if hops == 0 {
		return true
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		return endless(v.Elem(), hops-1)
	case reflect.Slice, reflect.Array:
		if !nests(v.Type().Elem()) {
			return false
		}
		for i := range v.Len() {
			if endless(v.Index(i), hops-1) {
				return true
			}
		}
	case reflect.Map:
		if !nests(v.Type().Elem()) {
			return false
		}
		for entries := v.MapRange(); entries.Next(); {
			if endless(entries.Value(), hops-1) {
				return true
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Type().Field(i)
			if (f.IsExported() || f.Anonymous) && f.Tag.Get("dynamo") != "-" && endless(v.Field(i), hops-1) {
				return true
			}
		}
	}
	return false
}

// nests reports whether values of a type can have others in them. Most lists are of numbers or texts, and are not looked through.
func nests(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Pointer, reflect.Interface, reflect.Slice, reflect.Array, reflect.Map, reflect.Struct:
		return true
	}
	return false
}

// encodesItself reports whether the encoder calls a method of a type.
func encodesItself(t reflect.Type) bool {
	return t.Implements(reflect.TypeFor[dynamo.Marshaler]()) || t.Implements(reflect.TypeFor[encoding.TextMarshaler]()) ||
		t.Implements(reflect.TypeFor[interface {
			MarshalDynamoDBAttributeValue() (types.AttributeValue, error)
		}]())
}
