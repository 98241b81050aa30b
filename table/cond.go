package table

import "strconv"

// Cond is a condition on an item. The zero value is no condition.
type Cond struct {
	kind condKind
	op   string // comparator or name of a function
	args []Operand
	subs []Cond
	text *verbatim // of a textCond
}

type condKind uint8

const (
	noCond condKind = iota
	compareCond
	betweenCond
	inCond
	callCond
	andCond
	orCond
	notCond
	textCond
	emptyCond // an Or without conditions, or a Not of no condition; a request with it is refused
)

// IsZero reports whether c is no condition.
func (c Cond) IsZero() bool { return c.kind == noCond }

// Err returns the error with which a request with c would be refused before it is sent. It matches [ErrInvalid].
func (c Cond) Err() error {
	var b builder
	c.write(&b)
	return b.err
}

// Shape returns the condition without its values. Two conditions that differ only in their values have the same shape.
// Use it to compare and to hash; its syntax is unspecified.
func (c Cond) Shape() string {
	var b builder
	c.write(&b)
	for i := range len(b.names) { // numbered as in the expression
		b.text(strconv.Quote(b.names[holderFor(&nameHolders, '#', i)]))
	}
	return string(b.buf)
}

func (o Operand) compare(op string, v any) Cond {
	return Cond{kind: compareCond, op: op, args: []Operand{o, operand(v)}}
}

// Equal holds if both are of one type and equal.
func (o Operand) Equal(v any) Cond { return o.compare(" = ", v) }

// NotEqual holds if the types or the values differ, or if o is missing.
func (o Operand) NotEqual(v any) Cond { return o.compare(" <> ", v) }

// Less holds if both are of one type and o < v.
func (o Operand) Less(v any) Cond { return o.compare(" < ", v) }

// AtMost holds if both are of one type and o ≤ v.
func (o Operand) AtMost(v any) Cond { return o.compare(" <= ", v) }

// Greater holds if both are of one type and o > v.
func (o Operand) Greater(v any) Cond { return o.compare(" > ", v) }

// AtLeast holds if both are of one type and o ≥ v.
func (o Operand) AtLeast(v any) Cond { return o.compare(" >= ", v) }

// Between holds if all three are of one type and lo ≤ o ≤ hi.
func (o Operand) Between(lo, hi any) Cond {
	return Cond{kind: betweenCond, args: []Operand{o, operand(lo), operand(hi)}}
}

// maxIn is the greatest number of operands of DynamoDB's IN.
const maxIn = 100

// In holds if o equals one of the values. There can be 1 to 100 of them.
func (o Operand) In(values ...any) Cond {
	args := make([]Operand, 0, len(values)+1)
	args = append(args, o)
	for _, v := range values {
		args = append(args, operand(v))
	}
	return Cond{kind: inCond, args: args}
}

func (o Operand) call(name string, args ...Operand) Cond {
	return Cond{kind: callCond, op: name, args: append([]Operand{o}, args...)}
}

// Exists holds if the item has the attribute.
func (o Operand) Exists() Cond { return o.call("attribute_exists") }

// NotExists holds if the item is missing or does not have the attribute.
func (o Operand) NotExists() Cond { return o.call("attribute_not_exists") }

// IsType holds if the attribute is of the given type: S, N, B, BOOL, NULL, L, M, SS, NS or BS.
func (o Operand) IsType(t string) Cond { return o.call("attribute_type", Value(t)) }

// HasPrefix holds if the string or binary attribute begins with v.
func (o Operand) HasPrefix(v any) Cond { return o.call("begins_with", operand(v)) }

// Contains holds if the string contains the substring v, or the set or list contains the element v.
func (o Operand) Contains(v any) Cond { return o.call("contains", operand(v)) }

// And holds if all conditions hold. Zero conditions are ignored.
func And(conds ...Cond) Cond { return combine(andCond, conds) }

// Or holds if at least one condition holds. Zero conditions are ignored. If no condition remains, requests with it are
// refused with [ErrInvalid].
func Or(conds ...Cond) Cond { return combine(orCond, conds) }

// Not holds if c does not. Not of the zero condition is refused, as Or of none is.
func Not(c Cond) Cond {
	if c.IsZero() {
		return Cond{kind: emptyCond}
	}
	return Cond{kind: notCond, subs: []Cond{c}}
}

func combine(kind condKind, conds []Cond) Cond {
	n, last := 0, 0
	for i := range conds {
		if !conds[i].IsZero() {
			n, last = n+1, i
		}
	}
	switch {
	case n == 1:
		return conds[last]
	case n == 0 && kind == orCond:
		return Cond{kind: emptyCond}
	case n == 0:
		return Cond{}
	}
	subs := make([]Cond, 0, n)
	for i := range conds {
		switch c := &conds[i]; {
		case c.IsZero():
		case c.kind == kind:
			subs = append(subs, c.subs...)
		default:
			subs = append(subs, *c)
		}
	}
	return Cond{kind: kind, subs: subs}
}

func (c *Cond) write(b *builder) {
	switch c.kind {
	case andCond, orCond:
		b.operators += len(c.subs) - 1
	case compareCond, betweenCond, inCond, notCond:
		b.operators++
	}
	switch c.kind {
	case noCond:
	case emptyCond:
		b.fail("a condition made of nothing: Or without members, or Not of none")
	case textCond:
		c.text.write(b)
	case compareCond:
		c.args[0].write(b)
		b.text(c.op)
		c.args[1].write(b)
	case betweenCond:
		c.args[0].write(b)
		b.text(" BETWEEN ")
		c.args[1].write(b)
		b.text(" AND ")
		c.args[2].write(b)
	case inCond:
		if n := len(c.args) - 1; n < 1 || n > maxIn {
			b.fail("In takes 1 to %d values, not %d", maxIn, n)
		}
		c.args[0].write(b)
		b.text(" IN ")
		b.list(c.args[1:])
	case callCond:
		if c.op == "attribute_exists" || c.op == "attribute_not_exists" || c.op == "attribute_type" {
			if c.args[0].kind != pathOperand && c.args[0].kind != invalidOperand {
				b.fail("%s is asked of an attribute, not of %s", c.op, c.args[0].kind)
			}
		}
		b.call(c.op, c.args)
	case notCond:
		b.text("NOT ")
		c.writeSub(b, 0)
	case andCond, orCond:
		word := " AND "
		if c.kind == orCond {
			word = " OR "
		}
		for i := range c.subs {
			if i > 0 {
				b.text(word)
			}
			c.writeSub(b, i)
		}
	}
}

// writeSub puts a combined condition into parentheses, so that precedence does not matter. DynamoDB refuses a second pair around the
// first.
func (c *Cond) writeSub(b *builder, i int) {
	sub := &c.subs[i]
	single := sub.kind != andCond && sub.kind != orCond && sub.kind != notCond && sub.kind != betweenCond && sub.kind != textCond
	if single || sub.kind == textCond && sub.text.grouped() {
		sub.write(b)
		return
	}
	b.text("(")
	sub.write(b)
	b.text(")")
}
