package lock_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mortise-go/mortise/internal/attrvalue"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/entity"
	"github.com/mortise-go/mortise/internal/engines"
	"github.com/mortise-go/mortise/internal/testkit"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
)

func TestMain(m *testing.M) {
	if text, is := os.LookupEnv(holderEnv); is { // a process that is stopped (TestPauseProcess)
		os.Exit(holderMain(text))
	}
	debug.SetGCPercent(400) // worlds are small, and made by the thousand
	code := engines.Main(m)
	if testing.Verbose() {
		fmt.Println("checked against policy.json:", checked)
	}
	os.Exit(code)
}

// place is a table on one of the engines.
type place struct {
	*testing.T
	table  *table.Table // the test's own hand
	client *lock.Client
	locks  func() *table.Table // opens the table as a process with locks does
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
			_, err = opened.Plan(ownHand(t.Context())) // it has talked to DynamoDB: knows the time
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

// totals runs f and says what it cost.
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
				// DynamoDB Local does not double what is in a transaction.
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
		// DynamoDB charges for a refused write without saying so.
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

func TestRowIsAsDocumented(t *testing.T) {
	for name, scheme := range map[string]keys.Scheme{
		"defaults":        {},
		"defaults, Fixed": {},
		"renamed, Fixed":  {PK: "PartKey", SK: "SortKey", Type: "_t", TTL: "expiresAt", Version: "_v", Delimiter: '|', Prefix: "shop/"},
		"renamed":         {PK: "PartKey", SK: "SortKey", Type: "_t", TTL: "expiresAt", Version: "_v", Delimiter: '|', Prefix: "shop/"},
	} {
		t.Run(name, func(t *testing.T) {
			contract(t, scheme, func(ctx context.Context, p *place) {
				s := p.table.Scheme()
				d := string(rune(s.Delimiter))
				before := time.Now()
				fixed := strings.HasSuffix(name, "Fixed")
				var opts []lock.Option
				if fixed {
					opts = append(opts, lock.Fixed(20*time.Second))
				}
				l, err := p.client.Acquire(ctx, lock.Name("report"), opts...)
				require.NoError(p, err)
				row := p.raw(l)
				text := func(name string) string {
					p.Helper()
					v, ok := row[name].(*types.AttributeValueMemberS)
					require.True(p, ok, name)
					return v.Value
				}
				near := func(name string, unit time.Duration, want time.Time) {
					p.Helper()
					assert.InDelta(p, float64(want.UnixNano()/int64(unit)), float64(number(p.T, row[name])), float64(time.Minute/unit), name)
				}
				assert.Equal(p, s.Prefix+"LOCK"+d+"report", text(s.PK))
				assert.Equal(p, "LOCK"+d+"report", text(s.SK))
				assert.Equal(p, "mortise.Lock", text(s.Type))
				assert.Equal(p, l.Fence(), number(p.T, row["fence"]))
				line := lineIn(row)
				require.Len(p, line, 1)
				id, ticket := lock.SessionID(p.client), line[0].(*types.AttributeValueMemberS).Value
				if fixed {
					assert.Regexp(p, `^[A-Z2-7]{26,}@\d{13}\+20000 test$`, ticket, "128 bits of base32")
				} else {
					assert.Regexp(p, `^`+id+`/\d+@\d{13} test$`, ticket)
				}
				stem, rest, _ := strings.Cut(ticket, "@")
				assert.Equal(p, l.Ticket(), stem)
				taken, err := strconv.ParseInt(rest[:13], 10, 64)
				require.NoError(p, err)
				assert.InDelta(p, before.UnixMilli(), taken, 60_000)
				if !fixed {
					own, err := p.table.Get(ctx, keys.NewKey(s.Prefix+"SESSION"+d+id, "SESSION"+d+id), true)
					require.NoError(p, err)
					assert.ElementsMatch(p, keysOf(own), []string{s.PK, s.SK, s.Type, s.TTL, "owner", "lease", "beat", "expires"})
					assert.Equal(p, &types.AttributeValueMemberS{Value: "mortise.LockSession"}, own[s.Type])
					assert.EqualValues(p, 20_000, number(p.T, own["lease"]))
					assert.EqualValues(p, 0, number(p.T, own["beat"]))
					assert.InDelta(p, before.Add(20*time.Second).UnixMilli(), number(p.T, own["expires"]), 60_000)
					assert.InDelta(p, before.Add(7*24*time.Hour).Unix(), number(p.T, own[s.TTL]), 60)
				}
				near("fence", time.Millisecond, before)
				near(s.TTL, time.Second, before.Add(7*24*time.Hour))
				assert.ElementsMatch(p, keysOf(row), []string{s.PK, s.SK, s.Type, s.TTL, "line", "fence"})

				require.NoError(p, l.Release(ctx))
				row = p.raw(l)
				assert.Empty(p, lineIn(row))
				assert.Equal(p, l.Fence()+1, number(p.T, row["fence"]))
				near("since", time.Millisecond, before)
				assert.Positive(p, number(p.T, row["hold"]))
				near(s.TTL, time.Second, before.Add(7*24*time.Hour))
				assert.ElementsMatch(p, keysOf(row), []string{s.PK, s.SK, s.Type, s.TTL, "line", "fence", "since", "hold"})
			})
		})
	}
}

func keysOf(item table.Item) []string {
	var names []string
	for name := range maps.Keys(item) {
		names = append(names, name)
	}
	return names
}

func TestLockStandsBesideItsRow(t *testing.T) {
	contract(t, keys.Scheme{}, func(ctx context.Context, p *place) {
		orders := defineOrders(p.T, p.table)
		o, err := orders.Create(ctx, order{Tenant: "acme", ID: "42", Status: "open"})
		require.NoError(p, err)
		l, err := p.client.Acquire(ctx, lock.Beside(orders.Key(o)))
		require.NoError(p, err)
		assert.Equal(p, "TENANT#acme", l.Key().PK)
		var found []order
		var locks []lock.Record
		require.NoError(p, entity.Collect(ctx, p.table, l.Key().PK, entity.Into(orders, &found), entity.Into(p.client.Records(), &locks)))
		require.Len(p, found, 1)
		require.Len(p, locks, 1)
		assert.Equal(p, orders.Key(o).SK, locks[0].Of)
		assert.Equal(p, orders.Key(o).PK, locks[0].Partition)
		assert.True(p, locks[0].Held())
		require.NoError(p, l.Commit(ctx, orders.UpdateOp(o, entity.Set("status", "done"))))
		got, err := orders.Get(ctx, o, entity.Consistent())
		require.NoError(p, err)
		assert.Equal(p, "done", got.Status)
	})
}

func TestUnknownAttributesSurvive(t *testing.T) {
	contract(t, keys.Scheme{}, func(ctx context.Context, p *place) {
		l, err := p.client.Acquire(ctx, lock.Name("report"))
		require.NoError(p, err)
		require.NoError(p, p.table.Write(ctx, table.Update(l.Key(), table.Attr("note").Set("kept"))))
		require.NoError(p, l.Renew(ctx))
		require.NoError(p, l.Release(ctx))
		l, err = p.client.Acquire(ctx, lock.Name("report"))
		require.NoError(p, err)
		assert.Equal(p, &types.AttributeValueMemberS{Value: "kept"}, p.raw(l)["note"])
	})
}

// lockRow is a lock row as another client would have left it: held under a lease of its own that has long
// ended, or free.
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

// Rows in order are taken, so that the tests of others show what their change does.
func TestForeignClientsRowsAreTaken(t *testing.T) {
	contract(t, keys.Scheme{}, func(ctx context.Context, p *place) {
		key := p.keyOf(lock.Name("report"))
		for _, held := range []bool{false, true} {
			require.NoError(p, p.table.Write(ctx, table.Put(p.lockRow(key, held, nil))))
			l, err := p.client.TryAcquire(ctx, lock.Name("report"))
			require.NoError(p, err)
			if held {
				assert.EqualValues(p, 8, l.Fence())
			} else {
				assert.EqualValues(p, 7, l.Fence(), "its release has counted one up")
			}
			require.NoError(p, l.Release(ctx))
		}
	})
}

// Whatever is wrong with a lock row: a few requests, a typed error, nothing granted and nothing overwritten
// but the time to live. What is wrong with a row that is held, or of another type, costs one request of
// TryAcquire. The rows are takeable otherwise.
func TestMalformedRowsAreRefused(t *testing.T) {
	canary, num := text("canary"), func(v string) types.AttributeValue { return &types.AttributeValueMemberN{Value: v} }
	null, yes := &types.AttributeValueMemberNULL{Value: true}, &types.AttributeValueMemberBOOL{Value: true}
	list := listOf(canary)
	set := func(name string, v types.AttributeValue) func(table.Item) { return func(i table.Item) { i[name] = v } }
	drop := func(name string) func(table.Item) { return func(i table.Item) { delete(i, name) } }
	behind := func(v types.AttributeValue) func(table.Item) {
		return func(i table.Item) { i["line"] = listOf(append(lineIn(i), v)...) }
	}
	type bad struct {
		name   string
		held   bool
		change func(table.Item)
		want   error
	}
	var cases []bad
	add := func(name string, held bool, want error, changes ...func(table.Item)) {
		for i, c := range changes {
			cases = append(cases, bad{fmt.Sprintf("%s/%d/held=%v", name, i, held), held, c, want})
		}
	}
	for _, held := range []bool{false, true} {
		add("type", held, lock.ErrNotLock, drop("type"), set("type", text("Order")), set("type", num("1")), set("type", null))
		add("fence", held, lock.ErrMalformed, drop("fence"), set("fence", canary), set("fence", null), set("fence", num("0")), set("fence", num("-1")),
			set("fence", num("9223372036854775807")), set("fence", num("1e30")))
		for _, name := range []string{"since", "hold", "writes", "edits", "ran", "running", "failed", "forced_fence"} {
			add(name, held, lock.ErrMalformed, set(name, canary), set(name, null), set(name, num("-1")), set(name, num("0.5")))
		}
		add("forced", held, lock.ErrMalformed, set("forced", num("5")), set("forced", list), set("forced", null))
		add("nonce of the first edition", held, lock.ErrMalformed, set("nonce", canary), set("nonce", num("1")))
		add("line", held, lock.ErrMalformed, set("line", canary), set("line", null), set("line", yes), set("line", num("5")))
	}
	for _, element := range []types.AttributeValue{num("1"), null, text(""), canary, list, text("canary@1 another"), text("canary/x@1764000000123 another")} {
		add("line of another", true, lock.ErrMalformed, set("line", listOf(element)), behind(element))
	}

	contract(t, keys.Scheme{}, func(ctx context.Context, p *place) {
		key := p.keyOf(lock.Name("report"))
		most := int64(0)
		for _, tc := range cases {
			item := p.lockRow(key, tc.held, tc.change)
			require.NoError(p, p.table.Write(ctx, table.Put(item)), tc.name)
			for how, acquire := range map[string]func(context.Context, lock.Target, ...lock.Option) (*lock.Lease, error){
				"TryAcquire": p.client.TryAcquire, "Acquire": p.client.Acquire,
			} {
				var err error
				cost := totals(ctx, func(ctx context.Context) {
					// A wait would be an error of the other kind.
					ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
					defer cancel()
					_, err = acquire(ctx, lock.Name("report"))
				})
				require.ErrorIs(p, err, tc.want, tc.name)
				assert.NotErrorIs(p, err, lock.ErrHeld, tc.name)
				most = max(most, cost.Requests)
				if tc.want == lock.ErrNotLock { //nolint:errorlint // the case's own
					assert.EqualValues(p, 1, cost.Requests, "%s, %s", tc.name, how)
				}
				assert.NotContains(p, err.Error(), "canary", tc.name)
				assert.NotContains(p, err.Error(), "report", tc.name)
			}
			_, err := p.client.Inspect(ctx, lock.Name("report"))
			require.ErrorIs(p, err, tc.want, tc.name)
			got, err := p.table.Get(ctx, key, true)
			require.NoError(p, err)
			if tc.want != lock.ErrNotLock { //nolint:errorlint // the case's own
				got["ttl"] = item["ttl"] // a ticket may have been entered, and taken out again
			}
			require.True(p, attrvalue.SameItem(item, got), "%s: %v", tc.name, got)
		}
		testkit.Check(p, "B3, one thing wrong at a time", testkit.AtLeast(len(cases), "malformed rows refused, none granted", 60),
			testkit.AtMost(most, "requests at most", 2))
	})
}

// A fence that is no integer cannot be refused by a condition.
func TestFractionalFenceIsNotGranted(t *testing.T) {
	contract(t, keys.Scheme{}, func(ctx context.Context, p *place) {
		key := p.keyOf(lock.Name("report"))
		item := p.lockRow(key, false, func(i table.Item) { i["fence"] = &types.AttributeValueMemberN{Value: "1.5"} })
		require.NoError(p, p.table.Write(ctx, table.Put(item)))
		_, err := p.client.TryAcquire(ctx, lock.Name("report"))
		require.ErrorIs(p, err, lock.ErrMalformed)
		got, err := p.table.Get(ctx, key, true)
		require.NoError(p, err)
		assert.Empty(p, lineIn(got), "taken out again")
	})
}

// However long ago it was acquired: only its session says whether the holder lives.
func TestSessionsLockIsTakenOnlyWhenTheSessionIsDead(t *testing.T) {
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

func TestGuardDecidesInTheTransaction(t *testing.T) {
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
		// Both fail: the lock comes first, as nothing else counts then.
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

		// In a transaction of the caller's own.
		err = p.table.Write(ctx, table.Put(p.table.KeyItem(keys.NewKey("ROW", "3"))), l.Guard())
		require.ErrorIs(p, err, lock.ErrLost)
		require.ErrorAs(p, err, &failed)
		assert.Equal(p, 1, failed.Index)
	})
}

func TestWriteRefusesWhatCannotBeSent(t *testing.T) {
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

func TestFencesIncrease(t *testing.T) {
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
