package calls

import (
	"context"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/entity"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/migrations"
	"github.com/mortise-go/mortise/migrations/migratecmd"
	"github.com/mortise-go/mortise/table"
)

// call makes one call with a context, after it has made what the call needs and has then had
// things broken.
type call func(w *world, ctx context.Context, breakIt func()) error

// simple is a call that needs nothing.
func simple(f func(w *world, ctx context.Context) error) call {
	return func(w *world, ctx context.Context, breakIt func()) error {
		breakIt()
		return f(w, ctx)
	}
}

// first is the error of a call that returns something beside it.
func first[T any](_ T, err error) error { return err }

// drained is the first error of a sequence.
func drained[T any](seq iter.Seq2[T, error]) error {
	for _, err := range seq {
		if err != nil {
			return err
		}
	}
	return nil
}

var target = lock.Name("nightly")

// underLease is a call under a lease.
func underLease(f func(w *world, ctx context.Context, l *lock.Lease) error, opts ...lock.Option) call {
	return func(w *world, ctx context.Context, breakIt func()) error {
		l, err := w.locks.Acquire(w.Context(), target, opts...)
		require.NoError(w, err)
		breakIt()
		return f(w, ctx, l)
	}
}

// underLeases is a call under several.
func underLeases(f func(w *world, ctx context.Context, b *lock.Bundle) error) call {
	return func(w *world, ctx context.Context, breakIt func()) error {
		b, err := w.locks.AcquireAll(w.Context(), []lock.Target{target, lock.Name("weekly")})
		require.NoError(w, err)
		breakIt()
		return f(w, ctx, b)
	}
}

// onMigrator is a call on a Migrator of two migrations, the first of which is applied.
func onMigrator(f func(ctx context.Context, m *migrations.Migrator) error) call {
	return func(w *world, ctx context.Context, breakIt func()) error {
		nothing := func(context.Context, *migrations.Run) error { return nil }
		m := w.migrator(
			migrations.Migration{ID: "1", Up: nothing, Down: nothing},
			migrations.Migration{ID: "2", Up: nothing, Down: nothing},
		)
		require.NoError(w, first(m.UpTo(w.Context(), "1")))
		breakIt()
		return f(ctx, m)
	}
}

// inRun is a call inside of a migration.
func inRun(f func(w *world, ctx context.Context, run *migrations.Run) error) call {
	return func(w *world, ctx context.Context, breakIt func()) error {
		var err error
		m := w.migrator(migrations.Migration{ID: "1", Up: func(_ context.Context, run *migrations.Run) error {
			breakIt()
			err = f(w, ctx, run)
			return err
		}})
		up := first(m.Up(w.Context()))
		if err == nil {
			return up
		}
		return err
	}
}

// repairable is a call on a Migrator of a migration that has failed.
func repairable(f func(ctx context.Context, m *migrations.Migrator) error) call {
	return func(w *world, ctx context.Context, breakIt func()) error {
		m := w.migrator(migrations.Migration{ID: "1", Up: func(context.Context, *migrations.Run) error { return io.ErrUnexpectedEOF }})
		require.Error(w, first(m.Up(w.Context())))
		breakIt()
		return f(ctx, m)
	}
}

func unchanged(_ context.Context, item table.Item) (table.Item, error) { return item, nil }

