package entity

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/mortise-go/mortise/table"
)

// Create writes a new row and returns it as written, with its version and timestamps. A
// row at the key, whoever wrote it, is ErrExists; one that has expired is replaced.
//
// Cost: one conditional put.
func (e *Entity[T]) Create(ctx context.Context, o T) (T, error) { return e.put(ctx, "create", o, true) }

// Put writes a whole row, replacing the one at the key with everything in it, and returns
// it as written. Where T has a version, o has to be as it was read: a row of another
// version is ErrStale. Version 0 replaces only a row without a version, or none.
//
// Cost: one put.
func (e *Entity[T]) Put(ctx context.Context, o T) (T, error) { return e.put(ctx, "put", o, false) }

func (e *Entity[T]) put(ctx context.Context, operation string, o T, create bool) (T, error) {
	stamped := e.stamp(o, create)
	op := e.putOp(stamped, create)
	err := e.table.Write(ctx, op)
	if err == nil || ownEffect(err, op.Item()) {
		return stamped, nil
	}
	return o, e.fail(operation, err)
}

// ownEffect says that a write found nothing but what it had written itself, in an earlier
// attempt whose answer was lost.
func ownEffect(err error, wrote table.Item) bool {
	var failed *table.ConditionError
	return errors.As(err, &failed) && failed.Repeated && len(failed.Item) > 0 && table.SameItem(failed.Item, wrote)
}

// CreateOp is Create as part of a transaction.
func (e *Entity[T]) CreateOp(o T) table.Op { return e.putOp(e.stamp(o, true), true) }

// PutOp is Put as part of a transaction.
func (e *Entity[T]) PutOp(o T) table.Op { return e.putOp(e.stamp(o, false), false) }

// stamp is o as it will be written.
func (e *Entity[T]) stamp(o T, create bool) T {
	v := reflect.ValueOf(&o).Elem()
	p := e.plan
	now := e.table.Now()
	if p.created != nil && (create || p.created.of(v).IsZero()) {
		p.created.of(v).Set(reflect.ValueOf(p.created.stamp(now)))
	}
	if p.updated != nil {
		p.updated.of(v).Set(reflect.ValueOf(p.updated.stamp(now)))
	}
	if p.ttl != nil {
		if at := p.ttl.of(v); !at.IsZero() {
			at.Set(reflect.ValueOf(ttlTime(at.Interface().(time.Time))))
		}
	}
	if p.version != nil {
		version := p.version.of(v)
		if create {
			version.SetInt(0)
		}
		version.SetInt(version.Int() + 1)
	}
	return o
}

// bind keeps an operation from being written to another table, or at all where the entity
// is for reading only.
func (e *Entity[T]) bind(op table.Op) table.Op {
	if e.plan.readOnly {
		return table.Invalid(e.fail("write", fmt.Errorf("%w: the entity is read-only", ErrInvalid)))
	}
	return op.In(e.table)
}

func (e *Entity[T]) putOp(stamped T, create bool) table.Op {
	p := e.plan
	var version int64
	if p.version != nil {
		version = p.version.of(reflect.ValueOf(&stamped).Elem()).Int()
		if version < 1 {
			return table.Invalid(e.fail("put", fmt.Errorf("%w: negative version", ErrInvalid)))
		}
	}
	item, err := e.encode(&stamped, version)
	if err != nil {
		return table.Invalid(e.fail("put", err))
	}
	op := e.bind(table.Put(item))
	switch {
	case create:
		free := table.Attr(p.scheme.PK).NotExists()
		if p.ttl != nil {
			free = table.Or(free, table.And(e.isType(), e.hasExpired()))
		}
		return op.If(free).Explain(func(table.Item) error { return ErrExists })
	case version > 1:
		return op.If(e.isVersion(version - 1)).Explain(e.explainStale)
	case version == 1:
		free := table.And(table.Attr(p.scheme.Version).NotExists(), e.isOursOrNone())
		if p.ttl != nil { // what nobody can see cannot be stale
			free = table.Or(free, table.And(e.isType(), e.hasExpired()))
		}
		return op.If(free).Explain(e.explainStale)
	}
	return op.If(e.isOursOrNone()).Explain(e.explainStale)
}

