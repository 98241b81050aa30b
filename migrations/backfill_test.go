package migrations_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mortise-go/mortise/internal/attrvalue"
	"github.com/mortise-go/mortise/internal/testkit"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/migrations"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

var migrationsRow = keys.NewKey("MIGRATIONS#main", "MIGRATIONS")

// backfill is a list of one backfill, whose progress goes to p.
func backfill(b migrations.Backfill, p *migrations.Progress) []migrations.Migration {
	b.Name = "fill"
	return []migrations.Migration{{ID: "1_fill", Idempotent: true, Up: func(ctx context.Context, run *migrations.Run) (err error) {
		*p, err = run.Backfill(ctx, b)
		return err
	}}}
}

// modes runs f for both ways of writing.
func modes(t *testing.T, f func(ctx context.Context, w *world, exact bool)) {
	t.Helper()
	for _, exact := range []bool{false, true} {
		t.Run(fmt.Sprintf("exact=%v", exact), func(t *testing.T) {
			contract(t, func(ctx context.Context, w *world) { f(ctx, w, exact) })
		})
	}
}

// A writer that changes 1 % of the items, several times each, loses nothing, and neither does
// the backfill.
func TestBackfill_LosesNoConcurrentWrite(t *testing.T) {
	t.Parallel()
	modes(t, func(ctx context.Context, w *world, exact bool) {
		items := testkit.IfSmall(200, 2000)
		w.fill(items)
		calls := make([]atomic.Int64, items)
		transform := func(ctx context.Context, item table.Item) (table.Item, error) {
			i := int(integer(item["n"]))
			if i%100 == 0 && calls[i].Add(1) <= 3 { // between the read and the write
				if err := w.table.Write(ctx, table.Update(itemKey(i), table.Attr("hits").Add(1))); err != nil {
					return nil, err
				}
			}
			item["copy"] = item["hits"]
			if item["hits"] == nil {
				delete(item, "copy")
			}
			return increment(ctx, item)
		}
		var p migrations.Progress
		_, err := w.migrator(backfill(migrations.Backfill{Transform: transform, Reads: []string{"hits"}, Exact: exact, Filter: only()}, &p)).Up(ctx)
		require.NoError(w, err)
		lost := 0
		for i := range items {
			item := w.get(itemKey(i))
			if integer(item["m"]) != 1 || integer(item["n"]) != int64(i) || i%100 == 0 && (integer(item["hits"]) != 3 || integer(item["copy"]) != 3) {
				lost++
			}
		}
		w.Logf("a writer changes 1 %% of %d items during the backfill: %d conflicts, %d updates lost of either side (goal 0)", items, p.Conflicts, lost)
		assert.Zero(w, lost)
		assert.GreaterOrEqual(w, p.Conflicts, int64(items/100*3))
		assert.EqualValues(w, items, p.Changed)
		assert.EqualValues(w, items, p.Seen)
	})
}

// The budget, measured over some minutes of virtual time.
func TestBackfill_KeepsTheBudget(t *testing.T) {
	for _, exact := range []bool{false, true} {
		virtual(t, func(ctx context.Context, w *world) {
			const items, rate = 6000, 50.0
			w.fill(items)
			var p migrations.Progress
			start := time.Now()
			_, err := w.migrator(backfill(migrations.Backfill{Transform: increment, Exact: exact, WriteUnits: rate, Filter: only()}, &p)).Up(ctx)
			require.NoError(w, err)
			measured := p.WriteUnits / time.Since(start).Seconds()
			w.Logf("budget of %v write units per second, exact %v: %.2f measured over %v (goal within 5 %%)", rate, exact, measured, time.Since(start).Round(time.Second))
			assert.InEpsilon(w, rate, measured, 0.05)
		})
	}
	virtual(t, func(ctx context.Context, w *world) {
		const rate = 2.0
		w.fill(6000) // in small pages, since nobody waits after the last page of a segment
		var p migrations.Progress
		start := time.Now()
		_, err := w.migrator(backfill(migrations.Backfill{Transform: func(context.Context, table.Item) (table.Item, error) { return nil, nil }, ReadUnits: rate, PageSize: 20}, &p)).Up(ctx)
		require.NoError(w, err)
		measured := p.ReadUnits / time.Since(start).Seconds()
		w.Logf("budget of %v read units per second: %.2f measured over %v (goal within 5 %%)", rate, measured, time.Since(start).Round(time.Second))
		assert.InEpsilon(w, rate, measured, 0.05)
	})
	for _, exact := range []bool{false, true} { // of pages of which nothing is written but the positions after them
		virtual(t, func(ctx context.Context, w *world) {
			const rate = 10.0
			w.fill(1000)
			var p migrations.Progress
			start := time.Now()
			_, err := w.migrator(backfill(migrations.Backfill{
				Transform: func(context.Context, table.Item) (table.Item, error) { return nil, nil }, Exact: exact, WriteUnits: rate, PageSize: 5,
			}, &p)).Up(ctx)
			require.NoError(w, err)
			assert.Zero(w, p.Changed)
			measured := p.WriteUnits / time.Since(start).Seconds()
			w.Logf("budget of %v write units per second for positions, exact %v: %.2f measured over %v (goal within 5 %%)", rate, exact, measured, time.Since(start).Round(time.Second))
			assert.InEpsilon(w, rate, measured, 0.05)
		})
	}
}

