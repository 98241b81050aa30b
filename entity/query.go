package entity

import (
	"context"
	"fmt"
	"iter"
	"reflect"
	"slices"

	"github.com/mortise-go/mortise/internal/errs"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
)

// Get reads the row of o. Only the key fields of o count. A missing or expired row is [ErrNotFound], a row of another
// type [ErrType].
//
// Options: [Consistent], [WithExpired].
//
// Cost: one read: half a unit per 4 KB, one if consistent.
func (e *Entity[T]) Get(ctx context.Context, o T, opts ...ReadOption) (T, error) {
	var row T
	got, err := e.core.get(ctx, valueOf(&o), opts)
	err = e.core.done("get", &row, got, err)
	return row, err
}

func (e *core) get(ctx context.Context, o reflect.Value, opts []ReadOption) (row reflect.Value, err error) {
	r, err := newReading(opts, getOptions)
	if err != nil {
		return row, err
	}
	item, err := e.readItem(ctx, o, r)
	if err != nil {
		return row, err
	}
	return e.decode(item)
}

func (e *core) readItem(ctx context.Context, o reflect.Value, r reading) (table.Item, error) {
	key := e.keyOf(o)
	if err := key.Validate(); err != nil {
		return nil, err
	}
	item, err := e.table.Get(ctx, key, r.consistent)
	if err != nil {
		return nil, err
	}
	if e.owns(item) && e.hidden(item, r.expired) {
		return nil, ErrNotFound
	}
	return item, nil
}

// hidden reports whether a row is invisible because it has expired.
func (e *core) hidden(item table.Item, expired bool) bool {
	return !expired && e.plan.expired(item, e.table.Now())
}

// visible reports whether a query or scan yields a row: it belongs to the entity and is not hidden.
func (e *core) visible(item table.Item, r *reading) bool {
	return e.owns(item) && !e.hidden(item, r.expired)
}

// Query yields the rows of one partition key in the order of their sort keys, until the end, the limit, or the first
// error, which is the last pair. match contains all fields of the partition key's template, and any number of the first
// fields of the sort key's template. These are compared as a whole; see [Prefix] for the beginning of a text. A field of the
// partition key may also stand anywhere in the sort key. Values are converted to the types of their fields, as by [Set]. If a
// type has MarshalText, a string that cannot be converted is taken as the text in the key.
//
// Rows of other types and expired rows are left out. A row that has the entity's key but an unknown type is a
// *[ForeignTypeError]. An index is eventually consistent, so it can yield rows as they were some moments ago.
//
// If the partition key has a shard, and match leaves out the field from which only the shard is computed, Query reads
// all shards, up to 8 at a time, and merges their rows by sort key. Rows with the same sort key come in the order of
// the shards. match can contain that field only if the sort key does, since a shard has rows of other values too.
//
// Options: all except [Segments].
//
// Cost: per request, half a read unit per 4 KB examined, one if consistent. Each shard costs at least one request, and
// can read up to [Limit] rows that are not needed, and twice as many as are left out.
func (e *Entity[T]) Query(ctx context.Context, match keys.Values, opts ...ReadOption) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) { e.core.query(ctx, match, opts, yielding(yield)) }
}

func (e *core) query(ctx context.Context, match keys.Values, opts []ReadOption, yield func(reflect.Value, error) bool) {
	s, err := e.search(match, opts, 0)
	if err != nil {
		yield(reflect.Value{}, e.fail("query", err))
		return
	}
	for n := 0; s.limit == 0 || n < s.limit; n++ {
		item, err := s.next(ctx)
		if err != nil {
			yield(reflect.Value{}, e.fail("query", err))
			return
		}
		if item == nil {
			return
		}
		o, err := e.decode(item)
		if !yield(o, err) || err != nil {
			return
		}
	}
}

// search is a query in progress. It yields the visible rows in order.
type search struct {
	reading
	rows    merge
	visible func(table.Item) bool
	foreign func(table.Item) error
	binding binding
}

// search prepares a query. With a limit, but no page size and no filter, the first request examines up to limit + more rows.
func (e *core) search(match keys.Values, opts []ReadOption, more int) (*search, error) {
	r, err := newReading(opts, queryOptions)
	if err != nil {
		return nil, err
	}
	pk, sk, err := e.keysOf(&r)
	if err != nil {
		return nil, err
	}
	values, err := split(match, pk, sk)
	if err != nil {
		return nil, err
	}
	if err := pk.narrows(values[0], sk); err != nil {
		return nil, err
	}
	pks, err := pk.shards(values[0])
	if err != nil {
		return nil, err
	}
	sk.skip(values[1], pk)
	span, err := sk.span(values[1], r)
	if err != nil {
		return nil, errs.Kind(ErrInvalid, err)
	}
	s := &search{reading: r, foreign: e.foreign}
	s.visible = func(item table.Item) bool { return e.visible(item, &s.reading) }
	s.rows = merge{table: e.table, sk: sk.attr, descending: r.descending, parts: make([]part, len(pks))}
	for i := range pks {
		q := table.Query{
			Index: r.index, PK: pks[i], SK: span, Filter: r.filter,
			Descending: r.descending, Consistent: r.consistent, PageSize: r.pageSize,
		}
		if r.pageSize == 0 && r.limit > 0 && r.filter.IsZero() {
			// A second page is read only if rows of the first one are left out. There may be many of these, so pages grow.
			q.PageSize, s.rows.parts[i].grows = min(r.limit, maxPage)+more, true
		}
		s.rows.parts[i].query = q
	}
	s.binding = binding{table: e.table, typ: e.typ, pks: pks, pk: pk, sk: sk, reading: &s.reading, span: span}
	if r.after == "" {
		return s, nil
	}
	at, start, err := s.binding.open(r.after)
	if err != nil {
		return nil, err
	}
	s.rows.resume(at, start)
	return s, nil
}

