package entity_test

import (
	"encoding/json"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/cenkalti/backoff/v4"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/entity"
	"github.com/mortise-go/mortise/internal/engines"
	"github.com/mortise-go/mortise/internal/engines/faulty"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
)

func TestMain(m *testing.M) { os.Exit(engines.Main(m)) }

// Order has a version, a TTL, timestamps, and is in a sparse index by field and in one by predicate.
type Order struct {
	Tenant  string    `dynamo:"-"` // key only
	ID      string    `dynamo:"id"`
	Status  string    `dynamo:"status,omitempty"`
	Placed  time.Time `dynamo:"placed,unixtime,omitempty"`
	Total   int64     `dynamo:"total"`
	Note    string    `dynamo:"note,omitempty"`
	Tags    []string  `dynamo:"tags,set,omitempty"`
	Lines   []string  `dynamo:"lines,omitempty"`
	Version int64     `dynamo:"version"`
	Expires time.Time `dynamo:"expires,omitempty"`
	Created time.Time `dynamo:"created"`
	Updated time.Time `dynamo:"updated"`
}

func orderSpec() entity.Spec[Order] {
	return entity.Spec[Order]{
		Type: "Order", PK: "TENANT#{tenant}", SK: "ORDER#{id}",
		Version: "version", TTL: "expires", Created: "created", Updated: "updated",
		Indexes: []entity.Index[Order]{
			{Name: "gsi1", PK: "STATUS#{status}", SK: "{placed:time-s}#{id}"},
			{Name: "gsi2", PK: "BIG#{tenant}", SK: "{id}", When: func(o Order) bool { return o.Total >= 100 }},
		},
	}
}

// Plain has neither version nor TTL nor timestamps, and is in an index by a field of its own.
type Plain struct {
	ID    string `dynamo:"id"`
	Group string `dynamo:"group,omitempty"`
	Rank  int    `dynamo:"rank"`
	Count int    `dynamo:"count"`
	Other string `dynamo:"other,omitempty"`
}

func plainSpec() entity.Spec[Plain] {
	return entity.Spec[Plain]{
		Type: "Plain", PK: "PLAIN#{id}", SK: "PLAIN",
		Indexes: []entity.Index[Plain]{{Name: "gsi1", PK: "GROUP#{group}", SK: "{rank:int6}"}},
	}
}

func schema(name string) table.Schema {
	return table.Schema{
		Name: name, NoTTL: true,
		Keys: keys.Scheme{PK: "PK", SK: "SK", Type: "_t", TTL: "_ttl", Version: "_v", Prefix: "shop/"},
		Indexes: []table.Index{
			{Name: "gsi1", PK: "g1pk", SK: "g1sk"},
			{Name: "gsi2", PK: "g2pk", SK: "g2sk"},
			{Name: "gsi3", PK: "g3pk"},
			{Name: "inverted", PK: "SK", SK: "PK"},
			{Name: "lsi1", SK: "l1sk", Local: true},
		},
	}
}

// eager is a retry policy that does not wait and gives up after n more attempts. A slow machine adds none, since requests have no
// timeout.
func eager(n uint64) table.Option {
	return table.WithRetry(table.Retry{Timeout: -1, Backoff: func() backoff.BackOff {
		return backoff.WithMaxRetries(&backoff.ZeroBackOff{}, n)
	}})
}

// clock is a wall clock that tests set.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func newClock() *clock { return &clock{at: time.Date(2026, 2, 3, 4, 5, 6, 789, time.UTC)} }

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

type fixture struct {
	*table.Table
	faults *faulty.Client
	clock  *clock
	raw    *table.Table // without faults
}

func newFixture(t *testing.T, e *engines.Engine) fixture {
	t.Helper()
	f := fixture{faults: &faulty.Client{}, clock: newClock()}
	s := schema(e.TableName(t))
	var err error
	f.Table, err = table.Open(e.Client(f.faults.Options), s, eager(5), table.WithClock(f.clock.now))
	require.NoError(t, err)
	f.raw, err = table.Open(e.Client(), s, eager(5), table.WithClock(f.clock.now))
	require.NoError(t, err)
	require.NoError(t, f.raw.Ensure(t.Context()))
	f.faults.Script()
	return f
}

func define[T any](t *testing.T, tbl *table.Table, spec entity.Spec[T]) *entity.Entity[T] {
	t.Helper()
	e, err := entity.Define(tbl, spec)
	require.NoError(t, err)
	return e
}

// row is the stored item, nil where there is none.
func (f fixture) row(t *testing.T, key keys.Key) table.Item {
	t.Helper()
	item, err := f.raw.Get(t.Context(), key, true)
	if err != nil {
		require.ErrorIs(t, err, table.ErrNotFound)
	}
	return item
}

func text(item table.Item, attr string) string {
	s, _ := item[attr].(*types.AttributeValueMemberS)
	if s == nil {
		return ""
	}
	return s.Value
}

func number(item table.Item, attr string) json.Number {
	n, _ := item[attr].(*types.AttributeValueMemberN)
	if n == nil {
		return ""
	}
	return json.Number(n.Value)
}

func collect[T any](t require.TestingT, seq func(func(T, error) bool)) []T {
	var list []T
	for o, err := range seq {
		require.NoError(t, err)
		list = append(list, o)
	}
	return list
}
