package entity

import (
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/cockroachdb/apd/v3"

	"github.com/mortise-go/mortise/table"
)

// Change is one change to a field, for Update. Fields are named as in Spec.
type Change struct {
	verb  verb
	name  string
	value any
}

type verb uint8

const (
	setVerb verb = iota
	addVerb
	removeVerb
	appendVerb
)

// Set gives a field a value of its type. A value that its tag leaves out of a row, such as
// an empty string without allowempty, removes the attribute.
func Set(name string, value any) Change { return Change{setVerb, name, value} }

// Add adds to a number, where a missing one counts as 0, or puts elements into a set. A
// request that is repeated after a lost answer may add twice, unless T has a version and
// o is as it was read, or it is part of a transaction.
func Add(name string, value any) Change { return Change{addVerb, name, value} }

// Remove removes a field from the row.
func Remove(name string) Change { return Change{removeVerb, name, nil} }

// Append appends the elements of a slice to a list; a missing one counts as empty.
func Append(name string, elements any) Change { return Change{appendVerb, name, elements} }

// update is a list of changes that has been checked against T.
type update struct {
	list []resolved
}

type resolved struct {
	field *field
	verb  verb
	value reflect.Value        // for set: of the field's type
	av    types.AttributeValue // nil for remove, and for a set to nothing
	attr  string               // of the table
}

func (u *update) find(f *field) *resolved {
	for i := range u.list {
		if u.list[i].field == f {
			return &u.list[i]
		}
	}
	return nil
}

func (e *Entity[T]) resolveChanges(changes []Change) (*update, error) {
	u := &update{list: make([]resolved, 0, len(changes))}
	for _, c := range changes {
		r, err := e.plan.resolveChange(c)
		if err != nil {
			return nil, err
		}
		if u.find(r.field) != nil {
			return nil, fmt.Errorf("%w: two changes of %q", ErrInvalid, c.name)
		}
		u.list = append(u.list, r)
	}
	return u, nil
}

func (p *plan) resolveChange(c Change) (r resolved, err error) {
	f := resolve(p.fields, c.name)
	if f == nil {
		return r, fmt.Errorf("%w: no field %q", ErrInvalid, c.name)
	}
	if f == p.version || f == p.created || f == p.updated {
		return r, fmt.Errorf("%w: %q is maintained by the entity", ErrInvalid, c.name)
	}
	for _, k := range append(p.pk.refs[:len(p.pk.refs):len(p.pk.refs)], p.sk.refs...) {
		if k == f {
			return r, fmt.Errorf("%w: %q is part of the key", ErrInvalid, c.name)
		}
	}
	if f.attr == "" {
		return r, fmt.Errorf("%w: %q is not kept in the row", ErrInvalid, c.name)
	}
	r = resolved{field: f, verb: c.verb, attr: f.attr}
	switch c.verb {
	case setVerb:
		if r.value, err = f.convert(c.value); err != nil {
			return r, err
		}
		if f == p.ttl {
			r.attr = p.scheme.TTL
			if at := r.value.Interface().(time.Time); !at.IsZero() {
				r.av = ttlValue(at)
			}
			return r, nil
		}
		r.av, err = f.encode(r.value)
		return r, err
	case removeVerb:
		if f == p.ttl {
			r.attr = p.scheme.TTL
		}
		r.value = reflect.Zero(f.typ)
		return r, nil
	}
	if f == p.ttl {
		return r, fmt.Errorf("%w: %q can only be set or removed", ErrInvalid, c.name)
	}
	if r.av, err = f.encodeElements(c.value); err != nil {
		return r, err
	}
	switch r.av.(type) {
	case *types.AttributeValueMemberN, *types.AttributeValueMemberNS, *types.AttributeValueMemberSS, *types.AttributeValueMemberBS:
		if c.verb == addVerb {
			return r, nil
		}
	case *types.AttributeValueMemberL:
		if c.verb == appendVerb {
			return r, nil
		}
	}
	return r, fmt.Errorf("%w: %q cannot be added or appended to with a %T", ErrInvalid, c.name, c.value)
}

// encodeElements encodes what is added to a field: by the field's own tag where v has its
// type, so that a set stays a set, and by v's type otherwise (a delta of another integer type).
func (f *field) encodeElements(v any) (types.AttributeValue, error) {
	if rv, err := f.convert(v); err == nil {
		av, err := f.encode(rv)
		if av != nil || err != nil {
			return av, err
		}
	}
	return table.Encode(v)
}

// table is the update in terms of attributes.
func (u *update) table() []table.Change {
	list := make([]table.Change, 0, len(u.list)+4)
	for i := range u.list {
		r := &u.list[i]
		attr := table.Attr(r.attr)
		switch {
		case r.verb == addVerb:
			list = append(list, attr.Add(r.av))
		case r.verb == appendVerb:
			list = append(list, attr.Set(attr.OrElse(&types.AttributeValueMemberL{}).Append(r.av)))
		case r.av == nil:
			list = append(list, attr.Remove())
		default:
			list = append(list, attr.Set(r.av))
		}
	}
	return list
}

// touches says whether the update changes what the keys of an index depend on.
func (p *plan) touches(x *indexPlan, u *update) bool {
	if x.when {
		return len(u.list) > 0
	}
	for i := range u.list {
		for _, f := range append(x.pk.refs[:len(x.pk.refs):len(x.pk.refs)], x.sk.refs...) {
			if u.list[i].field == f {
				return true
			}
		}
	}
	return false
}

