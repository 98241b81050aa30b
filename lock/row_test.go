package lock_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
)

const fenceBefore = 7

// lineRow is a lock row in order, with some tickets in its line.
func (w *world) lineRow(name string, tickets ...types.AttributeValue) table.Item {
	item := w.table.KeyItem(keys.NewKey("LOCK#"+name, "LOCK#"+name))
	item["type"], item["fence"], item["line"] = text("mortise.Lock"), numeral(fenceBefore), listOf(tickets...)
	item["since"], item["ttl"] = numeral(time.Now().UnixMilli()), numeral(time.Now().Add(48*time.Hour).Unix())
	return item
}

func listOf(elements ...types.AttributeValue) types.AttributeValue {
	return &types.AttributeValueMemberL{Value: append([]types.AttributeValue{}, elements...)}
}

// ticket is the n-th ticket of a session that nobody renews.
func ticket(n int) types.AttributeValue {
	return text(fmt.Sprintf("STRANGER/%d@%013d another", n, time.Now().UnixMilli()))
}

func tickets(n int) (list []types.AttributeValue) {
	for i := range n {
		list = append(list, ticket(i))
	}
	return list
}

// numberText is a number as it stands in a row, also one beyond int64.
func numberText(n string) types.AttributeValue { return &types.AttributeValueMemberN{Value: n} }

// lineIn are the elements of a row's line.
func lineIn(item table.Item) []types.AttributeValue {
	if l, ok := item["line"].(*types.AttributeValueMemberL); ok {
		return l.Value
	}
	return nil
}

func TestRow_InOrderIsTaken(t *testing.T) {
	for name, n := range map[string]int{"free": 0, "left by the dead": 3} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				require.NoError(t, w.table.Write(ctx, table.Put(w.lineRow("report", tickets(n)...))))
				waiting, cancel := context.WithTimeout(ctx, time.Hour)
				defer cancel()
				l, err := w.client(quiet).Acquire(waiting, lock.Name("report"))
				require.NoError(t, err)
				assert.Greater(t, l.Fence(), int64(fenceBefore)-1)
			})
		})
	}
}

