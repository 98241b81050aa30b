package soak

import (
	"context"
	"errors"
	"fmt"

	"github.com/guregu/dynamo/v2"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
)

// read reads a row consistently into a struct. If there is no row, the struct stays as it is.
func read(ctx context.Context, tbl *table.Table, key keys.Key, out any) error {
	item, err := tbl.Get(ctx, key, true)
	if errors.Is(err, table.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	return decode(item, out)
}

func decode(item table.Item, out any) error {
	if err := dynamo.UnmarshalItem(item, out); err != nil {
		return fmt.Errorf("%w: %w", errNotAsWritten, err)
	}
	return nil
}

// rows reads a partition consistently, in the order of its sort keys, without the locks that stand beside its rows.
func rows[T any](ctx context.Context, tbl *table.Table, partition string, each func(keys.Key, T)) error {
	typed := tbl.Scheme().Type
	for item, err := range tbl.Query(ctx, table.Query{PK: partition, Consistent: true}) {
		if err != nil {
			return fmt.Errorf("soak: audit: %w", err)
		}
		if item[typed] != nil { // only locks have a type here
			continue
		}
		key, err := tbl.KeyOf(item)
		if err != nil {
			return fmt.Errorf("soak: audit: %w", err)
		}
		var row T
		if err := decode(item, &row); err != nil {
			return fmt.Errorf("soak: audit: %w", err)
		}
		each(key, row)
	}
	return nil
}
