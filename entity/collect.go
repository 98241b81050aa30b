package entity

import (
	"context"
	"fmt"

	"github.com/mortise-go/mortise/internal/toolkit"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
)

// Sink takes rows of one kind, and leaves others to the sinks after it: see Collect and
// Sort. Into and Each take rows of an entity; Raw and SkipUnknown take what is left.
type Sink interface{ sink() sink }

type sink struct {
	err error // what is wrong with the sink, before anything is sent

	// take returns false for a row that is not for this sink. An image is a row from anywhere: it
	// is not hidden where it has expired, and it may be a part of a row.
	take func(item table.Item, image bool) (bool, error)

	// foreign is the error for a row that only its type attribute keeps from being the entity's; nil
	// for a sink that takes whatever is left.
	foreign func(item table.Item) error
}

func (s sink) sink() sink { return s }

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
// to, which returns it as it is.
func Each[T any](e *Entity[T], f func(T) error) Sink {
	if e == nil || f == nil {
		return badSink("Each or Into: nil entity or function")
	}
	take := func(item table.Item, image bool) (bool, error) {
		switch {
		case image && e.plan.undecided(item):
			return false, nil
		case !e.Owns(item):
			return e.isSentinel(item), nil // which an image of keys alone does not say of itself
		case e.hidden(item, image):
			return true, nil
		}
		o, err := e.Decode(item)
		if err == nil {
			err = f(o)
		}
		return true, err
	}
	return sink{take: take, foreign: e.foreign}
}

// Raw appends every row that no sink before it took to dst, as it is, expired or not. It takes
// the toolkit's own rows too, whose types begin with "mortise.".
func Raw(dst *[]table.Item) Sink {
	if dst == nil {
		return badSink("Raw: nil slice")
	}
	return sink{take: func(item table.Item, _ bool) (bool, error) {
		*dst = append(*dst, item)
		return true, nil
	}}
}

// SkipUnknown drops every row that no sink before it took.
func SkipUnknown() Sink {
	return sink{take: func(table.Item, bool) (bool, error) { return true, nil }}
}

// Collect reads an item collection, all rows of one partition key, with a consistent
// query, and gives each to the first sink that takes it, in the order of the sort keys. Rows of an
// entity that have expired are left out. A row that no sink takes is an *UnknownTypeError:
// end the sinks with Raw or SkipUnknown to allow others. A row that does not decode is a
// *DecodeError with its key. A row that has the key of an entity among the sinks and an unknown
// type is a *ForeignTypeError. All three end the collection; what came before is in the sinks.
//
// The toolkit's own rows, such as locks and sessions, are left out unless a sink takes them:
// Into their own entity, such as lock.Client.Records, or Raw.
//
// A row without a type attribute, as another program may have written it, goes to the
// entity whose key templates it fits and whose Match holds.
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
		if err := s.sink().err; err != nil {
			return fmt.Errorf("sink %d: %w", i, err)
		}
	}
	return nil
}

func sort(t *table.Table, item table.Item, image bool, sinks []Sink) error {
	for _, s := range sinks {
		s := s.sink()
		if s.foreign == nil { // it takes what is left, and nothing that an entity may lack
			if err := foreign(item, sinks); err != nil {
				return err
			}
		}
		if took, err := s.take(item, image); took || err != nil {
			return err
		}
	}
	if err := foreign(item, sinks); err != nil {
		return err
	}
	typ := text(item, t.Scheme().Type)
	if toolkit.Has(typ) {
		return nil
	}
	unknown := &UnknownTypeError{Type: typ}
	unknown.Key, _ = t.KeyOf(item)
	return unknown
}

func foreign(item table.Item, sinks []Sink) error {
	for _, s := range sinks {
		if s := s.sink(); s.foreign != nil {
			if err := s.foreign(item); err != nil {
				return fmt.Errorf("entity: %w", err)
			}
		}
	}
	return nil
}
