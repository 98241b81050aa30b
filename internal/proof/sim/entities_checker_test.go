package sim

import (
	"context"
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
)

// Late requests excuse only what they can explain. Only a write that is applied late, and was not applied before, can
// explain anything.
func TestStragglers_AreCounted(t *testing.T) {
	key := keys.NewKey("ROW", "ROW")
	write := func(ctx context.Context, x *Worker) {
		_ = x.Process.Table().Write(table.WithoutRetry(ctx), table.Update(key, table.Attr("n").Set(1))) // may fail
	}
	read := func(ctx context.Context, x *Worker) {
		_, _ = x.Process.Table().Get(table.WithoutRetry(ctx), key, true) // may fail
	}
	for name, c := range map[string]struct {
		profile             Profile
		send                func(ctx context.Context, x *Worker)
		stragglers, revived int
	}{
		"in order":               {send: write},
		"late":                   {profile: Profile{LostLate: 1}, send: write, stragglers: 1},
		"refused, and once more": {profile: Profile{Duplicated: 1, Throttled: 1}, send: write, stragglers: 1, revived: 1},
		"applied, and once more": {profile: Profile{Duplicated: 1}, send: write},
		"applied without saying so, and once more": {profile: Profile{Duplicated: 1, InternalAfter: 1}, send: write},
		"a read": {profile: Profile{Duplicated: 1, Throttled: 1}, send: read},
	} {
		r := Run(t, Options{Profile: c.profile}, func(w *World) {
			w.Boot("a").Go("w", func(ctx context.Context, x *Worker) {
				c.send(ctx, x)
				x.Sleep(time.Hour) // until everything has arrived
				assert.Equal(t, c.stragglers, w.stragglers["ROW|ROW"], name)
				assert.Equal(t, c.revived, w.revived["ROW|ROW"], name)
			})
			w.Settle()
		})
		assert.Empty(t, r.Violations, name)
	}
}

// Each row with a value has a sentinel that names it, and there are no other sentinels.
func TestUniques_CheckSentinels(t *testing.T) {
	row, sentinel := keys.NewKey("ACCOUNT#A1", "ACCOUNT"), keys.NewKey("UNIQUE#Account#email#e1", "UNIQUE")
	owner := table.Attr("uniqueowner")
	for name, c := range map[string]struct {
		change []table.Op // of what the entity has written
		want   []string
	}{
		"in order":                  {},
		"neither":                   {change: []table.Op{table.Delete(row), table.Delete(sentinel)}},
		"a row alone":               {change: []table.Op{table.Delete(sentinel)}, want: []string{`the value of "ACCOUNT#A1" is kept for ""`}},
		"a sentinel alone":          {change: []table.Op{table.Delete(row)}, want: []string{`the value of "" is kept for "ACCOUNT#A1"`}},
		"a sentinel of another row": {change: []table.Op{table.Update(sentinel, owner.Set(map[string]string{"pk": "ACCOUNT#A2", "sk": "ACCOUNT"}))}, want: []string{`the value of "ACCOUNT#A1" is kept for "ACCOUNT#A2"`}},
		"a sentinel of no value":    {change: []table.Op{table.Update(keys.NewKey("UNIQUE#Account#email#", "UNIQUE"), owner.Set(map[string]string{"pk": "ACCOUNT#A3", "sk": "ACCOUNT"}))}, want: []string{`the value of "" is kept for "ACCOUNT#A3"`}},
		"a sentinel of nobody":      {change: []table.Op{table.Delete(row), table.Update(sentinel, owner.Remove())}, want: []string{"a sentinel names nobody"}},
	} {
		got := found(t, func(w *World) {
			r := &uniques{Unique: Unique{Values: 2}, world: w}
			for _, a := range []Account{{ID: "A1", Email: "e1"}, {ID: "A2", Email: "e2"}, {ID: "A3"}} {
				_, err := r.define(w.Table()).Create(w.Context(), a)
				w.must(err)
			}
			for _, op := range c.change {
				w.must(w.Table().Write(w.Context(), op))
			}
			r.audit()
		})
		assert.Equal(t, c.want, got, name)
	}
}

