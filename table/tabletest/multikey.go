package tabletest

import (
	"slices"
	"strings"

	"github.com/mortise-go/mortise/table/tabletest/internal/attr"
	"github.com/mortise-go/mortise/table/tabletest/internal/expr"
)

// Roles of a key attribute.
const (
	roleHash = "HASH"
	roleSort = "RANGE"
)

// maxRole is the maximum number of attributes with the same role in a global index's key.
const maxRole = 4

// several reports whether a role has more than one attribute.
func (s keySchema) several() bool { return len(s.hash()) > 1 || len(s.sort()) > 1 }

// checkRoles validates the key schema of a global index.
func checkRoles(names, roles []string) error {
	if roles[0] != roleHash {
		return errFirstRole()
	}
	if slices.Equal(roles, []string{roleHash, roleSort}) && names[0] == names[1] {
		return errOneName()
	}
	count := map[string]int{}
	for i, role := range roles {
		if slices.Contains(names[:i], names[i]) {
			return invalid("The KeySchema contains multiple key attributes with the same name")
		}
		if role == roleHash && count[roleSort] > 0 {
			return parameter("All HASH key attributes must precede RANGE key attributes in the KeySchema")
		}
		count[role]++
	}
	for _, role := range []string{roleHash, roleSort} {
		if count[role] > maxRole {
			return parameter("The KeySchema exceeds the maximum allowed number of %s key attributes", role)
		}
	}
	return nil
}

func errFirstRole() error {
	return invalid("Invalid KeySchema: The first KeySchemaElement is not a HASH key type")
}

// errOneName returns the error for a partition key and a sort key that are the same attribute.
func errOneName() error {
	return invalid("Both the Hash Key and the Range Key element in the KeySchema have the same name")
}

// checkAggregate refuses an item whose attributes of one role are too long together. It checks a role only if the item has all of its
// attributes.
func (x *index) checkAggregate(item attr.Item) error {
	for _, role := range []struct {
		name  string
		attrs []keyAttr
		limit int
	}{{roleHash, x.keys.hash(), maxHashKey}, {roleSort, x.keys.sort(), maxSortKey}} {
		missing := func(a keyAttr) bool { return item[a.name] == nil }
		if len(role.attrs) < 2 || slices.ContainsFunc(role.attrs, missing) {
			continue
		}
		if size := sizeOf(role.attrs, item); size > role.limit {
			err := invalid("Aggregate size for %s key attributes %s of index %s has exceeded limit %d bytes, with actual size %d bytes",
				role.name, listed(role.attrs), x.name, role.limit, size)
			err.mismatch = true
			return err
		}
	}
	return nil
}

// sizeOf returns the total size of the item's values of the attributes. Missing attributes count as 0.
func sizeOf(attrs []keyAttr, item attr.Item) int {
	size := 0
	for _, a := range attrs {
		if v, ok := item[a.name]; ok {
			size += v.Size()
		}
	}
	return size
}

func listed(attrs []keyAttr) string {
	names := make([]string, len(attrs))
	for i, a := range attrs {
		names[i] = a.name
	}
	return strings.Join(names, ", ")
}

// checkSeveral checks the conditions of a query on a key with several attributes in a role. All partition attributes need equality. Sort
// attributes must have conditions from the left without a gap. Of these conditions, all but the last must be equality.
func (p *page) checkSeveral(conditions map[string]expr.KeyTerm) error {
	keys := p.keys()
	var missing, unequal []keyAttr
	for _, a := range keys.hash() {
		switch t, ok := conditions[a.name]; {
		case !ok:
			missing = append(missing, a)
		case t.Op != expr.KeyEq:
			unequal = append(unequal, a)
		}
	}
	if len(missing) > 0 {
		unequal = missing // the error then lists only the missing ones
	}
	if len(unequal) > 0 {
		return invalid("HASH key attributes %s must have equality conditions specified in the query", listed(unequal))
	}
	if err := p.checkOperands(keys.hash(), conditions); err != nil {
		return err
	}
	if err := checkFromLeft(keys.sort(), conditions); err != nil {
		return err
	}
	if err := p.checkOperands(keys.sort(), conditions); err != nil {
		return err
	}
	return p.checkNames(conditions)
}

func checkFromLeft(sort []keyAttr, conditions map[string]expr.KeyTerm) error {
	refuse := func(wanted []keyAttr, because keyAttr) error {
		return invalid("RANGE key attributes %s must have equality conditions specified in the query because a condition is present on key attribute %s",
			listed(wanted), because.name)
	}
	var gap, unequal []keyAttr
	var last keyAttr
	for _, a := range sort {
		t, ok := conditions[a.name]
		switch {
		case !ok:
			gap = append(gap, a)
			continue
		case len(gap) > 0:
			return refuse(gap, a)
		case t.Op != expr.KeyEq:
			unequal = append(unequal, a)
		}
		last = a
	}
	unequal = slices.DeleteFunc(unequal, func(a keyAttr) bool { return a == last })
	if len(unequal) > 0 {
		return refuse(unequal, last)
	}
	return nil
}
