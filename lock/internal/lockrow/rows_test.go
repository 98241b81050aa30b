package lockrow_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/engines"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock/internal/lockrow"
	"github.com/mortise-go/mortise/table"
)

func TestMain(m *testing.M) { os.Exit(engines.Main(m)) }

// bench is one lock's row on an engine.
type bench struct {
	*testing.T
	ctx  context.Context
	tbl  *table.Table
	rows *lockrow.Rows
	key  keys.Key
}

func onEngines(t *testing.T, index *lockrow.Index, f func(b *bench)) {
	t.Helper()
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		schema := table.Schema{Name: e.TableName(t)}
		if index != nil {
			schema.Indexes = []table.Index{{Name: "held", PK: index.PK, SK: index.SK}}
		}
		tbl, err := table.Open(e.Client(), schema)
		require.NoError(t, err)
		require.NoError(t, tbl.Ensure(t.Context()))
		f(&bench{T: t, ctx: t.Context(), tbl: tbl, rows: lockrow.NewRows(names, index, tbl), key: keys.NewKey("LOCK#a", "LOCK#a")})
	})
}

// apply sends an operation that has to be applied, and returns the row afterwards.
func (b *bench) apply(op table.Op) lockrow.Row {
	b.Helper()
	item, err := b.tbl.Apply(b.ctx, op, table.ReturnNew)
	require.NoError(b, err)
	row, err := names.Parse(item)
	require.NoError(b, err)
	return row
}

// refused sends an operation that has to be refused, and returns the row that stands there.
func (b *bench) refused(op table.Op) lockrow.Row {
	b.Helper()
	before := b.item()
	_, err := b.tbl.Apply(b.ctx, op, table.ReturnNew)
	var failed *table.ConditionError
	require.ErrorAs(b, err, &failed)
	require.Equal(b, before, b.item(), "a refused update changes nothing")
	row, _ := names.Parse(failed.Item)
	return row
}

func (b *bench) item() table.Item {
	item, err := b.tbl.Get(b.ctx, b.key, true)
	if !errors.Is(err, table.ErrNotFound) {
		require.NoError(b, err)
	}
	return item
}

// reason is why the last change took the lock from its holder by force; empty where it did not.
func (b *bench) reason() string {
	reason, _ := b.item()["forced"].(*types.AttributeValueMemberS)
	if reason == nil {
		return ""
	}
	return reason.Value
}

func (b *bench) enter(n int64) lockrow.Row { b.Helper(); return b.apply(b.rows.Enter(b.key, entry(n))) }

func entry(n int64) lockrow.Entry {
	return lockrow.Entry{Ticket: ticket(n), Seed: 1000, TTL: 4000000000, Shard: "LOCKS#1", Listed: fmt.Sprintf("%015d", n)}
}

func ids(row lockrow.Row) (list []string) {
	for _, t := range row.Line {
		list = append(list, t.ID)
	}
	return list
}

func holding(n, fence int64) lockrow.Holding {
	return lockrow.Holding{ID: ticket(n).ID, Fence: fence}
}

var change = lockrow.Change{Since: at + 50, Hold: 50, TTL: 4100000000}

func TestLine_FirstComeFirstServed(t *testing.T) {
	onEngines(t, nil, func(b *bench) {
		row := b.enter(1)
		assert.True(t, row.Granted("SESSION/1"), "a new row")
		assert.Equal(t, int64(1000), row.Fence)
		row = b.enter(2)
		assert.False(t, row.Granted("SESSION/2"))
		assert.Equal(t, 1, row.Place("SESSION/2"))
		b.enter(3)
		row = b.apply(b.rows.Release(b.key, holding(1, 1000), lockrow.Exit{}, change))
		assert.Equal(t, []string{"SESSION/2", "SESSION/3"}, ids(row))
		assert.Equal(t, int64(1001), row.Fence)
		assert.Equal(t, change.Since, row.Since)
		assert.Equal(t, change.Hold, row.Hold)
		row = b.apply(b.rows.Pass(b.key, holding(2, 1001), ticket(20), change, lockrow.Data{Given: true, Value: s("of 20")}))
		assert.Equal(t, []string{"SESSION/20", "SESSION/3"}, ids(row))
		assert.Equal(t, s("of 20"), row.Data)
		row = b.apply(b.rows.Release(b.key, holding(20, 1002), lockrow.Exit{}, change))
		row = b.apply(b.rows.Release(b.key, holding(3, row.Fence), lockrow.Exit{}, change))
		assert.Empty(t, row.Line)
		row = b.enter(4)
		assert.True(t, row.Granted("SESSION/4"), "an empty line")
		assert.Equal(t, int64(1004), row.Fence, "the fence goes on")
	})
}

