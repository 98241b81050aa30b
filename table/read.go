package table

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mortise-go/mortise/internal/attrvalue"
	"github.com/mortise-go/mortise/internal/errs"
	"github.com/mortise-go/mortise/keys"
)

// Get reads one item. A missing item is [ErrNotFound]. A consistent read sees every write that was acknowledged before
// it; another read can be some moments behind.
//
// Cost: 0.5 read units per 4 KB; 1 if consistent.
func (t *Table) Get(ctx context.Context, key keys.Key, consistent bool) (Item, error) {
	if err := key.Validate(); err != nil {
		return nil, fmt.Errorf("table: get: %w", errs.Kind(ErrInvalid, err))
	}
	in := &dynamodb.GetItemInput{
		TableName: &t.schema.Name, Key: t.KeyItem(key), ConsistentRead: &consistent,
		ReturnConsumedCapacity: t.capacity(ctx),
	}
	var item Item
	err := call(ctx, t, "GetItem", false, Client.GetItem, in, func(out *dynamodb.GetItemOutput) (answer, error) {
		item = out.Item
		return answer{out.ResultMetadata, one(out.ConsumedCapacity)}, nil
	})
	if err == nil && item == nil {
		err = &Error{Operation: "GetItem", Table: t.schema.Name, Kind: ErrNotFound}
	}
	return item, err
}

// TransactGet reads up to [MaxOps] items as they are at one moment, and returns them in the order of their keys: nil for
// a key without an item. It sees every write that was acknowledged before it. Of a transaction that writes several of the
// items it shows everything or nothing. A key may occur more than once; it is read once, and counts once.
//
// DynamoDB refuses to read more than 4 MB at once ([ErrInvalid]). It also refuses a read while one of the items is written.
// The table's retry policy repeats such a read; at its end the error matches [ErrConflict].
//
// Cost: two read units per 4 KB of each item, at least two. A refused request costs the same.
func (t *Table) TransactGet(ctx context.Context, list []keys.Key) ([]Item, error) {
	unique, at, err := distinct(list)
	if err == nil && len(unique) > MaxOps {
		err = fmt.Errorf("%w: %d items in a transaction, at most %d", ErrInvalid, len(unique), MaxOps)
	}
	if err != nil {
		return nil, fmt.Errorf("table: transact get: %w", err)
	}
	items := make([]Item, len(list))
	if len(list) == 0 {
		return items, nil
	}
	in := &dynamodb.TransactGetItemsInput{
		TransactItems:          make([]types.TransactGetItem, len(unique)),
		ReturnConsumedCapacity: t.capacity(ctx),
	}
	for i, key := range unique {
		in.TransactItems[i].Get = &types.Get{TableName: &t.schema.Name, Key: t.KeyItem(key)}
	}
	err = call(ctx, t, "TransactGetItems", false, Client.TransactGetItems, in, func(out *dynamodb.TransactGetItemsOutput) (answer, error) {
		if len(out.Responses) != len(unique) {
			return answer{}, fmt.Errorf("%d items in answer to %d keys", len(out.Responses), len(unique))
		}
		for i, key := range unique {
			spread(items, at[key], out.Responses[i].Item)
		}
		return answer{out.ResultMetadata, out.ConsumedCapacity}, nil
	})
	if err != nil {
		return nil, err
	}
	return items, nil
}

// Query describes a read of the items of one partition key, in the order of their sort keys. Number keys of an index
// are decimal text; binary keys cannot be queried.
type Query struct {
	Index      string     // defaults to "": the table itself
	PK         string     // value of the partition key, with the scheme's prefix
	SK         keys.Range // of sort keys, half open; the zero Range is all, and {Lo: x, Hi: x + "\x00"} is x alone
	Filter     Cond       // on other attributes, which the index holds; the items that it drops cost as much
	Descending bool
	Consistent bool // not supported by global indexes
	Limit      int  // greatest number of items; defaults to 0: all
	PageSize   int  // number of items that one request examines; defaults to 0: up to 1 MB
	Start      Item // starts after this key, from Page.Next
}

// Page is the result of one request of a query or scan.
type Page struct {
	Items []Item
	Next  Item // where the next page starts; nil at the end
}

// Query yields items until the end, the limit, or the first error, which is the last pair.
//
// Cost: per request, 0.5 read units per 4 KB examined, rounded up once; 1 if consistent.
func (t *Table) Query(ctx context.Context, q Query) iter.Seq2[Item, error] {
	return pages(q.Limit, q.Start, func(start Item, left int) (Page, error) {
		q := q // several goroutines can use one sequence
		q.Start, q.Limit = start, left
		return t.QueryPage(ctx, q)
	})
}

// pages turns a function that reads one page into a sequence of items.
func pages(limit int, start Item, page func(start Item, left int) (Page, error)) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		left := limit
		for start := start; ; {
			p, err := page(start, left)
			if err != nil {
				yield(nil, err)
				return
			}
			for _, item := range p.Items {
				if !yield(item, nil) {
					return
				}
				if limit > 0 {
					if left--; left == 0 {
						return
					}
				}
			}
			if start = p.Next; start == nil {
				return
			}
		}
	}
}

