package migrations_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/migrations"
	"github.com/mortise-go/mortise/table"
)

// The remaining time is about that, or it is unknown, as with a Filter: nobody knows how many items it selects.
func TestProgress_EstimatesTheRemainingTimeOrNone(t *testing.T) {
	for name, c := range map[string]struct {
		filter table.Cond
		known  bool
	}{
		"all items": {table.Cond{}, true},
		"a few":     {table.Attr("n").AtMost(19), false},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(ctx context.Context, w *world) {
				w.fill(2000)
				var p migrations.Progress
				at := map[time.Time]time.Duration{}
				m := w.migrator(backfill(migrations.Backfill{
					Filter: c.filter, PageSize: 20, ReadUnits: 0.5, Transform: func(context.Context, table.Item) (table.Item, error) { return nil, nil },
				}, &p), migrations.WithProgress(func(p migrations.Progress) {
					if p.Left > 0 {
						at[time.Now()] = p.Left
					}
				}))
				_, err := m.Up(ctx)
				require.NoError(w, err)
				assert.Equal(w, c.known, len(at) > 0)
				for now, left := range at {
					if rest := time.Since(now); min(rest, p.Elapsed-rest) > 30*time.Second { // neither its beginning nor its end
						assert.InEpsilon(w, rest.Seconds(), left.Seconds(), 0.5, "%v after the start", p.Elapsed-rest)
					}
				}
			})
		})
	}
}

// The units of the progress are those of all requests of the backfill, also of those that record its beginning and its end.
func TestProgress_HasAllUnits(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		w.fill(50)
		_, err := w.migrator([]migrations.Migration{{ID: "1_fill", Up: func(ctx context.Context, run *migrations.Run) error {
			w.engine.ResetRequests()
			p, err := run.Backfill(ctx, migrations.Backfill{Name: "fill", Segments: 2, PageSize: 10, Transform: double})
			units := map[string]float64{}
			for _, r := range w.engine.Requests() {
				units[r.Operation] += r.Consumed
			}
			assert.InDelta(w, units["Scan"], p.ReadUnits, 0.01)
			assert.InDelta(w, units["UpdateItem"]+units["TransactWriteItems"], p.WriteUnits, 0.01)
			return err
		}}}).Up(ctx)
		require.NoError(w, err)
	})
}
