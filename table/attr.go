package table

import "slices"

// Operand is an operand of an expression: an attribute, a value, or a function of them. [Attr] returns one. Its methods
// return conditions and changes. An Operand is immutable; methods return new ones.
type Operand struct {
	kind  operandKind
	name  string    // of a path: the top-level attribute
	steps []step    // of a path: the steps below the top-level attribute
	args  []Operand // of a function
	value any       // of a value: the Go value; of an invalid operand: its error
}

type operandKind uint8

const (
	pathOperand operandKind = iota
	valueOperand
	sizeOperand
	orElseOperand
	plusOperand
	minusOperand
	appendOperand
	invalidOperand
)

type step struct {
	field string // field of a map, unless list is set
	list  bool
	index int // element of a list
}

// Attr names a top-level attribute. Dots and brackets are part of the name; use [Operand.Field] and [Operand.At] for
// the elements of documents.
func Attr(name string) Operand { return Operand{name: name} }

// Value returns an operand for a Go value, encoded as described in the package documentation. It is only needed to call
// a method on a value; arguments can be plain values.
func Value(v any) Operand { return Operand{kind: valueOperand, value: v} }

// InvalidOperand returns an operand that makes every request with it fail with err.
func InvalidOperand(err error) Operand { return Operand{kind: invalidOperand, value: err} }

// Field addresses a field of a map. o has to be an attribute, or an element of one.
func (o Operand) Field(name string) Operand {
	o.steps = append(slices.Clip(o.steps), step{field: name})
	return o
}

// At addresses an element of a list, counted from 0. o has to be an attribute, or an element of one. An operation with a
// negative index is refused.
func (o Operand) At(index int) Operand {
	o.steps = append(slices.Clip(o.steps), step{list: true, index: index})
	return o
}

// operand turns an argument of a method into an operand.
func operand(v any) Operand {
	if o, ok := v.(Operand); ok {
		return o
	}
	return Value(v)
}

func function(kind operandKind, args ...Operand) Operand { return Operand{kind: kind, args: args} }

// Size returns the length of a string, binary, list, map or set.
func (o Operand) Size() Operand { return function(sizeOperand, o) }

// OrElse returns the attribute's value or, if the item does not have the attribute, v (if_not_exists). For changes
// only. If v is an attribute, it has to be another one, and DynamoDB refuses the change if the item does not have it,
// even if it is not needed.
func (o Operand) OrElse(v any) Operand { return function(orElseOperand, o, operand(v)) }

// Plus returns o + v. For changes only.
func (o Operand) Plus(v any) Operand { return function(plusOperand, o, operand(v)) }

// Minus returns o − v. For changes only.
func (o Operand) Minus(v any) Operand { return function(minusOperand, o, operand(v)) }

// Append returns the list o followed by the list v (list_append). For changes only.
func (o Operand) Append(v any) Operand { return function(appendOperand, o, operand(v)) }

func (o *Operand) write(b *builder) {
	if !b.allows(o.kind) {
		b.fail("%s does not belong there", o.kind)
		return
	}
	if len(o.steps) > 0 && o.kind != pathOperand && o.kind != invalidOperand {
		b.fail("Field and At are of an attribute, not of %s", o.kind)
		return
	}
	switch o.kind {
	case pathOperand, invalidOperand:
		b.path(o)
	case valueOperand:
		b.value(o.value)
	case sizeOperand:
		b.call("size", o.args)
	case orElseOperand:
		b.call("if_not_exists", o.args)
	case appendOperand:
		b.call("list_append", o.args)
	case plusOperand, minusOperand:
		sign := " + "
		if o.kind == minusOperand {
			sign = " - "
		}
		b.depth++
		o.args[0].write(b)
		b.text(sign)
		o.args[1].write(b)
		b.depth--
	}
}

func (k operandKind) String() string {
	return [...]string{"an attribute", "a value", "Size", "OrElse", "Plus", "Minus", "Append", "an invalid operand"}[k]
}
