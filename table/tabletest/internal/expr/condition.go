package expr

import (
	"errors"
	"slices"
	"strings"

	"github.com/mortise-go/mortise/table/tabletest/internal/attr"
)

// Condition is a bound condition or filter.
type Condition struct{ root *node }

// ParseCondition parses and binds a ConditionExpression or FilterExpression.
func ParseCondition(src string, env *Env) (*Condition, error) {
	n, err := boundCondition(src, env)
	if errors.Is(err, errLength) { // here, the service also tells the size
		err = attr.Invalidf("%s expression size: %d", err, len(src))
	}
	if err != nil {
		return nil, err
	}
	return &Condition{root: n}, nil
}

func boundCondition(src string, env *Env) (*node, error) {
	n, err := parseCondition(src)
	if err != nil {
		return nil, err
	}
	b := binder{env: env, root: asCondition}
	if err := b.words(n); err != nil {
		return nil, err
	}
	if err := b.resolve(n); err != nil {
		return nil, err
	}
	return n, b.count()
}

// Holds evaluates the condition. item is nil if the item does not exist.
func (c *Condition) Holds(item attr.Item) bool { return c.root.holds(item) }

// Paths calls yield with every path in the condition, in the order of the text.
func (c *Condition) Paths(yield func(Path)) { c.root.paths(yield) }

func (n *node) paths(yield func(Path)) {
	if n.op == opPath {
		yield(n.path)
	}
	for _, a := range n.args {
		a.paths(yield)
	}
}

func (n *node) holds(item attr.Item) bool {
	switch n.op {
	case opParen:
		return n.args[0].holds(item)
	case opAnd:
		return n.args[0].holds(item) && n.args[1].holds(item)
	case opOr:
		return n.args[0].holds(item) || n.args[1].holds(item)
	case opNot:
		return !n.args[0].holds(item)
	case opFunc:
		return n.test(item)
	case opIn:
		v := n.args[0].eval(item)
		return v != nil && slices.ContainsFunc(n.args[1:], func(a *node) bool { return attr.Equal(v, a.eval(item)) })
	case opBetween:
		v, low, high := n.args[0].eval(item), n.args[1].eval(item), n.args[2].eval(item)
		return ordered(low, v, true) && ordered(v, high, true)
	}
	left, right := n.args[0].eval(item), n.args[1].eval(item)
	switch n.op {
	case opEq:
		return left != nil && attr.Equal(left, right)
	case opNe:
		return left == nil || right == nil || !attr.Equal(left, right)
	case opLt:
		return ordered(left, right, false)
	case opLe:
		return ordered(left, right, true)
	case opGt:
		return ordered(right, left, false)
	case opGe:
		return ordered(right, left, true)
	}
	return false
}

// ordered reports whether a < b, or with orEqual a <= b. It returns false if a value is missing or the types differ.
func ordered(a, b *attr.Value, orEqual bool) bool {
	if a == nil || b == nil {
		return false
	}
	c, ok := attr.Compare(a, b)
	return ok && (c < 0 || orEqual && c == 0)
}

// eval returns the value of an operand, or nil if it has none.
func (n *node) eval(item attr.Item) *attr.Value {
	switch n.op {
	case opParen:
		return n.args[0].eval(item)
	case opPath:
		return n.path.Get(item)
	case opValue:
		return n.value
	case opFunc:
		v := n.args[0].eval(item)
		if v == nil {
			return nil
		}
		if length, ok := v.Length(); ok {
			return attr.Numeric(attr.NumberOf(length))
		}
	}
	return nil
}

func (n *node) test(item attr.Item) bool {
	first := n.args[0].eval(item)
	switch n.fn {
	case fnExists:
		return first != nil
	case fnNotExists:
		return first == nil
	}
	second := n.args[1].eval(item)
	if first == nil || second == nil {
		return false
	}
	switch n.fn {
	case fnType:
		return first.Kind.String() == second.Str
	case fnBeginsWith:
		return BeginsWith(first, second)
	}
	return Contains(first, second)
}

// BeginsWith reports whether a string or binary value starts with another.
func BeginsWith(v, start *attr.Value) bool {
	return v.Kind == start.Kind && (v.Kind == attr.S || v.Kind == attr.B) && strings.HasPrefix(v.Str, start.Str)
}

// Contains reports whether a string or binary value contains a part, or a set or list contains an element.
func Contains(v, part *attr.Value) bool {
	switch v.Kind {
	case attr.S, attr.B:
		return v.Kind == part.Kind && strings.Contains(v.Str, part.Str)
	case attr.L:
		return slices.ContainsFunc(v.List, func(e *attr.Value) bool { return attr.Equal(e, part) })
	case attr.SS, attr.NS, attr.BS:
		return v.Contains(part)
	}
	return false
}
