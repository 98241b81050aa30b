package expr

import (
	"slices"
	"strings"

	"github.com/mortise-go/mortise/table/tabletest/internal/attr"
)

// Limits of one expression (Developer Guide, "Service, account, and table quotas").
const (
	maxOperators  = 300
	maxInOperands = 100
	maxPathDepth  = 32
)

// Env contains a request's placeholders, and records which of them its expressions use.
type Env struct {
	Names  map[string]string
	Values map[string]*attr.Value

	usedNames  map[string]bool
	usedValues map[string]bool
}

// Unused returns an error if no expression used some name or, if all names were used, some value.
func (e *Env) Unused() error {
	if len(e.usedNames) < len(e.Names) {
		var left []string
		for k := range e.Names {
			if !e.usedNames[k] {
				left = append(left, k)
			}
		}
		slices.Sort(left)
		return attr.Invalidf("Value provided in ExpressionAttributeNames unused in expressions: keys: {%s}", strings.Join(left, ", "))
	}
	if len(e.usedValues) < len(e.Values) {
		var left []string
		for k := range e.Values {
			if !e.usedValues[k] {
				left = append(left, k)
			}
		}
		slices.Sort(left)
		return attr.Invalidf("Value provided in ExpressionAttributeValues unused in expressions: keys: {%s}", strings.Join(left, ", "))
	}
	return nil
}

// binder binds one expression: it checks it and replaces its placeholders.
type binder struct {
	env       *Env
	update    bool // update expressions allow other functions than conditions
	root      place
	operators int
}

// words checks what expressions say without their placeholders: words and functions.
func (b *binder) words(roots ...*node) error {
	for _, n := range roots {
		if err := b.word(n, b.root); err != nil {
			return err
		}
	}
	return nil
}

// place is where a function stands: it decides which functions are allowed there.
type place uint8

const (
	asRoot      place = iota // the value of SET
	asOperand                // the operand of a comparison, a function or an arithmetic operator
	asCondition              // the operand of AND, OR or NOT, or all of a condition
)

func (b *binder) word(n *node, at place) error {
	inner := asOperand
	switch n.op {
	case opPath:
		for _, s := range n.steps {
			if s.index < 0 && s.text[0] != '#' && isReserved(s.text) {
				return attr.Invalidf("Attribute name is a reserved keyword; reserved keyword: %s", s.text)
			}
		}
		return nil
	case opValue:
		return nil
	case opParen:
		return b.word(n.args[0], at)
	case opAnd, opOr, opNot:
		inner = asCondition
	case opFunc:
		if err := b.call(n, at); err != nil {
			return err
		}
	}
	b.operators++
	for _, a := range n.args {
		if err := b.word(a, inner); err != nil {
			return err
		}
	}
	return nil
}

// count checks the number of operators and functions. As the service, it comes after all other checks of the expression, and counts no
// further than to the first one too many.
func (b *binder) count() error {
	if b.operators > maxOperators {
		return attr.Invalidf("The expression contains too many operators; operator count: %d", maxOperators+1)
	}
	return nil
}

// call checks whether a function exists and may stand where it does.
func (b *binder) call(n *node, at place) error {
	n.fn = functionOf(n.name)
	if n.fn == 0 {
		return attr.Invalidf("Invalid function name; function: %s", n.name)
	}
	if n.fn.forUpdates() != b.update {
		where := "a condition"
		if b.update {
			where = "an update"
		}
		return attr.Invalidf("The function is not allowed in %s expression; function: %s", where, n.name)
	}
	misplaced := false
	switch n.fn {
	case fnSize:
		misplaced = at == asCondition
	case fnListAppend:
		misplaced = at == asOperand
	case fnIfNotExists:
	default:
		misplaced = at != asCondition
	}
	if misplaced {
		return attr.Invalidf("The function is not allowed to be used this way in an expression; function: %s", n.name)
	}
	return nil
}

// resolvePaths resolves paths and compares each one with those that follow it. As the service, it begins with the last one.
func (b *binder) resolvePaths(nodes []*node) ([]Path, error) {
	paths := make([]Path, len(nodes))
	for i := len(nodes) - 1; i >= 0; i-- {
		if err := b.resolvePath(nodes[i]); err != nil {
			return nil, err
		}
		paths[i] = nodes[i].path
		for _, p := range paths[i+1:] {
			if err := overlap(paths[i], p); err != nil {
				return nil, err
			}
		}
	}
	return paths, nil
}

// resolve replaces placeholders, from the leaves up. Then it checks the operands of n's operator.
func (b *binder) resolve(n *node) error {
	for _, a := range n.args {
		if err := b.resolve(a); err != nil {
			return err
		}
	}
	switch n.op {
	case opPath:
		return b.resolvePath(n)
	case opValue:
		v, ok := b.env.Values[n.name]
		if !ok {
			return attr.Invalidf("An expression attribute value used in expression is not defined; attribute value: %s", n.name)
		}
		if b.env.usedValues == nil {
			b.env.usedValues = make(map[string]bool, len(b.env.Values))
		}
		b.env.usedValues[n.name] = true
		n.value = v
		return nil
	}
	return b.operands(n)
}

