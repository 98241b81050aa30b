package entity

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/mortise-go/mortise/internal/attrvalue"
	"github.com/mortise-go/mortise/internal/errs"

	"github.com/mortise-go/mortise/table"
)

var errReadOnly = fmt.Errorf("%w: the entity is read-only", ErrInvalid)

// Create writes a new row and returns it as written, with its version and timestamps. An existing row at the key, of
// any type, is [ErrExists]; an expired one is replaced. A unique value that another row has is a *[UniqueError].
//
// Cost: one conditional put; with unique values, a transaction of the row and a sentinel for each value.
func (e *Entity[T]) Create(ctx context.Context, o T) (T, error) {
	created, err := e.core.create(ctx, valueOf(&o))
	err = e.core.done("create", &o, created, err)
	return o, err
}

func (e *core) create(ctx context.Context, o reflect.Value) (reflect.Value, error) {
	created := e.stamp(o, true)
	return created, e.putNow(ctx, created, nil, true)
}

// Put writes a whole row, replaces the one at the key with all of its attributes, and returns it as written.
//
// If T has a version, a row of another version than o's is [ErrStale]. Version 0 is for a row that does not exist. If a row
// without a version exists, Put returns [ErrStale], since it cannot check whether o was read from it; [Entity.Modify] and
// [Entity.Update] give such a row a version. With [Entity.AnyVersion], Put replaces any row of this type.
//
// A value without a time of creation ([Spec.Created]) gets that of the row where Put reads it, and the current time otherwise. Modify and
// Upsert keep that of the row.
//
// Cost: one put. A consistent read before it with unique values, and with AnyVersion. A transaction if a unique value
// changes.
func (e *Entity[T]) Put(ctx context.Context, o T) (T, error) {
	put, err := e.core.put(ctx, valueOf(&o))
	err = e.core.done("put", &o, put, err)
	return o, err
}

func (e *core) put(ctx context.Context, o reflect.Value) (stamped reflect.Value, err error) {
	stamped = e.stamp(o, false)
	if len(e.plan.uniques) > 0 || e.plan.version != nil && e.anyVersion {
		err = e.replace(ctx, o, stamped)
	} else {
		err = e.putNow(ctx, stamped, nil, false)
	}
	return stamped, err
}

// replace is put for a write that has to read the old row first: for its unique values or, with AnyVersion, for its
// version. It sets what stamped takes over from that row: the time of creation, if o has none, and with AnyVersion the version.
func (e *core) replace(ctx context.Context, o, stamped reflect.Value) error {
	return e.racing(ctx, nil, func() error {
		from, err := e.basis(ctx, o, true)
		if err != nil {
			return err
		}
		var have int64
		stamped.Set(e.stamp(o, false))
		if !from.absent() {
			have = e.versionOf(from.row)
			if f := e.plan.created; f != nil && f.of(o).IsZero() && !f.of(from.row).IsZero() {
				f.of(stamped).Set(f.of(from.row))
			}
		}
		if !e.depends() {
			if f := e.plan.version; f != nil {
				f.of(stamped).SetInt(have + 1)
			}
			return raced(e.putNow(ctx, stamped, from, false))
		}
		switch version := e.versionOf(o); {
		case version > 0 && from.absent():
			err = ErrNotFound
		case version == 0 && !from.absent():
			err = e.plan.unseen(from.item)
		case version != have && version > 0:
			err = ErrStale
		default:
			err = e.putNow(ctx, stamped, from, false)
		}
		return final(err) // the caller names a version, so a lost race is an error for the caller
	})
}

// basis reads the row of o as the start of a write. If absent is set, the row may be missing or expired.
func (e *core) basis(ctx context.Context, o reflect.Value, absent bool) (*basis, error) {
	item, err := e.readItem(ctx, o, reading{consistent: true})
	switch {
	case absent && errors.Is(err, ErrNotFound):
		return &basis{item: table.Item{}}, nil
	case err != nil:
		return nil, err
	}
	row, err := e.decodeAt(e.keyOf(o), item)
	if err != nil {
		return nil, err
	}
	return &basis{row: row, item: item, guarded: e.plan.version != nil, whole: true}, nil
}

// absent reports whether the read found no row, or an expired one.
func (from *basis) absent() bool { return from.item != nil && len(from.item) == 0 }

func (e *core) putNow(ctx context.Context, stamped reflect.Value, from *basis, create bool) error {
	return e.settled(ctx, func(s settlement) error {
		op := e.putOp(stamped, from, create, s)
		if err := op.Err(); err != nil {
			return err
		}
		err := e.table.Write(ctx, op)
		if ownEffect(err, op.Item()) {
			return nil
		}
		return e.decided(err, e.versionOf(stamped)-1, true)
	})
}

// ownEffect reports whether a write was refused only because of its own effect, from an earlier attempt whose answer
// was lost.
func ownEffect(err error, wrote table.Item) bool {
	failed := repeated(err)
	return failed != nil && len(failed.Item) > 0 && attrvalue.SameItem(failed.Item, wrote)
}

// repeated returns the failed condition in err if an earlier attempt of the same write may have been applied, and nil otherwise.
func repeated(err error) *table.ConditionError {
	var failed *table.ConditionError
	if errors.As(err, &failed) && failed.Repeated {
		return failed
	}
	return nil
}

// CreateOp is [Entity.Create] as part of a transaction. Each unique value is one more action.
func (e *Entity[T]) CreateOp(o T) table.Op { return e.core.createGiven(valueOf(&o)) }

func (e *core) createGiven(o reflect.Value) table.Op {
	return e.putOp(e.stamp(o, true), nil, true, nil)
}