func TestEnter_RefusesWhatItMust(t *testing.T) {
	onEngines(t, nil, func(b *bench) {
		exists := entry(1)
		exists.Exists = true
		b.refused(b.rows.Enter(b.key, exists))
		require.Nil(t, b.item(), "no row was made")
		b.enter(1)
		row := b.refused(b.rows.Enter(b.key, entry(1)))
		assert.True(t, row.Granted("SESSION/1"), "its own effect")
		free := entry(2)
		free.IfFree = true
		row = b.refused(b.rows.Enter(b.key, free))
		assert.Negative(t, row.Place("SESSION/2"))
		first, held := row.First()
		require.True(t, held)
		assert.Equal(t, ticket(1), first, "the refusal names the holder")
		for i := int64(2); i <= lockrow.Cap; i++ {
			b.enter(i)
		}
		row = b.refused(b.rows.Enter(b.key, entry(lockrow.Cap+1)))
		assert.Len(t, row.Line, lockrow.Cap)
		assert.Less(t, len(ticket(1).String())*lockrow.Cap, 8<<10, "a full line is a few KB")
	})
}

func TestEnter_NeverChangesARowThatIsNoLock(t *testing.T) {
	onEngines(t, nil, func(b *bench) {
		order := b.tbl.KeyItem(b.key)
		order["type"], order["fence"], order["line"] = s("Order"), n("3"), list()
		require.NoError(t, b.tbl.Write(b.ctx, table.Put(order)))
		for _, free := range []bool{false, true} {
			e := entry(1)
			e.IfFree = free
			b.refused(b.rows.Enter(b.key, e))
		}
	})
}

func TestEnter_ARowThatIsNotInOrderGrantsNothing(t *testing.T) {
	onEngines(t, nil, func(b *bench) {
		bad := b.tbl.KeyItem(b.key)
		bad["type"], bad["fence"] = s("mortise.Lock"), n("1.5")
		require.NoError(t, b.tbl.Write(b.ctx, table.Put(bad)))
		item, err := b.tbl.Apply(b.ctx, b.rows.Enter(b.key, entry(1)), table.ReturnNew)
		require.NoError(t, err)
		_, err = names.Parse(item)
		require.ErrorIs(t, err, lockrow.ErrMalformed)
		seen := b.item()
		_, there := b.rows.Retract(b.key, seen, ticket(2).ID)
		assert.False(t, there, "another's place")
		op, there := b.rows.Retract(b.key, seen, ticket(1).ID)
		require.True(t, there)
		require.NoError(t, b.tbl.Write(b.ctx, op))
		require.ErrorIs(t, b.tbl.Write(b.ctx, op), table.ErrCondition)
		assert.Equal(t, n("1.5"), b.item()["fence"], "and is not counted up")

		bad["line"] = s("not a list")
		require.NoError(t, b.tbl.Write(b.ctx, table.Put(bad)))
		_, err = b.tbl.Apply(b.ctx, b.rows.Enter(b.key, entry(2)), table.ReturnNew)
		require.ErrorIs(t, err, table.ErrInvalid)

		require.NoError(t, b.tbl.Write(b.ctx, b.rows.Reset(b.key, b.item(), 2000, change, "mended by hand")))
		row := b.enter(3)
		assert.True(t, row.Granted("SESSION/3"))
		assert.Equal(t, int64(2000), row.Fence)
		assert.Equal(t, "mended by hand", b.reason())
		b.refused(b.rows.Reset(b.key, bad, 3000, change, "seen before"))
	})
}

