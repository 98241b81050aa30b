package entity

import (
	"bytes"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/mortise-go/mortise/entity/internal/codec"
	"github.com/mortise-go/mortise/internal/attrvalue"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/cockroachdb/apd/v3"

	"github.com/mortise-go/mortise/table"
)

// Change is one change to a field, for [Entity.Update]. Fields are named as in [Spec].
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
	removeFromVerb
)

// Set gives a field a value of its type. If the field's tag omits the value, such as an empty string without
// allowempty, Set removes the attribute.
func Set(name string, value any) Change { return Change{setVerb, name, value} }

// Add adds to a number, or adds elements to a set. A missing number counts as 0. A field that is written as NULL when it
// is empty, because its tag has null, is refused with [ErrInvalid], also by Append and RemoveFrom: use [Entity.Modify].
//
// If an answer is lost, the request is repeated and can add twice. It adds once in a transaction, and if T has a
// version and the value is the row as it was read.
func Add(name string, value any) Change { return Change{addVerb, name, value} }

// Remove removes a field from the row.
func Remove(name string) Change { return Change{removeVerb, name, nil} }

// Append appends the elements of a slice to a list. A missing list counts as empty. An array cannot grow, so it is refused.
func Append(name string, elements any) Change { return Change{appendVerb, name, elements} }

// RemoveFrom removes elements from a set. Pass them as the field's type; elements that are not in the set are ignored.
// A set that becomes empty is removed.
func RemoveFrom(name string, elements any) Change { return Change{removeFromVerb, name, elements} }

// update is a list of changes that has been checked against T.
type update struct {
	list []resolved
}

type resolved struct {
	field *field // nil if the attribute's field cannot be named
	verb  verb
	value reflect.Value        // for set and remove: a value of the field's type
	av    types.AttributeValue // nil to remove the attribute, and for a field with a home
	attr  string               // attribute that stores the field
}

func (u *update) find(f *field) *resolved {
	for i := range u.list {
		if u.list[i].field == f {
			return &u.list[i]
		}
	}
	return nil
}

// resolveChanges checks the changes, and adds the change of the field Updated.
func (e *core) resolveChanges(changes []Change) (*update, error) {
	u := &update{list: make([]resolved, 0, len(changes)+1)}
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
	return u, e.stampUpdate(u)
}

// stampUpdate adds the change of the field Updated.
func (e *core) stampUpdate(u *update) (err error) {
	f := e.plan.updated
	if f == nil {
		return nil
	}
	r := resolved{field: f, verb: setVerb, value: reflect.ValueOf(f.stamp(e.table.Now())), attr: f.attr}
	if r.av, err = f.encode(r.value); err == nil {
		u.list = append(u.list, r)
	}
	return err
}

// keyChange is the error for a change of a field of the row's own key.
func keyChange(name string) error {
	return fmt.Errorf("%w: %q is part of the key: delete the row and create another one, in a transaction", ErrInvalid, name)
}

