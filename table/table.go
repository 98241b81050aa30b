package table

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/mortise-go/mortise/internal/errs"
	"github.com/mortise-go/mortise/internal/inside"
	"github.com/mortise-go/mortise/internal/machine"
	"github.com/mortise-go/mortise/internal/nilctx"
	"github.com/mortise-go/mortise/internal/pace"
	"github.com/mortise-go/mortise/keys"
)

// Table is one DynamoDB table with its schema. It is safe for concurrent use.
type Table struct {
	client  Client
	schema  Schema
	scheme  keys.Scheme // schema.Keys with its defaults
	retry   Retry
	now     func() time.Time
	machine machine.Machine
	meters  []*Usage // set by Metered
	door
	*findings
}

// door gives the other packages of this module what package inside describes.
type door = inside.Door[Op]

// findings are facts about a table, shared by all views of it.
type findings struct {
	mu       sync.Mutex // guards the fields below; never held across I/O
	replicas *bool      // whether the table has replicas in other regions; nil while unknown
	asking   *question  // the call that is finding out; nil if there is none
}

type question struct {
	done chan struct{} // closed when the call has ended
	err  error         // error of the call, set before done is closed; nil if the caller's own context ended
}

// Option changes how [Open] sets up a Table.
type Option func(*Table) error

// WithRetry sets the retry policy.
func WithRetry(r Retry) Option {
	return func(t *Table) error {
		t.retry = r
		return nil
	}
}

// WithClock sets the wall clock, for tests and simulations. Defaults to [time.Now].
func WithClock(now func() time.Time) Option {
	return func(t *Table) error {
		if now == nil {
			return fmt.Errorf("%w: WithClock: nil clock", ErrInvalid)
		}
		t.now = now
		return nil
	}
}

// Open returns a Table. It checks the schema and sends no request. Use [Table.Ensure] or [Table.Verify] to compare the
// schema with the live table.
func Open(client Client, schema Schema, opts ...Option) (*Table, error) {
	if v := reflect.ValueOf(client); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return nil, fmt.Errorf("table: open: %w: nil client", ErrInvalid)
	}
	schema = schema.withDefaults()
	if err := schema.Validate(); err != nil {
		return nil, fmt.Errorf("table: open: %w", err)
	}
	t := &Table{client: client, schema: schema, scheme: schema.Keys, now: time.Now, machine: machine.Of(client), findings: &findings{}}
	t.door = inside.NewDoor(&inside.Table[Op]{Machine: t.machine, Prepare: prepare})
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

// Name returns the table's name.
func (t *Table) Name() string { return t.schema.Name }

// Schema returns a copy of the table's schema, with defaults.
func (t *Table) Schema() Schema { return t.schema.withDefaults() }

// Scheme returns the names of the attributes, with defaults.
func (t *Table) Scheme() keys.Scheme { return t.scheme }

// Now returns the time of the table's clock.
func (t *Table) Now() time.Time { return t.now() }

// KeyItem returns a key as attributes.
func (t *Table) KeyItem(key keys.Key) Item {
	return Item{
		t.scheme.PK: &types.AttributeValueMemberS{Value: key.PK},
		t.scheme.SK: &types.AttributeValueMemberS{Value: key.SK},
	}
}

// KeyOf returns the key of an item.
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

func (t *Table) see(server time.Time, start time.Time) {
	if server.IsZero() {
		return
	}
	now := t.now()
	t.Inside(inside.Key{}).See(inside.ServerTime{Server: server, Local: now, At: t.machine.Now(), Trip: now.Sub(start)})
}

// answer is the common part of the SDK's outputs.
type answer struct {
	metadata middleware.Metadata
	capacity []types.ConsumedCapacity
}

// once disables the SDK's retries; see Retry.
func once(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} }

// call is send for a method of the client. read takes what the caller needs from the output; an error of read is one of the request.
func call[In, Out any](ctx context.Context, t *Table, operation string, write bool,
	method func(Client, context.Context, *In, ...func(*dynamodb.Options)) (*Out, error), in *In, read func(*Out) (answer, error),
) error {
	return t.send(ctx, operation, write, func(ctx context.Context) (answer, error) {
		out, err := method(t.client, ctx, in, once)
		if err != nil {
			return answer{}, err
		}
		return read(out)
	})
}

// send sends one request by the retry policy, and counts its cost. The error of a write is marked by whether any of its attempts may have
// been applied: a repeated write can be refused because of its own first attempt, or while that one is still on its way.
func (t *Table) send(ctx context.Context, operation string, write bool, request func(context.Context) (answer, error)) error {
	ctx = nilctx.Checked(ctx, ErrInvalid)
	unclear, sent := false, false
	err := t.retry.do(ctx, func() error {
		if err := pace.Wait(ctx); err != nil {
			return &finalError{err}
		}
		start := t.now()
		ans, err := t.retry.bounded(ctx, func(ctx context.Context) (answer, error) {
			ans, err := request(ctx)
			var running *types.TransactionInProgressException // this transaction is being applied: from WriteOnce of another program
			unclear = unclear || RequestMayBeApplied(err) || errors.As(err, &running)
			return ans, err
		})
		cost := units(write, ans.capacity...)
		if err == nil || !unsent(err) {
			cost.Requests = 1
			if sent {
				cost.Retries = 1
			}
			sent = true
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
	if write {
		// A request that is too large is so in each attempt: DynamoDB can close the connection while the first is being sent.
		err = errs.WithOutcome(err, unclear && !tooLarge(err))
	}
	return wrap(operation, t.schema.Name, err)
}

// serverTimeOf returns DynamoDB's time from the response to a refused request, for which the SDK returns no metadata.
func serverTimeOf(err error) time.Time {
	var response *smithyhttp.ResponseError
	if !errors.As(err, &response) || response.Response == nil || response.Response.Response == nil {
		return time.Time{}
	}
	// A proxy that answers instead of DynamoDB can have any clock. The answers of DynamoDB have this header.
	if response.Response.Header.Get("X-Amzn-Requestid") == "" {
		return time.Time{}
	}
	at, _ := http.ParseTime(response.Response.Header.Get("Date")) // zero if it is none
	return at
}

// one returns as a list the capacity of an output that has at most one.
func one(c *types.ConsumedCapacity) []types.ConsumedCapacity {
	if c == nil {
		return nil
	}
	return []types.ConsumedCapacity{*c}
}
