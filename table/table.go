package table

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/mortise-go/mortise/internal/machine"
	"github.com/mortise-go/mortise/internal/nilctx"
	"github.com/mortise-go/mortise/keys"
)

// Table is one DynamoDB table, seen through its schema. It is safe for concurrent use.
type Table struct {
	client  Client
	schema  Schema
	scheme  keys.Scheme // schema.Keys with its defaults filled in
	retry   Retry
	now     func() time.Time
	machine machine.Machine
	meters  []*Usage // of Metered
	*findings
}

// findings are what is known of a table by now, in common to all views of it.
type findings struct {
	mu       sync.Mutex // guards the following; never held across I/O
	sighting ServerTime
	replicas *bool          // whether the table has replicas in other regions, once DynamoDB has said so
	asking   chan struct{}  // closed when the call that asks so has ended; nil when none does
	names    map[string]any // what Register was told
}

// Option changes how Open sets a Table up.
type Option func(*Table) error

// WithRetry sets the retry policy.
func WithRetry(r Retry) Option {
	return func(t *Table) error {
		t.retry = r
		return nil
	}
}

// WithClock sets the wall clock, for tests and simulations. Defaults to time.Now.
func WithClock(now func() time.Time) Option {
	return func(t *Table) error {
		if now == nil {
			return fmt.Errorf("%w: WithClock: nil clock", ErrInvalid)
		}
		t.now = now
		return nil
	}
}

// Open makes a Table. It checks the schema and sends nothing: use Ensure or Verify to
// compare it with the live table.
func Open(client Client, schema Schema, opts ...Option) (*Table, error) {
	if v := reflect.ValueOf(client); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return nil, fmt.Errorf("table: open: %w: nil client", ErrInvalid)
	}
	schema = schema.withDefaults()
	if err := schema.Validate(); err != nil {
		return nil, fmt.Errorf("table: open: %w", err)
	}
	t := &Table{client: client, schema: schema, scheme: schema.Keys, now: time.Now, machine: machine.Of(client), findings: &findings{names: map[string]any{}}}
	for _, opt := range opts {
		if opt == nil {
			return nil, fmt.Errorf("table: open: %w: nil option", ErrInvalid)
		}
		if err := opt(t); err != nil {
			return nil, fmt.Errorf("table: open: %w", err)
		}
	}
	t.retry = t.retry.withDefaults(t.machine)
	return t, nil
}

// Name is the table's name.
func (t *Table) Name() string { return t.schema.Name }

// Schema is the schema that the table was opened with, defaults filled in. It is a copy.
func (t *Table) Schema() Schema { return t.schema.withDefaults() }

// Scheme names the attributes, defaults filled in.
func (t *Table) Scheme() keys.Scheme { return t.scheme }

// Now is the table's clock.
func (t *Table) Now() time.Time { return t.now() }

// Register lets the packages above keep, per table, what must not clash within it: the
// first registration of a name wins, and check is called with every one there is. Its errors are
// joined; with one, or without a value, nothing is registered.
func (t *Table) Register(name string, value any, check func(name string, other any) error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	var errs []error
	for _, n := range slices.Sorted(maps.Keys(t.names)) {
		if err := check(n, t.names[n]); err != nil {
			errs = append(errs, err)
		}
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	if _, ok := t.names[name]; !ok && value != nil {
		t.names[name] = value
	}
	return nil
}

// KeyItem is a key as attributes.
func (t *Table) KeyItem(key keys.Key) Item {
	return Item{
		t.scheme.PK: &types.AttributeValueMemberS{Value: key.PK},
		t.scheme.SK: &types.AttributeValueMemberS{Value: key.SK},
	}
}

// KeyOf is the key of an item.
func (t *Table) KeyOf(item Item) (keys.Key, error) {
	pk, err := keyAttribute(item, t.scheme.PK)
	if err != nil {
		return keys.Key{}, err
	}
	sk, err := keyAttribute(item, t.scheme.SK)
	if err != nil {
		return keys.Key{}, err
	}
	key := keys.NewKey(pk, sk)
	if err := key.Validate(); err != nil {
		return keys.Key{}, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return key, nil
}

func keyAttribute(item Item, name string) (string, error) {
	switch av, ok := item[name].(*types.AttributeValueMemberS); {
	case item[name] == nil:
		return "", fmt.Errorf("%w: item without the key attribute %q", ErrInvalid, name)
	case !ok || av == nil:
		return "", fmt.Errorf("%w: key attribute %q is not a string", ErrInvalid, name)
	default:
		return av.Value, nil
	}
}

// ServerTime is a sighting of DynamoDB's clock.
type ServerTime struct {
	Server time.Time     // as the answer says, in whole seconds, rounded down
	Local  time.Time     // this table's clock when the answer came
	At     time.Time     // the process's clock then, with its monotonic reading
	Trip   time.Duration // from sending to receiving
}

// Machine is what the packages of this module take time and chance from.
func (t *Table) Machine() machine.Machine { return t.machine }

// LastServerTime is the most recent sighting; false before the first answer.
func (t *Table) LastServerTime() (ServerTime, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.sighting, !t.sighting.Server.IsZero()
}

func (t *Table) see(server time.Time, start time.Time) {
	if server.IsZero() {
		return
	}
	now := t.now()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sighting = ServerTime{Server: server, Local: now, At: t.machine.Now(), Trip: now.Sub(start)}
}

// answer is what every output of the SDK has.
type answer struct {
	metadata middleware.Metadata
	capacity []types.ConsumedCapacity
}

// once switches the SDK's retries off: see Retry.
func once(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} }

// send sends one request, by the retry policy, and books what it cost.
func (t *Table) send(ctx context.Context, operation string, write bool, request func(context.Context) (answer, error)) error {
	ctx = nilctx.Checked(ctx, ErrInvalid)
	again := func() { t.count(ctx, Totals{Retries: 1}) }
	err := t.retry.do(ctx, again, func() error {
		start := t.now()
		ans, err := t.retry.bounded(ctx, request)
		cost := units(write, ans.capacity...)
		if err == nil || !unsent(err) {
			cost.Requests = 1
		}
		t.count(ctx, cost)
		if err == nil {
			if at, ok := awsmiddleware.GetServerTime(ans.metadata); ok {
				t.see(at, start)
			}
			return nil
		}
		t.see(serverTimeOf(err), start)
		return err
	})
	return wrap(operation, t.schema.Name, err)
}

// serverTimeOf finds the server's time in a refusal: the SDK returns no metadata with errors.
func serverTimeOf(err error) time.Time {
	var response *smithyhttp.ResponseError
	if !errors.As(err, &response) || response.Response == nil || response.Response.Response == nil {
		return time.Time{}
	}
	// Whatever answers in DynamoDB's place, such as a proxy, may have any clock.
	if response.Response.Header.Get("X-Amzn-Requestid") == "" {
		return time.Time{}
	}
	at, err := http.ParseTime(response.Response.Header.Get("Date"))
	if err != nil {
		return time.Time{}
	}
	return at
}

// one is the capacity of an output that has at most one.
func one(c *types.ConsumedCapacity) []types.ConsumedCapacity {
	if c == nil {
		return nil
	}
	return []types.ConsumedCapacity{*c}
}
