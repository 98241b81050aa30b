package attrvalue

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Limits of values. Source: Developer Guide, "Quotas in Amazon DynamoDB".
const (
	maxDepth  = 32   // levels of nested values in an item; the last one has no lists and maps
	maxDigits = 38   // significant digits of a number
	leastExp  = -130 // decimal exponent of a number's first digit
	mostExp   = 125
	maxName   = 65535 // bytes of an attribute's name, also of one in a map
)

// MaxItem is the maximum size of an item in bytes.
const MaxItem = 400 << 10

var errDeep = fmt.Errorf("lists and maps more than %d deep", maxDepth-1)

// Size returns the size of an attribute's value in bytes, as DynamoDB counts it. It refuses values that DynamoDB would refuse, unless
// table.Encode has refused them before. Errors do not quote the value.
//
// Source: Developer Guide, "DynamoDB item sizes and formats".
func Size(av types.AttributeValue) (int, error) { return measure(av, 1) }

// ItemSize returns the size of an item: the sizes of its names and values. It refuses names and values as [Size] does, but not an item
// that is larger than [MaxItem].
func ItemSize(item map[string]types.AttributeValue) (size int, err error) {
	for name, av := range item {
		if err := checkName(name); err != nil {
			return 0, err
		}
		n, err := Size(av)
		if err != nil {
			return 0, err
		}
		size += len(name) + n
	}
	return size, nil
}

func measure(av types.AttributeValue, depth int) (size int, err error) {
	switch av := av.(type) {
	case *types.AttributeValueMemberS:
		return len(av.Value), nil
	case *types.AttributeValueMemberB:
		return len(av.Value), nil
	case *types.AttributeValueMemberN:
		_, size, err := measureNumber(av.Value)
		return size, err
	case *types.AttributeValueMemberBOOL:
		return 1, nil
	case *types.AttributeValueMemberNULL:
		if !av.Value {
			return 0, errors.New("a null that is false")
		}
		return 1, nil
	case *types.AttributeValueMemberSS:
		return measureSet(av.Value, func(s string) (string, int, error) { return s, len(s), nil })
	case *types.AttributeValueMemberBS:
		return measureSet(av.Value, func(b []byte) (string, int, error) { return string(b), len(b), nil })
	case *types.AttributeValueMemberNS:
		return measureSet(av.Value, measureNumber)
	case *types.AttributeValueMemberL:
		if depth == maxDepth {
			return 0, errDeep
		}
		size = 3
		for _, e := range av.Value {
			n, err := measure(e, depth+1)
			if err != nil {
				return 0, err
			}
			size += n + 1
		}
		return size, nil
	case *types.AttributeValueMemberM:
		if depth == maxDepth {
			return 0, errDeep
		}
		size = 3
		for name, e := range av.Value {
			n, err := measure(e, depth+1)
			if err != nil {
				return 0, err
			}
			if err := checkName(name); err != nil {
				return 0, err
			}
			size += len(name) + n + 1
		}
		return size, nil
	}
	return 0, fmt.Errorf("a value of the unknown type %T", av)
}

func checkName(name string) error {
	switch {
	case name == "":
		return errors.New("a name that is empty")
	case len(name) > maxName:
		return fmt.Errorf("a name of more than %d bytes", maxName)
	case !utf8.ValidString(name):
		return errors.New("a name that is not valid UTF-8")
	}
	return nil
}

// measureSet refuses empty sets and duplicate elements. measured returns the same text (same) for elements that DynamoDB considers
// equal.
func measureSet[E any](list []E, measured func(E) (same string, size int, err error)) (size int, err error) {
	if len(list) == 0 {
		return 0, errors.New("an empty set")
	}
	seen := make(map[string]bool, len(list))
	for _, e := range list {
		same, n, err := measured(e)
		if err != nil {
			return 0, err
		}
		if seen[same] {
			return 0, errors.New("a set with an element that is there twice")
		}
		seen[same] = true
		size += n
	}
	return size, nil
}

// measureNumber returns a text that is the same for equal numbers, and the size: one byte for each pair of significant digits, counted
// from the decimal point, plus one, and one for a minus sign.
func measureNumber(text string) (same string, size int, err error) {
	errNumber := errors.New("a number that DynamoDB cannot hold")
	rest, negative := strings.CutPrefix(text, "-")
	if !negative {
		rest = strings.TrimPrefix(rest, "+")
	}
	exp := 0
	if at := strings.IndexAny(rest, "eE"); at >= 0 {
		if exp, err = strconv.Atoi(rest[at+1:]); err != nil || max(exp, -exp) > 1000 {
			return "", 0, errNumber
		}
		rest = rest[:at]
	}
	whole, fraction, _ := strings.Cut(rest, ".")
	digits := whole + fraction
	if digits == "" || strings.Trim(digits, "0123456789") != "" {
		return "", 0, errNumber
	}
	significant := strings.TrimLeft(digits, "0")
	point := len(whole) - (len(digits) - len(significant)) + exp // number of significant digits before it; negative: zeros after it
	significant = strings.TrimRight(significant, "0")
	first := point - 1
	if significant == "" {
		first = exp // DynamoDB checks the exponent of a zero as it is written
	}
	if len(significant) > maxDigits || first < leastExp || first > mostExp {
		return "", 0, errNumber
	}
	if significant == "" {
		return "0", 1, nil
	}
	length := len(significant)
	if point&1 != 0 { // the first pair has only one digit
		length++
	}
	size = (length+1)/2 + 1
	if negative {
		size++
	}
	return fmt.Sprintf("%t %s %d", negative, significant, point), size, nil
}
