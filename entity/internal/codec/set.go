package codec

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// elements iterates over the elements of a set: those of a slice, or the keys of a map whose value is truth.
type elements struct {
	isMap bool
	truth reflect.Value // for maps, the value of an element: true, or an empty struct
}

func (e elements) each(v reflect.Value, f func(reflect.Value) error) error {
	if !e.isMap {
		for i := range v.Len() {
			if err := f(v.Index(i)); err != nil {
				return err
			}
		}
		return nil
	}
	for entries := v.MapRange(); entries.Next(); {
		if e.truth.Kind() == reflect.Bool && !entries.Value().Bool() {
			continue
		}
		if err := f(entries.Key()); err != nil {
			return err
		}
	}
	return nil
}

// truth returns the map value that marks a key as an element of a set, or the invalid value if m cannot be a set.
func truth(m reflect.Type) reflect.Value {
	switch v := m.Elem(); {
	case v.Kind() == reflect.Bool:
		return reflect.ValueOf(true).Convert(v)
	case v.Kind() == reflect.Struct && v.NumField() == 0:
		return reflect.Zero(v)
	}
	return reflect.Value{}
}

// set encodes slices and maps as sets. An empty set is not written, since DynamoDB refuses it.
func (c *compiler) set(t reflect.Type) (encodeFunc, error) {
	var from elements
	var elem reflect.Type
	switch t.Kind() {
	case reflect.Slice:
		elem = t.Elem()
	case reflect.Map:
		elem = t.Key()
		from = elements{isMap: true, truth: truth(t)}
		if !from.truth.IsValid() {
			return nil, fmt.Errorf("unsupported type %s: the values of a set are bool or struct{}", t)
		}
	default:
		return nil, fmt.Errorf("unsupported type %s for a set", t)
	}
	reads := readsText
	if from.isMap {
		reads = readsName
	}
	switch k := elem.Kind(); {
	case isText(elem) && !c.lenient && !reads(elem):
		return nil, fmt.Errorf("unsupported type %s, whose elements could not be read back", t)
	case isText(elem):
		return texts(from, keyText), nil
	case k == reflect.String:
		return texts(from, plainText), nil
	case k >= reflect.Int && k <= reflect.Float64 && k != reflect.Uintptr:
		return numbers(from), nil
	case k == reflect.Slice && elem.Elem().Kind() == reflect.Uint8:
		return binaries(from, reflect.Value.Bytes), nil
	case k == reflect.Array && from.isMap && elem.Elem().Kind() == reflect.Uint8:
		return binaries(from, bytesOf), nil
	}
	return nil, fmt.Errorf("unsupported type %s for a set", t)
}

func texts(from elements, text func(reflect.Value) (string, error)) encodeFunc {
	return func(v reflect.Value, fl flags, _ int) (types.AttributeValue, error) {
		list := make([]string, 0, v.Len())
		err := from.each(v, func(v reflect.Value) error {
			s, err := text(v)
			if err == nil && (s != "" || fl&omitEmptyElem == 0) {
				list = append(list, s)
			}
			return err
		})
		if err != nil || len(list) == 0 {
			return nil, err
		}
		if from.isMap {
			slices.Sort(list)
		}
		return &types.AttributeValueMemberSS{Value: list}, nil
	}
}

func numbers(from elements) encodeFunc {
	return func(v reflect.Value, fl flags, _ int) (types.AttributeValue, error) {
		list := make([]string, 0, v.Len())
		err := from.each(v, func(v reflect.Value) error {
			if fl&omitEmptyElem != 0 && (v.CanFloat() && v.Float() == 0 || v.IsZero()) {
				return nil
			}
			n, err := formatNumber(v)
			list = append(list, n)
			return err
		})
		if err != nil || len(list) == 0 {
			return nil, err
		}
		if from.isMap {
			slices.Sort(list)
		}
		return &types.AttributeValueMemberNS{Value: list}, nil
	}
}

func binaries(from elements, content func(reflect.Value) []byte) encodeFunc {
	return func(v reflect.Value, fl flags, _ int) (types.AttributeValue, error) {
		list := make([][]byte, 0, v.Len())
		_ = from.each(v, func(v reflect.Value) error {
			if b := content(v); len(b) > 0 || fl&omitEmptyElem == 0 {
				list = append(list, b)
			}
			return nil
		})
		if len(list) == 0 {
			return nil, nil
		}
		if from.isMap {
			slices.SortFunc(list, bytes.Compare)
		}
		return &types.AttributeValueMemberBS{Value: list}, nil
	}
}