// next returns the next visible row, or nil at the end.
func (s *search) next(ctx context.Context) (table.Item, error) {
	for {
		item, err := s.rows.next(ctx)
		if item == nil || err != nil || s.visible(item) {
			return item, err
		}
		if err := s.foreign(item); err != nil {
			return nil, err
		}
	}
}

// shards returns the partition keys that a query has to read. There are several if values leave out the field from which
// the shard is computed.
func (k *keyPlan) shards(values keys.Values) ([]string, error) {
	if k.natural != nil {
		one, err := k.one(values)
		return []string{one}, err
	}
	spread := false
	for _, f := range k.tpl.Fields() {
		switch _, ok := values[f.Name]; {
		case ok:
		case f.Computed:
			spread = true
		default:
			return nil, fmt.Errorf("%w: %q of the partition key is missing", ErrInvalid, f.Name)
		}
	}
	if spread {
		list, err := k.tpl.Shards(values)
		if err != nil {
			return nil, errs.Kind(ErrInvalid, err)
		}
		return list, nil
	}
	one, err := k.tpl.Format(values)
	if err != nil {
		return nil, errs.Kind(ErrInvalid, err)
	}
	return []string{one}, nil
}

// narrows refuses a value from which only the shard is computed, unless the sort key contains it: the shard has rows of other values
// too.
func (k *keyPlan) narrows(values keys.Values, sk *keyPlan) error {
	for i, tf := range k.tpl.Fields() {
		f := k.refs[i]
		if _, ok := values[tf.Name]; ok && tf.Computed && f != sk.natural && !slices.Contains(sk.stored, f) {
			return fmt.Errorf("%w: %q selects a shard, which has rows of other values too, and is not part of the sort key: leave it out", ErrInvalid, f.goName)
		}
	}
	return nil
}

// keysOf returns the keys of the table or index that r reads. It refuses an index that lacks what the read needs.
func (e *core) keysOf(r *reading) (pk, sk *keyPlan, err error) {
	p := e.plan
	if r.index == "" {
		return &p.pk, &p.sk, nil
	}
	for i := range p.indexes {
		x := &p.indexes[i]
		if x.name != r.index {
			continue
		}
		return &x.pk, &x.sk, e.checkIndex(r.index, r.expired)
	}
	return nil, nil, fmt.Errorf("%w: %s rows have no keys in index %q", ErrInvalid, e.typ, r.index)
}

// split divides match by key. Each result uses the names in the template or, for a natural key, the attribute.
func split(match keys.Values, plans ...*keyPlan) ([]keys.Values, error) {
	var refs []*field
	list := make([]keys.Values, len(plans))
	for i, k := range plans {
		list[i] = keys.Values{}
		refs = append(refs, k.refs...)
		if k.natural != nil {
			refs = append(refs, k.natural)
		}
	}
	for name, v := range match {
		f := resolve(refs, name)
		used := false
		for i, k := range plans {
			if k.natural != nil && k.natural == f {
				if _, twice := list[i][k.attr]; twice {
					return nil, fmt.Errorf("%w: %q is given twice", ErrInvalid, k.attr)
				}
				list[i][k.attr], used = v, true
			}
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
				part, err := k.refs[j].keyPart(v)
				if err != nil {
					return nil, err
				}
				list[i][tf.Name] = k.refs[j].whole(part)
				used = true
			}
		}
		if !used {
			return nil, fmt.Errorf("%w: %q is not part of the key", ErrInvalid, name)
		}
	}
	return list, nil
}

// skip removes the values of fields that the partition key determines and that follow a field without a value. No range can use
// them, and all rows of the partition key have them.
func (k *keyPlan) skip(values keys.Values, pk *keyPlan) {
	if k.tpl == nil {
		return
	}
	gap := false
	for i, tf := range k.tpl.Fields() {
		_, ok := values[tf.Name]
		gap = gap || !ok
		if f := k.refs[i]; gap && (pk.natural == f || slices.Contains(pk.stored, f)) {
			delete(values, tf.Name)
		}
	}
}

// bounded returns the fields that From, Until and Prefix name.
func (r *reading) bounded() (names []string) {
	for _, b := range []*bound{r.lo, r.hi} {
		if b != nil {
			names = append(names, b.field)
		}
	}
	if r.prefix != nil {
		names = append(names, r.prefix.field)
	}
	return names
}

// span returns the range of sort keys for the values of the first fields, narrowed by From, Until or Prefix.
func (k *keyPlan) span(leading keys.Values, r reading) (keys.Range, error) {
	if k.natural != nil {
		return k.naturalSpan(leading, r)
	}
	if k.tpl == nil {
		if len(r.bounded()) > 0 {
			return keys.Range{}, fmt.Errorf("%w: From, Until or Prefix on an index without a sort key", ErrInvalid)
		}
		return keys.Range{}, nil
	}
	for _, name := range r.bounded() {
		fields := k.tpl.Fields()
		if len(leading) >= len(fields) || resolve([]*field{k.refs[len(leading)]}, name) == nil {
			return keys.Range{}, fmt.Errorf("%w: %q is not the sort key's next field", ErrInvalid, name)
		}
	}
	if r.prefix != nil {
		return k.tpl.BeginsWith(r.prefix.text, leading)
	}
	var lo, hi any
	var err error
	if r.lo != nil {
		if lo, err = k.refs[len(leading)].keyPart(r.lo.value); err != nil {
			return keys.Range{}, err
		}
	}
	if r.hi != nil {
		if hi, err = k.refs[len(leading)].keyPart(r.hi.value); err != nil {
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