func TestRelease_NeedsTheTicketAndTheFence(t *testing.T) {
	onEngines(t, nil, func(b *bench) {
		b.enter(1)
		b.enter(12)
		b.refused(b.rows.Release(b.key, holding(1, 999), lockrow.Exit{}, change))
		b.refused(b.rows.Release(b.key, holding(12, 1000), lockrow.Exit{}, change))
		b.refused(b.rows.Release(b.key, lockrow.Holding{ID: "SESSION", Fence: 1000}, lockrow.Exit{}, change))
		row := b.refused(b.rows.Release(b.key, lockrow.Holding{ID: "SESSION/", Fence: 1000}, lockrow.Exit{}, change))
		assert.True(t, row.Holds(holding(1, 1000)))
		b.refused(b.rows.Pass(b.key, holding(12, 1000), ticket(2), change, lockrow.Data{}))
		row.Fence++
		b.refused(b.rows.Force(b.key, &row, 0, change, "too late"))
	})
}

func TestRemove_OnlyItsOwnPlace(t *testing.T) {
	onEngines(t, nil, func(b *bench) {
		for i := range int64(3) {
			b.enter(i)
		}
		row := b.enter(3)
		moved := row
		moved.Line = []lockrow.Ticket{row.Line[0], row.Line[2], row.Line[1], row.Line[3], ticket(9)}
		b.refused(b.rows.Remove(b.key, &moved, 1, change))
		b.refused(b.rows.Remove(b.key, &moved, 4, change))
		row = b.apply(b.rows.Remove(b.key, &row, 2, change))
		assert.Equal(t, []string{"SESSION/0", "SESSION/1", "SESSION/3"}, ids(row))
		assert.Equal(t, int64(1000), row.Fence, "the first place has not changed")
		assert.Zero(t, row.Since)
		earlier := row
		earlier.Fence--
		b.refused(b.rows.Remove(b.key, &earlier, 0, change))
		row = b.apply(b.rows.Remove(b.key, &row, 0, change))
		assert.Equal(t, int64(1001), row.Fence, "or else two would hold under one fence")
	})
}

func TestEvict_TakesTheDeadAndNobodyElse(t *testing.T) {
	onEngines(t, nil, func(b *bench) {
		dead := func(n int64) lockrow.Entry {
			e := entry(n)
			e.Ticket = lockrow.SessionTicket("DEAD", n, at, "")
			return e
		}
		b.apply(b.rows.Enter(b.key, dead(1)))
		b.enter(2)
		b.apply(b.rows.Enter(b.key, dead(3)))
		b.enter(4)
		row := b.apply(b.rows.Enter(b.key, dead(5)))
		earlier := row
		earlier.Fence--
		b.refused(b.rows.Evict(b.key, &earlier, row.Of("DEAD"), change))
		moved := row
		moved.Line = []lockrow.Ticket{row.Line[0], row.Line[2], row.Line[1]}
		b.refused(b.rows.Evict(b.key, &moved, []int{0, 1}, change))
		row = b.apply(b.rows.Evict(b.key, &row, row.Of("DEAD"), change))
		assert.Equal(t, []string{"SESSION/2", "SESSION/4"}, ids(row))
		assert.Equal(t, int64(1001), row.Fence)
		own := entry(6)
		own.Ticket = lockrow.OwnTicket("OWN", at, time.Minute, "")
		row = b.apply(b.rows.Enter(b.key, own))
		assert.Empty(t, row.Of(""), "leases of their own have nothing in common")
	})
}

func TestReplace_OnlyWhereNobodyWaits(t *testing.T) {
	onEngines(t, nil, func(b *bench) {
		row := b.enter(1)
		row = b.apply(b.rows.Replace(b.key, &row, ticket(2), change, lockrow.Data{}, "", ""))
		assert.Equal(t, []string{"SESSION/2"}, ids(row))
		assert.Equal(t, int64(1001), row.Fence)
		b.enter(3)
		b.refused(b.rows.Replace(b.key, &row, ticket(4), change, lockrow.Data{}, "", ""))
	})
}

