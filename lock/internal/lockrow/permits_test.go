package lockrow_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock/internal/lockrow"
	"github.com/mortise-go/mortise/table"
)

// permits has a row of 2 permits, which tickets from 1 to n have entered: their stays are 1000 and so on.
func (b *bench) permits(n int64) (row lockrow.Row) {
	b.Helper()
	row = b.apply(b.rows.Enter(b.key, permit(1, true)))
	for i := int64(2); i <= n; i++ {
		row = b.apply(b.rows.Enter(b.key, permit(i, false)))
	}
	return row
}

func permit(n int64, isNew bool) lockrow.Entry {
	e := entry(n)
	e.Permits, e.New = 2, isNew
	return e
}

func stay(n, k int64) lockrow.Holding {
	return lockrow.Holding{ID: ticket(n).ID, Fence: k, Kind: lockrow.Permit, Text: ticket(n).String()}
}

func numbers(list ...string) types.AttributeValue {
	l := &types.AttributeValueMemberL{}
	for _, v := range list {
		l.Value = append(l.Value, n(v))
	}
	return l
}

func TestPermits_TheFirstInLineHold(t *testing.T) {
	onEngines(t, nil, func(b *bench) {
		b.refused(b.rows.Enter(b.key, permit(1, false)))
		require.Nil(t, b.item(), "it changes the row that there is")
		row := b.permits(3)
		assert.Equal(t, []int64{1000, 1001, 1002}, row.Stays)
		assert.Equal(t, int64(1003), row.Fence, "the next stay")
		assert.Equal(t, 2, row.Holders())
		for id, want := range map[string]bool{
			"SESSION/1": true, "SESSION/2": true, "SESSION/3": false, "SESSION/4": false,
		} {
			assert.Equal(t, want, row.Granted(id), id)
		}
		assert.Equal(t, 2, row.Place("SESSION/3"))
		assert.Negative(t, row.Place("SESSION/4"))
		assert.Equal(t, stay(2, 1001), row.Holding(1))
		b.refused(b.rows.Enter(b.key, permit(4, true)))
		b.refused(b.rows.Enter(b.key, permit(2, false)))
		row = b.apply(b.rows.Release(b.key, stay(2, 1001), row.Exit(stay(2, 1001), 0), change))
		assert.Equal(t, []int64{1000, 1002}, row.Stays)
		assert.True(t, row.Granted("SESSION/3"))
		assert.Equal(t, change.Since, row.Since)
		row = b.apply(b.rows.Enter(b.key, permit(2, false)))
		assert.Equal(t, int64(1003), row.Stays[2], "the same ticket, by a late copy, has another stay")
	})
}

func TestPermits_EnterIfOneIsFree(t *testing.T) {
	onEngines(t, nil, func(b *bench) {
		free := func(n int64) lockrow.Entry {
			e := permit(n, false)
			e.IfFree = true
			return e
		}
		b.permits(1)
		b.refused(b.rows.Enter(b.key, free(1)))
		row := b.apply(b.rows.Enter(b.key, free(2)))
		assert.True(t, row.Granted("SESSION/2"))
		b.refused(b.rows.Enter(b.key, free(3)))
		for i := int64(3); i <= lockrow.Cap; i++ {
			b.apply(b.rows.Enter(b.key, permit(i, false)))
		}
		row = b.refused(b.rows.Enter(b.key, permit(lockrow.Cap+1, false)))
		assert.Len(t, row.Line, lockrow.Cap)
	})
}

func TestPermits_AndALockRefuseEachOther(t *testing.T) {
	onEngines(t, nil, func(b *bench) {
		b.permits(1)
		other := permit(2, false)
		other.Permits = 3
		free := entry(2)
		free.IfFree = true
		for _, e := range []lockrow.Entry{entry(2), free, other} {
			row := b.refused(b.rows.Enter(b.key, e))
			assert.EqualValues(t, 2, row.Permits)
		}
		require.NoError(t, b.tbl.Write(b.ctx, table.Delete(b.key)))
		b.enter(1)
		for _, isNew := range []bool{false, true} {
			row := b.refused(b.rows.Enter(b.key, permit(2, isNew)))
			assert.Zero(t, row.Permits)
		}
	})
}