// Writes that find the capacity of a small provisioned table used up are refused, for as long as the others take it. That is the speed of
// the table, and no failure of an item.
func TestBackfill_GoesAsFastAsTheTableAllows(t *testing.T) {
	for _, exact := range []bool{false, true} {
		virtual(t, func(ctx context.Context, w *world) {
			const items, rate, burst = 1000, 5.0, 300.0 // DynamoDB keeps what was not used for 300 s
			w.fill(items)
			var mu sync.Mutex
			tokens, at, refused := burst, time.Now(), 0
			w.engine.Inject(tabletest.Fault{Kind: tabletest.Throttle, When: func(r tabletest.Request) bool {
				if r.Operation != "UpdateItem" && r.Operation != "TransactWriteItems" {
					return false
				}
				mu.Lock()
				defer mu.Unlock()
				now := time.Now()
				tokens = min(tokens+rate*now.Sub(at).Seconds(), burst)
				at = now
				if need := float64(len(r.Keys)); tokens >= need {
					tokens -= need
					return false
				}
				refused++
				return true
			}})
			var p migrations.Progress
			start := time.Now()
			_, err := w.migrator(backfill(migrations.Backfill{Transform: increment, Exact: exact, Filter: only()}, &p)).Up(ctx)
			require.NoError(w, err)
			assert.EqualValues(w, items, p.Changed)
			for i := range items {
				require.EqualValues(w, 1, integer(w.get(itemKey(i))["m"]))
			}
			took := time.Since(start)
			w.Logf("%d items, %v units per second, exact %v: %v, %d requests refused", items, rate, exact, took.Round(time.Second), refused)
			assert.Less(w, took.Seconds(), 1.5*items*map[bool]float64{false: 1, true: 2}[exact]/rate, "most of the capacity is used")
			assert.Less(w, refused, items, "and few requests are sent for nothing")
		})
	}
}

// Equal is equal on every engine, whatever the type, so that no write is taken for a conflict.
func TestBackfill_ComparesAllTypes(t *testing.T) {
	modes(t, func(ctx context.Context, w *world, exact bool) {
		item := w.table.KeyItem(itemKey(0))
		values := map[string]any{
			"float": 1.10, "tiny": 1e-120, "big": "12345678901234567890123456789012345678", "empty": "", "bytes": []byte{0, 1, 255},
			"yes": true, "list": []any{1, "a", []any{}, map[string]any{"x": 1.50}}, "map": map[string]any{"a": 1, "b": []any{"", 2}}, "nomap": map[string]any{},
		}
		for name, v := range values {
			av, err := table.Encode(v)
			require.NoError(w, err)
			if av != nil {
				item[name] = av
			}
		}
		item["n"] = num(0)
		item["empty"] = text("")
		item["null"] = &types.AttributeValueMemberNULL{Value: true}
		item["nobytes"] = &types.AttributeValueMemberB{Value: []byte{}}
		item["ss"] = &types.AttributeValueMemberSS{Value: []string{"b", "a", ""}}
		item["ns"] = &types.AttributeValueMemberNS{Value: []string{"3", "1.0", "-2e3"}}
		item["bs"] = &types.AttributeValueMemberBS{Value: [][]byte{{2}, {1}}}
		item["number"] = &types.AttributeValueMemberN{Value: "1.500"}
		item["large"] = text(strings.Repeat("x", 150_000))
		require.NoError(w, w.table.Write(ctx, table.Put(item)))
		var p migrations.Progress
		_, err := w.migrator(backfill(migrations.Backfill{Transform: increment, Exact: exact, Filter: only()}, &p)).Up(ctx)
		require.NoError(w, err)
		assert.Zero(w, p.Conflicts)
		item["m"] = num(1)
		assert.True(w, attrvalue.SameItem(item, w.get(itemKey(0))))
	})
}

