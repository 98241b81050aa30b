package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/mortise-go/mortise/entity"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
)

// report audits the batch and prints the summary. A batch whose books are right is finished: the next start with the same input
// begins a new one.
func (a *app) report(ctx context.Context) error {
	books, err := a.audit(ctx)
	if err == nil {
		err = a.print(ctx, books)
	}
	if err != nil {
		return err
	}
	if books.broken != nil {
		return fmt.Errorf("an invariant is broken: %w", books.broken)
	}
	// Another program that settles the batch, too, may have finished it already, hence any version.
	_, err = a.batches.AnyVersion().Update(ctx, a.batch, entity.Set("finished", time.Now().UTC()))
	return err
}

// audit is what the table has at the end of a run.
type audit struct {
	orders, settled, settledTwice    int
	total, ledgerTotal, balanceTotal Money
	by                               map[string]int // ledger entries by worker, or worker process
	broken                           error          // what does not hold
}

// audit reads the batch back, consistently, and checks it: every order is settled exactly once, and the orders' totals, the
// ledger and the balances are one sum, that of the input.
func (a *app) audit(ctx context.Context) (*audit, error) {
	batch := keys.Values{"batch": a.batch.ID}
	var wanted []Order
	for _, c := range a.input.Orders {
		wanted = append(wanted, Order{Batch: a.batch.ID, Order: c.order.Order})
	}
	orders, err := a.orders.BatchGet(ctx, wanted, entity.Consistent())
	entries, err2 := all(a.ledger.Query(ctx, batch, entity.Consistent()))
	accounts, err3 := all(a.customers.Query(ctx, batch, entity.Consistent()))
	if err := errors.Join(err, err2, err3); err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	x := &audit{orders: len(orders), by: map[string]int{}}
	x.compare(a.input.Total, orders, entries, accounts)
	return x, nil
}

// compare adds up the rows of a batch. An order that is not there is nil.
func (x *audit) compare(total Money, orders []*Order, entries []LedgerEntry, accounts []Customer) {
	for _, o := range orders {
		if o != nil && o.Status == Settled {
			x.settled++
			x.total = x.total.Plus(o.Total)
		}
	}
	booked := map[string]int{}
	for _, e := range entries {
		if booked[e.Order]++; booked[e.Order] == 2 {
			x.settledTwice++
		}
		x.ledgerTotal = x.ledgerTotal.Plus(e.Amount)
		process, _, _ := strings.Cut(e.By, "/")
		x.by[process]++
	}
	for _, c := range accounts {
		x.balanceTotal = x.balanceTotal.Plus(c.Balance)
	}
	x.broken = errors.Join(
		check(x.settled == x.orders, "%d orders are not settled", x.orders-x.settled),
		check(x.settledTwice == 0, "%d orders are settled more than once", x.settledTwice),
		check(len(booked) == x.orders, "the ledger has entries for %d orders", len(booked)),
		check(x.total.String() == total.String(), "the orders' totals are %s, the input's %s", x.total, total),
		check(x.ledgerTotal.String() == x.total.String(), "the ledger's total is %s, the orders' %s", x.ledgerTotal, x.total),
		check(x.balanceTotal.String() == x.ledgerTotal.String(), "the balances' total is %s, the ledger's %s", x.balanceTotal, x.ledgerTotal))
}

// result is the last line of the output with -json.
type result struct {
	Engine             string  `json:"engine"`
	Orders             int     `json:"orders"`
	Settled            int     `json:"settled"`
	SettledTwice       int     `json:"settled_twice"`
	Total              Money   `json:"total"`
	LedgerTotal        Money   `json:"ledger_total"`
	BalanceTotal       Money   `json:"balance_total"`
	StaleWritesRefused int64   `json:"stale_writes_refused"`
	Requests           int64   `json:"requests"`
	Seconds            float64 `json:"seconds"`
}

func (a *app) print(ctx context.Context, books *audit) error {
	t := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	line := func(name, format string, args ...any) { say(t, name+"\t"+format+"\n", args...) }
	line("engine", "%s, table %s", a.target, a.tableName)
	line("batch", "%s (%s)", a.batch.ID, map[bool]string{false: "new", true: "resumed: an earlier start did not finish it"}[a.resumed])
	line("orders", "%d", books.orders)
	line("settled", "%d (more than once: %d)", books.settled, books.settledTwice)
	line("settled by", "%s", strings.TrimPrefix(fmt.Sprint(books.by), "map"))
	count := a.counted()
	count.Refused, count.Requests = count.Refused+a.refused, count.Requests+a.usage.Totals().Requests
	line("stale writes refused", "%d (workers that were frozen: %d)", count.Refused, len(a.frozen))
	line("total of the orders", "%s", books.total)
	line("total of the ledger", "%s", books.ledgerTotal)
	line("total of the balances", "%s", books.balanceTotal)
	line("requests", "%d", count.Requests)
	took := time.Since(a.started)
	line("time", "%.2f s", took.Seconds())
	if err := a.show(ctx, t); err != nil {
		return err
	}
	if err := t.Flush(); err != nil || !a.json {
		return err
	}
	return json.NewEncoder(a.stdout).Encode(result{
		Engine: a.target.String(), Orders: books.orders, Settled: books.settled, SettledTwice: books.settledTwice,
		Total: books.total, LedgerTotal: books.ledgerTotal, BalanceTotal: books.balanceTotal, StaleWritesRefused: count.Refused,
		Requests: count.Requests, Seconds: math.Round(took.Seconds()*1000) / 1000,
	})
}

// counted adds up what all crews have counted.
func (a *app) counted() (sum tally) {
	for _, t := range a.tallies {
		sum.Settled, sum.Refused, sum.Requests = sum.Settled+t.Settled, sum.Refused+t.Refused, sum.Requests+t.Requests
	}
	return sum
}

// show prints an order as it stands in the table, and how many its customer has. A frozen worker's lock has had two holders.
func (a *app) show(ctx context.Context, w io.Writer) error {
	o := a.input.Orders[0].order
	if len(a.frozen) > 0 {
		o = a.frozen[0].order
	}
	o.Batch = a.batch.ID
	var heads []Order
	var lines []OrderLine
	var locks []lock.Record
	pk, sk, records := a.orders.Key(o).PK, a.table.Scheme().SK, a.locks.Records()
	err := entity.Collect(ctx, a.table, pk, entity.Into(a.lines, &lines), entity.Into(records, &locks), entity.Into(a.orders, &heads))
	if err != nil {
		return fmt.Errorf("show an order: %w", err)
	}
	say(w, "\nOne order's item collection, %s = %s:\n", a.table.Scheme().PK, pk)
	for _, l := range lines {
		say(w, "  %s = %s\tproduct %q: %d × %s, discount %s = %s\n", sk, a.lines.Key(l).SK, l.Product, l.Quantity, l.Price, l.Discount, l.Amount())
	}
	for _, l := range locks {
		say(w, "  %s = %s\tfence %d, in line: %d\n", sk, records.Key(l).SK, l.Fence, len(l.Line))
	}
	for _, o := range heads {
		say(w, "  %s = %s\tplaced %s by %q, %s by %s, total %s\n", sk, a.orders.Key(o).SK, o.Placed.Format(time.DateOnly), o.Customer, o.Status, o.SettledBy, o.Total)
	}
	orders, err := all(a.orders.Query(ctx, keys.Values{"batch": o.Batch, "customer": o.Customer}, entity.On(customerIndex)))
	say(w, "\nOrders of its customer %q, from index %s: %d\n", o.Customer, customerIndex, len(orders))
	return err
}
