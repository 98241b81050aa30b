package entity_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"slices"
	"time"

	"github.com/mortise-go/mortise/entity"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
)

type Post struct {
	Blog string `dynamo:"blog"`
	No   int    `dynamo:"no"`
	Text string `dynamo:"text"`
}

// newPosts is a blog with some posts.
func newPosts(ctx context.Context, texts ...string) *entity.Entity[Post] {
	posts, err := entity.Define(newTable(ctx), entity.Spec[Post]{Type: "Post", PK: "BLOG#{blog}", SK: "POST#{no:uint4}"})
	if err != nil {
		log.Fatal(err)
	}
	for i, text := range texts {
		if _, err := posts.Create(ctx, Post{"doors", i + 1, text}); err != nil {
			log.Fatal(err)
		}
	}
	return posts
}

func ExampleEntity_Page() {
	ctx := context.Background()
	posts := newPosts(ctx, "oak", "ash", "elm", "fir", "yew")
	match := keys.Values{"blog": "doors"}

	var next entity.Cursor // in a handler: entity.Cursor(r.FormValue("after"))
	for {
		page, err := posts.Page(ctx, match, entity.Limit(2), entity.After(next))
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(page.Items)
		if page.Next == "" {
			break
		}
		next = page.Next
	}

	_, err := posts.Page(ctx, keys.Values{"blog": "windows"}, entity.After(next))
	fmt.Println(errors.Is(err, entity.ErrCursor), err)
	// Output:
	// [{doors 1 oak} {doors 2 ash}]
	// [{doors 3 elm} {doors 4 fir}]
	// [{doors 5 yew}]
	// true entity: page Post: cursor refused: of another query, or changed
}

func ExampleAfter() {
	ctx := context.Background()
	posts := newPosts(ctx, "oak", "ash", "elm")
	match := keys.Values{"blog": "doors"}
	page, err := posts.Page(ctx, match, entity.Limit(1), entity.Descending())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(page.Items)
	// A query goes on to the end where a page has ended.
	for p, err := range posts.Query(ctx, match, entity.Descending(), entity.After(page.Next)) {
		fmt.Println(p, err)
	}
	// Output:
	// [{doors 3 elm}]
	// {doors 2 ash} <nil>
	// {doors 1 oak} <nil>
}

func ExampleEntity_Query_shards() {
	ctx := context.Background()
	type Click struct {
		Day    string    `dynamo:"day"`
		User   string    `dynamo:"user"`
		At     time.Time `dynamo:"at"`
		Button string    `dynamo:"button"`
	}
	// All clicks of a day under one partition key would be more than it can take.
	clicks, err := entity.Define(newTable(ctx), entity.Spec[Click]{Type: "Click", PK: "DAY#{day}#{user:shard16}", SK: "{at:time-s}#{user}"})
	if err != nil {
		log.Fatal(err)
	}
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for i, user := range []string{"ann", "bob", "cyd", "ann"} {
		if _, err := clicks.Create(ctx, Click{"2026-03-01", user, noon.Add(time.Duration(i) * time.Second), "buy"}); err != nil {
			log.Fatal(err)
		}
	}
	for c, err := range clicks.Query(ctx, keys.Values{"day": "2026-03-01"}) { // all sixteen shards
		fmt.Println(c.At.Format(time.TimeOnly), c.User, err)
	}
	// Output:
	// 12:00:00 ann <nil>
	// 12:00:01 bob <nil>
	// 12:00:02 cyd <nil>
	// 12:00:03 ann <nil>
}

func ExampleEntity_Scan() {
	ctx := context.Background()
	posts := newPosts(ctx, "oak", "ash", "elm")
	var texts []string
	for p, err := range posts.Scan(ctx, entity.Segments(4)) {
		if err != nil {
			log.Fatal(err)
		}
		texts = append(texts, p.Text)
	}
	slices.Sort(texts) // a scan has no order
	fmt.Println(texts)
	// Output: [ash elm oak]
}

func ExampleEntity_BatchGet() {
	ctx := context.Background()
	posts := newPosts(ctx, "oak", "ash")
	list := []Post{{Blog: "doors", No: 2}, {Blog: "doors", No: 7}, {Blog: "doors", No: 1}}
	rows, err := posts.BatchGet(ctx, list)
	if err != nil {
		log.Fatal(err)
	}
	for i, row := range rows {
		if row == nil {
			fmt.Println(list[i].No, "is missing")
			continue
		}
		fmt.Println(row.No, row.Text)
	}
	// Output:
	// 2 ash
	// 7 is missing
	// 1 oak
}