func TestForce_IsToldByTheRow(t *testing.T) {
	onEngines(t, nil, func(b *bench) {
		b.enter(1)
		b.enter(2)
		seen, err := names.Parse(b.item())
		require.NoError(t, err)
		row := b.apply(b.rows.Force(b.key, &seen, 0, change, "by hand"))
		assert.Equal(t, "by hand", b.reason())
		assert.Equal(t, int64(1000), row.ForcedFence)
		assert.Equal(t, []string{"SESSION/2"}, ids(row))
		row = b.refused(b.rows.Release(b.key, holding(1, 1000), lockrow.Exit{}, change))
		assert.Equal(t, lockrow.Lost, row.Released(holding(1, 1000), true, ""), "no attempt of its own did that")
		row = b.apply(b.rows.Release(b.key, holding(2, 1001), lockrow.Exit{}, change))
		assert.Empty(t, b.reason(), "the reason is that of the last change")
		assert.Equal(t, lockrow.Lost, row.Released(holding(1, 1000), true, ""), "the record of it stays")
	})
}

func TestGuard_HoldsForTheHolderAlone(t *testing.T) {
	onEngines(t, nil, func(b *bench) {
		b.enter(1)
		order := keys.NewKey("ORDER#1", "ORDER")
		write := func(h lockrow.Holding) error {
			return b.tbl.Write(b.ctx, table.Update(order, table.Attr("n").Add(1)), b.rows.Guard(b.key, h))
		}
		require.NoError(t, write(holding(1, 1000)))
		require.ErrorIs(t, write(holding(1, 999)), table.ErrCondition)
		require.ErrorIs(t, write(holding(2, 1000)), table.ErrCondition)
		b.apply(b.rows.Release(b.key, holding(1, 1000), lockrow.Exit{}, change))
		require.ErrorIs(t, write(holding(1, 1000)), table.ErrCondition)
	})
}

func TestGuardedWrite_IsAppliedInItsOrder(t *testing.T) {
	onEngines(t, nil, func(b *bench) {
		b.enter(1)
		h := holding(1, 1000)
		row := b.apply(b.rows.GuardedWrite(b.key, h, 1))
		assert.EqualValues(t, 1, row.Writes)
		b.apply(b.rows.GuardedWrite(b.key, h, 3))
		row = b.refused(b.rows.GuardedWrite(b.key, h, 2))
		assert.EqualValues(t, 3, row.Writes, "a later one was applied")
		row = b.refused(b.rows.GuardedWrite(b.key, h, 3))
		assert.EqualValues(t, 3, row.Writes)
		row = b.apply(b.rows.Pass(b.key, h, ticket(2), change, lockrow.Data{}))
		assert.EqualValues(t, 3, row.Writes, "the next holder counts on")
		assert.False(t, row.Holds(h))
		row = b.refused(b.rows.GuardedWrite(b.key, h, 4))
		assert.False(t, row.Holds(h))
		b.apply(b.rows.GuardedWrite(b.key, holding(2, 1001), 4))
	})
}

func TestSetData_IsAppliedInItsOrder(t *testing.T) {
	onEngines(t, nil, func(b *bench) {
		b.enter(1)
		h := holding(1, 1000)
		b.apply(b.rows.SetData(b.key, h, 2, lockrow.Data{Given: true, Value: s("second")}))
		row := b.refused(b.rows.SetData(b.key, h, 1, lockrow.Data{Given: true, Value: s("first")}))
		assert.Equal(t, s("second"), row.Data)
		assert.EqualValues(t, 2, row.Edits, "a later one was applied")
		row = b.apply(b.rows.SetData(b.key, h, 3, lockrow.Data{Given: true}))
		assert.Nil(t, row.Data)
		row = b.apply(b.rows.Release(b.key, h, lockrow.Exit{}, change))
		assert.EqualValues(t, 3, row.Edits, "the next holder counts on")
	})
}

func TestProlong_IsForTheHolderAlone(t *testing.T) {
	onEngines(t, nil, func(b *bench) {
		b.enter(1)
		b.refused(b.rows.Prolong(b.key, holding(1, 999), 4100000000))
		b.refused(b.rows.Prolong(b.key, holding(2, 1000), 4100000000))
		row := b.apply(b.rows.Prolong(b.key, holding(1, 1000), 4100000000))
		assert.Equal(t, int64(4100000000), row.TTL)
	})
}

