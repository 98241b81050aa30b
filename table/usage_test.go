package table_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mortise-go/mortise/internal/inside"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/engines"
	"github.com/mortise-go/mortise/internal/engines/faulty"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

func TestUsage_CountsWhatDynamoDBReports(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		big := make([]byte, 5000) // six write units with its keys, two read units
		scanned := 6.0            // three units in one partition of the table, and the minimum in each of three more
		if e.Name == engines.DynamoDBLocal {
			scanned = 3 // it has one partition
		}
		put := func(sk string) table.Op { return table.Put(f.item("p", sk, "b", big)) }
		for _, c := range []struct {
			name string
			call func() error
			want table.Totals
		}{
			{"put", func() error { return f.Write(t.Context(), put("1")) }, table.Totals{Requests: 1, WriteUnits: 5}},
			{"transaction", func() error {
				return f.Write(t.Context(), put("2"), table.Update(key("p", "3"), table.Attr("v").Set(1)))
			}, table.Totals{Requests: 1, WriteUnits: 12}},
			{"consistent get", func() error { _, err := f.Get(t.Context(), key("p", "1"), true); return err }, table.Totals{Requests: 1, ReadUnits: 2}},
			{"get", func() error { _, err := f.Get(t.Context(), key("p", "1"), false); return err }, table.Totals{Requests: 1, ReadUnits: 1}},
			{"query", func() error { _, err := f.QueryPage(t.Context(), table.Query{PK: "p"}); return err }, table.Totals{Requests: 1, ReadUnits: 1.5}},
			{"scan", func() error { _, err := f.ScanPage(t.Context(), table.Scan{Consistent: true}); return err }, table.Totals{Requests: 1, ReadUnits: scanned}},
			{"batch get", func() error {
				_, err := f.BatchGet(t.Context(), []keys.Key{key("p", "1"), key("p", "2"), key("p", "1")}, true)
				return err
			}, table.Totals{Requests: 1, ReadUnits: 4}},
			{"batch write", func() error { return f.BatchWrite(t.Context(), []table.Op{put("4"), put("5")}) }, table.Totals{Requests: 1, WriteUnits: 10}},
			{"failed condition", func() error {
				err := f.Write(t.Context(), put("1").If(table.Attr("b").NotExists()))
				if assert.ErrorIs(t, err, table.ErrCondition) {
					return nil
				}
				return err
			}, table.Totals{Requests: 1}},
			{"repeated", func() error {
				f.faults.Script(faulty.Throttle(), faulty.DropRequest)
				return f.Write(t.Context(), table.Delete(key("p", "none")))
			}, table.Totals{Requests: 3, Retries: 2, WriteUnits: 1}},
			{"refused here", func() error {
				if assert.ErrorIs(t, f.Write(t.Context()), table.ErrInvalid) {
					return nil
				}
				return nil
			}, table.Totals{}},
			{"schema", func() error { _, err := f.Plan(t.Context()); return err }, table.Totals{Requests: 1}},
		} {
			before := f.usage.Totals()
			require.NoError(t, c.call(), c.name)
			after := f.usage.Totals()
			got := table.Totals{
				Requests: after.Requests - before.Requests, Retries: after.Retries - before.Retries,
				ReadUnits: after.ReadUnits - before.ReadUnits, WriteUnits: after.WriteUnits - before.WriteUnits,
			}
			if e.InProcess() == nil && got.Retries > c.want.Retries {
				// A connection that broke by itself is a request more, rightly counted.
				got.Requests -= got.Retries - c.want.Retries
				got.Retries = c.want.Retries
			}
			assert.Equal(t, c.want, got, c.name)
		}
	})
}

func TestUsage_OfAContextIsItsOwnAndThatOfThoseAbove(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		before := f.usage.Totals()
		outer, all := table.WithUsage(t.Context())
		inner, some := table.WithUsage(outer)
		other, none := table.WithUsage(outer)
		_ = other
		var group sync.WaitGroup
		for range 8 {
			group.Go(func() {
				assert.NoError(t, f.Write(inner, table.Delete(key("p", "s"))))
				assert.NoError(t, f.Write(outer, table.Delete(key("p", "s"))))
			})
		}
		group.Wait()
		require.NoError(t, f.Write(t.Context(), table.Delete(key("p", "s"))))
		assert.Equal(t, table.Totals{Requests: 8, WriteUnits: 8}, some.Totals())
		assert.Equal(t, table.Totals{Requests: 16, WriteUnits: 16}, all.Totals())
		assert.Zero(t, none.Totals())
		assert.Equal(t, before.Requests+17, f.usage.Totals().Requests)
	})
}