// QueryPage sends one request of a query. Next can be set although nothing follows.
//
// Cost: as [Table.Query], for one request.
func (t *Table) QueryPage(ctx context.Context, q Query) (Page, error) {
	pk, sk, err := t.queryKeys(q.Index)
	if err != nil {
		return Page{}, fmt.Errorf("table: query: %w", err)
	}
	if err := q.check(t.schema, pk); err != nil {
		return Page{}, fmt.Errorf("table: query: %w", err)
	}
	cond, drop, err := sk.within(q.SK)
	if errors.Is(err, errEmptyRange) || t.isComplete(q) {
		return Page{}, nil
	}
	if err != nil {
		return Page{}, fmt.Errorf("table: query: %w", err)
	}
	cond = And(Attr(pk.name).Equal(pk.value(q.PK)), cond)
	b := t.filterBuilder(q.Index)
	cond.write(&b)
	keyCondition := b.take()
	q.Filter.write(&b)
	in := &dynamodb.QueryInput{
		TableName: &t.schema.Name, KeyConditionExpression: keyCondition, FilterExpression: b.take(),
		ExpressionAttributeNames: b.names, ExpressionAttributeValues: b.values,
		ScanIndexForward: aws.Bool(!q.Descending), ConsistentRead: &q.Consistent, ExclusiveStartKey: q.Start,
		Limit: pageLimit(q.Limit, q.PageSize, !q.Filter.IsZero(), drop != nil && q.Descending), ReturnConsumedCapacity: t.capacity(ctx),
	}
	if q.Index != "" {
		in.IndexName = &q.Index
	}
	if b.err != nil {
		return Page{}, fmt.Errorf("table: query: %w", b.err)
	}
	var page Page
	err = call(ctx, t, "Query", false, Client.Query, in, func(out *dynamodb.QueryOutput) (answer, error) {
		page = t.page(dropAt(out.Items, sk.name, drop, q.Descending), out.LastEvaluatedKey, q.Limit, q.Index)
		return answer{out.ResultMetadata, one(out.ConsumedCapacity)}, nil
	})
	if err == nil {
		err = t.keyed("Query", page)
	}
	return page, err
}

// filterBuilder returns a builder for the filter of a read. DynamoDB refuses a query whose filter names an attribute that the index does
// not hold, but not a scan: to it, all items lack the attribute.
func (t *Table) filterBuilder(index string) (b builder) {
	if x, ok := t.schema.Index(index); ok && x.Include != nil {
		b.holds = func(attr string) error {
			if t.schema.Holds(index, attr) {
				return nil
			}
			return fmt.Errorf("%w: index %q does not hold attribute %q, which the filter names", ErrInvalid, index, attr)
		}
	}
	return b
}

// isComplete reports whether the query starts at the end of its range, where nothing can follow. DynamoDB refuses such a start if the
// condition includes that end (https://github.com/aws/aws-sdk-ruby/issues/2456). In an index, other items can have the same key.
func (t *Table) isComplete(q Query) bool {
	end := q.SK.Hi
	if q.Descending || q.SK.Hi == q.SK.Lo+"\x00" { // a single sort key is both ends
		end = q.SK.Lo
	}
	if q.Start == nil || q.Index != "" || end == "" {
		return false
	}
	start, err := t.KeyOf(q.Start)
	return err == nil && start == keys.NewKey(q.PK, possible(end))
}

// keyed checks that the first item has the key attributes of the schema or, on a page without items, the position after it. A query or
// scan sends no complete key, so DynamoDB may not notice that the table has other keys.
func (t *Table) keyed(operation string, page Page) error {
	item := page.Next
	if len(page.Items) > 0 {
		item = page.Items[0]
	}
	if item == nil {
		return nil
	}
	for _, name := range []string{t.scheme.PK, t.scheme.SK} {
		if _, err := keyAttribute(item, name); err != nil {
			return wrap(operation, t.schema.Name, fmt.Errorf("%w: its items have other keys than %s and %s", ErrSchema, t.scheme.PK, t.scheme.SK))
		}
	}
	return nil
}

// check refuses, before sending, what DynamoDB would refuse.
func (q *Query) check(s Schema, pk queryKey) error {
	if err := keys.NewKey(q.PK, "-").Validate(); err != nil {
		return fmt.Errorf("%w: PK: %w", ErrInvalid, err)
	}
	if pk.kind == Number {
		if _, err := number(q.PK); err != nil {
			return fmt.Errorf("PK: %w", err)
		}
	}
	return checkRead(s, q.Index, q.Consistent, q.Limit, q.PageSize, q.Start)
}

func checkRead(s Schema, index string, consistent bool, limit, pageSize int, start Item) error {
	if err := checkItem(start); err != nil {
		return fmt.Errorf("Start: %w", err)
	}
	x, ok := s.Index(index)
	switch {
	case limit < 0:
		return fmt.Errorf("%w: Limit: negative", ErrInvalid)
	case pageSize < 0:
		return fmt.Errorf("%w: PageSize: negative", ErrInvalid)
	case index == "":
	case !ok:
		return fmt.Errorf("%w: the schema has no index %q", ErrInvalid, index)
	case consistent && !x.Local:
		return fmt.Errorf("%w: Consistent: index %q is global and has no consistent reads", ErrInvalid, index)
	}
	for name, av := range start {
		if kind := s.keyType(x, name); kind != "" && attrvalue.Kind(av) != string(kind) {
			// DynamoDB's refusal has the text of a table with other keys.
			return fmt.Errorf("%w: Start: attribute %q is not of type %s", ErrInvalid, name, kind)
		}
	}
	return nil
}

