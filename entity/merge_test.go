package entity_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mortise-go/mortise/entity"
	"github.com/mortise-go/mortise/internal/engines"
	"github.com/mortise-go/mortise/internal/engines/faulty"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
)

// Signal is kept under a partition key of five shards, also in its index.
type Signal struct {
	Day     string    `dynamo:"day"`
	Source  string    `dynamo:"source"`
	Minute  int       `dynamo:"minute"`
	Level   int       `dynamo:"level"`
	Expires time.Time `dynamo:"expires,omitempty"`
}

var signalSpec = entity.Spec[Signal]{
	Type: "Signal", PK: "DAY#{day}#{source:shard5}", SK: "{minute:uint2}#{source}", TTL: "expires",
	Indexes: []entity.Index[Signal]{
		{Name: "gsi1", PK: "LEVEL#{level:uint1}#{source:shard3}", SK: "{minute:uint2}"},
		{Name: "gsi3", PK: "ANY#{day}#{source:shard4}"},
	},
}

// A page that goes down can end at the lower bound of one shard, while rows of another shard follow.
func TestMerge_APageGoesOnFromTheLowerBound(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		signals := define(t, newFixture(t, e).Table, entity.Spec[Signal]{Type: "Signal", PK: "DAY#{day}#{source:shard5}", SK: "{minute:uint2}"})
		var want []string
		for _, source := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
			_, err := signals.Create(t.Context(), Signal{Day: "mon", Source: source, Minute: 7})
			if errors.Is(err, entity.ErrExists) { // in the shard of an earlier one
				continue
			}
			require.NoError(t, err)
			want = append(want, source)
		}
		require.Greater(t, len(want), 2, "shards in use")
		for name, opts := range map[string][]entity.ReadOption{
			"from":           {entity.From("minute", 7)},
			"from and until": {entity.From("minute", 7), entity.Until("minute", 9)},
		} {
			var got []string
			var next entity.Cursor
			for {
				page, err := signals.Page(t.Context(), keys.Values{"day": "mon"}, append(opts, entity.Descending(), entity.Limit(1), entity.After(next))...)
				require.NoError(t, err, name)
				for _, s := range page.Items {
					got = append(got, s.Source)
				}
				if next = page.Next; next == "" {
					break
				}
			}
			assert.ElementsMatch(t, want, got, name)
		}
	})
}

func TestMerge_AShardedQueryIsInTheOrderOfSortKeys(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		signals := define(t, f.Table, signalSpec)
		var list []Signal
		var ops []table.Op
		partitions := map[string]bool{}
		for i := range 60 {
			s := Signal{Day: "mon", Source: fmt.Sprintf("s%d", i%20), Minute: i * 7 % 6, Level: i % 3}
			if i%20 > 11 {
				s.Source = "s0" // one shard is hot
			}
			if i%9 == 0 {
				s.Expires = f.clock.now().Add(-time.Minute).UTC().Truncate(time.Second)
			}
			if slices.ContainsFunc(list, func(o Signal) bool { return o.Source == s.Source && o.Minute == s.Minute }) {
				continue
			}
			list = append(list, s)
			op := signals.PutOp(s)
			partitions[text(op.Item(), "PK")] = true
			ops = append(ops, table.Put(op.Item()))
		}
		require.Greater(t, len(partitions), 2, "shards in use")
		require.NoError(t, f.raw.BatchWrite(t.Context(), ops))
		rapid.Check(t, func(rt *rapid.T) {
			index := rapid.SampledFrom([]string{"", "gsi1", "gsi3"}).Draw(rt, "index")
			level := rapid.IntRange(0, 2).Draw(rt, "level")
			down, expired := rapid.Bool().Draw(rt, "descending"), rapid.Bool().Draw(rt, "expired")
			from, until := rapid.IntRange(0, 3).Draw(rt, "from"), rapid.IntRange(3, 6).Draw(rt, "until")
			match := keys.Values{"day": "mon"}
			opts := []entity.ReadOption{}
			in := func(s Signal) bool { return index == "gsi3" || s.Minute >= from && s.Minute < until }
			switch index {
			case "":
				opts = append(opts, entity.From("minute", from), entity.Until("minute", until))
			case "gsi1":
				match = keys.Values{"level": level}
				opts = append(opts, entity.On(index), entity.From("minute", from), entity.Until("minute", until))
				before := in
				in = func(s Signal) bool { return s.Level == level && before(s) }
			default:
				opts = append(opts, entity.On(index))
			}
			if down {
				opts = append(opts, entity.Descending())
			}
			if expired {
				opts = append(opts, entity.WithExpired())
			}
			if odd := rapid.Bool().Draw(rt, "filter"); odd {
				opts = append(opts, entity.Filter(table.Attr("source").NotEqual("s1")))
				before := in
				in = func(s Signal) bool { return s.Source != "s1" && before(s) }
			}
			want := map[Signal]bool{}
			for _, s := range list {
				if in(s) && (expired || s.Expires.IsZero()) {
					want[s] = true
				}
			}
			all := collect(rt, signals.Query(t.Context(), match, opts...))
			got := map[Signal]bool{}
			for _, s := range all {
				got[s] = true
			}
			require.Equal(rt, want, got)
			require.Len(rt, all, len(want))
			if index != "gsi3" {
				require.True(rt, slices.IsSortedFunc(all, func(a, b Signal) int {
					if down {
						a, b = b, a
					}
					return cmp.Compare(a.Minute, b.Minute)
				}))
			}
			limit := rapid.IntRange(1, 7).Draw(rt, "limit")
			if size := rapid.IntRange(0, 3).Draw(rt, "page size"); size > 0 {
				opts = append(opts, entity.PageSize(size))
			}
			first := collect(rt, signals.Query(t.Context(), match, append(opts, entity.Limit(limit))...))
			require.Equal(rt, append([]Signal{}, all[:min(limit, len(all))]...), append([]Signal{}, first...))
			var paged []Signal
			for cursor, pages := entity.Cursor(""), 0; ; pages++ {
				require.LessOrEqual(rt, pages, len(all)/limit+1)
				page, err := signals.Page(t.Context(), match, append(opts, entity.Limit(limit), entity.After(cursor))...)
				require.NoError(rt, err)
				paged = append(paged, page.Items...)
				if cursor = page.Next; cursor == "" {
					break
				}
			}
			require.Equal(rt, all, paged)
		})
	})
}

