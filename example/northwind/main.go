// Command northwind uses a table that another program laid out and filled. docs/how-to/adopt.md goes through it.
package main

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/mortise-go/mortise/entity"
	"github.com/mortise-go/mortise/example/northwind/loader"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

func main() {
	ctx := context.Background()
	client := tabletest.NewEngine().Client() // an in-process DynamoDB; dynamodb.NewFromConfig for the service
	check(loader.Load(ctx, client))          // the other program

	tbl, err := open(ctx, client)
	check(err)
	shop, err := define(tbl)
	check(err)
	check(shop.read(ctx))
	check(shop.write(ctx))
	check(shop.ship(ctx))
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func open(ctx context.Context, client *dynamodb.Client) (*table.Table, error) {
	tbl, err := table.Open(client, table.Schema{
		Name:      loader.Table,
		Keys:      keys.Scheme{PK: "pk", SK: "sk", Type: "_type", Version: "rev"},
		Indexes:   []table.Index{{Name: "gsi_1", PK: "sk", SK: "data"}},
		MustExist: true,
		NoTTL:     true,
	})
	if err != nil {
		return nil, err
	}
	plan, err := tbl.Plan(ctx)
	if err != nil {
		return nil, err
	}
	fmt.Print(plan)
	return tbl, tbl.Verify(ctx)
}

type Category struct {
	ID          string `dynamo:"-"`
	Name        string `dynamo:"-"`
	Description string `dynamo:"data"`
}

type Shipper struct {
	ID    string `dynamo:"-"`
	Name  string `dynamo:"-"`
	Phone string `dynamo:"data"`
}

type Product struct {
	ID           string `dynamo:"-"`
	Discontinued string `dynamo:"data"` // "0" or "1"
	Name         string `dynamo:"productName"`
	Supplier     string `dynamo:"supplierID"`
	Price        string `dynamo:"unitPrice"`
}

type Employee struct {
	ID        string `dynamo:"-"`
	ReportsTo string `dynamo:"-"` // "employees#5", or "NULL"
	Hired     string `dynamo:"data"`
	First     string `dynamo:"firstName"`
	Last      string `dynamo:"lastName"`
}

type Supplier struct {
	ID      string `dynamo:"-"`
	Country string `dynamo:"-"`
	Region  string `dynamo:"-"`
	City    string `dynamo:"-"`
	Address string `dynamo:"-"`
	Company string `dynamo:"companyName"`
}

type Customer struct {
	ID      string `dynamo:"-"`
	Contact string `dynamo:"-"`
	Country string `dynamo:"-"`
	Region  string `dynamo:"-"`
	City    string `dynamo:"-"`
	Address string `dynamo:"-"`
	Company string `dynamo:"companyName"`
	Phone   string `dynamo:"phone"`
}

type Order struct {
	ID       string `dynamo:"-"`
	Ordered  string `dynamo:"data"`
	Customer string `dynamo:"customerID"`
	Shipper  string `dynamo:"shipVia"`
	Freight  string `dynamo:"freight"`
	Shipped  string `dynamo:"shippedDate,omitempty"`
	Version  int64  `dynamo:"-"`
}

type Line struct {
	Order    string `dynamo:"-"`
	Product  string `dynamo:"-"`
	Price    string `dynamo:"data"`
	Quantity string `dynamo:"quantity"`
}

type shop struct {
	table      *table.Table
	categories *entity.Entity[Category]
	shippers   *entity.Entity[Shipper]
	products   *entity.Entity[Product]
	employees  *entity.Entity[Employee]
	suppliers  *entity.Entity[Supplier]
	customers  *entity.Entity[Customer]
	orders     *entity.Entity[Order]
	lines      *entity.Entity[Line]
}

func define(tbl *table.Table) (*shop, error) {
	s := &shop{table: tbl}
	var err error
	if s.categories, err = entity.Define(tbl, entity.Spec[Category]{
		Type: "category", PK: "categories#{id:raw}", SK: "{name:raw}", Untyped: true,
		Indexes: []entity.Index[Category]{{Name: "gsi_1"}},
	}); err != nil {
		return nil, err
	}
	if s.shippers, err = entity.Define(tbl, entity.Spec[Shipper]{
		Type: "shipper", PK: "shippers#{id:raw}", SK: "{name:raw}", Untyped: true,
		Indexes: []entity.Index[Shipper]{{Name: "gsi_1"}},
	}); err != nil {
		return nil, err
	}
	if s.products, err = entity.Define(tbl, entity.Spec[Product]{
		Type: "product", PK: "products#{id:raw}", SK: "PRODUCT", Untyped: true,
		Indexes: []entity.Index[Product]{{Name: "gsi_1"}},
	}); err != nil {
		return nil, err
	}
	if s.employees, err = entity.Define(tbl, entity.Spec[Employee]{
		Type: "employee", PK: "employees#{id:raw}", SK: "{reportsTo:rest}", Untyped: true,
		Match:   entity.KeyPart("reportsTo", "employees#[0-9]+|NULL"),
		Indexes: []entity.Index[Employee]{{Name: "gsi_1"}},
	}); err != nil {
		return nil, err
	}

	const place = "{country:raw}#{region:raw}#{city:raw}#{address:rest}"
	if s.suppliers, err = entity.Define(tbl, entity.Spec[Supplier]{
		Type: "supplier", PK: "suppliers#{id:raw}", SK: "SUPPLIER", Untyped: true,
		Indexes: []entity.Index[Supplier]{{Name: "gsi_1", SK: place}},
	}); err != nil {
		return nil, err
	}
	if s.customers, err = entity.Define(tbl, entity.Spec[Customer]{
		Type: "customer", PK: "{id:raw}", SK: "{contact:raw}", Untyped: true,
		Match:   entity.KeyPart("id", "[A-Z]{5}"),
		Indexes: []entity.Index[Customer]{{Name: "gsi_1", SK: place}},
	}); err != nil {
		return nil, err
	}

	if s.orders, err = entity.Define(tbl, entity.Spec[Order]{
		Type: "order", PK: "{id:raw}", SK: "ORDER", Untyped: true, Version: "Version",
		Match:   entity.KeyPart("id", "[0-9]{5}"),
		Indexes: []entity.Index[Order]{{Name: "gsi_1"}},
	}); err != nil {
		return nil, err
	}
	s.lines, err = entity.Define(tbl, entity.Spec[Line]{
		Type: "line", PK: "{order:raw}", SK: "products#{product:raw}", Untyped: true,
		Indexes: []entity.Index[Line]{{Name: "gsi_1"}},
	})
	return s, err
}

func (s *shop) read(ctx context.Context) error {
	// Who reports to employee 5, and has been there since 1993?
	reports := keys.Values{"reportsTo": "employees#5"}
	for e, err := range s.employees.Query(ctx, reports, entity.On("gsi_1"), entity.Prefix("Hired", "1993")) {
		if err != nil {
			return err
		}
		fmt.Println("reports to 5:", e.First, e.Last)
	}
	// Which suppliers are in Germany?
	for p, err := range s.suppliers.Query(ctx, keys.Values{"country": "Germany"}, entity.On("gsi_1")) {
		if err != nil {
			return err
		}
		fmt.Println("in Germany:", p.Company, "in", p.City)
	}
	// Orders of July 1996.
	for o, err := range s.orders.Query(ctx, nil, entity.On("gsi_1"), entity.Prefix("Ordered", "1996-07")) {
		if err != nil {
			return err
		}
		fmt.Println("order:", o.ID, "of", o.Customer)
	}
	// An order with its lines: one query.
	var orders []Order
	var lines []Line
	err := entity.Collect(ctx, s.table, "10248", entity.Into(s.orders, &orders), entity.Into(s.lines, &lines))
	if err != nil {
		return err
	}
	fmt.Println("order 10248:", len(orders), "row,", len(lines), "lines")
	// Customers, and nothing else.
	for c, err := range s.customers.Scan(ctx) {
		if err != nil {
			return err
		}
		fmt.Println("customer:", c.Company, "in", c.City)
	}
	return nil
}

func (s *shop) write(ctx context.Context) error {
	// One part of data changes, and the rest of the row stays as it is.
	london := Supplier{ID: "1", Country: "UK", Region: "NULL", City: "London", Address: "49 Gilbert St."}
	moved, err := s.suppliers.Update(ctx, london, entity.Set("address", "1 Gilbert St."))
	if err != nil {
		return err
	}
	fmt.Println("moved:", moved.Company, "to", moved.Address)

	// Version 0: the row must be as it was read, attribute by attribute. Then it has version 1.
	order, err := s.orders.Get(ctx, Order{ID: "10248"})
	if err != nil {
		return err
	}
	seen := order.Version
	order, err = s.orders.Update(ctx, order, entity.Set("freight", "35.00"))
	if err != nil {
		return err
	}
	fmt.Println("order 10248: version", seen, "to", order.Version)
	return nil
}

func (s *shop) ship(ctx context.Context) error {
	locks, err := lock.New(s.table, lock.Config{
		RowKey:          "~LOCK#{of}",
		AttributePrefix: "lock_",
	})
	if err != nil {
		return err
	}
	defer func() { check(locks.Close(ctx)) }()

	order := Order{ID: "10257"}
	return locks.Do(ctx, lock.Beside(s.orders.Key(order)), func(ctx context.Context, lease *lock.Lease) error {
		order, err := s.orders.Get(ctx, order, entity.Consistent()) // what the holder before has written
		if err != nil {
			return err
		}
		// … print the label, call the shipper: work for one process at a time …
		shipped := time.Date(1996, 7, 22, 0, 0, 0, 0, time.UTC).Format("2006-01-02 15:04:05.000")
		err = lease.Commit(ctx, s.orders.UpdateOp(order, entity.Set("shippedDate", shipped)))
		if err == nil {
			fmt.Println("order 10257: shipped under a lock")
		}
		return err
	})
}
