package migrations

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/mortise-go/mortise/internal/attrvalue"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mortise-go/mortise/internal/toolkit"
	"github.com/mortise-go/mortise/table"
)

// own returns items without the rows of this module, or with them if all is set.
func (r *Run) own(items []table.Item, all bool) []table.Item {
	if all {
		return items
	}
	name := r.Table().Scheme().Type
	return slices.DeleteFunc(items, func(item table.Item) bool {
		typ, ok := item[name].(*types.AttributeValueMemberS)
		return ok && toolkit.Has(typ.Value)
	})
}

// keyOf returns an item's key as attributes.
func (r *Run) keyOf(item table.Item) table.Item {
	scheme := r.Table().Scheme()
	return table.Item{scheme.PK: item[scheme.PK], scheme.SK: item[scheme.SK]}
}

// sameKey reports whether two items have the same key.
func (r *Run) sameKey(a, b table.Item) bool {
	scheme := r.Table().Scheme()
	return attrvalue.Same(a[scheme.PK], b[scheme.PK]) && attrvalue.Same(a[scheme.SK], b[scheme.SK])
}

// become returns the new state of an item, or nil if it does not change.
func (s *segment) become(ctx context.Context, item table.Item) (table.Item, error) {
	var next table.Item
	err := safely(func() (err error) {
		next, err = s.spec.Transform(ctx, attrvalue.CloneItem(item))
		return err
	})
	if err != nil {
		return nil, s.itemError(ctx, item, err)
	}
	for name, av := range next {
		if attrvalue.HasNil(av) {
			return nil, s.itemError(ctx, item, fmt.Errorf("%w: Transform has set the attribute %q to nil, which is no value", ErrInvalid, name))
		}
	}
	switch {
	case next == nil || attrvalue.SameItem(item, next):
		return nil, nil
	case !s.filling.run.sameKey(item, next):
		return nil, s.itemError(ctx, item, fmt.Errorf("%w: Transform has changed the key", ErrInvalid))
	}
	s.filling.run.nextVersion(item, next)
	return next, nil
}

// nextVersion increments the version of a row that has one, unless Transform has changed it. So programs that have read
// the row before do not overwrite it.
func (r *Run) nextVersion(item, next table.Item) {
	name := r.Table().Scheme().Version
	version, ok := item[name].(*types.AttributeValueMemberN)
	if !ok || !attrvalue.Same(version, next[name]) {
		return
	}
	if n, err := strconv.ParseInt(version.Value, 10, 64); err == nil {
		next[name] = &types.AttributeValueMemberN{Value: strconv.FormatInt(n+1, 10)}
	}
}

// itemError adds the item to an error, unless ctx has ended: then the item is not the cause.
func (s *segment) itemError(ctx context.Context, item table.Item, err error) error {
	if ctx.Err() != nil {
		return err
	}
	key, _ := s.filling.run.Table().KeyOf(item)
	return &ItemError{Migration: s.filling.run.migration.ID, Step: s.spec.Name, Key: key, Err: err}
}

// change writes the difference between an item and its new state, if the item is unchanged and the Filter holds. newShape
// describes which attributes it compares.
func (s *segment) change(item, next table.Item) table.Op {
	t := s.filling.run.Table()
	key, err := t.KeyOf(item)
	if err != nil {
		return table.Invalid(err)
	}
	shape, err := s.shapes.of(t, &s.spec, item, next)
	if err != nil {
		return table.Invalid(err)
	}
	return shape.op(key, item, next)
}
