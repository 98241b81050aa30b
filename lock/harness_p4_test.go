package lock_test

import (
	"context"
	"fmt"
	"os"
	"runtime/debug"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/engines"
	"github.com/mortise-go/mortise/lock"
)

func TestMain(m *testing.M) {
	if text, is := os.LookupEnv(holderEnv); is {
		os.Exit(holderMain(text))
	}
	debug.SetGCPercent(400) // worlds are small, and made by the thousand
	code := engines.Main(m)
	if testing.Verbose() {
		fmt.Println("checked against policy.json:", checked)
	}
	os.Exit(code)
}

// every has waiters look once per d.
func every(d time.Duration) func() backoff.BackOff {
	return func() backoff.BackOff { return backoff.NewConstantBackOff(d) }
}

// releaseInVain tries to release where no answer comes.
func (w *world) releaseInVain(ctx context.Context, l *lock.Lease) {
	w.Helper()
	short, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	require.Error(w, l.Release(short))
}
