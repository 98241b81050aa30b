package entity

import (
	"context"
	"fmt"
	"iter"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
)

// ReadOption changes how Get and Query read.
type ReadOption func(*reading) error

type reading struct {
	consistent bool
	expired    bool
	index      string
	descending bool
	limit      int
	pageSize   int
	filter     table.Cond
	lo, hi     *bound
}

type bound struct {
	field string
	value any
}

// Consistent reads every write that was acknowledged before, for twice the price. Indexes
// cannot be read so, local ones excepted.
func Consistent() ReadOption {
	return func(r *reading) error {
		r.consistent = true
		return nil
	}
}

// WithExpired also returns rows that have expired and are not yet deleted.
func WithExpired() ReadOption {
	return func(r *reading) error {
		r.expired = true
		return nil
	}
}

// On queries an index of the table instead of the table itself. An index that does not hold
// all attributes gives rows with those fields empty that it lacks: do not write them back.
func On(index string) ReadOption {
	return func(r *reading) error {
		r.index = index
		return nil
	}
}

// Descending returns rows from the greatest sort key to the smallest.
func Descending() ReadOption {
	return func(r *reading) error {
		r.descending = true
		return nil
	}
}

// Limit ends a query after n rows, at least 1.
func Limit(n int) ReadOption {
	return func(r *reading) error {
		if n < 1 {
			return fmt.Errorf("%w: Limit(%d): want at least 1", ErrInvalid, n)
		}
		r.limit = n
		return nil
	}
}

// PageSize is the number of rows that one request examines, at least 1. Defaults to as
// many as 1 MB holds.
func PageSize(n int) ReadOption {
	return func(r *reading) error {
		if n < 1 {
			return fmt.Errorf("%w: PageSize(%d): want at least 1", ErrInvalid, n)
		}
		r.pageSize = n
		return nil
	}
}

// Filter drops rows for which cond does not hold, after they were read and paid for.
// Several filters all have to hold.
func Filter(cond table.Cond) ReadOption {
	return func(r *reading) error {
		r.filter = table.And(r.filter, cond)
		return nil
	}
}

// From starts a query where a field of the sort key has the given value, which is
// included. It has to be the field that follows those that match names.
func From(field string, value any) ReadOption {
	return func(r *reading) error {
		r.lo = &bound{field, value}
		return nil
	}
}

// Until ends a query before a field of the sort key has the given value, which is excluded.
func Until(field string, value any) ReadOption {
	return func(r *reading) error {
		r.hi = &bound{field, value}
		return nil
	}
}

func newReading(opts []ReadOption) (r reading, err error) {
	for _, opt := range opts {
		if opt == nil {
			return r, fmt.Errorf("%w: nil option", ErrInvalid)
		}
		if err := opt(&r); err != nil {
			return r, err
		}
	}
	return r, nil
}

// Get reads the row of o, of which only the key fields count. A missing or expired row is
// ErrNotFound, a row of another type ErrType. Of the options, Consistent and WithExpired
// mean something here.
//
// Cost: one read: half a unit per 4 KB, one when consistent.
func (e *Entity[T]) Get(ctx context.Context, o T, opts ...ReadOption) (T, error) {
	r, err := newReading(opts)
	if err == nil && (r.index != "" || r.descending || r.limit+r.pageSize > 0 || !r.filter.IsZero() || r.lo != nil || r.hi != nil) {
		err = fmt.Errorf("%w: an option for queries only", ErrInvalid)
	}
	if err != nil {
		return o, e.fail("get", err)
	}
	row, err := e.read(ctx, o, r)
	if err != nil {
		var zero T
		return zero, e.fail("get", err)
	}
	return row, nil
}

func (e *Entity[T]) read(ctx context.Context, o T, r reading) (row T, err error) {
	item, err := e.readItem(ctx, o, r)
	if err != nil {
		return row, err
	}
	return e.Decode(item)
}

func (e *Entity[T]) readItem(ctx context.Context, o T, r reading) (table.Item, error) {
	item, err := e.table.Get(ctx, e.Key(o), r.consistent)
	if err != nil {
		return nil, err
	}
	if !r.expired && e.Owns(item) && e.plan.expired(item, e.table.Now()) {
		return nil, ErrNotFound
	}
	return item, nil
}