// needsRow says whether index keys have to be computed from more than the update and the key say.
func (e *Entity[T]) needsRow(u *update) bool {
	p := e.plan
	for i := range p.indexes {
		if x := &p.indexes[i]; p.touches(x, u) && (x.when || len(p.unsupplied(x, u)) > 0) {
			return true
		}
	}
	return false
}

// unsupplied are the fields that an index's keys depend on and that neither the update
// nor the row's key supplies.
func (p *plan) unsupplied(x *indexPlan, u *update) (list []*field) {
	for _, f := range append(x.pk.refs[:len(x.pk.refs):len(x.pk.refs)], x.sk.refs...) {
		if r := u.find(f); r != nil && (r.verb == setVerb || r.verb == removeVerb) || p.inKey(f) {
			continue
		}
		list = append(list, f)
	}
	return list
}

func (p *plan) inKey(f *field) bool {
	for _, k := range append(p.pk.refs[:len(p.pk.refs):len(p.pk.refs)], p.sk.refs...) {
		if k == f {
			return true
		}
	}
	return false
}

// indexChanges are the changes of index keys that an update entails, computed from o with
// the update applied, and the condition under which they are right: that the fields taken
// from o are still what they are in o. Under a version that goes without saying.
func (e *Entity[T]) indexChanges(o T, u *update) (changes []table.Change, seen table.Cond, err error) {
	p := e.plan
	versioned := e.versionOf(&o) > 0
	after, applied := o, false
	var conds []table.Cond
	asked := map[*field]bool{}
	for i := range p.indexes {
		x := &p.indexes[i]
		if !p.touches(x, u) {
			continue
		}
		if x.when && !versioned {
			return nil, seen, fmt.Errorf("%w: index %s has a predicate: the row as it was read is needed, with its version", ErrInvalid, x.name)
		}
		if !applied {
			if err := u.applyTo(reflect.ValueOf(&after).Elem()); err != nil {
				return nil, seen, err
			}
			applied = true
		}
		values, err := e.indexKeys(i, &after)
		if err != nil {
			return nil, seen, err
		}
		for _, kv := range values {
			if kv.value == "" {
				changes = append(changes, table.Attr(kv.attr).Remove())
			} else {
				changes = append(changes, table.Attr(kv.attr).Set(kv.value))
			}
		}
		if versioned {
			continue
		}
		for _, f := range p.unsupplied(x, u) {
			if asked[f] {
				continue
			}
			asked[f] = true
			cond, err := f.unchanged(reflect.ValueOf(&o).Elem())
			if err != nil {
				return nil, seen, err
			}
			conds = append(conds, cond)
		}
	}
	return changes, table.And(conds...), nil
}

// unchanged is the condition that the row has for this field what v has.
func (f *field) unchanged(v reflect.Value) (table.Cond, error) {
	av, err := f.encode(f.of(v))
	if err != nil {
		return table.Cond{}, err
	}
	if av == nil {
		return table.Attr(f.attr).NotExists(), nil
	}
	return table.Attr(f.attr).Equal(av), nil
}

// applyTo makes the changes to a value of T, as DynamoDB makes them to the row.
func (u *update) applyTo(v reflect.Value) error {
	for i := range u.list {
		r := &u.list[i]
		target := r.field.of(v)
		switch r.verb {
		case setVerb, removeVerb:
			target.Set(r.value)
		case addVerb, appendVerb:
			have, err := r.field.encode(target)
			if err != nil {
				return err
			}
			sum, err := combine(have, r.av)
			if err == nil {
				err = r.field.decode(target, sum)
			}
			if err != nil {
				return fmt.Errorf("%w: add to %q: %w", ErrInvalid, r.field.goName, err)
			}
		}
	}
	return nil
}

// combine is what ADD or list_append make of two attribute values; have may be nil.
func combine(have, delta types.AttributeValue) (types.AttributeValue, error) {
	if have == nil {
		return delta, nil
	}
	switch d := delta.(type) {
	case *types.AttributeValueMemberN:
		if h, ok := have.(*types.AttributeValueMemberN); ok {
			return plus(h.Value, d.Value)
		}
	case *types.AttributeValueMemberL:
		if h, ok := have.(*types.AttributeValueMemberL); ok {
			return &types.AttributeValueMemberL{Value: slices.Concat(h.Value, d.Value)}, nil
		}
	case *types.AttributeValueMemberSS:
		if h, ok := have.(*types.AttributeValueMemberSS); ok {
			return &types.AttributeValueMemberSS{Value: union(h.Value, d.Value)}, nil
		}
	case *types.AttributeValueMemberNS:
		if h, ok := have.(*types.AttributeValueMemberNS); ok {
			return &types.AttributeValueMemberNS{Value: union(h.Value, d.Value)}, nil
		}
	case *types.AttributeValueMemberBS:
		if h, ok := have.(*types.AttributeValueMemberBS); ok {
			return &types.AttributeValueMemberBS{Value: slices.Concat(h.Value, d.Value)}, nil
		}
	}
	return nil, fmt.Errorf("%w: types differ", ErrInvalid)
}

func union(a, b []string) []string {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

// plus adds exactly, with the 38 digits that DynamoDB has.
func plus(a, b string) (types.AttributeValue, error) {
	x, _, err := apd.NewFromString(a)
	if err != nil {
		return nil, err
	}
	y, _, err := apd.NewFromString(b)
	if err != nil {
		return nil, err
	}
	sum := new(apd.Decimal)
	if _, err := apd.BaseContext.WithPrecision(38).Add(sum, x, y); err != nil {
		return nil, err
	}
	return &types.AttributeValueMemberN{Value: sum.Text('f')}, nil
}
