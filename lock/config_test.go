package lock_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/entity"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

func TestConfig_IsValidated(t *testing.T) {
	tbl, err := table.Open(tabletest.New(t).Client(), table.Schema{Name: "app"})
	require.NoError(t, err)
	for field, configs := range map[string][]lock.Config{
		"Lease":     {{Lease: -time.Second}, {Lease: time.Second - 1}, {Lease: time.Microsecond}, {Lease: time.Hour + time.Millisecond}},
		"Owner":     {{Owner: strings.Repeat("x", 257)}, {Owner: "\xff"}},
		"Retention": {{Retention: -1}, {Retention: 24*time.Hour - 1}, {Retention: 1<<63 - 1}},
		"Skew":      {{Skew: -1}, {Skew: time.Second - 1}, {Skew: time.Hour + 1}},
		"Expiry":    {{Expiry: "never"}, {Expiry: "Observed-Only"}},
		"Handoffs":  {{Handoffs: 1001}},
		"AtRisk":    {{AtRisk: -.1}, {AtRisk: 1}, {AtRisk: math.NaN()}, {AtRisk: math.Inf(1)}},
		"Index":     {{Index: "nope"}},

		"AttributePrefix": {{AttributePrefix: strings.Repeat("x", 65)}, {AttributePrefix: "\xff"}},
		"SessionKey":      {{SessionKey: "SESSION"}, {SessionKey: "{owner}"}, {SessionKey: "{id}#{more}"}, {SessionKey: "{"}},
		"Margin":          {{Margin: -1}, {Margin: 10*time.Second + 1}, {Lease: time.Second, Margin: 600 * time.Millisecond}},
		"StandaloneKey":   {{StandaloneKey: "LOCK"}, {StandaloneKey: "{other}"}, {StandaloneKey: "{name}#{more}"}, {StandaloneKey: "{"}},
		"RowKey":          {{RowKey: "LOCK"}, {RowKey: "{name}"}, {RowKey: "{of}#{more}"}, {RowKey: "{"}, {RowKey: "{fence}"}},
	} {
		for _, config := range configs {
			c, err := lock.New(tbl, config)
			require.ErrorIs(t, err, lock.ErrInvalid, "%s: %+v", field, config)
			require.ErrorContains(t, err, field)
			assert.Nil(t, c)
		}
	}
	_, err = lock.New(tbl, lock.Config{Lease: time.Millisecond, Skew: 1, Owner: "\xff"})
	for _, field := range []string{"Lease", "Skew", "Owner"} {
		require.ErrorContains(t, err, "Config."+field, "all at once")
	}
	assert.NotContains(t, err.Error(), "\n")
	_, err = lock.New(tbl, lock.Config{Lease: 20}) // seconds, as the caller thinks
	require.ErrorContains(t, err, "Config.Lease: 20ns: want 1s to 1h0m0s")
	_, err = lock.New(nil, lock.Config{})
	require.ErrorIs(t, err, lock.ErrInvalid)

	for _, config := range []lock.Config{
		{},
		{Lease: lock.MinLease, Skew: time.Second, Retention: 24 * time.Hour, Margin: 500 * time.Millisecond, AtRisk: .01, Owner: strings.Repeat("x", 256)},
		{Lease: lock.MaxLease, Skew: time.Hour, Expiry: lock.ObservedOnly},
	} {
		_, err = lock.New(tbl, config)
		require.NoError(t, err)
	}
}

// An application may not use, for its own attributes, a name that a lock row needs.
func TestConfig_RefusesCollidingAttributeNames(t *testing.T) {
	for _, name := range []string{"line", "fence", "writes", "since", "hold", "data", "edits", "ran", "running", "failed", "forced", "forced_fence", "owner", "lease", "beat", "expires", "dead", "ask"} {
		for field, schema := range map[string]table.Schema{
			"time to live":  {Keys: keys.Scheme{TTL: name}},
			"type":          {Keys: keys.Scheme{Type: name}},
			"partition key": {Keys: keys.Scheme{PK: name}},
			"sort key":      {Keys: keys.Scheme{SK: name}},
			"index":         {Indexes: []table.Index{{Name: "by-it", PK: name}}},
		} {
			schema.Name = "app"
			tbl, err := table.Open(tabletest.New(t).Client(), schema)
			require.NoError(t, err)
			_, err = lock.New(tbl, lock.Config{})
			require.ErrorIs(t, err, lock.ErrInvalid, "%s %s", field, name)
			require.ErrorContains(t, err, `attribute "`+name+`" of lock and session rows`)
			require.ErrorContains(t, err, field)
			require.ErrorContains(t, err, "Config.AttributePrefix", "the way out")
			_, err = lock.New(tbl, lock.Config{AttributePrefix: "lock_"})
			require.NoError(t, err, "%s %s", field, name)
		}
	}
}

