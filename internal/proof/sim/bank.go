package sim

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// Bank moves money between accounts. Both accounts are locked and read, and their new balances are written together
// with an entry of the bank's journal.
type Bank struct {
	Accounts  int
	Clients   int
	Rounds    int           // of each client
	Audits    int           // how often all accounts are locked and read
	Views     int           // how often all accounts are read without their locks
	Lease     time.Duration // defaults to 5 s
	Overslept float64       // share of the transfers in which the process is paused beyond its lease
	Unguarded bool          // a negative twin: writes do not depend on the locks
	OneLock   bool          // another one: only the debited account is locked
	OneByOne  bool          // another one: views read one row after the other
}

const opening = 1000 // balance of each account at the start

func account(i int) keys.Key { return keys.NewKey(fmt.Sprintf("ACCOUNT#%d", i), "ACCOUNT") }

func entryKey(name string) keys.Key { return keys.NewKey("JOURNAL", name) }

// Run runs the workload and checks it. The sum of the accounts never changes. Every acknowledged transfer is in the
// journal, and no refused one. The balances agree with the journal.
func (b Bank) Run(w *World) Tally {
	if b.Lease == 0 {
		b.Lease = 5 * time.Second
	}
	rows := make([]lock.Target, b.Accounts)
	for i := range rows {
		rows[i] = lock.Beside(account(i))
	}
	w.relics(rows...)
	r := &bank{Bank: b, world: w, ledger: newLedger(w)}
	for i := range b.Accounts {
		w.must(w.Table().Write(w.Context(), table.Update(account(i), table.Attr("balance").Set(opening))))
	}
	r.inspect(time.Now())
	r.start()
	w.Settle()
	return r.check()
}

type bank struct {
	Bank

	world  *World
	ledger *ledger
	audits atomic.Int64 // completed
	views  atomic.Int64 // completed
}

func (b *bank) start() {
	config := lock.Config{Lease: b.Lease, HomeRegion: tabletest.Region}
	b.world.turns("teller", b.Clients, b.Rounds, config, b.transfer)
	if b.Audits > 0 {
		b.world.turns("auditor", 1, b.Audits, config, b.audit)
	}
	if b.Views > 0 {
		b.world.turns("viewer", 1, b.Views, config, b.view)
	}
}

// accounts returns the keys of all accounts.
func (b *bank) accounts() []keys.Key {
	list := make([]keys.Key, b.Accounts)
	for i := range list {
		list[i] = account(i)
	}
	return list
}

func (b *bank) transfer(ctx context.Context, x *Worker, locks *lock.Client) {
	x.Sleep(x.Between(0, 500*time.Millisecond))
	order := x.Perm(b.Accounts)
	from, to, amount := account(order[0]), account(order[1]), int64(1+x.IntN(100))
	targets := []lock.Target{lock.Beside(from), lock.Beside(to)}
	if b.OneLock {
		targets = targets[:1]
	}
	bounded, cancel := x.Within(ctx, x.Between(10*time.Second, 2*time.Minute))
	defer cancel()
	names := []string{"account " + strconv.Itoa(order[0]), "account " + strconv.Itoa(order[1])}[:len(targets)]
	held, ok := x.acquireAll(bounded, locks, targets, names)
	if !ok {
		return
	}
	has, err := x.Process.Table().BatchGet(ctx, []keys.Key{from, to}, true)
	if err == nil {
		if x.Float64() < b.Overslept {
			x.Pause(b.Lease+x.Between(0, 2*b.Lease), x.IntN(2) == 0)
		} else {
			x.Sleep(x.Between(0, 50*time.Millisecond))
		}
		name, mark := b.ledger.begin(x)
		err = b.write(x, held)(ctx, mark,
			table.Update(from, table.Attr("balance").Set(number(has[0], "balance")-amount)),
			table.Update(to, table.Attr("balance").Set(number(has[1], "balance")+amount)),
			table.Update(entryKey(name),
				table.Attr("from").Set(order[0]), table.Attr("to").Set(order[1]), table.Attr("amount").Set(amount)))
		b.ledger.end(name, err)
		x.Writes(err, "moves %d as %s", amount, name)
	}
	x.releaseAll(ctx, held, names)
}

