package table_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/cenkalti/backoff/v4"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// exampleTable is an empty table in this process.
func exampleTable(opts ...table.Option) (context.Context, *table.Table) {
	ctx := context.Background()
	tbl, err := table.Open(tabletest.NewEngine().Client(), table.Schema{Name: "app"}, opts...)
	if err != nil {
		log.Fatal(err)
	}
	if err := tbl.Ensure(ctx); err != nil {
		log.Fatal(err)
	}
	return ctx, tbl
}

func ExamplePut() {
	ctx, tbl := exampleTable()
	key := keys.NewKey("JOB#1", "JOB")
	create := table.Put(tbl.KeyItem(key)).If(table.Attr("pk").NotExists())
	fmt.Println(tbl.Write(ctx, create))
	fmt.Println(errors.Is(tbl.Write(ctx, create), table.ErrCondition))
	// Output:
	// <nil>
	// true
}

func ExampleUpdate() {
	ctx, tbl := exampleTable()
	key := keys.NewKey("JOB#1", "JOB")
	done, state := table.Attr("done"), table.Attr("state")
	for range 3 {
		item, err := tbl.Apply(ctx, table.Update(key, done.Set(done.OrElse(0).Plus(1)), state.Set("running")).
			If(table.Or(state.NotExists(), table.Not(state.Equal("failed")))), table.ReturnNew)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(item["done"].(*types.AttributeValueMemberN).Value)
	}
	// Output:
	// 1
	// 2
	// 3
}

func ExampleCheck() {
	ctx, tbl := exampleTable()
	tenant, order := keys.NewKey("TENANT#1", "TENANT"), keys.NewKey("TENANT#1", "ORDER#1")
	err := tbl.Write(ctx, table.Check(tenant, table.Attr("state").Equal("open")), table.Put(tbl.KeyItem(order)))
	for _, failed := range table.Conditions(err) { // each one that does not hold
		fmt.Println(failed.Index, len(failed.Item))
	}
	_, err = tbl.Get(ctx, order, true)
	fmt.Println(errors.Is(err, table.ErrNotFound))
	// Output:
	// 0 0
	// true
}

func ExampleDelete() {
	ctx, tbl := exampleTable()
	key := keys.NewKey("JOB#1", "JOB")
	old := table.And(table.Attr("state").Equal("done"), table.Attr("at").AtMost(100))
	fmt.Println(errors.Is(tbl.Write(ctx, table.Delete(key).If(old)), table.ErrCondition))
	fmt.Println(tbl.Write(ctx, table.Delete(key))) // a missing item is no error
	// Output:
	// true
	// <nil>
}

func ExampleInvalid() {
	ctx, tbl := exampleTable()
	op := table.Invalid(errors.New("no such tenant")) // from a function that makes operations
	fmt.Println(tbl.Write(ctx, op))
	// Output: table: write: operation 0: no such tenant
}

func ExampleTable_BatchGet() {
	ctx, tbl := exampleTable()
	a, b, c := keys.NewKey("p", "a"), keys.NewKey("p", "b"), keys.NewKey("p", "c")
	if err := tbl.BatchWrite(ctx, []table.Op{table.Put(tbl.KeyItem(a)), table.Put(tbl.KeyItem(c)), table.Delete(b)}); err != nil {
		log.Fatal(err)
	}
	items, err := tbl.BatchGet(ctx, []keys.Key{c, b, a, c}, false) // in the order asked for, nil for what there is not
	for _, item := range items {
		if item == nil {
			fmt.Println("none")
			continue
		}
		key, err := tbl.KeyOf(item)
		fmt.Println(key.SK, err)
	}
	fmt.Println(err)
	// Output:
	// c <nil>
	// none
	// a <nil>
	// c <nil>
	// <nil>
}

func ExampleTable_Scan() {
	ctx, tbl := exampleTable()
	for _, sk := range []string{"a", "b", "c"} {
		if err := tbl.Write(ctx, table.Put(tbl.KeyItem(keys.NewKey("p", sk)))); err != nil {
			log.Fatal(err)
		}
	}
	n := 0
	for _, err := range tbl.Scan(ctx, table.Scan{Filter: table.Attr("sk").NotEqual("b")}) {
		if err != nil {
			log.Fatal(err)
		}
		n++
	}
	fmt.Println(n)
	// Output: 2
}

func ExampleWithRetry() {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	_, tbl := exampleTable(
		table.WithRetry(table.Retry{
			Backoff:   func() backoff.BackOff { return backoff.WithMaxRetries(backoff.NewConstantBackOff(time.Second), 3) },
			Retryable: func(err error) bool { return table.Retryable(err) && !errors.Is(err, table.ErrConflict) },
			Timeout:   2 * time.Second,
		}),
		table.WithClock(func() time.Time { return now }),
	)
	fmt.Println(tbl.Now())
	// Output: 2026-01-02 03:04:05 +0000 UTC
}

func ExampleWithoutRetry() {
	ctx, tbl := exampleTable()
	err := tbl.Write(table.WithoutRetry(ctx), table.Delete(keys.NewKey("p", "s"))) // sent once, whatever happens
	fmt.Println(err, table.RequestMayBeApplied(err))
	// Output: <nil> false
}

func ExampleWithUsage() {
	ctx, tbl := exampleTable()
	ctx, usage := table.WithUsage(ctx)
	if err := tbl.Write(ctx, table.Delete(keys.NewKey("p", "s"))); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%+v\n", usage.Totals())
	// Output: {Requests:1 Retries:0 ReadUnits:0 WriteUnits:1}
}