// pageLimit returns how many items a request should examine, or nil for up to 1 MB: at most size, if it is set, and at most limit, unless
// a filter may drop most of them. With oneMore it adds one to limit, for an item that dropAt may remove.
func pageLimit(limit, size int, filter, oneMore bool) *int32 {
	if limit > 0 && !filter {
		if oneMore {
			limit++
		}
		if size == 0 || limit < size {
			size = limit
		}
	}
	if size <= 0 {
		return nil
	}
	return aws.Int32(int32(min(size, 1<<30)))
}

// page returns the result of a request, truncated to limit: a request with a filter, or with oneMore, can return more items.
func (t *Table) page(items []Item, last Item, limit int, index string) Page {
	if limit > 0 && len(items) > limit {
		items = items[:limit]
		last = t.startAfter(items[limit-1], index)
	}
	if len(last) == 0 {
		last = nil
	}
	return Page{Items: items, Next: last}
}

// startAfter returns the key from which a read continues after item.
func (t *Table) startAfter(item Item, index string) Item {
	names := []string{t.scheme.PK, t.scheme.SK}
	if x, ok := t.schema.Index(index); ok {
		names = append(names, x.PK, x.SK)
	}
	start := make(Item, len(names))
	for _, name := range names {
		if av, ok := item[name]; ok {
			start[name] = av
		}
	}
	return start
}

// Scan describes a read of all items of the table or an index, in no order.
type Scan struct {
	Index      string
	Filter     Cond // on attributes that the index holds
	Consistent bool
	Limit      int  // greatest number of items; defaults to 0: all
	PageSize   int  // number of items that one request examines; defaults to 0: up to 1 MB
	Start      Item // starts after this key, from Page.Next
	Segment    int  // index of the segment, counted from 0
	Segments   int  // number of segments of a parallel scan; defaults to 0: not parallel
}

// Scan yields items until the end, the limit, or the first error, which is the last pair.
//
// Cost: as [Table.Query], for the whole table unless it is stopped.
func (t *Table) Scan(ctx context.Context, s Scan) iter.Seq2[Item, error] {
	return pages(s.Limit, s.Start, func(start Item, left int) (Page, error) {
		s := s // several goroutines can use one sequence
		s.Start, s.Limit = start, left
		return t.ScanPage(ctx, s)
	})
}

// ScanPage sends one request of a scan. Next can be set although nothing follows.
//
// Cost: as [Table.Query], for one request.
func (t *Table) ScanPage(ctx context.Context, s Scan) (Page, error) {
	b := t.filterBuilder(s.Index)
	filter := s.Filter
	if !filter.IsZero() {
		// Items with other keys than the schema's pass, so that keyed sees them. Without this, a filter that no item meets would hide
		// that the table has other keys. Where it has those of the schema, no more items pass.
		filter = Or(filter, Not(And(Attr(t.scheme.PK).IsType("S"), Attr(t.scheme.SK).IsType("S"))))
	}
	filter.write(&b)
	in := &dynamodb.ScanInput{
		TableName: &t.schema.Name, FilterExpression: b.take(),
		ExpressionAttributeNames: b.names, ExpressionAttributeValues: b.values,
		ConsistentRead: &s.Consistent, ExclusiveStartKey: s.Start,
		Limit: pageLimit(s.Limit, s.PageSize, !s.Filter.IsZero(), false), ReturnConsumedCapacity: t.capacity(ctx),
	}
	if err := checkRead(t.schema, s.Index, s.Consistent, s.Limit, s.PageSize, s.Start); err != nil {
		return Page{}, fmt.Errorf("table: scan: %w", err)
	}
	if s.Index != "" {
		in.IndexName = &s.Index
	}
	switch {
	case b.err != nil:
		return Page{}, fmt.Errorf("table: scan: %w", b.err)
	case s.Segments < 0 || s.Segments > 1_000_000 || s.Segment < 0 || s.Segment >= max(s.Segments, 1):
		return Page{}, fmt.Errorf("table: scan: %w: segment %d of %d", ErrInvalid, s.Segment, s.Segments)
	case s.Segments > 0:
		in.Segment, in.TotalSegments = aws.Int32(int32(s.Segment)), aws.Int32(int32(s.Segments))
	}
	var page Page
	err := call(ctx, t, "Scan", false, Client.Scan, in, func(out *dynamodb.ScanOutput) (answer, error) {
		page = t.page(out.Items, out.LastEvaluatedKey, s.Limit, s.Index)
		return answer{out.ResultMetadata, one(out.ConsumedCapacity)}, nil
	})
	if err == nil {
		err = t.keyed("Scan", page)
	}
	return page, err
}
