package entity_test

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mortise-go/mortise/entity"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
)

// oldRow is a row as another program writes it.
func oldRow(key, typ, attribute string, value types.AttributeValue) table.Item {
	text := func(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
	row := table.Item{"pk": text(key), "sk": text(key), attribute: value}
	if typ != "" {
		row["type"] = text(typ)
	}
	return row
}

// Before a program uses a table of another program, it looks at all rows: which of them do not fit, and why?
func ExampleDecodeError() {
	ctx := context.Background()
	type Product struct {
		ID    string `dynamo:"-"`
		Price int    `dynamo:"price"`
	}
	tbl := newTable(ctx)
	products, err := entity.Define(tbl, entity.Spec[Product]{Type: "product", PK: "PRODUCT#{id}", SK: "PRODUCT#{id}"})
	check(err)
	check(tbl.Write(ctx,
		table.Put(oldRow("PRODUCT#1", "product", "price", &types.AttributeValueMemberN{Value: "4"})),
		table.Put(oldRow("PRODUCT#2", "product", "price", &types.AttributeValueMemberS{Value: "4"})),
		table.Put(oldRow("PRODUCT#3", "product", "price", &types.AttributeValueMemberN{Value: "4.50"})),
		table.Put(oldRow("PRODUCT#4", "Product", "price", &types.AttributeValueMemberN{Value: "4"})),
		table.Put(oldRow("PRODUCT-5", "", "price", &types.AttributeValueMemberN{Value: "4"})),
	))

	list := map[keys.Key]error{} // the rows that do not fit
	var all []Product
	for item, err := range tbl.Scan(ctx, table.Scan{}) {
		check(err)
		err = entity.Sort(tbl, item, entity.Into(products, &all)) // an Into for each entity, and no SkipUnknown
		var decode *entity.DecodeError
		var foreign *entity.ForeignTypeError
		var unknown *entity.UnknownTypeError
		switch {
		case errors.As(err, &decode):
			list[decode.Key] = err
		case errors.As(err, &foreign):
			list[foreign.Key] = err
		case errors.As(err, &unknown):
			list[unknown.Key] = err
		default:
			check(err)
		}
	}
	for _, id := range []string{"2", "3", "4"} {
		text, _, _ := strings.Cut(fmt.Sprint(list[products.Key(Product{ID: id})]), " that is defined")
		fmt.Println(id, text)
	}
	fmt.Println(5, list[keys.NewKey("PRODUCT-5", "PRODUCT-5")])
	// Output:
	// 2 entity: decode product: attribute "price" does not fit: wrong type: S for int
	// 3 entity: decode product: attribute "price" does not fit: wrong type: want a whole number
	// 4 entity: row is of another type: its key fits product, but its attribute "type" holds no type
	// 5 entity: no sink for a row without a type: its key and attributes fit none
}

// An index and a unique value for rows that exist. An upgrade that changes nothing makes Update write all index keys. The
// unique value is a new field, since a value that stays as it is gets no sentinel.
func ExampleSpec_oldRows() {
	ctx := context.Background()
	type Customer struct {
		ID      string `dynamo:"-"`
		Email   string `dynamo:"email,omitempty"`
		Login   string `dynamo:"login,omitempty"` // the address in lower case
		Version int64  `dynamo:"version"`
	}
	tbl := newTable(ctx)
	customers, err := entity.Define(tbl, entity.Spec[Customer]{
		Type: "customer", PK: "CUSTOMER#{id}", SK: "CUSTOMER#{id}", Version: "version",
		Indexes:  []entity.Index[Customer]{{Name: "gsi1", PK: "EMAIL#{email}", SK: "CUSTOMER#{id}"}},
		Unique:   []entity.Unique[Customer]{{Name: "login", Key: "{login}"}},
		Upgrades: []func(table.Item) (table.Item, error){func(row table.Item) (table.Item, error) { return row, nil }},
	})
	check(err)
	check(tbl.Write(ctx,
		table.Put(oldRow("CUSTOMER#1", "customer", "email", &types.AttributeValueMemberS{Value: "Ann@example.com"})),
		table.Put(oldRow("CUSTOMER#2", "customer", "email", &types.AttributeValueMemberS{Value: "ann@example.com"})),
	))

	for _, id := range []string{"1", "2"} { // a migration takes them from Scan
		c, err := customers.Get(ctx, Customer{ID: id}, entity.Consistent())
		check(err)
		_, err = customers.Update(ctx, c, entity.Set("login", strings.ToLower(c.Email)))
		fmt.Println(id, err == nil, errors.Is(err, entity.ErrUnique))
	}
	for c, err := range customers.Query(ctx, keys.Values{"email": "Ann@example.com"}, entity.On("gsi1")) {
		check(err)
		fmt.Println("in the index:", c.ID)
	}
	// Output:
	// 1 true false
	// 2 false true
	// in the index: 1
}
