package table

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/mortise-go/mortise/internal/errs"
	"github.com/mortise-go/mortise/keys"
)

// Get reads one item. Without one it returns ErrNotFound. A consistent read sees every
// write that was acknowledged before it; the other kind may be some moments behind.
//
// Cost: a read unit per 4 KB when consistent, half of that otherwise.
func (t *Table) Get(ctx context.Context, key keys.Key, consistent bool) (Item, error) {
	if err := key.Validate(); err != nil {
		return nil, fmt.Errorf("table: get: %w", errs.Kind(ErrInvalid, err))
	}
	in := &dynamodb.GetItemInput{
		TableName: &t.schema.Name, Key: t.KeyItem(key), ConsistentRead: &consistent,
		ReturnConsumedCapacity: t.capacity(ctx),
	}
	var item Item
	err := t.send(ctx, "GetItem", false, func(ctx context.Context) (answer, error) {
		out, err := t.client.GetItem(ctx, in, once)
		if err != nil {
			return answer{}, err
		}
		item = out.Item
		return answer{out.ResultMetadata, one(out.ConsumedCapacity)}, nil
	})
	if err == nil && item == nil {
		err = &Error{Operation: "GetItem", Table: t.schema.Name, Kind: ErrNotFound}
	}
	return item, err
}

// Query reads the items of one partition key, in the order of their sort keys. Keys of an index
// that are numbers are given as decimal text; binary ones cannot be queried.
type Query struct {
	Index      string     // defaults to "": the table itself
	PK         string     // the partition key's value
	SK         keys.Range // of sort keys, half open; the zero Range is all, and {Lo: x, Hi: x + "\x00"} is x alone
	Filter     Cond       // on other attributes; items it drops are paid for
	Descending bool
	Consistent bool // not on a global index
	Limit      int  // items at most; defaults to 0: all
	PageSize   int  // items that one request examines; defaults to 0: up to 1 MB
	Start      Item // begin after this key, from Page.Next
}

// Page is what one request of a query or scan brought.
type Page struct {
	Items []Item
	Next  Item // where to go on: nil at the end
}

