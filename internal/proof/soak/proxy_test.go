package soak

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/mortise-go/mortise/internal/inside"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// Each fault does what its name says.
func TestProxy_FaultsDoWhatTheySay(t *testing.T) {
	key := keys.NewKey("a", "b")
	one := table.Update(key, table.Attr("n").Set(1))
	write := func(ctx context.Context, tbl *table.Table) error { return tbl.Write(ctx, one) }
	transact := func(ctx context.Context, tbl *table.Table) error {
		return tbl.Write(ctx, one, table.Update(keys.NewKey("a", "c"), table.Attr("n").Set(1)))
	}
	get := func(ctx context.Context, tbl *table.Table) error {
		_, err := tbl.Get(ctx, key, true)
		return err
	}
	// A sender without an answer gives up soon after its request has arrived. A late request continues later.
	const soon, later = 200 * time.Millisecond, 600 * time.Millisecond
	for name, tc := range map[string]struct {
		decision decision
		network  network
		request  func(context.Context, *table.Table) error
		arrived  int
		err      error // nil for none; context.Canceled if there is no answer
	}{
		"pass":                     {decision{}, connected, write, 1, nil},
		"dropped":                  {decision{fault: dropRequest}, connected, write, 0, context.Canceled},
		"answer dropped":           {decision{fault: dropAnswer}, connected, write, 1, context.Canceled},
		"cut before":               {decision{fault: cutBefore}, connected, write, 0, table.ErrUnreachable},
		"cut after, reset":         {decision{fault: cutAfter, pick: 0}, connected, write, 1, table.ErrUnreachable},
		"late":                     {decision{fault: lateRequest, after: later}, connected, write, 1, context.Canceled},
		"answered late":            {decision{fault: lateAnswer, after: later}, connected, write, 1, context.Canceled},
		"duplicate":                {decision{fault: duplicate, after: later}, connected, write, 2, nil},
		"throttle":                 {decision{fault: throttle}, connected, write, 0, table.ErrThrottled},
		"conflict of a write":      {decision{fault: conflict}, connected, write, 0, table.ErrConflict},
		"conflict, first item":     {decision{fault: conflict, pick: 0}, connected, transact, 0, table.ErrConflict},
		"conflict, last item":      {decision{fault: conflict, pick: 1}, connected, transact, 0, table.ErrConflict},
		"reads do not conflict":    {decision{fault: conflict}, connected, get, 1, table.ErrNotFound},
		"cut off":                  {decision{pick: 0.9}, cutOff, write, 0, context.Canceled},
		"cut off and told":         {decision{pick: 0.1}, cutOff, write, 0, table.ErrUnreachable},
		"answers are cut off":      {decision{pick: 0.9}, mute, write, 1, context.Canceled},
		"answers are cut, told so": {decision{pick: 0.1}, mute, write, 1, table.ErrUnreachable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, giveUp := context.WithCancel(table.WithoutRetry(t.Context()))
			defer giveUp()
			p := newProxiedBy(t, func() decision {
				if errors.Is(tc.err, context.Canceled) {
					time.AfterFunc(soon, giveUp)
				}
				return tc.decision
			})
			p.proxy.network.Store(int32(tc.network))
			begun := time.Now()
			err := tc.request(ctx, p.table)
			late := tc.decision.fault == lateRequest || tc.decision.fault == lateAnswer
			switch {
			case tc.err == nil:
				require.NoError(t, err)
			case late && err == nil: // this process was too slow to give up before
				assert.GreaterOrEqual(t, time.Since(begun), later)
			default:
				require.ErrorIs(t, err, tc.err)
			}
			p.close() // late requests have arrived then
			assert.Len(t, p.engine.Requests(), tc.arrived)
		})
	}
}

func TestProxy_ServerErrorsComeBeforeOrAfter(t *testing.T) {
	for f, arrived := range map[fault]int{errorBefore: 0, errorAfter: 1} {
		p := newProxied(t, decision{fault: f})
		err := p.table.Write(table.WithoutRetry(t.Context()), table.Update(keys.NewKey("a", "b"), table.Attr("n").Set(1)))
		assert.True(t, table.Retryable(err) && table.RequestMayBeApplied(err), "%v", err)
		p.close()
		assert.Len(t, p.engine.Requests(), arrived)
		assert.EqualValues(t, 1, p.proxy.met[f].Load())
	}
}