func ExampleEntity_PutAll() {
	ctx := context.Background()
	tbl := newTable(ctx)
	type Page struct {
		Name, Text string
		Rev        int64
	}
	pages, err := entity.Define(tbl, entity.Spec[Page]{Type: "Page", PK: "PAGE#{name}", SK: "PAGE", Version: "Rev"})
	if err != nil {
		log.Fatal(err)
	}
	list, err := pages.PutAll(ctx, []Page{{Name: "home"}, {Name: "news"}, {Name: "shop"}})
	fmt.Println(list, err)

	if _, err := pages.Update(ctx, list[1], entity.Set("Text", "by somebody else")); err != nil {
		log.Fatal(err)
	}
	_, err = pages.PutAll(ctx, list)
	var failed *entity.BatchError[Page]
	if errors.As(err, &failed) {
		for _, f := range failed.Failed {
			fmt.Println(f.Value.Name, errors.Is(f.Err, entity.ErrStale))
		}
	}
	// Output:
	// [{home  1} {news  1} {shop  1}] <nil>
	// news true
}

// The newest rows come first.
func ExampleCollectQuery() {
	ctx := context.Background()
	posts := newPosts(ctx, "oak", "ash", "elm")
	blog := table.Query{PK: posts.Key(Post{Blog: "doors", No: 1}).PK, SK: keys.PrefixRange("POST#"), Descending: true, Limit: 2}
	err := entity.CollectQuery(ctx, posts.Table(), blog, entity.Each(posts, func(p Post) error {
		fmt.Println(p.No, p.Text)
		return nil
	}))
	fmt.Println(err)
	// Output:
	// 3 elm
	// 2 ash
	// <nil>
}

func ExampleSort() {
	ctx := context.Background()
	posts := newPosts(ctx)
	// The new image of a record, as a function behind a stream receives it.
	image, err := table.ItemFromJSON([]byte(`{
		"pk": {"S": "BLOG#doors"}, "sk": {"S": "POST#0001"}, "type": {"S": "Post"},
		"blog": {"S": "doors"}, "no": {"N": "1"}, "text": {"S": "oak"}}`))
	if err != nil {
		log.Fatal(err)
	}
	err = entity.Sort(posts.Table(), image, entity.Each(posts, func(p Post) error {
		fmt.Println("index for search:", p)
		return nil
	}), entity.SkipUnknown())
	fmt.Println(err)
	// Output:
	// index for search: {doors 1 oak}
	// <nil>
}

func ExampleRaw() {
	ctx := context.Background()
	posts := newPosts(ctx, "oak")
	note := posts.Table().KeyItem(keys.NewKey(posts.Key(Post{Blog: "doors", No: 1}).PK, "NOTE"))
	if err := posts.Table().Write(ctx, table.Put(note)); err != nil {
		log.Fatal(err)
	}
	var list []Post
	var others []table.Item
	err := entity.Collect(ctx, posts.Table(), "BLOG#doors", entity.Into(posts, &list), entity.Raw(&others))
	fmt.Println(list, len(others), err)
	// Output: [{doors 1 oak}] 1 <nil>
}

func ExampleEntity_Get() {
	ctx := context.Background()
	posts := newPosts(ctx, "oak")
	fmt.Println(posts.Get(ctx, Post{Blog: "doors", No: 1})) // the fields of the key are enough
	_, err := posts.Get(ctx, Post{Blog: "doors", No: 2})
	fmt.Println(errors.Is(err, entity.ErrNotFound))
	// Output:
	// {doors 1 oak} <nil>
	// true
}

func ExampleEntity_Key() {
	posts := newPosts(context.Background())
	key := posts.Key(Post{Blog: "doors", No: 1})
	fmt.Println(key.PK, key.SK, key.Err())
	key = posts.Key(Post{Blog: "doors", No: 12345}) // does not fit uint4
	fmt.Println(errors.Is(key.Err(), keys.ErrRange))
	// Output:
	// BLOG#doors POST#0001 <nil>
	// true
}

func ExampleEntity_Field() {
	ctx := context.Background()
	posts := newPosts(ctx, "oak", "ash")
	// Part of a transaction: the row has to be like that when the others are written.
	unchanged := posts.Field("text").Equal("oak")
	for no := range 2 {
		key := posts.Key(Post{Blog: "doors", No: no + 1})
		fmt.Println(errors.Is(posts.Table().Write(ctx, table.Check(key, unchanged)), table.ErrCondition))
	}
	// Output:
	// false
	// true
}

