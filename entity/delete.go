package entity

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
)

// Delete deletes the row of o.
//
// If T has a version, o has to be the row as it was read. A row of another version is [ErrStale], and so is a row of
// version 0 with other attributes. A row that is missing or has expired is [ErrNotFound]. If T has no version, and with
// [Entity.AnyVersion], Delete deletes any row of this type, also an expired one, and a missing row is not an error.
//
// Cost: one delete. With unique values, a transaction, with a consistent read before it unless o has a version and is
// the whole row as it was read. If T has a version and o has version 0, a consistent read before it.
func (e *Entity[T]) Delete(ctx context.Context, o T) error {
	return e.core.delete(ctx, valueOf(&o))
}

func (e *core) delete(ctx context.Context, o reflect.Value) error {
	from := e.given(o)
	unique := len(e.plan.uniques) > 0
	stale := ErrStale
	var first error // of the attempt without a read
	if !e.byAttributes(from) && (from.guarded || !unique) {
		err := e.deleteNow(ctx, from, from.guarded)
		switch first = err; {
		case unique && errors.Is(err, ErrOlder):
		case unique && errors.Is(err, ErrStale):
			stale = err
		default:
			return e.fail("delete", err)
		}
	}
	return e.fail("delete", e.racing(ctx, first, func() error {
		item, err := e.readItem(ctx, o, reading{consistent: true, expired: !from.guarded})
		switch {
		case errors.Is(err, ErrNotFound) && !from.guarded:
			return e.deleteNone(ctx, e.keyOf(o))
		case err != nil:
			return err
		}
		row, err := e.decodeAt(e.keyOf(o), item)
		if err != nil {
			return err
		}
		now := &basis{row: row, item: item, guarded: e.plan.version != nil}
		if !from.guarded {
			err = e.deleteNow(ctx, now, from.guarded)
			if slices.ContainsFunc(table.Conditions(err), func(f *table.ConditionError) bool { return errors.Is(f, ErrNotFound) && len(f.Item) == 0 }) {
				return e.deleteNone(ctx, e.keyOf(o)) // deleted since it was read
			}
			return raced(err)
		}
		if err = e.checkRead(o, row, stale); err == nil {
			err = e.deleteNow(ctx, now, from.guarded)
		}
		return final(err)
	}))
}

// deleteNone ends a deletion that has found no row. That is no error, but the condition of Entity.If has to hold.
func (e *core) deleteNone(ctx context.Context, key keys.Key) error {
	if e.cond.IsZero() {
		return nil
	}
	none := table.Delete(key).If(table.Attr(e.plan.scheme.PK).NotExists()).Explain(func(item table.Item) error {
		if len(item) > 0 {
			return ErrStale
		}
		return nil // the condition of Entity.If failed
	})
	return e.table.Write(ctx, e.bind(none))
}

// deleteNow deletes the row of from. If live is set, the row must not have expired: the caller has asked for the row that it read, and
// an expired row is no row.
func (e *core) deleteNow(ctx context.Context, from *basis, live bool) error {
	return e.settled(ctx, func(s settlement) error {
		op := e.deleteOp(from, live, s)
		if err := op.Err(); err != nil {
			return err
		}
		err := e.table.Write(ctx, op)
		failed := repeated(err)
		switch {
		case failed != nil && len(failed.Item) == 0:
			return nil // an earlier attempt, whose answer was lost, deleted the row
		case failed == nil || errors.Is(err, ErrType):
			return err
		}
		version := e.versionOf(from.row)
		if n, bad := integer(failed.Item[e.plan.scheme.Version]); version == 0 || bad == nil && n < version {
			return errUnclear // perhaps deleted by an earlier attempt or another program, and created again
		}
		return err
	})
}

// DeleteOp is [Entity.Delete] as part of a transaction. It cannot read. With unique values, o has to be the whole row
// as it was read, each unique value is one more action, and a row of an older schema can be [ErrOlder].
func (e *Entity[T]) DeleteOp(o T) table.Op {
	from := e.core.given(valueOf(&o))
	return e.core.deleteOp(from, from.guarded, nil)
}

func (e *core) deleteOp(from *basis, live bool, s settlement) table.Op {
	key := e.keyOf(from.row)
	if err := key.Validate(); err != nil {
		return table.Invalid(e.fail("delete", err))
	}
	g := &guard{exists: from.guarded, live: live, version: e.required(from), match: e.plan.match.at(key), given: from.item == nil}
	if e.versionOf(from.row) < 0 {
		return table.Invalid(e.fail("delete", fmt.Errorf("%w: negative version", ErrInvalid)))
	}
	var err error
	var sentinels []table.Op
	if g.seen, err = e.expectations(from); err == nil {
		sentinels, err = e.sentinels(key, from.row, reflect.Value{}, s)
	}
	if err != nil {
		return table.Invalid(e.fail("delete", err))
	}
	return e.guarded(table.Delete(key).With(sentinels...), g)
}
