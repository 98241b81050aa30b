package codec

import (
	"encoding"
	"fmt"
	"reflect"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// sliceDecoder accepts lists, sets and, for slices of bytes, binaries.
func (c *compiler) sliceDecoder(t reflect.Type) decodeFunc {
	elem := c.decoder(t.Elem())
	return func(av types.AttributeValue, v reflect.Value, depth int) error {
		if b, ok := av.(*types.AttributeValueMemberB); ok && b != nil && t.Elem().Kind() == reflect.Uint8 {
			v.SetBytes(b.Value)
			return nil
		}
		n, at, err := members(av, depth)
		if err != nil {
			return fmt.Errorf("%w for %s", err, t)
		}
		v.Set(reflect.MakeSlice(t, n, n))
		for i := range n {
			if err := decode(elem, at(i), v.Index(i), depth+1); err != nil {
				return err
			}
		}
		return nil
	}
}

// members returns the number of elements of a list or set, and a function that returns an element as an attribute value.
func members(av types.AttributeValue, depth int) (n int, at func(int) types.AttributeValue, err error) {
	switch av := av.(type) {
	case *types.AttributeValueMemberL:
		if av == nil {
			break
		}
		if depth >= MaxDepth {
			return 0, nil, ErrDepth
		}
		return len(av.Value), func(i int) types.AttributeValue { return av.Value[i] }, nil
	case *types.AttributeValueMemberSS:
		if av != nil {
			return len(av.Value), func(i int) types.AttributeValue { return &types.AttributeValueMemberS{Value: av.Value[i]} }, nil
		}
	case *types.AttributeValueMemberNS:
		if av != nil {
			return len(av.Value), func(i int) types.AttributeValue { return &types.AttributeValueMemberN{Value: av.Value[i]} }, nil
		}
	case *types.AttributeValueMemberBS:
		if av != nil {
			return len(av.Value), func(i int) types.AttributeValue { return &types.AttributeValueMemberB{Value: av.Value[i]} }, nil
		}
	}
	return 0, nil, fmt.Errorf("%w: %s", ErrKind, kind(av))
}

// arrayDecoder accepts a value that is not longer than the array. The remaining elements stay zero.
func (c *compiler) arrayDecoder(t reflect.Type) decodeFunc {
	elem := c.decoder(t.Elem())
	return func(av types.AttributeValue, v reflect.Value, depth int) error {
		switch av := av.(type) {
		case *types.AttributeValueMemberB:
			if av != nil && t.Elem().Kind() == reflect.Uint8 {
				return setArray(v, av.Value)
			}
		case *types.AttributeValueMemberL:
			switch {
			case av == nil:
				return mismatch(av, v)
			case depth >= MaxDepth:
				return ErrDepth
			case len(av.Value) > t.Len():
				return fmt.Errorf("%w: %d elements for %s", ErrRange, len(av.Value), t)
			}
			for i, e := range av.Value {
				if err := decode(elem, e, v.Index(i), depth+1); err != nil {
					return err
				}
			}
			return nil
		}
		return mismatch(av, v)
	}
}

func setArray(v reflect.Value, b []byte) error {
	if len(b) > v.Len() {
		return fmt.Errorf("%w: %d bytes for %s", ErrRange, len(b), v.Type())
	}
	for i, x := range b {
		v.Index(i).SetUint(uint64(x))
	}
	return nil
}

// mapDecoder accepts maps and, if the map type can be a set, sets.
func (c *compiler) mapDecoder(t reflect.Type) decodeFunc {
	elem, key := c.decoder(t.Elem()), c.decoder(t.Key())
	isSet := truth(t)
	named := nameDecoder(t.Key())
	return func(av types.AttributeValue, v reflect.Value, depth int) error {
		if m, ok := av.(*types.AttributeValueMemberM); ok && m != nil {
			if depth >= MaxDepth {
				return ErrDepth
			}
			v.Set(reflect.MakeMapWithSize(t, len(m.Value)))
			k, x := reflect.New(t.Key()).Elem(), reflect.New(t.Elem()).Elem() // copied into the map
			for name, e := range m.Value {
				k.SetZero()
				x.SetZero()
				if err := named(name, k); err != nil {
					return err
				}
				if err := decode(elem, e, x, depth+1); err != nil {
					return err
				}
				v.SetMapIndex(k, x)
			}
			return nil
		}
		if _, isList := av.(*types.AttributeValueMemberL); isList || !isSet.IsValid() {
			return mismatch(av, v)
		}
		n, at, err := members(av, depth)
		if err != nil {
			return fmt.Errorf("%w for %s", err, t)
		}
		v.Set(reflect.MakeMapWithSize(t, n))
		for i := range n {
			k := reflect.New(t.Key()).Elem()
			switch e := at(i).(type) {
			case *types.AttributeValueMemberS:
				err = named(e.Value, k)
			case *types.AttributeValueMemberB:
				err = setKey(k, e.Value)
			default:
				err = key(e, k, depth)
			}
			if err != nil {
				return err
			}
			v.SetMapIndex(k, isSet)
		}
		return nil
	}
}

// setKey sets a map key from a binary. The key must be an array of bytes of the same length.
func setKey(k reflect.Value, b []byte) error {
	switch {
	case k.Kind() != reflect.Array || k.Type().Elem().Kind() != reflect.Uint8:
		return fmt.Errorf("%w: binary for %s", ErrKind, k.Type())
	case k.Len() != len(b):
		return fmt.Errorf("%w: %d bytes for %s", ErrRange, len(b), k.Type())
	}
	return setArray(k, b)
}

// nameDecoder returns the function that sets a map key from a name in a DynamoDB map, or from text in a string set.
func nameDecoder(t reflect.Type) func(name string, k reflect.Value) error {
	switch {
	case implements[encoding.TextUnmarshaler](reflect.PointerTo(t)):
		return func(name string, k reflect.Value) error {
			return k.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(name))
		}
	case t.Kind() == reflect.String:
		return func(name string, k reflect.Value) error {
			k.SetString(name)
			return nil
		}
	}
	return func(string, reflect.Value) error { return fmt.Errorf("%w: a name for %s", ErrKind, t) }
}

func (c *compiler) structDecoder(t reflect.Type) decodeFunc {
	l, err := layoutOf(t)
	if err != nil {
		return func(types.AttributeValue, reflect.Value, int) error { return err }
	}
	decoders := make([]decodeFunc, len(l.members))
	for i := range l.members {
		decoders[i] = c.decoder(l.members[i].typ)
	}
	return func(av types.AttributeValue, v reflect.Value, depth int) error {
		m, _ := av.(*types.AttributeValueMemberM)
		switch {
		case m == nil:
			return mismatch(av, v)
		case depth >= MaxDepth:
			return ErrDepth
		}
		allocate(l.embedded, v)
		for i := range l.members {
			e := m.Value[l.members[i].name]
			if e == nil {
				continue
			}
			if fv := l.members[i].of(v); fv.IsValid() {
				if err := decode(decoders[i], e, fv, depth+1); err != nil {
					return err
				}
			}
		}
		return nil
	}
}
