package tabletest

import (
	"slices"

	"github.com/mortise-go/mortise/table/tabletest/internal/attr"
	"github.com/mortise-go/mortise/table/tabletest/internal/expr"
	"github.com/mortise-go/mortise/table/tabletest/internal/jsontree"
)

// legacyTerm is one entry of Expected, QueryFilter, ScanFilter or KeyConditions.
type legacyTerm struct {
	name   string
	op     string
	values []*attr.Value
}

// legacyConditions is the older form of a condition: terms that must all hold, or one of them.
type legacyConditions struct {
	terms []legacyTerm
	any   bool
}

// Holds implements condition.
func (l *legacyConditions) Holds(item attr.Item) bool {
	if l.any {
		return slices.ContainsFunc(l.terms, func(t legacyTerm) bool { return t.holds(item) })
	}
	return !slices.ContainsFunc(l.terms, func(t legacyTerm) bool { return !t.holds(item) })
}

func (t *legacyTerm) holds(item attr.Item) bool {
	v := item[t.name]
	switch t.op {
	case "NULL":
		return v == nil
	case "NOT_NULL":
		return v != nil
	case "NE":
		return v == nil || !attr.Equal(v, t.values[0])
	}
	if v == nil {
		return false
	}
	first := t.values[0]
	switch t.op {
	case "EQ":
		return attr.Equal(v, first)
	case "IN":
		return slices.ContainsFunc(t.values, func(w *attr.Value) bool { return attr.Equal(v, w) })
	case "CONTAINS":
		return expr.Contains(v, first)
	case "NOT_CONTAINS":
		return !expr.Contains(v, first)
	case "BEGINS_WITH":
		return expr.BeginsWith(v, first)
	}
	c, ok := attr.Compare(v, first)
	if !ok {
		return false
	}
	switch t.op {
	case "LT":
		return c < 0
	case "LE":
		return c <= 0
	case "GT":
		return c > 0
	case "GE":
		return c >= 0
	}
	upper, ok := attr.Compare(v, t.values[1]) // BETWEEN
	return ok && c >= 0 && upper <= 0
}

// operands returns how many values an operator takes; -1 for at least one, -2 for an unknown operator.
func operands(op string) int {
	switch op {
	case "EQ", "NE", "LT", "LE", "GT", "GE", "CONTAINS", "NOT_CONTAINS", "BEGINS_WITH":
		return 1
	case "BETWEEN":
		return 2
	case "NULL", "NOT_NULL":
		return 0
	case "IN":
		return -1
	}
	return -2
}

func readTerm(name string, f *fields, expected bool) (legacyTerm, error) {
	t := legacyTerm{name: name, op: f.text("ComparisonOperator")}
	items := f.items("AttributeValueList")
	if f.err != nil {
		return t, f.err
	}
	// Expected may give the only operand of an operator in its older member.
	if v := f.n.Get("Value"); expected && !v.IsNull() && !f.has("AttributeValueList") {
		items = []jsontree.Node{*v}
	}
	n := operands(t.op)
	if n == -2 {
		return t, invalid("Comparison type does not exist in DynamoDB")
	}
	for i := range items {
		v, err := attr.Decode(&items[i])
		if err != nil {
			return t, err
		}
		t.values = append(t.values, v)
	}
	if n >= 0 && len(t.values) != n || n < 0 && len(t.values) == 0 {
		return t, parameter("Invalid number of argument(s) for the %s ComparisonOperator", t.op)
	}
	for _, v := range t.values {
		ok := true
		switch t.op {
		case "LT", "LE", "GT", "GE", "BETWEEN", "IN", "CONTAINS", "NOT_CONTAINS":
			ok = v.Kind.Comparable()
		case "BEGINS_WITH":
			ok = v.Kind == attr.S || v.Kind == attr.B
		}
		if !ok {
			return t, parameter("ComparisonOperator %s is not valid for %s AttributeValue type", t.op, v.Kind)
		}
	}
	if t.op == "BETWEEN" {
		c, ok := attr.Compare(t.values[0], t.values[1])
		if !ok {
			return t, parameter("AttributeValues inside AttributeValueList must be of same type")
		}
		if c > 0 {
			return t, invalid("The BETWEEN condition was provided a range where the lower bound is greater than the upper bound")
		}
	}
	return t, nil
}

// readLegacyConditions reads a map of conditions; nil if there is none.
func readLegacyConditions(in *fields, param string, expected bool) (*legacyConditions, error) {
	members := in.members(param)
	operator := in.text("ConditionalOperator")
	if in.err != nil {
		return nil, in.err
	}
	if len(members) == 0 {
		if in.has("ConditionalOperator") {
			return nil, invalid("ConditionalOperator cannot be used without Filter or Expected")
		}
		return nil, nil
	}
	if _, ok := oneOf(operator, "AND", "OR"); !ok {
		return nil, invalid("1 validation error detected: Value '%s' at 'conditionalOperator' failed to satisfy constraint: Member must satisfy enum value set: [OR, AND]", operator)
	}
	out := &legacyConditions{any: operator == "OR"}
	for i := range members {
		f := fields{n: &members[i].Value}
		var t legacyTerm
		var err error
		if expected && !f.has("ComparisonOperator") {
			t, err = readExists(members[i].Name, &f)
		} else {
			t, err = readTerm(members[i].Name, &f, expected)
		}
		if err != nil {
			return nil, err
		}
		out.terms = append(out.terms, t)
	}
	return out, nil
}

