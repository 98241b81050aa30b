package calls

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/mortise-go/mortise/table"
)

// A nil context is a mistake like others: it is refused, and nothing is sent. What gives something
// back does so all the same, as with a context that has ended.
func TestCalls_RefuseNilContexts(t *testing.T) {
	for name, make := range calls() {
		virtual(t, name, func(w *world) {
			var none context.Context
			var before int64
			var err error
			assert.NotPanics(w, func() {
				err = make(w, none, func() { before = w.usage.Totals().Requests })
			})
			if slices.Contains(givesBack, name) {
				assert.NoError(w, err)
				return
			}
			assert.ErrorIs(w, err, table.ErrInvalid)
			assert.ErrorContains(w, err, "nil context")
			if !slices.Contains(recorded, name) {
				assert.Equal(w, before, w.usage.Totals().Requests, "nothing was sent")
			}
		})
	}
}

// recorded are calls whose failure is recorded, by the Migrator that made them.
var recorded = []string{
	"migrations.Run.Write", "migrations.Run.Step", "migrations.Run.AtomicStep", "migrations.Run.Atomic", "migrations.Run.Backfill",
}
