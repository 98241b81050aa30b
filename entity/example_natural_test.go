package entity_test

import (
	"context"
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
