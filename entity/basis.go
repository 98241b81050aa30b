package entity

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mortise-go/mortise/table"
)

// basis is what a write of an existing row starts from.
type basis[T any] struct {
	row     T
	item    table.Item // the row as it was read just now; nil where row is the caller's
	guarded bool       // the row has to be of the version of row; where that is 0, with the same attributes

	// whole says that the outcome depends on all that T has of the row, not only on what
	// keys are made of: it is returned without being read, or the caller's code looked at it.
	whole bool

	after *T // what the update makes of row, where that is known already
}

// expectation is what a write relies on in one attribute of the row.
type expectation struct {
	attr  string
	want  types.AttributeValue // nil for nothing
	empty bool                 // of nothing, in whatever form a program writes it: missing, NULL, or zero
	zero  types.AttributeValue
}

func (x *expectation) cond() table.Cond {
	attr := table.Attr(x.attr)
	switch {
	case x.want != nil:
		return attr.Equal(x.want)
	case !x.empty:
		return attr.NotExists()
	case x.zero == nil:
		return table.Or(attr.NotExists(), attr.IsType("NULL"))
	}
	return table.Or(attr.NotExists(), attr.IsType("NULL"), attr.Equal(x.zero))
}

func (x *expectation) holds(item table.Item) bool {
	have := item[x.attr]
	if x.want != nil || have == nil || !x.empty {
		return (x.want == nil) == (have == nil) && (have == nil || table.SameValue(have, x.want))
	}
	_, null := have.(*types.AttributeValueMemberNULL)
	return null || x.zero != nil && table.SameValue(have, x.zero)
}

// expect is what the row has for a field by the basis. A condition on it is needed under a
// version too: the row may be the caller's, and not as it was read; and a row that was
// deleted and created again since has the version that its predecessor had.
func (from *basis[T]) expect(p *plan, f *field) (x expectation, err error) {
	x.attr = p.attrOf(f)
	v := f.of(reflect.ValueOf(&from.row).Elem())
	switch {
	case from.item != nil:
		x.want = from.item[x.attr] // in whatever form an older program wrote it
		return x, nil
	case f.home != nil:
		x.want, err = f.home.kept(reflect.ValueOf(&from.row).Elem())
		x.empty = x.want == nil
		return x, err
	case v.IsZero():
		x.empty = true
	case f == p.ttl:
		x.want = p.ttlAttribute(v)
	default:
		x.want, err = f.encode(v)
		x.empty = x.want == nil
	}
	if x.empty {
		if zero, err := table.Encode(v.Interface()); err == nil {
			x.zero = zero
		}
	}
	return x, err
}

// identified says that the version and the time of creation together tell the row as it was
// read from any other.
func (from *basis[T]) identified(p *plan) bool {
	return from.guarded && from.item != nil && p.created != nil && !p.created.unix &&
		p.version.of(reflect.ValueOf(&from.row).Elem()).Int() > 0
}

// all are the fields by which a row is known to be the one that was read as a whole; those
// that the update supplies left out.
func (from *basis[T]) all(p *plan, u *update) []*field {
	switch {
	case from.identified(p):
		return []*field{p.created}
	case u == nil:
		return p.kept()
	}
	return slices.DeleteFunc(p.kept(), u.supplies)
}

// attrOf is the attribute that a field is kept in.
func (p *plan) attrOf(f *field) string {
	switch {
	case f == p.ttl:
		return p.scheme.TTL
	case f.home != nil:
		return f.home.attr
	}
	return f.attr
}

// kept are the fields that a row's attributes tell of, those that the entity maintains
// itself and those of the key left out.
func (p *plan) kept() (list []*field) {
	for _, f := range p.fields {
		if p.attrOf(f) == "" || f == p.version || f == p.created || f == p.updated || p.inKey(f) {
			continue
		}
		list = append(list, f)
	}
	return list
}

// touches says whether the update changes what the keys of an index depend on.
func (p *plan) touches(x *indexPlan, u *update) bool {
	if x.when {
		return len(u.list) > 0
	}
	for f := range x.refs() {
		if u.find(f) != nil {
			return true
		}
	}
	return false
}

// needsRow says whether keys have to be computed from more than the update and the key say.
func (e *Entity[T]) needsRow(u *update) bool {
	p := e.plan
	for i := range p.indexes {
		if x := &p.indexes[i]; p.touches(x, u) && (x.when || len(p.unsupplied(x, u)) > 0) {
			return true
		}
	}
	return p.touchesUnique(u)
}

// unsupplied are the fields that an index's keys depend on and that neither the update
// nor the row's key supplies.
func (p *plan) unsupplied(x *indexPlan, u *update) (list []*field) {
	for f := range x.refs() {
		if u.supplies(f) || p.inKey(f) {
			continue
		}
		list = append(list, f)
	}
	return list
}

