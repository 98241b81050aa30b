package entity

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/mortise-go/mortise/internal/attrvalue"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mortise-go/mortise/table"
)

// basis is what a write knows about the row that it changes or replaces.
type basis struct {
	row     reflect.Value
	item    table.Item // the row as just read, empty if there was none; nil if row is the caller's value
	guarded bool       // the stored row must have the version of row or, if that is 0, the attributes of row

	// whole is set if all of T's fields must be as in row, not only those in keys. The reason is that the result is computed
	// from row, since a transaction does not return it, or that the caller's code has looked at row.
	whole bool

	after reflect.Value // the row after the update, if the caller supplied it; otherwise no value
}

// expectation is the value that one attribute must still have when a write applies.
type expectation struct {
	attr    string
	want    types.AttributeValue // nil if the attribute is absent
	empty   bool                 // the attribute may also be absent or, if want is nil, NULL or zero, since some programs write them
	zero    types.AttributeValue // the field's empty value, encoded; nil if there is no such encoding
	instead *expectation         // what must hold if the attribute is absent; nil if nothing more
}

func (x *expectation) cond() table.Cond {
	attr := table.Attr(x.attr)
	absent := attr.NotExists()
	if x.instead != nil {
		absent = table.And(absent, x.instead.cond())
	}
	switch {
	case x.want != nil && (x.empty || x.instead != nil):
		return table.Or(attr.Equal(x.want), absent)
	case x.want != nil:
		return attr.Equal(x.want)
	case !x.empty:
		return absent
	case x.zero == nil:
		return table.Or(absent, attr.IsType("NULL"))
	}
	return table.Or(absent, attr.IsType("NULL"), attr.Equal(x.zero))
}

func (x *expectation) holds(item table.Item) bool {
	have := item[x.attr]
	switch {
	case have == nil && x.instead != nil:
		return x.instead.holds(item)
	case have == nil:
		return x.want == nil || x.empty
	case x.want == nil && x.empty:
		return isNull(have) || attrvalue.Same(have, x.zero)
	}
	return attrvalue.Same(have, x.want)
}

func isNull(av types.AttributeValue) bool {
	_, null := av.(*types.AttributeValueMemberNULL)
	return null
}

// expect returns the expectation that a field is as in the basis. The write checks it in addition to the version, for two
// reasons: the caller's value can differ from the row that was read, and a row that was deleted and created again can have
// the version of its predecessor.
func (from *basis) expect(p *plan, f *field) (x expectation, err error) {
	x.attr = p.attrOf(f)
	v := f.of(from.row)
	switch {
	case f.home != nil:
		return from.expectHome(f.home)
	case from.item != nil:
		x.want = from.item[x.attr] // as stored, since an older program may have encoded the same value in another way
		return x, nil
	case v.IsZero():
		return nothing(x.attr, v), nil
	case f == p.ttl:
		x.want = p.ttlAttribute(v)
	default:
		if x.want, err = f.encode(v); x.want == nil {
			return nothing(x.attr, v), err
		}
	}
	return x, err
}

// expectHome returns the expectation that a reader finds the fields of a home as they are in the basis. It takes them from the first of
// several keys that the row has.
func (from *basis) expectHome(home *keyPlan) (expectation, error) {
	var list []expectation // of the keys, in the reader's order
	if from.item != nil {
		for _, k := range slices.Concat([]*keyPlan{home}, home.also) {
			list = append(list, expectation{attr: k.attr, want: from.item[k.attr]})
			if from.item[k.attr] != nil {
				break // the reader looks no further
			}
		}
	} else {
		want, err := home.kept(from.row)
		if err != nil {
			return expectation{}, err
		}
		none := want == nil // the fields are empty, or zero, which a key can contain
		list = []expectation{{attr: home.attr, want: want, empty: none}}
		for _, k := range home.also {
			x := expectation{attr: k.attr, empty: none}
			if text, err := k.format(from.row); err == nil {
				x.want = &types.AttributeValueMemberS{Value: text}
			}
			list = append(list, x)
		}
		for !none && list[len(list)-1].want == nil {
			list = list[:len(list)-1] // a reader of a row without the others would find nothing
		}
	}
	for i := len(list) - 1; i > 0; i-- {
		list[i-1].instead = &list[i]
	}
	return list[0], nil
}

