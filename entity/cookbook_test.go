package entity_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/mortise-go/mortise/entity"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
)

// The recipes of COOKBOOK.md, in its order.

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// A customer and its orders are one collection: one query reads all of it, another a part.
func Example_oneToMany() {
	ctx := context.Background()
	tbl := newTable(ctx)

	type Customer struct{ ID, Name string }
	type Order struct {
		Customer string `dynamo:"-"` // is in the key, and read back from it
		No       int    `dynamo:"no"`
		Cents    int64  `dynamo:"cents"`
	}
	customers, err := entity.Define(tbl, entity.Spec[Customer]{Type: "Customer", PK: "CUSTOMER#{id}", SK: "CUSTOMER"})
	check(err)
	orders, err := entity.Define(tbl, entity.Spec[Order]{Type: "Order", PK: "CUSTOMER#{customer}", SK: "ORDER#{no:uint6}"})
	check(err)

	check(tbl.Write(ctx, // the first order comes with its customer, or neither does
		customers.CreateOp(Customer{"7", "Ann"}),
		orders.CreateOp(Order{"7", 1, 1900})))
	for no, cents := range map[int]int64{2: 450, 10: 8000} {
		_, err := orders.Create(ctx, Order{"7", no, cents})
		check(err)
	}

	var head []Customer
	var list []Order
	pk := customers.Key(Customer{ID: "7"}).PK
	check(entity.Collect(ctx, tbl, pk, entity.Into(customers, &head), entity.Into(orders, &list)))
	fmt.Println(head, list)
	for o, err := range orders.Query(ctx, keys.Values{"customer": "7"}, entity.Descending(), entity.Limit(2)) {
		fmt.Println("latest:", o.No, o.Cents, err)
	}
	// Output:
	// [{7 Ann}] [{7 1 1900} {7 2 450} {7 10 8000}]
	// latest: 10 8000 <nil>
	// latest: 2 450 <nil>
}

// The row of a membership stands with its team. An index over the same two attributes, the
// other way round, has it with its user.
func Example_manyToMany() {
	ctx := context.Background()
	tbl := newTable(ctx, table.Index{Name: "inverted", PK: "sk", SK: "pk"})

	type Member struct {
		Team string `dynamo:"-"`
		User string `dynamo:"-"`
		Role string `dynamo:"role"`
	}
	members, err := entity.Define(tbl, entity.Spec[Member]{
		Type: "Member", PK: "TEAM#{team}", SK: "USER#{user}",
		Indexes: []entity.Index[Member]{{Name: "inverted"}}, // its keys are the row's own: no templates
	})
	check(err)
	for _, m := range []Member{{"red", "ann", "lead"}, {"red", "bob", "guest"}, {"blue", "ann", "guest"}} {
		_, err := members.Create(ctx, m)
		check(err)
	}
	for m, err := range members.Query(ctx, keys.Values{"team": "red"}) {
		fmt.Println("in red:", m.User, m.Role, err)
	}
	for m, err := range members.Query(ctx, keys.Values{"user": "ann"}, entity.On("inverted")) {
		fmt.Println("ann is in:", m.Team, m.Role, err)
	}
	// Output:
	// in red: ann lead <nil>
	// in red: bob guest <nil>
	// ann is in: blue guest <nil>
	// ann is in: red lead <nil>
}

// The newest reading comes first, since the key's time runs backwards. Bounds are times all the same.
func Example_timeSeries() {
	ctx := context.Background()

	type Reading struct {
		Sensor  string    `dynamo:"-"`
		At      time.Time `dynamo:"-"`
		Celsius int       `dynamo:"celsius"`
		Expires time.Time `dynamo:"expires"`
	}
	readings, err := entity.Define(newTable(ctx), entity.Spec[Reading]{
		Type: "Reading", PK: "SENSOR#{sensor}", SK: "READING#{at:time-ms:desc}", TTL: "expires",
	})
	check(err)
	midnight := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	var list []Reading
	for hour := range 6 {
		list = append(list, Reading{
			Sensor: "attic", At: midnight.Add(time.Duration(hour) * time.Hour), Celsius: 10 + hour,
			Expires: time.Now().Add(30 * 24 * time.Hour), // then DynamoDB deletes it
		})
	}
	_, err = readings.PutAll(ctx, list)
	check(err)

	attic := keys.Values{"sensor": "attic"}
	for r, err := range readings.Query(ctx, attic, entity.Limit(1)) {
		fmt.Println("now:", r.Celsius, err)
	}
	for r, err := range readings.Query(ctx, attic, entity.From("at", midnight.Add(time.Hour)), entity.Until("at", midnight.Add(3*time.Hour))) {
		fmt.Println(r.At.Format(time.TimeOnly), r.Celsius, err)
	}
	// Output:
	// now: 15 <nil>
	// 02:00:00 12 <nil>
	// 01:00:00 11 <nil>
}

