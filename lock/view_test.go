package lock_test

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/testkit"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// rowKeys are keys of rows that are no locks.
func rowKeys(n int) []keys.Key {
	list := make([]keys.Key, n)
	for i := range list {
		list[i] = keys.NewKey("ROW#"+strconv.Itoa(i), "ROW")
	}
	return list
}

func TestView_ShowsRowsInTheOrderOfTheirKeys(t *testing.T) {
	contract(t, keys.Scheme{}, func(ctx context.Context, p *place) {
		orders := defineOrders(p.T, p.table)
		o, err := orders.Create(ctx, order{Tenant: "t", ID: "1", Status: "open"})
		require.NoError(p, err)
		at, other, target := orders.Key(o), keys.NewKey("TENANT#t", "NOTE"), lock.Beside(orders.Key(o))

		v, err := p.client.View(ctx, target, []keys.Key{at, other, at})
		require.NoError(p, err)
		require.Len(p, v.Rows, 3)
		read, err := orders.Decode(v.Rows[0])
		require.NoError(p, err)
		assert.Equal(p, o, read)
		assert.Nil(p, v.Rows[1])
		assert.Equal(p, v.Rows[0], v.Rows[2])
		assert.Zero(p, v.Fence, "the lock has no row")
		assert.Nil(p, v.Held)

		v.Rows[0]["status"] = text("changed")
		assert.Equal(p, text("open"), v.Rows[2]["status"], "each row is the caller's to change")

		l, err := p.client.Acquire(ctx, target)
		require.NoError(p, err)
		require.NoError(p, l.Commit(ctx, orders.DeleteOp(o), table.Put(p.table.KeyItem(other))))
		v, err = p.client.View(ctx, target, []keys.Key{l.Key(), at, other})
		require.NoError(p, err)
		assert.Equal(p, p.raw(l), v.Rows[0], "the lock's own row")
		assert.Nil(p, v.Rows[1])
		assert.Equal(p, p.table.KeyItem(other), v.Rows[2])
		assert.Equal(p, l.Fence()+1, v.Fence)

		v, err = p.client.View(ctx, target, nil)
		require.NoError(p, err)
		assert.Empty(p, v.Rows)
		assert.Equal(p, l.Fence()+1, v.Fence)
	})
}

func TestView_NamesTheHolder(t *testing.T) {
	contract(t, keys.Scheme{}, func(ctx context.Context, p *place) {
		row := rowKeys(1)
		l, err := p.client.Acquire(ctx, lock.Name("report"), lock.WithData("half-way"))
		require.NoError(p, err)
		require.NoError(p, l.Write(ctx, table.Put(p.table.KeyItem(row[0]))))

		reader := p.open(lock.Config{})
		v, err := reader.View(ctx, lock.Name("report"), row)
		assert.Nil(p, v)
		var held *lock.HeldError
		require.ErrorAs(p, err, &held)
		require.ErrorIs(p, err, lock.ErrHeld)
		assert.Equal(p, lock.Name("report"), held.Target)
		assert.Equal(p, l.Fence(), held.Fence)
		assert.Equal(p, l.Ticket(), held.Ticket)
		assert.Equal(p, "test", held.Owner)
		assert.False(p, held.Own)
		assert.ErrorContains(p, err, "lock: view: ")

		v, err = reader.View(ctx, lock.Name("report"), row, lock.EvenIfHeld())
		require.NoError(p, err)
		assert.Equal(p, p.table.KeyItem(row[0]), v.Rows[0])
		assert.Equal(p, l.Fence(), v.Fence)
		assert.Equal(p, held, v.Held)

		_, err = p.client.View(ctx, lock.Name("report"), row)
		require.ErrorAs(p, err, &held)
		assert.True(p, held.Own)

		require.NoError(p, l.Release(ctx))
		v, err = reader.View(ctx, lock.Name("report"), row, lock.EvenIfHeld())
		require.NoError(p, err)
		assert.Nil(p, v.Held)
	})
}

// A caller that has viewed the rows, and acquires afterwards, need not read them again if the fence is the same.
func TestView_FenceShowsThatNobodyHasHeldTheLockSince(t *testing.T) {
	contract(t, keys.Scheme{}, func(ctx context.Context, p *place) {
		target, writer := lock.Name("report"), p.open(lock.Config{})
		holds := func(c *lock.Client) int64 {
			l, err := c.Acquire(ctx, target)
			require.NoError(p, err)
			require.NoError(p, l.Release(ctx))
			return l.Fence()
		}
		views := func() int64 {
			v, err := p.client.View(ctx, target, nil)
			require.NoError(p, err)
			return v.Fence
		}
		seen := views()
		assert.NotEqual(p, seen, holds(writer), "a new row has a fence that nobody has seen")
		for range 3 {
			seen = views()
			assert.Equal(p, seen, holds(p.client))
			seen = views()
			holds(writer)
			assert.NotEqual(p, seen, holds(p.client))
		}
		_, err := writer.TryAcquire(ctx, target)
		require.NoError(p, err)
		r, err := p.client.Inspect(ctx, target)
		require.NoError(p, err)
		require.NoError(p, p.client.ForceRelease(ctx, target, r.Holder().Ticket))
		assert.Equal(p, r.Fence+1, views())
	})
}

