package lock_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// Another process writes with the guard of a lease, from its text, while the lease holds the lock, and not after.
func TestGuardToken_IsValidWhileTheLeaseHolds(t *testing.T) {
	for name, scheme := range map[string]keys.Scheme{"default": {}, "own": {PK: "PartitionKey", SK: "SortKey", Type: "_t", TTL: "expires", Delimiter: '|', Prefix: "shop/"}} {
		t.Run(name, func(t *testing.T) {
			contractWith(t, table.Schema{Keys: scheme}, lock.Config{Owner: "test", AttributePrefix: "lock_"}, func(ctx context.Context, p *place) {
				for kind, opts := range leases() {
					target := lock.Beside(keys.NewKey("TENANT#acme", "ORDER#"+kind))
					held, err := p.client.Acquire(ctx, target, opts...)
					require.NoError(t, err)
					key, err := p.client.Key(target)
					require.NoError(t, err)
					require.Equal(t, held.Key(), key)
					token, err := lock.ParseGuardToken(held.GuardToken().String())
					require.NoError(t, err)
					require.Equal(t, held.GuardToken(), token)
					other := p.table // of a process that knows no more than the token
					row := keys.NewKey("TENANT#written", kind)
					write := func(n int) error {
						return other.Write(ctx, table.Update(row, table.Attr("n").Set(n)), token.Guard(other))
					}
					require.NoError(t, write(1))
					require.NoError(t, held.Write(ctx, table.Update(keys.NewKey("TENANT#written", "by the holder"), table.Attr("n").Set(1))))
					require.NoError(t, write(2), "the holder's numbered writes do not matter")
					require.NoError(t, held.Release(ctx))
					require.ErrorIs(t, write(3), lock.ErrLost, "nobody holds it")
					again, err := p.client.Acquire(ctx, target, opts...)
					require.NoError(t, err)
					err = write(4)
					require.ErrorIs(t, err, lock.ErrLost, "the next one holds it")
					var failed *table.ConditionError
					require.ErrorAs(t, err, &failed)
					assert.Equal(t, 1, failed.Index)
					require.NoError(t, again.Release(ctx))
					item, err := other.Get(ctx, row, true)
					require.NoError(t, err)
					assert.Equal(t, numeral(2), item["n"])
				}
			})
		})
	}
}

// A lease that has ended, without anybody else having acquired, is still exclusive.
func TestGuardToken_DoesNotLookAtTheTime(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		held, err := w.client(quiet).Acquire(ctx, lock.Name("a"), lock.Fixed(time.Second))
		require.NoError(t, err)
		token := held.GuardToken()
		time.Sleep(time.Minute)
		require.ErrorIs(t, context.Cause(held.Context()), lock.ErrExpired)
		require.NoError(t, w.table.Write(ctx, w.count("n"), token.Guard(w.table)))
		_, err = w.client(quiet).Acquire(ctx, lock.Name("a"))
		require.NoError(t, err)
		require.ErrorIs(t, w.table.Write(ctx, w.count("n"), token.Guard(w.table)), lock.ErrLost)
		assert.Equal(t, int64(1), w.counted("n"))
	})
}

func TestGuardToken_IsRefusedElsewhere(t *testing.T) {
	engine := tabletest.New(t)
	open := func(schema table.Schema, optFns ...func(*dynamodb.Options)) *table.Table {
		tbl, err := table.Open(engine.Client(optFns...), schema)
		require.NoError(t, err)
		require.NoError(t, tbl.Ensure(t.Context()))
		return tbl
	}
	tbl := open(table.Schema{Name: "app"})
	locks, err := lock.New(tbl, lock.Config{})
	require.NoError(t, err)
	defer func() { assert.NoError(t, locks.Close(context.Background())) }()
	held, err := locks.Acquire(t.Context(), lock.Name("a"))
	require.NoError(t, err)
	token := held.GuardToken()
	engine.ResetRequests()
	for name, other := range map[string]*table.Table{
		"table":  open(table.Schema{Name: "other"}),
		"scheme": open(table.Schema{Name: "app", Keys: keys.Scheme{Version: "v"}}),
		"region": open(table.Schema{Name: "app"}, func(o *dynamodb.Options) { o.Region = "eu-west-1" }),
	} {
		require.ErrorIs(t, other.Write(t.Context(), token.Guard(other)), lock.ErrInvalid, name)
	}
	for _, r := range engine.Requests() {
		assert.NotEqual(t, "TransactWriteItems", r.Operation)
	}
	for name, forge := range map[string]func(*lock.GuardToken){
		"ticket": func(g *lock.GuardToken) { g.Ticket = g.Ticket[:len(g.Ticket)-1] }, // the beginning of another one
		"fence":  func(g *lock.GuardToken) { g.Fence++ },
		"key":    func(g *lock.GuardToken) { g.Key = keys.NewKey("LOCK#b", "LOCK#b") },
		"prefix": func(g *lock.GuardToken) { g.AttributePrefix = "lock_" },
	} {
		forged := token
		forge(&forged)
		require.ErrorIs(t, tbl.Write(t.Context(), forged.Guard(tbl)), lock.ErrLost, name)
	}
	require.NoError(t, tbl.Write(t.Context(), token.Guard(tbl)))
}

