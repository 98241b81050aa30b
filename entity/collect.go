package entity

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mortise-go/mortise/table"
)

// Sink takes rows of an item collection: see Collect.
type Sink interface {
	// take returns false for a row that is not for this sink.
	take(item table.Item) (bool, error)
}

type sinkFunc func(item table.Item) (bool, error)

func (f sinkFunc) take(item table.Item) (bool, error) { return f(item) }

// Into appends the rows of one entity to dst, in the order of their sort keys. Expired
// rows are left out.
func Into[T any](e *Entity[T], dst *[]T) Sink {
	return sinkFunc(func(item table.Item) (bool, error) {
		if e == nil || dst == nil {
			return false, fmt.Errorf("entity: collect: %w: Into: nil entity or slice", ErrInvalid)
		}
		if !e.Owns(item) {
			return false, nil
		}
		if e.plan.expired(item, e.table.Now()) {
			return true, nil
		}
		o, err := e.Decode(item)
		if err == nil {
			*dst = append(*dst, o)
		}
		return true, err
	})
}

// Raw appends every row that no sink before it took to dst, as it is.
func Raw(dst *[]table.Item) Sink {
	return sinkFunc(func(item table.Item) (bool, error) {
		if dst == nil {
			return false, fmt.Errorf("entity: collect: %w: Raw: nil slice", ErrInvalid)
		}
		*dst = append(*dst, item)
		return true, nil
	})
}

// SkipUnknown drops every row that no sink before it took.
func SkipUnknown() Sink {
	return sinkFunc(func(table.Item) (bool, error) { return true, nil })
}

// Collect reads an item collection, all rows of one partition key, with a consistent
// query, and gives each to the first sink that takes it. A row that none takes is an
// *UnknownTypeError: end the sinks with Raw or SkipUnknown to allow others.
//
// Cost: one query, a read unit per 4 KB of the whole collection; one request per MB.
func Collect(ctx context.Context, t *table.Table, pk string, sinks ...Sink) error {
	if t == nil {
		return fmt.Errorf("entity: collect: %w: nil table", ErrInvalid)
	}
	for i, sink := range sinks {
		if sink == nil {
			return fmt.Errorf("entity: collect: %w: sink %d is nil", ErrInvalid, i)
		}
	}
	for item, err := range t.Query(ctx, table.Query{PK: pk, Consistent: true}) {
		if err != nil {
			return fmt.Errorf("entity: collect: %w", err)
		}
		if err := sort(t, item, sinks); err != nil {
			return err
		}
	}
	return nil
}

func sort(t *table.Table, item table.Item, sinks []Sink) error {
	for _, s := range sinks {
		if s == nil {
			return fmt.Errorf("entity: collect: %w: nil sink", ErrInvalid)
		}
		if took, err := s.take(item); took || err != nil {
			return err
		}
	}
	unknown := &UnknownTypeError{}
	unknown.Key, _ = t.KeyOf(item)
	if typ, ok := item[t.Scheme().Type].(*types.AttributeValueMemberS); ok {
		unknown.Type = typ.Value
	}
	return unknown
}
