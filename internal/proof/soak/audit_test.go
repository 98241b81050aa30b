package soak

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// books are made-up rows, and what workers have reported about them.
type books struct {
	*testing.T
	*audit
}

func newBooks(t *testing.T) *books {
	t.Helper()
	tbl, err := table.Open(tabletest.New(t).Client(), table.Schema{Name: "app"})
	require.NoError(t, err)
	require.NoError(t, tbl.Ensure(t.Context()))
	require.NoError(t, openAccounts(t.Context(), tbl))
	locks, err := lock.New(tbl, lock.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, locks.Close(context.Background())) })
	return &books{T: t, audit: &audit{ledger: newLedger(), table: tbl, locks: locks}}
}

// said adds an operation that a worker began, and its outcome.
func (b *books) said(result outcome, o operation) {
	b.Helper()
	for _, r := range []record{{Kind: begun, Operation: &o}, {Kind: ended, Op: o.Op, Outcome: result}} {
		line, err := json.Marshal(r)
		require.NoError(b, err)
		_, err = b.take(line)
		require.NoError(b, err)
	}
}

func (b *books) write(ops ...table.Op) {
	b.Helper()
	require.NoError(b, b.table.Write(b.Context(), ops...))
}

// Each checker accepts correct rows, and finds each kind of mistake.
func TestCheckers_FindEachKindOfMistake(t *testing.T) {
	set := func(b *books, elements ...string) {
		b.write(setRow{Elements: elements[:len(elements)-1]}.with(setName(0), elements[len(elements)-1])...)
	}
	wrote := func(op string) operation { return operation{Op: op, Workload: setWorkload, Row: setName(0)} }
	counted := func(op string, n int64) operation {
		return operation{Op: op, Workload: counterWorkload, Row: counterName, Value: n}
	}
	counter := func(b *books, n int64) { b.write(table.Update(headKey(counterName), table.Attr("n").Set(n))) }
	fenced := func(op string, fence int64) operation {
		return operation{Op: op, Workload: fencesWorkload, Row: fencesName(0), Lease: op, Held: []holding{{fencesName(0), fence}}}
	}
	appendTo := func(b *books, entries ...string) {
		for _, entry := range entries {
			b.write((&fencesRow{}).with(fencesName(0), entry)...)
		}
	}
	moved := func(op string, from, to int, amount int64) operation {
		return operation{Op: op, Workload: bankWorkload, Row: bankPartition, Transfer: &transfer{From: from, To: to, Amount: amount}}
	}
	move := func(b *books, op string, from, to int, amount int64) {
		b.write(table.Update(transferKey(op), table.Attr("from").Set(from), table.Attr("to").Set(to), table.Attr("amount").Set(amount)))
	}
	at := time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)
	ran := func(op string, after time.Duration) operation {
		return operation{Op: op, Workload: everyWorkload, Row: everyPartition, Value: at.Add(after).UnixMilli()}
	}
	run := func(b *books, runs ...string) { b.write(table.Update(runsKey(at), table.Attr("runs").Set(runs))) }
	first := fmt.Sprint(at.UnixMilli(), " a")

	for name, tc := range map[string]struct {
		books func(b *books)
		found string // empty for nothing
	}{
		"set in order": {func(b *books) {
			b.said(acknowledged, wrote("a"))
			b.said(unknown, wrote("b"))
			b.said(unknown, wrote("not there"))
			b.said(refused, wrote("r"))
			set(b, "a", "b")
		}, ""},
		"set on pages": {func(b *books) {
			var full []string
			for i := range pageSize {
				full = append(full, fmt.Sprint(i))
			}
			for _, op := range append(full, "last") {
				b.said(acknowledged, wrote(op))
			}
			b.write(setRow{Elements: full}.with(setName(0), "last")...)
		}, ""},
		"lost update": {func(b *books) {
			b.said(acknowledged, wrote("a"))
			b.said(acknowledged, wrote("b"))
			set(b, "b")
		}, "a was acknowledged and is lost"},
		"applied after it was refused": {func(b *books) {
			b.said(refused, wrote("a"))
			set(b, "a")
		}, "a was refused and is there"},
		"element of nobody's": {func(b *books) { set(b, "a") }, "nobody has written a"},
		"element twice": {func(b *books) {
			b.said(acknowledged, wrote("a"))
			set(b, "a", "a")
		}, "a is there 2 times"},

		"counter in order": {func(b *books) {
			b.said(acknowledged, counted("a", 1))
			b.said(unknown, counted("b", 2))
			b.said(acknowledged, counted("c", 3))
			b.said(refused, counted("d", 3))
			b.said(unknown, counted("e", 4))
			counter(b, 3)
		}, ""},
		"number twice": {func(b *books) {
			b.said(acknowledged, counted("a", 1))
			b.said(acknowledged, counted("b", 1))
			counter(b, 1)
		}, "a and b have both written 1"},
		"counter behind": {func(b *books) {
			b.said(acknowledged, counted("a", 1))
			b.said(acknowledged, counted("b", 2))
			counter(b, 1)
		}, "b has written 2, and the counter is at 1"},
		"counter ahead": {func(b *books) {
			b.said(acknowledged, counted("a", 1))
			b.said(refused, counted("b", 2))
			counter(b, 2)
		}, "nobody has written 2"},

		"bank in order": {func(b *books) {
			b.said(acknowledged, moved("a", 0, 1, 30))
			move(b, "a", 0, 1, 30)
			b.write(setBalance(0, 70), setBalance(1, 130))
		}, ""},
		"money made":               {func(b *books) { b.write(setBalance(0, 110)) }, "have 510 in sum, not 500"},
		"money moved by nobody":    {func(b *books) { b.write(setBalance(0, 90), setBalance(1, 110)) }, "account 0 has 90, and by its transfers 100"},
		"transfer without its row": {func(b *books) { b.said(acknowledged, moved("a", 0, 1, 30)) }, "a was acknowledged and is lost"},
		"another transfer": {func(b *books) {
			b.said(acknowledged, moved("a", 0, 1, 30))
			move(b, "a", 0, 1, 20)
			b.write(setBalance(0, 80), setBalance(1, 120))
		}, "a was to be"},

		"fences in order": {func(b *books) {
			b.said(acknowledged, fenced("a", 1))
			b.said(unknown, fenced("b", 2))
			b.said(acknowledged, fenced("c", 3))
			appendTo(b, "1 a", "2 b", "3 c")
		}, ""},
		"stale write": {func(b *books) {
			b.said(acknowledged, fenced("a", 1))
			b.said(acknowledged, fenced("b", 2))
			appendTo(b, "2 b", "1 a")
		}, "a with fence 1 was committed after b with 2"},
		"fence of another's": {func(b *books) {
			b.said(acknowledged, fenced("a", 1))
			appendTo(b, "2 a")
		}, "a has fence 1, and wrote 2"},
		"entry lost with a page": {func(b *books) {
			b.said(unknown, fenced("a", 1))
			b.said(acknowledged, fenced("b", 2))
			appendTo(b, "1 a")
			b.write(table.Update(headKey(fencesName(0)), table.Attr("n").Add(1), table.Attr("entries").Set([]string{"2 b"})))
		}, "2 entries were committed, 1 are there"},
		"fence twice": {func(b *books) {
			b.said(unknown, fenced("a", 1))
			b.said(unknown, fenced("b", 1))
		}, "a and b have both held"},

		"interval twice": {func(b *books) {
			b.said(acknowledged, ran("a", 0))
			b.said(unknown, ran("b", 0))
			run(b, first, fmt.Sprint(at.UnixMilli(), " b"))
		}, "the interval of 08:00:00 was run by a and by b"},
		"interval that the lock does not know": {func(b *books) {
			b.said(acknowledged, ran("a", 0))
			run(b, first)
			lease, err := b.locks.Acquire(b.Context(), lock.Name(everyName))
			require.NoError(b, err)
			require.NoError(b, lease.Release(b.Context()))
		}, "the lock's row has recorded 0 last"},
		"run lost": {func(b *books) { b.said(acknowledged, ran("a", 0)) }, "a was acknowledged and is lost"},

		"fence goes back": {func(b *books) {
			o := fenced("a", 1<<50)
			b.said(unknown, o)
		}, "after 1125899906842624"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBooks(t)
			tc.books(b)
			err := b.audit.run(t.Context(), false)
			var texts []string
			for _, v := range b.found() {
				texts = append(texts, v.Workload+": "+v.Text)
			}
			all := strings.Join(texts, "\n")
			if tc.found == "" {
				require.NoError(t, err)
				assert.Empty(t, all)
				return
			}
			assert.Contains(t, all, tc.found)
		})
	}
}

func TestCheckLocks_FindsAHeldLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBooks(t)
		other, err := lock.New(b.table, lock.Config{})
		require.NoError(t, err)
		defer func() { assert.NoError(t, other.Close(context.Background())) }()
		_, err = other.Acquire(t.Context(), lock.Name(counterName))
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		require.NoError(t, b.checkLocks(ctx, nil))
		require.Len(t, b.found(), 1)
		assert.Contains(t, b.found()[0].Text, `"counter" is still held when all is over`)
	})
}

func TestAudit_RefusesRowsThatAreNotAsWritten(t *testing.T) {
	for name, op := range map[string]table.Op{
		"list":  table.Update(headKey(setName(0)), table.Attr("elements").Set(1)),
		"entry": table.Update(headKey(fencesName(0)), table.Attr("n").Set(1), table.Attr("entries").Set([]string{"x y"})),
	} {
		b := newBooks(t)
		b.write(op)
		assert.ErrorIs(t, b.audit.run(t.Context(), true), errNotAsWritten, name)
	}
}
