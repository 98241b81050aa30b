package lockrow_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock/internal/lockrow"
	"github.com/mortise-go/mortise/table"
)

func reader(n int64) lockrow.Entry {
	e := entry(n)
	e.Ticket = e.Ticket.AsReader()
	return e
}

func reads(n, fence int64) lockrow.Holding {
	r := reader(n).Ticket
	return lockrow.Holding{ID: r.ID, Fence: fence, Kind: lockrow.Shared, Text: r.String()}
}

// lineUp has readers (a positive number) and writers (a negative one) enter.
func (b *bench) lineUp(list ...int64) (row lockrow.Row) {
	b.Helper()
	for _, n := range list {
		e := reader(n)
		if n < 0 {
			e = entry(-n)
		}
		row = b.apply(b.rows.Enter(b.key, e))
	}
	return row
}

func TestShared_ReadersTogetherAndAWriterAlone(t *testing.T) {
	for name, tt := range map[string]struct {
		line            []int64
		holds, inTheWay int
	}{
		"nobody":                    {nil, 0, 0},
		"a writer":                  {[]int64{-1}, 1, 1},
		"a writer before readers":   {[]int64{-1, 2, 3}, 1, 1},
		"readers":                   {[]int64{1, 2, 3}, 3, 3},
		"a writer behind readers":   {[]int64{1, 2, -3}, 2, 3},
		"readers behind the writer": {[]int64{1, -2, 3, 4}, 1, 2},
		"writers behind readers":    {[]int64{1, -2, -3}, 1, 2},
	} {
		t.Run(name, func(t *testing.T) {
			var row lockrow.Row
			for _, n := range tt.line {
				ticket := ticket(max(n, -n))
				if n > 0 {
					ticket = ticket.AsReader()
				}
				row.Line = append(row.Line, ticket)
			}
			assert.Equal(t, tt.holds, row.Holders())
			assert.Equal(t, tt.inTheWay, row.Blocking())
			for i, ticket := range row.Line {
				assert.Equal(t, i < tt.holds, row.Granted(ticket.ID), "place %d", i)
			}
		})
	}
}

func TestShared_TheFenceChangesWithWriters(t *testing.T) {
	onEngines(t, nil, func(b *bench) {
		row := b.lineUp(1, 2, 3, -4, 5)
		assert.EqualValues(t, 1000, row.Fence)
		row = b.apply(b.rows.Release(b.key, reads(1, 1000), row.Exit(reads(1, 1000), 0), change))
		assert.EqualValues(t, 1000, row.Fence, "others read on")
		assert.Zero(t, row.Since)
		row = b.apply(b.rows.Release(b.key, reads(3, 1000), row.Exit(reads(3, 1000), 0), change))
		assert.EqualValues(t, 1000, row.Fence, "others read on")
		row = b.apply(b.rows.Release(b.key, reads(2, 1000), row.Exit(reads(2, 1000), 0), change))
		assert.EqualValues(t, 1001, row.Fence, "the writer holds")
		assert.Equal(t, change.Since, row.Since)
		row = b.apply(b.rows.Release(b.key, holding(4, 1001), lockrow.Exit{}, change))
		assert.EqualValues(t, 1002, row.Fence, "readers hold")
		row = b.apply(b.rows.Release(b.key, reads(5, 1002), row.Exit(reads(5, 1002), 0), change))
		assert.EqualValues(t, 1003, row.Fence, "also where nobody comes next")
		assert.Empty(t, row.Line)
	})
}

// What a reader has seen behind it, its leaving demands, both ways.
func TestShared_LeavingDemandsWhatItHasSeenNext(t *testing.T) {
	onEngines(t, nil, func(b *bench) {
		first := reads(1, 1000)
		alone := b.lineUp(1)
		b.lineUp(2)
		row := b.refused(b.rows.Release(b.key, first, alone.Exit(first, 0), change))
		assert.True(t, row.Holds(first))
		assert.NotEqual(t, alone.Exit(first, 0), row.Exit(first, 0))
		b.apply(b.rows.Release(b.key, reads(2, 1000), row.Exit(reads(2, 1000), 0), change))
		b.refused(b.rows.Release(b.key, first, row.Exit(first, 0), change))
		b.lineUp(-3)
		b.refused(b.rows.Release(b.key, first, row.Exit(first, 0), change))
		b.refused(b.rows.Release(b.key, reads(1, 999), lockrow.Exit{}, change))
		b.apply(b.rows.Release(b.key, first, lockrow.Exit{}, change))
	})
}