func (e *Entity[T]) isType() table.Cond {
	typ := table.Attr(e.plan.scheme.Type)
	if e.plan.untyped { // at its key, which says as much
		return table.Or(typ.NotExists(), typ.Equal(e.typ))
	}
	return typ.Equal(e.typ)
}

// isOursOrNone keeps a put from replacing a row of another type. Rows without a type
// attribute are let through: their key is all the type they have.
func (e *Entity[T]) isOursOrNone() table.Cond {
	return table.Or(table.Attr(e.plan.scheme.Type).NotExists(), e.isType())
}

func (e *Entity[T]) isVersion(version int64) table.Cond {
	return table.And(table.Attr(e.plan.scheme.Version).Equal(version), e.isOursOrNone())
}

func (e *Entity[T]) hasExpired() table.Cond {
	return table.Attr(e.plan.scheme.TTL).Between(1, e.table.Now().Unix())
}

// explainStale says what a failed version condition means, by the row that was there.
func (e *Entity[T]) explainStale(item table.Item) error {
	switch {
	case len(item) == 0:
		return ErrNotFound
	case !e.Owns(item):
		return ErrType
	case e.plan.expired(item, e.table.Now()):
		return ErrNotFound
	}
	return ErrStale
}

// Update makes changes to the row of o, of which only the key fields and the version
// count, and returns the row as it is now. A missing row is ErrNotFound. Where o has a
// version, a row of another version is ErrStale; version 0 changes the row as it is.
//
// Index keys that depend on what changes are computed anew, from what the row has: where o
// has a version it is tried as the whole row as it was read, under the condition that the
// row is like that; otherwise, or if it is not, what the keys depend on is read.
//
// An error that is a *DecodeError, and not ErrType, comes after the write: the row was
// changed, and has something that T cannot hold.
//
// Cost: one conditional update; with a consistent read before it in the case named.
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
	version := e.versionOf(&o)
	if version > 0 || !e.needsRow(u) {
		updated, err = e.apply(ctx, basis[T]{row: o, guarded: version > 0}, u)
		if !errors.Is(err, ErrStale) || !e.needsRow(u) {
			return updated, err
		}
		// Of that version, and yet o is not the row as it is: o was changed since, or the
		// row was written by a program that encodes differently. The row tells.
		return e.updateAsRead(ctx, o, version, u, err)
	}
	// The caller names no version, so losing a race for the read row is not its business.
	var last error
	err = backoff.Retry(func() error {
		if ctx.Err() != nil {
			return backoff.Permanent(ctx.Err())
		}
		item, err := e.readItem(ctx, o, reading{consistent: true})
		if err != nil {
			return backoff.Permanent(err)
		}
		row, err := e.Decode(item)
		if err != nil {
			return backoff.Permanent(err)
		}
		updated, last = e.apply(ctx, basis[T]{row: row, item: item, guarded: e.plan.version != nil}, u)
		if last != nil && !errors.Is(last, ErrStale) {
			return backoff.Permanent(last)
		}
		return last
	}, backoff.WithContext(e.table.Backoff(), ctx))
	if err != nil && last != nil && !errors.Is(err, last) { // backoff drops it when ctx ends
		err = fmt.Errorf("%w; last attempt: %w", err, last)
	}
	return updated, err
}

func (e *Entity[T]) apply(ctx context.Context, from basis[T], u *update) (o T, err error) {
	item, err := e.table.Apply(ctx, e.updateOp(from, u), table.ReturnNew)
	if err != nil {
		if row, ok := e.ownUpdate(err, from, u); ok {
			return row, nil
		}
		return o, err
	}
	return e.Decode(item)
}