// Only jobs that wait are in the index. Whoever takes one writes it with the version that it
// saw: of two workers one succeeds, and the job leaves the queue with the same write.
func Example_sparseQueue() {
	ctx := context.Background()

	type Job struct {
		ID     string    `dynamo:"id"`
		Queue  string    `dynamo:"queue"`
		Due    time.Time `dynamo:"due"`
		Worker string    `dynamo:"worker,omitempty"`
		Rev    int64     `dynamo:"rev"`
	}
	jobs, err := entity.Define(newTable(ctx), entity.Spec[Job]{
		Type: "Job", PK: "JOB#{id}", SK: "JOB", Version: "rev",
		Indexes: []entity.Index[Job]{
			{Name: "gsi1", PK: "QUEUE#{queue}", SK: "{due:time-s}#{id}", When: func(j Job) bool { return j.Worker == "" }},
		},
	})
	check(err)
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for i, id := range []string{"late", "next", "soon"} {
		_, err := jobs.Create(ctx, Job{ID: id, Queue: "mail", Due: noon.Add(time.Duration([]int{60, 0, 1}[i]) * time.Minute)})
		check(err)
	}
	take := func(worker string) (Job, error) {
		for j, err := range jobs.Query(ctx, keys.Values{"queue": "mail"}, entity.On("gsi1"), entity.Until("due", noon.Add(30*time.Minute))) {
			if err != nil {
				return Job{}, err
			}
			got, err := jobs.Update(ctx, j, entity.Set("worker", worker))
			if !errors.Is(err, entity.ErrStale) { // taken by another worker: the next one, then
				return got, err
			}
		}
		return Job{}, nil
	}
	for _, worker := range []string{"a", "b", "c"} {
		j, err := take(worker)
		fmt.Printf("%s: %q %v\n", worker, j.ID, err)
	}
	// Output:
	// a: "next" <nil>
	// b: "soon" <nil>
	// c: "" <nil>
}

// The fields of the sort key go from the whole to the part. Each prefix of them selects a
// subtree, and ends where a field ends: san does not match santafe.
func Example_hierarchy() {
	ctx := context.Background()

	type Store struct {
		Country string `dynamo:"-"`
		State   string `dynamo:"-"`
		City    string `dynamo:"-"`
		No      int    `dynamo:"-"`
		Name    string `dynamo:"name"`
	}
	stores, err := entity.Define(newTable(ctx), entity.Spec[Store]{
		Type: "Store", PK: "COUNTRY#{country}", SK: "STORE#{state}#{city}#{no:uint3}",
	})
	check(err)
	_, err = stores.PutAll(ctx, []Store{
		{"us", "nm", "santafe", 1, "Plaza"}, {"us", "nm", "san", 1, "Depot"}, {"us", "nm", "san", 12, "Mill"}, {"us", "ny", "albany", 1, "Dock"},
	})
	check(err)
	for _, match := range []keys.Values{
		{"country": "us"},
		{"country": "us", "state": "nm"},
		{"country": "us", "state": "nm", "city": "san"},
	} {
		var names []string
		for s, err := range stores.Query(ctx, match) {
			check(err)
			names = append(names, s.Name)
		}
		fmt.Println(len(match), names)
	}
	// Output:
	// 1 [Depot Mill Plaza Dock]
	// 2 [Depot Mill Plaza]
	// 3 [Depot Mill]
}

// An index over the address finds the user; the constraint sees to it that there is one.
func Example_uniqueEmail() {
	ctx := context.Background()

	type User struct {
		ID    string `dynamo:"id"`
		Email string `dynamo:"email,omitempty"`
		Rev   int64  `dynamo:"rev"`
	}
	users, err := entity.Define(newTable(ctx), entity.Spec[User]{
		Type: "User", PK: "USER#{id}", SK: "USER", Version: "rev",
		Unique:  []entity.Unique[User]{{Name: "email", Key: "{email}"}},
		Indexes: []entity.Index[User]{{Name: "gsi1", PK: "EMAIL#{email}", SK: "USER"}},
	})
	check(err)
	_, err = users.Create(ctx, User{ID: "1", Email: "ann@example.com"}) // in lower case: text is compared as it is
	check(err)
	_, err = users.Create(ctx, User{ID: "2", Email: "ann@example.com"})
	var taken *entity.UniqueError
	fmt.Println(errors.As(err, &taken) && taken.Constraint == "email")
	for u, err := range users.Query(ctx, keys.Values{"email": "ann@example.com"}, entity.On("gsi1")) {
		fmt.Println("ann is user", u.ID, err)
	}
	// Output:
	// true
	// ann is user 1 <nil>
}

