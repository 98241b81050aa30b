package table

import (
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mortise-go/mortise/internal/attrvalue"
)

// errNotText reports a string with invalid bytes. JSON replaces these, so the string would not be read as it was written.
var errNotText = fmt.Errorf("%w: a string that is not valid UTF-8", ErrInvalid)

// checkValue refuses nil in place of values, and text that is not valid UTF-8: it would be sent with replacement characters. Errors do
// not contain the value.
func checkValue(av types.AttributeValue) error {
	if attrvalue.IsNil(av) {
		return fmt.Errorf("%w: a value that is nil", ErrInvalid)
	}
	switch av := av.(type) {
	case *types.AttributeValueMemberS:
		return checkText(av.Value)
	case *types.AttributeValueMemberN:
		return checkText(av.Value)
	case *types.AttributeValueMemberSS:
		return checkText(av.Value...)
	case *types.AttributeValueMemberNS:
		return checkText(av.Value...)
	case *types.AttributeValueMemberBS:
		if slices.ContainsFunc(av.Value, func(b []byte) bool { return b == nil }) { // it would be sent as null
			return fmt.Errorf("%w: a set with an element that is nil", ErrInvalid)
		}
	case *types.AttributeValueMemberL:
		for _, v := range av.Value {
			if err := checkValue(v); err != nil {
				return err
			}
		}
	case *types.AttributeValueMemberM:
		return checkItem(av.Value)
	}
	return nil
}

func checkText(list ...string) error {
	for _, s := range list {
		if !utf8.ValidString(s) {
			return errNotText
		}
	}
	return nil
}

// checkItem checks the attribute names and the values of an item.
func checkItem(item Item) error {
	for name, v := range item {
		if !utf8.ValidString(name) {
			return fmt.Errorf("%w: an attribute name that is not valid UTF-8", ErrInvalid)
		}
		if err := checkValue(v); err != nil {
			return fmt.Errorf("attribute %q: %w", name, err)
		}
	}
	return nil
}