// ownUpdate recognises, like ownEffect, the row that an update has made: it has the next
// version and every value that the update gave it.
func (e *Entity[T]) ownUpdate(err error, from basis[T], u *update) (row T, ok bool) {
	p := e.plan
	var failed *table.ConditionError
	if !errors.As(err, &failed) || !failed.Repeated || len(failed.Item) == 0 {
		return row, false
	}
	switch n, err := integer(failed.Item[p.scheme.Version]); {
	case from.guarded && err == nil && n == e.versionOf(&from.row)+1:
	case p.version == nil && p.updated != nil: // which tells as much
	default:
		return row, false
	}
	after := from.row
	if u.applyTo(reflect.ValueOf(&after).Elem()) != nil {
		return row, false
	}
	for _, r := range u.list {
		want := r.av
		if r.verb == addVerb || r.verb == appendVerb {
			if want, err = r.field.encode(r.field.of(reflect.ValueOf(&after).Elem())); err != nil {
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

// updateAsRead updates the row as it is, if it has the version that the caller has seen.
func (e *Entity[T]) updateAsRead(ctx context.Context, o T, version int64, u *update, stale error) (T, error) {
	item, err := e.readItem(ctx, o, reading{consistent: true})
	if err != nil {
		return o, err
	}
	row, err := e.Decode(item)
	if err != nil {
		return o, err
	}
	if e.versionOf(&row) != version {
		return o, stale
	}
	return e.apply(ctx, basis[T]{row: row, item: item, guarded: true}, u)
}

// UpdateOp is Update as part of a transaction. It cannot read: where index keys depend on
// what changes, o has to be the whole row as it was read.
func (e *Entity[T]) UpdateOp(o T, changes ...Change) table.Op {
	u, err := e.resolveChanges(changes)
	if err != nil {
		return table.Invalid(e.fail("update", err))
	}
	return e.updateOp(basis[T]{row: o, guarded: e.versionOf(&o) > 0}, u)
}

func (e *Entity[T]) versionOf(o *T) int64 {
	if e.plan.version == nil {
		return 0
	}
	return e.plan.version.of(reflect.ValueOf(o).Elem()).Int()
}

func (e *Entity[T]) updateOp(from basis[T], u *update) table.Op {
	p := e.plan
	key := e.Key(from.row)
	if err := key.Validate(); err != nil {
		return table.Invalid(e.fail("update", err))
	}
	changes, seen, err := e.indexChanges(from, u)
	if err != nil {
		return table.Invalid(e.fail("update", err))
	}
	changes = append(u.table(), changes...)
	exists := table.Attr(p.scheme.PK).Exists()
	if p.version != nil {
		switch version := e.versionOf(&from.row); {
		case version < 0:
			return table.Invalid(e.fail("update", fmt.Errorf("%w: negative version", ErrInvalid)))
		case version > 0:
			exists = table.Attr(p.scheme.Version).Equal(version)
		case from.guarded: // a row that was read without a version has none still
			exists = table.And(exists, table.Attr(p.scheme.Version).NotExists())
		}
		changes = append(changes, table.Attr(p.scheme.Version).Add(1))
	}
	conds := []table.Cond{exists, e.isOursOrNone(), seen}
	if p.ttl != nil {
		conds = append(conds, table.Not(e.hasExpired()))
	}
	return e.bind(table.Update(key, changes...)).If(conds...).Explain(e.explainStale)
}

// Delete deletes the row of o. Where o has a version, a row of another version is
// ErrStale and a missing one ErrNotFound; with version 0, or no versions, whatever row of
// this type is there is deleted, and a missing one is no error.
//
// Cost: one delete.
func (e *Entity[T]) Delete(ctx context.Context, o T) error {
	err := e.table.Write(ctx, e.DeleteOp(o))
	var failed *table.ConditionError
	if errors.As(err, &failed) && failed.Repeated && len(failed.Item) == 0 {
		return nil // gone: the attempt whose answer was lost deleted it
	}
	return e.fail("delete", err)
}

// DeleteOp is Delete as part of a transaction.
func (e *Entity[T]) DeleteOp(o T) table.Op {
	key := e.Key(o)
	if err := key.Validate(); err != nil {
		return table.Invalid(e.fail("delete", err))
	}
	op := e.bind(table.Delete(key)).Explain(e.explainStale)
	switch version := e.versionOf(&o); {
	case version > 0:
		return op.If(e.isVersion(version))
	case version < 0:
		return table.Invalid(e.fail("delete", fmt.Errorf("%w: negative version", ErrInvalid)))
	}
	return op.If(e.isOursOrNone())
}