// What cannot be written is reported with migration, step and key, and leaves the item as it was.
func TestBackfill_ReportsBadItems(t *testing.T) {
	type transform = func(ctx context.Context, item table.Item) (table.Item, error)
	secret := errors.New("refused")
	for name, c := range map[string]struct {
		do   transform
		want error
	}{
		"over 400 KB": {func(_ context.Context, item table.Item) (table.Item, error) {
			item["large"] = text(strings.Repeat("x", 410_000))
			return item, nil
		}, table.ErrInvalid},
		"key changed": {func(_ context.Context, item table.Item) (table.Item, error) {
			item["pk"] = text("other")
			return item, nil
		}, migrations.ErrInvalid},
		"key removed": {func(_ context.Context, item table.Item) (table.Item, error) {
			delete(item, "sk")
			return item, nil
		}, migrations.ErrInvalid},
		"nil value": {func(_ context.Context, item table.Item) (table.Item, error) {
			item["x"] = nil
			return item, nil
		}, table.ErrInvalid},
		"not UTF-8": {func(_ context.Context, item table.Item) (table.Item, error) {
			item["x"] = text("\xff")
			return item, nil
		}, table.ErrInvalid},
		"empty set": {func(_ context.Context, item table.Item) (table.Item, error) {
			item["x"] = &types.AttributeValueMemberSS{}
			return item, nil
		}, table.ErrInvalid},
		"no number": {func(_ context.Context, item table.Item) (table.Item, error) {
			item["x"] = &types.AttributeValueMemberN{Value: "many"}
			return item, nil
		}, table.ErrInvalid},
		"too many attributes": {func(_ context.Context, item table.Item) (table.Item, error) {
			for i := range 200 {
				item[fmt.Sprint("a", i)] = num(1)
			}
			return item, nil
		}, migrations.ErrInvalid},
		"error": {func(context.Context, table.Item) (table.Item, error) { return nil, secret }, secret},
		"panic": {func(context.Context, table.Item) (table.Item, error) { panic(secret) }, migrations.ErrPanic},
	} {
		t.Run(name, func(t *testing.T) {
			modes(t, func(ctx context.Context, w *world, exact bool) {
				items := testkit.IfSmall(20, 150)
				bad := items/2 + 2
				w.fill(items)
				before := w.get(itemKey(bad))
				do := func(ctx context.Context, item table.Item) (table.Item, error) {
					if integer(item["n"]) == int64(bad) {
						return c.do(ctx, item)
					}
					return increment(ctx, item)
				}
				var p migrations.Progress
				b := migrations.Backfill{Transform: do, Exact: exact, Segments: 1, Filter: only()}
				m := w.migrator(backfill(b, &p))
				preview, err := m.DryRun(ctx, b, items)
				require.NoError(w, err)
				assert.EqualValues(w, 1, preview.Failed, "a dry run finds it, too")
				assert.EqualValues(w, items-1, preview.Changes)
				_, err = m.Up(ctx)
				require.ErrorIs(w, err, c.want)
				var failed *migrations.ItemError
				require.ErrorAs(w, err, &failed)
				assert.Equal(w, itemKey(bad), failed.Key)
				assert.Equal(w, "1_fill", failed.Migration)
				assert.Equal(w, "fill", failed.Step)
				assert.NotContains(w, err.Error(), itemKey(bad).PK)
				assert.Equal(w, 1, strings.Count(err.Error(), "migrations:"), err.Error())
				assert.True(w, attrvalue.SameItem(before, w.get(itemKey(bad))), "left as it was")
				st, err := m.Status(ctx)
				require.NoError(w, err)
				assert.Equal(w, migrations.Failed, st[0].State)
				assert.Equal(w, "fill", st[0].Record.Step)
			})
		})
	}
}