func TestPermits_AreGuardedByTheirStay(t *testing.T) {
	onEngines(t, nil, func(b *bench) {
		row := b.permits(3)
		write := func(h lockrow.Holding) error {
			return b.tbl.Write(b.ctx, table.Update(keys.NewKey("ORDER#1", "ORDER"), table.Attr("n").Add(1)), b.rows.GuardedWrite(b.key, h, 7))
		}
		require.NoError(t, write(stay(1, 1000)))
		require.NoError(t, write(stay(2, 1001)))
		require.ErrorIs(t, write(stay(2, 999)), table.ErrCondition)
		b.apply(b.rows.Release(b.key, stay(1, 1000), row.Exit(stay(1, 1000), 0), change))
		b.apply(b.rows.Enter(b.key, permit(1, false))) // a late copy
		require.ErrorIs(t, write(stay(1, 1000)), table.ErrCondition, "a permit that was given back writes no more")
		require.NoError(t, write(stay(2, 1001)), "it has moved up")
		seen, err := names.Parse(b.item())
		require.NoError(t, err)
		row = b.apply(b.rows.SetPermits(b.key, &seen, 3, 4100000000))
		assert.EqualValues(t, 3, row.Permits)
		require.NoError(t, write(stay(2, 1001)))
		b.refused(b.rows.SetPermits(b.key, &seen, 4, 4100000000))
		row = b.apply(b.rows.SetPermits(b.key, &row, 2, 4100000000))
		b.refused(b.rows.SetPermits(b.key, &seen, 3, 4100000000)) // a late copy of the first one
		row = b.apply(b.rows.Prolong(b.key, stay(2, 1001), 4200000000))
		assert.Equal(t, int64(4200000000), row.TTL)
		b.refused(b.rows.Prolong(b.key, stay(1, 1000), 4300000000))
	})
}

func TestPermits_LeaveOnlyTheirPlace(t *testing.T) {
	onEngines(t, nil, func(b *bench) {
		row := b.permits(4)
		second := stay(2, 1001)
		b.refused(b.rows.Release(b.key, second, lockrow.Exit{}, change))
		b.refused(b.rows.Release(b.key, second, lockrow.Exit{Place: 2}, change))
		b.refused(b.rows.Release(b.key, stay(2, 1000), row.Exit(second, 0), change))
		b.refused(b.rows.Release(b.key, stay(3, 1001), row.Exit(second, 0), change))
		b.apply(b.rows.Release(b.key, stay(1, 1000), row.Exit(stay(1, 1000), 0), change))
		now := b.refused(b.rows.Release(b.key, second, row.Exit(second, 0), change))
		assert.True(t, now.Holds(second), "it has moved up")
		assert.NotEqual(t, row.Exit(second, 0), now.Exit(second, 0))
		moved := now
		moved.Stays = []int64{1001, 1003, 1002}
		b.refused(b.rows.Evict(b.key, &moved, []int{0, 1}, change))
		now = b.apply(b.rows.Evict(b.key, &now, []int{0, 2}, change))
		assert.Equal(t, []string{"SESSION/3"}, ids(now))
		assert.Equal(t, []int64{1002}, now.Stays)
		assert.Equal(t, lockrow.Lost, now.Released(second, false, ""))
		assert.Equal(t, lockrow.Perhaps, now.Released(second, true, ""))
		now = b.apply(b.rows.Force(b.key, &now, 0, change, "by hand"))
		assert.Equal(t, "by hand", b.reason())
		assert.True(t, now.ForcedSince(stay(3, 1002)))
		assert.False(t, now.ForcedSince(stay(9, 1004)), "whose stay has begun since")
		assert.Equal(t, lockrow.Unclear, now.Released(second, true, ""))
		row = b.apply(b.rows.Enter(b.key, permit(9, false)))
		assert.Equal(t, []int64{1004}, row.Stays)
	})
}

