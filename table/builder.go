package table

import (
	"fmt"
	"reflect"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/guregu/dynamo/v2"
)

// Item is an item as the SDK has it: attribute values by attribute name.
type Item = map[string]types.AttributeValue

// builder writes the expressions of one request. Placeholders are numbered in the order
// of first use, so equal requests have equal bytes.
type builder struct {
	buf    []byte
	names  map[string]string // placeholder to attribute name, as the request wants it
	holder map[string]string // attribute name to placeholder
	values Item
	err    error
}

// The placeholders of all but huge requests, so that they cost no allocation.
var (
	nameHolders  = holders('#')
	valueHolders = holders(':')
)

func holders(mark byte) (list [64]string) {
	for i := range list {
		list[i] = string(mark) + strconv.Itoa(i)
	}
	return list
}

func holderFor(list *[64]string, mark byte, i int) string {
	if i < len(list) {
		return list[i]
	}
	return string(mark) + strconv.Itoa(i)
}

func (b *builder) text(s string) { b.buf = append(b.buf, s...) }
func (b *builder) length() int   { return len(b.buf) }

// take returns what was written since the last take: one expression; nil for none.
func (b *builder) take() *string {
	if len(b.buf) == 0 {
		return nil
	}
	s := string(b.buf)
	b.buf = b.buf[:0]
	return &s
}

func (b *builder) fail(format string, args ...any) {
	if b.err == nil {
		b.err = fmt.Errorf("%w: "+format, append([]any{ErrInvalid}, args...)...)
	}
}

func (b *builder) name(name string) {
	if name == "" {
		b.fail("empty attribute name in an expression")
		return
	}
	holder, ok := b.holder[name]
	if !ok {
		if b.names == nil {
			b.names = make(map[string]string, 8)
			b.holder = make(map[string]string, 8)
		}
		holder = holderFor(&nameHolders, '#', len(b.names))
		b.names[holder] = name
		b.holder[name] = holder
	}
	b.text(holder)
}

func (b *builder) path(o *Operand) {
	if o.kind != pathOperand {
		b.fail("only an attribute can be changed or tested here")
		return
	}
	b.name(o.name)
	for _, s := range o.steps {
		if s.field != "" {
			b.text(".")
			b.name(s.field)
			continue
		}
		b.text("[")
		b.buf = strconv.AppendInt(b.buf, int64(s.index), 10)
		b.text("]")
	}
}

func (b *builder) value(v any) {
	av, err := Encode(v)
	if err != nil {
		if b.err == nil {
			b.err = err
		}
		return
	}
	if b.values == nil {
		b.values = make(Item, 8)
	}
	holder := holderFor(&valueHolders, ':', len(b.values))
	b.values[holder] = av
	b.text(holder)
}

func (b *builder) call(name string, args []*Operand) {
	b.text(name)
	b.text("(")
	for i, a := range args {
		if i > 0 {
			b.text(", ")
		}
		a.write(b)
	}
	b.text(")")
}

// Encode turns a Go value into an attribute value, the way guregu/dynamo does, with one
// difference: where an expression needs a value, an empty string is an empty string. A
// value that encodes to nothing, such as a nil pointer, is refused.
func Encode(v any) (types.AttributeValue, error) {
	switch v := v.(type) {
	case types.AttributeValue:
		return v, nil
	case string:
		return &types.AttributeValueMemberS{Value: v}, nil
	case int:
		return &types.AttributeValueMemberN{Value: strconv.Itoa(v)}, nil
	case int64:
		return &types.AttributeValueMemberN{Value: strconv.FormatInt(v, 10)}, nil
	case bool:
		return &types.AttributeValueMemberBOOL{Value: v}, nil
	}
	av, err := dynamo.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("%w: encode %T: %w", ErrInvalid, v, err)
	}
	if av == nil {
		if reflect.ValueOf(v).Kind() == reflect.String {
			return &types.AttributeValueMemberS{}, nil
		}
		return nil, fmt.Errorf("%w: %T encodes to no value", ErrInvalid, v)
	}
	return av, nil
}
