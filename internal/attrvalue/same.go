package attrvalue

import (
	"bytes"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// SameItem is [Same] for items.
func SameItem(a, b map[string]types.AttributeValue) bool {
	return maps.EqualFunc(a, b, Same)
}

// Same reports whether two values are equal as DynamoDB compares them: numbers by value, sets without order. Nil, which stands for no
// attribute, equals only nil. Same panics if a value contains a nil pointer ([HasNil]), which no value of DynamoDB's does.
func Same(a, b types.AttributeValue) bool {
	switch a := a.(type) {
	case *types.AttributeValueMemberS:
		b, ok := b.(*types.AttributeValueMemberS)
		return ok && a.Value == b.Value
	case *types.AttributeValueMemberN:
		b, ok := b.(*types.AttributeValueMemberN)
		return ok && sameNumber(a.Value, b.Value)
	case *types.AttributeValueMemberB:
		b, ok := b.(*types.AttributeValueMemberB)
		return ok && bytes.Equal(a.Value, b.Value)
	case *types.AttributeValueMemberBOOL:
		b, ok := b.(*types.AttributeValueMemberBOOL)
		return ok && a.Value == b.Value
	case *types.AttributeValueMemberNULL:
		_, ok := b.(*types.AttributeValueMemberNULL)
		return ok
	case *types.AttributeValueMemberM:
		b, ok := b.(*types.AttributeValueMemberM)
		return ok && SameItem(a.Value, b.Value)
	case *types.AttributeValueMemberL:
		b, ok := b.(*types.AttributeValueMemberL)
		return ok && slices.EqualFunc(a.Value, b.Value, Same)
	case *types.AttributeValueMemberSS:
		b, ok := b.(*types.AttributeValueMemberSS)
		return ok && sameSet(a.Value, b.Value, func(s string) string { return s })
	case *types.AttributeValueMemberNS:
		b, ok := b.(*types.AttributeValueMemberNS)
		return ok && sameSet(a.Value, b.Value, numberKey)
	case *types.AttributeValueMemberBS:
		b, ok := b.(*types.AttributeValueMemberBS)
		return ok && sameSet(a.Value, b.Value, func(b []byte) string { return string(b) })
	}
	return a == nil && b == nil
}

// sameSet compares sets by their elements' keys, which are the same for elements that DynamoDB considers equal. Sets can have many
// thousand elements, so it does not compare each with each.
func sameSet[E any](a, b []E, key func(E) string) bool {
	if len(a) != len(b) {
		return false
	}
	left := make(map[string]int, len(b))
	for _, y := range b {
		left[key(y)]++
	}
	for _, x := range a {
		k := key(x)
		if left[k] == 0 {
			return false
		}
		left[k]--
	}
	return true
}

func sameNumber(a, b string) bool { return a == b || numberKey(a) == numberKey(b) }

// numberKey returns a text that is the same for equal numbers. What DynamoDB cannot hold equals only itself.
func numberKey(text string) string {
	same, _, err := measureNumber(text)
	if err != nil {
		return "? " + text
	}
	return same
}