// PutOp is [Entity.Put] as part of a transaction. It cannot read. With unique values it is for new rows only, of
// version 0; use [Entity.ModifyOp] to replace a row that was read. With [Entity.AnyVersion] it is refused.
func (e *Entity[T]) PutOp(o T) table.Op { return e.core.putGiven(valueOf(&o)) }

func (e *core) putGiven(o reflect.Value) table.Op {
	switch version := e.plan.version; {
	case version != nil && e.anyVersion:
		return table.Invalid(e.fail("put", fmt.Errorf("%w: AnyVersion: the version to count on is not known: use Put, or UpdateOp", ErrInvalid)))
	case len(e.plan.uniques) > 0 && (version == nil || e.versionOf(o) > 0):
		return table.Invalid(e.fail("put", fmt.Errorf("%w: the unique values that the row had are not known: use ModifyOp", ErrInvalid)))
	}
	return e.putOp(e.stamp(o, false), nil, false, nil)
}

// stamp returns a copy of o with the fields that the entity sets.
func (e *core) stamp(o reflect.Value, create bool) reflect.Value {
	v := copyOf(o)
	p := e.plan
	now := e.table.Now()
	if p.created != nil && (create || p.created.of(v).IsZero()) {
		p.created.of(v).Set(reflect.ValueOf(p.created.stamp(now)))
	}
	if p.updated != nil {
		p.updated.of(v).Set(reflect.ValueOf(p.updated.stamp(now)))
	}
	p.roundTTL(v)
	if p.version != nil {
		version := p.version.of(v)
		if create {
			version.SetInt(0)
		}
		version.SetInt(version.Int() + 1)
	}
	return v
}

// putOp puts a row in place of the one in from. If from is nil, the value's version decides what may be at the key.
func (e *core) putOp(stamped reflect.Value, from *basis, create bool, s settlement) table.Op {
	p := e.plan
	var version int64
	if p.version != nil {
		version = p.version.of(stamped).Int()
		if version < 1 {
			return table.Invalid(e.fail("put", fmt.Errorf("%w: negative version", ErrInvalid)))
		}
	}
	item, err := e.encode(stamped, version)
	if err != nil {
		return table.Invalid(e.fail("put", err))
	}
	key, _ := e.table.KeyOf(item) // encode has checked it
	var m verdict
	if p.match != nil {
		if err := p.checkMatch(item); err != nil {
			return table.Invalid(e.fail("put", err))
		}
		m = p.match.at(key)
	}
	var before reflect.Value
	if from != nil && !from.absent() {
		before = from.row
	}
	sentinels, err := e.sentinels(key, before, stamped, s)
	if err != nil {
		return table.Invalid(e.fail("put", err))
	}
	op := table.Put(item).With(sentinels...)
	if create || from != nil && from.absent() || from == nil && version == 1 {
		return e.createOp(op, create, m)
	}
	g := &guard{version: anyVersion, exists: before.IsValid(), match: m}
	if p.version != nil {
		g.version, g.live = version-1, version > 1 // the value was read from a row, which must still be there
	}
	if before.IsValid() {
		if g.seen, err = e.expectations(from); err != nil {
			return table.Invalid(e.fail("put", err))
		}
	}
	return e.guarded(op, g)
}

// createOp makes a put apply only if there is no row at the key, or an expired one.
func (e *core) createOp(op table.Op, create bool, m verdict) table.Op {
	p := e.plan
	free := table.Attr(p.scheme.PK).NotExists()
	if p.ttl != nil {
		free = table.Or(free, table.And(e.isOursOrNone(m), e.hasExpired()))
	}
	return e.bind(op.If(free).Explain(func(item table.Item) error {
		switch {
		case len(item) == 0 || e.owns(item) && p.expired(item, e.table.Now()):
			return nil // another condition failed
		case create:
			return ErrExists
		case !e.owns(item):
			return e.otherType(item)
		case p.version == nil: // there was no row when Put read, and another program created one since
			return ErrStale
		}
		if _, err := p.schemaOf(item); err != nil {
			return err
		}
		return p.unseen(item)
	}))
}

// errUnclear replaces a refusal that may have been caused by the write's own effect.
var errUnclear = errs.WithOutcome(
	fmt.Errorf("%w: an answer was lost, and the row has changed since: the write may have been applied", table.ErrUnreachable), true)

// decided returns the error of a refused write that did not recognise its own effect. If an attempt got no answer, it may
// have been applied, and the row may have changed since. So the error is errUnclear, unless the row has the version that the
// write expected, or the next one, which another write must have made if certain is set: then the write would have recognised
// its own. If version is below 1, nothing is proven, since the row may have been created after the write's own row was deleted.
func (e *core) decided(err error, version int64, certain bool) error {
	failed := repeated(err)
	if failed == nil || errors.Is(err, ErrType) {
		return err
	}
	if version > 0 && len(failed.Item) > 0 {
		if n, bad := integer(failed.Item[e.plan.scheme.Version]); bad == nil && (n == version || n == version+1 && certain) {
			return err
		}
	}
	return errUnclear
}

// expectations returns the expectations of a put or delete: on the fields from which sentinels are made and, if no version
// identifies the row, on all of T's fields. In a row of an older schema, sentinels can depend on any attribute.
func (e *core) expectations(from *basis) (list []expectation, err error) {
	var fields fieldSet
	if err := from.dependsUnique(e.plan, &fields); err != nil {
		return nil, err
	}
	if e.byAttributes(from) {
		fields.add(from.all(e.plan, nil)...)
		if list, err = e.nameless(from, nil); err != nil {
			return nil, err
		}
	}
	return from.unchanged(e.plan, list, len(e.plan.uniques) > 0 && from.outdated(e.plan), fields.list)
}
