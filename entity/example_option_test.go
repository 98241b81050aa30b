package entity_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mortise-go/mortise/entity"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// doors is the partition key of the posts that newPosts makes.
var doors = keys.Values{"blog": "doors"}

// texts prints the texts of posts in one line.
func texts(posts func(func(Post, error) bool)) {
	var list []string
	for p, err := range posts {
		check(err)
		list = append(list, p.Text)
	}
	fmt.Println(list)
}

func ExampleLimit() {
	ctx := context.Background()
	posts := newPosts(ctx, "oak", "ash", "elm")
	texts(posts.Query(ctx, doors, entity.Limit(2)))
	// Output: [oak ash]
}

func ExampleDescending() {
	ctx := context.Background()
	posts := newPosts(ctx, "oak", "ash", "elm")
	texts(posts.Query(ctx, doors, entity.Descending()))
	// Output: [elm ash oak]
}

func ExampleFrom() {
	ctx := context.Background()
	posts := newPosts(ctx, "oak", "ash", "elm", "fir")
	texts(posts.Query(ctx, doors, entity.From("no", 2)))
	texts(posts.Query(ctx, doors, entity.From("no", 2), entity.Until("no", 4)))
	// Output:
	// [ash elm fir]
	// [ash elm]
}

func ExampleUntil() {
	ctx := context.Background()
	posts := newPosts(ctx, "oak", "ash", "elm", "fir")
	texts(posts.Query(ctx, doors, entity.Until("no", 3))) // 3 is not included
	// Output: [oak ash]
}

func ExampleFilter() {
	ctx := context.Background()
	posts := newPosts(ctx, "oak", "ash", "elm", "aspen")
	texts(posts.Query(ctx, doors, entity.Filter(posts.Field("text").HasPrefix("as"))))
	// Output: [ash aspen]
}

func ExampleConsistent() {
	ctx := context.Background()
	posts := newPosts(ctx, "oak")
	ctx, usage := table.WithUsage(ctx)
	p, err := posts.Get(ctx, Post{Blog: "doors", No: 1}, entity.Consistent())
	fmt.Println(p.Text, err, usage.Totals().ReadUnits)
	// Output: oak <nil> 1
}

func ExamplePageSize() {
	ctx := context.Background()
	posts := newPosts(ctx, "oak", "ash", "elm", "fir")
	ctx, usage := table.WithUsage(ctx)
	for p, err := range posts.Query(ctx, doors, entity.PageSize(2)) {
		check(err)
		if p.Text == "oak" { // what comes after it is as likely not wanted
			break
		}
	}
	fmt.Println(usage.Totals().Requests) // the second page was not asked for
	// Output: 1
}

func ExampleSegments() {
	ctx := context.Background()
	posts := newPosts(ctx, "oak", "ash", "elm")
	n := 0
	for _, err := range posts.Scan(ctx, entity.Segments(8), entity.PageSize(100)) {
		check(err)
		n++
	}
	fmt.Println(n)
	_, err := posts.Get(ctx, Post{Blog: "doors", No: 1}, entity.Segments(8))
	fmt.Println(errors.Is(err, entity.ErrInvalid)) // a read of one row has none
	for _, err := range posts.Scan(ctx, entity.Segments(entity.MaxSegments+1)) {
		fmt.Println(errors.Is(err, entity.ErrInvalid))
	}
	// Output:
	// 3
	// true
	// true
}

func ExampleOn() {
	ctx := context.Background()
	type Parcel struct {
		ID   string `dynamo:"id"`
		Town string `dynamo:"town,omitempty"`
	}
	parcels, err := entity.Define(newTable(ctx), entity.Spec[Parcel]{
		Type: "Parcel", PK: "PARCEL#{id}", SK: "PARCEL",
		Indexes: []entity.Index[Parcel]{{Name: "gsi1", PK: "TOWN#{town}", SK: "{id}"}},
	})
	check(err)
	_, err = parcels.PutAll(ctx, []Parcel{{"3", "Ulm"}, {"1", "Ulm"}, {"2", "Bonn"}, {"4", ""}})
	check(err)
	for p, err := range parcels.Query(ctx, keys.Values{"town": "Ulm"}, entity.On("gsi1")) {
		fmt.Println(p.ID, err)
	}
	n := 0
	for _, err := range parcels.Scan(ctx, entity.On("gsi1")) {
		check(err)
		n++
	}
	fmt.Println(n, "have a town")
	// Output:
	// 1 <nil>
	// 3 <nil>
	// 3 have a town
}

func ExampleWithExpired() {
	ctx := context.Background()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	tbl, err := table.Open(tabletest.NewEngine().Client(), table.Schema{Name: "app"},
		table.WithClock(func() time.Time { return now })) // only tests need this
	check(err)
	check(tbl.Ensure(ctx))

	type Token struct {
		ID      string
		Expires time.Time
	}
	tokens, err := entity.Define(tbl, entity.Spec[Token]{Type: "Token", PK: "TOKEN#{id}", SK: "TOKEN", TTL: "Expires"})
	check(err)
	_, err = tokens.Create(ctx, Token{"1", now.Add(time.Hour)})
	check(err)

	now = now.Add(time.Hour) // DynamoDB will delete the row within days
	_, err = tokens.Get(ctx, Token{ID: "1"})
	fmt.Println(errors.Is(err, entity.ErrNotFound))
	token, err := tokens.Get(ctx, Token{ID: "1"}, entity.WithExpired())
	fmt.Println(token.Expires.Format(time.TimeOnly), err)
	_, err = tokens.Create(ctx, Token{"1", now.Add(time.Hour)}) // an expired row is in nobody's way
	fmt.Println(err)
	// Output:
	// true
	// 13:00:00 <nil>
	// <nil>
}