// An answer that is cut anywhere is an error.
func TestProxy_CutsAnswers(t *testing.T) {
	for _, pick := range []float64{0, 0.1, 0.49, 0.6, 0.9, 0.999} {
		p := newProxied(t, decision{fault: cutAfter, pick: pick})
		require.Error(t, p.table.Write(table.WithoutRetry(t.Context()), table.Update(keys.NewKey("a", "b"), table.Attr("n").Set(1))))
		p.close()
		assert.Len(t, p.engine.Requests(), 1)
	}
}

func TestProxy_SkewsDate(t *testing.T) {
	const off = -4 * time.Second
	p := newProxied(t, decision{skew: off})
	before := time.Now().Truncate(time.Second) // as the header is
	require.NoError(t, p.table.Write(t.Context(), table.Update(keys.NewKey("a", "b"), table.Attr("n").Set(1))))
	seen, ok := p.table.Inside(inside.Key{}).LastServerTime()
	require.True(t, ok)
	assert.WithinRange(t, seen.Server, before.Add(off), time.Now().Add(off))
	assert.EqualValues(t, 1, p.proxy.met[skew].Load())
	p.close()
}

// Requests that hang in a closed proxy are given up.
func TestProxy_CloseIsBounded(t *testing.T) {
	p := newProxied(t, decision{fault: duplicate, after: time.Hour})
	require.NoError(t, p.table.Write(t.Context(), table.Update(keys.NewKey("a", "b"), table.Attr("n").Set(1))))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, p.proxy.close(ctx), context.Canceled)
}

func TestPlan_Repeats(t *testing.T) {
	const n = 20000
	a, b, other := newPlan(1, 2, 0.1), newPlan(1, 2, 0.1), newPlan(1, 3, 0.1)
	met, skewed, same := map[fault]int{}, 0, 0
	for range n {
		d := a.next()
		require.Equal(t, d, b.next())
		if d == other.next() {
			same++
		}
		met[d.fault]++
		if d.skew != 0 {
			skewed++
		}
		if d.fault == lateRequest || d.fault == lateAnswer {
			assert.True(t, d.after > requestTimeout && d.after <= maxLate, d.after)
		}
	}
	assert.Zero(t, same, "every process has its own")
	assert.InDelta(t, 0.9*n, met[pass], 0.02*n)
	for f := pass + 1; f < faults; f++ {
		if f.weight() > 0 {
			assert.Greater(t, met[f], n/400, f)
		} else {
			assert.Zero(t, met[f], f)
		}
	}
	assert.InDelta(t, n/skewOneStretch, skewed, 0.15*n)
	for none, range100 := newPlan(1, 2, -1), 100; range100 > 0; range100-- {
		assert.Equal(t, decision{fault: pass, skew: 0}, withoutDraws(none.next()))
	}
}

// withoutDraws leaves out values that do not matter for the fault.
func withoutDraws(d decision) decision { return decision{fault: d.fault, skew: d.skew} }

// proxied is a table behind a proxy.
type proxied struct {
	*testing.T
	engine *tabletest.Engine
	proxy  *proxy
	table  *table.Table
}

// newProxied makes the same decision for all requests, except for those that create the table.
func newProxied(t *testing.T, d decision) *proxied {
	t.Helper()
	return newProxiedBy(t, func() decision { return d })
}

func newProxiedBy(t *testing.T, next func() decision) *proxied {
	t.Helper()
	p := &proxied{T: t, engine: tabletest.New(t)}
	endpoint, err := p.engine.Listen("127.0.0.1:0")
	require.NoError(t, err)
	direct, err := table.Open(connect(endpoint), table.Schema{Name: "app"})
	require.NoError(t, err)
	require.NoError(t, direct.Ensure(t.Context()))
	p.engine.ResetRequests()
	p.proxy, err = newProxy(t.Context(), endpoint, next)
	require.NoError(t, err)
	p.table, err = table.Open(connect(p.proxy.URL), table.Schema{Name: "app"})
	require.NoError(t, err)
	return p
}

func (p *proxied) close() {
	p.Helper()
	require.NoError(p, p.proxy.close(p.Context()))
}