func TestServerTime_IsSeenInEveryAnswer(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		name := e.TableName(t)
		offset := time.Hour // of a clock that is wrong
		s := testSchema(name)
		fresh, err := table.Open(e.Client(), s, table.WithClock(func() time.Time { return time.Now().Add(offset) }))
		require.NoError(t, err)
		_, seen := fresh.Inside(inside.Key{}).LastServerTime()
		assert.False(t, seen, "nothing was asked yet")
		begun := time.Now()
		require.NoError(t, fresh.Ensure(t.Context()))

		check := func(what string, since time.Time) {
			at, seen := fresh.Inside(inside.Key{}).LastServerTime()
			require.True(t, seen, what)
			now := time.Now()
			const apart = 5 * time.Second // clocks of two machines, and the whole seconds of an answer
			assert.WithinRange(t, at.Server, since.Add(-apart), now.Add(apart), what)
			assert.WithinRange(t, at.Local, since.Add(offset), now.Add(offset), what)
			assert.Zero(t, at.Server.Nanosecond(), what)
			assert.GreaterOrEqual(t, at.Trip, time.Duration(0), what)
			assert.LessOrEqual(t, at.Trip, now.Sub(since), what)
		}
		check("ensure", begun)
		tbl, err := table.Open(e.Client(), s, table.WithClock(func() time.Time { return time.Now().Add(offset) }))
		require.NoError(t, err)
		fresh, begun = tbl, time.Now()
		err = tbl.Write(t.Context(), table.Delete(key("p", "s")).If(table.Attr("v").Exists()))
		require.ErrorIs(t, err, table.ErrCondition)
		check("a failed condition", begun)
		tbl, err = table.Open(e.Client(), s, table.WithClock(func() time.Time { return time.Now().Add(offset) }))
		require.NoError(t, err)
		fresh, begun = tbl, time.Now()
		require.ErrorIs(t, tbl.Write(t.Context(), table.Check(key("p", "s"), table.Attr("v").Exists())), table.ErrCondition)
		check("a cancelled transaction", begun)
	})
}

// proxy answers in DynamoDB's place.
type proxy struct{}

func (proxy) Do(r *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: http.StatusBadGateway, Request: r, Body: io.NopCloser(strings.NewReader("<html>")),
		Header: http.Header{"Date": {"Sat, 01 Jan 2050 00:00:00 GMT"}},
	}, nil
}

func TestServerTime_IsToldByDynamoDBAlone(t *testing.T) {
	tbl, err := table.Open(dynamodb.NewFromConfig(config(), func(o *dynamodb.Options) { o.HTTPClient = proxy{} }), table.Schema{Name: "app"}, eager(1))
	require.NoError(t, err)
	require.Error(t, tbl.Write(t.Context(), table.Delete(key("p", "s"))))
	_, seen := tbl.Inside(inside.Key{}).LastServerTime()
	assert.False(t, seen)
}

func TestMetered_CountsItsOwnRequests(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		var outer, inner table.Usage
		a := f.Metered(&outer)
		b := a.Metered(&inner)
		put := func(sk string) table.Op { return table.Put(f.item("p", sk, "b", 1)) }
		before := f.usage.Totals()
		require.NoError(t, f.Write(t.Context(), put("1")))
		require.NoError(t, a.Write(t.Context(), put("2")))
		require.NoError(t, b.Write(t.Context(), put("3")))
		assert.EqualValues(t, 3, f.usage.Totals().Requests-before.Requests, "all of them")
		assert.Equal(t, table.Totals{Requests: 2, WriteUnits: 2}, outer.Totals())
		assert.Equal(t, table.Totals{Requests: 1, WriteUnits: 1}, inner.Totals())
		_, known := b.Inside(inside.Key{}).LastServerTime()
		assert.True(t, known)
	})
}

// asked remembers whether the last update asked for the units that it consumes.
type asked struct {
	*dynamodb.Client
	units types.ReturnConsumedCapacity
}

func (a *asked) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	a.units = in.ReturnConsumedCapacity
	return a.Client.UpdateItem(ctx, in, opts...)
}

func TestUsage_UnitsAreAskedForWhereTheyAreCounted(t *testing.T) {
	client := &asked{Client: tabletest.New(t).Client()}
	tbl, err := table.Open(client, table.Schema{Name: "app"})
	require.NoError(t, err)
	require.NoError(t, tbl.Ensure(t.Context()))
	counted, _ := table.WithUsage(t.Context())
	for _, c := range []struct {
		name string
		tbl  *table.Table
		ctx  context.Context
		want types.ReturnConsumedCapacity
	}{
		{"by nobody", tbl, t.Context(), ""},
		{"under a context", tbl, counted, types.ReturnConsumedCapacityTotal},
		{"through a table", tbl.Metered(&table.Usage{}), t.Context(), types.ReturnConsumedCapacityTotal},
	} {
		require.NoError(t, c.tbl.Write(c.ctx, table.Update(key("p", "s"), table.Attr("v").Set(1))))
		assert.Equal(t, c.want, client.units, c.name)
	}
}
