package entity_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mortise-go/mortise/entity"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
)

// A specification that is wrong is refused with all that is wrong about it.
func ExampleSpecError() {
	type Part struct {
		ID     string `dynamo:"id"`
		Weight float64
	}
	_, err := entity.Define(newTable(context.Background()), entity.Spec[Part]{
		PK: "PART#{number}", SK: "PART#{weight:uint4}", Version: "rev",
	})
	var wrong *entity.SpecError
	if errors.As(err, &wrong) {
		for _, problem := range wrong.Problems {
			fmt.Println(problem)
		}
	}
	fmt.Println(errors.Is(err, entity.ErrInvalid))
	// Output:
	// Type: empty
	// PK: template names "number", but no field has that name, or several have it
	// SK: codec uint4 does not take field "Weight", which is float64
	// Version: no field "rev"
	// true
}

// Rows that another program wrote have no version. As long as that is so, their attributes tell whether
// somebody else has written; the first write here gives them one. An update of nothing does, too.
func ExampleSpec_versionZero() {
	ctx := context.Background()
	type Part struct {
		Number string `dynamo:"-"`
		Price  int    `dynamo:"price"`
		Rev    int64  `dynamo:"rev"`
	}
	tbl := newTable(ctx)
	parts, err := entity.Define(tbl, entity.Spec[Part]{Type: "Part", PK: "PART#{number}", SK: "PART", Version: "rev"})
	check(err)
	another := func(number string, price int) { // program
		row := tbl.KeyItem(parts.Key(Part{Number: number}))
		row["price"], err = table.Encode(price)
		check(err)
		check(tbl.Write(ctx, table.Put(row)))
	}
	another("hinge", 700)
	another("latch", 300)

	hinge, err := parts.Get(ctx, Part{Number: "hinge"})
	fmt.Println(hinge.Price, hinge.Rev, err)
	another("hinge", 750)
	_, err = parts.Update(ctx, hinge, entity.Add("price", -100))
	fmt.Println(errors.Is(err, entity.ErrStale))

	for part, err := range parts.Scan(ctx) { // from now on versions tell
		check(err)
		if part.Rev == 0 {
			part, err = parts.Update(ctx, part) // ErrStale if somebody else has written it since
			fmt.Println(part.Number, part.Price, part.Rev, err)
		}
	}
	// Unordered output:
	// 700 0 <nil>
	// true
	// hinge 750 1 <nil>
	// latch 300 1 <nil>
}

// Timestamps and a time to live are fields that the entity maintains or looks at.
func ExampleSpec_times() {
	ctx := context.Background()
	type Draft struct {
		ID      string    `dynamo:"id"`
		Text    string    `dynamo:"text"`
		Made    time.Time `dynamo:"made"`
		Changed time.Time `dynamo:"changed"`
		Until   time.Time `dynamo:"-"` // is kept in the table's own attribute
	}
	drafts, err := entity.Define(newTable(ctx), entity.Spec[Draft]{
		Type: "Draft", PK: "DRAFT#{id}", SK: "DRAFT", Created: "made", Updated: "changed", TTL: "Until",
	})
	check(err)
	d, err := drafts.Create(ctx, Draft{ID: "1", Until: time.Now().Add(time.Hour)})
	check(err)
	changed, err := drafts.Update(ctx, d, entity.Set("text", "Dear"), entity.Remove("Until")) // to be kept
	fmt.Println(changed.Made.Equal(d.Made), changed.Changed.Before(d.Changed), changed.Until.IsZero(), err)

	_, err = drafts.Create(ctx, Draft{ID: "2", Until: time.Now().Add(-time.Minute)})
	check(err)
	_, err = drafts.Get(ctx, Draft{ID: "2"})
	fmt.Println(errors.Is(err, entity.ErrNotFound))
	// Output:
	// true false true <nil>
	// true
}

