package attrvalue

import (
	"reflect"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// IsNil reports whether a value is nil or a nil pointer.
func IsNil(av types.AttributeValue) bool {
	v := reflect.ValueOf(av)
	return !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil()
}

// HasNil reports whether a value, or one inside of it, is nil or a nil pointer. The other functions of this package expect
// that it is not.
func HasNil(av types.AttributeValue) bool {
	if IsNil(av) {
		return true
	}
	switch av := av.(type) {
	case *types.AttributeValueMemberL:
		return slices.ContainsFunc(av.Value, HasNil)
	case *types.AttributeValueMemberM:
		for _, e := range av.Value {
			if HasNil(e) {
				return true
			}
		}
	}
	return false
}
