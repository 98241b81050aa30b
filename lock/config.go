package lock

import (
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/cenkalti/backoff/v4"
	"go.opentelemetry.io/otel/metric"

	"github.com/mortise-go/mortise/internal/machine"
)

// Bounds of what a Config and Fixed accept.
const (
	MinLease = time.Second
	MaxLease = time.Hour

	MinFixed = 100 * time.Millisecond
	MaxFixed = 24 * time.Hour

	minRetention = time.Hour
	maxRetention = 100 * 365 * 24 * time.Hour

	maxHandoffs = 1000

	MaxOwner  = 256 // bytes
	MaxName   = 512 // bytes
	MaxReason = 256 // bytes, of ForceRelease

	maxPrefix = 64 // bytes, of attribute names

	maxIndexName = 255 // bytes (Developer Guide, "Naming rules")

	// MaxData bounds a payload, in bytes as DynamoDB counts the size of values
	// (Developer Guide, "DynamoDB item sizes and formats").
	MaxData = 4096
)

// Config sets a Client up. The zero value is useful. What is not a function, the Logger or
// the MeterProvider can also come from JSON (UnmarshalJSON) and from the environment
// (ConfigFromEnv), with the same names and under the same rules.
type Config struct {
	// Lease is how long a lock stays held without a renewal: 1 s to 1 h. Renewals go out
	// every quarter of it, and it counts in whole milliseconds. Shorter leases are taken over
	// sooner after a crash, longer ones survive longer outages and pauses. Defaults to 20 s.
	Lease time.Duration

	// Owner is who holds the locks, for people to read, at most 256 bytes. It is never
	// compared. Defaults to the host's name and the process ID.
	Owner string

	// Retention is how long the row of a released lock is kept, for its fence: 1 h to 100
	// years, and three quarters of it at least where somebody else than its holder has freed
	// it. Then DynamoDB's time to live may delete it. Runs of Every are kept for two of their
	// intervals more; a lock that is acquired in other ways, too, needs a Retention of that
	// length. Defaults to 7 days.
	Retention time.Duration

	// Skew is how far clocks are trusted to agree, the same in all processes: a lease that its
	// holder recorded is taken for ended this long after it says, at least 1 s since that is
	// what DynamoDB's own time resolves to. A client whose clock is measured to be further off
	// neither uses nor records such times. Defaults to 2 s.
	Skew time.Duration

	// Expiry says how the death of a holder may be known. Defaults to RecordedOrObserved.
	Expiry Expiry

	// Margin is taken off the holder's side of each lease, for clocks that run at
	// different rates: up to half of Lease. Defaults to 1 % of the lease, at least 10 ms.
	Margin time.Duration

	// Backoff makes the times between looks at a lock that somebody else holds. A wait is
	// cut short when the lock can be taken earlier, and to half of it where other locks are
	// looked at then, which shares the request; it takes 10 ms at least. Stop ends the
	// waiting with the *HeldError. Defaults to an exponential backoff from 50 ms to 750 ms,
	// jittered by half, that never stops.
	Backoff func() backoff.BackOff

	// MaxHold ends a lease that its holder has kept for so long, for locks that are not
	// acquired with the option MaxHold: 100 ms at least. Defaults to 0: no limit.
	MaxHold time.Duration

	// HomeRegion is the one region in which locks are acquired, such as "eu-west-1", where
	// the table has replicas in others: two regions could both grant a lock. A client of
	// another region is refused. Without it, a table with replicas is refused, which the
	// first acquisition finds out with one DescribeTable, unless Ensure, Plan or Verify of
	// the same Table have. Defaults to "".
	HomeRegion string

	// StandaloneKey is the template of the partition key of locks that stand for
	// themselves; it has the one field name. Defaults to "LOCK#{name}" (with the scheme's
	// prefix and delimiter).
	StandaloneKey string

	// RowKey is the template of the sort key of all lock rows; it has the one field of,
	// which is what the lock is for: the sort key of the row that it stands beside, or its
	// own name. Defaults to "LOCK#{of}" (with the scheme's delimiter).
	RowKey string

	// SessionKey is the template of both keys of session rows; it has the one field id.
	// Defaults to "SESSION#{id}" (with the scheme's prefix and delimiter).
	SessionKey string

	// AttributePrefix begins the names of all attributes of lock and session rows that the table's
	// scheme does not name, for a table in which one of them is something else: with "lock_" the
	// payload is in lock_data, and no index over an attribute called data has the locks among its
	// rows. Every client that locks in the table has to have the same: one that has another refuses
	// the others' rows (ErrMalformed). Package migrations begins attributes of its records with it,
	// too. At most 64 bytes of UTF-8. Defaults to "".
	AttributePrefix string

	// Index is the name of a global index of the table's Schema in which every held lock
	// stands, and no other, for List of Index: its keys are strings, and it holds all
	// attributes of lock rows. The index's partition key is then "LOCKS" (with the scheme's
	// prefix) and its sort key the time of the acquisition and the nonce. Every client that
	// locks in the table has to set it, or rows stay in the index when they are released.
	// An acquisition and a release then cost a write unit more each for the index, a
	// hand-over two more, and each other write to a held lock's row (Renew of a Fixed lease,
	// SetData, what puts off its deletion) one more; all go to one partition of the index,
	// whose 1,000 write units a second bound how fast the whole table's locks can be acquired
	// and released. Defaults to "": held locks are in no index.
	Index string

	// Handoffs is how often in a row a lock is handed from one goroutine of this client to
	// the next, with one write each, before other processes get a chance: at most 1000;
	// a negative number means never. Defaults to 16.
	Handoffs int

	// OnLost is called, in a goroutine of its own, when a lease is lost, with the cause,
	// but not for one that Release has tried to give up. It may Close the client. Defaults
	// to nil: the lease's context tells.
	OnLost func(lease *Lease, cause error)

	// Logger gets what people should know: see the table of events in the package's
	// documentation.
	// Nothing above debug level carries a name or a key. Defaults to slog.Default().
	Logger *slog.Logger

	// MeterProvider gets measurements: see the table of instruments in the package's
	// documentation. Defaults to nil: nothing is measured.
	MeterProvider metric.MeterProvider
}