// readExists reads the oldest form of Expected: Value and Exists.
func readExists(name string, f *fields) (legacyTerm, error) {
	exists := f.get("Exists", jsontree.Bool)
	hasValue := f.has("Value")
	switch {
	case f.err != nil:
		return legacyTerm{}, f.err
	case !hasValue && exists.IsNull():
		return legacyTerm{}, parameter("Value must be provided when Exists is null for Attribute: %s", name)
	case !hasValue && exists.Bool:
		return legacyTerm{}, parameter("Value must be provided when Exists is true for Attribute: %s", name)
	case hasValue && !exists.IsNull() && !exists.Bool:
		return legacyTerm{}, parameter("Value cannot be used when Exists is false for Attribute: %s", name)
	case !hasValue:
		return legacyTerm{name: name, op: "NULL"}, nil
	}
	v, err := attr.Decode(f.n.Get("Value"))
	return legacyTerm{name: name, op: "EQ", values: []*attr.Value{v}}, err
}

func readExpected(in *fields) (condition, error) {
	l, err := readLegacyConditions(in, "Expected", true)
	if err != nil || l == nil {
		return nil, err
	}
	return l, nil
}

// readKeyConditions reads the older form of a key condition. A term whose operator keys do not know has none.
func readKeyConditions(in *fields) ([]expr.KeyTerm, error) {
	members := in.members("KeyConditions")
	if in.err != nil {
		return nil, in.err
	}
	var out []expr.KeyTerm
	for i := range members {
		t, err := readTerm(members[i].Name, &fields{n: &members[i].Value}, false)
		if err != nil {
			return nil, err
		}
		out = append(out, expr.KeyTerm{Name: t.name, Op: keyOp(t.op), Values: t.values})
	}
	return out, nil
}

func keyOp(op string) expr.KeyOp {
	switch op {
	case "EQ":
		return expr.KeyEq
	case "LT":
		return expr.KeyLt
	case "LE":
		return expr.KeyLe
	case "GT":
		return expr.KeyGt
	case "GE":
		return expr.KeyGe
	case "BETWEEN":
		return expr.KeyBetween
	case "BEGINS_WITH":
		return expr.KeyBeginsWith
	}
	return 0
}

// attributeUpdate is one entry of AttributeUpdates.
type attributeUpdate struct {
	name   string
	action string
	value  *attr.Value
}

// legacyUpdate is the older form of an update: it knows only top-level attributes.
type legacyUpdate struct {
	t       *table
	updates []attributeUpdate
}

func readAttributeUpdates(in *fields, t *table) (mutation, error) {
	members := in.members("AttributeUpdates")
	if in.err != nil {
		return nil, in.err
	}
	l := &legacyUpdate{t: t}
	for i := range members {
		f := fields{n: &members[i].Value}
		u := attributeUpdate{name: members[i].Name}
		var ok bool
		if u.action, ok = oneOf(f.text("Action"), "PUT", "ADD", "DELETE"); !ok {
			return nil, invalid("Member must satisfy enum value set: [ADD, DELETE, PUT]")
		}
		if f.err != nil {
			return nil, f.err
		}
		if f.has("Value") {
			v, err := attr.Decode(f.n.Get("Value"))
			if err != nil {
				return nil, err
			}
			u.value = v
		}
		if err := u.check(); err != nil {
			return nil, err
		}
		l.updates = append(l.updates, u)
	}
	return l, nil
}

func (u *attributeUpdate) check() error {
	switch {
	case u.value == nil && u.action != "DELETE":
		return parameter("Only DELETE action is allowed when no attribute value is specified")
	case u.value == nil:
		return nil
	case u.action == "ADD" && u.value.Kind != attr.N && u.value.Kind != attr.L && !u.value.Kind.IsSet(),
		u.action == "DELETE" && !u.value.Kind.IsSet():
		return parameter("%s action is not supported for the type %s", u.action, u.value.Kind.Long())
	}
	return nil
}

func (l *legacyUpdate) targets() []expr.Path {
	paths := make([]expr.Path, len(l.updates))
	for i, u := range l.updates {
		paths[i] = expr.Root(u.name)
	}
	return paths
}

// written is the same: attributes that are gone are not in the item any more.
func (l *legacyUpdate) written() []expr.Path { return l.targets() }

func (l *legacyUpdate) next(before, key attr.Item) (attr.Item, error) {
	item := key.Clone()
	if before != nil {
		item = before.Clone()
	}
	for _, u := range l.updates {
		v, err := u.apply(item[u.name])
		if err != nil {
			return nil, err
		}
		if v == nil {
			delete(item, u.name)
		} else {
			item[u.name] = v
		}
	}
	return item, l.t.checkUpdated(item)
}

// apply returns the attribute's next value; nil if it is gone.
func (u *attributeUpdate) apply(old *attr.Value) (*attr.Value, error) {
	switch {
	case u.action == "PUT":
		return u.value, nil
	case u.value == nil:
		return nil, nil
	case old == nil && u.action == "ADD":
		return u.value, nil
	case old == nil:
		return nil, nil
	case old.Kind != u.value.Kind:
		return nil, invalid("Type mismatch for attribute to update")
	case u.action == "DELETE":
		return attr.Subtract(old, u.value), nil
	case old.Kind == attr.L:
		return attr.Sequence(slices.Concat(old.List, u.value.List)), nil
	case old.Kind.IsSet():
		return attr.Union(old, u.value), nil
	}
	sum, err := old.Num.Add(u.value.Num)
	return attr.Numeric(sum), err
}
