package entity_test

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/mortise-go/mortise/entity"
	"github.com/mortise-go/mortise/internal/engines"
	"github.com/mortise-go/mortise/internal/engines/faulty"
	"github.com/mortise-go/mortise/table"
)

func contextWithCause(t *testing.T) (context.Context, context.CancelCauseFunc) {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	t.Cleanup(func() { cancel(nil) })
	return ctx, cancel
}

func sortedVisits(list []Visit) []Visit {
	list = slices.Clone(list)
	slices.SortFunc(list, func(a, b Visit) int {
		return cmp.Or(cmp.Compare(a.Site, b.Site), cmp.Compare(a.Day, b.Day), cmp.Compare(a.Guest, b.Guest))
	})
	return list
}

func TestScan_FindsTheRowsOfItsType(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		entities, all := visits(t, f)
		// A row without a type attribute is the entity's by its key.
		bare := Visit{Site: "bare", Guest: "g", Day: 1}
		item := entities.PutOp(bare).Item()
		delete(item, "_t")
		require.NoError(t, f.Write(t.Context(), table.Put(item)))
		stray := f.KeyItem(entities.Key(bare))
		stray["SK"], _ = table.Encode("SOMETHING")
		require.NoError(t, f.Write(t.Context(), table.Put(stray)))
		all = append(all, bare)
		var live []Visit
		for _, v := range all {
			if v.Expires.IsZero() || v.Expires.After(f.clock.now()) {
				live = append(live, v)
			}
		}
		require.Greater(t, len(all), len(live))
		rank := table.Attr("rank")
		for name, c := range map[string]struct {
			opts []entity.ReadOption
			want []Visit
		}{
			"plain":        {nil, live},
			"consistent":   {[]entity.ReadOption{entity.Consistent(), entity.PageSize(7)}, live},
			"expired":      {[]entity.ReadOption{entity.WithExpired()}, all},
			"an index":     {[]entity.ReadOption{entity.On("gsi1")}, slices.DeleteFunc(slices.Clone(live), func(v Visit) bool { return v.Kind == "" })},
			"one segment":  {[]entity.ReadOption{entity.Segments(1)}, live},
			"four":         {[]entity.ReadOption{entity.Segments(4), entity.PageSize(5)}, live},
			"many expired": {[]entity.ReadOption{entity.Segments(20), entity.WithExpired()}, all},
			"filter": {
				[]entity.ReadOption{entity.Segments(3), entity.Filter(rank.Greater(1))},
				slices.DeleteFunc(slices.Clone(live), func(v Visit) bool { return v.Rank <= 1 }),
			},
		} {
			t.Run(name, func(t *testing.T) {
				f.faults.Script()
				assert.Equal(t, sortedVisits(c.want), sortedVisits(collect(t, entities.Scan(t.Context(), c.opts...))))
				assert.Equal(t, []string{"Scan"}, slices.Compact(f.faults.Sent()), "and never DescribeTable")
			})
		}
		assert.Len(t, collect(t, entities.Scan(t.Context(), entity.Limit(5))), 5)
		assert.Len(t, collect(t, entities.Scan(t.Context(), entity.Limit(5), entity.Segments(4), entity.PageSize(1))), 5)

		f.faults.Script()
		for name, opts := range map[string][]entity.ReadOption{
			"Descending": {entity.Descending()}, "From": {entity.From("day", 1)}, "Until": {entity.Until("day", 1)},
			"After": {entity.After("x")}, "Segments(0)": {entity.Segments(0)}, "Segments(257)": {entity.Segments(257)},
			"index": {entity.On("gsi2")}, "nil": {nil}, "Consistent": {entity.On("gsi1"), entity.Consistent()},
		} {
			n := 0
			for _, err := range entities.Scan(t.Context(), opts...) {
				n++
				require.ErrorIs(t, err, entity.ErrInvalid, name)
				assert.ErrorContains(t, err, name)
			}
			assert.Equal(t, 1, n, name)
		}
		assert.Empty(t, f.faults.Sent())
	})
}

// underway counts requests, all and those that have not ended.
type underway struct {
	next     aws.HTTPClient
	all, now atomic.Int64
}

func (u *underway) options(o *dynamodb.Options) {
	u.next = o.HTTPClient
	o.HTTPClient = u
}

func (u *underway) Do(r *http.Request) (*http.Response, error) {
	u.all.Add(1)
	u.now.Add(1)
	defer u.now.Add(-1)
	return u.next.Do(r)
}

func TestScan_LeavesNothingRunning(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		visits(t, f)
		var under underway
		tbl, err := table.Open(e.Client(f.faults.Options, under.options), f.Schema(), eager(0))
		require.NoError(t, err)
		entities := define(t, tbl, visitSpec())
		define(t, tbl, entity.Spec[Plain]{Type: "Visitor", PK: "VISITOR#{id}", SK: "VISITOR"})
		collect(t, entities.Scan(t.Context(), entity.Segments(8))) // opens the connections
		require.Positive(t, under.all.Load())
		before := goleak.IgnoreCurrent()
		check := func(name string) {
			t.Helper()
			assert.Zero(t, under.now.Load(), "requests on their way: %s", name)
			assert.NoError(t, goleak.Find(before, goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"),
				goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop")), name)
		}
		opts := []entity.ReadOption{entity.Segments(8), entity.PageSize(1)}
		for _, err := range entities.Scan(t.Context(), opts...) {
			require.NoError(t, err)
			break
		}
		check("the consumer stopped")
		assert.Panics(t, func() {
			for _, err := range entities.Scan(t.Context(), opts...) {
				require.NoError(t, err)
				panic("consumer")
			}
		})
		check("the consumer panicked")

		ctx, cancel := contextWithCause(t)
		why := errors.New("shutting down")
		var last error
		for _, err := range entities.Scan(ctx, opts...) {
			last = err
			cancel(why)
		}
		require.ErrorIs(t, last, why)
		check("the context ended")

		f.faults.Script(faulty.Pass, faulty.Refuse(400, "AccessDeniedException"))
		last = nil
		for _, err := range entities.Scan(t.Context(), opts...) {
			last = err
		}
		require.ErrorIs(t, last, table.ErrDenied)
		check("a segment failed")
	})
}

func TestScan_ReportsARowThatDoesNotDecode(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		entities, _ := visits(t, f)
		broken := entities.PutOp(Visit{Site: "z", Guest: "g", Day: 1})
		broken.Item()["rank"], _ = table.Encode("cAnArY")
		require.NoError(t, f.Write(t.Context(), broken))
		for _, n := range []int{1, 4} {
			var decode *entity.DecodeError
			failed := 0
			for _, err := range entities.Scan(t.Context(), entity.Segments(n)) {
				if err != nil {
					require.ErrorAs(t, err, &decode)
					failed++
				}
			}
			assert.Equal(t, 1, failed)
			assert.Equal(t, entities.Key(Visit{Site: "z", Guest: "g", Day: 1}), decode.Key)
		}
	})
}