// Expiry says how the death of a holder may be known.
type Expiry int

const (
	// RecordedOrObserved takes a lock when its recorded end lies further back than the
	// skew bound, or when it was seen without a renewal for a whole lease.
	RecordedOrObserved Expiry = iota
	// ObservedOnly never compares clocks: a lock is taken only after it was seen without a
	// renewal for a whole lease.
	ObservedOnly
)

const (
	textRecorded = "recorded-or-observed"
	textObserved = "observed-only"
)

func (e Expiry) text() (text string, ok bool) {
	switch e {
	case RecordedOrObserved:
		return textRecorded, true
	case ObservedOnly:
		return textObserved, true
	}
	return fmt.Sprintf("Expiry(%d)", int(e)), false
}

// String is what MarshalText writes.
func (e Expiry) String() string {
	text, _ := e.text()
	return text
}

// MarshalText writes "recorded-or-observed" or "observed-only".
func (e Expiry) MarshalText() ([]byte, error) {
	text, ok := e.text()
	if !ok {
		return nil, wrap("expiry", fmt.Errorf("%w: unknown value %d", ErrInvalid, int(e)))
	}
	return []byte(text), nil
}

// UnmarshalText reads what MarshalText writes.
func (e *Expiry) UnmarshalText(text []byte) error {
	for _, known := range []Expiry{RecordedOrObserved, ObservedOnly} {
		if known.String() == string(text) {
			*e = known
			return nil
		}
	}
	return wrap("expiry", fmt.Errorf("%w: %s", ErrInvalid, wantExpiry))
}

// WithDefaults fills in what is not set, for locks in tables with the given delimiter.
func (c Config) WithDefaults(delimiter byte) Config {
	if c.Lease == 0 {
		c.Lease = 20 * time.Second
	}
	c.Lease = c.Lease.Truncate(time.Millisecond)
	if c.Owner == "" {
		host, err := os.Hostname()
		if err != nil {
			host = "unknown-host"
		}
		c.Owner = fmt.Sprintf("%s/%d", host, os.Getpid())
	}
	if c.Retention == 0 {
		c.Retention = 7 * 24 * time.Hour
	}
	if c.Skew == 0 {
		c.Skew = 2 * time.Second
	}
	if c.Backoff == nil {
		c.Backoff = func() backoff.BackOff { return waiting(machine.Real{}) }
	}
	if c.StandaloneKey == "" {
		c.StandaloneKey = "LOCK" + string(rune(delimiter)) + "{name}"
	}
	if c.RowKey == "" {
		c.RowKey = "LOCK" + string(rune(delimiter)) + "{of}"
	}
	if c.SessionKey == "" {
		c.SessionKey = "SESSION" + string(rune(delimiter)) + "{id}"
	}
	if c.Handoffs == 0 {
		c.Handoffs = 16
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

func waiting(m machine.Machine) backoff.BackOff {
	return machine.Backoff(m,
		backoff.WithInitialInterval(50*time.Millisecond),
		backoff.WithMultiplier(2),
		backoff.WithMaxInterval(750*time.Millisecond),
		backoff.WithMaxElapsedTime(0),
	)
}

// margin is Margin, or its default for a lease.
func (c *Config) margin(lease time.Duration) time.Duration {
	if c.Margin > 0 {
		return min(c.Margin, lease/2)
	}
	return min(max(lease/100, 10*time.Millisecond), lease/2)
}