// A row that no client of this package has written grants nothing to any call, and stays unchanged until an operator resets
// it.
func TestRow_NotInOrderGrantsNothing(t *testing.T) {
	for name, change := range map[string]func(table.Item){
		"free, the fence is no integer": func(r table.Item) { r["fence"] = numberText("1.5") },
		"free, the fence is huge":       func(r table.Item) { r["fence"] = numberText("1e100") },
		"free, the fence is negative":   func(r table.Item) { r["fence"] = numeral(-1) },
		"free, the fence is zero":       func(r table.Item) { r["fence"] = numeral(0) },
		"free, the fence is a string":   func(r table.Item) { r["fence"] = text("7") },
		"held, the fence is no integer": func(r table.Item) { r["fence"], r["line"] = numberText("1.5"), listOf(ticket(1)) },
		"held, without a fence":         func(r table.Item) { delete(r, "fence"); r["line"] = listOf(ticket(1)) },
		"the line is a string":          func(r table.Item) { r["line"] = text("STRANGER/1@1764000000123 another") },
		"the line is a map":             func(r table.Item) { r["line"] = &types.AttributeValueMemberM{} },
		"the line is a set":             func(r table.Item) { r["line"] = &types.AttributeValueMemberSS{Value: []string{"a"}} },
		"a number in the line":          func(r table.Item) { r["line"] = listOf(numeral(1)) },
		"a list in the line":            func(r table.Item) { r["line"] = listOf(listOf()) },
		"no ticket in the line":         func(r table.Item) { r["line"] = listOf(text("somebody")) },
		"an empty ticket in the line":   func(r table.Item) { r["line"] = listOf(text("")) },
		"no ticket behind one":          func(r table.Item) { r["line"] = listOf(ticket(1), text("somebody")) },
		"the same ticket twice":         func(r table.Item) { r["line"] = listOf(ticket(1), ticket(2), ticket(1)) },
		"a line that is too long":       func(r table.Item) { r["line"] = listOf(tickets(101)...) },
		"since is a string":             func(r table.Item) { r["since"] = text("yesterday") },
		"writes is no integer":          func(r table.Item) { r["writes"] = numberText("0.5") },
		"hold is negative":              func(r table.Item) { r["hold"] = numeral(-5) },
		"forced is a number":            func(r table.Item) { r["forced"] = numeral(1) },
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				c, op := w.client(quiet), w.client(quiet)
				targets := names(2)
				row := w.lineRow(targets[1].Name())
				change(row)
				put := func() (before table.Item) {
					require.NoError(t, w.table.Write(ctx, table.Put(row)))
					before, err := w.table.Get(ctx, keys.NewKey("LOCK#n01", "LOCK#n01"), true)
					require.NoError(t, err)
					return before
				}
				for how, acquire := range map[string]func(ctx context.Context) error{
					"Acquire": func(ctx context.Context) error { _, err := c.Acquire(ctx, targets[1]); return err },
					"Fixed": func(ctx context.Context) error {
						_, err := c.Acquire(ctx, targets[1], lock.Fixed(time.Minute))
						return err
					},
					"TryAcquire": func(ctx context.Context) error { _, err := c.TryAcquire(ctx, targets[1]); return err },
					"AcquireAll": func(ctx context.Context) error { _, err := c.AcquireAll(ctx, targets); return err },
					"TryAcquireAll": func(ctx context.Context) error {
						_, err := c.TryAcquireAll(ctx, targets)
						return err
					},
				} {
					before := put()
					waiting, cancel := context.WithTimeout(ctx, time.Hour)
					start := time.Now()
					ops := w.requests(func() { require.ErrorIs(t, acquire(waiting), lock.ErrMalformed, how) })
					cancel()
					assert.Less(t, time.Since(start), 5*time.Second, how)
					assert.LessOrEqual(t, len(ops), 6, "%s: %v", how, ops)
					_, err := c.Inspect(ctx, targets[1])
					require.ErrorIs(t, err, lock.ErrMalformed)
					time.Sleep(10 * time.Second)
					w.free(ctx, targets[:1]) // nobody has kept the other one
					after, err := w.table.Get(ctx, keys.NewKey("LOCK#n01", "LOCK#n01"), true)
					require.NoError(t, err)
					assert.Equal(t, before["fence"], after["fence"], "%s: it was not counted up", how)
					assert.Equal(t, before["line"], after["line"], "%s: nobody is left in the line", how)
				}
				seen := []string{""}
				for _, e := range lineIn(row)[:min(1, len(lineIn(row)))] {
					if s, ok := e.(*types.AttributeValueMemberS); ok && s.Value != "" {
						seen = append(seen, s.Value)
					}
				}
				for _, seen := range seen {
					put()
					require.NoError(t, op.ForceRelease(ctx, targets[1], seen, "it was not in order"), "seen %q", seen)
					waiting, cancel := context.WithTimeout(ctx, time.Hour)
					l, err := c.Acquire(waiting, targets[1])
					cancel()
					require.NoError(t, err, "seen %q", seen)
					assert.GreaterOrEqual(t, l.Fence(), int64(fenceBefore))
					require.NoError(t, l.Write(ctx, w.put("x")))
					require.NoError(t, l.Release(ctx))
				}
			})
		})
	}
}

// The greatest possible fence is not in order: none can follow it.
func TestRow_GreatestFenceGrantsNothing(t *testing.T) {
	for name, line := range map[string][]types.AttributeValue{"free": nil, "held": {text("STRANGER/1@1764000000123 another")}} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				row := w.lineRow("report", line...)
				row["fence"] = numeral(math.MaxInt64)
				require.NoError(t, w.table.Write(ctx, table.Put(row)))
				c := w.client(quiet)
				_, err := c.Acquire(ctx, lock.Name("report"))
				require.ErrorIs(t, err, lock.ErrMalformed)
				_, err = c.TryAcquire(ctx, lock.Name("report"))
				require.ErrorIs(t, err, lock.ErrMalformed)
				item, err := w.table.Get(ctx, keys.NewKey("LOCK#report", "LOCK#report"), true)
				require.NoError(t, err)
				assert.Equal(t, row["fence"], item["fence"])
				assert.Equal(t, lineIn(row), lineIn(item))
			})
		})
	}
}

