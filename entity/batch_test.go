package entity_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/entity"
	"github.com/mortise-go/mortise/internal/engines"
	"github.com/mortise-go/mortise/internal/engines/faulty"
	"github.com/mortise-go/mortise/table"
)

func TestBatchGet_HasTheOrderOfItsInput(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		orders := define(t, f.Table, orderSpec())
		ctx := t.Context()
		key := func(i int) Order { return Order{Tenant: "acme", ID: fmt.Sprint(i)} }
		var ops []table.Op
		for i := 0; i < 240; i += 2 {
			o := key(i)
			o.Total = int64(i)
			if i == 10 {
				o.Expires = f.clock.now().Add(-time.Hour)
			}
			ops = append(ops, table.Put(orders.PutOp(o).Item()))
		}
		require.NoError(t, f.raw.BatchWrite(ctx, ops))
		var list []Order
		for i := 239; i >= 0; i-- {
			list = append(list, key(i))
		}
		list = append(list, key(238), key(0), key(1))
		f.faults.Script()
		got, err := orders.BatchGet(ctx, list, entity.Consistent())
		require.NoError(t, err)
		assert.Len(t, f.faults.Sent(), 3, "240 keys")
		require.Len(t, got, len(list))
		for i, o := range list {
			var n int64
			_, err := fmt.Sscan(o.ID, &n)
			require.NoError(t, err)
			if n%2 == 1 || n == 10 {
				assert.Nil(t, got[i], o.ID)
				continue
			}
			require.NotNil(t, got[i], o.ID)
			assert.Equal(t, o.ID, got[i].ID)
			assert.Equal(t, "acme", got[i].Tenant)
			assert.Equal(t, n, got[i].Total)
		}
		require.NotSame(t, got[1], got[240], "duplicates are copies")
		assert.Equal(t, got[1], got[240])
		expired, err := orders.BatchGet(ctx, []Order{key(10)}, entity.WithExpired())
		require.NoError(t, err)
		require.NotNil(t, expired[0])
		none, err := orders.BatchGet(ctx, nil)
		require.NoError(t, err)
		assert.Empty(t, none)

		f.faults.Script()
		_, err = orders.BatchGet(ctx, []Order{key(1), {Tenant: "acme"}})
		require.ErrorIs(t, err, entity.ErrInvalid)
		assert.ErrorContains(t, err, "value 1")
		_, err = orders.BatchGet(ctx, []Order{key(1)}, entity.Limit(1))
		require.ErrorIs(t, err, entity.ErrInvalid)
		assert.Empty(t, f.faults.Sent())
	})
}

