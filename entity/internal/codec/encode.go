package codec

import (
	"encoding"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/guregu/dynamo/v2"

	"github.com/mortise-go/mortise/internal/attrvalue"
)

// encodeFunc returns the attribute value of v, or nil to write nothing. depth is the number of lists and maps around v. fl
// are the flags for which the encoder was compiled. For an element of a list, they also contain the flags of the list.
type encodeFunc func(v reflect.Value, fl flags, depth int) (types.AttributeValue, error)

func (c *compiler) encoder(t reflect.Type, fl flags) (encodeFunc, error) {
	key := encoderKey{t, fl}
	if have, ok := c.encoders[key]; ok {
		return func(v reflect.Value, fl flags, depth int) (types.AttributeValue, error) { return (*have)(v, fl, depth) }, nil
	}
	if c.encoders == nil {
		c.encoders = map[encoderKey]*encodeFunc{}
	}
	slot := new(encodeFunc)
	c.encoders[key] = slot
	enc, err := c.newEncoder(t, fl)
	if err != nil {
		delete(c.encoders, key) // report the next field of this type as well
		return nil, err
	}
	*slot = enc
	return enc, nil
}

func (c *compiler) newEncoder(t reflect.Type, fl flags) (encodeFunc, error) {
	switch {
	case isValue(t):
		return encodeValue, nil
	case t == reflect.TypeFor[types.AttributeValueMemberM]() && !c.lenient: // it is written as a map, and a map is read as its content
		return nil, fmt.Errorf("%s is an attribute value only as a pointer", t)
	case fl&unixTime != 0 && isTime(t):
		return encodeUnix, nil
	case t.Kind() == reflect.Pointer && isTime(t.Elem()):
		return c.pointer(t, fl)
	case isTime(t):
		return encodeTime, nil
	}
	way := methodOf(t)
	if by := decodedBy(reflect.PointerTo(t)); !c.lenient && way == noMethod && (by == byDynamo || by == byAWS) {
		return (&compiler{lenient: true}).encoder(t, fl) // its own method reads what is in it
	}
	if !c.lenient && (t.Kind() == reflect.Interface && t.NumMethod() > 0 || way == byText && !readsText(t)) {
		return nil, fmt.Errorf("unsupported type %s, which could not be read back", t)
	}
	switch way {
	case byDynamo:
		return custom(func(m dynamo.Marshaler, _ flags) (types.AttributeValue, error) { return m.MarshalDynamo() }), nil
	case byAWS:
		return custom(func(m awsMarshaler, _ flags) (types.AttributeValue, error) { return m.MarshalDynamoDBAttributeValue() }), nil
	case byText:
		return custom(encodeText), nil
	}
	switch t.Kind() {
	case reflect.Pointer:
		return c.pointer(t, fl)
	case reflect.Bool:
		return encodeBool, nil
	case reflect.Int, reflect.Int64, reflect.Int32, reflect.Int16, reflect.Int8,
		reflect.Uint, reflect.Uint64, reflect.Uint32, reflect.Uint16, reflect.Uint8,
		reflect.Float64, reflect.Float32:
		return encodeNumber, nil
	case reflect.String:
		return encodeString, nil
	case reflect.Slice, reflect.Array:
		switch {
		case t.Elem().Kind() == reflect.Uint8:
			return encodeBytes, nil
		case fl&asSet != 0:
			return c.set(t)
		}
		return c.list(t, fl)
	case reflect.Map:
		if fl&asSet != 0 {
			return c.set(t)
		}
		return c.document(t, fl)
	case reflect.Struct:
		return c.structure(t)
	case reflect.Interface:
		if t.NumMethod() == 0 {
			return encodeAny, nil
		}
	}
	return nil, fmt.Errorf("unsupported type %s", t)
}

func null() types.AttributeValue { return &types.AttributeValueMemberNULL{Value: true} }

// nothing returns the encoding of a nil value: NULL if the tag has null, otherwise nothing.
func nothing(fl flags) types.AttributeValue {
	if fl&asNull != 0 {
		return null()
	}
	return nil
}

func encodeValue(v reflect.Value, fl flags, _ int) (types.AttributeValue, error) {
	if v.IsNil() || v.Kind() == reflect.Interface && v.Elem().Kind() == reflect.Pointer && v.Elem().IsNil() {
		return nothing(fl), nil
	}
	return v.Interface().(types.AttributeValue), nil
}

func custom[I any](encode func(I, flags) (types.AttributeValue, error)) encodeFunc {
	return func(v reflect.Value, fl flags, _ int) (types.AttributeValue, error) {
		if isNil(v) {
			return nothing(fl), nil
		}
		return encode(as[I](v), fl)
	}
}

