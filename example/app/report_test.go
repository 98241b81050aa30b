package main

import (
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/entity"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// books are the rows of a batch of two orders, of 168 and 30, as they should be.
func books(t *testing.T) (Money, []*Order, []LedgerEntry, []Customer) {
	m := func(s string) Money { return money(t, s) }
	return m("198"),
		[]*Order{{Order: "1", Status: Settled, Total: m("168")}, {Order: "2", Status: Settled, Total: m("30")}},
		[]LedgerEntry{{Order: "2", Fence: 1, Amount: m("30"), By: "w1"}, {Order: "1", Fence: 1, Amount: m("168"), By: "w2"}},
		[]Customer{{Customer: "A", Balance: m("30")}, {Customer: "VINET", Balance: m("168")}}
}

func TestAudit_PassesSoundBooks(t *testing.T) {
	total, orders, entries, accounts := books(t)
	a := &audit{orders: len(orders), by: map[string]int{}}
	a.compare(total, orders, entries, accounts)
	require.NoError(t, a.broken)
	assert.Equal(t, 2, a.settled)
	assert.Zero(t, a.settledTwice)
	assert.Equal(t, []string{"198", "198", "198"}, []string{a.total.String(), a.ledgerTotal.String(), a.balanceTotal.String()})
	assert.Equal(t, map[string]int{"w1": 1, "w2": 1}, a.by)
}

func TestAudit_FindsWhatIsBroken(t *testing.T) {
	for want, breakIt := range map[string]func(orders []*Order, entries *[]LedgerEntry, accounts []Customer){
		"1 orders are not settled\n":               func(o []*Order, _ *[]LedgerEntry, _ []Customer) { o[0].Status = Pending },
		"1 orders are not settled\nthe orders'":    func(o []*Order, _ *[]LedgerEntry, _ []Customer) { o[0] = nil },
		"the ledger has entries for 1 orders":      func(_ []*Order, e *[]LedgerEntry, _ []Customer) { *e = (*e)[1:] },
		"the ledger has entries for 3 orders":      func(_ []*Order, e *[]LedgerEntry, _ []Customer) { *e = append(*e, LedgerEntry{Order: "3"}) },
		"1 orders are settled more than once":      func(_ []*Order, e *[]LedgerEntry, _ []Customer) { *e = append(*e, (*e)[0], (*e)[0]) },
		"the orders' totals are 60, the input's":   func(o []*Order, _ *[]LedgerEntry, _ []Customer) { o[0].Total = o[1].Total },
		"the ledger's total is 60, the orders'":    func(_ []*Order, e *[]LedgerEntry, _ []Customer) { (*e)[1].Amount = (*e)[0].Amount },
		"the balances' total is 336, the ledger's": func(_ []*Order, _ *[]LedgerEntry, c []Customer) { c[0].Balance = c[1].Balance },
	} {
		total, orders, entries, accounts := books(t)
		breakIt(orders, &entries, accounts)
		a := &audit{orders: len(orders), by: map[string]int{}}
		a.compare(total, orders, entries, accounts)
		assert.ErrorContains(t, a.broken, want)
	}
}

// requireBooks checks each row of a settled batch, and not only their sums: amounts, customers and balances.
func requireBooks(t *testing.T, s *store, in *Input) {
	t.Helper()
	batch := in.Digest[:12] + "-1"
	owed := map[string]Money{}
	for _, c := range in.Orders {
		owed[c.order.Customer] = owed[c.order.Customer].Plus(c.total())
		o, err := s.orders.Get(t.Context(), Order{Batch: batch, Order: c.order.Order}, entity.Consistent())
		require.NoError(t, err)
		entries, err := all(s.ledger.Query(t.Context(), keys.Values{"batch": batch, "order": o.Order}, entity.Consistent()))
		require.NoError(t, err)
		require.Len(t, entries, 1)
		want := []string{Settled, c.total().String(), c.total().String(), c.order.Customer, c.order.Customer, entries[0].By}
		assert.Equal(t, want, []string{o.Status, o.Total.String(), entries[0].Amount.String(), entries[0].Customer, o.Customer, o.SettledBy})
		assert.Positive(t, entries[0].Fence)
	}
	accounts, err := all(s.customers.Query(t.Context(), keys.Values{"batch": batch}, entity.Consistent()))
	require.NoError(t, err)
	assert.Len(t, accounts, len(owed))
	for _, c := range accounts {
		assert.Equal(t, owed[c.Customer].String(), c.Balance.String())
	}
}

// What another program writes into the table does not control the terminal on which the summary is read.
func TestReport_IsPrintable(t *testing.T) {
	const evil = "\x1b]52;c;cHduZWQ=\a\x1b[2J\u009b31m\u202e\n\t%s"
	engine := tabletest.New(t)
	url, err := engine.Listen("127.0.0.1:0")
	require.NoError(t, err)
	s, err := openStore(engine.Client(), "app", keys.Scheme{})
	require.NoError(t, err)
	file, _ := writeOrders(t, 1)
	out := start(t.Context(), t, "-orders "+word(file)+" -table app -endpoint "+url, func(tally) {
		for item, err := range s.table.Scan(t.Context(), table.Scan{Consistent: true}) {
			assert.NoError(t, err)
			key, err := s.table.KeyOf(item)
			assert.NoError(t, err)
			for _, name := range []string{"settled_by", "by", "product"} {
				if item[name] != nil {
					assert.NoError(t, s.table.Write(t.Context(), table.Update(key, table.Attr(name).Set(evil))))
				}
			}
		}
	})
	assert.Zero(t, out.code, out.stderr)
	for _, text := range []string{out.stdout, out.stderr} {
		assert.False(t, strings.ContainsFunc(text, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }), "%q", text)
	}
	assert.Equal(t, 3, strings.Count(out.stdout, "\uFFFD]52;c;cHduZWQ=\uFFFD\uFFFD[2J\uFFFD31m\uFFFD  %s"), "it is shown, on one line: %s", out.stdout)
}
