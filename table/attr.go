package table

import "slices"

// Operand is something an expression computes with: an attribute, a value, or a
// function of them. Attr makes one; its methods make conditions and changes of it.
// Operands are values: methods return new ones and change nothing.
type Operand struct {
	kind  operandKind
	name  string     // of a path: the top-level attribute
	steps []step     // of a path: what follows the top-level attribute
	args  []*Operand // of a function
	value any        // of a value; the error of an operand that could not be made
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
	field string // of a map, unless list
	list  bool
	index int // of a list
}

// Attr names a top-level attribute, verbatim: dots and brackets in name are part of
// the name. Use Field and At to reach into documents.
func Attr(name string) Operand { return Operand{name: name} }

// Value makes an operand of a Go value, encoded like an entity's field
// (see the package documentation, Encoding). It is only needed on the left side of
// something: everywhere else plain values are accepted.
func Value(v any) Operand { return Operand{kind: valueOperand, value: v} }

// InvalidOperand returns an operand that could not be made: whatever uses it is refused with err.
func InvalidOperand(err error) Operand { return Operand{kind: invalidOperand, value: err} }

// Field addresses a field of a map attribute.
func (o Operand) Field(name string) Operand {
	o.steps = append(slices.Clip(o.steps), step{field: name})
	return o
}

// At addresses an element of a list attribute, counted from 0. A negative index is refused
// when the operation is sent.
func (o Operand) At(index int) Operand {
	o.steps = append(slices.Clip(o.steps), step{list: true, index: index})
	return o
}

// operand turns any argument of a method into an operand.
func operand(v any) Operand {
	if o, ok := v.(Operand); ok {
		return o
	}
	return Value(v)
}

func function(kind operandKind, args ...Operand) Operand {
	list := make([]*Operand, len(args))
	for i := range args {
		list[i] = &args[i]
	}
	return Operand{kind: kind, args: list}
}

// Size returns the length of a string, binary, list, map or set.
func (o Operand) Size() Operand { return function(sizeOperand, o) }

// OrElse returns the attribute's value or, where the item has no such attribute, v
// (if_not_exists). For changes only.
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