// Small items of one transaction can become larger than what a request may have, 16 MB.
func TestBackfill_ExactItemsGrow(t *testing.T) {
	contract(t, func(ctx context.Context, w *world) {
		const items = 50
		w.fill(items)
		var p migrations.Progress
		_, err := w.migrator(backfill(migrations.Backfill{Exact: true, Segments: 1, Filter: only(), Transform: func(_ context.Context, item table.Item) (table.Item, error) {
			item["large"] = text(strings.Repeat("x", 370_000))
			return item, nil
		}}, &p)).Up(ctx)
		require.NoError(w, err)
		assert.EqualValues(w, items, p.Changed)
	})
}

// A nil pointer in an attribute is the author's mistake, and names the item and the attribute. In a dry run, too.
func TestBackfill_RefusesANilValue(t *testing.T) {
	for name, do := range map[string]func(item table.Item){
		"n":   func(item table.Item) { item["n"] = (*types.AttributeValueMemberN)(nil) },
		"new": func(item table.Item) { item["new"] = nil },
		"pk":  func(item table.Item) { item["pk"] = (*types.AttributeValueMemberS)(nil) },
		"deep": func(item table.Item) {
			item["deep"] = &types.AttributeValueMemberL{Value: []types.AttributeValue{(*types.AttributeValueMemberM)(nil)}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			modes(t, func(ctx context.Context, w *world, exact bool) {
				w.fill(1)
				var p migrations.Progress
				b := migrations.Backfill{Exact: exact, Filter: only(), Transform: func(_ context.Context, item table.Item) (table.Item, error) {
					do(item)
					return item, nil
				}}
				m := w.migrator(backfill(b, &p))
				preview, err := m.DryRun(ctx, b, 1)
				require.NoError(w, err)
				require.Len(w, preview.Samples, 1)
				assert.EqualValues(w, 1, preview.Failed)
				_, err = m.Up(ctx)
				for _, err := range []error{err, preview.Samples[0].Err} {
					var failed *migrations.ItemError
					require.ErrorAs(w, err, &failed)
					require.ErrorIs(w, err, migrations.ErrInvalid)
					assert.Equal(w, itemKey(0), failed.Key)
					require.ErrorContains(w, err, `attribute "`+name+`"`)
				}
			})
		})
	}
}

// What can be written although it looks odd.
func TestBackfill_TransformsOddItems(t *testing.T) {
	modes(t, func(ctx context.Context, w *world, exact bool) {
		put := func(i int, change func(table.Item)) {
			item := w.table.KeyItem(itemKey(i))
			item["n"] = num(int64(i))
			change(item)
			require.NoError(w, w.table.Write(ctx, table.Put(item)))
		}
		put(0, func(item table.Item) { item["version"] = num(7) })
		put(1, func(item table.Item) {
			for i := range 180 {
				item[fmt.Sprint("a", i)] = num(int64(i))
			}
		})
		put(2, func(item table.Item) { item["gsi1pk"], item["gsi1sk"] = text("g"), text("g") })
		put(3, func(table.Item) {})
		put(4, func(table.Item) {})
		put(5, func(item table.Item) { item["version"] = text("not a number") })
		var raced atomic.Bool
		do := func(ctx context.Context, item table.Item) (table.Item, error) {
			switch integer(item["n"]) {
			case 2:
				delete(item, "gsi1pk")
				delete(item, "gsi1sk")
			case 3:
				return nil, w.table.Write(ctx, table.Delete(itemKey(3)))
			case 4: // deleted between the read and the write
				if err := w.table.Write(ctx, table.Delete(itemKey(4))); err != nil {
					return nil, err
				}
			case 1:
				if !raced.Swap(true) { // in an attribute that stays as it is
					if err := w.table.Write(ctx, table.Update(itemKey(1), table.Attr("a5").Set(-1))); err != nil {
						return nil, err
					}
				}
			}
			return increment(ctx, item)
		}
		var p migrations.Progress
		_, err := w.migrator(backfill(migrations.Backfill{Transform: do, Exact: exact, Filter: only()}, &p)).Up(ctx)
		require.NoError(w, err)
		assert.EqualValues(w, 8, integer(w.get(itemKey(0))["version"]), "the version is counted up")
		assert.EqualValues(w, -1, integer(w.get(itemKey(1))["a5"]), "nobody's write is lost")
		assert.EqualValues(w, 1, integer(w.get(itemKey(1))["m"]))
		assert.Nil(w, w.get(itemKey(2))["gsi1pk"])
		for _, gone := range []int{3, 4} {
			_, err := w.table.Get(ctx, itemKey(gone), true)
			require.ErrorIs(w, err, table.ErrNotFound, "a deleted item does not come back")
		}
		assert.Equal(w, text("not a number"), w.get(itemKey(5))["version"])
	})
}