// The type and the time to live of lock rows have the names that the scheme gives them, and no prefix. An index whose keys are these
// attributes, but of another type, would make DynamoDB refuse every row of a lock.
func TestConfig_RefusesAnIndexOnAnAttributeOfTheSchemeOfAnotherType(t *testing.T) {
	for setting, s := range map[string]table.Schema{
		"TTL":  {NoTTL: true, Indexes: []table.Index{{Name: "by-it", PK: "group", SK: "ttl"}}},
		"Type": {NoTTL: true, Indexes: []table.Index{{Name: "by-it", PK: "type", PKType: table.Number}}},
	} {
		s.Name = "app"
		tbl, err := table.Open(tabletest.New(t).Client(), s)
		require.NoError(t, err)
		_, err = lock.New(tbl, lock.Config{})
		require.ErrorIs(t, err, lock.ErrInvalid)
		require.ErrorContains(t, err, "index by-it")
		require.ErrorContains(t, err, "name another attribute in Keys."+setting)
		s.Keys = keys.Scheme{Type: "row_type", TTL: "row_ttl"} // the way out
		tbl, err = table.Open(tabletest.New(t).Client(), s)
		require.NoError(t, err)
		_, err = lock.New(tbl, lock.Config{})
		require.NoError(t, err)
	}
}

// New refuses a table in which rows of the application could have the keys of locks. Each way out that the error names is one.
func TestNew_RefusesKeysThatRowsOfTheApplicationCouldHave(t *testing.T) {
	type row struct {
		ID  string `dynamo:"-"`
		Sub string `dynamo:"-"`
	}
	with := func(change func(*entity.Spec[row])) error {
		tbl, err := table.Open(tabletest.New(t).Client(), table.Schema{Name: "app"})
		require.NoError(t, err)
		spec := entity.Spec[row]{Type: "row", PK: "{id}", SK: "{sub:rest}"}
		change(&spec)
		_, err = entity.Define(tbl, spec)
		require.NoError(t, err)
		_, err = lock.New(tbl, lock.Config{})
		return err
	}
	err := with(func(*entity.Spec[row]) {})
	require.ErrorIs(t, err, lock.ErrInvalid)
	require.ErrorContains(t, err, `could be the key of a "row", whose templates are "{id}" and "{sub:rest}": a KeyPart in Spec.Match of "row" can leave such keys out, `+
		`or a template of another form, or AttrEquals of the type attribute and the own type, if no row lacks it`)
	require.NoError(t, with(func(s *entity.Spec[row]) { s.Match = entity.KeyPart("sub", "[0-9]+") }))
	require.NoError(t, with(func(s *entity.Spec[row]) { s.SK = "ROW#{sub:rest}" }))
	require.NoError(t, with(func(s *entity.Spec[row]) { s.Match = entity.AttrEquals("type", "row") }))
}

func TestAcquire_RefusesBadTargetsAndLengths(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(lock.Config{})
		broken := errors.New("broken")
		ops := w.requests(func() {
			for name, target := range map[string]lock.Target{
				"zero": {}, "empty": lock.Name(""), "long": lock.Name(strings.Repeat("x", 513)), "no UTF-8": lock.Name("a\xff"),
				"no key": lock.Beside(keys.Key{}), "no sort key": lock.Beside(keys.NewKey("a", "")), "no partition": lock.Beside(keys.NewKey("", "a")),
				"long sort key": lock.Beside(keys.NewKey("a", strings.Repeat("x", 1020))), "escapes": lock.Name(strings.Repeat("#", 512)),
				"long partition": lock.Beside(keys.NewKey(strings.Repeat("x", 2049), "a")), "bad key": lock.Beside(keys.InvalidKey(broken)),
			} {
				_, err := c.Acquire(ctx, target)
				require.ErrorIs(t, err, lock.ErrInvalid, name)
				_, err = c.TryAcquire(ctx, target)
				require.ErrorIs(t, err, lock.ErrInvalid, name)
				_, err = c.Inspect(ctx, target)
				require.ErrorIs(t, err, lock.ErrInvalid, name)
				require.ErrorIs(t, c.Do(ctx, target, func(context.Context, *lock.Lease) error { return nil }), lock.ErrInvalid, name)
			}
			_, err := c.Acquire(ctx, lock.Beside(keys.InvalidKey(broken)))
			require.ErrorIs(t, err, broken)
			for _, d := range []time.Duration{0, -time.Second, 100*time.Millisecond - 1, 24*time.Hour + 1} {
				_, err := c.Acquire(ctx, lock.Name("report"), lock.Fixed(d))
				require.ErrorIs(t, err, lock.ErrInvalid)
				require.ErrorContains(t, err, "Fixed")
			}
			_, err = c.Acquire(ctx, lock.Name("report"), lock.MaxHold(100*time.Millisecond-1))
			require.ErrorIs(t, err, lock.ErrInvalid)
			_, err = c.Acquire(ctx, lock.Name("report"), nil)
			require.ErrorIs(t, err, lock.ErrInvalid)
		})
		assert.Empty(t, ops)
		for _, target := range []lock.Target{
			lock.Name("x"), lock.Name(strings.Repeat("x", 512)), lock.Name("ünï/code #1"), lock.Beside(keys.NewKey("a", strings.Repeat("x", 1000))),
		} {
			for _, d := range []time.Duration{lock.MinFixed, 1234567 * time.Microsecond, lock.MaxFixed} {
				l, err := c.Acquire(ctx, target, lock.Fixed(d))
				require.NoError(t, err)
				assert.Equal(t, target, l.Target())
				assert.LessOrEqual(t, l.Remaining(), d)
				require.NoError(t, l.Release(ctx))
			}
		}
		assert.Equal(t, "x", lock.Name("x").Name())
		assert.Equal(t, keys.NewKey("a", "b"), lock.Beside(keys.NewKey("a", "b")).Beside())
	})
}