func TestPermits_Released(t *testing.T) {
	for name, tt := range map[string]struct {
		row  lockrow.Row
		want lockrow.Released
	}{
		"others hold on":                {lockrow.Row{Permits: 2, Fence: 1002, Line: []lockrow.Ticket{ticket(2)}, Stays: []int64{1001}}, lockrow.Perhaps},
		"a force before its stay began": {lockrow.Row{Permits: 2, Fence: 1001, ForcedFence: 1000}, lockrow.Perhaps},
		"a force since its stay began":  {lockrow.Row{Permits: 2, Fence: 1001, ForcedFence: 1001}, lockrow.Unclear},
		"the row was deleted":           {lockrow.Row{}, lockrow.Lost},
		"the row is that of a lock":     {lockrow.Row{Fence: 2000}, lockrow.Lost},
		"the row was made anew before":  {lockrow.Row{Permits: 2, Fence: 1000}, lockrow.Lost},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, tt.want, tt.row.Released(stay(1, 1000), true, ""))
			assert.Equal(t, lockrow.Lost, tt.row.Released(stay(1, 1000), false, ""))
		})
	}
}

func TestPermits_AreInTheIndexWhileOneIsHeld(t *testing.T) {
	onEngines(t, &lockrow.Index{PK: "gpk", SK: "gsk"}, func(b *bench) {
		row := b.permits(2)
		assert.Equal(t, s("LOCKS#1"), b.item()["gpk"])
		b.refused(b.rows.Release(b.key, stay(1, 1000), lockrow.Exit{Last: true}, change))
		row = b.apply(b.rows.Release(b.key, stay(2, 1001), row.Exit(stay(2, 1001), 0), change))
		assert.NotNil(t, b.item()["gpk"])
		b.refused(b.rows.Release(b.key, stay(1, 1000), lockrow.Exit{}, change))
		b.apply(b.rows.Release(b.key, stay(1, 1000), row.Exit(stay(1, 1000), 0), change))
		assert.Nil(t, b.item()["gpk"])
	})
}

func TestPermits_TakesNoMoreThanARequestHolds(t *testing.T) {
	onEngines(t, nil, func(b *bench) {
		row := b.permits(lockrow.Cap)
		row = b.apply(b.rows.Evict(b.key, &row, row.Of("SESSION"), change))
		assert.Len(t, row.Line, lockrow.Cap-25)
		assert.Equal(t, int64(1025), row.Stays[0])
	})
}

func TestPermits_RefusesRowsThatAreNotInOrder(t *testing.T) {
	valid := func() table.Item {
		return table.Item{
			"type": s("mortise.Lock"), "permits": n("2"), "line": list(ticket(1), ticket(2)), "stays": numbers("7", "9"), "next": numbers("10"),
		}
	}
	row, err := names.Parse(valid())
	require.NoError(t, err)
	assert.Equal(t, lockrow.Row{Line: []lockrow.Ticket{ticket(1), ticket(2)}, Permits: 2, Stays: []int64{7, 9}, Fence: 10}, row)
	for name, change := range map[string]func(table.Item){
		"a fence as well":       func(i table.Item) { i["fence"] = n("7") },
		"one permit":            func(i table.Item) { i["permits"] = n("1") },
		"too many permits":      func(i table.Item) { i["permits"] = n("101") },
		"permits as a string":   func(i table.Item) { i["permits"] = s("2") },
		"no line":               func(i table.Item) { delete(i, "line"); i["stays"] = numbers() },
		"no stays":              func(i table.Item) { delete(i, "stays") },
		"no stays, no tickets":  func(i table.Item) { delete(i, "stays"); i["line"] = list() },
		"kept beyond the stays": func(i table.Item) { i["kept"] = n("10") },
		"fewer stays":           func(i table.Item) { i["stays"] = numbers("7") },
		"stays as strings":      func(i table.Item) { i["stays"] = list(ticket(1), ticket(2)) },
		"stays out of order":    func(i table.Item) { i["stays"] = numbers("9", "7") },
		"a stay twice":          func(i table.Item) { i["stays"] = numbers("9", "9") },
		"a stay of 0":           func(i table.Item) { i["stays"] = numbers("0", "9") },
		"no next":               func(i table.Item) { delete(i, "next") },
		"an empty next":         func(i table.Item) { i["next"] = numbers() },
		"a next of before":      func(i table.Item) { i["next"] = numbers("9") },
		"a next out of range":   func(i table.Item) { i["next"] = numbers("9223372036854775807") },
		"two next":              func(i table.Item) { i["next"] = numbers("10", "11") },
		"without line and next": func(i table.Item) { i["line"], i["stays"], i["next"] = list(), numbers(), numbers() },
	} {
		t.Run(name, func(t *testing.T) {
			item := valid()
			change(item)
			_, err := names.Parse(item)
			assert.ErrorIs(t, err, lockrow.ErrMalformed)
		})
	}
}

