package lock_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/entity"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// indexed runs f on every engine, in a table with an index.
func indexed(t *testing.T, scheme keys.Scheme, f func(ctx context.Context, p *place)) {
	t.Helper()
	contractWith(t, table.Schema{Keys: scheme, Indexes: []table.Index{byTime}}, lock.Config{Owner: "test", Index: "gsi1"}, f)
}

// listed is the result of a walk: the locks' targets, and the errors.
func (p *place) listed(from lock.Source) (of []string, errs []error) {
	p.Helper()
	ctx := p.Context()
	if from == lock.WholeTable() {
		ctx = ownHand(ctx) // the policy of an application allows no scan
	}
	for r, err := range p.client.List(ctx, from) {
		if err != nil {
			errs = append(errs, err)
			continue
		}
		of = append(of, r.Of)
	}
	return of, errs
}

// listedAt is the place of a lock's row in the index: shard and sort key.
func (p *place) listedAt(l *lock.Lease) string {
	p.Helper()
	row := p.raw(l)
	return row["gsi1pk"].(*types.AttributeValueMemberS).Value + " " + row["gsi1sk"].(*types.AttributeValueMemberS).Value
}

func TestList_InOneItemCollection(t *testing.T) {
	for _, rowKey := range []string{"", "{of}"} {
		contractWith(t, table.Schema{}, lock.Config{RowKey: rowKey}, func(ctx context.Context, p *place) {
			var want []string
			for i := range 5 {
				sk := fmt.Sprintf("ORDER#%d", i)
				if rowKey == "" { // else the locks stand where the rows would
					require.NoError(p, p.table.Write(ctx, table.Put(p.table.KeyItem(keys.NewKey("TENANT#a", sk)))))
				}
				l, err := p.client.Acquire(ctx, lock.Beside(keys.NewKey("TENANT#a", sk)), lock.WithData(sk))
				require.NoError(p, err)
				if i == 2 {
					require.NoError(p, l.Release(ctx))
				}
				want = append(want, sk)
			}
			_, err := p.client.Acquire(ctx, lock.Beside(keys.NewKey("TENANT#b", "ORDER#9")))
			require.NoError(p, err)
			foreign := p.table.KeyItem(keys.NewKey("TENANT#a", "LOCK#foreign"))
			foreign["type"] = text("Order")
			require.NoError(p, p.table.Write(ctx, table.Put(foreign)))
			cost := totals(ctx, func(ctx context.Context) {
				n := 0
				for r, err := range p.client.List(ctx, lock.In("TENANT#a")) {
					require.NoError(p, err)
					assert.Equal(p, "TENANT#a", r.Partition)
					assert.Equal(p, want[n], r.Of)
					assert.Equal(p, want[n], decoded(p.T, r.Data))
					assert.Equal(p, n != 2, r.Held())
					n++
				}
				assert.Equal(p, 5, n)
			})
			assert.EqualValues(p, 1, cost.Requests)
			of, errs := p.listed(lock.In("TENANT#none"))
			assert.Empty(p, of)
			assert.Empty(p, errs)
		})
	}
}

func TestList_OfTheWholeTable(t *testing.T) {
	contract(t, keys.Scheme{}, func(ctx context.Context, p *place) {
		l, err := p.client.Acquire(ctx, lock.Name("a"))
		require.NoError(p, err)
		_, err = p.client.Acquire(ctx, lock.Beside(keys.NewKey("T#1", "ORDER#1")))
		require.NoError(p, err)
		require.NoError(p, l.Release(ctx))
		require.NoError(p, p.table.Write(ctx, table.Put(p.table.KeyItem(keys.NewKey("T#1", "ORDER#1")))))
		of, errs := p.listed(lock.WholeTable())
		assert.Empty(p, errs)
		assert.ElementsMatch(p, []string{"a", "ORDER#1"}, of)
	})
}

// A malformed row does not end the walk. Its Record has its key.
func TestList_GoesOnPastMalformedRows(t *testing.T) {
	indexed(t, keys.Scheme{}, func(ctx context.Context, p *place) {
		for i := range 5 {
			l, err := p.client.Acquire(ctx, lock.Beside(keys.NewKey("T#"+canary, fmt.Sprintf("%d%s", i, canary))), lock.WithData(canary))
			require.NoError(p, err)
			if i%2 == 1 {
				bad := text(canary)
				require.NoError(p, p.table.Write(ctx, table.Update(l.Key(), table.Attr("fence").Set(bad))))
			}
		}
		for _, from := range []lock.Source{lock.In("T#" + canary), lock.Index(), lock.WholeTable()} {
			good, bad := 0, 0
			ctx := ctx
			if from == lock.WholeTable() {
				ctx = ownHand(ctx)
			}
			for r, err := range p.client.List(ctx, from) {
				assert.Equal(p, "T#"+canary, r.Partition)
				assert.Contains(p, r.Of, canary)
				if err == nil {
					assert.NotEmpty(p, r.Holder().Ticket)
					good++
					continue
				}
				bad++
				require.ErrorIs(p, err, lock.ErrMalformed)
				assert.NotContains(p, fmt.Sprintf("%v %+v %q", err, err, err), canary)
				assert.Empty(p, r.Line)
			}
			assert.Equal(p, []int{3, 2}, []int{good, bad})
		}
	})
}

// A client with another Config.RowKey has other rows for the same targets. Only List shows them, so its error names the setting.
func TestList_NamesAnotherRowKey(t *testing.T) {
	indexed(t, keys.Scheme{}, func(ctx context.Context, p *place) {
		_, err := p.open(lock.Config{RowKey: "~LOCK#{of}", Index: "gsi1"}).Acquire(ctx, lock.Beside(keys.NewKey("T#1", "ORDER#1")))
		require.NoError(p, err)
		for _, from := range []lock.Source{lock.Index(), lock.WholeTable()} {
			of, errs := p.listed(from)
			assert.Empty(p, of)
			require.Len(p, errs, 1)
			require.ErrorIs(p, errs[0], lock.ErrMalformed)
			require.ErrorContains(p, errs[0], "a client with another Config.RowKey wrote it")
		}
	})
}

