package lock_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/attrvalue"
	"github.com/mortise-go/mortise/internal/engines"
	"github.com/mortise-go/mortise/internal/testkit"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
)

func TestMain(m *testing.M) {
	if text, is := os.LookupEnv(holderEnv); is { // a process that TestPauseProcess stops
		os.Exit(holderMain(text))
	}
	debug.SetGCPercent(400) // each world is small, and there are thousands
	code := engines.Main(m)
	if testing.Verbose() {
		fmt.Println("checked against policy.json:", checked)
	}
	os.Exit(code)
}

// place is a table on one of the engines.
type place struct {
	*testing.T
	table  *table.Table // the test's own, which is not checked
	client *lock.Client
	locks  func() *table.Table // opens the table like a process that uses locks
}

// contract runs f on every engine.
func contract(t *testing.T, scheme keys.Scheme, f func(ctx context.Context, p *place)) {
	t.Helper()
	contractWith(t, table.Schema{Keys: scheme}, lock.Config{Owner: "test"}, f)
}

// contractWith runs f on every engine, in a table of that schema.
func contractWith(t *testing.T, schema table.Schema, config lock.Config, f func(ctx context.Context, p *place)) {
	t.Helper()
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		schema := schema
		schema.Name = e.TableName(t)
		tbl, err := table.Open(e.Client(), schema)
		require.NoError(t, err)
		require.NoError(t, tbl.Ensure(t.Context()))
		p := &place{T: t, table: tbl}
		p.locks = func() *table.Table {
			var guard []func(*dynamodb.Options)
			if in := e.InProcess(); in != nil {
				to := newGuardian(t, tbl.Name(), tbl.Scheme()).over(in.HTTPClient())
				guard = append(guard, func(o *dynamodb.Options) { o.HTTPClient = to })
			}
			opened, err := table.Open(e.Client(guard...), tbl.Schema())
			require.NoError(t, err)
			_, err = opened.Plan(ownHand(t.Context())) // it has had an answer of DynamoDB: it knows the time
			require.NoError(t, err)
			return opened
		}
		p.client = p.open(config)
		f(t.Context(), p)
	})
}

func (p *place) open(config lock.Config) *lock.Client {
	p.Helper()
	config.Logger = slog.New(slog.DiscardHandler)
	c, err := lock.New(p.locks(), config)
	require.NoError(p, err)
	p.Cleanup(func() { assert.NoError(p, c.Close(context.Background())) })
	return c
}

// raw is the lock's row as it stands in the table.
func (p *place) raw(l *lock.Lease) table.Item {
	p.Helper()
	item, err := p.table.Get(p.Context(), l.Key(), true)
	require.NoError(p, err)
	return item
}

// totals returns the cost of f.
func totals(ctx context.Context, f func(ctx context.Context)) table.Totals {
	ctx, usage := table.WithUsage(ctx)
	f(ctx)
	return usage.Totals()
}