// The lock is not passed on under a fence that no other one can follow.
func TestPass_AtTheGreatestFenceGrantsNothing(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		row := w.lineRow("report")
		row["fence"] = numeral(math.MaxInt64 - 1)
		require.NoError(t, w.table.Write(ctx, table.Put(row)))
		c := w.client(quiet)
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		require.Equal(t, int64(math.MaxInt64-1), l.Fence())
		ended := outcome(ctx, c, lock.Name("report"))
		time.Sleep(time.Second)
		require.NoError(t, l.Write(ctx, w.put("x")))
		require.NoError(t, l.Release(ctx))
		require.ErrorIs(t, <-ended, lock.ErrMalformed)
		item, err := w.table.Get(ctx, l.Key(), true)
		require.NoError(t, err)
		assert.Equal(t, numeral(math.MaxInt64), item["fence"])
		require.NoError(t, c.ForceRelease(ctx, lock.Name("report"), ""))
		_, err = c.TryAcquire(ctx, lock.Name("report"))
		require.NoError(t, err, "an operator has mended it")
	})
}

// A row that is mended gets a fence above every one that it has had, also above one that is ahead of all clocks.
func TestForceRelease_OfAMalformedRowRaisesTheFence(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(quiet)
		for _, fence := range []int64{time.Now().Add(day).UnixMilli(), 1<<53 + 1, 1<<60 + 100, math.MaxInt64/2 + 1, math.MaxInt64 - 9000} {
			for _, attribute := range []string{"fence", "stays"} {
				row := w.lineRow("report")
				row["line"] = text("no list")
				row["fence"] = numeral(1)
				if row[attribute] = numeral(fence); attribute == "stays" {
					row[attribute] = listOf(numeral(fence), numeral(1))
				}
				require.NoError(t, w.table.Write(ctx, table.Put(row)))
				require.NoError(t, c.ForceRelease(ctx, lock.Name("report"), ""))
				l, err := c.TryAcquire(ctx, lock.Name("report"))
				require.NoError(t, err)
				assert.Greater(t, l.Fence(), fence)
				require.NoError(t, l.Release(ctx))
			}
		}
	})
}

// ForceRelease without a ticket mends a row that is not in order. It does not remove the ticket of a holder whose row is in
// order.
func TestForceRelease_WithoutATicketTakesNothingFromAHolder(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c, op := w.client(quiet), w.client(quiet)
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		for _, seen := range []string{"", "STRANGER/1@1764000000123 another"} {
			require.Error(t, op.ForceRelease(ctx, lock.Name("report"), seen))
		}
		time.Sleep(time.Minute)
		require.NoError(t, context.Cause(l.Context()))
		require.NoError(t, l.Write(ctx, w.put("x")))
		require.NoError(t, l.Release(ctx))
	})
}

// Two editions of the protocol in one table would not see each other's holders.
func TestRow_OfTheFirstEditionIsRefusedWithItsReason(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		row := w.lineRow("report")
		delete(row, "line")
		delete(row, "since")
		row["nonce"], row["session"], row["owner"], row["lease"] = text("ANOTHER"), text("STRANGER"), text("another"), numeral(20_000)
		require.NoError(t, w.table.Write(ctx, table.Put(row)))
		c := w.client(quiet)
		for how, call := range map[string]func() error{
			"Acquire":    func() error { _, err := c.Acquire(ctx, lock.Name("report")); return err },
			"TryAcquire": func() error { _, err := c.TryAcquire(ctx, lock.Name("report")); return err },
			"AcquireAll": func() error {
				_, err := c.AcquireAll(ctx, []lock.Target{lock.Name("other"), lock.Name("report")})
				return err
			},
			"Inspect": func() error { _, err := c.Inspect(ctx, lock.Name("report")); return err },
		} {
			start := time.Now()
			err := call()
			require.ErrorIs(t, err, lock.ErrMalformed, how)
			assert.ErrorContains(t, err, "older version", how)
			assert.Less(t, time.Since(start), time.Second, how)
		}
		time.Sleep(time.Minute)
		item, err := w.table.Get(ctx, keys.NewKey("LOCK#report", "LOCK#report"), true)
		require.NoError(t, err)
		assert.Equal(t, row["nonce"], item["nonce"])
		assert.Equal(t, row["fence"], item["fence"])
		assert.Empty(t, lineIn(item))

		require.NoError(t, c.ForceRelease(ctx, lock.Name("report"), ""))
		l, err := c.TryAcquire(ctx, lock.Name("report"))
		require.NoError(t, err, "an operator has forced it")
		require.NoError(t, l.Release(ctx))

		// A row whose type only looks similar is the application's.
		row["type"] = text("Lock")
		require.NoError(t, w.table.Write(ctx, table.Put(row)))
		ops := w.requests(func() {
			ctx, cancel := context.WithTimeout(ctx, time.Minute)
			defer cancel()
			require.ErrorIs(t, c.ForceRelease(ctx, lock.Name("report"), ""), lock.ErrNotLock)
		})
		assert.Equal(t, []string{"GetItem"}, ops)
	})
}