// An item that somebody takes out of the filter meanwhile is not transformed.
func TestBackfill_TheFilterHoldsAtTheWrite(t *testing.T) {
	modes(t, func(ctx context.Context, w *world, exact bool) {
		w.fill(10)
		do := func(ctx context.Context, item table.Item) (table.Item, error) {
			if i := int(integer(item["n"])); i%2 == 0 {
				if err := w.table.Write(ctx, table.Update(itemKey(i), table.Attr("n").Set(i), table.Attr("closed").Set(true))); err != nil {
					return nil, err
				}
			}
			return increment(ctx, item)
		}
		var p migrations.Progress
		_, err := w.migrator(backfill(migrations.Backfill{Transform: do, Exact: exact, Filter: table.And(only(), table.Attr("closed").NotExists())}, &p)).Up(ctx)
		require.NoError(w, err)
		for i := range 10 {
			assert.EqualValues(w, i%2, integer(w.get(itemKey(i))["m"]), i)
		}
	})
}

// Transform gets only items that the Filter selects, even after a conflict. The Filter may name key attributes.
func TestBackfill_TransformsAChangedItemOnlyIfTheFilterStillMatches(t *testing.T) {
	modes(t, func(ctx context.Context, w *world, exact bool) {
		w.fill(10)
		var wrong atomic.Int64
		do := func(ctx context.Context, item table.Item) (table.Item, error) {
			if item["n"] == nil {
				wrong.Add(1)
				return nil, errors.New("not an item of this backfill")
			}
			i := int(integer(item["n"]))
			change := table.Attr("hits").Set(1) // still selected
			if i%2 == 0 {
				change = table.Attr("n").Remove()
			}
			if item["hits"] == nil {
				if err := w.table.Write(ctx, table.Update(itemKey(i), change)); err != nil {
					return nil, err
				}
			}
			return increment(ctx, item)
		}
		var p migrations.Progress
		filter := table.And(table.Attr("pk").HasPrefix("ITEM#"), only())
		_, err := w.migrator(backfill(migrations.Backfill{Transform: do, Exact: exact, Filter: filter, Reads: []string{"hits"}}, &p)).Up(ctx)
		require.NoError(w, err)
		assert.Zero(w, wrong.Load())
		assert.EqualValues(w, 5, p.Changed)
		assert.EqualValues(w, 10, p.Conflicts)
		for i := range 10 {
			item := w.get(itemKey(i))
			assert.EqualValues(w, i%2, integer(item["m"]), i)
			assert.Len(w, item, 2+3*(i%2), "pk, sk and, if it is still selected, n, hits and m")
		}
	})
}

func TestBackfill_LeavesToolkitRowsOut(t *testing.T) {
	contract(t, func(ctx context.Context, w *world) {
		w.fill(5)
		sentinel := w.table.KeyItem(keys.NewKey("UNIQUE#User#email#a@b", "UNIQUE"))
		sentinel["uniqueowner"], sentinel["type"] = text("x"), text("mortise.Unique.User.email")
		bird := w.table.KeyItem(keys.NewKey("BIRD#1", "MIGRATION#2026")) // of the application's own type of that name
		bird["type"] = text("Migration")
		require.NoError(w, w.table.Write(ctx, table.Put(sentinel), table.Put(bird)))
		seen := make(chan string, 100)
		do := func(_ context.Context, item table.Item) (table.Item, error) {
			typ, _ := item["type"].(*types.AttributeValueMemberS)
			if typ != nil {
				seen <- typ.Value
			}
			return nil, nil
		}
		var p migrations.Progress
		m := w.migrator(append(backfill(migrations.Backfill{Transform: do}, &p), migrations.Migration{
			ID: "2_all", Up: func(ctx context.Context, run *migrations.Run) error {
				_, err := run.Backfill(ctx, migrations.Backfill{Name: "all", Transform: do, Toolkit: true})
				return err
			},
		}))
		_, err := m.UpTo(ctx, "1_fill")
		require.NoError(w, err)
		assert.EqualValues(w, 6, p.Seen)
		require.Len(w, seen, 1)
		assert.Equal(w, "Migration", <-seen)
		_, err = m.Up(ctx)
		require.NoError(w, err)
		all := map[string]bool{}
		for range len(seen) {
			all[<-seen] = true
		}
		for _, typ := range []string{"mortise.Lock", "mortise.LockSession", "Migration", "mortise.Migration", "mortise.MigrationCheckpoint", "mortise.Unique.User.email"} {
			assert.True(w, all[typ], typ)
		}
	})
}