// P1, P2, P7.
func TestRequestCost(t *testing.T) {
	contract(t, keys.Scheme{}, func(ctx context.Context, p *place) {
		var l *lock.Lease
		must := func(err error) { p.Helper(); require.NoError(p, err) }
		cost := func(what string, writes int64, units float64, f func(ctx context.Context), more ...testkit.Measure) {
			p.Helper()
			got := totals(ctx, f)
			testkit.Check(p, what, append([]testkit.Measure{
				testkit.Exactly(got.Requests, "writes", writes), testkit.Exactly(got.ReadUnits, "read units", 0),
				// DynamoDB Local does not double the units of a transaction.
				testkit.AtMost(got.WriteUnits, "write units", units),
			}, more...)...)
		}
		warm := func(ctx context.Context, c *lock.Client) {
			l, err := c.Acquire(ctx, lock.Name("warm"))
			must(err)
			must(l.Release(ctx))
		}
		other := p.open(lock.Config{})
		warm(ctx, p.client)
		warm(ctx, other)
		for _, row := range []string{"a new row", "the row of before"} {
			cost("P1, acquire and release, "+row, 2, 2, func(ctx context.Context) {
				l, err := p.client.Acquire(ctx, lock.Name("report"))
				must(err)
				must(l.Release(ctx))
			})
		}
		cost("P1, acquire, renew and release, Fixed", 3, 3, func(ctx context.Context) {
			l, err := p.client.Acquire(ctx, lock.Name("fixed"), lock.Fixed(time.Minute))
			must(err)
			must(l.Renew(ctx))
			must(l.Release(ctx))
		})
		cost("P1, acquire and release, cold client", 3, 3, func(ctx context.Context) { warm(ctx, p.open(lock.Config{})) })

		l, err := p.client.Acquire(ctx, lock.Name("report"))
		must(err)
		var held *lock.HeldError
		// DynamoDB charges for a refused write, but does not report it.
		cost("P2, failed try", 1, 0, func(ctx context.Context) {
			_, err := other.TryAcquire(ctx, lock.Name("report"))
			require.ErrorAs(p, err, &held)
		})
		named := 0
		for _, is := range []bool{held.Owner == "test", held.Fence == l.Fence(), time.Since(held.Since).Abs() < time.Minute} {
			if is {
				named++
			}
		}
		testkit.Check(p, "P2, failed try", testkit.Exactly(named, "of holder, fence and since named", 3))
		cost("P1, renew under a session", 0, 0, func(ctx context.Context) { must(l.Renew(ctx)) })
		write := table.Put(p.table.KeyItem(keys.NewKey("ROW", "1")))
		cost("P7, guarded write of a row", 1, 4, func(ctx context.Context) { must(l.Write(ctx, write)) })
		cost("P7, commit of a row", 1, 4, func(ctx context.Context) { must(l.Commit(ctx, write)) })
		cost("P7, release after a commit", 0, 0, func(ctx context.Context) { must(l.Release(ctx)) })
		r, err := p.client.Inspect(ctx, lock.Name("report"))
		must(err)
		assert.False(p, r.Held())
	})
}

func keysOf(item table.Item) []string {
	var names []string
	for name := range maps.Keys(item) {
		names = append(names, name)
	}
	return names
}

// lockRow is a lock row as another client would have left it: free, or held by a Fixed lease that ended long ago.
func (p *place) lockRow(key keys.Key, held bool, change func(table.Item)) table.Item {
	now := time.Now()
	item := p.table.KeyItem(key)
	item["type"], item["fence"], item["line"] = text("mortise.Lock"), numeral(7), listOf()
	item["since"], item["ttl"] = numeral(now.Add(-time.Hour).UnixMilli()), numeral(now.Add(time.Hour).Unix())
	if held {
		item["line"] = listOf(text(fmt.Sprintf("ANOTHER@%d+1000 another", now.Add(-time.Hour).UnixMilli())))
	}
	if change != nil {
		change(item)
	}
	return item
}

func (p *place) keyOf(target lock.Target) keys.Key {
	p.Helper()
	l, err := p.client.Acquire(p.Context(), target)
	require.NoError(p, err)
	require.NoError(p, l.Release(p.Context()))
	return l.Key()
}

// However long ago the lock was acquired, only the session shows whether the holder is alive.
func TestTakeover_NeedsADeadSession(t *testing.T) {
	contract(t, keys.Scheme{}, func(ctx context.Context, p *place) {
		key := p.keyOf(lock.Name("report"))
		item := p.lockRow(key, true, func(i table.Item) {
			i["line"] = listOf(text(fmt.Sprintf("abc/1@%d another", time.Now().Add(-time.Hour).UnixMilli())))
		})
		session := p.table.KeyItem(keys.NewKey("SESSION#abc", "SESSION#abc"))
		session["type"], session["owner"] = text("mortise.LockSession"), text("another")
		session["lease"], session["beat"], session["expires"] = numeral(20_000), numeral(700), numeral(time.Now().Add(20*time.Second).UnixMilli())
		require.NoError(p, p.table.Write(ctx, table.Put(item)))
		require.NoError(p, p.table.Write(ctx, table.Put(session)))
		for range 3 {
			_, err := p.client.TryAcquire(ctx, lock.Name("report"))
			require.ErrorIs(p, err, lock.ErrHeld)
		}
		got, err := p.table.Get(ctx, keys.NewKey("SESSION#abc", "SESSION#abc"), true)
		require.NoError(p, err)
		require.True(p, attrvalue.SameItem(session, got), "a session that lives is not touched")

		for _, change := range []func() error{
			func() error {
				session["expires"] = numeral(time.Now().Add(-time.Hour).UnixMilli())
				return p.table.Write(ctx, table.Put(session))
			},
			func() error { session["dead"] = numeral(1); return p.table.Write(ctx, table.Put(session)) },
			func() error { return p.table.Write(ctx, table.Delete(keys.NewKey("SESSION#abc", "SESSION#abc"))) },
		} {
			require.NoError(p, change())
			require.NoError(p, p.table.Write(ctx, table.Put(item)))
			l, err := p.open(lock.Config{}).TryAcquire(ctx, lock.Name("report"), lock.Fixed(time.Minute))
			require.NoError(p, err)
			require.EqualValues(p, 8, l.Fence())
			require.NoError(p, l.Release(ctx))
			got, err := p.table.Get(ctx, keys.NewKey("SESSION#abc", "SESSION#abc"), true)
			require.NoError(p, err)
			require.Contains(p, got, "dead", "its holder can never renew again")
		}
	})
}