func TestRow_OfTheApplicationIsNotTouched(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(lock.Config{})
		l, err := c.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		key := l.Key()
		require.NoError(t, l.Release(ctx))
		item := w.table.KeyItem(key)
		require.NoError(t, w.table.Write(ctx, table.Put(item)))
		ops := w.requests(func() { _, err = c.Acquire(ctx, lock.Name("report")) })
		require.ErrorIs(t, err, lock.ErrNotLock)
		assert.Len(t, ops, 1)
		got, err := w.table.Get(ctx, key, true)
		require.NoError(t, err)
		assert.Equal(t, item, got)
	})
}

func TestRow_ThatChangesUnderAWaiter(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(table.Item)
		want   error
	}{
		"malformed": {func(i table.Item) { i["since"] = &types.AttributeValueMemberS{Value: "x"} }, lock.ErrMalformed},
		"foreign":   {func(i table.Item) { i["type"] = &types.AttributeValueMemberS{Value: "Order"} }, lock.ErrNotLock},
		"deleted":   {nil, nil},
		"restored":  {func(i table.Item) { i["fence"] = &types.AttributeValueMemberN{Value: "5"} }, lock.ErrHeld},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				l, err := w.client(lock.Config{}).Acquire(ctx, lock.Name("report"), lock.Fixed(time.Hour))
				require.NoError(t, err)
				item, err := w.table.Get(ctx, l.Key(), true)
				require.NoError(t, err)
				time.AfterFunc(time.Minute, func() {
					if tc.change == nil {
						assert.NoError(t, w.table.Write(ctx, table.Delete(l.Key())))
						return
					}
					tc.change(item)
					assert.NoError(t, w.table.Write(ctx, table.Put(item)))
				})
				waiting, cancel := context.WithTimeout(ctx, 10*time.Minute)
				defer cancel()
				start := time.Now()
				c := w.client(lock.Config{})
				ops := w.requests(func() { _, err = c.Acquire(waiting, lock.Name("report")) })
				assert.Less(t, len(ops), 1500)
				if tc.want == nil {
					require.NoError(t, err)
					return
				}
				require.ErrorIs(t, err, tc.want)
				if errors.Is(tc.want, lock.ErrHeld) {
					require.ErrorIs(t, err, context.DeadlineExceeded)
					return
				}
				require.NotErrorIs(t, err, lock.ErrHeld)
				assert.InDelta(t, 60, time.Since(start).Seconds(), 2)
				got, err := w.table.Get(ctx, l.Key(), true)
				require.NoError(t, err)
				assert.Equal(t, item, got)
			})
		})
	}
}

// A row whose ticket names a session that makes no key ends no wait for another lock.
func TestRow_TicketOfAnImpossibleSessionEndsNoOtherWait(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		config := quiet
		config.SessionKey = "SESSION#{id:raw}"
		holder, c := w.client(config), w.client(config)
		l, err := holder.Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		ticket := fmt.Sprintf("A#B/1@%013d x", time.Now().UnixMilli())
		require.NoError(t, w.table.Write(ctx, table.Update(keys.NewKey("LOCK#bad", "LOCK#bad"),
			table.Attr("type").Set("mortise.Lock"), table.Attr("fence").Set(7), table.Attr("line").Set([]string{ticket}))))
		good := outcome(ctx, c, lock.Name("report"))
		time.Sleep(time.Second)
		short, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		_, err = c.Acquire(short, lock.Name("bad"))
		require.Error(t, err)
		require.NoError(t, l.Release(ctx))
		require.NoError(t, <-good)
	})
}

func TestRow_RenewedAtZeroIsNotAskedForAgainAndAgain(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(quiet)
		row := w.lineRow("report", text(fmt.Sprintf("ANOTHER@%013d+1000 another", time.Now().Add(-time.Hour).UnixMilli())))
		row["renewed"] = numeral(0)
		require.NoError(t, w.table.Write(ctx, table.Put(row)))
		w.latency(5 * time.Millisecond)
		short, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		assert.Less(t, len(w.requests(func() { _, _ = c.Acquire(short, lock.Name("report")) })), 100)
	})
}