func ExampleEntity_Decode() {
	ctx := context.Background()
	posts := newPosts(ctx, "oak")
	row, err := posts.Table().Get(ctx, posts.Key(Post{Blog: "doors", No: 1}), true)
	check(err)
	fmt.Println(posts.Decode(row))

	row["no"], err = table.Encode("one")
	check(err)
	_, err = posts.Decode(row)
	var bad *entity.DecodeError
	if errors.As(err, &bad) { // its text tells neither the key nor the value, its fields do
		fmt.Println(bad.Type, bad.Attribute, bad.Key.SK)
	}
	// Output:
	// {doors 1 oak} <nil>
	// Post no POST#0001
}

func ExampleEntity_Owns() {
	posts := newPosts(context.Background())
	row := posts.Table().KeyItem(posts.Key(Post{Blog: "doors", No: 1}))
	fmt.Println(posts.Owns(row)) // has no type: its key decides
	row[posts.Table().Scheme().Type], _ = table.Encode("Draft")
	fmt.Println(posts.Owns(row), posts.Type())
	// Output:
	// true
	// false Post
}

func ExampleInto() {
	ctx := context.Background()
	posts := newPosts(ctx, "oak", "ash")
	var list []Post
	err := entity.Collect(ctx, posts.Table(), posts.Key(Post{Blog: "doors", No: 1}).PK, entity.Into(posts, &list))
	fmt.Println(list, err)
	// Output: [{doors 1 oak} {doors 2 ash}] <nil>
}

func ExampleEach() {
	ctx := context.Background()
	posts := newPosts(ctx, "oak", "ash", "elm")
	enough := errors.New("enough")
	err := entity.Collect(ctx, posts.Table(), "BLOG#doors", entity.Each(posts, func(p Post) error {
		if p.No == 2 {
			return enough
		}
		fmt.Println(p.Text)
		return nil
	}))
	fmt.Println(errors.Is(err, enough))
	// Output:
	// oak
	// true
}

func ExampleSkipUnknown() {
	ctx := context.Background()
	posts := newPosts(ctx, "oak")
	note := posts.Table().KeyItem(keys.NewKey("BLOG#doors", "NOTE"))
	check(posts.Table().Write(ctx, table.Put(note)))

	read := func(sinks ...entity.Sink) ([]Post, error) {
		var list []Post
		err := entity.Collect(ctx, posts.Table(), "BLOG#doors", append([]entity.Sink{entity.Into(posts, &list)}, sinks...)...)
		return list, err
	}
	fmt.Println(read(entity.SkipUnknown()))
	_, err := read() // nothing is dropped unless told
	var unknown *entity.UnknownTypeError
	if errors.As(err, &unknown) {
		fmt.Printf("%q %s\n", unknown.Type, unknown.Key.SK)
	}
	// Output:
	// [{doors 1 oak}] <nil>
	// "" NOTE
}

func ExampleCursor() {
	ctx := context.Background()
	posts := newPosts(ctx, "oak", "ash", "elm")

	handler := func(after entity.Cursor) (entity.Page[Post], error) { // from a URL: anything may be in it
		return posts.Page(ctx, keys.Values{"blog": "doors"}, entity.Limit(2), entity.After(after))
	}
	page, err := handler("")
	fmt.Println(page.Items, err)
	page, err = handler(page.Next)
	fmt.Println(page.Items, page.Next == "", err)

	_, err = handler("no cursor")
	var refused *entity.CursorError
	if errors.As(err, &refused) {
		fmt.Println(refused.Type, "cursor:", refused.Reason)
	}
	// Output:
	// [{doors 1 oak} {doors 2 ash}] <nil>
	// [{doors 3 elm}] true <nil>
	// Post cursor: malformed
}

func ExampleBatchError() {
	ctx := context.Background()
	posts := newPosts(ctx, "oak", "ash")
	note := posts.Table().KeyItem(posts.Key(Post{Blog: "doors", No: 3})) // where a post would stand
	var err error
	note[posts.Table().Scheme().Type], err = table.Encode("Note")
	check(err)
	check(posts.Table().Write(ctx, table.Put(note)))

	rows, err := posts.BatchGet(ctx, []Post{{Blog: "doors", No: 3}, {Blog: "doors", No: 2}})
	var batch *entity.BatchError[Post]
	if errors.As(err, &batch) {
		report := func(f entity.Failure[Post]) { fmt.Println(f.Index, f.Value.No, errors.Is(f.Err, entity.ErrType)) }
		for _, f := range batch.Failed {
			report(f)
		}
		fmt.Println(len(batch.Failed), "of", batch.Of)
	}
	fmt.Println(rows[0] == nil, rows[1].Text) // the others were read
	// Output:
	// 0 3 true
	// 1 of 2
	// true ash
}
