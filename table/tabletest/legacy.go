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

// legacyConditions is the older form of a condition: terms of which all, or at least one, must hold.
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

// operands returns the number of values that an operator takes, or -1 for at least one.
func operands(op string) int {
	switch op {
	case "BETWEEN":
		return 2
	case "NULL", "NOT_NULL":
		return 0
	case "IN":
		return -1
	}
	return 1
}

// readTerm reads a condition with an operator. The request's shape allows only known operators.
func readTerm(name string, f *fields) (legacyTerm, error) {
	t := legacyTerm{name: name, op: f.text("ComparisonOperator")}
	items := f.items("AttributeValueList")
	// In Expected, the only operand can also be in the older member Value.
	if v := f.n.Get("Value"); !v.IsNull() && !f.has("AttributeValueList") {
		items = []jsontree.Node{*v}
	}
	return t, t.readOperands(items)
}

func (t *legacyTerm) readOperands(items []jsontree.Node) error {
	n := operands(t.op)
	for i := range items {
		v, err := attr.Decode(&items[i])
		if err != nil {
			return err
		}
		t.values = append(t.values, v)
	}
	if n >= 0 && len(t.values) != n || n < 0 && len(t.values) == 0 {
		return parameter("Invalid number of argument(s) for the %s ComparisonOperator", t.op)
	}
	for _, v := range t.values {
		if v.Kind != t.values[0].Kind {
			return parameter("AttributeValues inside AttributeValueList must be of same type")
		}
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
			return parameter("ComparisonOperator %s is not valid for %s AttributeValue type", t.op, v.Kind)
		}
	}
	if t.op == "BETWEEN" {
		if c, _ := attr.Compare(t.values[0], t.values[1]); c > 0 {
			return invalid("The BETWEEN condition was provided a range where the lower bound is greater than the upper bound")
		}
	}
	return nil
}

// readExpectation reads one entry of Expected: a condition with an operator, or the oldest form, Value and Exists.
func readExpectation(name string, f *fields) (legacyTerm, error) {
	op, list, value := f.has("ComparisonOperator"), f.has("AttributeValueList"), f.has("Value")
	switch {
	case list && value:
		return legacyTerm{}, parameter("Value and AttributeValueList cannot be used together for Attribute: %s", name)
	case op && f.has("Exists"):
		return legacyTerm{}, parameter("Exists and ComparisonOperator cannot be used together for Attribute: %s", name)
	case op && !list && !value && operands(f.text("ComparisonOperator")) != 0:
		return legacyTerm{}, parameter("Value or AttributeValueList must be used with ComparisonOperator: %s for Attribute: %s", f.text("ComparisonOperator"), name)
	case op:
		return readTerm(name, f)
	case list:
		return legacyTerm{}, parameter("AttributeValueList can only be used with a ComparisonOperator for Attribute: %s", name)
	}
	return readExists(name, f)
}

// readLegacyConditions reads a map of conditions, or returns nil if there is none.
func readLegacyConditions(in *fields, param string, expected bool) (*legacyConditions, error) {
	members := in.members(param)
	operator := in.text("ConditionalOperator")
	if len(members) == 0 {
		if in.has("ConditionalOperator") {
			return nil, invalid("ConditionalOperator cannot be used without Filter or Expected")
		}
		return nil, nil
	}
	out := &legacyConditions{any: operator == "OR"}
	for i := range members {
		read := readTerm
		if expected {
			read = readExpectation
		}
		t, err := read(members[i].Name, &fields{n: &members[i].Value})
		if err != nil {
			return nil, err
		}
		if err := attr.CheckName(t.name); err != nil {
			return nil, err
		}
		out.terms = append(out.terms, t)
	}
	if len(members) == 1 && in.has("ConditionalOperator") {
		return nil, invalid("ConditionalOperator can only be used when Filter or Expected has two or more elements")
	}
	return out, nil
}

// readExists reads the oldest form of Expected: Value and Exists.
func readExists(name string, f *fields) (legacyTerm, error) {
	exists, hasValue := f.n.Get("Exists"), f.has("Value")
	switch {
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

// readKeyConditions reads the older form of a key condition. An operator that keys do not have becomes 0, which keyTerms refuses.
func readKeyConditions(in *fields) ([]expr.KeyTerm, error) {
	members := in.members("KeyConditions")
	var out []expr.KeyTerm
	for i := range members {
		t, err := readTerm(members[i].Name, &fields{n: &members[i].Value})
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

// legacyUpdate is the older form of an update. It supports only top-level attributes.
type legacyUpdate struct{ updates []attributeUpdate }

func readAttributeUpdates(in *fields) (mutation, error) {
	members := in.members("AttributeUpdates")
	l := &legacyUpdate{}
	for i := range members {
		f := fields{n: &members[i].Value}
		u := attributeUpdate{name: members[i].Name, action: f.text("Action")}
		if u.action == "" {
			u.action = "PUT"
		}
		if err := attr.CheckName(u.name); err != nil {
			return nil, err
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
	case u.action == "ADD" && u.value.Kind != attr.N && u.value.Kind != attr.L && !u.value.Kind.IsSet():
		return parameter("ADD action is not supported for the type %s", u.value.Kind)
	case u.action == "DELETE" && !u.value.Kind.IsSet():
		return parameter("DELETE action with value is not supported for the type %s", u.value.Kind)
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

func (l *legacyUpdate) next(t *table, before, key attr.Item) (attr.Item, error) {
	item := key.Clone()
	switch {
	case before != nil:
		item = before.Clone()
	case l.onlyDeletes():
		return nil, nil
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
	return item, t.checkUpdated(item, l.kindOf)
}

func (l *legacyUpdate) kindOf(name string) attr.Kind {
	for _, u := range l.updates {
		if u.name == name && u.value != nil {
			return u.value.Kind
		}
	}
	return 0
}

// onlyDeletes reports whether there are actions and all of them delete. Then no item is created; without any action, one is.
func (l *legacyUpdate) onlyDeletes() bool {
	return len(l.updates) > 0 && !slices.ContainsFunc(l.updates, func(u attributeUpdate) bool { return u.action != "DELETE" })
}

// apply returns the attribute's new value, or nil to remove the attribute.
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
