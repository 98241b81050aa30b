package entity

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/mortise-go/mortise/table"
)

// AnyVersion returns the entity with writes that do not depend on what the caller has read. Use it to write values that
// have only a key, such as counters.AnyVersion().Update(ctx, Counter{ID: id}, entity.Add("hits", 1)). If another
// program has changed the same attributes in between, its changes are overwritten. Versions are still counted. If T
// has no version, AnyVersion changes nothing.
//
//   - Update, UpdateOp, Delete and DeleteOp ignore the version of the value. A missing row is [ErrNotFound] for
//     updates, and not an error for deletions.
//   - Put reads the row first, replaces it whatever its version, and continues its count. It keeps the time of creation
//     unless the value has one. PutOp cannot read, so it is refused with [ErrInvalid].
//   - ModifyOp compares attributes instead of versions.
//   - Create, Modify, Upsert and reads are not affected.
func (e *Entity[T]) AnyVersion() *Entity[T] { return &Entity[T]{e.core.blind()} }

func (e *core) blind() *core {
	blind := *e
	blind.anyVersion = true
	return &blind
}

// depends reports whether a write requires that the row has not changed since the caller read it.
func (e *core) depends() bool { return e.plan.version != nil && !e.anyVersion }

// given returns the basis of a write that starts from the caller's value. With AnyVersion the version of the basis is 0.
func (e *core) given(o reflect.Value) *basis {
	from := &basis{row: o, guarded: e.depends()}
	if f := e.plan.version; f != nil && e.anyVersion {
		from.row = copyOf(o)
		f.of(from.row).SetInt(0)
	}
	return from
}

func (e *core) versionOf(o reflect.Value) int64 {
	if e.plan.version == nil {
		return 0
	}
	return e.plan.version.of(o).Int()
}

// required returns the version that the row of a write must still have: that of the basis, which is 0 for a row that was read without one.
func (e *core) required(from *basis) int64 {
	if !from.guarded {
		return anyVersion
	}
	return e.versionOf(from.row)
}

// byAttributes reports whether a guarded row has no version that identifies it. Then all of T's attributes have to be
// unchanged, since another program may have changed the row without counting a version.
func (e *core) byAttributes(from *basis) bool {
	return from.guarded && e.versionOf(from.row) == 0
}

// checkRead returns an error that matches ErrStale unless o is the current row: of the same version or, if the row has none, with the
// same attributes. stale is the error for another version.
func (e *core) checkRead(o, row reflect.Value, stale error) error {
	version, have := e.versionOf(o), e.versionOf(row)
	switch {
	case version == 0 && have > 0:
		return errUnseen
	case version != have:
		return stale
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

// hasVersion returns the condition that the row has the given version. For noVersion, the attribute is missing or 0: other
// programs may begin to count at 0.
func (p *plan) hasVersion(version int64) table.Cond {
	attr := table.Attr(p.scheme.Version)
	if version == noVersion {
		return table.Or(attr.NotExists(), attr.Equal(0))
	}
	return attr.Equal(version)
}

// isVersion evaluates the condition of hasVersion for a row.
func (p *plan) isVersion(item table.Item, version int64) bool {
	have, err := integer(item[p.scheme.Version])
	return err == nil && have == version
}

var (
	// errUnseen is the error of a write with version 0 that found a row with a version.
	errUnseen = fmt.Errorf("%w: the value has version 0, and the row has one: read it first, or use AnyVersion", ErrStale)
	// errUntold is the error of a Put with version 0 that found a row without one.
	errUntold = fmt.Errorf("%w: it has no version, so that Put cannot tell whether the value was read from it: use Modify, or AnyVersion", ErrStale)
)

// unseen returns the error of a Put with version 0 that found a row.
func (p *plan) unseen(item table.Item) error {
	if p.isVersion(item, noVersion) {
		return errUntold
	}
	return errUnseen
}

// nameless returns expectations on the attributes of T whose fields a caller cannot name: those of fields in embedded
// pointers, those that T's own ItemMarshaler writes, and those that u changes without a field.
func (e *core) nameless(from *basis, u *update) (list []expectation, err error) {
	p := e.plan
	names := slices.Clone(p.nameless)
	made := table.Item{}
	if len(names) > 0 || p.rows.marshals {
		if made, err = p.marshal(from.row); err != nil {
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
		case !p.rows.marshals && p.rows.fields.Field(name).Of(from.row).IsZero():
			list = append(list, nothing(name, p.rows.fields.Field(name).Of(from.row)))
		default:
			list = append(list, expectation{attr: name, want: made[name], empty: made[name] == nil})
		}
	}
	return list, nil
}

// names reports whether an attribute belongs to the entity itself or to a field that a caller can name.
func (p *plan) names(attr string) bool {
	switch attr {
	case p.scheme.PK, p.scheme.SK, p.scheme.Type, p.schema:
		return true
	case p.scheme.Version:
		if p.version != nil {
			return true
		}
	}
	return slices.ContainsFunc(p.fields, func(f *field) bool { return f.attr == attr || p.attrOf(f) == attr })
}
