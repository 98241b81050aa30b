package entity_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mortise-go/mortise/entity"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// A table that another program laid out: the key of an order, "10248" and "ORDER", could be that of a customer, whose
// sort key is the name of whom to ask for. Rules tell the rows apart.
func ExampleMatch() {
	ctx := context.Background()
	type Customer struct {
		ID      string `dynamo:"-"`
		Contact string `dynamo:"-"`
		Company string `dynamo:"company,omitempty"`
	}
	type Order struct {
		ID      string  `dynamo:"-"`
		Freight float64 `dynamo:"freight,omitempty"`
	}
	tbl := newTable(ctx)
	customers := entity.Spec[Customer]{Type: "customer", PK: "{id}", SK: "{contact}", Untyped: true}
	orders := entity.Spec[Order]{Type: "order", PK: "{id}", SK: "ORDER", Untyped: true}

	// By an attribute that only orders have, or by what the keys are made of.
	orders.Match = entity.HasAttr("freight")
	customers.Match = entity.And(entity.Not(entity.HasAttr("freight")), entity.KeyPart("id", "[A-Z]{5}"))

	o, err := entity.Define(tbl, orders)
	check(err)
	c, err := entity.Define(tbl, customers)
	check(err)
	_, err = o.Create(ctx, Order{"10248", 32.38})
	check(err)
	_, err = c.Create(ctx, Customer{"VINET", "Paul Henriot", "Vins et alcools Chevalier"})
	check(err)

	for customer, err := range c.Scan(ctx) {
		fmt.Println(customer.Contact, err)
	}
	_, err = c.Create(ctx, Customer{ID: "10248", Contact: "Eve"})
	fmt.Println(errors.Is(err, entity.ErrMatch), err)
	_, err = o.Update(ctx, Order{ID: "10248"}, entity.Remove("freight"))
	fmt.Println(errors.Is(err, entity.ErrMatch))
	fmt.Println(customers.Match.String())
	// Output:
	// Paul Henriot <nil>
	// true entity: create customer: invalid request: the row would not match Spec.Match: And(Not(HasAttr("freight")), KeyPart("id", "[A-Z]{5}"))
	// true
	// And(Not(HasAttr("freight")), KeyPart("id", "[A-Z]{5}"))
}

// An attribute of the type attribute's name that means something else: another program keeps the customers' plans in
// "type".
func ExampleForeignTypeError() {
	ctx := context.Background()
	type Customer struct {
		ID string `dynamo:"id"`
	}
	client := newClient(ctx, table.Item{
		"pk": &types.AttributeValueMemberS{Value: "CUSTOMER#1"}, "sk": &types.AttributeValueMemberS{Value: "CUSTOMER"},
		"id": &types.AttributeValueMemberS{Value: "1"}, "type": &types.AttributeValueMemberS{Value: "premium"},
	})
	read := func(scheme keys.Scheme, match entity.Match) {
		tbl, err := table.Open(client, table.Schema{Name: "app", Keys: scheme})
		check(err)
		customers, err := entity.Define(tbl, entity.Spec[Customer]{
			Type: "customer", PK: "CUSTOMER#{id}", SK: "CUSTOMER", Match: match,
		})
		check(err)
		n := 0
		for _, err = range customers.Query(ctx, keys.Values{"id": "1"}) {
			if n++; err != nil {
				break
			}
		}
		var foreign *entity.ForeignTypeError
		if errors.As(err, &foreign) {
			value, _ := foreign.Value.(*types.AttributeValueMemberS)
			fmt.Println(foreign.Attribute, value.Value)
			return
		}
		fmt.Println(n, "rows", err)
	}
	read(keys.Scheme{}, entity.Match{})
	read(keys.Scheme{Type: "_t"}, entity.Match{})                                  // one way out: an attribute of one's own
	read(keys.Scheme{}, entity.Not(entity.AttrEquals("type", "premium", "basic"))) // the other: they are that program's
	// Output:
	// type premium
	// 1 rows <nil>
	// 0 rows <nil>
}

// newClient is a client of a table "app" that another program has filled.
func newClient(ctx context.Context, rows ...table.Item) table.Client {
	client := tabletest.NewEngine().Client()
	tbl, err := table.Open(client, table.Schema{Name: "app", NoTTL: true})
	check(err)
	check(tbl.Ensure(ctx))
	for _, row := range rows {
		check(tbl.Write(ctx, table.Put(row)))
	}
	return client
}