func TestShared_AReaderThatIsNotFirstLeavesUnderItsFence(t *testing.T) {
	onEngines(t, nil, func(b *bench) {
		row := b.lineUp(1, 2)
		b.refused(b.rows.Release(b.key, reads(2, 999), row.Exit(reads(2, 1000), 0), change))
		b.refused(b.rows.Release(b.key, reads(3, 1000), row.Exit(reads(2, 1000), 0), change))
		b.apply(b.rows.Release(b.key, reads(2, 1000), row.Exit(reads(2, 1000), 0), change))
	})
}

func TestShared_AReadersGuardIsTheFence(t *testing.T) {
	onEngines(t, nil, func(b *bench) {
		row := b.lineUp(1, 2, -3)
		write := func(h lockrow.Holding) error {
			return b.tbl.Write(b.ctx, table.Update(keys.NewKey("ORDER#1", "ORDER"), table.Attr("n").Add(1)), b.rows.GuardedWrite(b.key, h, 1))
		}
		require.NoError(t, write(reads(1, 1000)))
		require.NoError(t, write(reads(2, 1000)), "readers together")
		require.ErrorIs(t, write(reads(2, 999)), table.ErrCondition)
		require.ErrorIs(t, write(reads(9, 1000)), table.ErrCondition, "not in the line")
		require.ErrorIs(t, write(holding(3, 1000)), table.ErrCondition, "a writer that waits")
		row = b.apply(b.rows.Release(b.key, reads(1, 1000), row.Exit(reads(1, 1000), 0), change))
		require.NoError(t, write(reads(2, 1000)))
		b.apply(b.rows.Prolong(b.key, reads(2, 1000), 4200000000))
		b.apply(b.rows.Release(b.key, reads(2, 1000), row.Exit(reads(2, 1000), 0), change))
		b.lineUp(2)
		require.ErrorIs(t, write(reads(2, 1000)), table.ErrCondition, "a ghost behind a writer")
		require.NoError(t, write(holding(3, 1001)))
		b.refused(b.rows.Prolong(b.key, reads(2, 1000), 4300000000))
	})
}

func TestShared_EvictionIsAsTheLeaveAndIsRecorded(t *testing.T) {
	onEngines(t, nil, func(b *bench) {
		dead := func(n int64) lockrow.Entry {
			e := reader(n)
			e.Ticket = lockrow.SessionTicket("DEAD", n, at, "").AsReader()
			return e
		}
		b.apply(b.rows.Enter(b.key, dead(1)))
		b.apply(b.rows.Enter(b.key, dead(2)))
		seen := b.lineUp(3, -4)
		assert.Equal(t, []int{0, 1}, seen.Of("DEAD"))
		row := b.apply(b.rows.Evict(b.key, &seen, seen.Of("DEAD"), change))
		assert.EqualValues(t, 1000, row.Fence, "a reader is first afterwards")
		assert.EqualValues(t, 1, row.Ousted)
		b.apply(b.rows.Enter(b.key, dead(5))) // behind the writer
		row = b.apply(b.rows.Release(b.key, reads(3, 1000), row.Exit(reads(3, 1000), 0), change))
		assert.EqualValues(t, 1001, row.Fence)
		assert.EqualValues(t, 1, row.Ousted, "nobody was taken out")
		row = b.apply(b.rows.Evict(b.key, &row, []int{1}, change))
		assert.EqualValues(t, 2, row.Ousted)
		assert.EqualValues(t, 1001, row.Fence)
		row = b.apply(b.rows.Release(b.key, holding(4, 1001), lockrow.Exit{}, change))

		b.apply(b.rows.Enter(b.key, dead(6)))
		seen = b.lineUp(-7)
		b.refused(b.rows.Evict(b.key, &lockrow.Row{Line: append(seen.Line[:1:1], reader(7).Ticket), Fence: seen.Fence}, []int{0}, change))
		row = b.apply(b.rows.Evict(b.key, &seen, []int{0}, change))
		assert.EqualValues(t, 1003, row.Fence, "the last reader was evicted: the writer holds")
	})
}