func TestMerge_RequestsOfAShardedQuery(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		signals := define(t, f.Table, signalSpec)
		ctx := t.Context()
		for i := range 10 {
			_, err := signals.Create(ctx, Signal{Day: "mon", Source: fmt.Sprint(i), Minute: i})
			require.NoError(t, err)
		}
		f.faults.Script()
		assert.Len(t, collect(t, signals.Query(ctx, keys.Values{"day": "mon"})), 10)
		assert.Len(t, f.faults.Sent(), 5, "one request per shard")
		f.faults.Script()
		assert.Len(t, collect(t, signals.Query(ctx, keys.Values{"day": "mon", "source": "3", "minute": 3})), 1)
		assert.Len(t, f.faults.Sent(), 1, "the shard is known")

		f.faults.Script()
		for _, err := range signals.Query(ctx, keys.Values{}) {
			require.ErrorIs(t, err, entity.ErrInvalid)
			assert.ErrorContains(t, err, `"day"`)
		}
		for _, err := range signals.Query(ctx, keys.Values{"day": "mon", "source": "3"}) {
			require.ErrorIs(t, err, entity.ErrInvalid, "the shard of a source has rows of others too")
		}
		for _, c := range []struct {
			match keys.Values
			index string
		}{
			{keys.Values{"level": 0, "source": "3"}, "gsi1"},
			{keys.Values{"level": 0, "source": "3", "minute": 3}, "gsi1"},
			{keys.Values{"day": "mon", "source": "3"}, "gsi3"},
		} {
			n, err := lastOf(signals.Query(ctx, c.match, entity.On(c.index)))
			require.ErrorIs(t, err, entity.ErrInvalid, "no key of the index tells the sources apart")
			require.ErrorContains(t, err, `"Source"`)
			assert.Zero(t, n)
		}
		assert.Empty(t, f.faults.Sent())

		f.faults.Script(faulty.Pass, faulty.Refuse(400, "AccessDeniedException"))
		n := 0
		for _, err := range signals.Query(ctx, keys.Values{"day": "mon"}) {
			require.ErrorIs(t, err, table.ErrDenied)
			n++
		}
		assert.Equal(t, 1, n, "a shard that cannot be read is not left out")
	})
}

func TestMerge_RefusesANilContext(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		signals := define(t, f.Table, signalSpec)
		f.faults.Script()
		var none context.Context
		_, err := signals.Page(none, keys.Values{"day": "mon"})
		require.ErrorIs(t, err, entity.ErrInvalid)
		assert.ErrorContains(t, err, "nil context")
		assert.Empty(t, f.faults.Sent())
	})
}

func TestMerge_AShardedQueryEndsWithItsContext(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		signals := define(t, f.Table, signalSpec)
		ctx, cancel := contextWithCause(t)
		why := errors.New("shutting down")
		f.faults.Before(func(string) { cancel(why) })
		_, err := signals.Page(ctx, keys.Values{"day": "mon"})
		require.ErrorIs(t, err, why)
	})
}
