package entity

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/mortise-go/mortise/table"
)

var errReadOnly = fmt.Errorf("%w: the entity is read-only", ErrInvalid)

// Create writes a new row and returns it as written, with its version and timestamps. A
// row at the key, whoever wrote it, is ErrExists; one that has expired is replaced. A value
// that another row has and that has to be unique is a *UniqueError.
//
// Cost: one conditional put; with unique values a transaction of the row and a sentinel each.
func (e *Entity[T]) Create(ctx context.Context, o T) (T, error) {
	stamped := e.stamp(o, true)
	if err := e.putNow(ctx, stamped, nil, true); err != nil {
		return o, e.fail("create", err)
	}
	return stamped, nil
}

// Put writes a whole row, replacing the one at the key with everything in it, and returns
// it as written. Where T has a version, o has to be as it was read: a row of another
// version is ErrStale. Version 0 replaces only a row without a version, or none.
//
// Cost: one put; with unique values a consistent read, and a transaction where a value
// changes.
func (e *Entity[T]) Put(ctx context.Context, o T) (T, error) {
	stamped := e.stamp(o, false)
	var err error
	if len(e.plan.uniques) == 0 {
		err = e.putNow(ctx, stamped, nil, false)
	} else {
		err = e.replace(ctx, o, stamped)
	}
	if err != nil {
		return o, e.fail("put", err)
	}
	return stamped, nil
}

// replace is Put where values are unique: what the row had has to be known.
func (e *Entity[T]) replace(ctx context.Context, o, stamped T) error {
	return e.racing(ctx, func() error {
		from, err := e.basis(ctx, o, true)
		if err != nil {
			return err
		}
		if e.plan.version == nil {
			return raced(e.putNow(ctx, stamped, from, false))
		}
		var have int64
		if !from.absent() {
			have = e.versionOf(&from.row)
		}
		switch version := e.versionOf(&o); {
		case version > 0 && from.absent():
			err = ErrNotFound
		case version != have && version >= 0:
			err = ErrStale
		default:
			err = e.putNow(ctx, stamped, from, false)
		}
		return final(err) // the caller names a version, so losing a race is the caller's business
	})
}

// basis reads the row of o to start a write from. Where absent is allowed, that may be none.
func (e *Entity[T]) basis(ctx context.Context, o T, absent bool) (*basis[T], error) {
	item, err := e.readItem(ctx, o, reading{consistent: true, expired: absent})
	if absent && (errors.Is(err, ErrNotFound) || err == nil && e.Owns(item) && e.plan.expired(item, e.table.Now())) {
		return &basis[T]{item: table.Item{}}, nil
	}
	if err != nil {
		return nil, err
	}
	row, err := e.decodeAt(e.Key(o), item)
	if err != nil {
		return nil, err
	}
	return &basis[T]{row: row, item: item, guarded: e.plan.version != nil, whole: true}, nil
}

// absent says that there was no row, or an expired one.
func (from *basis[T]) absent() bool { return from.item != nil && len(from.item) == 0 }

func (e *Entity[T]) putNow(ctx context.Context, stamped T, from *basis[T], create bool) error {
	return e.settled(ctx, func(s settlement) error {
		op := e.putOp(stamped, from, create, s)
		if err := op.Err(); err != nil {
			return err
		}
		err := e.table.Write(ctx, op)
		if ownEffect(err, op.Item()) {
			return nil
		}
		return e.decided(err, e.versionOf(&stamped)-1)
	})
}

// ownEffect says that a write found nothing but what it had written itself, in an earlier
// attempt whose answer was lost.
func ownEffect(err error, wrote table.Item) bool {
	var failed *table.ConditionError
	return errors.As(err, &failed) && failed.Repeated && len(failed.Item) > 0 && table.SameItem(failed.Item, wrote)
}

// CreateOp is Create as part of a transaction. With unique values it takes an action more
// for each.
func (e *Entity[T]) CreateOp(o T) table.Op { return e.putOp(e.stamp(o, true), nil, true, nil) }

// PutOp is Put as part of a transaction. It cannot read, so where values are unique it is for new
// rows only, of version 0: ModifyOp replaces what was read.
func (e *Entity[T]) PutOp(o T) table.Op {
	if len(e.plan.uniques) > 0 && (e.plan.version == nil || e.versionOf(&o) > 0) {
		return table.Invalid(e.fail("put", fmt.Errorf("%w: the unique values that the row had are not known: use ModifyOp", ErrInvalid)))
	}
	return e.putOp(e.stamp(o, false), nil, false, nil)
}

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

