package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/mortise-go/mortise/lock"
)

// result is the last line of the output with -json.
type result struct {
	Engine             string  `json:"engine"`
	Orders             int     `json:"orders"`
	Settled            int     `json:"settled"`
	SettledTwice       int     `json:"settled_twice"`
	Total              Decimal `json:"total"`
	LedgerTotal        Decimal `json:"ledger_total"`
	BalanceTotal       Decimal `json:"balance_total"`
	StaleWritesRefused int64   `json:"stale_writes_refused"`
	Requests           int64   `json:"requests"`
	Seconds            float64 `json:"seconds"`
}

// summary is what a run has to show at its end.
type summary struct {
	target  target
	table   string
	batch   Batch
	resumed bool
	audit   *audit
	stats   stats
	took    time.Duration

	// One order, as it stands in the table.
	partition string
	rows      []row

	// Its customer's orders, as the index has them.
	customer string
	orders   []Order
}

// row is one row of the order that is shown.
type row struct{ key, kind, content string }

func (s *summary) result() result {
	return result{
		Engine: s.target.String(), Orders: s.audit.orders, Settled: s.audit.settled, SettledTwice: s.audit.settledTwice,
		Total: s.audit.total, LedgerTotal: s.audit.ledgerTotal, BalanceTotal: s.audit.balanceTotal,
		StaleWritesRefused: s.stats.Refused, Requests: s.stats.Usage.Requests,
		Seconds: math.Round(s.took.Seconds()*1000) / 1000,
	}
}

// write prints the summary for people.
func (s *summary) write(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	line := func(name, format string, args ...any) { say(t, "%s\t%s\n", name, fmt.Sprintf(format, args...)) }
	kind := "new"
	if s.resumed {
		kind = "resumed: an earlier start did not finish it"
	}
	line("engine", "%s, table %s", s.target, s.table)
	line("batch", "%s (%s)", s.batch.ID, kind)
	line("orders", "%d", s.audit.orders)
	line("settled", "%d (more than once: %d)", s.audit.settled, s.audit.settledTwice)
	for i, by := range s.workers() {
		name := ""
		if i == 0 {
			name = "settled by"
		}
		line(name, "%s", by)
	}
	line("waits", "%d times an order was locked by somebody else", s.stats.Waits)
	line("in vain", "%d times an order turned out to be settled under its lock", s.stats.Vain)
	line("stale writes refused", "%d (workers that were frozen: %d)", s.stats.Refused, s.stats.Frozen)
	line("total of the orders", "%s", s.audit.total.Display())
	line("total of the ledger", "%s", s.audit.ledgerTotal.Display())
	line("total of the balances", "%s", s.audit.balanceTotal.Display())
	u := s.stats.Usage
	line("requests", "%d (repeated: %d)", u.Requests, u.Retries)
	line("capacity", "%.1f read units, %.1f write units", u.ReadUnits, u.WriteUnits)
	line("time", "%.2f s", s.took.Seconds())
	if err := t.Flush(); err != nil {
		return err
	}
	return s.writeCollection(w)
}

// workers says who settled how many: by worker, or by process where there are
// too many workers to read.
func (s *summary) workers() []string {
	const few = 16
	counts := s.audit.by
	if len(counts) > few {
		counts = map[string]int{}
		for by, n := range s.audit.by {
			process, _, _ := strings.Cut(by, "/")
			counts[process] += n
		}
	}
	names := make([]string, 0, len(counts))
	for name := range counts {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		if len(a) != len(b) {
			return len(a) - len(b) // w9 before w10
		}
		return strings.Compare(a, b)
	})
	list := make([]string, 0, len(names))
	const perLine = 4
	for group := range slices.Chunk(names, perLine) {
		parts := make([]string, len(group))
		for i, name := range group {
			parts[i] = fmt.Sprintf("%s: %d", name, counts[name])
		}
		list = append(list, strings.Join(parts, "   "))
	}
	return list
}

// writeCollection prints the rows of one order, its lock among them.
func (s *summary) writeCollection(w io.Writer) error {
	if _, err := fmt.Fprintf(w, "\nOne order's item collection, %s:\n", s.partition); err != nil {
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, r := range s.rows {
		say(t, "  %s\t%s\t%s\n", r.key, r.kind, r.content)
	}
	if err := t.Flush(); err != nil || len(s.orders) == 0 {
		return err
	}
	first, last := s.orders[0], s.orders[len(s.orders)-1]
	_, err := fmt.Fprintf(w, "\nOrders of its customer %s, from index %s: %d, placed %s to %s.\n",
		printable(s.customer), customerIndex, len(s.orders), first.Placed.Format(time.DateOnly), last.Placed.Format(time.DateOnly))
	return err
}

// writeJSON prints the result as one line.
func (s *summary) writeJSON(w io.Writer) error { return json.NewEncoder(w).Encode(s.result()) }

// show reads an order to be shown, and its customer's others: one on which a
// worker froze if there is any, since its lock has seen two holders; otherwise
// the first.
func (s *summary) show(ctx context.Context, from *store, locks *lock.Client, stalled []string, in *Input) error {
	id := in.Orders[0].ID
	if len(stalled) > 0 {
		id = stalled[0]
	}
	c, err := from.collect(ctx, locks, s.batch.ID, id)
	if err != nil {
		return fmt.Errorf("show an order: %w", err)
	}
	s.partition, s.rows = rowsOf(from, locks, c)
	s.customer = c.order.Customer
	s.orders, err = from.ordersOf(ctx, s.batch.ID, s.customer)
	return err
}

// rowsOf renders a collection in the order of its sort keys.
func rowsOf(s *store, locks *lock.Client, c collection) (partition string, rows []row) {
	scheme := s.table.Scheme()
	add := func(sk, kind, format string, args ...any) {
		rows = append(rows, row{key: scheme.SK + " = " + printable(sk), kind: kind, content: fmt.Sprintf(format, args...)})
	}
	for _, l := range c.lines {
		amount, err := l.Amount()
		shown := amount.Display()
		if err != nil {
			shown = err.Error()
		}
		add(s.lines.Key(l).SK, s.lines.Type(), "product %s: %d × %s, discount %s = %s",
			printable(l.Product), l.Quantity, l.Price.Display(), l.Discount, shown)
	}
	for _, r := range c.locks {
		state := "free"
		if r.Held() {
			state = "held by " + printable(r.Holder().Owner)
		}
		add(locks.Records().Key(r).SK, locks.Records().Type(), "%s, fence %d", state, r.Fence)
	}
	o := c.order
	key := s.orders.Key(o)
	by := ""
	if o.SettledBy != "" {
		by = " by " + o.SettledBy
	}
	add(key.SK, s.orders.Type(), "placed %s by %s, %s%s, total %s, version %d",
		o.Placed.Format(time.DateOnly), printable(o.Customer), o.Status, by, o.Total.Display(), o.Version)
	slices.SortStableFunc(rows, func(a, b row) int { return strings.Compare(a.key, b.key) })
	return scheme.PK + " = " + printable(key.PK), rows
}

// printable quotes what would not survive a terminal.
func printable(s string) string {
	if q := strconv.Quote(s); q != `"`+s+`"` {
		return q
	}
	return s
}
