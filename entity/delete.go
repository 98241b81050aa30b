package entity

import (
	"context"
	"errors"
	"fmt"

	"github.com/mortise-go/mortise/table"
)

// Delete deletes the row of o. Where o has a version, a row of another version is
// ErrStale and a missing one ErrNotFound; with version 0, or no versions, whatever row of
// this type is there is deleted, and a missing one is no error.
//
// Cost: one delete. Where values are unique, a transaction; a consistent read before it
// unless o has a version and is the whole row as it was read.
func (e *Entity[T]) Delete(ctx context.Context, o T) error {
	version := e.versionOf(&o)
	if len(e.plan.uniques) == 0 || version != 0 {
		err := e.deleteNow(ctx, &basis[T]{row: o, guarded: version > 0})
		if len(e.plan.uniques) == 0 || !errors.Is(err, ErrStale) {
			return e.fail("delete", err)
		}
	}
	return e.fail("delete", e.racing(ctx, func() error {
		item, err := e.readItem(ctx, o, reading{consistent: true, expired: true})
		switch {
		case errors.Is(err, ErrNotFound) && version == 0:
			return nil
		case err != nil:
			return err
		}
		row, err := e.decodeAt(e.Key(o), item)
		if err != nil {
			return err
		}
		from := &basis[T]{row: row, item: item, guarded: e.plan.version != nil}
		switch {
		case version == 0:
			if err = e.deleteNow(ctx, from); errors.Is(err, ErrNotFound) {
				return nil
			}
			return err
		case e.versionOf(&row) != version:
			return final(ErrStale)
		}
		return final(e.deleteNow(ctx, from))
	}))
}

func (e *Entity[T]) deleteNow(ctx context.Context, from *basis[T]) error {
	return e.settled(ctx, func(s settlement) error {
		op := e.deleteOp(from, s)
		if err := op.Err(); err != nil {
			return err
		}
		err := e.table.Write(ctx, op)
		var failed *table.ConditionError
		if errors.As(err, &failed) && failed.Repeated && len(failed.Item) == 0 {
			return nil // gone: the attempt whose answer was lost deleted it
		}
		if failed == nil || !failed.Repeated || errors.Is(err, ErrType) {
			return err
		}
		version := e.versionOf(&from.row)
		if n, bad := integer(failed.Item[e.plan.scheme.Version]); version == 0 || bad == nil && n < version {
			return errUnclear // deleted by whomever, and created again
		}
		return err
	})
}

// DeleteOp is Delete as part of a transaction. It cannot read: where values are unique, o
// has to be the whole row as it was read, and each takes an action more.
func (e *Entity[T]) DeleteOp(o T) table.Op {
	return e.deleteOp(&basis[T]{row: o, guarded: e.versionOf(&o) > 0}, nil)
}

func (e *Entity[T]) deleteOp(from *basis[T], s settlement) table.Op {
	key := e.Key(from.row)
	if err := key.Validate(); err != nil {
		return table.Invalid(e.fail("delete", err))
	}
	g := &guard{version: anyVersion, match: e.plan.match.at(key)}
	switch version := e.versionOf(&from.row); {
	case version < 0:
		return table.Invalid(e.fail("delete", fmt.Errorf("%w: negative version", ErrInvalid)))
	case version > 0:
		g.version = version
	case from.guarded: // a row that was read without a version has none still
		g.exists, g.version = true, noVersion
	}
	op := table.Delete(key)
	if len(e.plan.uniques) > 0 {
		sentinels, err := e.sentinels(key, &from.row, nil, s)
		if err == nil {
			g.seen, err = e.expectations(from)
		}
		if err != nil {
			return table.Invalid(e.fail("delete", err))
		}
		op = op.With(sentinels...)
	}
	return e.guarded(op, g)
}
