package lock_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// Every held lock is in the index, from the write that grants it to the one that ends it.
func TestIndex_HasEveryHeldLock(t *testing.T) {
	for name, scheme := range map[string]keys.Scheme{"defaults": {}, "renamed": {PK: "P", SK: "S", Type: "_t", TTL: "e", Version: "_v", Delimiter: '|', Prefix: "shop/"}} {
		t.Run(name, func(t *testing.T) {
			indexed(t, scheme, func(ctx context.Context, p *place) {
				var leases []*lock.Lease
				for i, opts := range [][]lock.Option{nil, {lock.Fixed(time.Minute)}, nil, {lock.Fixed(time.Minute)}} {
					l, err := p.client.Acquire(ctx, lock.Name(fmt.Sprint(9-i)), opts...)
					require.NoError(p, err)
					leases = append(leases, l)
				}
				s := p.table.Scheme()
				row := p.raw(leases[0])
				assert.Regexp(p, "^"+regexp.QuoteMeta(fmt.Sprintf("%sLOCKS%c", s.Prefix, s.Delimiter))+"(0[0-9]|1[0-5])$", row["gsi1pk"].(*types.AttributeValueMemberS).Value)
				r, err := p.client.Inspect(ctx, lock.Name("9"))
				require.NoError(p, err)
				listed := fmt.Sprintf("%015d%c%s", r.Holder().Since.UnixMilli(), s.Delimiter, leases[0].Ticket())
				assert.Equal(p, text(listed), row["gsi1sk"])
				of, errs := p.listed(lock.Index())
				assert.Empty(p, errs)
				assert.ElementsMatch(p, []string{"9", "8", "7", "6"}, of)
				slices.SortFunc(leases, func(a, b *lock.Lease) int {
					return strings.Compare(p.listedAt(a), p.listedAt(b))
				})
				for i, l := range leases {
					assert.Equal(p, l.Target().Name(), of[i])
				}
				slices.SortFunc(leases, func(a, b *lock.Lease) int { return strings.Compare(b.Target().Name(), a.Target().Name()) })

				require.NoError(p, leases[1].Renew(ctx))
				require.NoError(p, leases[0].SetData(ctx, "x"))
				require.NoError(p, leases[0].Write(ctx, table.Put(p.table.KeyItem(keys.NewKey("ROW", "1")))))
				require.NoError(p, leases[1].Release(ctx))
				require.NoError(p, leases[2].Commit(ctx, table.Put(p.table.KeyItem(keys.NewKey("ROW", "1")))))
				forced, err := p.client.Inspect(ctx, lock.Name("6"))
				require.NoError(p, err)
				require.NoError(p, p.client.ForceRelease(ctx, lock.Name("6"), forced.Holder().Ticket))
				of, errs = p.listed(lock.Index())
				assert.Empty(p, errs)
				assert.Equal(p, []string{"9"}, of)
				for _, l := range leases[1:] {
					assert.NotContains(p, p.raw(l), "gsi1pk")
					assert.NotContains(p, p.raw(l), "gsi1sk")
				}

				// Passed: the row keeps its place in the index.
				before := p.listedAt(leases[0])
				next := p.handOver(leases[0])
				assert.Equal(p, before, p.listedAt(next))
				of, _ = p.listed(lock.Index())
				assert.Equal(p, []string{"9"}, of)

				// A client that does not know of the index leaves the row in it.
				require.NoError(p, next.Release(ctx))
				l, err := p.client.Acquire(ctx, lock.Name("9"))
				require.NoError(p, err)
				require.NoError(p, p.table.Write(ctx, table.Update(l.Key(), table.Attr("line").Remove())))
				of, errs = p.listed(lock.Index())
				assert.Empty(p, of)
				assert.Empty(p, errs)
			})
		})
	}
}

