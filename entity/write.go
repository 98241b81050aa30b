package entity

import (
	"context"
	"errors"
	"fmt"
	"reflect"

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
	now := reflect.ValueOf(e.table.Now().UTC())
	if p.created != nil && (create || p.created.of(v).IsZero()) {
		p.created.of(v).Set(now)
	}
	if p.updated != nil {
		p.updated.of(v).Set(now)
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
	op := table.Put(item)
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
		return op.If(table.Attr(p.scheme.Version).NotExists(), e.isOursOrNone()).Explain(e.explainStale)
	}
	return op.If(e.isOursOrNone()).Explain(e.explainStale)
}

func (e *Entity[T]) isType() table.Cond { return table.Attr(e.plan.scheme.Type).Equal(e.typ) }

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
	}
	return ErrStale
}

// Update makes changes to the row of o, of which only the key fields and the version
// count, and returns the row as it is now. A missing row is ErrNotFound. Where o has a
// version, a row of another version is ErrStale; version 0 changes the row as it is.
//
// Index keys that depend on what changes are computed anew. Where o has a version it is
// taken to be the whole row as it was read; otherwise what the keys depend on is read, and
// written under the condition that it has not changed meanwhile.
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
	if e.versionOf(&o) > 0 || !e.needsRow(u) {
		updated, err = e.apply(ctx, e.updateOp(o, u))
		if row, ok := e.ownUpdate(err, e.versionOf(&o), u); ok {
			return row, nil
		}
		return updated, err
	}
	// The caller names no version, so losing a race for the read row is not its business.
	err = backoff.Retry(func() error {
		if ctx.Err() != nil {
			return backoff.Permanent(context.Cause(ctx))
		}
		row, err := e.get(ctx, o, true)
		if err != nil {
			return backoff.Permanent(err)
		}
		updated, err = e.apply(ctx, e.updateOp(row, u))
		if err != nil && !errors.Is(err, ErrStale) {
			return backoff.Permanent(err)
		}
		return err
	}, backoff.WithContext(e.table.Backoff(), ctx))
	return updated, err
}

func (e *Entity[T]) apply(ctx context.Context, op table.Op) (o T, err error) {
	item, err := e.table.Apply(ctx, op, table.ReturnNew)
	if err != nil {
		return o, err
	}
	err = e.decode(item, &o)
	return o, err
}

// ownUpdate recognises, like ownEffect, the row that an update with a version has made:
// it has the next version and every value that was set.
func (e *Entity[T]) ownUpdate(err error, version int64, u *update) (row T, ok bool) {
	var failed *table.ConditionError
	if version == 0 || !errors.As(err, &failed) || !failed.Repeated {
		return row, false
	}
	if n, err := integer(failed.Item[e.plan.scheme.Version]); err != nil || n != version+1 {
		return row, false
	}
	sets := 0
	for _, r := range u.list {
		switch have := failed.Item[r.attr]; {
		case r.verb != setVerb && r.verb != removeVerb:
			continue
		case r.av == nil && have != nil, r.av != nil && (have == nil || !table.SameValue(have, r.av)):
			return row, false
		}
		sets++
	}
	return row, sets > 0 && e.decode(failed.Item, &row) == nil
}

// UpdateOp is Update as part of a transaction. It cannot read: where index keys depend on
// what changes, o has to be the whole row as it was read.
func (e *Entity[T]) UpdateOp(o T, changes ...Change) table.Op {
	u, err := e.resolveChanges(changes)
	if err != nil {
		return table.Invalid(e.fail("update", err))
	}
	return e.updateOp(o, u)
}

func (e *Entity[T]) versionOf(o *T) int64 {
	if e.plan.version == nil {
		return 0
	}
	return e.plan.version.of(reflect.ValueOf(o).Elem()).Int()
}

func (e *Entity[T]) updateOp(o T, u *update) table.Op {
	p := e.plan
	key := e.Key(o)
	if err := key.Validate(); err != nil {
		return table.Invalid(err)
	}
	changes, seen, err := e.indexChanges(o, u)
	if err != nil {
		return table.Invalid(e.fail("update", err))
	}
	changes = append(u.table(), changes...)
	conds := []table.Cond{table.Attr(p.scheme.PK).Exists(), e.isOursOrNone(), seen}
	if p.version != nil {
		if version := e.versionOf(&o); version > 0 {
			conds[0] = table.Attr(p.scheme.Version).Equal(version)
		}
		changes = append(changes, table.Attr(p.scheme.Version).Add(1))
	}
	if p.ttl != nil {
		conds = append(conds, table.Not(e.hasExpired()))
	}
	if p.updated != nil {
		av, err := p.updated.encode(reflect.ValueOf(e.table.Now().UTC()))
		if err != nil {
			return table.Invalid(e.fail("update", err))
		}
		changes = append(changes, table.Attr(p.updated.attr).Set(av))
	}
	return table.Update(key, changes...).If(conds...).Explain(func(item table.Item) error {
		if p.expired(item, e.table.Now()) {
			return ErrNotFound
		}
		return e.explainStale(item)
	})
}

// Delete deletes the row of o. Where o has a version, a row of another version is
// ErrStale and a missing one ErrNotFound; with version 0, or no versions, whatever row of
// this type is there is deleted, and a missing one is no error.
//
// Cost: one delete.
func (e *Entity[T]) Delete(ctx context.Context, o T) error {
	return e.fail("delete", e.table.Write(ctx, e.DeleteOp(o)))
}

// DeleteOp is Delete as part of a transaction.
func (e *Entity[T]) DeleteOp(o T) table.Op {
	op := table.Delete(e.Key(o)).Explain(e.explainStale)
	if version := e.versionOf(&o); version > 0 {
		return op.If(e.isVersion(version))
	}
	return op.If(e.isOursOrNone())
}

