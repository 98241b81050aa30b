package entity

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/mortise-go/mortise/internal/attrvalue"

	"github.com/mortise-go/mortise/table"
)

// Modify reads the row of o, lets f change it, writes the changes of f, and returns the row as written. Only the key
// fields of o count. A missing row is [ErrNotFound]. If f changes nothing, nothing is written.
//
// f is called again, with the row read anew, whenever another program has changed the row in between, as long as the
// table's retry policy allows. So f should have no side effects. An error of f ends Modify with nothing written;
// [errors.Is] and [errors.As] find it. If f changes a field of the key, or one that the entity maintains, Modify returns
// [ErrInvalid].
//
// The write requires that the row is the one that f saw. Its version and, if it has one, its time of creation identify
// it. Without them, or if the row has no version yet, all of T's attributes do. Attributes that T does not have
// survive.
//
// Cost: a consistent read and a conditional update for each call of f; a transaction if a unique value changes.
func (e *Entity[T]) Modify(ctx context.Context, o T, f func(*T) error) (T, error) {
	modified, err := e.core.modify(ctx, valueOf(&o), changing(f), false)
	err = e.core.done("modify", &o, modified, err)
	return o, err
}

// Upsert is [Entity.Modify] that creates a missing row: it calls f with o and creates the result.
//
// Cost: that of Modify; for a missing row, a consistent read and a conditional put.
func (e *Entity[T]) Upsert(ctx context.Context, o T, f func(*T) error) (T, error) {
	modified, err := e.core.modify(ctx, valueOf(&o), changing(f), true)
	err = e.core.done("upsert", &o, modified, err)
	return o, err
}

// modify is Modify or, with create, Upsert. change changes its argument.
func (e *core) modify(ctx context.Context, o reflect.Value, change func(reflect.Value) error, create bool) (out reflect.Value, err error) {
	if change == nil {
		return out, fmt.Errorf("%w: nil function", ErrInvalid)
	}
	key := e.keyOf(o)
	err = e.racing(ctx, nil, func() error {
		from, err := e.basis(ctx, o, create)
		if err != nil {
			return err
		}
		before := from.row
		var after reflect.Value
		if from.absent() {
			before, after = o, copyOf(o)
		} else if after, err = e.decode(attrvalue.CloneItem(from.item)); err != nil { // clone: change can write into slices and maps
			return err
		}
		if err := change(after); err != nil {
			return final(err)
		}
		if err := e.checkModified(before, after); err != nil {
			return err
		}
		if e.keyOf(after) != key { // changed through a pointer, which before and after share
			return fmt.Errorf("%w: a field that is part of the key", ErrInvalid)
		}
		if from.absent() {
			out = e.stamp(after, true)
			err := e.putNow(ctx, out, nil, true)
			if errors.Is(err, ErrExists) {
				err = fmt.Errorf("%w: %w", ErrStale, err) // another program created the row first: a lost race
			}
			return err
		}
		u, err := e.difference(from.row, after)
		if err != nil {
			return err
		}
		if len(u.list) == 0 {
			out = from.row
			return nil
		}
		if err := e.stampModified(u, after); err != nil {
			return err
		}
		from.after = after
		out, err = e.apply(ctx, from, u)
		if create {
			return raced(err)
		}
		return err
	})
	return out, err
}

// ModifyOp writes the differences between a row as it was read and as it should be, in a transaction. The row must have
// the version of was. If that is 0, or T has no version, the row must have the attributes of was. No difference is
// [ErrInvalid]; a row of an older schema is [ErrOlder].
func (e *Entity[T]) ModifyOp(was, is T) table.Op {
	return e.core.modifyOp(valueOf(&was), valueOf(&is))
}