// In a table in which an attribute is something else already, here the key of another program's
// index, all attributes of an entity begin with a prefix. Its fields are named as ever.
func ExampleSpec_attributePrefix() {
	ctx := context.Background()
	tbl := newTable(ctx)
	type Note struct {
		ID  string `dynamo:"id"`
		Key int    `dynamo:"gsi1pk"`
	}
	spec := entity.Spec[Note]{Type: "Note", PK: "NOTE#{id}", SK: "NOTE"}
	_, err := entity.Define(tbl, spec)
	fmt.Println(err)

	spec.AttributePrefix = "note_"
	notes, err := entity.Define(tbl, spec)
	check(err)
	n, err := notes.Create(ctx, Note{ID: "1", Key: 7})
	check(err)
	item, err := tbl.Get(ctx, notes.Key(n), true)
	check(err)
	fmt.Println(item["note_id"] != nil, item["note_gsi1pk"] != nil, item["gsi1pk"] != nil)
	// Output:
	// entity: define "Note": field Key: attribute "gsi1pk" is a key of index gsi1, of type S, and the field's is N
	// true true false
}

// A predicate decides which rows an index holds. With the write that makes it false the row
// leaves the index.
func ExampleIndex() {
	ctx := context.Background()
	type Stock struct {
		Article string `dynamo:"article"`
		Pieces  int    `dynamo:"pieces"`
		Rev     int64  `dynamo:"rev"`
	}
	scarce := entity.Index[Stock]{
		Name: "gsi1", PK: "SCARCE", SK: "{pieces:int6}#{article}",
		When: func(s Stock) bool { return s.Pieces < 5 },
	}
	stocks, err := entity.Define(newTable(ctx), entity.Spec[Stock]{
		Type: "Stock", PK: "STOCK#{article}", SK: "STOCK", Version: "rev", Indexes: []entity.Index[Stock]{scarce},
	})
	check(err)
	_, err = stocks.PutAll(ctx, []Stock{{Article: "hinge", Pieces: 3}, {Article: "latch", Pieces: 7}, {Article: "knob", Pieces: 1}})
	check(err)
	_, err = stocks.AnyVersion().Update(ctx, Stock{Article: "hinge"}, entity.Add("pieces", 20))
	check(err)
	_, err = stocks.AnyVersion().Update(ctx, Stock{Article: "latch"}, entity.Add("pieces", -4))
	check(err)
	for s, err := range stocks.Query(ctx, nil, entity.On("gsi1")) { // its PK has no fields
		fmt.Println(s.Article, s.Pieces, err)
	}
	// Output:
	// knob 1 <nil>
	// latch 3 <nil>
}

// The error names the constraint and, for the program alone, the row that has the value.
func ExampleUniqueError() {
	ctx := context.Background()
	type Host struct {
		ID      string `dynamo:"id"`
		Address string `dynamo:"address"`
		Retired bool   `dynamo:"retired"`
		Rev     int64  `dynamo:"rev"`
	}
	hosts, err := entity.Define(newTable(ctx), entity.Spec[Host]{
		Type: "Host", PK: "HOST#{id}", SK: "HOST", Version: "rev",
		Unique: []entity.Unique[Host]{{Name: "address", Key: "{address}", When: func(h Host) bool { return !h.Retired }}},
	})
	check(err)
	first, err := hosts.Create(ctx, Host{ID: "1", Address: "10.0.0.1"})
	check(err)
	_, err = hosts.Create(ctx, Host{ID: "2", Address: "10.0.0.1"})
	var taken *entity.UniqueError
	if errors.As(err, &taken) {
		fmt.Println(taken.Type, taken.Constraint, taken.Owner == hosts.Key(first), errors.Is(err, entity.ErrUnique))
	}
	_, err = hosts.Update(ctx, first, entity.Set("retired", true)) // gives the address back
	check(err)
	_, err = hosts.Create(ctx, Host{ID: "2", Address: "10.0.0.1"})
	fmt.Println(err)
	// Output:
	// Host address true true
	// <nil>
}

// Rows of another program: nothing is put into them that it does not know.
func ExampleSpec_untyped() {
	ctx := context.Background()
	tbl := newTable(ctx)
	type Visit struct {
		User string `dynamo:"-"`
		Page string `dynamo:"page"`
	}
	visits, err := entity.Define(tbl, entity.Spec[Visit]{Type: "Visit", PK: "USER#{user}", SK: "VISIT", Untyped: true})
	check(err)
	_, err = visits.Create(ctx, Visit{"ann", "home"})
	check(err)
	row, err := tbl.Get(ctx, visits.Key(Visit{User: "ann"}), true)
	fmt.Println(len(row), err) // two keys and the page
	// Output: 3 <nil>
}