// A release that was delivered twice, and answered the second time, is told from one that somebody else has forestalled.
func TestEchoes_GoByTheTimeThatWasWritten(t *testing.T) {
	onEngines(t, nil, func(b *bench) {
		b.enter(1)
		own, other := change, change
		other.Since++
		b.apply(b.rows.Release(b.key, holding(1, 1000), lockrow.Exit{}, own))
		row := b.refused(b.rows.Release(b.key, holding(1, 1000), lockrow.Exit{}, own))
		assert.True(t, row.Echoes(holding(1, 1000), own))
		assert.False(t, row.Echoes(holding(1, 1000), other))
		assert.False(t, row.Echoes(holding(1, 999), own))
	})
}

func TestRenew_ALateCopySetsNothingBack(t *testing.T) {
	onEngines(t, nil, func(b *bench) {
		e := entry(1)
		e.Ticket = lockrow.OwnTicket("OWN", at, time.Minute, "")
		seen := b.apply(b.rows.Enter(b.key, e))
		assert.Equal(t, int64(at+60_000), seen.Ends())
		h := lockrow.Holding{ID: "OWN", Fence: 1000}
		row := b.apply(b.rows.Renew(b.key, h, at+2000, 4100000000))
		assert.Equal(t, int64(at+62_000), row.Ends())
		row = b.refused(b.rows.Renew(b.key, h, at+1000, 4100000000))
		assert.Equal(t, int64(at+62_000), row.Ends())
		b.refused(b.rows.Renew(b.key, lockrow.Holding{ID: "OWN", Fence: 999}, at+4000, 4100000000))

		b.refused(b.rows.Enter(b.key, e))                                                  // a late copy of the entry
		b.refused(b.rows.Evict(b.key, &seen, []int{0}, change))                            // it was renewed since
		b.refused(b.rows.Replace(b.key, &seen, ticket(2), change, lockrow.Data{}, "", "")) // it was renewed since
		row = b.apply(b.rows.Evict(b.key, &row, []int{0}, change))
		assert.Empty(t, row.Line)
		e.Ticket = lockrow.OwnTicket("NEXT", at+3000, time.Minute, "")
		row = b.apply(b.rows.Enter(b.key, e))
		assert.Equal(t, e.Ticket.At+60_000, row.Ends(), "not by the renewal of the holder before")
	})
}

func TestEvict_SparesALeaseThatWasRenewedMeanwhile(t *testing.T) {
	onEngines(t, nil, func(b *bench) {
		e := entry(1)
		e.Ticket = lockrow.OwnTicket("OWN", at, time.Minute, "")
		h := lockrow.Holding{ID: "OWN", Fence: 1000}
		seen := b.apply(b.rows.Enter(b.key, e))
		for i := range int64(2) {
			now := b.apply(b.rows.Renew(b.key, h, at+i+1, 4100000000))
			b.refused(b.rows.Evict(b.key, &seen, []int{0}, change))
			b.refused(b.rows.Replace(b.key, &seen, entry(2).Ticket, change, lockrow.Data{}, "", ""))
			seen = now
		}
		row := b.apply(b.rows.Evict(b.key, &seen, []int{0}, change))
		assert.Empty(t, row.Line)
	})
}

func TestRun_IsRecordedOncePerInterval(t *testing.T) {
	onEngines(t, nil, func(b *bench) {
		begin := func(n, interval int64) lockrow.Entry {
			e := entry(n)
			e.IfFree, e.Run = true, interval
			return e
		}
		row := b.apply(b.rows.Enter(b.key, begin(1, 60_000)))
		assert.Equal(t, int64(60_000), row.Running)
		done := change
		done.Run, done.Ran = lockrow.FinishRun, 60_000
		row = b.apply(b.rows.Release(b.key, holding(1, 1000), lockrow.Exit{}, done))
		assert.Equal(t, int64(60_000), row.Ran)
		assert.Zero(t, row.Running)
		row = b.refused(b.rows.Enter(b.key, begin(2, 60_000)))
		assert.Equal(t, int64(60_000), row.Ran)
		b.enter(3)
		b.refused(b.rows.BeginRun(b.key, holding(3, 1001), 60_000))
		b.refused(b.rows.BeginRun(b.key, holding(3, 1000), 120_000))
		row = b.apply(b.rows.BeginRun(b.key, holding(3, 1001), 120_000))
		assert.Equal(t, int64(120_000), row.Running)
		broke := change
		broke.Run = lockrow.DropRun
		row = b.apply(b.rows.Release(b.key, holding(3, 1001), lockrow.Exit{}, broke))
		assert.Zero(t, row.Running)
		assert.Equal(t, int64(60_000), row.Ran)
	})
}

