package entity

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/mortise-go/mortise/internal/attrvalue"
	"github.com/mortise-go/mortise/internal/errs"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mortise-go/mortise/table"
)

// Update applies changes to the row of o and returns the row as written. A missing row is [ErrNotFound].
//
// If T has a version, a row of another version than o's is [ErrStale]. If o has version 0, the row must have no
// version, and the attributes of o; otherwise the error is [ErrStale] too. Apart from that, only the key fields of o
// count. If T has no version, and with [Entity.AnyVersion], only the key fields count, and the row is changed as it is.
//
// Index keys and unique values that depend on the changes are computed from the row. If T has a version, Update first
// assumes that o is the whole row as it was read; the write has that as its condition. If it is not, or if T has no
// version, Update reads the row. It also reads a row of an older schema, which the same write converts, and a row that
// has no version yet.
//
// Without changes, Update counts the version, sets the field Updated of [Spec], and converts a row of an older schema. If there
// is nothing to do, it writes nothing.
//
// If the error is a *[DecodeError] and does not match [ErrType], the write was applied: the row contains a value that T
// cannot hold.
//
// Cost: one conditional update, with a consistent read before it in the cases above; a transaction if a unique value
// changes.
func (e *Entity[T]) Update(ctx context.Context, o T, changes ...Change) (T, error) {
	updated, err := e.core.update(ctx, valueOf(&o), changes)
	err = e.core.done("update", &o, updated, err)
	return o, err
}

func (e *core) update(ctx context.Context, o reflect.Value, changes []Change) (updated reflect.Value, err error) {
	u, err := e.resolveChanges(changes)
	if err != nil {
		return updated, err
	}
	from := e.given(o)
	from.whole = true
	stale := ErrStale
	var first error                                    // of the attempt without a read
	empty := len(u.list) == 0 && e.plan.version == nil // there is something to write only if the row is of an older schema
	if from.guarded && !e.byAttributes(from) || !from.guarded && !e.needsRow(u) && !empty {
		updated, err = e.apply(ctx, from, u)
		var part *partialError
		switch {
		case errors.Is(err, ErrOlder):
		case errors.As(err, &part) && !u.supplies(part.lacks): // perhaps the row has what o lacks
		case errors.Is(err, ErrInvalid) && !table.MayBeApplied(err) && u.sums() && e.needsRow(u): // perhaps the sum with the row's value fits
		case errors.Is(err, ErrStale) && e.needsRow(u):
			stale = err
		default:
			return updated, err
		}
		first = err
	}
	err = e.racing(ctx, first, func() error {
		now, err := e.basis(ctx, o, false)
		if err != nil {
			return err
		}
		if empty && !e.plan.outdated(now.item) {
			updated = now.row
			return nil
		}
		if !from.guarded {
			updated, err = e.apply(ctx, now, u)
			return err
		}
		// A first attempt with o can fail although the version fits: the caller changed o, or another program encoded the
		// row differently. So compare o with the row that was read, and compute the update from that row.
		if err = e.checkRead(o, now.row, stale); err == nil {
			updated, err = e.apply(ctx, now, u)
		}
		return final(err)
	})
	return updated, err
}

// apply writes an update and returns the row as written.
func (e *core) apply(ctx context.Context, from *basis, u *update) (o reflect.Value, err error) {
	err = e.settled(ctx, func(s settlement) error {
		op, c := e.updateOp(from, u, s)
		if err := op.Err(); err != nil {
			return err
		}
		if len(c.sentinels) > 0 { // a transaction does not return the row, so compute it
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
			return e.decided(err, e.versionOf(from.row), from.knows(u))
		}
		o, err = e.decode(item)
		return errs.WithOutcome(err, true) // the write was applied
	})
	return o, err
}

// updated returns the row after an update in the form in which a reader will see it.
func (e *core) updated(from *basis, after reflect.Value) (row reflect.Value, err error) {
	item, err := e.encode(after, e.versionOf(from.row)+1)
	if err != nil {
		return row, err
	}
	if !e.owns(item) { // Match can name attributes that T does not have, but the row is the entity's
		item[e.plan.scheme.Type] = &types.AttributeValueMemberS{Value: e.typ}
	}
	return e.decode(item)
}

// ownUpdate recognises the row that an update has made, as ownEffect does for a put: it has the next version and every
// value of the update.
func (e *core) ownUpdate(err error, from *basis, u *update) (row reflect.Value, ok bool) {
	p := e.plan
	failed := repeated(err)
	if failed == nil || len(failed.Item) == 0 {
		return row, false
	}
	switch n, err := integer(failed.Item[p.scheme.Version]); {
	case from.guarded && err == nil && n == e.versionOf(from.row)+1:
	case p.version == nil && (p.updated != nil || from.after.IsValid()): // without a version, the values below are the best evidence
	default:
		return row, false
	}
	var c consequences
	if e.applied(from, u, &c) != nil {
		return row, false
	}
	if row, err = e.decode(failed.Item); err != nil {
		return row, false
	}
	for _, r := range u.list {
		have, want := failed.Item[r.attr], r.av
		switch {
		case r.field != nil && r.field.home != nil:
			want, err = r.field.home.kept(c.after)
		case r.isSum(): // the row can have it as the field does not write it: a zero that the tag omits, more digits than a float has
			if have, err = r.field.encode(r.field.of(row)); err == nil {
				want, err = r.field.encode(r.field.of(c.after))
			}
		}
		if err != nil || !attrvalue.Same(have, want) {
			return reflect.Value{}, false
		}
	}
	return row, true
}

// knows reports whether the basis has the values to which the update adds. A caller's value may lack them, since only its key and its
// version count. Then the sums that ownUpdate expects can be wrong.
func (from *basis) knows(u *update) bool {
	return from.item != nil || !slices.ContainsFunc(u.list, func(r resolved) bool { return r.isSum() && r.field.of(from.row).IsZero() })
}

// UpdateOp is [Entity.Update] as part of a transaction. It cannot read. So o has to be the whole row as it was read, in
// the form in which T writes it, if index keys or unique values depend on the changes, or if o has version 0. A row of
// an older schema is [ErrOlder]. A unique value that changes takes up to two more actions.
func (e *Entity[T]) UpdateOp(o T, changes ...Change) table.Op {
	return e.core.updateGiven(valueOf(&o), changes)
}

func (e *core) updateGiven(o reflect.Value, changes []Change) table.Op {
	u, err := e.resolveChanges(changes)
	if err != nil {
		return table.Invalid(e.fail("update", err))
	}
	op, _ := e.updateOp(e.given(o), u, nil)
	return op
}

func (e *core) updateOp(from *basis, u *update, s settlement) (table.Op, consequences) {
	p := e.plan
	key := e.keyOf(from.row)
	err := key.Validate()
	var c consequences
	if err == nil {
		c, err = e.consequences(from, u, s)
	}
	if err == nil && e.versionOf(from.row) < 0 {
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
	g := &guard{exists: true, version: e.required(from), live: true, match: m, seen: c.seen, current: !from.outdated(p), given: from.item == nil}
	return e.guarded(table.Update(key, changes...).With(c.sentinels...), g), c
}
