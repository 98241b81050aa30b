package lockrow_test

import (
	"net/http"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/testkit"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock/internal/lockrow"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// weighed keeps the size of the last request's body.
type weighed struct {
	to   aws.HTTPClient
	body int64
}

func (w *weighed) Do(r *http.Request) (*http.Response, error) {
	w.body = r.ContentLength
	return w.to.Do(r)
}

// P15: no request that acquires or releases without a payload has more than 1,000 bytes of body.
func TestRequests_HaveAThousandBytesAtMost(t *testing.T) {
	engine := tabletest.New(t)
	wire := &weighed{to: engine.HTTPClient()}
	tbl, err := table.Open(engine.Client(func(o *dynamodb.Options) { o.HTTPClient = wire }), table.Schema{Name: "orders-production"})
	require.NoError(t, err)
	require.NoError(t, tbl.Ensure(t.Context()))
	rows := lockrow.NewRows(names, nil, tbl)
	key := keys.NewKey("LOCK#nightly-settlement-report", "LOCK#nightly-settlement-report")
	mine := func(n int64) lockrow.Ticket {
		return lockrow.SessionTicket("ABCDEFGHIJKLMNOPQRSTUVWXYZ", n, at, "ip-10-11-12-13.eu-central-1.compute.internal/123456")
	}
	h := func(n, fence int64) lockrow.Holding {
		return lockrow.Holding{ID: mine(n).ID, Fence: 1_764_000_000_000 + fence}
	}
	most := int64(0)
	for _, op := range []table.Op{
		rows.Enter(key, lockrow.Entry{Ticket: mine(100_001), Seed: 1_764_000_000_000, TTL: 4_000_000_000}),
		rows.Pass(key, h(100_001, 0), mine(100_002), change, lockrow.Data{}),
		rows.Release(key, h(100_002, 1), lockrow.Exit{}, change),
		rows.Enter(key, lockrow.Entry{Ticket: mine(100_003), Seed: 1_764_000_000_000, TTL: 4_000_000_000, IfFree: true}),
	} {
		_, err := tbl.Apply(t.Context(), op, table.ReturnNew)
		require.NoError(t, err)
		most = max(most, wire.body)
	}
	testkit.Check(t, "P15", testkit.AtMost(float64(most), "bytes in the body of the largest request", 1000))
}