// Query yields rows of one partition key in the order of their sort keys, until the end,
// the limit, or the first error, which is the last pair. match names all fields of the
// partition key's template, and as many leading fields of the sort key's as wanted;
// prefixes end at field boundaries. Rows of other types and expired ones are left out.
//
// On an index, which is eventually consistent, a row may be as it was some moments ago.
//
// Cost: per request, half a read unit per 4 KB examined, one when consistent.
func (e *Entity[T]) Query(ctx context.Context, match keys.Values, opts ...ReadOption) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var zero T
		r, err := newReading(opts)
		var q table.Query
		if err == nil {
			q, err = e.query(match, r)
		}
		if err != nil {
			yield(zero, e.fail("query", err))
			return
		}
		left := r.limit
		for item, err := range e.table.Query(ctx, q) {
			if err != nil {
				yield(zero, e.fail("query", err))
				return
			}
			if !e.Owns(item) || !r.expired && e.plan.expired(item, e.table.Now()) {
				continue
			}
			o, err := e.Decode(item)
			if !yield(o, err) || err != nil {
				return
			}
			if left--; left == 0 {
				return
			}
		}
	}
}

// query translates names and values into keys.
func (e *Entity[T]) query(match keys.Values, r reading) (q table.Query, err error) {
	pk, sk, err := e.keysOf(r.index)
	if err != nil {
		return q, err
	}
	q = table.Query{
		Index: r.index, Filter: r.filter, Descending: r.descending, Consistent: r.consistent, PageSize: r.pageSize,
	}
	if r.pageSize == 0 && r.limit > 0 && r.filter.IsZero() {
		q.PageSize = r.limit
	}
	values, err := split(match, pk, sk)
	if err != nil {
		return q, err
	}
	if q.PK, err = pk.tpl.Format(values[0]); err != nil {
		return q, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if q.SK, err = sk.span(values[1], r); err != nil {
		return q, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return q, nil
}

func (e *Entity[T]) keysOf(index string) (pk, sk *keyPlan, err error) {
	p := e.plan
	if index == "" {
		return &p.pk, &p.sk, nil
	}
	for i := range p.indexes {
		if x := &p.indexes[i]; x.name == index {
			return &x.pk, &x.sk, nil
		}
	}
	return nil, nil, fmt.Errorf("%w: %s rows have no keys in index %q", ErrInvalid, e.typ, index)
}

// split sorts values by the templates that name them, under the templates' own names.
func split(match keys.Values, plans ...*keyPlan) ([]keys.Values, error) {
	var refs []*field
	list := make([]keys.Values, len(plans))
	for i, k := range plans {
		list[i] = keys.Values{}
		refs = append(refs, k.refs...)
	}
	for name, v := range match {
		f := resolve(refs, name)
		used := false
		for i, k := range plans {
			if k.tpl == nil {
				continue
			}
			for j, tf := range k.tpl.Fields() {
				if name != tf.Name && (f == nil || k.refs[j] != f) {
					continue
				}
				if _, twice := list[i][tf.Name]; twice {
					return nil, fmt.Errorf("%w: %q is given twice", ErrInvalid, tf.Name)
				}
				plain, err := plainValue(v)
				if err != nil {
					return nil, err
				}
				list[i][tf.Name] = plain
				used = true
			}
		}
		if !used {
			return nil, fmt.Errorf("%w: %q is not part of the key", ErrInvalid, name)
		}
	}
	return list, nil
}

// span is the range of sort keys: that of the leading values, narrowed by bounds.
func (k *keyPlan) span(leading keys.Values, r reading) (keys.Range, error) {
	if k.tpl == nil {
		if r.lo != nil || r.hi != nil {
			return keys.Range{}, fmt.Errorf("%w: From or Until on an index without a sort key", ErrInvalid)
		}
		return keys.Range{}, nil
	}
	for _, b := range []*bound{r.lo, r.hi} {
		if b == nil {
			continue
		}
		fields := k.tpl.Fields()
		if len(leading) >= len(fields) || resolve([]*field{k.refs[len(leading)]}, b.field) == nil {
			return keys.Range{}, fmt.Errorf("%w: %q is not the sort key's next field", ErrInvalid, b.field)
		}
	}
	var lo, hi any
	var err error
	if r.lo != nil {
		if lo, err = plainValue(r.lo.value); err != nil {
			return keys.Range{}, err
		}
	}
	if r.hi != nil {
		if hi, err = plainValue(r.hi.value); err != nil {
			return keys.Range{}, err
		}
	}
	switch {
	case r.lo != nil && r.hi != nil:
		return k.tpl.Between(lo, hi, leading)
	case r.lo != nil:
		return k.tpl.From(lo, leading)
	case r.hi != nil:
		return k.tpl.Until(hi, leading)
	}
	return k.tpl.Range(leading)
}
