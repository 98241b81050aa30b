package entity

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/mortise-go/mortise/table"
)

// AnyVersion returns the entity whose writes do not depend on what the caller has read. It is for
// values that are made of the key alone, as in counters.AnyVersion().Update(ctx, Counter{ID: id},
// entity.Add("hits", 1)). What somebody else wrote in between is overwritten where the write
// changes the same attributes. Versions are counted all the same.
//
//   - Update, UpdateOp, Delete and DeleteOp ignore the version of the value. A row that does not
//     exist is ErrNotFound for updates, and no error for deletions.
//   - Put reads the row first, replaces it whatever its version, and counts the version on.
//     PutOp cannot read: it is refused with ErrInvalid.
//   - ModifyOp compares attributes, not versions. Create, Modify, Upsert and reads are not affected.
//
// Where T has no Version, AnyVersion changes nothing.
func (e *Entity[T]) AnyVersion() *Entity[T] {
	blind := *e
	blind.anyVersion = true
	return &blind
}

// depends reports whether writes are under the condition that the row is the one that their
// value was read from.
func (e *Entity[T]) depends() bool { return e.plan.version != nil && !e.anyVersion }

// given returns the basis of a write that starts from the caller's value.
func (e *Entity[T]) given(o T) *basis[T] {
	from := &basis[T]{row: o, guarded: e.depends()}
	if f := e.plan.version; f != nil && e.anyVersion {
		f.of(reflect.ValueOf(&from.row).Elem()).SetInt(0)
	}
	return from
}

func (e *Entity[T]) versionOf(o *T) int64 {
	if e.plan.version == nil {
		return 0
	}
	return e.plan.version.of(reflect.ValueOf(o).Elem()).Int()
}

// byAttributes reports whether the row has no version to tell it by. Then all that T has of it has to be
// as it was, so that a write of a program that counts no versions is noticed too.
func (e *Entity[T]) byAttributes(from *basis[T]) bool {
	return from.guarded && e.versionOf(&from.row) == 0
}

// checkRead refuses o with ErrStale unless it is the row as it is now: of its version or, where
// the row has none, with the same attributes.
func (e *Entity[T]) checkRead(o, row *T) error {
	version, have := e.versionOf(o), e.versionOf(row)
	switch {
	case version == 0 && have > 0:
		return errUnseen
	case version != have:
		return ErrStale
	case version > 0:
		return nil
	}
	u, err := e.difference(o, row)
	if err != nil {
		return err
	}
	for i := range u.list {
		if f := u.list[i].field; f == nil || f != e.plan.created && f != e.plan.updated {
			return notAsRead(u.list[i].attr)
		}
	}
	return nil
}

func notAsRead(attr string) error {
	return fmt.Errorf("%w: attribute %q is not as it was read", ErrStale, attr)
}

// hasVersion returns the condition that the row is of a version; noVersion is that of a row without
// the attribute, and of one in which another program began to count at 0.
func (p *plan) hasVersion(version int64) table.Cond {
	attr := table.Attr(p.scheme.Version)
	if version == noVersion {
		return table.Or(attr.NotExists(), attr.Equal(0))
	}
	return attr.Equal(version)
}

// isVersion says of a row what hasVersion asks.
func (p *plan) isVersion(item table.Item, version int64) bool {
	have, err := integer(item[p.scheme.Version])
	return err == nil && have == version
}

var (
	// errUnseen is a write for version 0 that met a row of a version.
	errUnseen = fmt.Errorf("%w: the value has version 0, and the row has one: read it first, or use AnyVersion", ErrStale)
	// errUntold is a Put for version 0 that met a row without one.
	errUntold = fmt.Errorf("%w: it has no version, so that Put cannot tell whether the value was read from it: use Modify, or AnyVersion", ErrStale)
)

// unseen returns the error of a Put for version 0 that met a row.
func (p *plan) unseen(item table.Item) error {
	if p.isVersion(item, noVersion) {
		return errUntold
	}
	return errUnseen
}

// nameless returns expectations on what T has of the row in attributes whose fields cannot be named:
// those of embedded pointers, and whatever T makes as its own ItemMarshaler.
func (e *Entity[T]) nameless(from *basis[T], u *update) (list []expectation, err error) {
	p := e.plan
	names := slices.Clone(p.nameless)
	made := table.Item{}
	if len(names) > 0 || p.rows.marshals {
		if made, err = p.marshal(reflect.ValueOf(&from.row).Elem()); err != nil {
			return nil, err
		}
	}
	if p.rows.marshals {
		names = slices.AppendSeq(names, maps.Keys(made))
	}
	if u != nil {
		for i := range u.list {
			if u.list[i].field == nil {
				names = append(names, u.list[i].attr)
			}
		}
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		switch {
		case p.names(name):
		case from.item != nil:
			list = append(list, expectation{attr: name, want: from.item[name]})
		default:
			list = append(list, expectation{attr: name, want: made[name], empty: made[name] == nil})
		}
	}
	return list, nil
}

// names reports whether an attribute is the entity's own, or that of a field that can be named.
func (p *plan) names(attr string) bool {
	switch attr {
	case p.scheme.PK, p.scheme.SK, p.scheme.Type, p.scheme.Version, p.schema:
		return true
	}
	return slices.ContainsFunc(p.fields, func(f *field) bool { return f.attr == attr || p.attrOf(f) == attr })
}
