package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// books are the rows of a batch of two orders, of 168 and 30, as they should
// be.
func books(t *testing.T) (*Input, []Order, []LedgerEntry, []Customer) {
	second := `{"id":"2","customer":"A","placed":"2024-01-01","lines":[{"product":"1","price":"3","quantity":10,"discount":"0"}]}`
	in, err := readInput("f", strings.NewReader(goodOrder+"\n"+second))
	require.NoError(t, err)
	d := func(s string) Decimal { return dec(t, s) }
	return in,
		[]Order{
			{Order: "10248", Customer: "VINET", Status: Settled, Total: d("168")},
			{Order: "2", Customer: "A", Status: Settled, Total: d("30")},
		},
		[]LedgerEntry{
			{Order: "2", Fence: 1, Customer: "A", Amount: d("30"), By: "w1"},
			{Order: "10248", Fence: 1, Customer: "VINET", Amount: d("168"), By: "w2"},
		},
		[]Customer{{Customer: "A", Balance: d("30")}, {Customer: "VINET", Balance: d("168")}}
}

func TestAuditOfSoundBooks(t *testing.T) {
	in, orders, entries, accounts := books(t)
	a := &audit{orders: len(orders), by: map[string]int{}}
	require.NoError(t, a.add(in, orders, entries, accounts))
	assert.Empty(t, a.broken)
	assert.Equal(t, 2, a.settled)
	assert.Zero(t, a.settledTwice)
	assert.Equal(t, []string{"198", "198", "198"}, []string{a.total.String(), a.ledgerTotal.String(), a.balanceTotal.String()})
	assert.Equal(t, map[string]int{"w1": 1, "w2": 1}, a.by)
}

func TestAuditFindsWhatIsBroken(t *testing.T) {
	for want, breakIt := range map[string]func(orders []Order, entries *[]LedgerEntry, accounts []Customer){
		"1 orders are not settled": func(o []Order, _ *[]LedgerEntry, _ []Customer) { o[0].Status = Pending },
		"1 orders have no ledger entry": func(_ []Order, e *[]LedgerEntry, _ []Customer) {
			*e = (*e)[1:]
		},
		"1 orders are settled more than once": func(_ []Order, e *[]LedgerEntry, _ []Customer) {
			again := (*e)[0]
			again.Fence = 2
			*e = append(*e, again)
		},
		"the ledger has entries for 1 unknown orders": func(_ []Order, e *[]LedgerEntry, _ []Customer) {
			*e = append(*e, LedgerEntry{Order: "3"})
		},
		"1 orders are settled with a wrong amount or customer": func(_ []Order, e *[]LedgerEntry, _ []Customer) {
			(*e)[0].Customer = "VINET"
		},
		"1 balances are not the sum of their ledger entries": func(_ []Order, _ *[]LedgerEntry, c []Customer) {
			c[0].Balance = c[1].Balance
		},
		"the orders' totals are 60, the input's 198": func(o []Order, _ *[]LedgerEntry, _ []Customer) {
			o[0].Total = o[1].Total
		},
		"the ledger's total is 60, the orders' 198": func(_ []Order, e *[]LedgerEntry, _ []Customer) {
			(*e)[1].Amount = (*e)[0].Amount
		},
		"the balances' total is 336, the ledger's 198": func(_ []Order, _ *[]LedgerEntry, c []Customer) {
			c[0].Balance = c[1].Balance
		},
	} {
		in, orders, entries, accounts := books(t)
		breakIt(orders, &entries, accounts)
		a := &audit{orders: len(orders), by: map[string]int{}}
		require.NoError(t, a.add(in, orders, entries, accounts))
		assert.Contains(t, a.broken, want)
	}
}

func TestAuditReportsOverflow(t *testing.T) {
	in, orders, entries, accounts := books(t)
	for i := range entries {
		entries[i].Amount = dec(t, strings.Repeat("9", 38))
	}
	err := (&audit{by: map[string]int{}}).add(in, orders, entries, accounts)
	assert.ErrorIs(t, err, ErrDecimalOverflow)
}
