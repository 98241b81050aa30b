package entity_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/mortise-go/mortise/entity"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// Indexes on attributes of the rows, as a table has them that was not made for templates.
func ExampleIndex_fields() {
	ctx := context.Background()
	type Player struct {
		ID    string `dynamo:"id"`
		Email string `dynamo:"email"`
		Team  string `dynamo:"team"`
		Score int    `dynamo:"score"`
	}
	tbl, err := table.Open(tabletest.NewEngine().Client(), table.Schema{Name: "app", Indexes: []table.Index{
		{Name: "by-email", PK: "email"},
		{Name: "by-score", PK: "team", SK: "score", SKType: table.Number},
	}})
	if err != nil {
		log.Fatal(err)
	}
	if err := tbl.Ensure(ctx); err != nil {
		log.Fatal(err)
	}
	players, err := entity.Define(tbl, entity.Spec[Player]{
		Type: "Player", PK: "PLAYER#{id}", SK: "PLAYER",
		Indexes: []entity.Index[Player]{{Name: "by-email"}, {Name: "by-score"}},
	})
	if err != nil {
		log.Fatal(err)
	}
	for i, name := range []string{"ann", "bob", "cyd"} {
		if _, err := players.Create(ctx, Player{name, name + "@example.org", "red", 95 + 5*i}); err != nil {
			log.Fatal(err)
		}
	}
	for p, err := range players.Query(ctx, keys.Values{"email": "bob@example.org"}, entity.On("by-email")) {
		fmt.Println(p.ID, err)
	}
	for p, err := range players.Query(ctx, keys.Values{"team": "red"}, entity.On("by-score"), entity.From("score", 100)) {
		fmt.Println(p.ID, p.Score, err)
	}
	// Output:
	// bob <nil>
	// bob 100 <nil>
	// cyd 105 <nil>
}

// A composite attribute that another program made, country#city#address, is the sort key of an index, and where a shop is
// stands nowhere else. The fields are read back from it; the last one takes what is left, delimiters included.
func ExampleIndex_composite() {
	ctx := context.Background()
	type Shop struct {
		ID      string `dynamo:"id"`
		Chain   string `dynamo:"chain"`
		Country string `dynamo:"-"`
		City    string `dynamo:"-"`
		Address string `dynamo:"-"`
	}
	tbl, err := table.Open(tabletest.NewEngine().Client(), table.Schema{Name: "app", Indexes: []table.Index{
		{Name: "by-place", PK: "chain", SK: "data"},
	}})
	if err != nil {
		log.Fatal(err)
	}
	if err := tbl.Ensure(ctx); err != nil {
		log.Fatal(err)
	}
	shops, err := entity.Define(tbl, entity.Spec[Shop]{
		Type: "Shop", PK: "SHOP#{id}", SK: "SHOP",
		Indexes: []entity.Index[Shop]{{Name: "by-place", SK: "{country:raw}#{city:raw}#{address:rest}"}},
	})
	if err != nil {
		log.Fatal(err)
	}
	for _, s := range []Shop{
		{"1", "oak", "DE", "Berlin", "Allee 5"}, {"2", "oak", "DE", "Bremen", "Wall #7"}, {"3", "oak", "DE", "Hamburg", "Elbe 1"},
	} {
		if _, err := shops.Create(ctx, s); err != nil {
			log.Fatal(err)
		}
	}
	in := keys.Values{"chain": "oak", "country": "DE"}
	for s, err := range shops.Query(ctx, in, entity.On("by-place"), entity.Prefix("city", "B")) {
		fmt.Println(s.City, s.Address, err)
	}
	moved, err := shops.Update(ctx, Shop{ID: "2"}, entity.Set("address", "Markt 1"))
	fmt.Println(moved.Country, moved.City, moved.Address, err)
	_, err = shops.Update(ctx, Shop{ID: "2"}, entity.Remove("city")) // the others could not be kept
	fmt.Println(errors.Is(err, entity.ErrInvalid))
	// Output:
	// Berlin Allee 5 <nil>
	// Bremen Wall #7 <nil>
	// DE Bremen Markt 1 <nil>
	// true
}
