package lock_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/entity"
	"github.com/mortise-go/mortise/internal/attrvalue"
	"github.com/mortise-go/mortise/internal/testkit"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
)

func TestRow_IsAsDocumented(t *testing.T) {
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

func TestRow_StandsBesideTheRowItLocks(t *testing.T) {
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

func TestRow_KeepsUnknownAttributes(t *testing.T) {
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

// Rows in order are taken. So the tests of other rows show what their change does.
func TestRow_OfAnotherClientIsTaken(t *testing.T) {
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

// Whatever is wrong with a lock row: a few requests, a typed error, nothing granted, and nothing overwritten but the time to
// live. If the row is held, or of another type, TryAcquire sends one request. Apart from the fault, the rows could be taken.
func TestRow_MalformedOneIsRefused(t *testing.T) {
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
		// A held lock keeps the session open, however slow the engine is: to open it is one more request.
		_, err := p.client.Acquire(ctx, lock.Name("another"))
		require.NoError(p, err)
		most := int64(0)
		for _, tc := range cases {
			item := p.lockRow(key, tc.held, tc.change)
			require.NoError(p, p.table.Write(ctx, table.Put(item)), tc.name)
			same := func(got table.Item) bool {
				if tc.want != lock.ErrNotLock { //nolint:errorlint // the case's own
					got["ttl"] = item["ttl"] // a ticket may have been entered, and taken out again
				}
				return attrvalue.SameItem(item, got)
			}
			for how, acquire := range map[string]func(context.Context, lock.Target, ...lock.Option) (*lock.Lease, error){
				"TryAcquire": p.client.TryAcquire, "Acquire": p.client.Acquire,
			} {
				var err error
				cost := totals(ctx, func(ctx context.Context) {
					// A wait would end with another error.
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

				got := p.await(ctx, key, same)
				shown, err := table.ItemToJSON(got)
				require.NoError(p, err)
				require.True(p, same(got), "%s, %s: %s", tc.name, how, shown)
			}
			_, err = p.client.Inspect(ctx, lock.Name("report"))
			require.ErrorIs(p, err, tc.want, tc.name)
		}
		testkit.Check(p, "B3, one thing wrong at a time", testkit.AtLeast(len(cases), "malformed rows refused, none granted", 60),
			testkit.AtMost(most, "requests at most", 2))
	})
}

// A condition cannot refuse a fence that is no integer.
func TestRow_FractionalFenceGrantsNothing(t *testing.T) {
	contract(t, keys.Scheme{}, func(ctx context.Context, p *place) {
		key := p.keyOf(lock.Name("report"))
		item := p.lockRow(key, false, func(i table.Item) { i["fence"] = &types.AttributeValueMemberN{Value: "1.5"} })
		require.NoError(p, p.table.Write(ctx, table.Put(item)))
		_, err := p.client.TryAcquire(ctx, lock.Name("report"))
		require.ErrorIs(p, err, lock.ErrMalformed)
		got := p.await(ctx, key, func(got table.Item) bool { return len(lineIn(got)) == 0 })
		assert.Empty(p, lineIn(got), "taken out again")
	})
}

// await reads a row until it is as wanted, or for 10 s, and returns it. A refused call waits only for a moment until its ticket has left
// the row, and a slow engine takes longer.
func (p *place) await(ctx context.Context, key keys.Key, wanted func(table.Item) bool) table.Item {
	end := time.Now().Add(10 * time.Second)
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		got, err := p.table.Get(ctx, key, true)
		require.NoError(p, err)
		if wanted(got) || time.Now().After(end) {
			return got
		}
		time.Sleep(pause)
	}
}