// calls are all exported functions and methods that take a context, by their names.
func calls() map[string]call {
	key := keys.NewKey("TENANT#acme", "ORDER#1")
	none := order{Tenant: "acme", ID: "none", Email: "none@b", Status: "open"}
	backfill := migrations.Backfill{Name: "all", Transform: unchanged}
	return map[string]call{
		"table.Table.Get": simple(func(w *world, ctx context.Context) error { return first(w.table.Get(ctx, key, true)) }),
		"table.Table.BatchGet": simple(func(w *world, ctx context.Context) error {
			return first(w.table.BatchGet(ctx, []keys.Key{key}, true))
		}),
		"table.Table.TransactGet": simple(func(w *world, ctx context.Context) error {
			return first(w.table.TransactGet(ctx, []keys.Key{key}))
		}),
		"table.Table.BatchWrite": simple(func(w *world, ctx context.Context) error {
			return w.table.BatchWrite(ctx, []table.Op{table.Delete(key)})
		}),
		"table.Table.Query": simple(func(w *world, ctx context.Context) error {
			return drained(w.table.Query(ctx, table.Query{PK: key.PK}))
		}),
		"table.Table.QueryPage": simple(func(w *world, ctx context.Context) error {
			return first(w.table.QueryPage(ctx, table.Query{PK: key.PK}))
		}),
		"table.Table.Scan":     simple(func(w *world, ctx context.Context) error { return drained(w.table.Scan(ctx, table.Scan{})) }),
		"table.Table.ScanPage": simple(func(w *world, ctx context.Context) error { return first(w.table.ScanPage(ctx, table.Scan{})) }),
		"table.Table.Write":    simple(func(w *world, ctx context.Context) error { return w.table.Write(ctx, table.Delete(key)) }),
		"table.Table.WriteOnce": simple(func(w *world, ctx context.Context) error {
			return w.table.WriteOnce(ctx, "token", table.Delete(key))
		}),
		"table.Table.Apply": simple(func(w *world, ctx context.Context) error {
			return first(w.table.Apply(ctx, table.Delete(key), table.ReturnOld))
		}),
		"table.Table.Ensure": simple(func(w *world, ctx context.Context) error { return w.table.Ensure(ctx) }),
		"table.Table.Plan":   simple(func(w *world, ctx context.Context) error { return first(w.table.Plan(ctx)) }),
		"table.Table.Verify": simple(func(w *world, ctx context.Context) error { return w.table.Verify(ctx) }),
		"table.Table.Replicated": simple(func(w *world, ctx context.Context) error {
			return first(fresh(w).Replicated(ctx))
		}),
		"table.Table.Estimate": simple(func(w *world, ctx context.Context) error { return first(w.table.Estimate(ctx)) }),
		"table.WithoutRetry": simple(func(w *world, ctx context.Context) error {
			return first(w.table.Get(table.WithoutRetry(ctx), key, true))
		}),
		"table.WithUsage": simple(func(w *world, ctx context.Context) error {
			ctx, _ = table.WithUsage(ctx)
			return first(w.table.Get(ctx, key, true))
		}),

		"entity.Entity.Get":    simple(func(w *world, ctx context.Context) error { return first(w.orders.Get(ctx, w.known)) }),
		"entity.Entity.Create": simple(func(w *world, ctx context.Context) error { return first(w.orders.Create(ctx, none)) }),
		"entity.Entity.Put":    simple(func(w *world, ctx context.Context) error { return first(w.orders.Put(ctx, w.known)) }),
		"entity.Entity.Update": simple(func(w *world, ctx context.Context) error {
			return first(w.orders.Update(ctx, w.known, entity.Set("status", "paid")))
		}),
		"entity.Entity.Delete": simple(func(w *world, ctx context.Context) error { return w.orders.Delete(ctx, w.known) }),
		"entity.Entity.Modify": simple(func(w *world, ctx context.Context) error {
			return first(w.orders.Modify(ctx, w.known, func(o *order) error { o.Total++; return nil }))
		}),
		"entity.Entity.Upsert": simple(func(w *world, ctx context.Context) error {
			return first(w.orders.Upsert(ctx, none, func(o *order) error { o.Total++; return nil }))
		}),
		"entity.Entity.Query": simple(func(w *world, ctx context.Context) error {
			return drained(w.orders.Query(ctx, keys.Values{"tenant": "acme"}))
		}),
		"entity.Entity.Page": simple(func(w *world, ctx context.Context) error {
			return first(w.orders.Page(ctx, keys.Values{"status": "open"}, entity.On("by-status")))
		}),
		"entity.Entity.Scan": simple(func(w *world, ctx context.Context) error { return drained(w.orders.Scan(ctx)) }),
		"entity.Entity.BatchGet": simple(func(w *world, ctx context.Context) error {
			return first(w.orders.BatchGet(ctx, []order{w.known, none}))
		}),
		"entity.Entity.PutAll": simple(func(w *world, ctx context.Context) error {
			return first(w.events.PutAll(ctx, []event{{Tenant: "acme", No: 1}, {Tenant: "acme", No: 2}}))
		}),
		"entity.Collect": simple(func(w *world, ctx context.Context) error {
			return entity.Collect(ctx, w.table, key.PK, entity.SkipUnknown())
		}),
		"entity.CollectQuery": simple(func(w *world, ctx context.Context) error {
			return entity.CollectQuery(ctx, w.table, table.Query{PK: key.PK, SK: keys.Range{Lo: "A"}}, entity.SkipUnknown())
		}),

		"lock.Client.Acquire":    simple(func(w *world, ctx context.Context) error { return first(w.locks.Acquire(ctx, target)) }),
		"lock.Client.TryAcquire": simple(func(w *world, ctx context.Context) error { return first(w.locks.TryAcquire(ctx, target)) }),
		"lock.Client.AcquireAll": simple(func(w *world, ctx context.Context) error {
			return first(w.locks.AcquireAll(ctx, []lock.Target{target, lock.Name("other")}))
		}),
		"lock.Client.TryAcquireAll": simple(func(w *world, ctx context.Context) error {
			return first(w.locks.TryAcquireAll(ctx, []lock.Target{target, lock.Name("other")}))
		}),
		"lock.Client.Do": simple(func(w *world, ctx context.Context) error {
			return w.locks.Do(ctx, target, func(context.Context, *lock.Lease) error { return nil })
		}),
		"lock.Client.TryDo": simple(func(w *world, ctx context.Context) error {
			return first(w.locks.TryDo(ctx, target, func(context.Context, *lock.Lease) error { return nil }))
		}),
		"lock.Client.Lead": simple(func(w *world, ctx context.Context) error {
			return w.locks.Lead(ctx, target, func(context.Context, *lock.Lease) error { return nil })
		}),
		"lock.Client.Every": simple(func(w *world, ctx context.Context) error {
			return w.locks.Every(ctx, target, time.Minute, func(context.Context, *lock.Lease, time.Time) error { return nil })
		}),
		"lock.Client.Sessions": simple(func(w *world, ctx context.Context) error { return first(w.locks.Sessions(ctx, "S")) }),
		"lock.Client.Inspect":  simple(func(w *world, ctx context.Context) error { return first(w.locks.Inspect(ctx, target)) }),
		"lock.Client.View": simple(func(w *world, ctx context.Context) error {
			return first(w.locks.View(ctx, target, []keys.Key{key}))
		}),
		"lock.Client.List": simple(func(w *world, ctx context.Context) error {
			return drained(w.locks.List(ctx, lock.In(key.PK)))
		}),
		"lock.Client.Healthy":      simple(func(w *world, ctx context.Context) error { return w.locks.Healthy(ctx) }),
		"lock.Client.ForceRelease": simple(func(w *world, ctx context.Context) error { return w.locks.ForceRelease(ctx, target, "ticket") }),
		"lock.Client.SetPermits":   simple(func(w *world, ctx context.Context) error { return w.locks.SetPermits(ctx, target, 2) }),
		"lock.Client.Revoke":       simple(func(w *world, ctx context.Context) error { return w.locks.Revoke(ctx, target) }),
		"lock.Client.Close": underLease(func(w *world, ctx context.Context, _ *lock.Lease) error {
			return w.locks.Close(ctx)
		}),
		"lock.Lease.Write": underLease(func(_ *world, ctx context.Context, l *lock.Lease) error { return l.Write(ctx, table.Delete(key)) }),
		"lock.Lease.Commit": underLease(func(_ *world, ctx context.Context, l *lock.Lease) error {
			return l.Commit(ctx, table.Delete(key))
		}),
		"lock.Lease.Release": underLease(func(_ *world, ctx context.Context, l *lock.Lease) error { return l.Release(ctx) }),
		"lock.Lease.Renew": underLease(func(_ *world, ctx context.Context, l *lock.Lease) error {
			return l.Renew(ctx)
		}, lock.Fixed(time.Minute)),
		"lock.Lease.SetData": underLease(func(_ *world, ctx context.Context, l *lock.Lease) error { return l.SetData(ctx, 1) }),
		"lock.Bundle.Write":  underLeases(func(_ *world, ctx context.Context, b *lock.Bundle) error { return b.Write(ctx, table.Delete(key)) }),
		"lock.Bundle.Commit": underLeases(func(_ *world, ctx context.Context, b *lock.Bundle) error { return b.Commit(ctx, table.Delete(key)) }),
		"lock.Bundle.Release": underLeases(func(_ *world, ctx context.Context, b *lock.Bundle) error {
			return b.Release(ctx)
		}),

		"migrations.Migrator.Up":   onMigrator(func(ctx context.Context, m *migrations.Migrator) error { return first(m.Up(ctx)) }),
		"migrations.Migrator.UpTo": onMigrator(func(ctx context.Context, m *migrations.Migrator) error { return first(m.UpTo(ctx, "2")) }),
		"migrations.Migrator.Down": onMigrator(func(ctx context.Context, m *migrations.Migrator) error { return first(m.Down(ctx)) }),
		"migrations.Migrator.DownTo": onMigrator(func(ctx context.Context, m *migrations.Migrator) error {
			return first(m.DownTo(ctx, ""))
		}),
		"migrations.Migrator.Baseline": onMigrator(func(ctx context.Context, m *migrations.Migrator) error {
			return first(m.Baseline(ctx, "2"))
		}),
		"migrations.Migrator.Status":   onMigrator(func(ctx context.Context, m *migrations.Migrator) error { return first(m.Status(ctx)) }),
		"migrations.Migrator.Plan":     onMigrator(func(ctx context.Context, m *migrations.Migrator) error { return first(m.Plan(ctx)) }),
		"migrations.Migrator.Validate": onMigrator(func(ctx context.Context, m *migrations.Migrator) error { return m.Validate(ctx) }),
		"migrations.Migrator.DryRun": onMigrator(func(ctx context.Context, m *migrations.Migrator) error {
			return first(m.DryRun(ctx, backfill, 1))
		}),
		"migrations.Migrator.Repair": repairable(func(ctx context.Context, m *migrations.Migrator) error {
			return first(m.Repair(ctx, func(migrations.Fix) bool { return true }))
		}),
		"migrations.Run.Write": inRun(func(_ *world, ctx context.Context, run *migrations.Run) error {
			return run.Write(ctx, table.Delete(key))
		}),
		"migrations.Run.Step": inRun(func(w *world, ctx context.Context, run *migrations.Run) error {
			return run.Step(ctx, "one", func(ctx context.Context) error { return w.table.Write(ctx, table.Delete(key)) })
		}),
		"migrations.Run.AtomicStep": inRun(func(_ *world, ctx context.Context, run *migrations.Run) error {
			return run.AtomicStep(ctx, "one", table.Delete(key))
		}),
		"migrations.Run.Atomic": inRun(func(_ *world, ctx context.Context, run *migrations.Run) error {
			return run.Atomic(ctx, table.Delete(key))
		}),
		"migrations.Run.Backfill": inRun(func(_ *world, ctx context.Context, run *migrations.Run) error {
			return first(run.Backfill(ctx, backfill))
		}),
		"migratecmd.Command.Run": onMigrator(func(ctx context.Context, m *migrations.Migrator) error {
			c := migratecmd.Command{Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: io.Discard}
			return c.Run(ctx, m, []string{"up"})
		}),
	}
}