// A row that stays in the index is written in another way than one that leaves it. A release learns from a refusal which it
// is.
func TestIndex_CostOfALock(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		w.indexed(byTime)
		open := func() *lock.Client {
			tbl := w.openOver(w.engine.HTTPClient(), table.Schema{Name: "app", Indexes: []table.Index{byTime}})
			c, err := lock.New(tbl, lock.Config{Index: byTime.Name})
			require.NoError(t, err)
			w.Cleanup(func() { assert.NoError(w, c.Close(context.Background())) })
			return c
		}
		first, next := open(), open()
		for operation, give := range map[string]func(l *lock.Lease) error{
			"UpdateItem":         func(l *lock.Lease) error { return l.Release(ctx) },
			"TransactWriteItems": func(l *lock.Lease) error { return l.Commit(ctx, w.put("x")) },
		} {
			l, err := first.Acquire(ctx, lock.Name("report"))
			require.NoError(t, err)
			behind := acquireAsync(ctx, next, lock.Name("report"))
			assert.Equal(t, 2, times(operation, w.requests(func() { require.NoError(t, give(l)) })), "somebody has come")
			l = <-behind
			require.NotNil(t, l)
			assert.Equal(t, 1, times(operation, w.requests(func() { require.NoError(t, give(l)) })), "it has seen that nobody has")
		}
	})
}

// Locks of AcquireAll, and of a run of an interval, are in the index as well.
func TestIndex_HasLocksOfAcquireAllAndEvery(t *testing.T) {
	indexed(t, keys.Scheme{}, func(ctx context.Context, p *place) {
		put := table.Put(p.table.KeyItem(keys.NewKey("ROW", "1")))
		b, err := p.client.AcquireAll(ctx, names(3))
		require.NoError(p, err)
		of, errs := p.listed(lock.Index())
		assert.Empty(p, errs)
		assert.ElementsMatch(p, []string{"n00", "n01", "n02"}, of)
		require.NoError(p, b.Leases()[0].Release(ctx))
		of, _ = p.listed(lock.Index())
		assert.ElementsMatch(p, []string{"n01", "n02"}, of)
		b2, err := p.client.AcquireAll(ctx, names(1))
		require.NoError(p, err)
		require.NoError(p, b2.Commit(ctx, put))
		require.NoError(p, b.Leases()[1].Commit(ctx, put))
		require.NoError(p, b.Leases()[2].Release(ctx))
		of, errs = p.listed(lock.Index())
		assert.Empty(p, errs)
		assert.Empty(p, of)
		for name, f := range map[string]func(ctx context.Context, l *lock.Lease) error{
			"finished":  func(context.Context, *lock.Lease) error { return nil },
			"committed": func(ctx context.Context, l *lock.Lease) error { return l.Commit(ctx, put) },
			"failed":    func(context.Context, *lock.Lease) error { return errors.New("broken") },
		} {
			over, stop := context.WithCancel(ctx)
			err := p.client.Every(over, lock.Name(name), time.Hour, func(_ context.Context, l *lock.Lease, _ time.Time) error {
				of, errs := p.listed(lock.Index())
				assert.Empty(p, errs)
				assert.Equal(p, []string{name}, of)
				defer stop()
				return f(ctx, l)
			})
			require.Error(p, err, name)
			of, errs := p.listed(lock.Index())
			assert.Empty(p, errs)
			assert.Empty(p, of, name)
			r, err := p.client.Inspect(ctx, lock.Name(name))
			require.NoError(p, err)
			assert.Equal(p, name != "failed", r.Ran > 0, name)
		}
	})
}

// If an index over an attribute of lock rows has to stay, clients are opened on a table without it.
func TestIndex_OverAnAttributeOfLocks(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		app := w.indexed(table.Index{Name: "inverted", PK: "sk", SK: "data"})
		_, err := lock.New(app, lock.Config{})
		require.ErrorIs(t, err, lock.ErrInvalid)
		require.ErrorContains(t, err, `"data"`)
		require.ErrorContains(t, err, "inverted")
		c := w.client(lock.Config{}) // of a table that was opened without it
		orders := defineOrders(t, app)
		for _, opts := range [][]lock.Option{nil, {lock.WithData("text")}} {
			l, err := c.Acquire(ctx, lock.Beside(keys.NewKey("TENANT#a", "ORDER#1")), opts...)
			require.NoError(t, err)
			require.NoError(t, l.Commit(ctx, orders.PutOp(order{Tenant: "a", ID: fmt.Sprint(len(opts))})))
		}
		_, err = c.Acquire(ctx, lock.Name("report"), lock.WithData(1))
		require.Error(t, err, "the index's key is a string")
		_, err = c.TryAcquire(ctx, lock.Name("report"))
		require.NoError(t, err, "nothing was written")
	})
}