// write returns how a transfer is written. Every third transfer also releases the locks.
func (b *bank) write(x *Worker, held *lock.Bundle) func(context.Context, ...table.Op) error {
	commits := x.IntN(3) == 0
	switch {
	case b.Unguarded:
		return x.Process.Table().Write
	case commits:
		return held.Commit
	}
	return held.Write
}

// audit reads the accounts under all of the locks. The read values count only if a guarded write afterwards shows
// that the locks were held all the time.
func (b *bank) audit(ctx context.Context, x *Worker, locks *lock.Client) {
	x.Sleep(x.Between(0, 2*time.Second))
	targets, names := make([]lock.Target, b.Accounts), make([]string, b.Accounts)
	for i, j := range x.Perm(b.Accounts) {
		targets[i], names[i] = lock.Beside(account(j)), "account "+strconv.Itoa(j)
	}
	bounded, cancel := x.Within(ctx, x.Between(30*time.Second, 2*time.Minute))
	defer cancel()
	held, ok := x.acquireAll(bounded, locks, targets, names)
	if !ok {
		return
	}
	var sum int64
	var err error
	for i := range b.Accounts { // one after the other, so not at one moment
		item, failed := x.Process.Table().Get(ctx, account(i), true)
		if err = failed; err != nil {
			break
		}
		sum += number(item, "balance")
	}
	if err == nil {
		err = held.Commit(ctx, table.Update(keys.NewKey("AUDIT", "AUDIT"), table.Attr("sum").Set(sum)))
	}
	x.Writes(err, "counts %d", sum)
	if err == nil {
		b.audits.Add(1)
		if want := int64(opening * b.Accounts); sum != want {
			b.world.Violation("an audit under all locks finds %d of %d", sum, want)
		}
	}
	x.releaseAll(ctx, held, names)
}

// acquireAll acquires locks together, and reports that.
func (x *Worker) acquireAll(ctx context.Context, locks *lock.Client, targets []lock.Target, names []string) (*lock.Bundle, bool) {
	for _, name := range names {
		x.Waits(name)
	}
	held, err := locks.AcquireAll(ctx, targets)
	for i, name := range names {
		if err != nil {
			x.GivesUp(name, err)
		} else {
			x.Holds(name, held.Leases()[i])
		}
	}
	return held, err == nil
}

func (x *Worker) releaseAll(ctx context.Context, held *lock.Bundle, names []string) {
	err := held.Release(ctx)
	for _, name := range names {
		x.Releases(name, err)
	}
}

// inspect looks at all accounts at one moment, again and again.
func (b *bank) inspect(at time.Time) {
	b.world.At(at.Add(97*time.Millisecond), func() {
		if b.sum() { // more of the same tells nothing new
			b.inspect(time.Now())
		}
	})
}

// sum reports whether all of the money is there.
func (b *bank) sum() bool {
	items, err := b.world.Table().BatchGet(context.WithoutCancel(b.world.Context()), b.accounts(), true)
	b.world.must(err)
	var sum int64
	for _, item := range items {
		sum += number(item, "balance")
	}
	if want := int64(opening * b.Accounts); sum != want {
		b.world.Violation("the accounts have %d of %d", sum, want)
		return false
	}
	return true
}

func (b *bank) check() Tally {
	tally, applied := b.ledger.check()
	tally.Audits, tally.Views = int(b.audits.Load()), int(b.views.Load())
	balances := slices.Repeat([]int64{opening}, b.Accounts)
	names := b.ledger.names()
	entries := map[string]table.Item{}
	for item, err := range b.world.Table().Query(b.world.Context(), table.Query{PK: "JOURNAL", Consistent: true}) {
		b.world.must(err)
		key, err := b.world.Table().KeyOf(item)
		b.world.must(err)
		entries[key.SK] = item
	}
	for _, name := range names {
		entry := entries[name]
		if marked := slices.Contains(applied, name); marked != (entry != nil) {
			b.world.Violation("transfer %s was applied in part: marked %v, in the journal %v", name, marked, entry != nil)
		}
		amount := number(entry, "amount")
		balances[number(entry, "from")] -= amount
		balances[number(entry, "to")] += amount
	}
	items, err := b.world.Table().BatchGet(b.world.Context(), b.accounts(), true)
	b.world.must(err)
	for i, item := range items {
		if has := number(item, "balance"); has != balances[i] {
			b.world.Violation("account %d has %d, and by the journal %d", i, has, balances[i])
		}
	}
	return tally
}
