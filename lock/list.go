package lock

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock/internal/lockrow"
	"github.com/mortise-go/mortise/table"
)

// Source selects the locks that [Client.List] returns: [In], [Index] or [WholeTable]. The zero Source is refused.
type Source struct{ kind, partition string }

// In selects the locks of one item collection, held or not. partition is the partition key of the rows that the locks
// belong to, or that of a lock with a name, as the table has it: with the scheme's prefix.
//
// Cost: half a read unit per 4 KB of lock rows, at least one request.
func In(partition string) Source { return Source{kind: "partition", partition: partition} }

// Index selects all locks of the table that somebody holds or waits for. It needs [Config.Index]; without it the error
// matches [ErrInvalid]. The locks come shard by shard. Within a shard they are ordered by the time at which they began
// to be held, by the clocks of the holders.
//
// Cost: half a read unit per 4 KB of lock rows, at least one request for each of 16 shards.
func Index() Source { return Source{kind: "index"} }

// WholeTable selects all locks of the table, held or not, in no order. It needs no index, but reads every row of the
// table.
//
// Cost: half a read unit per 4 KB of the whole table.
func WholeTable() Source { return Source{kind: "table"} }

// List returns locks without acquiring them. Its reads are eventually consistent: it shows the locks as they were some
// moments ago. It reads the next page when the loop needs it. A page takes long, so it has the timeout of the table's retry
// policy ([table.Retry]), not that of the lock's own requests.
//
// A malformed lock row is an error that matches [ErrMalformed], with a Record that has only Partition and Of; the loop
// can go on. So is the row of a client with another [Config.RowKey], without Of. Rows that are not locks are left out. After
// any other error there are no more elements.
func (c *Client) List(ctx context.Context, from Source) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		ctx := checked(ctx)
		sources, err := c.walks(ctx, from)
		if err != nil {
			yield(Record{}, wrap("list", err))
			return
		}
		for _, items := range sources {
			for item, err := range items {
				if err := cmp.Or(err, causeOf(ctx)); err != nil {
					yield(Record{}, wrap("list", err))
					return
				}
				r, err := c.recordOf(item)
				switch {
				case errors.Is(err, ErrNotLock):
					continue
				case err != nil:
					r = c.where(item)
				case from.kind == "index" && !r.Held():
					continue // a client without Config.Index has released it
				}
				if !yield(r, wrap("list", err)) {
					return
				}
			}
		}
	}
}

func (c *Client) walks(ctx context.Context, from Source) (list []iter.Seq2[table.Item, error], err error) {
	switch from.kind {
	case "partition":
		if err := keys.NewKey(from.partition, "-").Validate(); err != nil {
			return nil, invalid("In: %w", err)
		}
		span, _ := c.layout.rowKey.Range() // only values can fail it, or a template that New has refused
		return append(list, c.table.Query(ctx, table.Query{PK: from.partition, SK: span})), nil
	case "index":
		x := c.layout.index
		if x == nil {
			return nil, invalid("Index needs Config.Index")
		}
		for i := range shards {
			list = append(list, c.table.Query(ctx, table.Query{Index: x.name, PK: x.shard(i)}))
		}
		return list, nil
	case "table":
		return append(list, c.table.Scan(ctx, table.Scan{Filter: table.Attr(c.layout.names.Type).Equal(lockrow.Type)})), nil
	}
	return nil, invalid("empty Source: want In, Index or WholeTable")
}

func (c *Client) where(item table.Item) (r Record) {
	key, _ := c.table.KeyOf(item) // each row that was read has one
	values, _ := c.layout.rowKey.ParseValues(key.SK)
	r.Partition = key.PK
	r.Of, _ = values["of"].(string)
	return r
}

// shards is how many partitions of the index the locks are spread over. One partition would limit all locks to 1,000 writes a second.
const shards = 16

// sparse is the index of locks that somebody holds or waits for. A row has the index's keys only while somebody is in its line.
type sparse struct {
	lockrow.Index

	name      string
	prefix    string // of partition keys
	delimiter string
}

// newSparse finds the index with this name; nil if the name is empty.
//
//nolint:nilnil // no index is the answer
func newSparse(schema table.Schema, n lockrow.Names, name string) (*sparse, error) {
	if name == "" {
		return nil, nil
	}
	s := schema.Keys
	x, ok := schema.Index(name)
	switch {
	case !ok:
		return nil, invalid("the schema has no index %q", name)
	case x.Local:
		return nil, invalid("index %q is local: want one of the whole table", name)
	case x.SK == "" || x.PKType != table.String || x.SKType != table.String:
		return nil, invalid("index %q: want a partition key and a sort key that are strings", name)
	}
	for _, own := range []string{s.PK, s.SK, s.Type, s.TTL, s.Version} {
		if x.PK == own || x.SK == own {
			return nil, invalid("index %q: its key %q is the scheme's", name, own)
		}
	}
	if x.Include != nil {
		for _, a := range append([]string{s.Type, s.TTL}, n.Own()...) {
			if a != n.Writes && !slices.Contains(x.Include, a) { // the index need not have Writes, which each guarded write changes
				return nil, invalid("index %q does not hold the attribute %q of lock rows", name, a)
			}
		}
	}
	delimiter := string(rune(s.Delimiter))
	return &sparse{Index: lockrow.Index{PK: x.PK, SK: x.SK}, name: name, prefix: s.Prefix + "LOCKS" + delimiter, delimiter: delimiter}, nil
}

func (x *sparse) shard(i int) string { return fmt.Sprintf("%s%02d", x.prefix, i) }

// listed returns the keys of a lock's row in the index. The sort key orders locks by the time of the ticket, in milliseconds. Both are
// empty without an index.
func (x *sparse) listed(key keys.Key, t lockrow.Ticket) (shard, sort string) {
	if x == nil {
		return "", ""
	}
	sum := sha256.Sum256([]byte(key.PK + "\x00" + key.SK))
	return x.shard(int(sum[0]) % shards), fmt.Sprintf("%015d%s%s", max(t.At, 0), x.delimiter, t.ID)
}