func TestParseGuardToken_RefusesOtherTexts(t *testing.T) {
	good := lock.GuardToken{Table: "app", Scheme: keys.Scheme{}.WithDefaults(), Key: keys.NewKey("p", "s"), Ticket: "T/1", Fence: 7}
	text := good.String()
	got, err := lock.ParseGuardToken(text)
	require.NoError(t, err)
	require.Equal(t, good, got)
	plain, err := base64.RawURLEncoding.DecodeString(text)
	require.NoError(t, err)
	encode := func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }
	bad := map[string]string{
		"nothing": "", "no token": "nightly", "padded": text + "=", "a line": text + "\n", "more": encode(string(plain) + "{}"), "null": encode("null"), "an object": encode("{}"),
		"another member": encode(strings.Replace(string(plain), `{`, `{"permits":3,`, 1)), "spaces": encode(string(plain) + " "),
		"no fence": encode(strings.Replace(string(plain), `:7`, `:0`, 1)), "no ticket": encode(strings.Replace(string(plain), "T/1", "", 1)),
		"no key": encode(strings.Replace(string(plain), `"s"`, `""`, 1)), "no table": encode(strings.Replace(string(plain), "app", "", 1)),
	}
	for i := range len(text) { // cut off anywhere
		bad[fmt.Sprint("cut at ", i)] = text[:i]
	}
	for name, text := range bad {
		got, err := lock.ParseGuardToken(text)
		require.ErrorIs(t, err, lock.ErrInvalid, name)
		assert.Zero(t, got, name)
	}
}

func ExampleLease_GuardToken() {
	ctx := context.Background()
	tbl := openTable(ctx)
	locks, err := lock.New(tbl, lock.Config{})
	check(err)
	defer func() { check(locks.Close(ctx)) }()
	lease, err := locks.Acquire(ctx, lock.Name("report"))
	check(err)
	text := lease.GuardToken().String() // goes to another process

	// There:
	write := func(state string) error {
		token, err := lock.ParseGuardToken(text)
		if err != nil {
			return err
		}
		report := table.Update(keys.NewKey("REPORT#1", "REPORT"), table.Attr("state").Set(state))
		return tbl.Write(ctx, report, token.Guard(tbl))
	}
	fmt.Println(write("begun"))
	check(lease.Release(ctx))
	fmt.Println(errors.Is(write("done"), lock.ErrLost))
	// Output:
	// <nil>
	// true
}

// The guard of an empty token, or for a nil table, is an operation that is refused.
func TestGuardToken_OfNothingIsRefused(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		require.ErrorIs(t, w.table.Write(ctx, w.put("x"), lock.GuardToken{}.Guard(nil)), lock.ErrInvalid)
		require.ErrorContains(t, w.table.Write(ctx, w.put("x"), lock.GuardToken{}.Guard(w.table)), "empty guard token")
	})
}

// One process acquires the lock and ends; another one writes under its lease, and gives the lock to the next in line.
func TestGuardToken_LetsAnotherProcessEndTheLease(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		target := lock.Name("import")
		first, second := w.client(quiet), w.client(quiet)
		l, err := first.Acquire(ctx, target, lock.Fixed(time.Hour))
		require.NoError(t, err)
		token, err := lock.ParseGuardToken(l.GuardToken().String())
		require.NoError(t, err)
		waiter := acquireAsync(ctx, w.client(quiet), target)

		tbl := w.open()
		require.NoError(t, tbl.Write(ctx, w.put("x"), token.Guard(tbl)))
		require.NoError(t, second.ForceRelease(ctx, target, token.Ticket, "done"))
		next := <-waiter
		require.NotNil(t, next)
		require.ErrorIs(t, tbl.Write(ctx, w.put("x"), token.Guard(tbl)), lock.ErrLost)
		require.ErrorIs(t, second.ForceRelease(ctx, target, token.Ticket), lock.ErrHeld, "it does not hit the next holder")
		require.NoError(t, next.Commit(ctx, w.put("x")))
	})
}