func encodeText(m encoding.TextMarshaler, fl flags) (types.AttributeValue, error) {
	text, err := m.MarshalText()
	if err != nil || len(text) == 0 && fl&allowEmpty == 0 {
		return nil, err
	}
	return &types.AttributeValueMemberS{Value: string(text)}, nil
}

func encodeTime(v reflect.Value, _ flags, _ int) (types.AttributeValue, error) {
	var buf [len(time.RFC3339Nano)]byte
	text, err := attrvalue.Moment(*timeOf(v)).AppendText(buf[:0])
	if err != nil {
		return nil, err
	}
	return &types.AttributeValueMemberS{Value: string(text)}, nil
}

func encodeUnix(v reflect.Value, _ flags, _ int) (types.AttributeValue, error) {
	at := timeOf(v)
	if at.IsZero() {
		return nil, nil
	}
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(at.Unix(), 10)}, nil
}

func timeOf(v reflect.Value) *time.Time {
	if v.CanAddr() {
		return v.Addr().Interface().(*time.Time)
	}
	at := v.Interface().(time.Time)
	return &at
}

func encodeBool(v reflect.Value, _ flags, _ int) (types.AttributeValue, error) {
	return &types.AttributeValueMemberBOOL{Value: v.Bool()}, nil
}

func encodeNumber(v reflect.Value, _ flags, _ int) (types.AttributeValue, error) {
	n, err := formatNumber(v)
	if err != nil {
		return nil, err
	}
	return &types.AttributeValueMemberN{Value: n}, nil
}

func formatNumber(v reflect.Value) (string, error) {
	switch {
	case v.CanInt():
		return strconv.FormatInt(v.Int(), 10), nil
	case v.CanUint():
		return strconv.FormatUint(v.Uint(), 10), nil
	}
	f := v.Float()
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return "", fmt.Errorf("%w: not finite", ErrRange)
	}
	return strconv.FormatFloat(f, 'f', -1, 64), nil
}

func encodeString(v reflect.Value, fl flags, _ int) (types.AttributeValue, error) {
	if s := v.String(); s != "" || fl&allowEmpty != 0 {
		return &types.AttributeValueMemberS{Value: s}, nil
	}
	return nothing(fl), nil
}

// encodeBytes treats an array of zeros as empty. For an array, the tag null takes precedence over allowempty.
func encodeBytes(v reflect.Value, fl flags, _ int) (types.AttributeValue, error) {
	if v.Kind() == reflect.Array {
		switch {
		case !v.IsZero():
			return &types.AttributeValueMemberB{Value: bytesOf(v)}, nil
		case fl&asNull == 0 && fl&allowEmpty != 0:
			return &types.AttributeValueMemberB{Value: []byte{}}, nil
		}
		return nothing(fl), nil
	}
	switch {
	case v.IsNil():
		return nothing(fl), nil
	case v.Len() == 0 && fl&allowEmpty == 0:
		return nil, nil
	}
	return &types.AttributeValueMemberB{Value: v.Bytes()}, nil
}

// bytesOf copies an array of bytes.
func bytesOf(array reflect.Value) []byte {
	b := make([]byte, array.Len())
	for i := range b {
		b[i] = byte(array.Index(i).Uint())
	}
	return b
}

func (c *compiler) pointer(t reflect.Type, fl flags) (encodeFunc, error) {
	elem, err := c.encoder(t.Elem(), fl)
	if err != nil {
		return nil, err
	}
	return func(v reflect.Value, fl flags, depth int) (types.AttributeValue, error) {
		if v.IsNil() {
			return nothing(fl), nil
		}
		return elem(v.Elem(), fl, depth)
	}, nil
}

// list encodes a list. Elements keep their positions: an element without a value is written as empty or NULL, unless
// the tag has omitemptyelem. In an array, which is read by positions, NULL then stands for an omitted element: not each type
// reads an empty text.
func (c *compiler) list(t reflect.Type, fl flags) (encodeFunc, error) {
	var sub flags
	if fl&omitEmptyElem == 0 {
		sub |= allowEmpty | asNull
	}
	sub |= fl & allowEmptyElem
	elem, err := c.encoder(t.Elem(), sub)
	if err != nil {
		return nil, err
	}
	return func(v reflect.Value, fl flags, depth int) (types.AttributeValue, error) {
		if depth >= MaxDepth {
			return nil, ErrDepth
		}
		list := make([]types.AttributeValue, 0, v.Len())
		for i := range v.Len() {
			av, err := elem(v.Index(i), fl|sub, depth+1)
			switch {
			case err != nil:
				return nil, err
			case av != nil:
				list = append(list, av)
			case fl&omitEmptyElem == 0 || t.Kind() == reflect.Array:
				list = append(list, null())
			}
		}
		if fl&omitEmpty != 0 && len(list) == 0 {
			return nil, nil
		}
		return &types.AttributeValueMemberL{Value: list}, nil
	}, nil
}