// nothing returns the expectation that an attribute is empty, as its field is, whose value is v.
func nothing(attr string, v reflect.Value) expectation {
	x := expectation{attr: attr, empty: true}
	if zero, err := table.Encode(v.Interface()); err == nil {
		x.zero = zero
	}
	return x
}

// versioned reports whether a version guards the row, and not its attributes.
func (from *basis) versioned(p *plan) bool { return from.guarded && p.version.of(from.row).Int() > 0 }

// identified reports whether version and creation time together identify the row that was read. Whole seconds are too coarse,
// and a row that is older than the field has no creation time.
func (from *basis) identified(p *plan) bool {
	return from.versioned(p) && p.created != nil && p.created.seconds == nil && from.item[p.created.attr] != nil
}

// all returns the fields to compare to find any change of the row: Created if that suffices, else all that u does not supply.
// Created and Updated count only in a row with a version, since the other programs that wrote a row without one do not maintain them.
func (from *basis) all(p *plan, u *update) []*field {
	if from.identified(p) {
		return []*field{p.created}
	}
	list := p.kept()
	for _, f := range []*field{p.created, p.updated} {
		if f != nil && from.versioned(p) {
			list = append(list, f)
		}
	}
	if u == nil {
		return list
	}
	return slices.DeleteFunc(list, u.supplies)
}

// maxCompared bounds how many attributes a condition compares: DynamoDB takes 300 operators, and the row's other conditions need some.
const maxCompared = 100

// asRead returns the expectations that a row of an older schema is the one that was read: its time of creation if that identifies it,
// and otherwise all of its attributes, since only the upgrades know on which of them a field depends. The version has to do for a row
// with too many attributes for a condition.
func (from *basis) asRead(p *plan) []expectation {
	list := []expectation{{attr: p.schema, want: from.item[p.schema]}}
	if from.identified(p) {
		return append(list, expectation{attr: p.created.attr, want: from.item[p.created.attr]})
	}
	if len(from.item) > maxCompared && from.versioned(p) {
		return list
	}
	for _, name := range slices.Sorted(maps.Keys(from.item)) {
		if name != p.scheme.PK && name != p.scheme.SK && name != p.schema {
			list = append(list, expectation{attr: name, want: from.item[name]})
		}
	}
	return list
}

// outdated reports whether the row was just read, and is of an older schema.
func (from *basis) outdated(p *plan) bool { return from.item != nil && p.outdated(from.item) }

// unchanged adds to seen that the fields are as in the basis and, if asRead is set, that the row of an older schema is the one that was read.
func (from *basis) unchanged(p *plan, seen []expectation, asRead bool, fields []*field) ([]expectation, error) {
	if asRead {
		seen = also(seen, from.asRead(p)...)
	}
	for _, f := range fields {
		x, err := from.expect(p, f)
		if err != nil {
			return nil, err
		}
		seen = also(seen, x)
	}
	return seen, nil
}

// attrOf returns the attribute that stores a field, or "" if none does. It must not be called for the version.
func (p *plan) attrOf(f *field) string {
	switch {
	case f == p.ttl:
		return p.scheme.TTL
	case f.home != nil:
		return f.home.attr
	}
	return f.attr
}

// kept returns the fields that the row stores in attributes, without those in its key and Version, Created and Updated.
func (p *plan) kept() (list []*field) {
	for _, f := range p.fields {
		if p.attrOf(f) == "" || f == p.version || f == p.created || f == p.updated || p.keyStores(f) {
			continue
		}
		list = append(list, f)
	}
	return list
}

// touches reports whether the update changes a field on which an index's keys depend. When can depend on any field.
func (p *plan) touches(x *indexPlan, u *update) bool {
	if x.when != nil {
		return len(u.list) > 0
	}
	for f := range x.refs() {
		if u.find(f) != nil {
			return true
		}
	}
	return false
}

// needsRow reports whether the update changes index keys or sentinels that depend on more than the update and the row's key.
func (e *core) needsRow(u *update) bool {
	p := e.plan
	for i := range p.indexes {
		if x := &p.indexes[i]; p.touches(x, u) && (x.when != nil || len(p.unsupplied(x, u)) > 0) {
			return true
		}
	}
	return p.touchesUnique(u)
}