// A client with another SessionKey cannot find the row of the holder's session. It must not take the holder for dead.
func TestTakeover_NotOfAHolderWithAnotherSessionKey(t *testing.T) {
	contract(t, keys.Scheme{}, func(ctx context.Context, p *place) {
		const usual, special = "", "SESSION#v2#{id}"
		for i, by := range []struct{ holder, other string }{{usual, special}, {special, usual}, {special, "SESSION#v3#{id}"}} {
			target := lock.Name(fmt.Sprint("report ", i))
			l, err := p.open(lock.Config{SessionKey: by.holder}).Acquire(ctx, target)
			require.NoError(p, err)
			key := l.Key()
			item, err := p.table.Get(ctx, key, true)
			require.NoError(p, err)
			id, _, _ := strings.Cut(l.Ticket(), "/")
			item["line"] = listOf(text(fmt.Sprintf("%s/1@%d another", id, time.Now().Add(-time.Hour).UnixMilli())))
			require.NoError(p, p.table.Write(ctx, table.Put(item)))

			other := p.open(lock.Config{SessionKey: by.other})
			for _, opts := range [][]lock.Option{nil, {lock.Fixed(time.Minute)}, {lock.Shared()}} {
				_, err := other.TryAcquire(ctx, target, opts...)
				require.ErrorIs(p, err, lock.ErrHeld)
			}
			_, err = other.TryAcquireAll(ctx, []lock.Target{target, lock.Name("free")})
			require.ErrorIs(p, err, lock.ErrHeld)
			_, err = other.Acquire(ctx, target)
			require.ErrorIs(p, err, lock.ErrMalformed)
			require.ErrorContains(p, err, "Config.SessionKey")
			require.ErrorIs(p, other.Revoke(ctx, target), lock.ErrNoSession)
			list, err := other.Sessions(ctx, id)
			require.NoError(p, err)
			assert.Empty(p, list)
			got := p.await(ctx, key, func(got table.Item) bool { return len(lineIn(got)) == 1 })
			assert.Equal(p, item["line"], got["line"], "%v: the waiter has left the line", by)
		}
	})
}

