package table

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/mortise-go/mortise/internal/attrvalue"
	"github.com/mortise-go/mortise/internal/inside"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/guregu/dynamo/v2"
)

// Item is an item as the SDK represents it: attribute values by attribute name.
type Item = map[string]types.AttributeValue

// builder writes the expressions of one request. It numbers placeholders in the order of their first use, so equal
// requests have equal expressions. (Their bytes can differ, since the SDK sends the members of maps in any order.)
type builder struct {
	buf    []byte
	names  map[string]string // from placeholder to attribute name, for the request
	holder map[string]string // from attribute name to placeholder
	values Item
	last   types.AttributeValue // that was written last; nil for a parameter of a prepared operation
	err    error

	prepared *prepared // set while an operation is prepared: it records the values and parameters
	params   []any     // parameters of a prepared operation that was changed, so that its expressions are built anew

	operators int // number of operators and functions of conditions, as DynamoDB counts them

	holds func(attr string) error // refuses attributes that the index that is read does not hold; nil if it holds all

	changing bool // an update is being written, not a condition
	depth    int  // number of functions and sums around the operand that is being written
}

// allows reports whether an operand of kind k may stand here. DynamoDB would refuse the others too, but with a message about the syntax
// of its expressions.
func (b *builder) allows(k operandKind) bool {
	switch k {
	case sizeOperand:
		return !b.changing
	case orElseOperand, appendOperand:
		return b.changing
	case plusOperand, minusOperand:
		return b.changing && b.depth == 0
	}
	return true
}

// The first placeholders, built once. A typical request needs no others, and so no allocation for them.
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

// take returns the expression that was written since the last take, or nil.
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
	if !utf8.ValidString(name) {
		b.fail("an attribute name that is not valid UTF-8")
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
	if err, ok := o.value.(error); ok && o.kind == invalidOperand {
		if b.err == nil {
			b.err = err
		}
		return
	}
	if o.kind != pathOperand {
		b.fail("only an attribute can be changed or tested here")
		return
	}
	b.name(o.name)
	if b.err == nil && b.holds != nil {
		b.err = b.holds(o.name)
	}
	for _, s := range o.steps {
		if !s.list {
			b.text(".")
			b.name(s.field)
			continue
		}
		if s.index < 0 {
			b.fail("negative index into a list")
		}
		b.text("[")
		b.buf = strconv.AppendInt(b.buf, int64(s.index), 10)
		b.text("]")
	}
}

func (b *builder) value(v any) {
	holder := holderFor(&valueHolders, ':', len(b.values))
	av, at := types.AttributeValue(nil), -1 // at is the parameter whose value comes later; -1 for a value that is known
	if i, ok := v.(inside.Param); ok {
		at = int(i)
		if at < 0 || b.prepared == nil && at >= len(b.params) {
			b.fail("parameter %d without a value", at)
			return
		}
		if b.prepared == nil {
			v, at = b.params[at], -1
		}
	}
	if at < 0 {
		var err error
		if av, err = Encode(v); err != nil {
			if b.err == nil {
				b.err = err
			}
			return
		}
	}
	b.last = av
	if b.prepared != nil {
		if i := slices.IndexFunc(b.prepared.values, func(p preparedValue) bool { return p.param == at && p.value == av }); i >= 0 {
			b.text(b.prepared.values[i].holder)
			return
		}
		b.prepared.values = append(b.prepared.values, preparedValue{holder: holder, value: av, param: at})
		b.prepared.params = max(b.prepared.params, at+1)
	}
	if b.values == nil {
		b.values = make(Item, 8)
	}
	b.values[holder] = av
	b.text(holder)
}

func (b *builder) call(name string, args []Operand) {
	b.operators++
	b.text(name)
	b.list(args)
}

// list writes operands in parentheses.
func (b *builder) list(args []Operand) {
	b.text("(")
	b.depth++
	for i := range args {
		if i > 0 {
			b.text(", ")
		}
		args[i].write(b)
	}
	b.depth--
	b.text(")")
}

// EncodeError reports that a value could not be encoded as an attribute value. It matches [ErrInvalid]. Its text does
// not contain the cause, which may quote the value; Err does.
type EncodeError struct {
	What string // what could not be encoded: a Go type or an attribute's name
	Err  error
}

func (e *EncodeError) Error() string {
	return fmt.Sprintf("%v: %s cannot be encoded", ErrInvalid, e.What)
}

// Unwrap returns [ErrInvalid] and the cause.
func (e *EncodeError) Unwrap() []error { return []error{ErrInvalid, e.Err} }

// Encode encodes a Go value as an attribute value, as guregu/dynamo does. An empty string that is v itself, or an element
// of a list, stays an empty string. As a field of a struct (unless its tag has allowempty) or of a map it is left out. v is
// refused if it has no encoding, such as a nil pointer or map, an empty set, an empty []byte, a pointer to an empty
// string, or a value that contains itself. An attribute value stays as it is. Of all others, the elements of sets are in
// order, so that equal values are encoded equally.
func Encode(v any) (types.AttributeValue, error) {
	switch v := v.(type) {
	case types.AttributeValue:
		return v, checkValue(v)
	case string:
		if !utf8.ValidString(v) {
			return nil, errNotText
		}
		return &types.AttributeValueMemberS{Value: v}, nil
	case int:
		return &types.AttributeValueMemberN{Value: strconv.Itoa(v)}, nil
	case int64:
		return &types.AttributeValueMemberN{Value: strconv.FormatInt(v, 10)}, nil
	case bool:
		return &types.AttributeValueMemberBOOL{Value: v}, nil
	case time.Time:
		return encode(attrvalue.Moment(v))
	case *time.Time:
		if v != nil {
			return encode(attrvalue.Moment(*v))
		}
	case Operand, *Operand, Cond, *Cond, Change, *Change, Op, *Op: // to the encoder they are structs without fields
		return nil, fmt.Errorf("%w: a %T is not a value", ErrInvalid, v)
	}
	return encode(v)
}

func encode(v any) (types.AttributeValue, error) {
	if rv := reflect.ValueOf(v); rv.Kind() == reflect.Pointer && rv.IsNil() {
		return nil, fmt.Errorf("%w: %T encodes to no value", ErrInvalid, v) // without calling its methods, which may not expect it
	}
	if endless(reflect.ValueOf(v), maxHops) {
		return nil, &EncodeError{What: fmt.Sprintf("a %T", v), Err: errEndless}
	}
	av, err := dynamo.Marshal(v)
	if err != nil {
		return nil, &EncodeError{What: fmt.Sprintf("a %T", v), Err: err}
	}
	if av == nil {
		if reflect.ValueOf(v).Kind() == reflect.String {
			return &types.AttributeValueMemberS{}, nil
		}
		return nil, fmt.Errorf("%w: %T encodes to no value", ErrInvalid, v)
	}
	if err := checkValue(av); err != nil {
		return nil, err
	}
	// The encoder takes the elements of a Go map in any order, but DynamoDB compares the operations of two transactions with one token as they
	// are written.
	return attrvalue.InOrder(av), nil
}
