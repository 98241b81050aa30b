package codec

import (
	"fmt"
	"reflect"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mortise-go/mortise/internal/attrvalue"
)

// decodeAny sets an interface to a string, float64, bool, []byte, []any or map[string]any; for a set, to a slice of its type.
func decodeAny(av types.AttributeValue, v reflect.Value, depth int) error {
	x, err := plain(av, depth)
	if err == nil && x != nil {
		v.Set(reflect.ValueOf(x))
	}
	return err
}

func plain(av types.AttributeValue, depth int) (any, error) {
	if attrvalue.IsNil(av) {
		return nil, fmt.Errorf("%w: nil", ErrKind)
	}
	switch av := av.(type) {
	case *types.AttributeValueMemberS:
		return av.Value, nil
	case *types.AttributeValueMemberN:
		return parseFloat(av.Value)
	case *types.AttributeValueMemberBOOL:
		return av.Value, nil
	case *types.AttributeValueMemberB:
		return av.Value, nil
	case *types.AttributeValueMemberSS:
		return av.Value, nil
	case *types.AttributeValueMemberBS:
		return av.Value, nil
	case *types.AttributeValueMemberNULL:
		return nil, nil
	case *types.AttributeValueMemberNS:
		set := make([]float64, len(av.Value))
		for i, n := range av.Value {
			var err error
			if set[i], err = parseFloat(n); err != nil {
				return nil, err
			}
		}
		return set, nil
	case *types.AttributeValueMemberL:
		if depth >= MaxDepth {
			return nil, ErrDepth
		}
		list := make([]any, len(av.Value))
		for i, e := range av.Value {
			var err error
			if list[i], err = plain(e, depth+1); err != nil {
				return nil, err
			}
		}
		return list, nil
	case *types.AttributeValueMemberM:
		if depth >= MaxDepth {
			return nil, ErrDepth
		}
		m := make(map[string]any, len(av.Value))
		for name, e := range av.Value {
			var err error
			if m[name], err = plain(e, depth+1); err != nil {
				return nil, err
			}
		}
		return m, nil
	}
	return nil, fmt.Errorf("%w: %s", ErrKind, kind(av))
}

func parseFloat(n string) (float64, error) {
	f, err := strconv.ParseFloat(n, 64)
	if err != nil {
		return 0, numberError(err, "a number")
	}
	return f, nil
}

// sound checks that no value within av is nil or too deep.
func sound(av types.AttributeValue, depth int) error {
	if attrvalue.IsNil(av) {
		return fmt.Errorf("%w: nil", ErrKind)
	}
	switch av := av.(type) {
	case *types.AttributeValueMemberL:
		if depth >= MaxDepth {
			return ErrDepth
		}
		for _, e := range av.Value {
			if err := sound(e, depth+1); err != nil {
				return err
			}
		}
	case *types.AttributeValueMemberM:
		if depth >= MaxDepth {
			return ErrDepth
		}
		for _, e := range av.Value {
			if err := sound(e, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}
