package browser

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"time"

	"github.com/mortise-go/mortise/console"
	"github.com/mortise-go/mortise/entity"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/migrations"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// Marker is part of every payload and of every text attribute outside of primary keys, so tests can find values on pages.
const Marker = "m4rker"

// Scene is the table of a shop in this process, with locks, a migration that is running, and a console that shows them. Hold adds locks
// with holders and waiters.
type Scene struct {
	Table  *table.Table
	URL    string // of the console; ends with a slash
	Server *httptest.Server

	ctx     context.Context
	cancel  context.CancelFunc
	clients map[string]*lock.Client // by owner
	console *console.Console
	ended   chan struct{} // closed when the migrations have ended
	passed  atomic.Int64  // nanoseconds by which the scene's clock is ahead
}

// Now is the time by the scene's clock.
func (s *Scene) Now() time.Time { return time.Now().Add(time.Duration(s.passed.Load())) }

// Pass advances the scene's clock, so that locks look older. The sum of all calls must be less than a lease, which is 1 h.
func (s *Scene) Pass(d time.Duration) { s.passed.Add(int64(d)) }

// Customer is a type of the shop.
type Customer struct {
	Tenant string `dynamo:"tenant"`
	ID     string `dynamo:"id"`
	Name   string `dynamo:"name"`
	Mail   string `dynamo:"mail"`
}

// Order is another type of the shop.
type Order struct {
	Tenant  string `dynamo:"tenant"`
	ID      int    `dynamo:"id"`
	Status  string `dynamo:"status"`
	Note    string `dynamo:"note"`
	Version int64  `dynamo:"version"`
}

// NewScene returns a new scene. With showData, its console shows values.
func NewScene(ctx context.Context, showData bool) (*Scene, error) {
	s := &Scene{clients: map[string]*lock.Client{}, ended: make(chan struct{})}
	tbl, err := table.Open(tabletest.NewEngine(tabletest.WithClock(s.Now)).Client(), table.Schema{
		Name: "shop", Indexes: []table.Index{{Name: "gsi1", PK: "gsi1pk", SK: "gsi1sk"}},
	}, table.WithClock(s.Now))
	if err == nil {
		err = tbl.Ensure(ctx)
	}
	if err != nil {
		return nil, err
	}
	s.Table = tbl
	s.ctx, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
	close(s.ended)
	if err := s.set(showData); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Scene) set(showData bool) error {
	customers, err := entity.Define(s.Table, entity.Spec[Customer]{
		Type: "Customer", PK: "TENANT#{tenant}", SK: "CUSTOMER#{id}", Indexes: []entity.Index[Customer]{{Name: "gsi1", PK: "MAIL#{mail}", SK: "CUSTOMER"}},
	})
	if err != nil {
		return err
	}
	orders, err := entity.Define(s.Table, entity.Spec[Order]{Type: "Order", PK: "TENANT#{tenant}", SK: "ORDER#{id:uint6}", Version: "version"})
	if err != nil {
		return err
	}
	for _, tenant := range []string{"acme", "globex", "initech"} {
		for i := range 4 {
			if _, err := customers.Create(s.ctx, Customer{tenant, fmt.Sprint("c", i), "Name " + Marker, fmt.Sprint(Marker, i, "@", tenant)}); err != nil {
				return err
			}
		}
		for i := range 40 {
			if _, err := orders.Create(s.ctx, Order{Tenant: tenant, ID: 1000 + i, Status: "open " + Marker, Note: Marker}); err != nil {
				return err
			}
		}
	}
	m, err := s.migrate()
	if err != nil {
		return err
	}
	s.console, err = console.New(console.Config{
		Table: s.Table, Locks: s.Client("operator"), Migrations: m, Entities: []console.Entity{customers, orders}, ShowData: showData,
	})
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("/ops/", s.console)
	s.Server = httptest.NewServer(mux)
	s.URL = s.Server.URL + "/ops/"
	return nil
}

// migrate starts the migrations. The third one stays in its backfill until the scene is closed.
func (s *Scene) migrate() (*migrations.Migrator, error) {
	nothing := func(context.Context, *migrations.Run) error { return nil }
	stuck := make(chan struct{}, 1)
	m, err := migrations.New(s.Table, s.Client("deploy-7"), []migrations.Migration{
		{ID: "1_indexes", Name: "the index of customers by mail", Up: nothing},
		{ID: "2_currency", Name: "prices in cents", Up: nothing},
		{ID: "3_status", Name: "a status for every order", Idempotent: true, Up: func(ctx context.Context, run *migrations.Run) error {
			seen := 0
			_, err := run.Backfill(ctx, migrations.Backfill{
				Name: "orders", Segments: 1, Writers: 1, PageSize: 25,
				Transform: func(ctx context.Context, _ table.Item) (table.Item, error) {
					if seen++; seen <= 80 {
						return nil, nil //nolint:nilnil // leaves the item as it is
					}
					select {
					case stuck <- struct{}{}:
					default:
					}
					<-ctx.Done()
					return nil, context.Cause(ctx)
				},
			})
			return err
		}},
		{ID: "4_archive", Name: "old orders leave the table", Up: nothing},
	}, migrations.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		return nil, err
	}
	s.ended = make(chan struct{})
	go func() {
		defer close(s.ended)
		_, _ = m.Up(s.ctx) // fails when the scene is closed
	}()
	select {
	case <-stuck:
		return m, nil
	case <-s.ended:
		return nil, errors.New("the migrations have ended")
	}
}

// Client returns the lock client of an owner. Each owner stands for one process, and has one client.
func (s *Scene) Client(owner string) *lock.Client {
	c := s.clients[owner]
	if c == nil {
		var err error
		c, err = lock.New(s.Table, lock.Config{Owner: owner, Lease: time.Hour, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			panic(err) // the configuration is constant
		}
		s.clients[owner] = c
	}
	return c
}

// Hold makes the owners enter the line of a lock in the given order, with time between them. The first one holds the lock.
func (s *Scene) Hold(target lock.Target, between time.Duration, owners ...string) (*lock.Lease, error) {
	lease, err := s.Client(owners[0]).Acquire(s.ctx, target, lock.WithData(Marker))
	if err != nil {
		return nil, err
	}
	for i, owner := range owners[1:] {
		s.Pass(between)
		c := s.Client(owner)
		go func() { _, _ = c.Acquire(s.ctx, target) }() // waits until the scene is closed
		for {
			r, err := c.Inspect(s.ctx, target)
			if err != nil {
				return nil, err
			}
			if r.Waiting() > i {
				break
			}
			time.Sleep(time.Millisecond)
		}
	}
	return lease, nil
}

// Silence makes a lock's holder look as if its process had died: its session expired the given time ago.
func (s *Scene) Silence(target lock.Target, ago time.Duration) error {
	r, err := s.Client("operator").Inspect(s.ctx, target)
	if err != nil {
		return err
	}
	id := "SESSION#" + r.Holder().Session
	return s.Table.Write(s.ctx, table.Update(keys.NewKey(id, id), table.Attr("expires").Set(s.Now().Add(-ago).UnixMilli())))
}

// Close ends everything.
func (s *Scene) Close() error {
	var errs []error
	if s.console != nil {
		errs = append(errs, s.console.Close())
	}
	if s.Server != nil {
		s.Server.Close()
	}
	s.cancel()
	<-s.ended
	for _, c := range s.clients {
		errs = append(errs, c.Close(context.Background()))
	}
	return errors.Join(errs...)
}
