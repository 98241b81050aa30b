package entity

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	"github.com/mortise-go/mortise/internal/toolkit"
	"github.com/mortise-go/mortise/table"
)

// Sink takes the rows of one kind; other rows go to the sinks after it. See [Collect] and [Sort]. [Into] and [Each]
// take the rows of an entity. [Raw] and [SkipUnknown] take the remaining rows.
type Sink interface{ sink() sink }

type sink struct {
	err   error  // a mistake in the sink, returned before any request
	table string // name of the entity's table; empty for a sink that takes any row

	// take returns false for a row that does not belong to this sink. image is set for a row that was not read from the
	// table: such a row is not hidden if it has expired, and it can be incomplete.
	take func(item table.Item, image bool) (bool, error)

	// readable returns an error if an index lacks an attribute without which the sink cannot tell what its rows are. It is nil for
	// a sink that takes any row.
	readable func(index string) error

	// foreign returns an error if only the type attribute of a row keeps it from belonging to the entity. It is nil for
	// a sink that takes any row.
	foreign func(item table.Item) error
}

func (s sink) sink() sink { return s }

func badSink(what string) Sink { return sink{err: fmt.Errorf("%w: %s", ErrInvalid, what)} }

// Into appends the rows of one entity to dst, in the order in which they are read.
func Into[T any](e *Entity[T], dst *[]T) Sink {
	if dst == nil {
		return badSink("Into: nil slice")
	}
	return Each(e, func(o T) error {
		*dst = append(*dst, o)
		return nil
	})
}

// Each calls f with each row of one entity. An error of f ends the call that has the sink, and is returned unchanged.
func Each[T any](e *Entity[T], f func(T) error) Sink {
	if e == nil || f == nil {
		return badSink("Each or Into: nil entity or function")
	}
	return e.core.sink(erased(f))
}

func (e *core) sink(f func(reflect.Value) error) Sink {
	take := func(item table.Item, image bool) (bool, error) {
		switch {
		case image && e.plan.undecided(item):
			return false, nil
		case !e.owns(item):
			return e.isSentinel(item), nil // drop the entity's sentinels; an image of keys alone shows them only by the key
		case e.hidden(item, image):
			return true, nil
		}
		o, err := e.decode(item)
		if err == nil {
			err = f(o)
		}
		return true, err
	}
	readable := func(index string) error { return e.checkIndex(index, false) }
	return sink{table: e.table.Name(), take: take, readable: readable, foreign: e.foreign}
}

// undecided reports whether an image lacks what is needed to read it, because it has only a key.
func (p *plan) undecided(image table.Item) bool {
	if !slices.ContainsFunc(p.needs, func(n need) bool { return n.of != ttlNeed }) {
		return false
	}
	for name := range image {
		if name != p.scheme.PK && name != p.scheme.SK {
			return false
		}
	}
	return true
}

// Raw appends every row that no earlier sink took to dst, unchanged, including expired rows. It takes the module's own
// rows too, whose types begin with "mortise.".
func Raw(dst *[]table.Item) Sink {
	if dst == nil {
		return badSink("Raw: nil slice")
	}
	return sink{take: func(item table.Item, _ bool) (bool, error) {
		*dst = append(*dst, item)
		return true, nil
	}}
}

// SkipUnknown drops every row that no earlier sink took.
func SkipUnknown() Sink {
	return sink{take: func(table.Item, bool) (bool, error) { return true, nil }}
}

// Collect reads an item collection, that is, all rows of one partition key, with a consistent query. Each row goes to
// the first sink that takes it, in the order of the sort keys. Expired rows of an entity are left out. pk is the key as
// the table has it, with the scheme's prefix: that of [Entity.Key].
//
// These errors end the collection; the sinks keep the rows before it:
//
//   - a row that no sink takes is an *[UnknownTypeError]; end the sinks with [Raw] or [SkipUnknown] to allow such rows
//   - a row that does not decode is a *[DecodeError] with its key
//   - a row with the key of an entity among the sinks, but an unknown type, is a *[ForeignTypeError]
//
// The module's own rows, such as locks and sessions, are left out unless a sink takes them. A row without a type
// attribute goes to the entity whose key templates it fits and whose [Spec.Match] holds.
//
// Cost: one query, a read unit per 4 KB of the whole collection; one request per MB.
func Collect(ctx context.Context, t *table.Table, pk string, sinks ...Sink) error {
	return CollectQuery(ctx, t, table.Query{PK: pk, Consistent: true}, sinks...)
}

// CollectQuery is [Collect] for the rows of any query: a part of an item collection, such as a customer and the newest ten orders, or the
// rows of several types in an index. The limit of the query counts expired rows, and rows that the sinks leave out, too. An index that
// lacks what an entity among the sinks needs is refused with [ErrInvalid], as by [On].
//
// Cost: that of the query.
func CollectQuery(ctx context.Context, t *table.Table, q table.Query, sinks ...Sink) error {
	if err := checkSinks(t, sinks); err != nil {
		return fmt.Errorf("entity: collect: %w", err)
	}
	for i, s := range sinks {
		s := s.sink()
		if s.table != "" && s.table != t.Name() {
			return fmt.Errorf("entity: collect: sink %d: %w: an entity of table %s", i, ErrInvalid, s.table)
		}
		if s.readable == nil {
			continue
		}
		if err := s.readable(q.Index); err != nil {
			return fmt.Errorf("entity: collect: sink %d: %w", i, err)
		}
	}
	for item, err := range t.Query(ctx, q) {
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
		if s.foreign == nil { // the sink takes any row
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
