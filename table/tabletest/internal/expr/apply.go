package expr

import (
	"slices"
	"sort"

	"github.com/mortise-go/mortise/table/tabletest/internal/attr"
)

const (
	errNoAttribute = attr.InvalidError("The provided expression refers to an attribute that does not exist in the item")
	errOperandType = attr.InvalidError("An operand in the update expression has an incorrect data type")
	errPath        = attr.InvalidError("The document path provided in the update expression is invalid for update")
)

// change is the effect of an action: the new value at a path, or nil to remove what is there.
type change struct {
	path  Path
	value *attr.Value
}

// Create returns the item that the update creates if no item with the key exists. It returns nil if the update has only REMOVE and
// DELETE, since such an update creates no item.
func (u *Update) Create(key attr.Item) (attr.Item, error) {
	if len(u.sets)+len(u.adds) == 0 {
		return nil, nil
	}
	return u.Apply(key)
}

// Apply returns the item after the update. It does not change item, and reads all operands from it.
func (u *Update) Apply(item attr.Item) (attr.Item, error) {
	var puts, removes []change
	for _, a := range u.sets {
		if err := checkParent(item, a.target.path); err != nil {
			return nil, err
		}
		v, err := a.operand.compute(item)
		if err != nil {
			return nil, err
		}
		puts = append(puts, change{a.target.path, v})
	}
	for _, a := range u.removes {
		if err := checkParent(item, a.target.path); err != nil {
			return nil, err
		}
		removes = append(removes, change{path: a.target.path})
	}
	for _, a := range u.adds {
		if err := checkParent(item, a.target.path); err != nil {
			return nil, err
		}
		v, err := added(a.target.path.Get(item), a.operand.value)
		if err != nil {
			return nil, err
		}
		puts = append(puts, change{a.target.path, v})
	}
	for _, a := range u.deletes {
		if err := checkParent(item, a.target.path); err != nil {
			return nil, err
		}
		old := a.target.path.Get(item)
		if old == nil {
			continue
		}
		if old.Kind != a.operand.value.Kind {
			return nil, errOperandType
		}
		if left := attr.Subtract(old, a.operand.value); left != nil {
			puts = append(puts, change{a.target.path, left})
		} else {
			removes = append(removes, change{path: a.target.path})
		}
	}
	return commit(item, puts, removes), nil
}

// commit writes all new values, and removes afterwards. Elements of a list are set in ascending order of their indexes, so that
// elements beyond its end are appended in this order. Elements are removed in descending order, so that the other indexes stay valid.
func commit(item attr.Item, puts, removes []change) attr.Item {
	byIndex := func(list []change, descending bool) {
		sort.SliceStable(list, func(i, j int) bool {
			c := slices.CompareFunc(list[i].path, list[j].path, func(a, b Elem) int { return a.Index - b.Index })
			return descending && c > 0 || !descending && c < 0
		})
	}
	byIndex(puts, false)
	byIndex(removes, true)
	out := item.Clone()
	for _, c := range slices.Concat(puts, removes) {
		name := c.path[0].Name
		switch value := c.value; {
		case len(c.path) > 1:
			out[name] = replace(out[name], c.path[1:], value)
		case value == nil:
			delete(out, name)
		default:
			out[name] = value
		}
	}
	return out
}

// replace returns a copy of v with a new value at the path rest. A nil value removes what is there. All that the path leads through is there:
// checkParent has looked, and other changes have not removed it, since paths that overlap are refused.
func replace(v *attr.Value, rest Path, value *attr.Value) *attr.Value {
	e := rest[0]
	if e.Index < 0 {
		return replaceMember(v, rest, value)
	}
	if len(rest) > 1 {
		value = replace(v.List[e.Index], rest[1:], value)
	}
	list := slices.Clone(v.List)
	switch {
	case value == nil && e.Index < len(list):
		list = slices.Delete(list, e.Index, e.Index+1)
	case value == nil:
	case e.Index < len(list):
		list[e.Index] = value
	default:
		list = append(list, value)
	}
	return attr.Sequence(list)
}

func replaceMember(v *attr.Value, rest Path, value *attr.Value) *attr.Value {
	name := rest[0].Name
	if len(rest) > 1 {
		value = replace(v.Map[name], rest[1:], value)
	}
	m := v.Map.Clone()
	if value == nil {
		delete(m, name)
	} else {
		m[name] = value
	}
	return attr.Document(m)
}

// checkParent refuses a path unless the value around its last step exists, and is a map for a name or a list for an index.
func checkParent(item attr.Item, p Path) error {
	if len(p) == 1 {
		return nil
	}
	parent := p[:len(p)-1].Get(item)
	last := p[len(p)-1]
	if parent == nil || last.Index < 0 && parent.Kind != attr.M || last.Index >= 0 && parent.Kind != attr.L {
		return errPath
	}
	return nil
}

// added returns the result of ADD: the sum, the union, or the operand itself if there was no value.
func added(old, operand *attr.Value) (*attr.Value, error) {
	switch {
	case old == nil:
		return operand, nil
	case old.Kind != operand.Kind:
		return nil, errOperandType
	case old.Kind.IsSet():
		return attr.Union(old, operand), nil
	}
	sum, err := old.Num.Add(operand.Num)
	if err != nil {
		return nil, err
	}
	return attr.Numeric(sum), nil
}

// compute evaluates the right side of a SET action.
func (n *node) compute(item attr.Item) (*attr.Value, error) {
	switch n.op {
	case opParen:
		return n.args[0].compute(item)
	case opPath:
		v := n.path.Get(item)
		if v == nil {
			return nil, errNoAttribute
		}
		return v, nil
	case opValue:
		return n.value, nil
	case opFunc:
		if n.fn == fnIfNotExists {
			other, err := n.args[1].compute(item) // has to exist even if nobody needs it
			if err != nil {
				return nil, err
			}
			if v := n.args[0].eval(item); v != nil {
				return v, nil
			}
			return other, nil
		}
	}
	left, err := n.args[0].compute(item)
	if err != nil {
		return nil, err
	}
	want := attr.N
	if n.op == opFunc {
		want = attr.L
	}
	right, err := n.args[1].compute(item)
	switch {
	case err != nil && n.args[1].bare().op == opFunc: // functions are computed before the kinds of operands count
		return nil, err
	case left.Kind != want:
		return nil, errOperandType
	case err != nil:
		return nil, err
	case right.Kind != want:
		return nil, errOperandType
	}
	if n.op == opFunc {
		return attr.Sequence(slices.Concat(left.List, right.List)), nil
	}
	num := right.Num
	if n.op == opMinus {
		num = num.Negate()
	}
	sum, err := left.Num.Add(num)
	if err != nil {
		return nil, err
	}
	return attr.Numeric(sum), nil
}