// fresh is the world's table, as one that knows nothing yet.
func fresh(w *world) *table.Table {
	t, err := table.Open(w.engine.Client(w.net.options), schema)
	require.NoError(w, err)
	return t
}

// sendsNothing are calls that fail only where their context has ended.
var sendsNothing = []string{"lock.Client.Healthy"}

// givesBack are calls that do what they do although their context has ended.
var givesBack = []string{"lock.Client.Close", "lock.Lease.Release", "lock.Bundle.Release"}

// succeeds are calls that a lack of answers, or a missing table, does not fail.
func succeeds(name, fault string) bool {
	return slices.Contains(sendsNothing, name) ||
		fault == "no table" && slices.Contains([]string{"table.Table.Plan"}, name)
}

// The list above is complete.
func TestCalls_ListEveryCall(t *testing.T) {
	var found []string
	for _, dir := range []string{"table", "entity", "lock", "migrations", "migrations/migratecmd"} {
		found = append(found, takingContexts(t, dir)...)
	}
	listed := slices.Collect(maps.Keys(calls()))
	assert.ElementsMatch(t, found, listed)
}

// takingContexts are the exported functions of a package whose first parameter is a context, and
// such methods of exported types.
func takingContexts(t *testing.T, dir string) (names []string) {
	t.Helper()
	root := filepath.Join("..", "..", filepath.FromSlash(dir))
	files, err := os.ReadDir(root)
	require.NoError(t, err)
	set := token.NewFileSet()
	for _, file := range files {
		if !strings.HasSuffix(file.Name(), ".go") || strings.HasSuffix(file.Name(), "_test.go") {
			continue
		}
		f, err := parser.ParseFile(set, filepath.Join(root, file.Name()), nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, decl := range f.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok || !fn.Name.IsExported() || !takesContext(fn.Type) {
				continue
			}
			name := f.Name.Name + "."
			if fn.Recv != nil {
				of := receiver(fn.Recv.List[0].Type)
				if !ast.IsExported(of) {
					continue
				}
				name += of + "."
			}
			names = append(names, name+fn.Name.Name)
		}
	}
	return names
}

func takesContext(f *ast.FuncType) bool {
	if len(f.Params.List) == 0 {
		return false
	}
	s, ok := f.Params.List[0].Type.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	p, ok := s.X.(*ast.Ident)
	return ok && p.Name == "context" && s.Sel.Name == "Context"
}

func receiver(t ast.Expr) string {
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.Ident:
			return x.Name
		default:
			return ""
		}
	}
}

// short bounds a call that repeats its requests for as long as its context lasts.
func short(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, time.Minute, errors.New("a minute is over"))
}
