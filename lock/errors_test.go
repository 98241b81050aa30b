package lock_test

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/cenkalti/backoff/v4"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/engines"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
)

// A long owner that another program has written does not fill logs.
func TestHeldError_TextIsBounded(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		l, err := w.client(lock.Config{}).Acquire(ctx, lock.Name("report"), lock.Fixed(time.Hour))
		require.NoError(t, err)
		require.NoError(t, w.table.Write(ctx, table.Update(l.Key(), table.Attr("owner").Set(strings.Repeat("x", 100_000)))))
		_, err = w.client(lock.Config{}).TryAcquire(ctx, lock.Name("report"))
		require.ErrorIs(t, err, lock.ErrHeld)
		assert.Less(t, len(err.Error()), lock.MaxOwner+200)
		require.NoError(t, errOf(w.client(quiet).AcquireAll(ctx, names(5))))
		err = errOf(w.client(quiet).TryAcquireAll(ctx, names(5)))
		assert.Equal(t, 3, strings.Count(err.Error(), lock.ErrHeld.Error()), err)
		assert.ErrorContains(t, err, "; and 2 more")
	})
}

// The first error that a new user meets begins with the cause, and with the table's name.
func TestErrors_FirstAcquireLeadsWithTheCause(t *testing.T) {
	cfg := func() aws.Config {
		return aws.Config{Region: "eu-west-1", Credentials: credentials.NewStaticCredentialsProvider("id", "secret", "")}
	}
	without := cfg()
	without.Credentials = credentials.NewStaticCredentialsProvider("", "", "")
	for name, c := range map[string]struct {
		sdk  *dynamodb.Client
		kind error
	}{
		"no credentials": {dynamodb.NewFromConfig(without), table.ErrCredentials},
		"no endpoint":    {dynamodb.NewFromConfig(cfg(), func(o *dynamodb.Options) { o.HTTPClient = nobody{} }), table.ErrUnreachable},
	} {
		t.Run(name, func(t *testing.T) {
			err := firstAcquire(t, c.sdk, "shop", lock.Config{})
			require.ErrorIs(t, err, c.kind)
			assert.Regexp(t, `^lock: acquire: table: DescribeTable on shop: `+c.kind.Error()+`: `, err.Error())
			assert.ErrorContains(t, err, "Config.HomeRegion", "at the end, why that is asked")

			err = firstAcquire(t, c.sdk, "shop", lock.Config{HomeRegion: "eu-west-1"})
			require.ErrorIs(t, err, c.kind)
			assert.Regexp(t, `^lock: acquire: open a session: table: UpdateItem on shop: `+c.kind.Error()+`: `, err.Error())
			assert.NotContains(t, err.Error(), "replicas")
		})
	}
	t.Run("no table", func(t *testing.T) {
		engines.Run(t, func(t *testing.T, e *engines.Engine) {
			name := e.TableName(t)
			err := firstAcquire(t, e.Client(), name, lock.Config{})
			require.ErrorIs(t, err, table.ErrNoTable)
			assert.Regexp(t, `^lock: acquire: table: DescribeTable on `+name+`: no such table or index `, err.Error())
			err = firstAcquire(t, e.Client(), name, lock.Config{HomeRegion: e.Client().Options().Region})
			require.ErrorIs(t, err, table.ErrNoTable)
			assert.Regexp(t, `^lock: acquire: open a session: table: UpdateItem on `+name+`: no such table or index: `, err.Error())
		})
	})
}

// nobody is an endpoint that refuses connections.
type nobody struct{}

func (nobody) Do(*http.Request) (*http.Response, error) {
	return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
}

// firstAcquire returns the error of a client's first acquire on a table that it cannot reach.
func firstAcquire(t *testing.T, sdk *dynamodb.Client, name string, config lock.Config) error {
	t.Helper()
	once := table.WithRetry(table.Retry{Backoff: func() backoff.BackOff { return &backoff.StopBackOff{} }})
	tbl, err := table.Open(sdk, table.Schema{Name: name}, once)
	require.NoError(t, err)
	config.Logger = slog.New(slog.DiscardHandler)
	c, err := lock.New(tbl, config)
	require.NoError(t, err)
	defer func() { assert.NoError(t, c.Close(context.Background())) }()
	_, err = c.Acquire(t.Context(), lock.Name("report"))
	return err
}
