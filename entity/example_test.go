package entity_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/guregu/dynamo/v2"

	"github.com/mortise-go/mortise/entity"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// newTable makes an empty table on the in-process engine, with an index that all types share.
func newTable(ctx context.Context, more ...table.Index) *table.Table {
	engine := tabletest.NewEngine() // or dynamodb.NewFromConfig(cfg)
	tbl, err := table.Open(engine.Client(), table.Schema{
		Name:    "app",
		Indexes: append(more, table.Index{Name: "gsi1", PK: "gsi1pk", SK: "gsi1sk"}),
	})
	if err == nil {
		err = tbl.Ensure(ctx)
	}
	if err != nil {
		log.Fatal(err)
	}
	return tbl
}

func ExampleDefine() {
	ctx := context.Background()
	tbl := newTable(ctx)

	type Task struct {
		Project string    `dynamo:"project"`
		ID      string    `dynamo:"id"`
		State   string    `dynamo:"state,omitempty"`
		Due     time.Time `dynamo:"due,omitempty"`
		Rev     int64     `dynamo:"rev"`
	}
	tasks, err := entity.Define(tbl, entity.Spec[Task]{
		Type: "Task", PK: "PROJECT#{project}", SK: "TASK#{id}", Version: "rev",
		Indexes: []entity.Index[Task]{
			// Only tasks that are waiting are in the index, those due first in front.
			{Name: "gsi1", PK: "WAITING#{project}", SK: "{due:time-s}", When: func(t Task) bool { return t.State == "waiting" }},
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for i, id := range []string{"paint", "sand", "saw"} {
		t, err := tasks.Create(ctx, Task{Project: "door", ID: id, State: "waiting", Due: noon.Add(-time.Duration(i) * time.Hour)})
		if err != nil {
			log.Fatal(err)
		}
		if id == "saw" {
			if _, err := tasks.Update(ctx, t, entity.Set("state", "done")); err != nil {
				log.Fatal(err)
			}
			_, err = tasks.Update(ctx, t, entity.Set("state", "waiting"))
			fmt.Println(errors.Is(err, entity.ErrStale), err)
		}
	}
	for t, err := range tasks.Query(ctx, keys.Values{"project": "door"}, entity.On("gsi1")) {
		fmt.Println(t.ID, t.Due.Format(time.TimeOnly), err)
	}
	// Output:
	// true entity: update Task: table: write: operation 0 (update): row was changed by somebody else
	// sand 11:00:00 <nil>
	// paint 12:00:00 <nil>
}

func ExampleCollect() {
	ctx := context.Background()
	tbl := newTable(ctx)

	type Invoice struct{ ID, Customer string }
	type Item struct {
		Invoice string
		No      int
		Text    string
	}
	invoices, err := entity.Define(tbl, entity.Spec[Invoice]{Type: "Invoice", PK: "INVOICE#{id}", SK: "INVOICE"})
	if err != nil {
		log.Fatal(err)
	}
	items, err := entity.Define(tbl, entity.Spec[Item]{Type: "Item", PK: "INVOICE#{invoice}", SK: "ITEM#{no:uint3}"})
	if err != nil {
		log.Fatal(err)
	}
	invoice := Invoice{ID: "1", Customer: "acme"}
	if err := tbl.Write(ctx, // one transaction
		invoices.CreateOp(invoice),
		items.CreateOp(Item{"1", 1, "hinge"}),
		items.CreateOp(Item{"1", 2, "latch"}),
	); err != nil {
		log.Fatal(err)
	}

	var heads []Invoice
	var lines []Item
	err = entity.Collect(ctx, tbl, invoices.Key(invoice).PK, entity.Into(invoices, &heads), entity.Into(items, &lines))
	fmt.Println(heads, lines, err)

	err = entity.Collect(ctx, tbl, invoices.Key(invoice).PK, entity.Into(invoices, &heads))
	fmt.Println(err)
	// Output:
	// [{1 acme}] [{1 1 hinge} {1 2 latch}] <nil>
	// entity: no sink for a row of type "Item"
}

func ExampleEntity_Query() {
	ctx := context.Background()
	tbl := newTable(ctx)

	type Event struct {
		Device string    `dynamo:"device"`
		At     time.Time `dynamo:"at"`
		Text   string    `dynamo:"text"`
	}
	events, err := entity.Define(tbl, entity.Spec[Event]{Type: "Event", PK: "DEVICE#{device}", SK: "EVENT#{at:time-s}"})
	if err != nil {
		log.Fatal(err)
	}
	day := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	for i, text := range []string{"on", "warm", "hot", "off"} {
		if _, err := events.Create(ctx, Event{"boiler", day.Add(time.Duration(i) * time.Hour), text}); err != nil {
			log.Fatal(err)
		}
	}
	match := keys.Values{"device": "boiler"}
	for e, err := range events.Query(ctx, match, entity.From("at", day.Add(time.Hour)), entity.Until("at", day.Add(3*time.Hour))) {
		fmt.Println(e.At.Format(time.TimeOnly), e.Text, err)
	}
	for e, err := range events.Query(ctx, match, entity.Descending(), entity.Limit(1)) {
		fmt.Println("last:", e.Text, err)
	}
	// Output:
	// 01:00:00 warm <nil>
	// 02:00:00 hot <nil>
	// last: off <nil>
}

func ExampleUnique() {
	ctx := context.Background()
	tbl := newTable(ctx)

	type Account struct {
		Tenant  string `dynamo:"tenant"`
		ID      string `dynamo:"id"`
		Email   string `dynamo:"email,omitempty"`
		Version int64  `dynamo:"rev"`
	}
	accounts, err := entity.Define(tbl, entity.Spec[Account]{
		Type: "Account", PK: "TENANT#{tenant}", SK: "ACCOUNT#{id}", Version: "rev",
		Unique: []entity.Unique[Account]{{Name: "email", Key: "{tenant}#{email}"}}, // within a tenant
	})
	if err != nil {
		log.Fatal(err)
	}
	ann, err := accounts.Create(ctx, Account{Tenant: "acme", ID: "1", Email: "ann@example.com"})
	if err != nil {
		log.Fatal(err)
	}
	bob := Account{Tenant: "acme", ID: "2", Email: "ann@example.com"}
	_, err = accounts.Create(ctx, bob)
	var taken *entity.UniqueError
	fmt.Println(errors.As(err, &taken), taken)

	_, err = accounts.Update(ctx, ann, entity.Set("email", "ann@example.org")) // frees the old one
	if err == nil {
		_, err = accounts.Create(ctx, bob)
	}
	fmt.Println(err)
	// Output:
	// true value is taken: constraint "email" of Account
	// <nil>
}

func ExampleEntity_Modify() {
	ctx := context.Background()
	tbl := newTable(ctx)

	type Cart struct {
		ID    string         `dynamo:"id"`
		Lines map[string]int `dynamo:"lines"`
	}
	carts, err := entity.Define(tbl, entity.Spec[Cart]{Type: "Cart", PK: "CART#{id}", SK: "CART"})
	if err != nil {
		log.Fatal(err)
	}
	add := func(article string, n int) func(*Cart) error {
		return func(c *Cart) error {
			if c.Lines == nil {
				c.Lines = map[string]int{}
			}
			if c.Lines[article] += n; c.Lines[article] > 10 {
				return fmt.Errorf("too many of %s", article)
			}
			return nil
		}
	}
	fmt.Println(carts.Upsert(ctx, Cart{ID: "7"}, add("hinge", 2))) // makes the row
	fmt.Println(carts.Modify(ctx, Cart{ID: "7"}, add("latch", 1)))
	_, err = carts.Modify(ctx, Cart{ID: "7"}, add("hinge", 20))
	fmt.Println(err)
	// Output:
	// {7 map[hinge:2]} <nil>
	// {7 map[hinge:2 latch:1]} <nil>
	// entity: modify Cart: too many of hinge
}

func ExampleEntity_If() {
	ctx := context.Background()
	tbl := newTable(ctx)

	type Job struct {
		ID    string `dynamo:"id"`
		State string `dynamo:"state"`
	}
	jobs, err := entity.Define(tbl, entity.Spec[Job]{Type: "Job", PK: "JOB#{id}", SK: "JOB"})
	if err != nil {
		log.Fatal(err)
	}
	job, err := jobs.Create(ctx, Job{ID: "1", State: "running"})
	if err != nil {
		log.Fatal(err)
	}
	done := jobs.If(jobs.Field("state").Equal("done"))
	fmt.Println(errors.Is(done.Delete(ctx, job), table.ErrCondition))
	if _, err := jobs.Update(ctx, job, entity.Set("state", "done")); err != nil {
		log.Fatal(err)
	}
	fmt.Println(done.Delete(ctx, job))
	// Output:
	// true
	// <nil>
}

func ExampleSpec_upgrades() {
	ctx := context.Background()
	tbl := newTable(ctx)

	type Price struct {
		Article string `dynamo:"article"`
		Cents   int64  `dynamo:"cents"`
	}
	prices, err := entity.Define(tbl, entity.Spec[Price]{
		Type: "Price", PK: "PRICE#{article}", SK: "PRICE",
		Upgrades: []func(table.Item) (table.Item, error){
			func(row table.Item) (table.Item, error) { // from 0, where prices were in whole units
				var old struct {
					Units int64 `dynamo:"units"`
				}
				if err := dynamo.UnmarshalItem(row, &old); err != nil {
					return nil, err
				}
				delete(row, "units")
				cents, err := table.Encode(100 * old.Units)
				row["cents"] = cents
				return row, err
			},
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	row := tbl.KeyItem(prices.Key(Price{Article: "hinge"}))
	row["units"], _ = table.Encode(7)
	if err := tbl.Write(ctx, table.Put(row)); err != nil { // by an older program
		log.Fatal(err)
	}
	fmt.Println(prices.Get(ctx, Price{Article: "hinge"}))
	fmt.Println(prices.Update(ctx, Price{Article: "hinge"}, entity.Add("cents", 50)))
	// Output:
	// {hinge 700} <nil>
	// {hinge 750} <nil>
}