func TestIndex_BeginsWithTheOldestOfAShard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, engine := t.Context(), tabletest.New(t)
		schema := table.Schema{Name: "app", Indexes: []table.Index{byTime}}
		w := &world{T: t, engine: engine, guardian: newGuardian(t, schema.Name, keys.Scheme{}.WithDefaults())}
		tbl, err := table.Open(engine.Client(), schema)
		require.NoError(t, err)
		require.NoError(t, tbl.Ensure(ctx))
		p := &place{T: t, table: tbl, locks: func() *table.Table { return w.openOver(engine.HTTPClient(), schema) }}
		p.client = p.open(lock.Config{Index: "gsi1"})
		other := p.open(lock.Config{Index: "gsi1"})
		type at struct {
			shard string
			turn  int
		}
		var want []at
		turns := map[string]at{}
		for i := range 60 {
			c := []*lock.Client{p.client, other}[i%2]
			l, err := c.Acquire(ctx, lock.Name(fmt.Sprint(99-i)))
			require.NoError(t, err)
			where := at{p.raw(l)["gsi1pk"].(*types.AttributeValueMemberS).Value, i}
			turns[l.Target().Name()] = where
			want = append(want, where)
			time.Sleep(time.Millisecond)
		}
		slices.SortFunc(want, func(a, b at) int { return cmp.Or(strings.Compare(a.shard, b.shard), cmp.Compare(a.turn, b.turn)) })
		of, errs := p.listed(lock.Index())
		assert.Empty(t, errs)
		var got []at
		for _, name := range of {
			got = append(got, turns[name])
		}
		assert.Equal(t, want, got, "of each shard")
		shards := map[string]bool{}
		for _, where := range want {
			shards[where.shard] = true
		}
		assert.Greater(t, len(shards), 8)
	})
}

func TestIndex_IsChecked(t *testing.T) {
	all := []string{
		"type", "ttl", "line", "fence", "renewed", "since", "hold", "data", "edits", "ran", "running", "failed", "forced", "forced_fence", "ousted",
		"permits", "stays", "next", "kept",
	}
	good := table.Index{Name: "gsi1", PK: "gsi1pk", SK: "gsi1sk"}
	change := func(f func(x *table.Index)) table.Index { x := good; f(&x); return x }
	bad := map[string]table.Index{
		"no sort key":      change(func(x *table.Index) { x.SK = "" }),
		"a number to sort": change(func(x *table.Index) { x.SKType = table.Number }),
		"a binary key":     change(func(x *table.Index) { x.PKType = table.Binary }),
		"local":            change(func(x *table.Index) { x.Local, x.PK = true, "pk" }),
		"keys only":        change(func(x *table.Index) { x.Include = []string{} }),
		"the table's key":  change(func(x *table.Index) { x.PK = "sk" }),
		"the type's":       change(func(x *table.Index) { x.PK = "type" }),
		"another name":     change(func(x *table.Index) { x.Name = "other" }),
	}
	for _, missing := range all {
		bad["without "+missing] = change(func(x *table.Index) {
			x.Include = slices.DeleteFunc(slices.Clone(all), func(s string) bool { return s == missing })
		})
	}
	for name, x := range bad {
		tbl, err := table.Open(tabletest.New(t).Client(), table.Schema{Name: "app", Indexes: []table.Index{x}})
		require.NoError(t, err, name)
		_, err = lock.New(tbl, lock.Config{Index: "gsi1"})
		require.ErrorIs(t, err, lock.ErrInvalid, name)
		require.ErrorContains(t, err, "Config.Index", name)
	}
	for _, x := range []table.Index{good, change(func(x *table.Index) { x.Include = all })} {
		tbl, err := table.Open(tabletest.New(t).Client(), table.Schema{Name: "app", Indexes: []table.Index{x}})
		require.NoError(t, err)
		_, err = lock.New(tbl, lock.Config{Index: "gsi1"})
		require.NoError(t, err)
	}
}

// indexing is a client of a process whose locks are in an index.
func (w *world) indexing() *lock.Client {
	w.Helper()
	c, err := lock.New(w.openOver(w.engine.HTTPClient(), table.Schema{Name: "app", Indexes: []table.Index{byTime}}),
		lock.Config{Index: byTime.Name, Logger: quiet.Logger})
	require.NoError(w, err)
	w.Cleanup(func() { assert.NoError(w, c.Close(context.Background())) })
	return c
}

