package calls

import (
	"context"
	"errors"
	"io"
	"maps"
	"strings"
	"time"

	"github.com/mortise-go/mortise/internal/inside"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/entity"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/migrations"
	"github.com/mortise-go/mortise/table"
)

// alter writes a row behind everybody's back.
func (w *world) alter(key keys.Key, changes ...table.Change) {
	w.Helper()
	require.NoError(w, w.table.Write(w.Context(), table.Update(key, changes...)))
}

// ticket is that of the lock's holder.
func (w *world) ticket(of lock.Target) string {
	w.Helper()
	r, err := w.locks.Inspect(w.Context(), of)
	require.NoError(w, err)
	require.True(w, r.Held())
	return r.Holder().Ticket
}

// each are the errors of some calls, by their names.
func each(prefix string, errs map[string]error) map[string]error {
	all := map[string]error{}
	for name, err := range errs {
		all[prefix+name] = err
	}
	return all
}

// withOrder is what every call that takes an order makes of one.
func (w *world) withOrder(o order) map[string]error {
	ctx := w.Context()
	return map[string]error{
		"get":       first(w.orders.Get(ctx, o)),
		"create":    first(w.orders.Create(ctx, o)),
		"put":       first(w.orders.Put(ctx, o)),
		"update":    first(w.orders.Update(ctx, o, entity.Set("status", "paid"))),
		"delete":    w.orders.Delete(ctx, o),
		"modify":    first(w.orders.Modify(ctx, o, func(o *order) error { o.Total++; return nil })),
		"upsert":    first(w.orders.Upsert(ctx, o, func(o *order) error { o.Total++; return nil })),
		"batch get": first(w.orders.BatchGet(ctx, []order{w.known, o})),
		"put all":   first(w.orders.PutAll(ctx, []order{o, {Tenant: "acme", ID: "new", Email: "new@b"}})),
		"create op": w.table.Write(ctx, w.orders.CreateOp(o)),
		"put op":    w.table.Write(ctx, w.orders.PutOp(o)),
		"update op": w.table.Write(ctx, w.orders.UpdateOp(o, entity.Set("status", "paid"))),
		"delete op": w.table.Write(ctx, w.orders.DeleteOp(o)),
		"ops": w.table.Write(
			ctx, w.events.PutOp(event{Tenant: "acme", No: 1}), w.orders.DeleteOp(o),
		),
		"batch write": w.table.BatchWrite(ctx, []table.Op{w.orders.PutOp(o)}),
		"table get":   first(w.table.Get(ctx, w.orders.Key(o), true)),
		"table batch": first(w.table.BatchGet(ctx, []keys.Key{w.orders.Key(o)}, true)),
		"lock":        first(w.locks.Acquire(ctx, lock.Beside(w.orders.Key(o)), lock.Fixed(time.Second))),
		"locks":       first(w.locks.TryAcquireAll(ctx, []lock.Target{lock.Name("x"), lock.Beside(w.orders.Key(o))})),
		"inspect":     first(w.locks.Inspect(ctx, lock.Beside(w.orders.Key(o)))),
		"do": w.locks.Do(ctx, lock.Name("a"), func(ctx context.Context, l *lock.Lease) error {
			return l.Write(ctx, w.orders.PutOp(o))
		}),
		"commit": w.locks.Do(ctx, lock.Name("a"), func(ctx context.Context, l *lock.Lease) error {
			return l.Commit(ctx, w.orders.DeleteOp(o))
		}),
		"lead": w.locks.Lead(ctx, lock.Name("a"), func(context.Context, *lock.Lease) error { return w.orders.Delete(ctx, o) }),
		"migration": first(w.migrator(migrations.Migration{ID: "1", Idempotent: true, Up: func(ctx context.Context, run *migrations.Run) error {
			return run.AtomicStep(ctx, "one", w.orders.PutOp(o))
		}}).Up(ctx)),
		"sealed migration": first(w.migrator(migrations.Migration{ID: "1", Idempotent: true, Up: func(ctx context.Context, run *migrations.Run) error {
			return run.Atomic(ctx, w.orders.PutOp(o))
		}}).Up(ctx)),
	}
}

