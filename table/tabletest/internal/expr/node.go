package expr

import (
	"slices"

	"github.com/mortise-go/mortise/table/tabletest/internal/attr"
)

type op uint8

const (
	opPath op = iota
	opValue
	opFunc
	opParen
	opAnd
	opOr
	opNot
	opEq
	opNe
	opLt
	opLe
	opGt
	opGe
	opBetween
	opIn
	opPlus
	opMinus
)

func (o op) String() string {
	switch o {
	case opAnd:
		return "AND"
	case opOr:
		return "OR"
	case opNot:
		return "NOT"
	case opEq:
		return "="
	case opNe:
		return "<>"
	case opLt:
		return "<"
	case opLe:
		return "<="
	case opGt:
		return ">"
	case opGe:
		return ">="
	case opBetween:
		return "BETWEEN"
	case opIn:
		return "IN"
	case opPlus:
		return "+"
	case opMinus:
		return "-"
	}
	return ""
}

// function numbers the functions of the expression language; 0 is an unknown one.
type function uint8

const (
	fnExists function = iota + 1
	fnNotExists
	fnType
	fnBeginsWith
	fnContains
	fnSize
	fnIfNotExists
	fnListAppend
)

func functionOf(name string) function {
	switch name {
	case "attribute_exists":
		return fnExists
	case "attribute_not_exists":
		return fnNotExists
	case "attribute_type":
		return fnType
	case "begins_with":
		return fnBeginsWith
	case "contains":
		return fnContains
	case "size":
		return fnSize
	case "if_not_exists":
		return fnIfNotExists
	case "list_append":
		return fnListAppend
	}
	return 0
}

func (f function) operands() int {
	switch f {
	case fnExists, fnNotExists, fnSize:
		return 1
	}
	return 2
}

// forUpdates reports whether the function belongs to update expressions; all others belong to conditions.
func (f function) forUpdates() bool { return f == fnIfNotExists || f == fnListAppend }

// pathStep is a path element as written: a name, a #placeholder, or an index.
type pathStep struct {
	text  string
	index int // -1 for names
}

// node is one node of a parsed expression. bind fills path, value and fn.
type node struct {
	op    op
	name  string // opFunc: as written. opValue: the placeholder
	args  []*node
	steps []pathStep

	path  Path
	value *attr.Value
	fn    function
}

// bare returns the node without parentheses around it.
func (n *node) bare() *node {
	for n.op == opParen {
		n = n.args[0]
	}
	return n
}

// isOperand reports whether the node can be a value. A function can be a value or a condition, so it is one, too.
func (n *node) isOperand() bool {
	switch n.bare().op {
	case opPath, opValue, opFunc, opPlus, opMinus:
		return true
	}
	return false
}

// parentheses refuses parentheses around parentheses. The service does so as soon as it has read an operand or a condition, before it reads
// on.
func (n *node) parentheses() error {
	if n.redundant() {
		return attr.InvalidError("The expression has redundant parentheses;")
	}
	return nil
}

func (n *node) redundant() bool {
	return n.op == opParen && n.args[0].op == opParen || slices.ContainsFunc(n.args, (*node).redundant)
}
