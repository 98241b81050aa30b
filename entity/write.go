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
// it as written. Where T has a Version, a row of another version than o's is ErrStale, and
// version 0 is for a row that does not exist: of one that has no version yet, Put could not tell
// whether it was read, since o is what the row is to be. Modify and Update give it a version.
// AnyVersion replaces whatever row of this type is there.
//
// Cost: one put; with unique values, and with AnyVersion, a consistent read before it; a
// transaction where a unique value changes.
func (e *Entity[T]) Put(ctx context.Context, o T) (T, error) {
	stamped := e.stamp(o, false)
	var err error
	if len(e.plan.uniques) > 0 || e.plan.version != nil && e.anyVersion {
		err = e.replace(ctx, o, &stamped)
	} else {
		err = e.putNow(ctx, stamped, nil, false)
	}
	if err != nil {
		return o, e.fail("put", err)
	}
	return stamped, nil
}

// replace is Put where it depends on what the row had: on values that are unique, or on a
// version that the caller does not know.
func (e *Entity[T]) replace(ctx context.Context, o T, stamped *T) error {
	return e.racing(ctx, func() error {
		from, err := e.basis(ctx, o, true)
		if err != nil {
			return err
		}
		var have int64
		if !from.absent() {
			have = e.versionOf(&from.row)
		}
		if !e.depends() {
			if f := e.plan.version; f != nil {
				f.of(reflect.ValueOf(stamped).Elem()).SetInt(have + 1)
			}
			return raced(e.putNow(ctx, *stamped, from, false))
		}
		switch version := e.versionOf(&o); {
		case version > 0 && from.absent():
			err = ErrNotFound
		case version == 0 && !from.absent():
			err = e.plan.unseen(from.item)
		case version != have && version > 0:
			err = ErrStale
		default:
			err = e.putNow(ctx, *stamped, from, false)
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
// rows only, of version 0: ModifyOp replaces what was read. With AnyVersion it is refused.
func (e *Entity[T]) PutOp(o T) table.Op {
	switch version := e.plan.version; {
	case version != nil && e.anyVersion:
		return table.Invalid(e.fail("put", fmt.Errorf("%w: AnyVersion: the version to count on is not known: use Put, or UpdateOp", ErrInvalid)))
	case len(e.plan.uniques) > 0 && (version == nil || e.versionOf(&o) > 0):
		return table.Invalid(e.fail("put", fmt.Errorf("%w: the unique values that the row had are not known: use ModifyOp", ErrInvalid)))
	}
	return e.putOp(e.stamp(o, false), nil, false, nil)
}

// stamp returns o as it will be written.
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

// putOp writes a row over what from says. Where that is nil, the version says it.
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
	if create || from != nil && from.absent() || from == nil && version == 1 {
		return e.createOp(op, create, m)
	}
	g := &guard{version: anyVersion, exists: before != nil, match: m}
	if p.version != nil {
		g.version = version - 1
	}
	if before != nil {
		if g.seen, err = e.expectations(from); err != nil {
			return table.Invalid(e.fail("put", err))
		}
	}
	return e.guarded(op, g)
}

// createOp makes a put depend on there being no row, or one that nobody can see.
func (e *Entity[T]) createOp(op table.Op, create bool, m verdict) table.Op {
	p := e.plan
	free := table.Attr(p.scheme.PK).NotExists()
	if p.ttl != nil {
		free = table.Or(free, table.And(e.isOursOrNone(m), e.hasExpired()))
	}
	op = op.If(free).Explain(func(item table.Item) error {
		switch {
		case len(item) == 0 || e.Owns(item) && p.expired(item, e.table.Now()):
			return nil // another condition
		case create:
			return ErrExists
		case !e.Owns(item):
			return e.otherType(item)
		case p.version == nil: // read and gone, and there again
			return ErrStale
		}
		if err := p.knows(item); err != nil {
			return err
		}
		return p.unseen(item)
	})
	if !e.cond.IsZero() {
		op = op.If(e.cond)
	}
	return e.bind(op)
}

// errUnclear stands for a refusal that may be of the write's own making.
var errUnclear = fmt.Errorf("%w: an answer was lost, and the row has changed since: the write may have been applied", table.ErrUnreachable)

// decided returns the error of a write that did not recognise its own effect, unless nobody can
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

// expectations returns those of the basis on what the row's sentinels are made of and, where no
// version tells the row, on all that T has of it.
func (e *Entity[T]) expectations(from *basis[T]) (list []expectation, err error) {
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
	for _, f := range fields.list {
		x, err := from.expect(e.plan, f)
		if err != nil {
			return nil, err
		}
		list = also(list, x)
	}
	return list, nil
}
