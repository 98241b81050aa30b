package soak

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
)

const (
	bankWorkload   = "bank"
	bankPartition  = "BANK"
	accounts       = 5
	initialBalance = 100
	maxTransfer    = 10
)

// transfer is the row of a transfer, which is written together with the accounts.
type transfer struct {
	From   int   `json:"from"`
	To     int   `json:"to"`
	Amount int64 `json:"amount"`
}

// bankRow is an account or a transfer.
type bankRow struct {
	Balance int64 `dynamo:"balance"`
	From    int   `dynamo:"from"`
	To      int   `dynamo:"to"`
	Amount  int64 `dynamo:"amount"`
}

func (r bankRow) transfer() transfer { return transfer{From: r.From, To: r.To, Amount: r.Amount} }

// The lock of an account stands beside it.
func accountKey(i int) keys.Key      { return keys.NewKey(bankPartition, fmt.Sprint("ACCOUNT#", i)) }
func transferKey(op string) keys.Key { return keys.NewKey(bankPartition, transferPrefix+op) }

const transferPrefix = "TRANSFER#"

// openAccounts creates the accounts.
func openAccounts(ctx context.Context, tbl *table.Table) error {
	ops := make([]table.Op, accounts)
	for i := range ops {
		ops[i] = setBalance(i, initialBalance)
	}
	return tbl.Write(ctx, ops...)
}

func setBalance(account int, balance int64) table.Op {
	return table.Update(accountKey(account), table.Attr("balance").Set(balance))
}

// transfer moves money from one account to another, under the locks of both.
func (l *lane) transfer(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, roundTime)
	defer cancel()
	two := l.rand.Perm(accounts)[:2]
	acquire := l.locks.AcquireAll
	if l.rand.IntN(5) == 0 {
		acquire = l.locks.TryAcquireAll
	}
	bundle, err := acquire(ctx, []lock.Target{lock.Beside(accountKey(two[0])), lock.Beside(accountKey(two[1]))})
	if err != nil {
		return err
	}
	given, err := l.transferUnder(ctx, bundle, two[0], two[1])
	if given {
		return err
	}
	return errors.Join(err, l.release(ctx, bundle))
}

func (l *lane) transferUnder(ctx context.Context, bundle *lock.Bundle, from, to int) (given bool, err error) {
	items, err := l.table.BatchGet(ctx, []keys.Key{accountKey(from), accountKey(to)}, true)
	if err != nil {
		return false, err
	}
	var rich, poor bankRow
	if err := errors.Join(decode(items[0], &rich), decode(items[1], &poor)); err != nil {
		return false, err
	}
	amount := min(1+l.rand.Int64N(maxTransfer), rich.Balance)
	if amount == 0 {
		return false, nil
	}
	o := l.operation(bankPartition, l.lease(), bundle.Leases()...)
	o.Transfer = &transfer{From: from, To: to, Amount: amount}
	given, _, err = l.write(ctx, bundle, o, l.maybe(),
		setBalance(from, rich.Balance-amount), setBalance(to, poor.Balance+amount),
		table.Update(transferKey(o.Op),
			table.Attr("from").Set(from), table.Attr("to").Set(to), table.Attr("amount").Set(amount)))
	return given, err
}

// checkBank compares the accounts with the transfers.
func (a *audit) checkBank(ctx context.Context) error {
	var found []string
	want := make([]int64, accounts)
	for i := range want {
		want[i] = initialBalance
	}
	known := map[string]*transfer{}
	for _, o := range a.operations(bankWorkload, bankPartition) {
		known[o.Op] = o.Transfer
	}
	have, sum := map[string]int64{}, int64(0)
	err := rows(ctx, a.table, bankPartition, func(key keys.Key, row bankRow) {
		op, is := strings.CutPrefix(key.SK, transferPrefix)
		switch {
		case strings.HasPrefix(key.SK, "ACCOUNT#"):
			have[key.SK] = row.Balance
			sum += row.Balance
		case is:
			found = append(found, op)
			want[row.From] -= row.Amount
			want[row.To] += row.Amount
			if t := known[op]; t != nil && *t != row.transfer() {
				a.violate(bankWorkload, "%s was to be %+v and is %+v", op, *t, row.transfer())
			}
		}
	})
	if err != nil {
		return err
	}
	if sum != accounts*initialBalance {
		a.violate(bankWorkload, "the accounts have %d in sum, not %d", sum, accounts*initialBalance)
	}
	for i, balance := range want {
		if got := have[accountKey(i).SK]; got != balance {
			a.violate(bankWorkload, "account %d has %d, and by its transfers %d", i, got, balance)
		}
	}
	a.present(bankWorkload, bankPartition, found)
	return nil
}