func TestList_RefusesWithoutARequest(t *testing.T) {
	contract(t, keys.Scheme{}, func(ctx context.Context, p *place) {
		cost := totals(ctx, func(ctx context.Context) {
			for _, from := range []lock.Source{{}, lock.Index(), lock.In(""), lock.In("\xff"), lock.In(strings.Repeat("x", keys.MaxPK+1))} {
				n := 0
				for r, err := range p.client.List(ctx, from) {
					n++
					require.ErrorIs(p, err, lock.ErrInvalid)
					assert.Equal(p, lock.Record{}, r)
				}
				assert.Equal(p, 1, n)
			}
		})
		assert.Zero(p, cost.Requests)
	})
}

// A row at a key that is none of this client's locks is reported, and not shown as a free lock.
func TestList_OfARowAtTheKeyOfAnotherClient(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		row := w.lineRow("report", ticket(1))
		row["sk"] = text("OTHER#report")
		require.NoError(t, w.table.Write(ctx, table.Put(row)))
		n := 0
		for r, err := range w.cold(quiet).List(ownHand(ctx), lock.WholeTable()) {
			n++
			require.ErrorIs(t, err, lock.ErrMalformed)
			assert.Equal(t, lock.Record{Partition: "LOCK#report"}, r)
		}
		assert.Equal(t, 1, n)
	})
}

// Pages are read as far as the consumer goes, and only while its context lasts.
func TestList_ReadsPageByPage(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(lock.Config{})
		const rows = 700
		for i := range rows { // of 4 KB each: three pages
			l, err := c.Acquire(ctx, lock.Beside(keys.NewKey("T#1", fmt.Sprintf("%04d", i))), lock.WithData(strings.Repeat("x", lock.MaxData)))
			require.NoError(t, err)
			require.NoError(t, l.Release(ctx))
		}
		walk := func(ctx context.Context, stop int) (n int, err error) {
			for _, err := range c.List(ctx, lock.In("T#1")) {
				if err != nil {
					return n, err
				}
				if n++; n == stop {
					break
				}
			}
			return n, nil
		}
		for stop, want := range map[int]int{1: 1, 100: 1, 400: 2, rows: 3} {
			ops := w.requests(func() {
				n, err := walk(ctx, stop)
				require.NoError(t, err)
				require.Equal(t, stop, n)
			})
			assert.Len(t, ops, want, "%d rows", stop)
		}
		bounded, cancel := context.WithCancel(ctx)
		defer cancel()
		n := 0
		for _, err := range c.List(bounded, lock.In("T#1")) {
			if err != nil {
				require.ErrorIs(t, err, context.Canceled)
				break
			}
			if n++; n == 3 {
				cancel()
			}
		}
		assert.Equal(t, 3, n)
		w.engine.Inject(tabletest.Fault{Kind: tabletest.Throttle, Operation: "Query", Every: 2})
		n, err := walk(ctx, 0)
		require.NoError(t, err)
		assert.Equal(t, rows, n)
	})
}

// Payloads are read also with the rows beside which the locks stand.
func TestRecords_HavePayloads(t *testing.T) {
	contract(t, keys.Scheme{}, func(ctx context.Context, p *place) {
		l, err := p.client.Acquire(ctx, lock.Beside(keys.NewKey("T#1", "1")), lock.WithData(progress{Host: "a"}))
		require.NoError(p, err)
		var locks []lock.Record
		require.NoError(p, entity.Collect(ctx, p.table, l.Key().PK, entity.Into(p.client.Records(), &locks)))
		require.Len(p, locks, 1)
		var got progress
		require.NoError(p, locks[0].Data.Decode(&got))
		assert.Equal(p, "a", got.Host)
	})
}

// A table can have locks alone, so that no type is defined but those of this module.
func TestRecords_AreScanned(t *testing.T) {
	contract(t, keys.Scheme{}, func(ctx context.Context, p *place) {
		l, err := p.client.Acquire(ctx, lock.Beside(keys.NewKey("T#1", "1")))
		require.NoError(p, err)
		var found []string
		for r, err := range p.client.Records().Scan(ownHand(ctx)) {
			require.NoError(p, err)
			found = append(found, r.Partition)
		}
		assert.Equal(p, []string{l.Key().PK}, found)
	})
}

// Locks beside an application's rows are listed without reading these rows.
func TestList_ReadsLocksAlone(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(lock.Config{})
		var held *lock.Lease
		for i := range 30 {
			key := keys.NewKey("TENANT#acme", fmt.Sprintf("ORDER#%02d", i))
			item := w.table.KeyItem(key)
			item["text"] = &types.AttributeValueMemberS{Value: strings.Repeat("x", 100_000)}
			require.NoError(t, w.table.Write(ctx, table.Put(item)))
			if i == 20 {
				l, err := c.Acquire(ctx, lock.Beside(key))
				require.NoError(t, err)
				held = l
			}
		}
		found := 0
		cost := totals(ctx, func(ctx context.Context) {
			for r, err := range c.List(ctx, lock.In("TENANT#acme")) {
				require.NoError(t, err)
				assert.Equal(t, held.Fence(), r.Fence)
				found++
			}
		})
		assert.Equal(t, 1, found)
		assert.EqualValues(t, 1, cost.Requests)
		assert.LessOrEqual(t, cost.ReadUnits, 1.0)
	})
}