// Rows that something else maintains can be read, and not be written by mistake.
func ExampleSpec_readOnly() {
	ctx := context.Background()
	type Report struct{ Month, Text string }
	reports, err := entity.Define(newTable(ctx), entity.Spec[Report]{Type: "Report", PK: "REPORT#{month}", SK: "REPORT", ReadOnly: true})
	check(err)
	_, err = reports.Put(ctx, Report{"2026-03", "none"})
	fmt.Println(errors.Is(err, entity.ErrInvalid))
	// Output: true
}

// While a new program is rolled out, the old one leaves the new one's rows alone.
func ExampleSpec_schema() {
	ctx := context.Background()
	tbl := newTable(ctx)
	type Price struct {
		Article string `dynamo:"article"`
		Cents   int64  `dynamo:"cents"`
	}
	prices, err := entity.Define(tbl, entity.Spec[Price]{Type: "Price", PK: "PRICE#{article}", SK: "PRICE", Schema: "schema"})
	check(err)
	row := tbl.KeyItem(prices.Key(Price{Article: "hinge"}))
	row["schema"], err = table.Encode(1)
	check(err)
	check(tbl.Write(ctx, table.Put(row))) // by the new program
	_, err = prices.Put(ctx, Price{"hinge", 700})
	fmt.Println(errors.Is(err, entity.ErrNewer))
	// Output: true
}

// What an error is about, and what there is to do.
func Example_errors() {
	ctx := context.Background()
	tbl := newTable(ctx)
	type Box struct {
		ID   string `dynamo:"id"`
		Size int    `dynamo:"size"`
		Rev  int64  `dynamo:"rev"`
	}
	upgrade := func(row table.Item) (table.Item, error) { return row, nil }
	boxes, err := entity.Define(tbl, entity.Spec[Box]{
		Type: "Box", PK: "BOX#{id}", SK: "BOX", Version: "rev", Upgrades: []func(table.Item) (table.Item, error){upgrade},
	})
	check(err)
	_, err = boxes.Create(ctx, Box{ID: "1"})
	check(err)
	foreign := tbl.KeyItem(keys.NewKey("BOX#2", "BOX"))
	foreign[tbl.Scheme().Type], err = table.Encode("Crate")
	check(err)
	old := tbl.KeyItem(keys.NewKey("BOX#3", "BOX")) // without a schema: from before there were upgrades
	check(tbl.Write(ctx, table.Put(foreign), table.Put(old)))

	tell := func(err error) {
		switch {
		case errors.Is(err, entity.ErrNotFound):
			fmt.Println("no such row")
		case errors.Is(err, entity.ErrExists):
			fmt.Println("there is one: read it")
		case errors.Is(err, entity.ErrStale):
			fmt.Println("somebody was faster: read and decide again, or use Modify")
		case errors.Is(err, entity.ErrOlder):
			fmt.Println("the row waits for its upgrade: change it outside of a transaction first")
		case errors.Is(err, entity.ErrType):
			fmt.Println("the key belongs to something else: a bug")
		case errors.Is(err, entity.ErrInvalid):
			fmt.Println("the program asks for what cannot be: a bug")
		default:
			fmt.Println("the rest is of package table:", err)
		}
	}
	_, err = boxes.Get(ctx, Box{ID: "0"})
	tell(err)
	_, err = boxes.Create(ctx, Box{ID: "1"})
	tell(err)
	_, err = boxes.Update(ctx, Box{ID: "1", Rev: 9}, entity.Set("size", 1))
	tell(err)
	tell(tbl.Write(ctx, boxes.UpdateOp(Box{ID: "3"}, entity.Set("size", 1))))
	_, err = boxes.Get(ctx, Box{ID: "2"})
	tell(err)
	_, err = boxes.Update(ctx, Box{ID: "1"}, entity.Set("colour", "red"))
	tell(err)
	// Output:
	// no such row
	// there is one: read it
	// somebody was faster: read and decide again, or use Modify
	// the row waits for its upgrade: change it outside of a transaction first
	// the key belongs to something else: a bug
	// the program asks for what cannot be: a bug
}