// One request that only reads: it opens no session and leaves nothing.
func TestView_Cost(t *testing.T) {
	contract(t, keys.Scheme{}, func(ctx context.Context, p *place) {
		big := p.table.KeyItem(keys.NewKey("ROW", "big"))
		big["text"] = text(strings.Repeat("x", 5000))
		require.NoError(p, p.table.Write(ctx, table.Put(big)))
		c := p.open(lock.Config{HomeRegion: tabletest.Region})
		got := totals(ctx, func(ctx context.Context) {
			_, err := c.View(ctx, lock.Name("report"), append(rowKeys(3), keys.NewKey("ROW", "big")))
			require.NoError(p, err)
		})
		testkit.Check(p, "a view of four rows, of which one has 5 KB",
			testkit.Exactly(got.Requests, "requests", 1), testkit.Exactly(got.ReadUnits, "read units", 3*2+4+2), testkit.Exactly(got.WriteUnits, "write units", 0))
		_, err := c.Inspect(ctx, lock.Name("report"))
		assert.ErrorIs(p, err, table.ErrNotFound)
		assert.Empty(p, lock.SessionID(c))
	})
}

func TestView_HasAtMost99RowsBesidesTheLocks(t *testing.T) {
	contract(t, keys.Scheme{}, func(ctx context.Context, p *place) {
		l, err := p.client.Acquire(ctx, lock.Name("report"))
		require.NoError(p, err)
		require.NoError(p, l.Release(ctx))
		list := rowKeys(lock.MaxViewed + 1)
		for _, fit := range [][]keys.Key{list[1:], append(slices.Clone(list[1:]), l.Key()), append(slices.Clone(list[1:]), list[1:]...)} {
			v, err := p.client.View(ctx, lock.Name("report"), fit)
			require.NoError(p, err)
			assert.Len(p, v.Rows, len(fit))
		}
		_, err = p.client.View(ctx, lock.Name("report"), list)
		assert.ErrorIs(p, err, lock.ErrInvalid)
	})
}

func TestView_RefusesBadInputBeforeAnythingIsSent(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		ended, cancel := context.WithCancel(ctx)
		cancel()
		c, closed := w.cold(lock.Config{}), w.cold(lock.Config{})
		require.NoError(t, closed.Close(ctx))
		target, list := lock.Name("report"), rowKeys(1)
		assert.Empty(t, w.requests(func() {
			for name, f := range map[string]func() (*lock.View, error){
				"no target":     func() (*lock.View, error) { return c.View(ctx, lock.Target{}, list) },
				"bad key":       func() (*lock.View, error) { return c.View(ctx, target, append(list, keys.NewKey("ROW", ""))) },
				"too many rows": func() (*lock.View, error) { return c.View(ctx, target, rowKeys(100)) },
				"nil option":    func() (*lock.View, error) { return c.View(ctx, target, list, nil) },
				"nil context":   func() (*lock.View, error) { return c.View(nil, target, list) }, //nolint:staticcheck // on purpose
			} {
				v, err := f()
				assert.Nil(t, v, name)
				assert.ErrorIs(t, err, lock.ErrInvalid, name)
				assert.ErrorContains(t, err, "lock: view: ", name)
			}
			_, err := c.View(ended, target, list)
			assert.ErrorIs(t, err, context.Canceled)
			_, err = closed.View(ctx, target, list)
			assert.ErrorIs(t, err, lock.ErrClosed)
		}))
		assert.Equal(t, []keys.Key{keys.NewKey("ROW#0", "ROW")}, list, "the caller's list stays as it is")
	})
}

func TestView_RefusesARowThatIsNotALock(t *testing.T) {
	contract(t, keys.Scheme{}, func(ctx context.Context, p *place) {
		l, err := p.client.Acquire(ctx, lock.Name("report"))
		require.NoError(p, err)
		require.NoError(p, l.Release(ctx))
		for want, row := range map[error]table.Item{
			lock.ErrNotLock:   p.table.KeyItem(l.Key()),
			lock.ErrMalformed: p.raw(l),
		} {
			row["line"] = &types.AttributeValueMemberL{Value: []types.AttributeValue{text("nobody")}}
			require.NoError(p, p.table.Write(ctx, table.Put(row)))
			for _, opts := range [][]lock.ViewOption{nil, {lock.EvenIfHeld()}} {
				v, err := p.client.View(ctx, lock.Name("report"), rowKeys(1), opts...)
				assert.Nil(p, v)
				assert.ErrorIs(p, err, want)
			}
		}
	})
}

