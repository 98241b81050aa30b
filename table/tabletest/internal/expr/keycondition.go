package expr

import (
	"slices"

	"github.com/mortise-go/mortise/table/tabletest/internal/attr"
)

// KeyOp is an operator that a key condition may use.
type KeyOp uint8

// The operators of key conditions.
const (
	KeyEq KeyOp = iota + 1
	KeyLt
	KeyLe
	KeyGt
	KeyGe
	KeyBetween
	KeyBeginsWith
)

// KeyTerm restricts one key attribute.
type KeyTerm struct {
	Name   string
	Op     KeyOp
	Values []*attr.Value
}

// KeyCondition is a bound KeyConditionExpression that has not been split into terms yet.
type KeyCondition struct{ root *node }

// ParseKeyCondition parses and binds a KeyConditionExpression.
func ParseKeyCondition(src string, env *Env) (*KeyCondition, error) {
	n, err := boundCondition(src, env)
	if err != nil {
		return nil, err
	}
	return &KeyCondition{root: n}, nil
}

// Terms splits the condition into one term for each key attribute. It refuses a condition that cannot be split.
func (c *KeyCondition) Terms() ([]KeyTerm, error) {
	var terms []KeyTerm
	if err := keyTerms(c.root, &terms); err != nil {
		return nil, err
	}
	return terms, nil
}

func keyTerms(n *node, terms *[]KeyTerm) error {
	n = n.bare()
	if n.op == opAnd {
		for _, a := range n.args {
			if err := keyTerms(a, terms); err != nil {
				return err
			}
		}
		return nil
	}
	o, name, err := keyOp(n)
	if err != nil {
		return err
	}
	if (o == KeyBetween || o == KeyBeginsWith) && n.args[0].bare().op == opValue {
		return attr.Invalidf("Invalid condition in KeyConditionExpression: %s operator must have the key attribute as its first operand", name)
	}
	term := KeyTerm{Op: o}
	at := -1
	for i, a := range n.args {
		switch a = a.bare(); a.op {
		case opPath:
			if at >= 0 {
				return attr.InvalidError("Invalid condition in KeyConditionExpression: Multiple attribute names used in one condition")
			}
			if len(a.path) > 1 {
				return attr.InvalidError("KeyConditionExpressions cannot have conditions on nested attributes")
			}
			at, term.Name = i, a.path[0].Name
		case opValue:
			term.Values = append(term.Values, a.value)
		default:
			return attr.InvalidError("KeyConditionExpressions cannot contain nested operations")
		}
	}
	switch {
	case at < 0:
		return attr.InvalidError("Invalid condition in KeyConditionExpression: No key attribute specified")
	case at > 0:
		term.Op = o.mirrored()
	}
	if slices.ContainsFunc(*terms, func(t KeyTerm) bool { return t.Name == term.Name }) {
		return attr.InvalidError("KeyConditionExpressions must only contain one condition per key")
	}
	*terms = append(*terms, term)
	return nil
}

func keyOp(n *node) (KeyOp, string, error) {
	switch n.op {
	case opEq:
		return KeyEq, "=", nil
	case opLt:
		return KeyLt, "<", nil
	case opLe:
		return KeyLe, "<=", nil
	case opGt:
		return KeyGt, ">", nil
	case opGe:
		return KeyGe, ">=", nil
	case opBetween:
		return KeyBetween, "BETWEEN", nil
	case opFunc:
		if n.fn == fnBeginsWith {
			return KeyBeginsWith, n.name, nil
		}
		return 0, "", badKeyOp(n.name)
	}
	return 0, "", badKeyOp(n.op.String())
}

func badKeyOp(name string) error {
	return attr.Invalidf("Invalid operator used in KeyConditionExpression: %s", name)
}

// mirrored returns the operator that means the same with exchanged operands.
func (o KeyOp) mirrored() KeyOp {
	switch o {
	case KeyLt:
		return KeyGt
	case KeyLe:
		return KeyGe
	case KeyGt:
		return KeyLt
	case KeyGe:
		return KeyLe
	}
	return o
}