func TestIndex_HoldsWhatIsHeldOrAwaited(t *testing.T) {
	onEngines(t, &lockrow.Index{PK: "gpk", SK: "gsk"}, func(b *bench) {
		b.enter(1)
		assert.Equal(t, s("LOCKS#1"), b.item()["gpk"])
		b.enter(2)
		assert.Equal(t, s(fmt.Sprintf("%015d", 1)), b.item()["gsk"], "since it came to be held")
		b.refused(b.rows.Release(b.key, holding(1, 1000), lockrow.Exit{Last: true}, change))
		b.apply(b.rows.Release(b.key, holding(1, 1000), lockrow.Exit{}, change))
		assert.NotNil(t, b.item()["gpk"])
		b.refused(b.rows.Release(b.key, holding(2, 1001), lockrow.Exit{}, change))
		b.apply(b.rows.Release(b.key, holding(2, 1001), lockrow.Exit{Last: true}, change))
		assert.Nil(t, b.item()["gpk"])
		b.enter(3)
		b.apply(b.rows.Pass(b.key, holding(3, 1002), ticket(4), change, lockrow.Data{}))
		assert.NotNil(t, b.item()["gpk"], "a pass leaves the line as long as it is")
	})
}

func TestReleased_TellsWhatARefusalMeans(t *testing.T) {
	h := holding(1, 1000)
	tests := []struct {
		name   string
		row    lockrow.Row
		doubt  bool
		target string
		want   lockrow.Released
	}{
		{"another is first, and no attempt in doubt", lockrow.Row{Fence: 1001, Line: []lockrow.Ticket{ticket(2)}}, false, "", lockrow.Lost},
		{"another is first, an attempt in doubt", lockrow.Row{Fence: 1001, Line: []lockrow.Ticket{ticket(2)}}, true, "", lockrow.Perhaps},
		{"nobody is first, an attempt in doubt", lockrow.Row{Fence: 1007}, true, "", lockrow.Perhaps},
		{"a ghost of its ticket, under another fence", lockrow.Row{Fence: 1003, Line: []lockrow.Ticket{ticket(1)}}, true, "", lockrow.Perhaps},
		{"passed by an attempt in doubt", lockrow.Row{Fence: 1001, Line: []lockrow.Ticket{ticket(5)}}, true, "SESSION/5", lockrow.Passed},
		{"released by an attempt in doubt, and not passed to its target", lockrow.Row{Fence: 1001, Line: []lockrow.Ticket{ticket(2)}}, true, "SESSION/5", lockrow.Perhaps},
		{"its target is first under a later fence", lockrow.Row{Fence: 1002, Line: []lockrow.Ticket{ticket(5)}}, false, "SESSION/5", lockrow.Lost},
		{"taken by force", lockrow.Row{Fence: 1001, ForcedFence: 1000}, true, "", lockrow.Lost},
		{"a later one taken by force", lockrow.Row{Fence: 1005, ForcedFence: 1004}, true, "", lockrow.Unclear},
		{"the same, and no attempt in doubt", lockrow.Row{Fence: 1005, ForcedFence: 1004}, false, "", lockrow.Lost},
		{"an earlier one taken by force", lockrow.Row{Fence: 1001, ForcedFence: 999}, true, "", lockrow.Perhaps},
		{"the row was deleted and made anew under an old fence", lockrow.Row{Fence: 7}, true, "", lockrow.Lost},
		{"the row was deleted, and is one of permits now", lockrow.Row{Permits: 2, Fence: 2000}, true, "", lockrow.Lost},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			assert.Equal(t, tt.want, tt.row.Released(h, tt.doubt, tt.target))
		})
	}
}