func TestPermits_ARowThatIsNotInOrderIsNotEntered(t *testing.T) {
	onEngines(t, nil, func(b *bench) {
		b.permits(2)
		bad := b.item()
		bad["stays"] = numbers("1000")
		require.NoError(t, b.tbl.Write(b.ctx, table.Put(bad)))
		b.refused(b.rows.Enter(b.key, permit(3, false)))
		bad["stays"], bad["next"] = numbers("1000", "1001"), numbers()
		require.NoError(t, b.tbl.Write(b.ctx, table.Put(bad)))
		_, err := b.tbl.Apply(b.ctx, b.rows.Enter(b.key, permit(3, false)), table.ReturnNew)
		require.ErrorIs(t, err, table.ErrInvalid)
	})
}

func TestPermits_AResetKeepsTheirNumber(t *testing.T) {
	onEngines(t, nil, func(b *bench) {
		b.permits(2)
		for permits, want := range map[string]int64{"2": 2, "1": 0} {
			bad := b.item()
			bad["stays"], bad["permits"] = s("not a list"), n(permits)
			require.NoError(t, b.tbl.Write(b.ctx, table.Put(bad)))
			row := b.apply(b.rows.Reset(b.key, bad, 5000, change, "mended"))
			assert.Equal(t, want, row.Permits)
			assert.Equal(t, int64(5000), row.Fence)
			assert.Empty(t, row.Line)
			if want == 0 {
				b.enter(3)
			} else {
				b.apply(b.rows.Enter(b.key, permit(3, false)))
			}
			require.NoError(t, b.tbl.Write(b.ctx, table.Delete(b.key)))
			b.permits(2)
		}
	})
}

// Whether the row leaves the index is decided by whether tickets stay behind those that are removed.
func TestPermits_LeaveTheIndexTogether(t *testing.T) {
	onEngines(t, &lockrow.Index{PK: "held", SK: "listed"}, func(b *bench) {
		listed := func(n int64, isNew bool) lockrow.Entry {
			e := permit(n, isNew)
			e.Shard, e.Listed = "LOCKS#00", "1"
			return e
		}
		b.apply(b.rows.Enter(b.key, listed(1, true)))
		seen := b.apply(b.rows.Enter(b.key, listed(2, false)))
		row := b.apply(b.rows.Enter(b.key, listed(3, false)))
		b.refused(b.rows.Evict(b.key, &seen, []int{0, 1}, change)) // somebody has come
		row = b.apply(b.rows.Evict(b.key, &row, []int{0, 1}, change))
		assert.True(t, row.Granted("SESSION/3"))
		assert.Contains(t, b.item(), "held")
		row = b.apply(b.rows.Enter(b.key, listed(4, false)))
		row = b.apply(b.rows.Evict(b.key, &row, []int{0, 1}, change))
		assert.Empty(t, row.Line)
		assert.NotContains(t, b.item(), "held")
	})
}
