// Package calls calls everything exported that takes a context, in worlds in which that fails.
package calls

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/entity"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/migrations"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// order is a row with about all that an entity can have.
type order struct {
	Tenant  string    `dynamo:"tenant"`
	ID      string    `dynamo:"id"`
	Email   string    `dynamo:"email"`
	Status  string    `dynamo:"status"`
	Total   int       `dynamo:"total"`
	Version int64     `dynamo:"-"`
	Until   time.Time `dynamo:"-"`
}

// event is a row without versions, so that batches write it as it is.
type event struct {
	Tenant string `dynamo:"tenant"`
	No     int    `dynamo:"no"`
}

var schema = table.Schema{
	Name: "app", Keys: keys.Scheme{Version: "_v"},
	Indexes: []table.Index{{Name: "by-status", PK: "g1pk", SK: "g1sk"}},
}

// world is an application whose network is sound until it is broken.
type world struct {
	*testing.T
	engine *tabletest.Engine
	net    *network
	table  *table.Table
	usage  table.Usage // of table
	orders *entity.Entity[order]
	events *entity.Entity[event]
	locks  *lock.Client
	known  order // a row that is there
}

// newWorld is to be called in a bubble of virtual time.
func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, engine: tabletest.New(t), net: &network{}}
	var err error
	w.table, err = table.Open(w.engine.Client(w.net.options), schema)
	require.NoError(t, err)
	w.table = w.table.Metered(&w.usage)
	require.NoError(t, w.table.Ensure(t.Context()))
	w.orders, err = entity.Define(w.table, entity.Spec[order]{
		Type: "Order", PK: "TENANT#{tenant}", SK: "ORDER#{id}", Version: "Version", TTL: "Until",
		Indexes: []entity.Index[order]{{Name: "by-status", PK: "STATUS#{status}", SK: "{tenant}#{id}"}},
		Unique:  []entity.Unique[order]{{Name: "email", Key: "{email}"}},
	})
	require.NoError(t, err)
	w.events, err = entity.Define(w.table, entity.Spec[event]{Type: "Event", PK: "TENANT#{tenant}", SK: "EVENT#{no:uint6}"})
	require.NoError(t, err)
	w.locks, err = lock.New(w.table, lock.Config{Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	w.known, err = w.orders.Create(t.Context(), order{Tenant: "acme", ID: "1", Email: "a@b", Status: "open"})
	require.NoError(t, err)
	return w
}

// close ends all that goes on, over a sound network.
func (w *world) close() {
	w.Helper()
	w.net.mend()
	assert.NoError(w, w.locks.Close(context.WithoutCancel(w.Context())))
}

// migrator makes one of a list of migrations.
func (w *world) migrator(list ...migrations.Migration) *migrations.Migrator {
	w.Helper()
	m, err := migrations.New(w.table, w.locks, list, migrations.WithLogger(slog.New(slog.DiscardHandler)))
	require.NoError(w, err)
	return m
}

// fault is what is wrong with a network, or with what is behind it.
type fault struct {
	credentials error
	answer      func(r *http.Request) (*http.Response, error)
}

// network is the way from the SDK to an engine.
type network struct {
	sound  aws.HTTPClient
	broken atomic.Pointer[fault]
}

func (n *network) options(o *dynamodb.Options) {
	n.sound, o.HTTPClient = o.HTTPClient, n
	o.Credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		if f := n.broken.Load(); f != nil && f.credentials != nil {
			return aws.Credentials{}, f.credentials
		}
		return aws.Credentials{AccessKeyID: "id", SecretAccessKey: "secret"}, nil
	})
}

func (n *network) Do(r *http.Request) (*http.Response, error) {
	if f := n.broken.Load(); f != nil {
		return f.answer(r)
	}
	return n.sound.Do(r)
}

func (n *network) fail(f *fault) { n.broken.Store(f) }
func (n *network) mend()         { n.broken.Store(nil) }

// refusing answers every request with an error of DynamoDB's.
func refusing(status int, code, message string) *fault {
	return &fault{answer: func(r *http.Request) (*http.Response, error) {
		body := `{"__type":"com.amazonaws.dynamodb.v20120810#` + code + `","message":"` + message + `"}`
		return &http.Response{
			StatusCode: status, Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}},
			Body: io.NopCloser(strings.NewReader(body)), Request: r,
		}, nil
	}}
}

var errProvider = errors.New("no provider has any")

// faults are ways in which requests fail.
func faults() map[string]*fault {
	return map[string]*fault{
		"no credentials": {credentials: errProvider, answer: func(*http.Request) (*http.Response, error) { return nil, errProvider }},
		"unreachable": {answer: func(*http.Request) (*http.Response, error) {
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
		}},
		"denied":     refusing(http.StatusBadRequest, "AccessDeniedException", "not authorized"),
		"no table":   refusing(http.StatusBadRequest, "ResourceNotFoundException", "Requested resource not found"),
		"other keys": refusing(http.StatusBadRequest, "ValidationException", "The provided key element does not match the schema"),
		"refused":    refusing(http.StatusBadRequest, "ValidationException", "some parameter"),
		"throttled":  refusing(http.StatusBadRequest, "ProvisionedThroughputExceededException", "too much"),
		"internal":   refusing(http.StatusInternalServerError, "InternalServerError", "internal"),
	}
}

// virtual runs f in a world of its own, in virtual time.
func virtual(t *testing.T, name string, f func(w *world)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			defer w.close()
			f(w)
		})
	})
}
