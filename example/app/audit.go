package main

import (
	"context"
	"fmt"
)

// audit is what the table says at the end of a run, read consistently.
type audit struct {
	orders       int
	settled      int // orders whose status says so
	settledTwice int // orders with more than one ledger entry
	total        Decimal
	ledgerTotal  Decimal
	balanceTotal Decimal
	by           map[string]int // ledger entries by worker
	broken       []string       // what does not hold, in words
}

// newAudit reads a batch back and checks it: every order is settled exactly
// once, and the orders' totals, the ledger and the balances are one sum, that
// of the input.
func newAudit(ctx context.Context, s *store, b Batch, in *Input) (*audit, error) {
	ids := make([]string, len(in.Orders))
	for i, o := range in.Orders {
		ids[i] = o.ID
	}
	orders, err := s.getOrders(ctx, b.ID, ids)
	if err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	entries, err := all(ctx, s.ledger, s.entries, b.ID)
	if err != nil {
		return nil, fmt.Errorf("audit: ledger: %w", err)
	}
	accounts, err := all(ctx, s.customers, s.accounts, b.ID)
	if err != nil {
		return nil, fmt.Errorf("audit: customers: %w", err)
	}
	a := &audit{orders: len(orders), by: map[string]int{}}
	if err := a.add(in, orders, entries, accounts); err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	return a, nil
}

// add draws up the balance. Errors are sums that do not fit; everything else
// that is wrong goes into broken.
func (a *audit) add(in *Input, orders []Order, entries []LedgerEntry, accounts []Customer) (err error) {
	booked := map[string][]LedgerEntry{}
	owed := map[string]Decimal{}
	for _, e := range entries {
		booked[e.Order] = append(booked[e.Order], e)
		a.by[e.By]++
		if a.ledgerTotal, err = a.ledgerTotal.Add(e.Amount); err != nil {
			return err
		}
		if owed[e.Customer], err = owed[e.Customer].Add(e.Amount); err != nil {
			return err
		}
	}
	var unsettled, unbooked, wrong int
	for i, o := range orders {
		if o.Status == Settled {
			a.settled++
		} else {
			unsettled++
		}
		if a.total, err = a.total.Add(o.Total); err != nil {
			return err
		}
		want, err := in.Orders[i].Total()
		if err != nil {
			return err
		}
		switch list := booked[o.Order]; {
		case len(list) == 0:
			unbooked++
		case len(list) > 1:
			a.settledTwice++
		case list[0].Amount.Cmp(want) != 0 || o.Total.Cmp(want) != 0 || list[0].Customer != o.Customer:
			wrong++
		}
		delete(booked, o.Order)
	}
	wrongBalances := 0
	for _, c := range accounts {
		if a.balanceTotal, err = a.balanceTotal.Add(c.Balance); err != nil {
			return err
		}
		if c.Balance.Cmp(owed[c.Customer]) != 0 {
			wrongBalances++
		}
	}
	a.expect(unsettled == 0, "%d orders are not settled", unsettled)
	a.expect(unbooked == 0, "%d orders have no ledger entry", unbooked)
	a.expect(a.settledTwice == 0, "%d orders are settled more than once", a.settledTwice)
	a.expect(len(booked) == 0, "the ledger has entries for %d unknown orders", len(booked))
	a.expect(wrong == 0, "%d orders are settled with a wrong amount or customer", wrong)
	a.expect(wrongBalances == 0, "%d balances are not the sum of their ledger entries", wrongBalances)
	a.expect(a.total.Cmp(in.Total) == 0, "the orders' totals are %s, the input's %s", a.total, in.Total)
	a.expect(a.ledgerTotal.Cmp(a.total) == 0, "the ledger's total is %s, the orders' %s", a.ledgerTotal, a.total)
	a.expect(a.balanceTotal.Cmp(a.ledgerTotal) == 0, "the balances' total is %s, the ledger's %s", a.balanceTotal, a.ledgerTotal)
	return nil
}

func (a *audit) expect(holds bool, format string, args ...any) {
	if !holds {
		a.broken = append(a.broken, fmt.Sprintf(format, args...))
	}
}