// A row counts what it lists. A mark may be there twice, or although its write was refused, only as often as a
// request was applied late that had been refused at first and named the row.
func TestVersions_CheckCountedRows(t *testing.T) {
	told := map[int64]state{1001: acknowledged, 1002: unknown, 1003: refused}
	counted := func(marks ...int64) Counted { return Counted{ID: "C1", Count: int64(len(marks)), Marks: marks} }
	for name, c := range map[string]struct {
		row     Counted
		revived map[string]int // by the rows that they named
		want    []string
	}{
		"in order":                         {row: counted(1001, 1002)},
		"unknown, not there":               {row: counted(1001)},
		"counted twice":                    {row: Counted{ID: "C1", Count: 3, Marks: []int64{1001, 1002}}, want: []string{"row C1 counts 3 and lists 2"}},
		"not counted":                      {row: Counted{ID: "C1", Count: 1, Marks: []int64{1001, 1002}}, want: []string{"row C1 counts 1 and lists 2"}},
		"lost, though one was revived":     {row: counted(1002), revived: map[string]int{"C1": 1}, want: []string{"1001 was acknowledged and is lost"}},
		"doubled":                          {row: counted(1001, 1001), want: []string{"1001 is there 2 times"}},
		"doubled, revived":                 {row: counted(1001, 1001), revived: map[string]int{"C1": 1}},
		"doubled, another row's revived":   {row: counted(1001, 1001), revived: map[string]int{"C2": 1}, want: []string{"1001 is there 2 times"}},
		"tripled, one revived":             {row: counted(1001, 1001, 1001), revived: map[string]int{"C1": 1}, want: []string{"1001 is there 2 times"}},
		"tripled, both revived":            {row: counted(1001, 1001, 1001), revived: map[string]int{"C1": 2}},
		"two doubled, one revived":         {row: counted(1001, 1001, 1002, 1002), revived: map[string]int{"C1": 1}, want: []string{"1002 is there 2 times"}},
		"refused":                          {row: counted(1001, 1003), want: []string{"1003 was refused and is there"}},
		"refused, revived":                 {row: counted(1001, 1003), revived: map[string]int{"C1": 1}},
		"refused, another row's revived":   {row: counted(1001, 1003), revived: map[string]int{"C2": 1}, want: []string{"1003 was refused and is there"}},
		"refused, and another one doubled": {row: counted(1001, 1001, 1003), revived: map[string]int{"C1": 1}, want: []string{"1003 was refused and is there"}},
		"refused and doubled, one revived": {row: counted(1001, 1003, 1003), revived: map[string]int{"C1": 1}, want: []string{"1003 was refused and is there"}},
		"refused and doubled, both":        {row: counted(1001, 1003, 1003), revived: map[string]int{"C1": 2}},
	} {
		got := found(t, func(w *World) {
			w.stragglers["COUNTER#C1|COUNTER"] = 9 // these excuse nothing: they had not been refused
			for id, n := range c.revived {
				w.revived["COUNTER#"+id+"|COUNTER"] = n
			}
			r := &versions{world: w, marks: &marks{state: told}}
			w.must(w.Table().Write(w.Context(), r.define(w.Table()).CreateOp(c.row)))
			r.check()
		})
		assert.Equal(t, c.want, got, name)
	}
}

// A refused mark is never seen, unless a request arrived late that named its row. If an acknowledged mark is not
// seen, that shows nothing, since rows are overwritten and deleted.
func TestUniques_CheckSeenMarks(t *testing.T) {
	row := map[int64]string{1001: "ACCOUNT#A1|ACCOUNT", 1002: "ACCOUNT#A2|ACCOUNT"}
	for name, c := range map[string]struct {
		known      state // of both
		seen       []int64
		stragglers map[string]int
		want       []string
	}{
		"acknowledged":             {known: acknowledged, seen: []int64{1001, 1002}},
		"acknowledged, never seen": {known: acknowledged},
		"refused, never seen":      {known: refused},
		"refused and seen":         {known: refused, seen: []int64{1001}, want: []string{"1001 was refused and is there"}},
		"refused and seen, with a straggler": {
			known: refused, seen: []int64{1001}, stragglers: map[string]int{"ACCOUNT#A1|ACCOUNT": 1},
		},
		"refused and seen, with a straggler of another row": {
			known: refused, seen: []int64{1001, 1002}, stragglers: map[string]int{"ACCOUNT#A2|ACCOUNT": 1},
			want: []string{"1001 was refused and is there"},
		},
		"refused and seen, with a straggler of the value alone": {
			known: refused, seen: []int64{1001}, stragglers: map[string]int{"UNIQUE#Account#email#e1|UNIQUE": 1},
			want: []string{"1001 was refused and is there"},
		},
	} {
		got := found(t, func(w *World) {
			maps.Copy(w.stragglers, c.stragglers)
			r := &uniques{world: w, marks: &marks{state: map[int64]state{1001: c.known, 1002: c.known}}, row: row, seen: map[int64]bool{}}
			for _, mark := range c.seen {
				r.seen[mark] = true
			}
			r.check()
		})
		assert.Equal(t, c.want, got, name)
	}
}
