package entity

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/mortise-go/mortise/table"
)

// Update makes changes to the row of o and returns the row as it is now. A missing row is
// ErrNotFound. Where T has a Version, a row of another version than o's is ErrStale. Version 0
// is for a row that has none yet: all its attributes that T knows have to be as o has them,
// or it is ErrStale too. Of other rows only the key fields of o and the version count, and
// without a Version, or with AnyVersion, the key fields alone: the row is changed as it is.
//
// Index keys and unique values that depend on what changes are computed anew, from what the
// row has: where T has a Version, o is tried as the whole row as it was read, under the
// condition that the row is like that; otherwise, or if it is not, the row is read. So is a row
// of an older schema, which is brought to the current one by the same write, and one that has no
// version yet.
//
// An error that is a *DecodeError, and not ErrType, comes after the write: the row was
// changed, and has something that T cannot hold.
//
// Cost: one conditional update; with a consistent read before it in the cases named; a
// transaction where a unique value changes.
func (e *Entity[T]) Update(ctx context.Context, o T, changes ...Change) (T, error) {
	updated, err := e.update(ctx, o, changes)
	if err != nil {
		return o, e.fail("update", err)
	}
	return updated, nil
}

func (e *Entity[T]) update(ctx context.Context, o T, changes []Change) (updated T, err error) {
	u, err := e.resolveChanges(changes)
	if err != nil {
		return o, err
	}
	from := e.given(o)
	from.whole = true
	stale := ErrStale
	if from.guarded && !e.byAttributes(from) || !from.guarded && !e.needsRow(u) {
		updated, err = e.apply(ctx, from, u)
		switch {
		case errors.Is(err, ErrOlder):
		case errors.Is(err, ErrStale) && e.needsRow(u):
			stale = err
		default:
			return updated, err
		}
	}
	err = e.racing(ctx, func() error {
		now, err := e.basis(ctx, o, false)
		if err != nil {
			return err
		}
		if !from.guarded {
			updated, err = e.apply(ctx, now, u)
			return err
		}
		// Of that version, and yet o may not be the row as it is: o was changed since, or the
		// row was written by a program that encodes differently. The row tells.
		if err = e.checkRead(&o, &now.row); err == ErrStale { //nolint:errorlint // which says no more than that
			err = stale
		}
		if err == nil {
			updated, err = e.apply(ctx, now, u)
		}
		return final(err)
	})
	return updated, err
}

// apply writes an update and returns the row as it is then.
func (e *Entity[T]) apply(ctx context.Context, from *basis[T], u *update) (o T, err error) {
	err = e.settled(ctx, func(s settlement) error {
		op, c := e.updateOp(from, u, s)
		if err := op.Err(); err != nil {
			return err
		}
		if len(c.sentinels) > 0 { // a transaction, which returns no rows
			if o, err = e.updated(from, c.after); err != nil {
				return err
			}
			return e.table.Write(ctx, op)
		}
		item, err := e.table.Apply(ctx, op, table.ReturnNew)
		if err != nil {
			if row, ok := e.ownUpdate(err, from, u); ok {
				o = row
				return nil
			}
			return e.decided(err, e.versionOf(&from.row))
		}
		o, err = e.Decode(item)
		return err
	})
	return o, err
}

// updated returns the row after an update, as it will be read.
func (e *Entity[T]) updated(from *basis[T], after *T) (row T, err error) {
	version := e.versionOf(&from.row)
	if e.plan.version != nil {
		version++
	}
	item, err := e.encode(after, version)
	if err != nil {
		return row, err
	}
	return e.Decode(item)
}

// ownUpdate recognises, like ownEffect, the row that an update has made: it has the next
// version and every value that the update gave it.
func (e *Entity[T]) ownUpdate(err error, from *basis[T], u *update) (row T, ok bool) {
	p := e.plan
	var failed *table.ConditionError
	if !errors.As(err, &failed) || !failed.Repeated || len(failed.Item) == 0 {
		return row, false
	}
	switch n, err := integer(failed.Item[p.scheme.Version]); {
	case from.guarded && err == nil && n == e.versionOf(&from.row)+1:
	case p.version == nil && (p.updated != nil || from.after != nil): // which tell as much as can be told
	default:
		return row, false
	}
	var c consequences[T]
	if e.applied(from, u, &c) != nil {
		return row, false
	}
	for _, r := range u.list {
		want := r.av
		switch {
		case r.field != nil && r.field.home != nil:
			if want, err = r.field.home.kept(reflect.ValueOf(c.after).Elem()); err != nil {
				return row, false
			}
		case r.verb != setVerb && r.verb != removeVerb:
			if want, err = r.field.encode(r.field.of(reflect.ValueOf(c.after).Elem())); err != nil {
				return row, false
			}
		}
		have := failed.Item[r.attr]
		if (want == nil) != (have == nil) || want != nil && !table.SameValue(have, want) {
			return row, false
		}
	}
	_, err = e.decode(failed.Item, &row)
	return row, err == nil
}

// UpdateOp is Update as part of a transaction. It cannot read: where index keys or unique
// values depend on what changes, and where o has version 0, o has to be the whole row as it was
// read, and the row as T writes it. A row of an older schema is ErrOlder. A unique value that
// changes takes up to two actions more.
func (e *Entity[T]) UpdateOp(o T, changes ...Change) table.Op {
	u, err := e.resolveChanges(changes)
	if err != nil {
		return table.Invalid(e.fail("update", err))
	}
	op, _ := e.updateOp(e.given(o), u, nil)
	return op
}

func (e *Entity[T]) updateOp(from *basis[T], u *update, s settlement) (table.Op, consequences[T]) {
	p := e.plan
	key := e.Key(from.row)
	err := key.Validate()
	var c consequences[T]
	if err == nil {
		c, err = e.consequences(from, u, s)
	}
	version := e.versionOf(&from.row)
	if err == nil && version < 0 {
		err = fmt.Errorf("%w: negative version", ErrInvalid)
	}
	if err != nil {
		return table.Invalid(e.fail("update", err)), c
	}
	m, err := p.match.after(key, c.update)
	if err != nil {
		return table.Invalid(e.fail("update", err)), c
	}
	changes := append(c.update.table(), c.changes...)
	if p.version != nil {
		changes = append(changes, table.Attr(p.scheme.Version).Add(1))
	}
	g := &guard{exists: true, version: anyVersion, live: true, match: m, seen: c.seen, current: from.item == nil || !e.outdated(from.item)}
	switch {
	case version > 0:
		g.version = version
	case from.guarded: // a row that was read without a version has none still
		g.version = noVersion
	}
	op := table.Update(key, changes...)
	if len(c.sentinels) > 0 {
		op = op.With(c.sentinels...)
	}
	return e.guarded(op, g), c
}
