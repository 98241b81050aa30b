package entity

import (
	"context"
	"fmt"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
)

// Sink takes rows of one kind, and leaves others to the sinks after it: see Collect and
// Sort. Into and Each take rows of an entity; Raw and SkipUnknown take what is left.
type Sink interface {
	// check is what is wrong with the sink, before anything is sent.
	check() error

	// take returns false for a row that is not for this sink.
	take(item table.Item, expired bool) (bool, error)
}

type sink struct {
	err error
	f   func(item table.Item, expired bool) (bool, error)
}

func (s sink) check() error                                     { return s.err }
func (s sink) take(item table.Item, expired bool) (bool, error) { return s.f(item, expired) }

func badSink(what string) Sink { return sink{err: fmt.Errorf("%w: %s", ErrInvalid, what)} }

// Into appends the rows of one entity to dst, in the order in which they come.
func Into[T any](e *Entity[T], dst *[]T) Sink {
	if dst == nil {
		return badSink("Into: nil slice")
	}
	return Each(e, func(o T) error {
		*dst = append(*dst, o)
		return nil
	})
}

// Each calls f with each row of one entity. An error of f ends the call that the sink was given
// to, which returns it as it is. The sentinels of the entity's unique values, which a stream or a
// scan of the table meets, are taken too, and dropped.
func Each[T any](e *Entity[T], f func(T) error) Sink {
	if e == nil || f == nil {
		return badSink("Each or Into: nil entity or function")
	}
	return sink{f: func(item table.Item, expired bool) (bool, error) {
		if !e.Owns(item) {
			return e.isSentinel(item), nil
		}
		if e.hidden(item, expired) {
			return true, nil
		}
		o, err := e.Decode(item)
		if err == nil {
			err = f(o)
		}
		return true, err
	}}
}

// Raw appends every row that no sink before it took to dst, as it is, expired or not.
func Raw(dst *[]table.Item) Sink {
	if dst == nil {
		return badSink("Raw: nil slice")
	}
	return sink{f: func(item table.Item, _ bool) (bool, error) {
		*dst = append(*dst, item)
		return true, nil
	}}
}

// SkipUnknown drops every row that no sink before it took.
func SkipUnknown() Sink {
	return sink{f: func(table.Item, bool) (bool, error) { return true, nil }}
}

// Collect reads an item collection, all rows of one partition key, with a consistent
// query, and gives each to the first sink that takes it, in the order of the sort keys. Rows of an
// entity that have expired are left out. A row that no sink takes is an *UnknownTypeError:
// end the sinks with Raw or SkipUnknown to allow others. A row that does not decode is a
// *DecodeError with its key. Both end the collection; what came before is in the sinks.
//
// A row without a type attribute, as another program may have written it, goes to the
// entity whose key templates it fits.
//
// Cost: one query, a read unit per 4 KB of the whole collection; one request per MB.
func Collect(ctx context.Context, t *table.Table, pk string, sinks ...Sink) error {
	return CollectIn(ctx, t, pk, keys.Range{}, sinks...)
}

// CollectIn is Collect for the rows whose sort keys are in a range, such as that of a prefix
// (keys.PrefixRange) or of a template (keys.Template.Range).
func CollectIn(ctx context.Context, t *table.Table, pk string, sk keys.Range, sinks ...Sink) error {
	if err := checkSinks(t, sinks); err != nil {
		return fmt.Errorf("entity: collect: %w", err)
	}
	for item, err := range t.Query(ctx, table.Query{PK: pk, SK: sk, Consistent: true}) {
		if err != nil {
			return fmt.Errorf("entity: collect: %w", err)
		}
		if err := sort(t, item, false, sinks); err != nil {
			return err
		}
	}
	return nil
}

func checkSinks(t *table.Table, sinks []Sink) error {
	if t == nil {
		return fmt.Errorf("%w: nil table", ErrInvalid)
	}
	for i, s := range sinks {
		if s == nil {
			return fmt.Errorf("%w: sink %d is nil", ErrInvalid, i)
		}
		if err := s.check(); err != nil {
			return fmt.Errorf("sink %d: %w", i, err)
		}
	}
	return nil
}

func sort(t *table.Table, item table.Item, expired bool, sinks []Sink) error {
	for _, s := range sinks {
		if took, err := s.take(item, expired); took || err != nil {
			return err
		}
	}
	unknown := &UnknownTypeError{Type: text(item, t.Scheme().Type)}
	unknown.Key, _ = t.KeyOf(item)
	return unknown
}
