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

var errNesting = fmt.Errorf("%w: nested deeper than %d", ErrInvalid, maxNesting)

// checkValue refuses nil in place of values, and text that is not valid UTF-8: it would be sent with replacement characters. It also refuses
// more levels than DynamoDB holds, so it comes to an end with a value that contains itself. Errors do not contain the value.
func checkValue(av types.AttributeValue) error { return checkLevel(av, 1) }

func checkLevel(av types.AttributeValue, level int) error {
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
	case *types.AttributeValueMemberB:
		if av.Value == nil { // it would be sent as null
			return fmt.Errorf("%w: a binary value that is nil", ErrInvalid)
		}
	case *types.AttributeValueMemberBS:
		if slices.ContainsFunc(av.Value, func(b []byte) bool { return b == nil }) { // as above
			return fmt.Errorf("%w: a set with an element that is nil", ErrInvalid)
		}
	case *types.AttributeValueMemberL:
		if level == maxNesting {
			return errNesting
		}
		for _, v := range av.Value {
			if err := checkLevel(v, level+1); err != nil {
				return err
			}
		}
	case *types.AttributeValueMemberM:
		if level == maxNesting {
			return errNesting
		}
		return checkAttributes(av.Value, level+1)
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
func checkItem(item Item) error { return checkAttributes(item, 1) }

func checkAttributes(item Item, level int) error {
	for name, v := range item {
		if !utf8.ValidString(name) {
			return fmt.Errorf("%w: an attribute name that is not valid UTF-8", ErrInvalid)
		}
		if err := checkLevel(v, level); err != nil {
			return fmt.Errorf("attribute %q: %w", name, err)
		}
	}
	return nil
}