func (p *plan) resolveChange(c Change) (r resolved, err error) {
	f := resolve(p.fields, c.name)
	if f == nil {
		return r, fmt.Errorf("%w: no field %q", ErrInvalid, c.name)
	}
	if f == p.version || f == p.created || f == p.updated {
		return r, fmt.Errorf("%w: %q is maintained by the entity", ErrInvalid, c.name)
	}
	if p.inKey(f) {
		return r, keyChange(c.name)
	}
	r = resolved{field: f, verb: c.verb, attr: p.attrOf(f)}
	if r.attr == "" {
		return r, fmt.Errorf("%w: %q is not kept in the row", ErrInvalid, c.name)
	}
	switch {
	case c.verb == removeVerb:
		r.value = reflect.Zero(f.typ)
		return r, nil
	case c.verb == setVerb:
		if r.value, err = f.convert(c.value); err != nil {
			return r, err
		}
		if f.home != nil { // consequences writes the whole index key
			return r, nil
		}
		if f != p.ttl {
			r.av, err = f.encode(r.value)
		} else if at := r.value.Interface().(time.Time); !at.IsZero() {
			r.value, r.av = reflect.ValueOf(ttlTime(at)), ttlValue(at)
		}
		return r, err
	case f == p.ttl, f.home != nil:
		return r, fmt.Errorf("%w: %q can only be set or removed", ErrInvalid, c.name)
	}
	if none, _ := f.encode(reflect.Zero(f.typ)); isNull(none) {
		return r, fmt.Errorf("%w: %q can be NULL in the row, to which nothing can be added: use Modify, or a tag without null", ErrInvalid, c.name)
	}
	if r.av, err = f.encodeElements(c); err != nil {
		return r, err
	}
	switch r.av.(type) {
	case *types.AttributeValueMemberN, *types.AttributeValueMemberNS, *types.AttributeValueMemberSS, *types.AttributeValueMemberBS:
		_, number := r.av.(*types.AttributeValueMemberN)
		if c.verb == addVerb && keyType(f.typ) != timeType || c.verb == removeFromVerb && !number {
			return r, nil
		}
	case *types.AttributeValueMemberL:
		if c.verb == appendVerb && pointee(f.typ).Kind() != reflect.Array { // a longer list could not be read back
			return r, nil
		}
	}
	return r, fmt.Errorf("%w: %q is %s, stored as %s: want Add for a number or a set, RemoveFrom for a set, Append for a list", ErrInvalid, c.name, f.typ, strings.TrimPrefix(fmt.Sprintf("%T", r.av), "*types.AttributeValueMember"))
}

// encodeElements encodes the operand of Add, Append or RemoveFrom with the field's own tag, so that a set stays a set. For
// an addition to a number it also accepts numbers of other types; see delta.
func (f *field) encodeElements(c Change) (types.AttributeValue, error) {
	rv, err := f.convert(c.value)
	if err != nil {
		if c.verb == addVerb && f.isNumber() {
			return f.delta(c.value)
		}
		return nil, err
	}
	av, err := f.encode(rv)
	switch {
	case av != nil || err != nil:
		return av, err
	case c.verb == addVerb && f.isNumber():
		return table.Encode(rv.Interface()) // a zero, which the tag omits
	case c.verb == appendVerb && rv.Kind() == reflect.Slice:
		return &types.AttributeValueMemberL{}, nil
	}
	return nil, fmt.Errorf("%w: nothing to add to %q, or to remove from it", ErrInvalid, f.goName)
}

// isNumber reports whether the field is a number that the encoder encodes itself, not by a method of the field's type.
func (f *field) isNumber() bool {
	t := f.typ
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if codec.HasMethods(t) || codec.HasMethods(f.typ) {
		return false
	}
	return t.Kind() >= reflect.Int && t.Kind() <= reflect.Float64 && t.Kind() != reflect.Uintptr
}

// delta encodes a summand that convert refuses. A float field takes any number, an unsigned field also a negative one.
func (f *field) delta(v any) (types.AttributeValue, error) {
	target := f.typ
	if target.Kind() == reflect.Pointer {
		target = target.Elem()
	}
	rv := reflect.ValueOf(v)
	if !rv.IsValid() || !sameClass(rv.Kind(), reflect.Int) {
		return nil, fmt.Errorf("%w: %q is %s, not %T", ErrInvalid, f.goName, f.typ, v)
	}
	switch {
	case target.Kind() == reflect.Float32 || target.Kind() == reflect.Float64:
		return table.Encode(v)
	case target.Kind() >= reflect.Uint && rv.CanInt() && rv.Int() < 0 && rv.Int() != math.MinInt64:
		if _, err := (&field{goName: f.goName, typ: target}).convert(-rv.Int()); err == nil {
			return table.Encode(v)
		}
	}
	c, err := (&field{goName: f.goName, typ: target}).convert(v)
	if err != nil {
		return nil, err
	}
	return table.Encode(c.Interface())
}

