package lock_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
)

// The Target of a lock beside a row prints no key.
func TestTarget_PrintsNoKeys(t *testing.T) {
	target := lock.Beside(keys.NewKey("canary", "canary"))
	for _, format := range []string{"%v", "%+v", "%s"} {
		assert.NotContains(t, fmt.Sprintf(format, target), "canary", format)
	}
}

// Delimiters in a name are escaped, two bytes for one. A name that fits into a key is accepted. One that does not is refused
// before anything is sent.
func TestTarget_NamesThatGrowByEscaping(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(quiet)
		for _, name := range []string{strings.Repeat("é", lock.MaxName/2), strings.Repeat("#", 509), strings.Repeat("a", lock.MaxName-1) + "#"} {
			l, err := c.Acquire(ctx, lock.Name(name))
			require.NoError(t, err, "%d bytes", len(name))
			require.NoError(t, l.Release(ctx))
		}
		for _, name := range []string{strings.Repeat("#", lock.MaxName), strings.Repeat("$#", lock.MaxName/2)} {
			for how, call := range map[string]func() error{
				"Acquire":      func() error { _, err := c.Acquire(ctx, lock.Name(name)); return err },
				"TryAcquire":   func() error { _, err := c.TryAcquire(ctx, lock.Name(name)); return err },
				"Inspect":      func() error { _, err := c.Inspect(ctx, lock.Name(name)); return err },
				"ForceRelease": func() error { return c.ForceRelease(ctx, lock.Name(name), "STRANGER/1@1764000000123 another") },
			} {
				ops := w.requests(func() {
					err := call()
					require.ErrorIs(t, err, lock.ErrInvalid, how)
					assert.NotContains(t, err.Error(), name[:20], how)
				})
				assert.Empty(t, ops, how)
			}
		}
	})
}

// A template of row keys that adds nothing would make the lock of a row that very row.
func TestTarget_IsNotTheRowBesideIt(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		require.NoError(t, w.table.Write(ctx, w.put("x")))
		c, err := lock.New(w.open(), lock.Config{RowKey: "{of}"})
		if err != nil { // a refusal at once is fine, too
			require.ErrorIs(t, err, lock.ErrInvalid)
			return
		}
		w.Cleanup(func() { assert.NoError(w, c.Close(context.Background())) })
		target := lock.Beside(w.row("x"))
		ctx, cancel := context.WithTimeout(ctx, time.Minute) // for the calls that wait for that row
		defer cancel()
		for how, call := range map[string]func() error{
			"Acquire":      func() error { _, err := c.Acquire(ctx, target); return err },
			"TryAcquire":   func() error { _, err := c.TryAcquire(ctx, target); return err },
			"AcquireAll":   func() error { _, err := c.AcquireAll(ctx, []lock.Target{lock.Name("report"), target}); return err },
			"Inspect":      func() error { _, err := c.Inspect(ctx, target); return err },
			"ForceRelease": func() error { return c.ForceRelease(ctx, target, "STRANGER/1@1764000000123 another") },
		} {
			ops := w.requests(func() { assert.ErrorIs(t, call(), lock.ErrInvalid, how) })
			assert.Empty(t, ops, how)
		}
	})
}