// Query yields items until the end, the limit, or the first error, which is the last pair.
//
// Cost: per request, what is examined, rounded up once: a read unit per 4 KB when
// consistent, half of that otherwise.
func (t *Table) Query(ctx context.Context, q Query) iter.Seq2[Item, error] {
	return pages(q.Limit, q.Start, func(start Item, left int) (Page, error) {
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

// QueryPage sends one request of a query. Next may be set although nothing follows.
func (t *Table) QueryPage(ctx context.Context, q Query) (Page, error) {
	pk, sk, err := t.queryKeys(q.Index)
	if err != nil {
		return Page{}, fmt.Errorf("table: query: %w", err)
	}
	if err := q.check(t.schema, pk); err != nil {
		return Page{}, fmt.Errorf("table: query: %w", err)
	}
	cond, drop, err := sk.within(q.SK)
	if errors.Is(err, errEmptyRange) {
		return Page{}, nil
	}
	if err != nil {
		return Page{}, fmt.Errorf("table: query: %w", err)
	}
	cond = And(Attr(pk.name).Equal(pk.value(q.PK)), cond)
	var b builder
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
	err = t.send(ctx, "Query", false, func(ctx context.Context) (answer, error) {
		out, err := t.client.Query(ctx, in, once)
		if err != nil {
			return answer{}, err
		}
		page = t.page(dropAt(out.Items, sk.name, drop, q.Descending), out.LastEvaluatedKey, q.Limit, q.Index)
		return answer{out.ResultMetadata, one(out.ConsumedCapacity)}, nil
	})
	if err == nil {
		err = t.keyed("Query", page.Items)
	}
	return page, err
}

// keyed says whether items that were read have the keys that the schema says. Of reads that name no
// keys, or not all of them, nothing else tells.
func (t *Table) keyed(operation string, items []Item) error {
	if len(items) == 0 {
		return nil
	}
	for _, name := range []string{t.scheme.PK, t.scheme.SK} {
		if _, err := keyAttribute(items[0], name); err != nil {
			return wrap(operation, t.schema.Name, fmt.Errorf("%w: its items have other keys than %s and %s", ErrSchema, t.scheme.PK, t.scheme.SK))
		}
	}
	return nil
}

// check refuses what DynamoDB would refuse, before anything is sent.
func (q *Query) check(s Schema, pk queryKey) error {
	if err := keys.NewKey(q.PK, "-").Validate(); err != nil {
		return fmt.Errorf("%w: PK: %w", ErrInvalid, err)
	}
	if pk.kind == Number {
		if _, err := number(q.PK); err != nil {
			return fmt.Errorf("PK: %w", err)
		}
	}
	return checkRead(s, q.Index, q.Consistent, q.Limit, q.PageSize)
}

func checkRead(s Schema, index string, consistent bool, limit, pageSize int) error {
	switch {
	case limit < 0:
		return fmt.Errorf("%w: Limit: negative", ErrInvalid)
	case pageSize < 0:
		return fmt.Errorf("%w: PageSize: negative", ErrInvalid)
	case index == "":
		return nil
	}
	x, ok := s.Index(index)
	switch {
	case !ok:
		return fmt.Errorf("%w: the schema has no index %q", ErrInvalid, index)
	case consistent && !x.Local:
		return fmt.Errorf("%w: Consistent: index %q is global and cannot be read so", ErrInvalid, index)
	}
	return nil
}

// pageLimit is how many items a request should examine: no more than are wanted, unless a
// filter may drop most of them, and one more where that one will be.
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

// page is what a request brought, cut off at limit: a filtered request is not limited in
// what it examines.
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

// startAfter is the key from which a read goes on after item.
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

// Scan reads all items of the table or an index, in no order.
type Scan struct {
	Index      string
	Filter     Cond
	Consistent bool
	Limit      int  // items at most; defaults to 0: all
	PageSize   int  // items that one request examines; defaults to 0: up to 1 MB
	Start      Item // begin after this key, from Page.Next
	Segment    int  // of Segments, counted from 0
	Segments   int  // for parallel scans; defaults to 0: not parallel
}

// Scan yields items until the end, the limit, or the first error, which is the last pair.
//
// Cost: what is examined, like Query: the whole table unless stopped.
func (t *Table) Scan(ctx context.Context, s Scan) iter.Seq2[Item, error] {
	return pages(s.Limit, s.Start, func(start Item, left int) (Page, error) {
		s.Start, s.Limit = start, left
		return t.ScanPage(ctx, s)
	})
}

// ScanPage sends one request of a scan. Next may be set although nothing follows.
func (t *Table) ScanPage(ctx context.Context, s Scan) (Page, error) {
	var b builder
	s.Filter.write(&b)
	in := &dynamodb.ScanInput{
		TableName: &t.schema.Name, FilterExpression: b.take(),
		ExpressionAttributeNames: b.names, ExpressionAttributeValues: b.values,
		ConsistentRead: &s.Consistent, ExclusiveStartKey: s.Start,
		Limit: pageLimit(s.Limit, s.PageSize, !s.Filter.IsZero(), false), ReturnConsumedCapacity: t.capacity(ctx),
	}
	if err := checkRead(t.schema, s.Index, s.Consistent, s.Limit, s.PageSize); err != nil {
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
	err := t.send(ctx, "Scan", false, func(ctx context.Context) (answer, error) {
		out, err := t.client.Scan(ctx, in, once)
		if err != nil {
			return answer{}, err
		}
		page = t.page(out.Items, out.LastEvaluatedKey, s.Limit, s.Index)
		return answer{out.ResultMetadata, one(out.ConsumedCapacity)}, nil
	})
	if err == nil {
		err = t.keyed("Scan", page.Items)
	}
	return page, err
}