func TestGuard_DecidesInTheTransaction(t *testing.T) {
	contract(t, keys.Scheme{}, func(ctx context.Context, p *place) {
		const another = "ANOTHER/1@1764000000123 another"
		row := keys.NewKey("ROW", "1")
		l, err := p.client.Acquire(ctx, lock.Name("report"), lock.Fixed(20*time.Second))
		require.NoError(p, err)
		require.NoError(p, l.Write(ctx, table.Put(p.table.KeyItem(row))))

		// The index of the caller's operation, not that of the guard or the action.
		refused := table.Update(row, table.Attr("n").Set(1)).If(table.Attr("n").Exists())
		err = l.Write(ctx, table.Put(p.table.KeyItem(keys.NewKey("ROW", "2"))), refused)
		var failed *table.ConditionError
		require.ErrorAs(p, err, &failed)
		assert.Equal(p, 1, failed.Index)
		assert.NotNil(p, failed.Item)
		require.NotErrorIs(p, err, lock.ErrLost)
		require.NoError(p, context.Cause(l.Context()))

		require.NoError(p, p.table.Write(ctx, table.Update(l.Key(), table.Attr("line").Set(listOf(text(another))))))
		// Both fail: the lock comes first, since nothing else counts then.
		err = l.Commit(ctx, refused)
		require.ErrorIs(p, err, lock.ErrLost)
		require.ErrorIs(p, context.Cause(l.Context()), lock.ErrStolen)
		require.ErrorIs(p, l.Write(ctx, table.Put(p.table.KeyItem(keys.NewKey("ROW", "3")))), lock.ErrLost)
		require.ErrorIs(p, l.Release(ctx), lock.ErrLost)
		_, err = p.table.Get(ctx, keys.NewKey("ROW", "3"), true)
		require.ErrorIs(p, err, table.ErrNotFound)
		got, err := p.client.Inspect(ctx, lock.Name("report"))
		require.NoError(p, err)
		assert.Equal(p, "ANOTHER/1", got.Holder().Ticket)

		// In the caller's own transaction.
		err = p.table.Write(ctx, table.Put(p.table.KeyItem(keys.NewKey("ROW", "3"))), l.Guard())
		require.ErrorIs(p, err, lock.ErrLost)
		require.ErrorAs(p, err, &failed)
		assert.Equal(p, 1, failed.Index)
	})
}

func TestWrite_RefusesInvalidOperations(t *testing.T) {
	contract(t, keys.Scheme{}, func(ctx context.Context, p *place) {
		l, err := p.client.Acquire(ctx, lock.Name("report"))
		require.NoError(p, err)
		ops := make([]table.Op, 100)
		for i := range ops {
			ops[i] = table.Put(p.table.KeyItem(keys.NewKey("ROW", fmt.Sprint("a", i))))
		}
		broken := errors.New("broken")
		cost := totals(ctx, func(ctx context.Context) {
			for _, write := range []func(context.Context, ...table.Op) error{l.Write, l.Commit} {
				require.ErrorIs(p, write(ctx), lock.ErrInvalid)
				require.ErrorIs(p, write(ctx, ops...), lock.ErrInvalid)
				require.ErrorIs(p, write(ctx, table.Op{}), lock.ErrInvalid)
				require.ErrorIs(p, write(ctx, table.Invalid(broken)), broken)
				require.ErrorIs(p, write(ctx, table.Delete(l.Key())), lock.ErrInvalid)
				require.ErrorIs(p, write(ctx, ops[0], l.Guard()), lock.ErrInvalid)
			}
		})
		assert.Zero(p, cost.Requests)
		require.NoError(p, l.Write(ctx, ops[:99]...))
		require.NoError(p, l.Commit(ctx, ops[:99]...))
	})
}

func TestFence_Increases(t *testing.T) {
	contract(t, keys.Scheme{}, func(ctx context.Context, p *place) {
		last := int64(0)
		next := func(c *lock.Client) *lock.Lease {
			p.Helper()
			l, err := c.Acquire(ctx, lock.Name("report"), lock.Fixed(20*time.Second))
			require.NoError(p, err)
			require.Greater(p, l.Fence(), last)
			last = l.Fence()
			return l
		}
		l := next(p.client)
		require.NoError(p, l.Release(ctx))
		l = next(p.open(lock.Config{})) // another process
		require.NoError(p, l.Commit(ctx, table.Put(p.table.KeyItem(keys.NewKey("ROW", "1")))))
		l = next(p.client)
		long := time.Now().Add(-time.Hour).UnixMilli()
		require.NoError(p, p.table.Write(ctx, table.Update(l.Key(),
			table.Attr("line").Set(listOf(text(fmt.Sprintf("%s@%d+20000 test", l.Ticket(), long)))), table.Attr("since").Set(long))))
		l = next(p.open(lock.Config{})) // expired
		// Deleted, as time to live does it: after nobody has used it for the retention.
		last = time.Now().Add(-7 * 24 * time.Hour).UnixMilli()
		require.NoError(p, p.table.Write(ctx, table.Update(l.Key(), table.Attr("fence").Set(last))))
		require.NoError(p, p.table.Write(ctx, table.Delete(l.Key())))
		next(p.open(lock.Config{}))
	})
}