func TestConfig_KeysFollowTheTemplates(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		scheme := keys.Scheme{Prefix: "shop/", Delimiter: '|'}
		w.guardian = newGuardian(t, "app", keys.Scheme{PK: "pk", Prefix: scheme.Prefix, Delimiter: scheme.Delimiter}, "shop/MUTEX|*", "shop/T|*")
		tbl := w.openOver(w.engine.HTTPClient(), table.Schema{Name: "app", Keys: scheme})
		c, err := lock.New(tbl, lock.Config{StandaloneKey: "MUTEX|{name}", RowKey: "~lock|{of}"})
		require.NoError(t, err)
		l, err := c.Acquire(ctx, lock.Name("a"))
		require.NoError(t, err)
		assert.Equal(t, keys.NewKey("shop/MUTEX|a", "~lock|a"), l.Key())
		beside, err := c.Acquire(ctx, lock.Beside(keys.NewKey("shop/T|1", "O|2")))
		require.NoError(t, err)
		assert.Equal(t, "shop/T|1", beside.Key().PK)
		r, err := c.Inspect(ctx, lock.Beside(keys.NewKey("shop/T|1", "O|2")))
		require.NoError(t, err)
		assert.Equal(t, "O|2", r.Of)
		require.NoError(t, c.Close(ctx))
	})
}

// Two locks never share a row, whatever their names contain.
func TestTarget_NamesDoNotForgeOthers(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		c := w.client(lock.Config{})
		seen := map[keys.Key]bool{}
		for _, target := range []lock.Target{
			lock.Name("a"), lock.Name("a#a"), lock.Name("a#LOCK#a"), lock.Name("LOCK#a"), lock.Name("a$"), lock.Name("a$0"), lock.Name("#"), lock.Name("$"),
			lock.Beside(keys.NewKey("a", "a")), lock.Beside(keys.NewKey("a#a", "a")), lock.Beside(keys.NewKey("a", "LOCK#a")),
			lock.Beside(keys.NewKey("LOCK#a", "LOCK#a")), lock.Beside(keys.NewKey("LOCK#a", "#")),
		} {
			l, err := c.TryAcquire(ctx, target)
			require.NoError(t, err)
			require.False(t, seen[l.Key()])
			seen[l.Key()] = true
		}
	})
}

// An application whose rows could have the keys of lock rows is refused at the start.
func TestConfig_RefusesAnOverlappingEntity(t *testing.T) {
	tbl, err := table.Open(tabletest.New(t).Client(), table.Schema{Name: "app"})
	require.NoError(t, err)
	_, err = entity.Define(tbl, entity.Spec[order]{Type: "Order", PK: "T#{tenant}", SK: "LOCK#{id}"})
	require.NoError(t, err)
	_, err = lock.New(tbl, lock.Config{})
	require.ErrorIs(t, err, lock.ErrInvalid)
	require.ErrorContains(t, err, "RowKey")
	_, err = lock.New(tbl, lock.Config{RowKey: "MUTEX#{of}"})
	require.NoError(t, err)
}

// Without Config.Owner, processes are told apart by host and process number.
func TestConfig_OwnerNamesTheProcess(t *testing.T) {
	virtual(t, func(ctx context.Context, w *world) {
		_, err := w.client(lock.Config{}).Acquire(ctx, lock.Name("report"))
		require.NoError(t, err)
		_, err = w.client(lock.Config{}).TryAcquire(ctx, lock.Name("report"))
		var held *lock.HeldError
		require.ErrorAs(t, err, &held)
		assert.True(t, strings.HasSuffix(held.Owner, fmt.Sprintf("/%d", os.Getpid())), held.Owner)
	})
}
