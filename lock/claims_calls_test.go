package lock_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
)

// claimed is one call under a lease, or for one, and what shows that it was applied.
type claimed struct {
	free    bool          // nobody holds the lock before the call
	all     bool          // two locks together, and a call under their bundle
	shares  []lock.Option // of leases that are held together; another process then has one, too
	other   bool          // another process holds the lock
	data    bool          // the lease has a payload, so that a commit passes the lock on
	queued  bool          // a goroutine of the same process waits for the lock
	start   func(u *use)
	guarded bool // ErrLost means that it was not applied
	runs    bool // it runs a function, which writes; of its errors, those that do not match ErrLost can mean that nothing was written
	call    func(ctx context.Context, u *use) error
	applied func(u *use) bool
	gives   bool // nil means that the lease does not hold any more
}

// targets are the locks of the call.
func (c *claimed) targets() []lock.Target {
	list := []lock.Target{lock.Name("report"), lock.Name("second")}
	if c.all {
		return list
	}
	return list[:1]
}

func counted(u *use) bool { return u.counted("n") > 0 }

// claimedCalls are the calls about one lock that one process holds alone.
func claimedCalls() map[string]claimed {
	return map[string]claimed{
		"write":   {guarded: true, applied: counted, call: writeCount},
		"commit":  {guarded: true, gives: true, applied: counted, call: commitCount},
		"release": {gives: true, applied: gone, call: release},
		"write under a condition": {guarded: true, applied: counted, call: func(ctx context.Context, u *use) error {
			return u.lease.Write(ctx, u.count("n").If(table.Attr("n").NotExists()))
		}},
		"guard": {guarded: true, applied: counted, call: func(ctx context.Context, u *use) error {
			err := u.faulty.Write(ctx, u.count("n"), u.lease.Guard())
			if len(table.Conditions(err)) == 0 && errors.Is(err, lock.ErrLost) {
				return fmt.Errorf("the context has ended: %v", err) //nolint:errorlint // as Lease.Guard describes
			}
			return err
		}},
		"set data": {
			guarded: true, call: func(ctx context.Context, u *use) error { return u.lease.SetData(ctx, "mine") },
			applied: func(u *use) bool {
				var data string
				row := u.row(lock.Name("report"))
				return row != nil && row.Data.Decode(&data) == nil && data == "mine"
			},
		},
		"renew":         {call: func(ctx context.Context, u *use) error { return u.lease.Renew(ctx) }},
		"force release": {gives: true, applied: gone, call: forceRelease},
		"try acquire":   {free: true, call: tryAcquire(lock.Fixed(10 * time.Second))},
		"acquire":       {free: true, call: acquire(lock.Fixed(10 * time.Second))},
	}
}

// severalCalls are calls about several locks, or about one that several hold or pass to each other.
func severalCalls() map[string]claimed {
	calls := map[string]claimed{
		"write all": {all: true, guarded: true, applied: counted, call: func(ctx context.Context, u *use) error {
			return u.bundle.Write(ctx, u.count("n"))
		}},
		"commit all": {all: true, guarded: true, gives: true, applied: counted, call: func(ctx context.Context, u *use) error {
			return u.bundle.Commit(ctx, u.count("n"))
		}},
		"release all": {all: true, gives: true, applied: gone, call: func(ctx context.Context, u *use) error { return u.bundle.Release(ctx) }},
		"try acquire all": {all: true, free: true, call: func(ctx context.Context, u *use) error {
			b, err := u.client.TryAcquireAll(ctx, u.of.targets(), lock.Fixed(10*time.Second))
			if err == nil {
				return b.Release(context.Background())
			}
			return err
		}},
		"acquire all": {all: true, free: true, call: func(ctx context.Context, u *use) error {
			ctx, cancel := context.WithTimeout(ctx, time.Minute)
			defer cancel()
			b, err := u.client.AcquireAll(ctx, u.of.targets(), lock.WithData("mine"))
			if err == nil {
				return b.Release(context.Background())
			}
			return err
		}},
		"release to a goroutine": {queued: true, gives: true, applied: gone, call: release},
		"commit to a goroutine":  {queued: true, data: true, guarded: true, gives: true, applied: counted, call: commitCount},
	}
	for kind, share := range map[string]lock.Option{"permits": lock.Permits(2), "readers": lock.Shared()} {
		opts := []lock.Option{share}
		calls["write of "+kind] = claimed{shares: opts, guarded: true, applied: counted, call: writeCount}
		calls["commit of "+kind] = claimed{shares: opts, guarded: true, gives: true, applied: counted, call: commitCount}
		calls["release of "+kind] = claimed{shares: opts, gives: true, applied: gone, call: release}
		calls["force release of "+kind] = claimed{shares: opts, gives: true, applied: gone, call: forceRelease}
		calls["try acquire of "+kind] = claimed{shares: opts, free: true, call: tryAcquire(share)}
		calls["acquire of "+kind] = claimed{shares: opts, free: true, call: acquire(share)}
	}
	return calls
}