func (b *binder) resolvePath(n *node) error {
	n.path = make(Path, len(n.steps))
	for i, s := range n.steps {
		name := s.text
		if s.index < 0 && name[0] == '#' {
			full, ok := b.env.Names[name]
			if !ok {
				return attr.Invalidf("An expression attribute name used in the document path is not defined; attribute name: %s", name)
			}
			if b.env.usedNames == nil {
				b.env.usedNames = make(map[string]bool, len(b.env.Names))
			}
			b.env.usedNames[name] = true
			name = full
		}
		n.path[i] = Elem{Name: name, Index: s.index}
	}
	if len(n.path) > maxPathDepth {
		return attr.Invalidf("The document path has too many nesting levels; nesting levels: %d", len(n.path))
	}
	return nil
}

func (b *binder) operands(n *node) error {
	switch n.op {
	case opFunc:
		return b.function(n)
	case opPlus, opMinus:
		return arithmetic(n)
	case opEq, opNe, opLt, opLe, opGt, opGe, opBetween, opIn:
		return comparison(n)
	}
	return nil
}

func wrongType(name string, k attr.Kind) error {
	return attr.Invalidf("Incorrect operand type for operator or function; operator or function: %s, operand type: %s", name, k)
}

// kindOf returns the type of an operand, or 0 if the type depends on the item.
func kindOf(n *node) attr.Kind {
	n = n.bare()
	switch {
	case n.op == opValue:
		return n.value.Kind
	case n.op == opFunc && n.fn == fnSize:
		return attr.N
	}
	return 0
}

func (b *binder) function(n *node) error {
	if len(n.args) != n.fn.operands() {
		return attr.Invalidf("Incorrect number of operands for operator or function; operator or function: %s, number of operands: %d", n.name, len(n.args))
	}
	switch n.fn {
	case fnExists, fnNotExists, fnIfNotExists:
		if n.args[0].bare().op != opPath {
			return attr.Invalidf("Operator or function requires a document path; operator or function: %s", n.name)
		}
		return distinct(n, n.name)
	case fnSize:
		if k := kindOf(n.args[0]); k != 0 && !sizable(k) {
			return wrongType(n.name, k)
		}
	case fnType:
		return attributeType(n)
	case fnBeginsWith:
		for _, a := range n.args {
			if k := kindOf(a); k != 0 && k != attr.S && k != attr.B {
				return wrongType(n.name, k)
			}
		}
		return distinct(n, n.name)
	case fnContains:
		return distinct(n, n.name)
	case fnListAppend:
		for _, a := range n.args {
			if k := kindOf(a); k != 0 && k != attr.L {
				return wrongType(n.name, k)
			}
		}
	}
	return nil
}

func sizable(k attr.Kind) bool { return k != attr.N && k != attr.BOOL && k != attr.NULL }

// anyKind is the operand type in the service's error for a path in place of a constant: it lists all types.
const anyKind = "{DOUBLESET,SS,DECIMAL,S,DECIMALSET,BS,M,HD,N,L,B,FLOAT,DICT,NULL,DOUBLE,FS,INTSET,HDS,NS,BOOL,INT}"

func attributeType(n *node) error {
	if err := distinct(n, n.name); err != nil {
		return err
	}
	want := n.args[1].bare()
	if want.op == opPath {
		return attr.Invalidf("Incorrect operand type for operator or function; operator or function: %s, operand type: %s", n.name, anyKind)
	}
	if k := kindOf(want); k != attr.S {
		return wrongType(n.name, k)
	}
	if attr.KindOf(want.value.Str) == 0 {
		return attr.Invalidf("Invalid attribute type name found; type: %s, valid types: {N,BS,L,B,NULL,M,S,SS,NS,BOOL}", want.value.Str)
	}
	return nil
}

// distinct refuses an operator whose first operand is a path, if another operand is the same path.
func distinct(n *node, name string) error {
	first := n.args[0].bare()
	if first.op != opPath {
		return nil
	}
	for _, a := range n.args[1:] {
		if other := a.bare(); other.op == opPath && other.path.equal(first.path) {
			return attr.Invalidf("The first operand must be distinct from the remaining operands for this operator or function; operator: %s, first operand: %s", name, first.path)
		}
	}
	return nil
}

func comparison(n *node) error {
	name := n.op.String()
	if n.op == opIn && len(n.args)-1 > maxInOperands {
		return attr.Invalidf("The IN operator is provided with too many operands; number of operands: %d", len(n.args)-1)
	}
	if err := distinct(n, name); err != nil {
		return err
	}
	if n.op == opEq || n.op == opNe || n.op == opIn {
		return nil
	}
	for _, a := range n.args {
		if k := kindOf(a); k != 0 && !k.Comparable() {
			return wrongType(name, k)
		}
	}
	if n.op == opBetween {
		return bounds(n.args[1].bare(), n.args[2].bare())
	}
	return nil
}

// bounds checks the bounds of BETWEEN if both are constants.
func bounds(low, high *node) error {
	if low.op != opValue || high.op != opValue {
		return nil
	}
	c, ok := attr.Compare(low.value, high.value)
	text := "lower bound operand: AttributeValue: " + brief(low.value) + ", upper bound operand: AttributeValue: " + brief(high.value)
	if !ok {
		return attr.InvalidError("The BETWEEN operator requires same data type for lower and upper bounds; " + text)
	}
	if c > 0 {
		return attr.InvalidError("The BETWEEN operator requires upper bound to be greater than or equal to lower bound; " + text)
	}
	return nil
}

// brief quotes a scalar as the service does.
func brief(v *attr.Value) string { return "{" + v.Brief() + "}" }

func arithmetic(n *node) error {
	for _, a := range n.args {
		if k := kindOf(a); k != 0 && k != attr.N {
			return wrongType(n.op.String(), k)
		}
	}
	return nil
}