// table returns the update as changes of attributes, without those of homes.
func (u *update) table() []table.Change {
	list := make([]table.Change, 0, len(u.list)+4)
	for i := range u.list {
		r := &u.list[i]
		attr := table.Attr(r.attr)
		switch {
		case r.field != nil && r.field.home != nil: // consequences writes the whole index key
		case r.verb == addVerb:
			list = append(list, attr.Add(r.av))
		case r.verb == removeFromVerb:
			list = append(list, attr.RemoveFrom(r.av))
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

// settled returns the update with every Add, Append and RemoveFrom replaced by a Set of the result, which is in v.
func (u *update) settled(v reflect.Value) (*update, error) {
	out := &update{list: slices.Clone(u.list)}
	for i := range out.list {
		r := &out.list[i]
		if !r.isSum() {
			continue
		}
		av, err := r.field.encode(r.field.of(v))
		if err != nil {
			return nil, err
		}
		r.verb, r.av = setVerb, av
	}
	return out, nil
}

// supplies reports whether the update alone determines the field's new value.
func (u *update) supplies(f *field) bool {
	r := u.find(f)
	return r != nil && !r.isSum()
}

// sums reports whether the result of any of the changes depends on the value that its field had.
func (u *update) sums() bool {
	return slices.ContainsFunc(u.list, resolved.isSum)
}

// isSum reports whether the result of the change depends on the value that the field had.
func (r resolved) isSum() bool { return r.verb != setVerb && r.verb != removeVerb }

// applyTo applies the changes to a value of T as DynamoDB applies them to the row.
func (u *update) applyTo(v reflect.Value) error {
	for i := range u.list {
		r := &u.list[i]
		target := r.field.of(v)
		switch r.verb {
		case setVerb, removeVerb:
			target.Set(r.value)
		default:
			have, err := r.field.encode(target)
			if err != nil {
				return err
			}
			var sum types.AttributeValue
			if r.verb == removeFromVerb {
				sum, err = without(have, r.av)
			} else {
				sum, err = combine(have, r.av)
			}
			switch {
			case err == nil && sum == nil:
				target.SetZero()
			case err == nil:
				err = r.field.decode(target, sum)
			}
			if err != nil {
				// Do not wrap the cause, which may quote the values.
				return fmt.Errorf("%w: the sum does not fit %q, which is %s", ErrInvalid, r.field.goName, r.field.typ)
			}
		}
	}
	return nil
}

// combine returns the result of ADD or list_append for two attribute values; have may be nil.
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
			all := slices.SortedFunc(slices.Values(slices.Concat(h.Value, d.Value)), bytes.Compare)
			return &types.AttributeValueMemberBS{Value: slices.CompactFunc(all, bytes.Equal)}, nil
		}
	}
	return nil, fmt.Errorf("%w: types differ", ErrInvalid)
}

// without returns a set after DELETE, or nil if it is empty.
func without(have, delta types.AttributeValue) (types.AttributeValue, error) {
	if have == nil {
		return nil, nil
	}
	switch d := delta.(type) {
	case *types.AttributeValueMemberSS:
		if h, ok := have.(*types.AttributeValueMemberSS); ok {
			if rest := minus(h.Value, d.Value, func(x, y string) bool { return x == y }); len(rest) > 0 {
				return &types.AttributeValueMemberSS{Value: rest}, nil
			}
			return nil, nil
		}
	case *types.AttributeValueMemberNS:
		if h, ok := have.(*types.AttributeValueMemberNS); ok {
			same := func(x, y string) bool {
				return attrvalue.Same(&types.AttributeValueMemberN{Value: x}, &types.AttributeValueMemberN{Value: y})
			}
			if rest := minus(h.Value, d.Value, same); len(rest) > 0 {
				return &types.AttributeValueMemberNS{Value: rest}, nil
			}
			return nil, nil
		}
	case *types.AttributeValueMemberBS:
		if h, ok := have.(*types.AttributeValueMemberBS); ok {
			if rest := minus(h.Value, d.Value, bytes.Equal); len(rest) > 0 {
				return &types.AttributeValueMemberBS{Value: rest}, nil
			}
			return nil, nil
		}
	}
	return nil, fmt.Errorf("%w: types differ", ErrInvalid)
}

func minus[E any](have, delta []E, same func(x, y E) bool) (rest []E) {
	for _, x := range have {
		if !slices.ContainsFunc(delta, func(y E) bool { return same(x, y) }) {
			rest = append(rest, x)
		}
	}
	return rest
}

func union(a, b []string) []string {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

// plus adds decimal numbers with 38 digits, the precision of DynamoDB's numbers.
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