// operatorCalls are calls about locks of others, and those that acquire again and again.
func operatorCalls() map[string]claimed {
	return map[string]claimed{
		"revoke": {other: true, call: func(ctx context.Context, u *use) error { return u.client.Revoke(ctx, lock.Name("report")) }, applied: func(u *use) bool {
			time.Sleep(10 * time.Second) // a quarter of a lease, and the request
			return errors.Is(context.Cause(u.lease.Context()), lock.ErrRevoked)
		}},
		"force release of another": {other: true, gives: true, applied: gone, call: forceRelease},
		"set permits": {
			shares: []lock.Option{lock.Permits(2)}, applied: func(u *use) bool { return u.row(lock.Name("report")).Permits == 3 },
			call: func(ctx context.Context, u *use) error { return u.client.SetPermits(ctx, lock.Name("report"), 3) },
		},
		"do": {free: true, runs: true, applied: counted, call: func(ctx context.Context, u *use) error {
			ctx, cancel := context.WithTimeout(ctx, time.Minute)
			defer cancel()
			return u.client.Do(ctx, lock.Name("report"), func(ctx context.Context, l *lock.Lease) error {
				return l.Write(ctx, u.count("n"))
			}, lock.Fixed(10*time.Second))
		}},
		"lead": {free: true, runs: true, applied: counted, call: func(ctx context.Context, u *use) error {
			ctx, cancel := context.WithTimeout(ctx, time.Minute)
			defer cancel()
			return u.client.Lead(ctx, lock.Name("report"), func(ctx context.Context, l *lock.Lease) error {
				return l.Write(ctx, u.count("n").If(table.Attr("n").NotExists()))
			})
		}},
		"every": {free: true, call: everyMinute},
		"reset": {
			free: true, start: func(u *use) {
				l, err := u.operator.Acquire(context.Background(), lock.Name("report"))
				require.NoError(u, err)
				require.NoError(u, l.Release(context.Background()))
				odd := table.Attr("line").Set([]string{"odd"})
				require.NoError(u, u.table.Write(context.Background(), table.Update(keys.NewKey("LOCK#report", "LOCK#report"), odd)))
			},
			call: func(ctx context.Context, u *use) error {
				return u.client.ForceRelease(ctx, lock.Name("report"), "odd")
			},
			applied: func(u *use) bool {
				row, err := u.operator.Inspect(context.Background(), lock.Name("report"))
				return err == nil && !row.Held()
			},
		},
	}
}

func tryAcquire(opts ...lock.Option) func(context.Context, *use) error {
	return func(ctx context.Context, u *use) error {
		l, err := u.client.TryAcquire(ctx, lock.Name("report"), opts...)
		if err == nil {
			return l.Release(context.Background())
		}
		return err
	}
}

func acquire(opts ...lock.Option) func(context.Context, *use) error {
	return func(ctx context.Context, u *use) error {
		ctx, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		l, err := u.client.Acquire(ctx, lock.Name("report"), opts...)
		if err == nil {
			return l.Release(context.Background())
		}
		return err
	}
}

func writeCount(ctx context.Context, u *use) error { return u.lease.Write(ctx, u.count("n")) }

func commitCount(ctx context.Context, u *use) error { return u.lease.Commit(ctx, u.count("n")) }

func release(ctx context.Context, u *use) error { return u.lease.Release(ctx) }

func forceRelease(ctx context.Context, u *use) error {
	return u.client.ForceRelease(ctx, lock.Name("report"), u.lease.Ticket())
}

func gone(u *use) bool { return u.inLine() == 0 }

// everyMinute runs a few intervals. Each commits once at most, and what a commit says is true.
func everyMinute(ctx context.Context, u *use) error {
	ctx, cancel := context.WithTimeout(ctx, 4*time.Minute)
	defer cancel()
	var wrong error
	failed := lock.OnFailed(func(at time.Time, err error) {
		if table.MayBeApplied(err) {
			return
		}
		if n := u.counted(at.String()); n > 0 {
			wrong = fmt.Errorf("%w: %d at %v: %w", errFalse, n, at, err)
		}
	})
	err := u.client.Every(ctx, lock.Name("report"), time.Minute, func(ctx context.Context, l *lock.Lease, at time.Time) error {
		err := l.Commit(ctx, u.count(at.String()))
		if n := u.counted(at.String()); n > 1 || err == nil && n != 1 {
			wrong = errors.Join(fmt.Errorf("%w: %d at %v", errFalse, n, at), err)
		}
		return err
	}, failed)
	if wrong != nil {
		return wrong
	}
	return err
}

// errFalse means that a call has claimed what is not true.
var errFalse = errors.New("a false claim")