// unsupplied returns the fields in an index's keys that neither the update nor the row's key supplies.
func (p *plan) unsupplied(x *indexPlan, u *update) (list []*field) {
	for f := range x.refs() {
		if u.supplies(f) || p.keyStores(f) {
			continue
		}
		list = append(list, f)
	}
	return list
}

// consequences are the changes that an update makes in addition to those that the caller requested.
type consequences struct {
	after     reflect.Value // the row after the update; no value if nothing depends on it
	update    *update       // the requested changes; for a row of an older schema, with results in place of additions
	changes   []table.Change
	seen      []expectation // what must still hold of the row for the other fields to be right
	sentinels []table.Op
}

// consequences computes the index keys and sentinels that change and, for a row of an older schema, all changes of the upgrade.
func (e *core) consequences(from *basis, u *update, s settlement) (c consequences, err error) {
	p := e.plan
	c.update = u
	old := from.outdated(p)
	unique := p.touchesUnique(u)
	depends := fieldSet{}
	for i := range p.indexes {
		x := &p.indexes[i]
		if !old && !p.touches(x, u) {
			continue
		}
		if x.when != nil && !from.guarded {
			return c, fmt.Errorf("%w: index %s has a predicate: the row as it was read is needed", ErrInvalid, x.name)
		}
		if err := e.applied(from, u, &c); err != nil {
			return c, err
		}
		values, err := x.keys(c.after)
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
		if x.when != nil { // a predicate may look at any field
			depends.add(from.all(p, u)...)
		} else {
			depends.add(p.unsupplied(x, u)...)
		}
	}
	if unique {
		if err := e.applied(from, u, &c); err != nil {
			return c, err
		}
		if c.sentinels, err = e.sentinels(e.keyOf(from.row), from.row, c.after, s); err != nil {
			return c, err
		}
		if err := from.dependsUnique(p, &depends); err != nil {
			return c, err
		}
	}
	if e.byAttributes(from) || from.whole && (len(c.sentinels) > 0 || from.after.IsValid()) {
		depends.add(from.all(p, nil)...)
		if !from.identified(p) {
			if c.seen, err = e.nameless(from, u); err != nil {
				return c, err
			}
		}
	}
	if c.seen, err = from.unchanged(p, c.seen, old, depends.list); err != nil || !old {
		return c, err
	}
	if err := e.applied(from, u, &c); err != nil {
		return c, err
	}
	return c, e.renew(from, u, &c)
}

// also adds the expectations for whose attributes the list has none. Several fields can share an attribute, their home.
func also(list []expectation, more ...expectation) []expectation {
	for _, x := range more {
		if !slices.ContainsFunc(list, func(have expectation) bool { return have.attr == x.attr }) {
			list = append(list, x)
		}
	}
	return list
}

// applied sets c.after to the row after the update, unless it is set already.
func (e *core) applied(from *basis, u *update, c *consequences) error {
	switch {
	case c.after.IsValid():
	case from.after.IsValid():
		c.after = from.after
	default:
		after := copyOf(from.row)
		if err := u.applyTo(after); err != nil {
			return err
		}
		c.after = after
	}
	return nil
}

// renew adds the changes that bring a row of an older schema to the current one. Unless the row is identified, it also requires that
// the attributes that are new to the row are still missing. asRead has the others.
func (e *core) renew(from *basis, u *update, c *consequences) error {
	p := e.plan
	up, err := p.upgraded(from.item)
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
	for _, name := range slices.Sorted(maps.Keys(from.item)) {
		if up[name] == nil && !taken[name] {
			c.changes = append(c.changes, table.Attr(name).Remove())
		}
	}
	for _, name := range slices.Sorted(maps.Keys(up)) {
		if !taken[name] && !attrvalue.Same(from.item[name], up[name]) {
			c.changes = append(c.changes, table.Attr(name).Set(up[name]))
		}
		if from.item[name] == nil && !from.identified(p) {
			c.seen = also(c.seen, expectation{attr: name})
		}
	}
	// The stored number, list or set is still that of the old schema, so write the result instead of changing it in place.
	c.update, err = u.settled(c.after)
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