func TestShared_ForceIsRecordedUnderTheFence(t *testing.T) {
	onEngines(t, nil, func(b *bench) {
		row := b.lineUp(1, 2, 3)
		row = b.apply(b.rows.Force(b.key, &row, 1, change, "by hand"))
		assert.Equal(t, []string{"@SESSION/1", "@SESSION/3"}, ids(row))
		assert.EqualValues(t, 1000, row.Fence)
		assert.EqualValues(t, 1000, row.ForcedFence)
		assert.EqualValues(t, 1, row.Ousted)
		assert.Equal(t, "by hand", b.reason())
		assert.Equal(t, lockrow.Lost, row.Released(reads(2, 1000), true, ""))
		row = b.apply(b.rows.Force(b.key, &row, 0, change, "again"))
		row = b.apply(b.rows.Force(b.key, &row, 0, change, "the last"))
		assert.EqualValues(t, 1001, row.Fence)
		row = b.lineUp(4)
		assert.False(t, row.ForcedSince(reads(4, 1001)))
	})
}

func TestShared_Released(t *testing.T) {
	h := reads(1, 1000)
	for name, tt := range map[string]struct {
		row  lockrow.Row
		want lockrow.Released
	}{
		"others read on":               {lockrow.Row{Fence: 1000, Line: []lockrow.Ticket{reader(2).Ticket}}, lockrow.Perhaps},
		"a ghost under another fence":  {lockrow.Row{Fence: 1002, Line: []lockrow.Ticket{reader(1).Ticket}}, lockrow.Perhaps},
		"a writer holds":               {lockrow.Row{Fence: 1001, Line: []lockrow.Ticket{ticket(2)}}, lockrow.Perhaps},
		"one of its group was forced":  {lockrow.Row{Fence: 1000, ForcedFence: 1000}, lockrow.Lost},
		"the row was deleted":          {lockrow.Row{}, lockrow.Lost},
		"the row is one of permits":    {lockrow.Row{Permits: 2, Fence: 2000}, lockrow.Lost},
		"the row was made anew before": {lockrow.Row{Fence: 7}, lockrow.Lost},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, tt.want, tt.row.Released(h, true, ""))
			if tt.want == lockrow.Perhaps {
				assert.Equal(t, lockrow.Lost, tt.row.Released(h, false, ""))
			}
		})
	}
}

func TestShared_Turns(t *testing.T) {
	row := lockrow.Row{Line: []lockrow.Ticket{
		ticket(1), reader(2).Ticket, reader(3).Ticket, ticket(4), reader(5).Ticket, ticket(6), ticket(7),
	}}
	for place, want := range []int{1, 1, 1, 2, 3, 4, 5, 6} { // 7 is the end of the line
		assert.Equal(t, want, row.Turns(place), "place %d", place)
	}
	row.Permits = 3
	for place, want := range []int{1, 1, 1, 1, 2, 3, 4} {
		assert.Equal(t, want, row.Turns(place), "of permits, place %d", place)
	}
}

func TestShared_ATicketThatOlderClientsRefuse(t *testing.T) {
	text := reader(1).Ticket.String()
	got, err := lockrow.ParseTicket(text)
	require.NoError(t, err)
	assert.Equal(t, reader(1).Ticket, got)
	assert.True(t, got.Shared())
	assert.Equal(t, "SESSION", got.Session())
	assert.False(t, ticket(1).Shared())
	assert.Equal(t, byte('@'), text[0], "they take what stands before it for the ID")
	for _, bad := range []string{"@" + text, "@ABC@1764000000000+60000 me", "@@1764000000000 me"} {
		_, err := lockrow.ParseTicket(bad)
		assert.ErrorIs(t, err, lockrow.ErrMalformed, bad)
	}
}

// What has refused a reader, or a permit, does not tell whether it was applied before, or is yet.
func TestShared_ARefusalIsInDoubt(t *testing.T) {
	assert.True(t, (&lockrow.Row{Fence: 1000}).Echoes(reads(1, 1000), change))
	assert.True(t, (&lockrow.Row{Permits: 2, Fence: 1001}).Echoes(stay(1, 1000), change))
}