// consequences are what an update entails beyond the changes that were asked for.
type consequences[T any] struct {
	after     *T      // the row as it will be; nil where nothing depends on it
	update    *update // what was asked for
	changes   []table.Change
	seen      []expectation // under which all this is right
	sentinels []table.Op
}

// consequences computes them from the basis with the update applied: keys of indexes,
// sentinels of unique values, and all that differs in a row of an older schema.
func (e *Entity[T]) consequences(from *basis[T], u *update, s settlement) (c consequences[T], err error) {
	p := e.plan
	c.update = u
	old := from.item != nil && e.outdated(from.item)
	unique := p.touchesUnique(u)
	depends := fieldSet{}
	for i := range p.indexes {
		x := &p.indexes[i]
		if !old && !p.touches(x, u) {
			continue
		}
		if x.when && !from.guarded {
			return c, fmt.Errorf("%w: index %s has a predicate: the row as it was read is needed", ErrInvalid, x.name)
		}
		if err := e.applied(from, u, &c); err != nil {
			return c, err
		}
		values, err := e.indexKeys(i, c.after)
		if err != nil {
			return c, err
		}
		for _, kv := range values {
			if kv.value == "" {
				c.changes = append(c.changes, table.Attr(kv.attr).Remove())
			} else {
				c.changes = append(c.changes, table.Attr(kv.attr).Set(kv.value))
			}
		}
		if x.when { // which may look at anything
			depends.add(from.all(p, u)...)
		} else {
			depends.add(p.unsupplied(x, u)...)
		}
	}
	if unique {
		if err := e.applied(from, u, &c); err != nil {
			return c, err
		}
		if c.sentinels, err = e.sentinels(e.Key(from.row), &from.row, c.after, s); err != nil {
			return c, err
		}
		if err := from.dependsUnique(p, &depends); err != nil {
			return c, err
		}
	}
	if e.byAttributes(from) || from.whole && (len(c.sentinels) > 0 || from.after != nil) {
		depends.add(from.all(p, nil)...)
		if !from.identified(p) {
			if c.seen, err = e.nameless(from, u); err != nil {
				return c, err
			}
		}
	}
	if old {
		if err := e.applied(from, u, &c); err != nil {
			return c, err
		}
		return c, e.renew(from, u, &c)
	}
	for _, f := range depends.list {
		x, err := from.expect(p, f)
		if err != nil {
			return c, err
		}
		c.seen = also(c.seen, x)
	}
	return c, nil
}

// also adds an expectation, unless there is one of the attribute: several fields may be kept in one.
func also(list []expectation, x expectation) []expectation {
	if slices.ContainsFunc(list, func(have expectation) bool { return have.attr == x.attr }) {
		return list
	}
	return append(list, x)
}

// applied computes the row after the update, once.
func (e *Entity[T]) applied(from *basis[T], u *update, c *consequences[T]) error {
	switch {
	case c.after != nil:
	case from.after != nil:
		c.after = from.after
	default:
		after := from.row
		if err := u.applyTo(reflect.ValueOf(&after).Elem()); err != nil {
			return err
		}
		c.after = &after
	}
	return nil
}

// renew adds what brings a row of an older schema to the current one, beside the update.
// Without a version it is under the condition that nothing of the row has changed, since
// an upgrade may have looked at anything.
func (e *Entity[T]) renew(from *basis[T], u *update, c *consequences[T]) error {
	p := e.plan
	up, err := e.upgraded(from.item)
	if err != nil {
		return err
	}
	if err := p.fitKeys(up); err != nil {
		return err
	}
	taken := map[string]bool{}
	for i := range u.list {
		taken[u.list[i].attr] = true
	}
	for i := range c.changes {
		taken[c.changes[i].Target()] = true
	}
	c.seen = append(c.seen, expectation{attr: p.schema, want: from.item[p.schema]})
	whole := !from.guarded || e.byAttributes(from)
	for _, name := range slices.Sorted(maps.Keys(from.item)) {
		if up[name] == nil && !taken[name] {
			c.changes = append(c.changes, table.Attr(name).Remove())
		}
		if whole && name != p.scheme.PK && name != p.scheme.SK && name != p.schema {
			c.seen = append(c.seen, expectation{attr: name, want: from.item[name]})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(up)) {
		if have := from.item[name]; !taken[name] && (have == nil || !table.SameValue(have, up[name])) {
			c.changes = append(c.changes, table.Attr(name).Set(up[name]))
		}
		if whole && from.item[name] == nil && name != p.schema {
			c.seen = append(c.seen, expectation{attr: name})
		}
	}
	// What the row has to be added to is the old schema's: the sum is known here.
	c.update, err = u.settled(reflect.ValueOf(c.after).Elem())
	return err
}

// fieldSet is a list without repetitions.
type fieldSet struct{ list []*field }

func (s *fieldSet) add(fields ...*field) {
	for _, f := range fields {
		if !slices.Contains(s.list, f) {
			s.list = append(s.list, f)
		}
	}
}