// A row that is not in order, and that nobody holds, does not come into the index by those who try to acquire it.
func TestIndex_HasNoFreeRowThatIsMalformed(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		w.indexed(byTime)
		c, row := w.indexing(), w.lineRow("report")
		row["since"] = text("yesterday")
		require.NoError(t, w.table.Write(ctx, table.Put(row)))
		require.ErrorIs(t, errOf(c.Acquire(ctx, lock.Name("report"))), lock.ErrMalformed)
		require.ErrorIs(t, errOf(c.TryAcquire(ctx, lock.Name("report"), lock.WithData("mine"))), lock.ErrMalformed)
		item, err := w.table.Get(ctx, w.lockKey("report"), true)
		require.NoError(t, err)
		assert.NotContains(t, item, byTime.PK)
	})
}

// The reset of a malformed row takes it out of the index.
func TestIndex_HasNoRowThatWasReset(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		w.indexed(byTime)
		c := w.indexing()
		l, err := c.Acquire(ctx, lock.Name("report"), lock.Fixed(time.Minute))
		require.NoError(t, err)
		require.NoError(t, w.table.Write(ctx, table.Update(l.Key(), table.Attr("fence").Set("x"))))
		require.NoError(t, c.ForceRelease(ctx, lock.Name("report"), ""))
		item, err := w.table.Get(ctx, l.Key(), true)
		require.NoError(t, err)
		assert.NotContains(t, item, byTime.PK)
		assert.NotContains(t, item, byTime.SK)
	})
}

// The error of a commit names operations of the caller, and none that the index needs.
func TestIndex_CommitNamesNoOperationOfItsOwn(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		w.indexed(byTime)
		l, err := w.indexing().Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		waiting, leave := context.WithCancel(ctx)
		defer leave()
		acquireAsync(waiting, w.indexing(), lock.Name("report"))
		w.engine.Inject(tabletest.Fault{Kind: tabletest.DropRequest, Operation: "TransactWriteItems", Times: 1})
		for _, failed := range table.Conditions(l.Commit(ctx, w.put("x"))) {
			assert.Zero(t, failed.Index)
		}
	})
}

// A row that a client without the index has left, with a holder that died, comes into the index also by a try: it replaces that holder's
// ticket, and enters no line.
func TestIndex_HasALockThatATryHasTakenOver(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		w.indexed(byTime)
		_, err := w.client(quiet).Acquire(ctx, lock.Name("report"), lock.Fixed(time.Second))
		require.NoError(t, err)
		time.Sleep(time.Minute)
		c := w.indexing()
		l, err := c.TryAcquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		n := 0
		for r, err := range c.List(ctx, lock.Index()) {
			require.NoError(t, err)
			assert.Equal(t, l.Ticket(), r.Holder().Ticket)
			n++
		}
		assert.Equal(t, 1, n)
		require.NoError(t, l.Release(ctx))
		for r, err := range c.List(ctx, lock.Index()) {
			require.NoError(t, err)
			assert.Fail(t, "a free lock is listed", r)
		}
	})
}

// An index whose keys are attributes that every row has contains the rows of locks, too. docs/how-to/adopt.md tells what that costs.
func TestIndex_OverAttributesOfEveryRow(t *testing.T) {
	for name, tt := range map[string]struct {
		index     table.Index
		partition string
		units     float64
	}{
		"inverted":              {table.Index{Name: "swapped", PK: "sk", SK: "pk"}, "LOCK#ORDER", 4},
		"by type":               {table.Index{Name: "by-type", PK: "type", SK: "pk"}, "mortise.Lock", 4},
		"by type, of keys only": {table.Index{Name: "by-type", PK: "type", SK: "pk", Include: []string{}}, "mortise.Lock", 2},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			tbl, err := table.Open(tabletest.New(t).Client(), table.Schema{Name: "app", Indexes: []table.Index{tt.index}})
			require.NoError(t, err)
			require.NoError(t, tbl.Ensure(ctx))
			locks, err := lock.New(tbl, lock.Config{})
			require.NoError(t, err)
			defer func() { assert.NoError(t, locks.Close(context.Background())) }()
			pair := func(ctx context.Context) {
				lease, err := locks.Acquire(ctx, lock.Beside(keys.NewKey("ORDER#42", "ORDER")))
				require.NoError(t, err)
				require.NoError(t, lease.Release(ctx))
			}
			pair(ctx) // the session, and a new row
			counted, usage := table.WithUsage(ctx)
			pair(counted)
			assert.InDelta(t, tt.units, usage.Totals().WriteUnits, 0)
			found := 0
			for _, err := range tbl.Query(ctx, table.Query{Index: tt.index.Name, PK: tt.partition}) {
				require.NoError(t, err)
				found++
			}
			assert.Equal(t, 1, found)
		})
	}
}
