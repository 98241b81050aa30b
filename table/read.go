package table

import (
	"context"
	"fmt"
	"iter"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mortise-go/mortise/keys"
)

// Get reads one item. Without one it returns ErrNotFound. A consistent read sees every
// write that was acknowledged before it; the other kind may be some moments behind.
//
// Cost: a read unit per 4 KB when consistent, half of that otherwise.
func (t *Table) Get(ctx context.Context, key keys.Key, consistent bool) (Item, error) {
	if err := key.Validate(); err != nil {
		return nil, fmt.Errorf("table: get: %w: %w", ErrInvalid, err)
	}
	in := &dynamodb.GetItemInput{
		TableName: &t.schema.Name, Key: t.KeyItem(key), ConsistentRead: &consistent,
		ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
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

// Query reads the items of one partition key, in the order of their sort keys.
type Query struct {
	Index      string     // defaults to "": the table itself
	PK         string     // the partition key's value
	SK         keys.Range // of sort keys, half open; the zero Range is all
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
		for start, left := start, limit; ; {
			p, err := page(start, left)
			if err != nil {
				yield(nil, err)
				return
			}
			for _, item := range p.Items {
				if !yield(item, nil) {
					return
				}
				if left--; left == 0 {
					return
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
	pk, sk, err := t.keyNames(q.Index)
	if err != nil {
		return Page{}, fmt.Errorf("table: query: %w", err)
	}
	if q.PK == "" {
		return Page{}, fmt.Errorf("table: query: %w: empty partition key", ErrInvalid)
	}
	if q.SK.Lo == q.SK.Hi && q.SK.Lo != "" {
		return Page{}, nil // a half-open range of nothing
	}
	cond, drop, err := rangeCond(q.SK, sk)
	if err != nil {
		return Page{}, fmt.Errorf("table: query: %w", err)
	}
	cond = And(Attr(pk).Equal(q.PK), cond)
	var b builder
	cond.write(&b)
	keyCondition := b.take()
	q.Filter.write(&b)
	in := &dynamodb.QueryInput{
		TableName: &t.schema.Name, KeyConditionExpression: keyCondition, FilterExpression: b.take(),
		ExpressionAttributeNames: b.names, ExpressionAttributeValues: b.values,
		ScanIndexForward: aws.Bool(!q.Descending), ConsistentRead: &q.Consistent, ExclusiveStartKey: q.Start,
		Limit: pageLimit(q.Limit, q.PageSize, !q.Filter.IsZero() || drop != ""), ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
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
		page = Page{Items: dropAt(out.Items, sk, drop, q.Descending), Next: next(out.LastEvaluatedKey)}
		return answer{out.ResultMetadata, one(out.ConsumedCapacity)}, nil
	})
	return page, err
}

// pageLimit is how many items a request should examine: no more than are wanted, unless
// some of those examined may be dropped.
func pageLimit(limit, size int, drops bool) *int32 {
	if limit > 0 && !drops && (size == 0 || limit < size) {
		size = limit
	}
	if size <= 0 {
		return nil
	}
	return aws.Int32(int32(min(size, 1<<30)))
}

func next(key Item) Item {
	if len(key) == 0 {
		return nil
	}
	return key
}

func (t *Table) keyNames(index string) (pk, sk string, err error) {
	if index == "" {
		return t.scheme.PK, t.scheme.SK, nil
	}
	x, ok := t.schema.Index(index)
	if !ok {
		return "", "", fmt.Errorf("%w: the schema has no index %q", ErrInvalid, index)
	}
	if x.PKType != String || (x.SK != "" && x.SKType != String) {
		return "", "", fmt.Errorf("%w: the keys of index %q are not strings", ErrInvalid, index)
	}
	return x.PK, x.SK, nil
}

// rangeCond is the key condition of a half-open range. DynamoDB has no such condition, but
// BETWEEN includes its upper end, so items exactly there are dropped afterwards: drop.
func rangeCond(r keys.Range, sk string) (cond Cond, drop string, err error) {
	switch {
	case r == keys.Range{}:
		return Cond{}, "", nil
	case sk == "":
		return Cond{}, "", fmt.Errorf("%w: a range on an index without a sort key", ErrInvalid)
	case r.Hi == "":
		return Attr(sk).AtLeast(r.Lo), "", nil
	case r.Lo == "":
		return Attr(sk).Less(r.Hi), "", nil
	case r.Lo > r.Hi:
		return Cond{}, "", fmt.Errorf("%w: the range of sort keys ends before it begins", ErrInvalid)
	case r.Hi == r.Lo+"\x00":
		return Attr(sk).Equal(r.Lo), "", nil
	case r == keys.PrefixRange(r.Lo):
		return Attr(sk).HasPrefix(r.Lo), "", nil
	}
	return Attr(sk).Between(r.Lo, r.Hi), r.Hi, nil
}

// dropAt removes the items whose sort key is at: they can only stand at the end of an
// ascending page and at the beginning of a descending one.
func dropAt(items []Item, sk, at string, descending bool) []Item {
	if at == "" {
		return items
	}
	is := func(item Item) bool {
		av, ok := item[sk].(*types.AttributeValueMemberS)
		return ok && av.Value == at
	}
	for len(items) > 0 {
		switch {
		case descending && is(items[0]):
			items = items[1:]
		case !descending && is(items[len(items)-1]):
			items = items[:len(items)-1]
		default:
			return items
		}
	}
	return items
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
		Limit: pageLimit(s.Limit, s.PageSize, !s.Filter.IsZero()), ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
	}
	if s.Index != "" {
		if _, ok := t.schema.Index(s.Index); !ok {
			return Page{}, fmt.Errorf("table: scan: %w: the schema has no index %q", ErrInvalid, s.Index)
		}
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
		page = Page{Items: out.Items, Next: next(out.LastEvaluatedKey)}
		return answer{out.ResultMetadata, one(out.ConsumedCapacity)}, nil
	})
	return page, err
}