// A hold keeps a seat for some minutes. The transaction that sells the seat uses the hold up.
func Example_expiringHold() {
	ctx := context.Background()
	tbl := newTable(ctx)

	type Hold struct {
		Event, Seat string
		Customer    string    `dynamo:"customer"`
		Until       time.Time `dynamo:"until"`
		Rev         int64     `dynamo:"rev"`
	}
	type Ticket struct{ Event, Seat, Customer string }
	holds, err := entity.Define(tbl, entity.Spec[Hold]{
		Type: "Hold", PK: "EVENT#{event}", SK: "HOLD#{seat}", Version: "rev", TTL: "until",
	})
	check(err)
	tickets, err := entity.Define(tbl, entity.Spec[Ticket]{Type: "Ticket", PK: "EVENT#{event}", SK: "TICKET#{seat}"})
	check(err)

	anns, err := holds.Create(ctx, Hold{Event: "1", Seat: "A7", Customer: "ann", Until: time.Now().Add(-time.Second)}) // it has expired
	check(err)
	bens, err := holds.Create(ctx, Hold{Event: "1", Seat: "A7", Customer: "ben", Until: time.Now().Add(time.Minute)})
	check(err)
	_, err = holds.Create(ctx, Hold{Event: "1", Seat: "A7", Customer: "cid", Until: time.Now().Add(time.Minute)})
	fmt.Println("held:", errors.Is(err, entity.ErrExists))

	// Both holds have version 1. The condition tells them apart.
	buy := func(h Hold) error {
		mine := holds.If(holds.Field("customer").Equal(h.Customer))
		return tbl.Write(ctx, mine.DeleteOp(h), tickets.CreateOp(Ticket{h.Event, h.Seat, h.Customer}))
	}
	fmt.Println("ann is too late:", errors.Is(buy(anns), table.ErrCondition))
	fmt.Println("ben:", buy(bens))
	// Output:
	// held: true
	// ann is too late: true
	// ben: <nil>
}

// A vote is a row that can be created once. The count changes in the same transaction, so
// it counts rows, however often somebody votes and whatever answers get lost.
func Example_counter() {
	ctx := context.Background()
	tbl := newTable(ctx)

	type Poll struct {
		ID    string `dynamo:"id"`
		Votes int    `dynamo:"votes"`
		Seats int    `dynamo:"seats"`
	}
	type Vote struct{ Poll, User string }
	polls, err := entity.Define(tbl, entity.Spec[Poll]{Type: "Poll", PK: "POLL#{id}", SK: "POLL"})
	check(err)
	votes, err := entity.Define(tbl, entity.Spec[Vote]{Type: "Vote", PK: "POLL#{poll}", SK: "VOTE#{user}"})
	check(err)
	_, err = polls.Create(ctx, Poll{ID: "1", Seats: 2})
	check(err)

	free := polls.Field("votes").Less(polls.Field("seats")) // leave this out, and the count has no limit
	for _, user := range []string{"ann", "ann", "bob", "cyd"} {
		err := tbl.Write(ctx,
			votes.CreateOp(Vote{"1", user}),
			polls.UpdateOp(Poll{ID: "1"}, entity.Add("votes", 1)).If(free))
		switch {
		case err == nil:
			fmt.Println(user, "counts")
		case errors.Is(err, entity.ErrExists):
			fmt.Println(user, "has voted")
		case errors.Is(err, table.ErrCondition):
			fmt.Println(user, "is too late")
		default:
			log.Fatal(err)
		}
	}
	poll, err := polls.Get(ctx, Poll{ID: "1"})
	fmt.Println(poll.Votes, err)
	// Output:
	// ann counts
	// ann has voted
	// bob counts
	// cyd is too late
	// 2 <nil>
}

// All open tickets under one key of the index would be one hot partition. The shard is
// computed from the ticket's id; a query that leaves the id out reads all shards, in order.
func Example_shardedPartition() {
	ctx := context.Background()

	type Ticket struct {
		ID     string    `dynamo:"id"`
		State  string    `dynamo:"state,omitempty"`
		Opened time.Time `dynamo:"opened"`
	}
	tickets, err := entity.Define(newTable(ctx), entity.Spec[Ticket]{
		Type: "Ticket", PK: "TICKET#{id}", SK: "TICKET",
		Indexes: []entity.Index[Ticket]{{Name: "gsi1", PK: "STATE#{state}#{id:shard8}", SK: "{opened:time-s}#{id}"}},
	})
	check(err)
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for i, id := range []string{"door", "lamp", "roof", "sink"} {
		_, err := tickets.Create(ctx, Ticket{ID: id, State: "open", Opened: noon.Add(time.Duration(i) * time.Minute)})
		check(err)
	}
	_, err = tickets.Update(ctx, Ticket{ID: "lamp"}, entity.Set("state", "done")) // moves it, to the shard of its id
	check(err)
	for t, err := range tickets.Query(ctx, keys.Values{"state": "open"}, entity.On("gsi1")) {
		fmt.Println(t.Opened.Format(time.TimeOnly), t.ID, err)
	}
	// Output:
	// 12:00:00 door <nil>
	// 12:02:00 roof <nil>
	// 12:03:00 sink <nil>
}