// putOp writes a row over what from says; nil where that does not matter.
func (e *Entity[T]) putOp(stamped T, from *basis[T], create bool, s settlement) table.Op {
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
	var m verdict
	if p.match != nil {
		if err := p.checkMatch(item); err != nil {
			return table.Invalid(e.fail("put", err))
		}
		m = p.match.at(e.Key(stamped))
	}
	var before *T
	if from != nil && !from.absent() {
		before = &from.row
	}
	sentinels, err := e.sentinels(e.Key(stamped), before, &stamped, s)
	if err != nil {
		return table.Invalid(e.fail("put", err))
	}
	op := table.Put(item).With(sentinels...)
	if create || from != nil && from.absent() && p.version == nil {
		return e.createOp(op, create, m)
	}
	g := &guard{version: anyVersion, match: m}
	switch {
	case version > 1:
		g.version = version - 1
	case version == 1:
		g.version, g.free = noVersion, true
	case before != nil:
		g.exists = true
	}
	if before != nil {
		if g.seen, err = e.expectations(from); err != nil {
			return table.Invalid(e.fail("put", err))
		}
	}
	return e.guarded(op, g)
}

// createOp makes a put depend on there being no row.
func (e *Entity[T]) createOp(op table.Op, create bool, m verdict) table.Op {
	p := e.plan
	free := table.Attr(p.scheme.PK).NotExists()
	if p.ttl != nil {
		free = table.Or(free, table.And(e.isType(m), e.hasExpired()))
	}
	op = op.If(free).Explain(func(item table.Item) error {
		switch {
		case len(item) == 0 || e.Owns(item) && p.expired(item, e.table.Now()):
			return nil // another condition
		case create:
			return ErrExists
		case !e.Owns(item):
			return e.otherType(item)
		}
		return ErrStale
	})
	if !e.cond.IsZero() {
		op = op.If(e.cond)
	}
	return e.bind(op)
}

// Update makes changes to the row of o, of which only the key fields and the version
// count, and returns the row as it is now. A missing row is ErrNotFound. Where o has a
// version, a row of another version is ErrStale; version 0 changes the row as it is.
//
// Index keys and unique values that depend on what changes are computed anew, from what the
// row has: where o has a version it is tried as the whole row as it was read, under the
// condition that the row is like that; otherwise, or if it is not, the row is read. So is a row
// of an older schema, which is brought to the current one by the same write.
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
	version := e.versionOf(&o)
	if version > 0 || !e.needsRow(u) {
		updated, err = e.apply(ctx, &basis[T]{row: o, guarded: version > 0, whole: true}, u)
		switch {
		case errors.Is(err, ErrOlder), errors.Is(err, ErrStale) && e.needsRow(u):
		default:
			return updated, err
		}
	}
	stale := err
	err = e.racing(ctx, func() error {
		from, err := e.basis(ctx, o, false)
		if err != nil {
			return err
		}
		if version > 0 {
			// Of that version, and yet o is not the row as it is: o was changed since, or the
			// row was written by a program that encodes differently. The row tells.
			if e.versionOf(&from.row) != version {
				if errors.Is(stale, ErrOlder) {
					stale = ErrStale
				}
				return final(stale)
			}
			updated, err = e.apply(ctx, from, u)
			return final(err)
		}
		updated, err = e.apply(ctx, from, u)
		return err
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

// updated is the row after an update, as it will be read.
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
		if r.verb != setVerb && r.verb != removeVerb {
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

// errUnclear stands for a refusal that may be of the write's own making.
var errUnclear = fmt.Errorf("%w: an answer was lost, and the row has changed since: the write may have been applied", table.ErrUnreachable)

// decided is the error of a write that did not recognise its own effect, unless nobody can
// tell what the refusal means: an attempt without an answer may have been applied, and others
// have changed or deleted the row since. A row that is one version further than the one that
// the write was for was changed by somebody else in its place. Where there was no version
// nothing tells: a row that is there may have been created after the write's own was deleted.
func (e *Entity[T]) decided(err error, version int64) error {
	var failed *table.ConditionError
	if !errors.As(err, &failed) || !failed.Repeated || errors.Is(err, ErrType) {
		return err
	}
	if version > 0 && len(failed.Item) > 0 {
		if n, bad := integer(failed.Item[e.plan.scheme.Version]); bad == nil && (n == version || n == version+1) {
			return err
		}
	}
	return errUnclear
}

// UpdateOp is Update as part of a transaction. It cannot read: where index keys or unique
// values depend on what changes, o has to be the whole row as it was read. A row of an
// older schema is ErrOlder. A unique value that changes takes up to two actions more.
func (e *Entity[T]) UpdateOp(o T, changes ...Change) table.Op {
	u, err := e.resolveChanges(changes)
	if err != nil {
		return table.Invalid(e.fail("update", err))
	}
	op, _ := e.updateOp(&basis[T]{row: o, guarded: e.versionOf(&o) > 0}, u, nil)
	return op
}

func (e *Entity[T]) versionOf(o *T) int64 {
	if e.plan.version == nil {
		return 0
	}
	return e.plan.version.of(reflect.ValueOf(o).Elem()).Int()
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

// expectations are those of the basis on what the row's sentinels are made of.
func (e *Entity[T]) expectations(from *basis[T]) (list []expectation, err error) {
	var fields fieldSet
	if err := from.dependsUnique(e.plan, &fields); err != nil {
		return nil, err
	}
	for _, f := range fields.list {
		x, err := from.expect(e.plan, f)
		if err != nil {
			return nil, err
		}
		list = append(list, x)
	}
	return list, nil
}
