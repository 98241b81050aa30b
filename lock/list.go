package lock

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
)

// Source says which locks List walks, and what that costs. The zero Source is refused.
type Source struct {
	kind      sourceKind
	partition string
}

type sourceKind int

const (
	noSource sourceKind = iota
	inPartition
	inIndex
	inTable
)

// In are the locks of one item collection, held or not: those that stand beside its rows,
// for which partition is the rows' partition key, or the one that stands for itself there.
//
// Cost: half a read unit per 4 KB of their rows, at least one request.
func In(partition string) Source { return Source{kind: inPartition, partition: partition} }

// Index are the held locks of the whole table, the oldest acquisition first, by the clocks of
// their holders. It needs Config.Index, without which it is ErrInvalid.
//
// Cost: half a read unit per 4 KB of their rows, at least one request.
func Index() Source { return Source{kind: inIndex} }

// WholeTable are all locks, held or not, in no order, without an index: by reading every row
// of the table.
//
// Cost: half a read unit per 4 KB of the whole table, whatever it holds.
func WholeTable() Source { return Source{kind: inTable} }

// List walks locks without acquiring them: as they were some moments ago, since its reads
// are eventually consistent. It reads page by page, as far as the consumer goes.
//
// A lock row that is not in order is yielded as an error that matches ErrMalformed, with a
// Record that has no more than Partition and Of, and the walk goes on. Rows that are no
// locks are left out. An error of any other kind is the last pair.
func (c *Client) List(ctx context.Context, from Source) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		items, err := c.walk(ctx, from)
		if err != nil {
			yield(Record{}, wrap("list", err))
			return
		}
		for item, err := range items {
			if err == nil && ctx.Err() != nil {
				err = causeOf(ctx)
			}
			if err != nil {
				yield(Record{}, wrap("list", err))
				return
			}
			if !c.isLock(item) {
				continue
			}
			r, err := c.recordOf(item)
			switch {
			case err != nil:
				r = c.placeOf(item)
			case from.kind == inIndex && !r.Held():
				continue // released by a client that does not know of the index
			}
			if !yield(r, wrap("list", err)) {
				return
			}
		}
	}
}

// walk reads the rows of a source.
func (c *Client) walk(ctx context.Context, from Source) (iter.Seq2[table.Item, error], error) {
	switch from.kind {
	case inPartition:
		if err := keys.NewKey(from.partition, "-").Validate(); err != nil {
			return nil, fmt.Errorf("%w: In: %w", ErrInvalid, err)
		}
		span, err := c.rowKey.Range()
		if err != nil {
			return nil, fmt.Errorf("%w: In: Config.RowKey: %w", ErrInvalid, err)
		}
		return c.table.Query(ctx, table.Query{PK: from.partition, SK: span}), nil
	case inIndex:
		x := c.rows.shape.index
		if x == nil {
			return nil, fmt.Errorf("%w: Index needs Config.Index", ErrInvalid)
		}
		return c.table.Query(ctx, table.Query{Index: x.name, PK: x.partition}), nil
	case inTable:
		return c.table.Scan(ctx, table.Scan{Filter: table.Attr(c.scheme.Type).Equal(recordType)}), nil
	}
	return nil, fmt.Errorf("%w: empty Source: want In, Index or WholeTable", ErrInvalid)
}

// placeOf is where a row stands, for whoever has to look at it.
func (c *Client) placeOf(item table.Item) (r Record) {
	if pk, ok := item[c.scheme.PK].(*types.AttributeValueMemberS); ok {
		r.Partition = pk.Value
	}
	if sk, ok := item[c.scheme.SK].(*types.AttributeValueMemberS); ok {
		if values, err := c.rowKey.ParseValues(sk.Value); err == nil {
			r.Of, _ = values["of"].(string)
		}
	}
	return r
}

// sparse is the index of held locks: rows have its keys only while they name a holder.
type sparse struct {
	name      string
	pk, sk    string // attributes
	partition string
	delimiter byte
}

// newSparse finds the index of that name; nil for none.
//
//nolint:nilnil // no index is the answer
func newSparse(schema table.Schema, n names, name string) (*sparse, error) {
	if name == "" {
		return nil, nil
	}
	s := schema.Keys
	x, ok := schema.Index(name)
	switch {
	case !ok:
		return nil, fmt.Errorf("%w: the schema has no index %q", ErrInvalid, name)
	case x.Local:
		return nil, fmt.Errorf("%w: index %q is local: want one of the whole table", ErrInvalid, name)
	case x.SK == "" || x.PKType != table.String || x.SKType != table.String:
		return nil, fmt.Errorf("%w: index %q: want a partition key and a sort key that are strings", ErrInvalid, name)
	}
	for _, own := range []string{s.PK, s.SK, s.Type, s.TTL, s.Version} {
		if x.PK == own || x.SK == own {
			return nil, fmt.Errorf("%w: index %q: its key %q is the scheme's", ErrInvalid, name, own)
		}
	}
	if x.Include != nil {
		for _, a := range append([]string{s.Type, s.TTL}, n.all()...) {
			if !slices.Contains(x.Include, a) {
				return nil, fmt.Errorf("%w: index %q does not hold the attribute %q of lock rows", ErrInvalid, name, a)
			}
		}
	}
	return &sparse{name: name, pk: x.PK, sk: x.SK, partition: s.Prefix + "LOCKS", delimiter: s.Delimiter}, nil
}

// sortKey puts acquisitions into the order of their times, in milliseconds of 15 digits.
func (x *sparse) sortKey(acquired time.Time, nonce string) string {
	if x == nil {
		return ""
	}
	return fmt.Sprintf("%015d%c%s", max(acquired.UnixMilli(), 0), x.delimiter, nonce)
}

// listed adds what puts a row into the index.
func (s *shape) listed(changes []table.Change, sortKey table.Operand) []table.Change {
	if s.index == nil {
		return changes
	}
	return append(changes, table.Attr(s.index.pk).Set(s.index.partition), table.Attr(s.index.sk).Set(sortKey))
}

// unlisted adds what takes it out.
func (s *shape) unlisted(changes []table.Change) []table.Change {
	if s.index == nil {
		return changes
	}
	return append(changes, table.Attr(s.index.pk).Remove(), table.Attr(s.index.sk).Remove())
}