func TestBatchGet_ReportsWhatItCouldNotRead(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		orders := define(t, f.Table, orderSpec())
		ctx := t.Context()
		a, b, c := Order{Tenant: "acme", ID: "a"}, Order{Tenant: "acme", ID: "b"}, Order{Tenant: "acme", ID: "c"}
		foreign := orders.PutOp(b).Item()
		foreign["_t"], _ = table.Encode("Calibration")
		broken := orders.PutOp(c).Item()
		broken["total"], _ = table.Encode("cAnArY")
		require.NoError(t, f.Write(ctx, orders.PutOp(a), table.Put(foreign), table.Put(broken)))
		got, err := orders.BatchGet(ctx, []Order{c, a, b})
		var failed *entity.BatchError[Order]
		require.ErrorAs(t, err, &failed)
		require.ErrorIs(t, err, entity.ErrType)
		assert.Equal(t, 3, failed.Of)
		require.Len(t, failed.Failed, 2)
		assert.Equal(t, 0, failed.Failed[0].Index)
		assert.Equal(t, c, failed.Failed[0].Value)
		var decode *entity.DecodeError
		require.ErrorAs(t, failed.Failed[0].Err, &decode)
		assert.Equal(t, orders.Key(c), decode.Key)
		assert.Equal(t, b, failed.Failed[1].Value)
		assert.NotContains(t, err.Error(), "cAnArY")
		assert.Nil(t, got[0])
		require.NotNil(t, got[1])
		assert.Equal(t, "a", got[1].ID)
		assert.Nil(t, got[2])

		// DynamoDB leaves the last two undone, forever.
		key := func(o Order) string {
			k := orders.Key(o)
			return fmt.Sprintf(`{"PK":{"S":%q},"SK":{"S":%q}}`, k.PK, k.SK)
		}
		row := fmt.Sprintf(`{"PK":{"S":%q},"SK":{"S":%q},"_t":{"S":"Order"},"id":{"S":"a"},"_v":{"N":"1"}}`, orders.Key(a).PK, orders.Key(a).SK)
		var script []faulty.Outcome
		for i := range 20 {
			rows := ""
			if i == 0 {
				rows = row
			}
			script = append(script, faulty.Reply(fmt.Sprintf(`{"Responses":{%q:[%s]},"UnprocessedKeys":{%q:{"Keys":[%s,%s]}}}`, f.Name(), rows, f.Name(), key(b), key(c))))
		}
		f.faults.Script(script...)
		got, err = orders.BatchGet(ctx, []Order{b, a, c, b})
		var undone *table.UnprocessedError
		require.ErrorAs(t, err, &undone)
		require.ErrorIs(t, err, table.ErrThrottled)
		assert.Len(t, undone.Keys, 2)
		require.ErrorAs(t, err, &failed)
		var unread []int
		for _, x := range failed.Failed {
			unread = append(unread, x.Index)
		}
		assert.Equal(t, []int{0, 2, 3}, unread)
		require.NotNil(t, got[1])
		assert.Equal(t, "a", got[1].ID)

		ended, cancel := context.WithCancel(ctx)
		cancel()
		got, err = orders.BatchGet(ended, []Order{a, b})
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorAs(t, err, &failed)
		assert.Len(t, failed.Failed, 2)
		assert.Equal(t, []*Order{nil, nil}, got)
	})
}

func TestPutAll_KeepsThePromisesOfPut(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		f := newFixture(t, e)
		orders := define(t, f.Table, orderSpec())
		ctx := t.Context()
		var list []Order
		for i := range 30 {
			list = append(list, Order{Tenant: "acme", ID: fmt.Sprint(i), Status: "open"})
		}
		written, err := orders.PutAll(ctx, list)
		require.NoError(t, err)
		for i, o := range written {
			assert.Equal(t, list[i].ID, o.ID)
			assert.Equal(t, int64(1), o.Version)
			assert.False(t, o.Created.IsZero())
		}
		_, err = orders.Update(ctx, written[7], entity.Set("status", "paid"))
		require.NoError(t, err)
		foreign := orders.PutOp(Order{Tenant: "acme", ID: "x"}).Item()
		foreign["_t"], _ = table.Encode("Calibration")
		require.NoError(t, f.Write(ctx, table.Put(foreign)))
		again := append(append([]Order{}, written...), Order{Tenant: "acme", ID: "x"})
		second, err := orders.PutAll(ctx, again)
		var failed *entity.BatchError[Order]
		require.ErrorAs(t, err, &failed)
		require.Len(t, failed.Failed, 2)
		assert.Equal(t, 7, failed.Failed[0].Index)
		require.ErrorIs(t, failed.Failed[0].Err, entity.ErrStale)
		assert.Equal(t, written[7], failed.Failed[0].Value)
		require.ErrorIs(t, failed.Failed[1].Err, entity.ErrType)
		assert.Equal(t, int64(2), second[8].Version)
		assert.Equal(t, written[7], second[7], "as given")
		got, err := orders.Get(ctx, written[7], entity.Consistent())
		require.NoError(t, err)
		assert.Equal(t, "paid", got.Status)

		f.faults.Script()
		_, err = orders.PutAll(ctx, []Order{list[0], list[1], list[0]})
		require.ErrorIs(t, err, entity.ErrInvalid)
		assert.ErrorContains(t, err, "values 0 and 2")
		_, err = orders.PutAll(ctx, []Order{{Tenant: "acme"}})
		require.ErrorIs(t, err, entity.ErrInvalid)
		none, err := orders.PutAll(ctx, nil)
		require.NoError(t, err)
		assert.Empty(t, none)
		ended, cancel := context.WithCancel(ctx)
		cancel()
		_, err = orders.PutAll(ended, list[:3])
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorAs(t, err, &failed)
		assert.Len(t, failed.Failed, 3)
		assert.Empty(t, f.faults.Sent())
	})
}