// A function that ends its goroutine does not pass for one that has done its work.
func TestBackfill_GoexitIsAFailure(t *testing.T) {
	for _, exact := range []bool{false, true} {
		virtual(t, func(ctx context.Context, w *world) {
			w.fill(50)
			var p migrations.Progress
			m := w.migrator(backfill(migrations.Backfill{Exact: exact, Transform: func(context.Context, table.Item) (table.Item, error) {
				runtime.Goexit()
				return nil, nil
			}}, &p))
			_, err := m.Up(ctx)
			require.ErrorContains(w, err, "ended its goroutine")
		})
	}
}

func TestBackfill_APanicOfProgressIsAFailure(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		w.fill(500)
		var p migrations.Progress
		m := w.migrator(backfill(migrations.Backfill{Transform: increment, WriteUnits: 10, Filter: only()}, &p), migrations.WithProgress(func(p migrations.Progress) {
			if p.Seen >= 0 {
				panic("oops")
			}
		}))
		_, err := m.Up(ctx)
		require.ErrorIs(w, err, migrations.ErrPanic)
	})
}

// A segment count that changed during a resume.
func TestBackfill_RefusesOtherSegmentsThanItBeganWith(t *testing.T) {
	contract(t, func(ctx context.Context, w *world) {
		w.fill(30)
		var p migrations.Progress
		fail := true
		b := migrations.Backfill{Segments: 2, PageSize: 5, Exact: true, Filter: only(), Transform: func(ctx context.Context, item table.Item) (table.Item, error) {
			if fail && integer(item["n"]) == 20 {
				return nil, assert.AnError
			}
			return increment(ctx, item)
		}}
		_, err := w.migrator(backfill(b, &p)).Up(ctx)
		require.ErrorIs(w, err, assert.AnError)
		b.Segments = 3
		_, err = w.migrator(backfill(b, &p)).Up(ctx)
		require.ErrorIs(w, err, migrations.ErrSegments)
		fail, b.Segments = false, 2
		_, err = w.migrator(backfill(b, &p)).Up(ctx)
		require.NoError(w, err)
		for i := range 30 {
			assert.EqualValues(w, 1, integer(w.get(itemKey(i))["m"]), i)
		}
		assert.EqualValues(w, 30, p.Seen)
		assert.Empty(w, w.watch.backs)
	})
}

func TestBackfill_RefusesBadInput(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		for want, b := range map[string]migrations.Backfill{
			"Transform": {}, "Segments": {Transform: increment, Segments: -1}, "Writers": {Transform: increment, Writers: 101},
			"PageSize": {Transform: increment, PageSize: -1}, "Reads": {Transform: increment, Reads: []string{""}}, "WriteUnits": {Transform: increment, WriteUnits: -1}, "ReadUnits": {Transform: increment, ReadUnits: 0.001},
		} {
			p := w.start(lock.Config{}, nil)
			_, err := p.m.DryRun(ctx, b, 1)
			require.ErrorIs(w, err, migrations.ErrInvalid)
			require.ErrorContains(w, err, want)
			assert.Zero(w, p.line.calls.Load())
		}
	})
}

func TestDryRun_WritesNothing(t *testing.T) {
	contract(t, func(ctx context.Context, w *world) {
		w.fill(20)
		p := w.start(lock.Config{}, nil)
		ctx, usage := table.WithUsage(ctx)
		preview, err := p.m.DryRun(ctx, migrations.Backfill{PageSize: 7, Transform: func(ctx context.Context, item table.Item) (table.Item, error) {
			switch n := integer(item["n"]); {
			case n == 3:
				panic("three")
			case n%2 == 0:
				return nil, nil
			}
			return increment(ctx, item)
		}}, 4)
		require.NoError(w, err)
		assert.Equal(w, "20 items read, 9 would be written, 1 would fail", preview.String())
		assert.Len(w, preview.Samples, 4)
		assert.Zero(w, usage.Totals().WriteUnits)
	})
}