// document encodes a Go map as a DynamoDB map.
func (c *compiler) document(t reflect.Type, fl flags) (encodeFunc, error) {
	name := keyText
	if !isText(t.Key()) {
		if t.Key().Kind() != reflect.String {
			return nil, fmt.Errorf("unsupported type %s: keys have to be strings or encoding.TextMarshaler", t)
		}
		name = plainText
	} else if !c.lenient && !readsName(t.Key()) {
		return nil, fmt.Errorf("unsupported type %s, whose keys could not be read back", t)
	}
	var sub flags
	if fl&allowEmptyElem != 0 {
		sub = allowEmpty | asNull | allowEmptyElem
	} else if fl&omitEmptyElem != 0 {
		sub = omitEmpty
	}
	elem, err := c.encoder(t.Elem(), sub)
	if err != nil {
		return nil, err
	}
	return func(v reflect.Value, fl flags, depth int) (types.AttributeValue, error) {
		switch {
		case depth >= MaxDepth:
			return nil, ErrDepth
		case v.IsNil() && fl&allowEmpty == 0:
			return nothing(fl), nil
		case v.IsNil():
			return &types.AttributeValueMemberM{Value: Item{}}, nil
		}
		m := make(Item, v.Len())
		for entries := v.MapRange(); entries.Next(); {
			av, err := elem(entries.Value(), sub, depth+1)
			if err != nil {
				return nil, err
			}
			if av == nil {
				continue
			}
			name, err := name(entries.Key())
			if err != nil {
				return nil, err
			}
			if m[name] != nil {
				return nil, fmt.Errorf("%w: two keys of a %s have the same text", ErrKind, t)
			}
			m[name] = av
		}
		if fl&omitEmpty != 0 && len(m) == 0 {
			return nil, nil
		}
		return &types.AttributeValueMemberM{Value: m}, nil
	}, nil
}

func plainText(v reflect.Value) (string, error) { return v.String(), nil }

// keyText returns the text of a map key or of an element of a set, from its MarshalText method.
func keyText(v reflect.Value) (string, error) {
	if isNil(v) {
		return "", fmt.Errorf("%w: nil as a key or in a set", ErrKind)
	}
	m := as[encoding.TextMarshaler](v)
	switch at := m.(type) {
	case time.Time:
		m = attrvalue.Moment(at)
	case *time.Time:
		m = attrvalue.Moment(*at)
	}
	text, err := m.MarshalText()
	return string(text), err
}

func (c *compiler) structure(t reflect.Type) (encodeFunc, error) {
	l, err := layoutOf(t)
	if err != nil {
		return nil, err
	}
	fields, err := c.fields(l)
	if err != nil {
		return nil, err
	}
	return func(v reflect.Value, _ flags, depth int) (types.AttributeValue, error) {
		if depth >= MaxDepth {
			return nil, ErrDepth
		}
		if l.opaque() && !v.IsZero() {
			return nil, fmt.Errorf("%w: nothing of a %s is exported", ErrKind, t)
		}
		m := make(Item, len(fields))
		for _, f := range fields {
			fv := f.of(v)
			if !fv.IsValid() {
				continue
			}
			av, err := f.encodeAt(fv, depth+1)
			if err != nil {
				return nil, err
			}
			if av != nil {
				m[f.name] = av
			}
		}
		return &types.AttributeValueMemberM{Value: m}, nil
	}, nil
}

// encodeAny encodes the value in an interface, whose type is known only now. Pointers and interfaces do not add to depth,
// so encodeAny counts them itself to detect a cycle.
func encodeAny(v reflect.Value, fl flags, depth int) (types.AttributeValue, error) {
	if v.IsNil() {
		return nothing(fl), nil
	}
	hops := 0
	for at := v.Elem(); (at.Kind() == reflect.Pointer || at.Kind() == reflect.Interface) && !at.IsNil(); at = at.Elem() {
		if hops++; hops > MaxDepth {
			return nil, ErrDepth
		}
	}
	enc, err := (&compiler{lenient: true}).newEncoder(v.Elem().Type(), fl)
	if err != nil {
		return nil, err
	}
	return enc(v.Elem(), fl, depth)
}
