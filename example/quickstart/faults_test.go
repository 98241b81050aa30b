package main

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/entity"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// open is what main does, for an engine of the test's own.
func open(t *testing.T, engine *tabletest.Engine) (*entity.Entity[Account], *lock.Client) {
	t.Helper()
	tbl, err := table.Open(engine.Client(), table.Schema{Name: "app"})
	require.NoError(t, err)
	require.NoError(t, tbl.Ensure(t.Context()))
	accounts, err := entity.Define(tbl, entity.Spec[Account]{Type: "Account", PK: "ACCOUNT#{id}", SK: "ACCOUNT", Version: "version"})
	require.NoError(t, err)
	locks, err := lock.New(tbl, lock.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, locks.Close(context.Background())) }) // also after a failed assertion
	return accounts, locks
}

// withdraw is the code under test: it takes an amount from an account, once.
func withdraw(ctx context.Context, accounts *entity.Entity[Account], locks *lock.Client, id string, cents int64) error {
	account := Account{ID: id}
	return locks.Do(ctx, lock.Beside(accounts.Key(account)), func(ctx context.Context, lease *lock.Lease) error {
		account, err := accounts.Get(ctx, account, entity.Consistent())
		if err != nil {
			return err
		}
		return lease.Commit(ctx, accounts.UpdateOp(account, entity.Add("balance", -cents)))
	})
}

// The answer to the transaction is lost, and the SDK's client never learns that it was applied.
func TestWithdraw_LostAnswer(t *testing.T) {
	engine := tabletest.New(t)
	accounts, locks := open(t, engine)
	account, err := accounts.Create(t.Context(), Account{ID: "42", Balance: 10000})
	require.NoError(t, err)

	engine.Inject(tabletest.Fault{Kind: tabletest.DropReply, Operation: "TransactWriteItems", Times: 1})
	require.NoError(t, withdraw(t.Context(), accounts, locks, "42", 3000))

	account, err = accounts.Get(t.Context(), account, entity.Consistent())
	require.NoError(t, err)
	assert.EqualValues(t, 7000, account.Balance, "taken once")
}

// A holder freezes for longer than its lease. In virtual time the test takes milliseconds.
func TestCommit_AfterAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		accounts, locks := open(t, tabletest.New(t))
		account, err := accounts.Create(t.Context(), Account{ID: "42", Balance: 10000})
		require.NoError(t, err)
		slow, err := locks.Acquire(t.Context(), lock.Beside(accounts.Key(account)), lock.Fixed(10*time.Second))
		require.NoError(t, err)

		time.Sleep(time.Minute) // the pause
		require.NoError(t, withdraw(t.Context(), accounts, locks, "42", 3000))
		err = slow.Commit(t.Context(), accounts.AnyVersion().UpdateOp(account, entity.Set("balance", 0)))
		require.ErrorIs(t, err, lock.ErrLost)

		account, err = accounts.Get(t.Context(), account, entity.Consistent())
		require.NoError(t, err)
		assert.EqualValues(t, 7000, account.Balance, "not overwritten")
	})
}

// One request after the other is applied, and its answer is lost.
func TestWithdraw_AnyLostAnswer(t *testing.T) {
	for call, hit := 1, true; hit; call++ {
		synctest.Test(t, func(t *testing.T) {
			engine := tabletest.New(t)
			accounts, locks := open(t, engine)
			account, err := accounts.Create(t.Context(), Account{ID: "42", Balance: 10000})
			require.NoError(t, err)

			engine.ResetRequests() // Call counts from here
			engine.Inject(tabletest.Fault{Kind: tabletest.DropReply, Call: call})
			require.NoError(t, withdraw(t.Context(), accounts, locks, "42", 3000))
			hit = call <= len(engine.Requests()) // else all requests have been tried

			account, err = accounts.Get(t.Context(), account, entity.Consistent())
			require.NoError(t, err)
			assert.EqualValues(t, 7000, account.Balance, "taken once, although the answer to request %d was lost", call)
		})
	}
}