// inputs are calls that fail for what they are given, or for what they meet.
func inputs() map[string]func(w *world) map[string]error {
	at := keys.NewKey("TENANT#acme", "ORDER#1")
	return map[string]func(w *world) map[string]error{
		"no key":  func(w *world) map[string]error { return w.withOrder(order{ID: "1"}) },
		"bad key": func(w *world) map[string]error { return w.withOrder(order{Tenant: "a\xff", ID: "1"}) },
		"long key": func(w *world) map[string]error {
			return w.withOrder(order{Tenant: "acme", ID: strings.Repeat("1", 2000)})
		},
		"bad value":    func(w *world) map[string]error { return w.withOrder(order{Tenant: "acme", ID: "1", Status: "\xff"}) },
		"bad version":  func(w *world) map[string]error { return w.withOrder(order{Tenant: "acme", ID: "1", Version: -1}) },
		"none there":   func(w *world) map[string]error { return w.withOrder(order{Tenant: "acme", ID: "none", Version: 3}) },
		"stale":        func(w *world) map[string]error { return w.withOrder(order{Tenant: "acme", ID: "1", Version: 7}) },
		"taken values": func(w *world) map[string]error { return w.withOrder(order{Tenant: "acme", ID: "2", Email: "a@b"}) },
		"another type": func(w *world) map[string]error {
			w.alter(at, table.Attr("type").Set("Invoice"))
			return w.withOrder(w.known)
		},
		"does not decode": func(w *world) map[string]error {
			w.alter(at, table.Attr("total").Set("many"))
			errs := w.withOrder(w.known)
			errs["query"] = drained(w.orders.Query(w.Context(), keys.Values{"tenant": "acme"}))
			errs["page"] = first(w.orders.Page(w.Context(), keys.Values{"tenant": "acme"}))
			errs["scan"] = drained(w.orders.Scan(w.Context()))
			var into []order
			errs["collect"] = entity.Collect(w.Context(), w.table, at.PK, entity.Into(w.orders, &into))
			return errs
		},
		"version does not decode": func(w *world) map[string]error {
			w.alter(at, table.Attr("_v").Set("many"))
			return w.withOrder(w.known)
		},
		"reads": func(w *world) map[string]error {
			ctx := w.Context()
			_, next := w.orders.Page(ctx, keys.Values{"tenant": "acme"}, entity.Limit(1))
			return map[string]error{
				"page":              next,
				"no values":         drained(w.orders.Query(ctx, nil)),
				"unknown value":     drained(w.orders.Query(ctx, keys.Values{"tenant": "acme", "x": 1})),
				"bad value":         drained(w.orders.Query(ctx, keys.Values{"tenant": "a\xff"})),
				"wrong type":        drained(w.events.Query(ctx, keys.Values{"tenant": "acme", "no": -1})),
				"unknown index":     drained(w.orders.Query(ctx, keys.Values{"tenant": "acme"}, entity.On("none"))),
				"consistent index":  drained(w.orders.Query(ctx, keys.Values{"status": "open"}, entity.On("by-status"), entity.Consistent())),
				"bad limit":         drained(w.orders.Query(ctx, keys.Values{"tenant": "acme"}, entity.Limit(0))),
				"bound":             drained(w.orders.Query(ctx, keys.Values{"tenant": "acme"}, entity.From("x", 1))),
				"bound of no codec": drained(w.events.Query(ctx, keys.Values{"tenant": "acme"}, entity.From("no", "x"))),
				"filter":            drained(w.orders.Query(ctx, keys.Values{"tenant": "acme"}, entity.Filter(w.orders.Field("x").Equal(1)))),
				"key in a filter":   drained(w.orders.Query(ctx, keys.Values{"tenant": "acme"}, entity.Filter(table.Attr("pk").Equal("x")))),
				"cursor":            drained(w.orders.Query(ctx, keys.Values{"tenant": "acme"}, entity.After("x"))),
				"option":            first(w.orders.Get(ctx, w.known, entity.Limit(1))),
				"nil option":        first(w.orders.Get(ctx, w.known, nil)),
				"scan":              drained(w.orders.Scan(ctx, entity.On("none"))),
				"segments":          drained(w.orders.Scan(ctx, entity.Segments(0))),
				"collect":           entity.Collect(ctx, w.table, "TENANT#acme", entity.Into(w.events, new([]event))),
				"collect nothing":   entity.Collect(ctx, w.table, ""),
				"collect nowhere":   entity.Collect(ctx, w.table, "x", entity.Into[order](w.orders, nil)),
				"sort":              entity.Sort(w.table, table.Item{}),
				"table query":       drained(w.table.Query(ctx, table.Query{})),
				"table index":       drained(w.table.Query(ctx, table.Query{PK: "x", Index: "none"})),
				"table scan":        drained(w.table.Scan(ctx, table.Scan{Segment: 3, Segments: 2})),
			}
		},
		"changes": func(w *world) map[string]error {
			ctx := w.Context()
			update := func(changes ...entity.Change) error { return first(w.orders.Update(ctx, w.known, changes...)) }
			modify := func(f func(*order) error) error { return first(w.orders.Modify(ctx, w.known, f)) }
			return map[string]error{
				"none":             update(),
				"unknown":          update(entity.Set("x", 1)),
				"key":              update(entity.Set("tenant", "x")),
				"type":             update(entity.Set("total", "many")),
				"version":          update(entity.Set("Version", 1)),
				"to a taken value": update(entity.Set("email", 1)),
				"nil function":     modify(nil),
				"own error":        modify(func(*order) error { return io.ErrUnexpectedEOF }),
				"nested":           modify(func(*order) error { return first(w.orders.Get(ctx, order{})) }),
				"nested twice": modify(func(*order) error {
					return modify(func(*order) error { return first(w.orders.Get(ctx, order{})) })
				}),
				"changed key":     modify(func(o *order) error { o.ID = "2"; return nil }),
				"changed version": modify(func(o *order) error { o.Version++; return nil }),
				"bad value":       modify(func(o *order) error { o.Status = "\xff"; return nil }),
				"modify op":       w.table.Write(ctx, w.orders.ModifyOp(w.known, w.known)),
				"condition":       w.orders.If(table.Attr("status").Equal("x")).Delete(ctx, w.known),
				"bad condition":   w.orders.If(w.orders.Field("x").Exists()).Delete(ctx, w.known),
			}
		},
		"operations": func(w *world) map[string]error {
			ctx := w.Context()
			k := keys.NewKey("p", "s")
			return map[string]error{
				"none":              w.table.Write(ctx),
				"empty":             w.table.Write(ctx, table.Op{}),
				"no changes":        w.table.Write(ctx, table.Update(k)),
				"bad key":           w.table.Write(ctx, table.Delete(keys.NewKey("", "s"))),
				"key changed":       w.table.Write(ctx, table.Update(k, table.Attr("pk").Set(1))),
				"twice":             w.table.Write(ctx, table.Delete(k), table.Delete(k)),
				"no key attribute":  w.table.Write(ctx, table.Put(table.Item{"pk": &types.AttributeValueMemberS{Value: "p"}})),
				"nil value":         w.table.Write(ctx, table.Update(k, table.Attr("x").Set(nil))),
				"not encodable":     w.table.Write(ctx, table.Update(k, table.Attr("x").Set(make(chan int)))),
				"conditions":        w.table.Write(ctx, table.Delete(at).If(table.Attr("x").Exists()), table.Check(k, table.Attr("x").Exists())),
				"condition":         w.table.Write(ctx, table.Delete(at).If(table.Attr("x").Exists())),
				"token":             w.table.WriteOnce(ctx, "", table.Delete(k)),
				"apply":             first(w.table.Apply(ctx, table.Delete(k), table.ReturnNew)),
				"batch":             w.table.BatchWrite(ctx, []table.Op{table.Update(k, table.Attr("x").Set(1))}),
				"batch twice":       w.table.BatchWrite(ctx, []table.Op{table.Delete(k), table.Delete(k)}),
				"item from JSON":    first(table.ItemFromJSON([]byte(`{"a":{"S":1}}`))),
				"operand of a type": w.table.Write(ctx, table.Update(at, table.Attr("status").Add(1))),
				"prepare":           first(w.table.Inside(inside.Key{}).Prepare(table.Put(nil))),
			}
		},
		"locks": func(w *world) map[string]error {
			ctx := w.Context()
			held, err := w.locks.Acquire(ctx, lock.Name("held"))
			require.NoError(w, err)
			other, err := lock.New(fresh(w), lock.Config{})
			require.NoError(w, err)
			defer func() { require.NoError(w, other.Close(ctx)) }()
			lost, err := w.locks.Acquire(ctx, lock.Name("lost"))
			require.NoError(w, err)
			require.NoError(w, other.ForceRelease(ctx, lock.Name("lost"), w.ticket(lock.Name("lost"))))
			released, err := w.locks.Acquire(ctx, lock.Name("released"))
			require.NoError(w, err)
			require.NoError(w, released.Release(ctx))
			short, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			return map[string]error{
				"held":            first(other.TryAcquire(ctx, lock.Name("held"))),
				"held, waiting":   first(other.Acquire(short, lock.Name("held"))),
				"all held":        first(other.TryAcquireAll(ctx, []lock.Target{lock.Name("held"), lock.Name("x")})),
				"twice":           first(other.TryAcquireAll(ctx, []lock.Target{lock.Name("x"), lock.Name("x")})),
				"none":            first(other.TryAcquireAll(ctx, nil)),
				"empty":           first(other.Acquire(ctx, lock.Target{})),
				"long":            first(other.Acquire(ctx, lock.Name(strings.Repeat("x", 600)))),
				"option":          first(other.Acquire(ctx, lock.Name("x"), lock.Fixed(1))),
				"data":            first(other.Acquire(ctx, lock.Name("x"), lock.WithData(make(chan int)))),
				"big data":        first(other.Acquire(ctx, lock.Name("x"), lock.WithData(strings.Repeat("x", 5000)))),
				"force":           other.ForceRelease(ctx, lock.Name("held"), "another"),
				"force nobody":    other.ForceRelease(ctx, lock.Name("none"), "another"),
				"force nothing":   other.ForceRelease(ctx, lock.Name("none"), ""),
				"revoke":          other.Revoke(ctx, lock.Name("none")),
				"inspect":         first(other.Inspect(ctx, lock.Name("none"))),
				"list":            drained(other.List(ctx, lock.Source{})),
				"list the index":  drained(other.List(ctx, lock.Index())),
				"list nothing":    drained(other.List(ctx, lock.In(""))),
				"lost":            lost.Write(ctx, table.Delete(at)),
				"lost commit":     lost.Commit(ctx, table.Delete(at)),
				"lost release":    lost.Release(ctx),
				"lost data":       lost.SetData(ctx, 1),
				"released":        released.Write(ctx, table.Delete(at)),
				"released commit": released.Commit(ctx, table.Delete(at)),
				"no operations":   held.Write(ctx),
				"own row":         held.Write(ctx, table.Update(held.Key(), table.Attr("x").Set(1))),
				"condition":       held.Write(ctx, table.Delete(at).If(table.Attr("x").Exists())),
				"config":          first(lock.New(w.table, lock.Config{Lease: 1, Skew: 1, RowKey: "{x}"})),
				"config of JSON":  new(lock.Config).UnmarshalJSON([]byte(`{"lease":1,"x":2}`)),
				"environment":     first(lock.ConfigFromEnviron("X", []string{"X_LEASE=1", "X_Y=1"})),
				"other row key":   first(lock.New(w.table, lock.Config{RowKey: "L#{of}"})),
				"no table":        first(lock.New(nil, lock.Config{})),
				"every":           other.Every(ctx, lock.Name("x"), 1, nil),
				"do nothing":      other.Do(ctx, lock.Name("x"), nil),
				"do": other.Do(ctx, lock.Name("x"), func(ctx context.Context, l *lock.Lease) error {
					return errors.Join(l.Release(ctx), l.Write(ctx, table.Delete(at)))
				}),
			}
		},
		"malformed locks": func(w *world) map[string]error {
			ctx := w.Context()
			lease, err := w.locks.Acquire(ctx, target, lock.Fixed(time.Minute))
			require.NoError(w, err)
			ticket := w.ticket(target)
			w.alter(lease.Key(), table.Attr("fence").Set("many"))
			errs := map[string]error{
				"acquire": first(w.locks.Acquire(ctx, target)), "try": first(w.locks.TryAcquire(ctx, target)), "inspect": first(w.locks.Inspect(ctx, target)),
				"list": drained(w.locks.List(ctx, lock.WholeTable())), "revoke": w.locks.Revoke(ctx, target),
				"all": first(w.locks.TryAcquireAll(ctx, []lock.Target{target})), "force": w.locks.ForceRelease(ctx, target, ticket),
			}
			w.alter(lease.Key(), table.Attr("type").Set("Order"))
			return merged(errs, each("not a lock: ", map[string]error{
				"acquire": first(w.locks.Acquire(ctx, target)), "try": first(w.locks.TryAcquire(ctx, target)), "inspect": first(w.locks.Inspect(ctx, target)),
				"revoke": w.locks.Revoke(ctx, target), "force": w.locks.ForceRelease(ctx, target, ticket), "release": lease.Release(ctx),
			}))
		},
		"closed": func(w *world) map[string]error {
			ctx := w.Context()
			c, err := lock.New(w.table, lock.Config{})
			require.NoError(w, err)
			l, err := c.Acquire(ctx, lock.Name("x"))
			require.NoError(w, err)
			require.NoError(w, c.Close(ctx))
			run := func(context.Context, *lock.Lease) error { return nil }
			return map[string]error{
				"acquire": first(c.Acquire(ctx, target)), "all": first(c.AcquireAll(ctx, []lock.Target{target})),
				"do": c.Do(ctx, target, run), "lead": c.Lead(ctx, target, run), "write": l.Write(ctx, table.Delete(at)), "renew": l.Renew(ctx),
				"every":   c.Every(ctx, target, time.Hour, func(context.Context, *lock.Lease, time.Time) error { return nil }),
				"healthy": c.Healthy(ctx), "force": c.ForceRelease(ctx, target, "x"), "revoke": c.Revoke(ctx, target),
			}
		},
		"migrations": func(w *world) map[string]error {
			ctx := w.Context()
			nothing := func(context.Context, *migrations.Run) error { return nil }
			broken := migrations.Migration{ID: "1", Up: func(ctx context.Context, run *migrations.Run) error {
				return run.Step(ctx, "one", func(context.Context) error { return io.ErrUnexpectedEOF })
			}}
			m := w.migrator(broken)
			made := func(list ...migrations.Migration) error { return first(migrations.New(w.table, w.locks, list)) }
			errs := map[string]error{
				"fails": first(m.Up(ctx)), "unfinished": first(m.Up(ctx)), "validate": m.Validate(ctx), "plan": first(m.Plan(ctx)),
				"down": first(m.Down(ctx)), "baseline": first(m.Baseline(ctx, "1")), "to": first(m.UpTo(ctx, "x")), "down to": first(m.DownTo(ctx, "x")),
				"unknown": first(w.migrator().Up(ctx)), "drifted": first(w.migrator(migrations.Migration{ID: "2", Up: nothing}).Up(ctx)),
				"no function": made(migrations.Migration{ID: "1"}), "twice": made(broken, broken), "bad ID": made(migrations.Migration{ID: "#", Up: nothing}),
				"no table": first(migrations.New(nil, nil, nil)), "dry run": first(m.DryRun(ctx, migrations.Backfill{}, 1)),
				"set": first(migrations.New(w.table, w.locks, nil, migrations.InSet(""))),
			}
			panics := w.migrator(migrations.Migration{ID: "1", Up: func(context.Context, *migrations.Run) error { panic(io.EOF) }})
			_, err := panics.Repair(ctx, func(f migrations.Fix) bool { return f.Kind == migrations.Retry })
			require.NoError(w, err)
			errs["panics"] = first(panics.Up(ctx))
			_, err = panics.Repair(ctx, func(f migrations.Fix) bool { return f.Kind == migrations.Retry })
			require.NoError(w, err)
			errs["backfill"] = first(w.migrator(migrations.Migration{ID: "1", Up: func(ctx context.Context, run *migrations.Run) error {
				_, err := run.Backfill(ctx, migrations.Backfill{Name: "b", Transform: func(_ context.Context, item table.Item) (table.Item, error) {
					delete(item, "pk")
					return item, nil
				}})
				return err
			}}).Up(ctx))
			w.alter(keys.NewKey("MIGRATIONS#main", "MIGRATION#1"), table.Attr("state").Set("sleeping"))
			errs["malformed"] = first(m.Status(ctx))
			w.alter(keys.NewKey("MIGRATIONS#main", "MIGRATION#1"), table.Attr("state").Set(1))
			errs["not decoded"] = first(m.Up(ctx))
			return errs
		},
		"definitions": func(w *world) map[string]error {
			type badKey struct {
				ID chan int `dynamo:"id"`
			}
			return map[string]error{
				"opened":         first(table.Open(nil, table.Schema{})),
				"schema":         first(table.Open(w.engine.Client(), table.Schema{Name: "x", Indexes: []table.Index{{}}, Keys: keys.Scheme{PK: "a", SK: "a"}})),
				"template":       first(w.table.Scheme().PKTemplate("{")),
				"entity":         first(entity.Define(w.table, entity.Spec[order]{Type: "X", PK: "{", SK: "{x}", Version: "x"})),
				"type":           first(entity.Define(w.table, entity.Spec[badKey]{Type: "X", PK: "{id}", SK: "X"})),
				"taken":          first(entity.Define(w.table, entity.Spec[event]{Type: "Order", PK: "{tenant}", SK: "{no}"})),
				"clashing":       first(entity.Define(w.table, entity.Spec[event]{Type: "Other", PK: "TENANT#{tenant}", SK: "ORDER#{no:uint3}"})),
				"nil table":      first(entity.Define(nil, entity.Spec[event]{Type: "Order"})),
				"scheme":         first(keys.ParseScheme([]byte(`{"pk":""}`))),
				"cloudformation": first(table.Schema{Name: "x"}.CloudFormation()),
			}
		},
	}
}

func merged(parts ...map[string]error) map[string]error {
	all := map[string]error{}
	for _, m := range parts {
		maps.Copy(all, m)
	}
	return all
}
