package lock_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/engines"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
)

// Helpers whose files others port. The lead removes what is there twice.

func TestMain(m *testing.M) {
	debug.SetGCPercent(400) // worlds are small, and made by the thousand
	code := engines.Main(m)
	if testing.Verbose() {
		fmt.Println("checked against policy.json:", checked)
	}
	os.Exit(code)
}

// place is a table on one of the engines.
type place struct {
	*testing.T
	table  *table.Table // the test's own hand
	client *lock.Client
	locks  func() *table.Table // opens the table as a process with locks does
}

// contract runs f on every engine.
func contract(t *testing.T, scheme keys.Scheme, f func(ctx context.Context, p *place)) {
	t.Helper()
	contractWith(t, table.Schema{Keys: scheme}, lock.Config{Owner: "test"}, f)
}

// contractWith runs f on every engine, in a table of that schema.
func contractWith(t *testing.T, schema table.Schema, config lock.Config, f func(ctx context.Context, p *place)) {
	t.Helper()
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		schema := schema
		schema.Name = e.TableName(t)
		tbl, err := table.Open(e.Client(), schema)
		require.NoError(t, err)
		require.NoError(t, tbl.Ensure(t.Context()))
		p := &place{T: t, table: tbl}
		p.locks = func() *table.Table {
			var guard []func(*dynamodb.Options)
			if in := e.InProcess(); in != nil {
				to := newGuardian(t, tbl.Name(), tbl.Scheme()).over(in.HTTPClient())
				guard = append(guard, func(o *dynamodb.Options) { o.HTTPClient = to })
			}
			opened, err := table.Open(e.Client(guard...), tbl.Schema())
			require.NoError(t, err)
			_, err = opened.Plan(ownHand(t.Context())) // it has talked to DynamoDB: knows the time
			require.NoError(t, err)
			return opened
		}
		p.client = p.open(config)
		f(t.Context(), p)
	})
}

func (p *place) open(config lock.Config) *lock.Client {
	p.Helper()
	config.Logger = slog.New(slog.DiscardHandler)
	c, err := lock.New(p.locks(), config)
	require.NoError(p, err)
	p.Cleanup(func() { assert.NoError(p, c.Close(context.Background())) })
	return c
}

// raw is the lock's row as it stands in the table.
func (p *place) raw(l *lock.Lease) table.Item {
	p.Helper()
	item, err := p.table.Get(p.Context(), l.Key(), true)
	require.NoError(p, err)
	return item
}

// totals runs f and says what it cost.
func totals(ctx context.Context, f func(ctx context.Context)) table.Totals {
	ctx, usage := table.WithUsage(ctx)
	f(ctx)
	return usage.Totals()
}

// forbidding is the way of a process to the table that must not do one operation.
type forbidding struct {
	to        aws.HTTPClient
	operation string
	times     atomic.Int64
}

func (f *forbidding) Do(r *http.Request) (*http.Response, error) {
	if !strings.HasSuffix(r.Header.Get("X-Amz-Target"), "."+f.operation) {
		return f.to.Do(r)
	}
	f.times.Add(1)
	text := `{"__type":"com.amazon.coral.service#AccessDeniedException","Message":"no identity-based policy allows it"}`
	return &http.Response{
		StatusCode: http.StatusBadRequest, Header: http.Header{"X-Amzn-Requestid": {"forbidden"}},
		Body: io.NopCloser(strings.NewReader(text)), ContentLength: int64(len(text)), Request: r,
	}, nil
}