// modifyOp is ModifyOp. It modifies is: it sets Updated, and rounds the time to live as the row stores it.
func (e *core) modifyOp(was, is reflect.Value) table.Op {
	err := e.checkModified(was, is)
	var u *update
	if err == nil {
		u, err = e.difference(was, is)
	}
	switch {
	case err != nil:
	case len(u.list) == 0:
		err = fmt.Errorf("%w: nothing differs", ErrInvalid)
	default:
		err = e.stampModified(u, is)
	}
	if err != nil {
		return table.Invalid(e.fail("modify", err))
	}
	from := e.given(was)
	from.whole, from.after = !from.guarded, is
	op, _ := e.updateOp(from, u, nil)
	return op
}

// checkModified refuses changes of fields in the key and of fields that the entity maintains.
func (e *core) checkModified(was, is reflect.Value) error {
	p := e.plan
	for _, k := range []*keyPlan{&p.pk, &p.sk} {
		for _, f := range k.refs {
			if !sameKeyValue(f.of(was), f.of(is)) {
				return keyChange(f.goName)
			}
		}
	}
	if p.version != nil && e.versionOf(was) != e.versionOf(is) {
		return fmt.Errorf("%w: %q is maintained by the entity", ErrInvalid, p.version.goName)
	}
	for _, f := range []*field{p.created, p.updated} {
		if f != nil && !sameKeyValue(f.of(was), f.of(is)) {
			return fmt.Errorf("%w: %q is maintained by the entity", ErrInvalid, f.goName)
		}
	}
	return nil
}

// sameKeyValue reports whether two values of a field give the same text in a key.
func sameKeyValue(v, w reflect.Value) bool {
	a, hasA, errA := keyValue(v)
	b, hasB, errB := keyValue(w)
	if errA != nil || errB != nil || hasA != hasB {
		return false
	}
	if t, ok := a.(time.Time); ok {
		u, ok := b.(time.Time)
		return ok && t.Equal(u)
	}
	return !hasA || reflect.DeepEqual(a, b)
}

// difference returns the update that turns was into is, found by comparing their attributes.
func (e *core) difference(was, is reflect.Value) (*update, error) {
	p := e.plan
	have, err := e.encode(was, 0)
	if err != nil {
		return nil, err
	}
	want, err := e.encode(is, 0)
	if err != nil {
		return nil, err
	}
	skip := map[string]bool{p.scheme.PK: true, p.scheme.SK: true, p.scheme.Type: true, p.schema: true}
	if p.version != nil { // otherwise the attribute can be that of any field
		skip[p.scheme.Version] = true
	}
	for i := range p.indexes {
		for _, k := range []*keyPlan{&p.indexes[i].pk, &p.indexes[i].sk} {
			skip[k.attr] = k.natural == nil || skip[k.attr]
		}
	}
	u := &update{}
	differs := func(attr string, f *field) {
		if skip[attr] || attrvalue.Same(have[attr], want[attr]) {
			return
		}
		r := resolved{field: f, verb: setVerb, av: want[attr], attr: attr}
		if f != nil {
			r.value = f.of(is)
		}
		u.list = append(u.list, r)
	}
	for _, f := range p.fields {
		if f.home != nil {
			if !sameKeyValue(f.of(was), f.of(is)) {
				u.list = append(u.list, resolved{field: f, verb: setVerb, value: f.of(is), attr: f.home.attr})
			}
			continue
		}
		if attr := p.attrOf(f); attr != "" && !skip[attr] {
			differs(attr, f)
			skip[attr] = true
		}
	}
	rest := maps.Clone(have) // attributes of fields that cannot be named
	maps.Copy(rest, want)
	for _, attr := range slices.Sorted(maps.Keys(rest)) {
		differs(attr, nil)
	}
	return u, nil
}

// stampModified adds the change of Updated to u, sets Updated in after, and rounds the time to live in after.
func (e *core) stampModified(u *update, after reflect.Value) error {
	if err := e.stampUpdate(u); err != nil {
		return err
	}
	if f := e.plan.updated; f != nil {
		f.of(after).Set(u.find(f).value)
	}
	e.plan.roundTTL(after)
	return nil
}