// A view waits while a transaction is under way, and then shows all of it.
func TestView_GoesThroughConflicts(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		writer, reader := w.client(lock.Config{}), w.client(lock.Config{})
		l, err := writer.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		w.engine.Inject(tabletest.Fault{Kind: tabletest.Delay, Operation: "TransactWriteItems", Hold: true, For: 2 * time.Second})
		begun := time.Now()
		committed := make(chan error, 1)
		go func() { committed <- l.Commit(ctx, w.put("a"), w.put("b")) }()
		time.Sleep(time.Millisecond)
		list := []keys.Key{w.row("a"), w.row("b")}
		ops := w.requests(func() {
			v, err := reader.View(ctx, lock.Name("report"), list)
			require.NoError(t, err)
			assert.NotNil(t, v.Rows[0])
			assert.NotNil(t, v.Rows[1])
			assert.Equal(t, l.Fence()+1, v.Fence)
		})
		assert.GreaterOrEqual(t, time.Since(begun), 2*time.Second)
		assert.Greater(t, times("TransactGetItems", ops), 1)
		require.NoError(t, <-committed)
	})
}

func TestView_EndsWithItsPolicyItsContextAndItsClient(t *testing.T) {
	for name, c := range map[string]struct {
		fault tabletest.FaultKind
		end   func(cancel context.CancelFunc, c *lock.Client)
		want  error
		after time.Duration
	}{
		"conflicts":   {fault: tabletest.TransactionConflict, want: table.ErrConflict, after: 10 * time.Second},
		"throttled":   {fault: tabletest.Throttle, want: table.ErrThrottled, after: 10 * time.Second},
		"unreachable": {fault: tabletest.DropRequest, want: table.ErrUnreachable, after: 10 * time.Second},
		"cancelled": {
			fault: tabletest.TransactionConflict, want: context.Canceled, after: 2 * time.Second,
			end: func(cancel context.CancelFunc, _ *lock.Client) { cancel() },
		},
		"closed": {
			fault: tabletest.TransactionConflict, want: lock.ErrClosed, after: 2 * time.Second,
			end: func(_ context.CancelFunc, c *lock.Client) { _ = c.Close(context.Background()) },
		},
	} {
		virtual(t, func(ctx context.Context, w *world) {
			reader := w.client(lock.Config{})
			w.engine.Inject(tabletest.Fault{Kind: c.fault, Operation: "TransactGetItems"})
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			if c.end != nil {
				time.AfterFunc(2*time.Second, func() { c.end(cancel, reader) })
			}
			begun := time.Now()
			v, err := reader.View(ctx, lock.Name("report"), rowKeys(2))
			assert.Nil(t, v, name)
			require.ErrorIs(t, err, c.want, name)
			assert.NotErrorIs(t, err, lock.ErrLost, name)
			assert.NotErrorIs(t, err, lock.ErrHeld, name)
			assert.InDelta(t, c.after.Seconds(), time.Since(begun).Seconds(), 1, name)
			if c.end == nil {
				w.engine.ClearFaults()
				_, err = reader.View(ctx, lock.Name("report"), rowKeys(2))
				assert.NoError(t, err, name)
			}
		})
	}
}

func TestView_OfMoreThanATransactionReadsIsRefused(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		list := rowKeys(11)
		for _, key := range list {
			row := w.table.KeyItem(key)
			row["text"] = text(strings.Repeat("x", 390<<10))
			require.NoError(t, w.table.Write(ctx, table.Put(row)))
		}
		c := w.client(lock.Config{})
		_, err := c.View(ctx, lock.Name("report"), list[1:])
		require.NoError(t, err)
		_, err = c.View(ctx, lock.Name("report"), list)
		assert.ErrorIs(t, err, lock.ErrInvalid)
	})
}

// In another region, only a part of a transaction may have arrived.
func TestView_RefusesATableOfSeveralRegions(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		tbl, err := table.Open(&replicated{Client: w.sdk(w.engine.HTTPClient())}, table.Schema{Name: "app"})
		require.NoError(t, err)
		c, err := lock.New(tbl, lock.Config{})
		require.NoError(t, err)
		v, err := c.View(ctx, lock.Name("report"), rowKeys(1))
		assert.Nil(t, v)
		require.ErrorIs(t, err, lock.ErrMultiRegion)
		require.NoError(t, c.Close(ctx))
	})
}