func ExampleTable_QueryPage() {
	ctx, tbl := exampleTable()
	for _, sk := range []string{"a", "b", "c"} {
		if err := tbl.Write(ctx, table.Put(tbl.KeyItem(keys.NewKey("p", sk)))); err != nil {
			log.Fatal(err)
		}
	}
	q := table.Query{PK: "p", PageSize: 2}
	for done := false; !done; {
		page, err := tbl.QueryPage(ctx, q) // one request
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(len(page.Items), "items, more:", page.Next != nil)
		q.Start, done = page.Next, page.Next == nil
	}
	// Output:
	// 2 items, more: true
	// 1 items, more: false
}

func ExampleTable_Replicated() {
	ctx, tbl := exampleTable()
	replicated, err := tbl.Replicated(ctx) // a global table, where conditions hold in one region only
	fmt.Println(replicated, err)
	// Output: false <nil>
}

func ExampleTable_Metered() {
	ctx, tbl := exampleTable()
	var reports table.Usage // of one part of the program, whatever else uses the table
	part := tbl.Metered(&reports)
	if err := part.Write(ctx, table.Delete(keys.NewKey("p", "s"))); err != nil {
		log.Fatal(err)
	}
	if err := tbl.Write(ctx, table.Delete(keys.NewKey("p", "s"))); err != nil {
		log.Fatal(err)
	}
	fmt.Println(reports.Totals().Requests)
	// Output: 1
}

// Attributes of several types, elements of documents, and sets. All changes of an update are applied together.
func ExampleOperand() {
	ctx, tbl := exampleTable()
	key := keys.NewKey("JOB#1", "JOB")
	tags, journal, address := table.Attr("tags"), table.Attr("journal"), table.Attr("address")
	job := tbl.KeyItem(key)
	for name, v := range map[string]any{
		"address": map[string]string{"city": "Bonn"}, "journal": []string{"created"}, "tries": 3,
	} {
		av, err := table.Encode(v)
		if err != nil {
			log.Fatal(err)
		}
		job[name] = av
	}
	job["tags"] = &types.AttributeValueMemberSS{Value: []string{"new", "urgent"}}
	if err := tbl.Write(ctx, table.Put(job)); err != nil {
		log.Fatal(err)
	}

	item, err := tbl.Apply(ctx, table.Update(key,
		address.Field("city").Set("Berlin"),
		journal.Set(journal.Append([]string{"moved"})),
		tags.RemoveFrom(&types.AttributeValueMemberSS{Value: []string{"new"}}),
		table.Attr("tries").Remove(),
	).If(
		table.Attr("tries").Between(1, 3), // both ends are included
		address.Field("city").HasPrefix("B"),
		journal.Size().Less(100),
	), table.ReturnNew)
	if err != nil {
		log.Fatal(err)
	}
	text, err := table.ItemToJSON(item)
	fmt.Println(string(text), err)
	// Output:
	// {"address":{"M":{"city":{"S":"Berlin"}}},"journal":{"L":[{"S":"created"},{"S":"moved"}]},"pk":{"S":"JOB#1"},"sk":{"S":"JOB"},"tags":{"SS":["urgent"]}} <nil>
}

// After an error, a program has to know whether it may simply try again. A refused condition is clear; an answer that was
// lost is not.
func ExampleMayBeApplied() {
	ctx := context.Background()
	engine := tabletest.NewEngine()
	tbl, err := table.Open(engine.Client(), table.Schema{Name: "app"})
	if err != nil {
		log.Fatal(err)
	}
	if err := tbl.Ensure(ctx); err != nil {
		log.Fatal(err)
	}
	count := table.Update(keys.NewKey("STATS", "ORDERS"), table.Attr("n").Add(1))

	err = tbl.Write(ctx, count.If(table.Attr("n").Exists()))
	fmt.Println(errors.Is(err, table.ErrCondition), table.MayBeApplied(err))

	engine.Inject(tabletest.Fault{Kind: tabletest.DropReply, Operation: "UpdateItem", Times: 1})
	err = tbl.Write(table.WithoutRetry(ctx), count)
	fmt.Println(errors.Is(err, table.ErrUnreachable), table.MayBeApplied(err))
	// Output:
	// true false
	// true true
}

// Two accounts as they are at one moment: a transfer between them is seen as a whole, or not at all.
func ExampleTable_TransactGet() {
	ctx, tbl := exampleTable()
	a, b := keys.NewKey("ACCOUNT#a", "ACCOUNT"), keys.NewKey("ACCOUNT#b", "ACCOUNT")
	balance := table.Attr("balance")
	if err := tbl.Write(ctx, table.Update(a, balance.Set(60)), table.Update(b, balance.Set(40))); err != nil {
		log.Fatal(err)
	}
	items, err := tbl.TransactGet(ctx, []keys.Key{a, b, keys.NewKey("ACCOUNT#c", "ACCOUNT")})
	if err != nil {
		log.Fatal(err)
	}
	for _, item := range items[:2] {
		fmt.Println(item["balance"].(*types.AttributeValueMemberN).Value)
	}
	fmt.Println("no such account:", items[2] == nil)
	// Output:
	// 60
	// 40
	// no such account: true
}

// A transaction that another program wrote down, as the AWS command line takes it.
func ExampleTable_OpsFromJSON() {
	ctx, tbl := exampleTable()
	ops, err := tbl.OpsFromJSON([]byte(`[
		{"Put": {"Item": {"pk": {"S": "JOB#1"}, "sk": {"S": "JOB"}, "state": {"S": "new"}}}},
		{"ConditionCheck": {"Key": {"pk": {"S": "JOB#0"}, "sk": {"S": "JOB"}}, "ConditionExpression": "attribute_not_exists(pk)"}}
	]`))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(ops), tbl.Write(ctx, ops...))
	// Output: 2 <nil>
}
