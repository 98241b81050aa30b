package lock

import (
	"cmp"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/cenkalti/backoff/v4"
	"go.opentelemetry.io/otel/metric"
)

// Bounds of what a Config and Fixed accept.
const (
	MinLease = time.Second
	MaxLease = time.Hour

	MinFixed = 100 * time.Millisecond
	MaxFixed = 24 * time.Hour

	minRetention = 24 * time.Hour
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

// Config sets a Client up. The zero value is useful. Everything but functions, Logger and MeterProvider can also come from
// JSON ([Config.UnmarshalJSON]) and from the environment ([ConfigFromEnv]), with the same names and under the same rules.
type Config struct {
	// Lease is how long a lock stays held without a renewal: 1 s to 1 h, in whole milliseconds. Renewals go out every quarter
	// of it. With a shorter lease, others get the lock of a crashed process sooner. With a longer one, a process survives
	// longer outages and pauses. Defaults to 20 s.
	Lease time.Duration

	// Owner is who holds the locks, for people to read, at most 256 bytes. A ticket keeps the first 64. It is never compared.
	// Defaults to the host's name and the process ID.
	Owner string

	// Retention is how long the row of a lock that nobody holds is kept, for its fence: one day to 100 years. Then DynamoDB's
	// time to live may delete it. A request dies with its signature, within minutes, so after a day no late copy of an old
	// one can create the row anew with an old fence. Rows of [Client.Every] are kept for two of its intervals longer; where
	// other calls acquire the same lock, Retention has to be at least as long as that. Defaults to 7 days.
	Retention time.Duration

	// Skew is how far clocks are trusted to agree, the same in all processes: 1 s to 1 h. A lease is taken for ended when the
	// end that its holder recorded lies further back. A client whose clock is measured to be further off neither uses nor
	// records such times. Defaults to 2 s; DynamoDB's own time comes in whole seconds.
	Skew time.Duration

	// Expiry selects how a client may find out that a holder is dead. Defaults to [RecordedOrObserved].
	Expiry Expiry

	// Margin is taken off the holder's side of each lease, for clocks that run at different rates: up to half of Lease.
	// Defaults to 1 % of the lease, at least 10 ms.
	Margin time.Duration

	// AtRisk is the part of the session's lease that is left when OnAtRisk is called: over 0 and below 1. Renewals go out
	// every quarter of the lease, so 0.5 means that a renewal is overdue. Defaults to 0.5.
	AtRisk float64

	// OnAtRisk is called once with true when no renewal has succeeded for so long that less than AtRisk of the session's lease
	// is left, and once with false when it is well again. It runs in the client's own goroutine and must not block.
	// Defaults to nil.
	OnAtRisk func(atRisk bool)

	// Backoff makes the times between a waiter's looks at the lock's row: 10 ms to a quarter of Lease; others are taken for
	// the nearer of these. Defaults to nil: looks are timed by the waiter's place in the line. A waiter also looks when the
	// holder can be taken for dead. Stop ends the wait with a [*HeldError].
	Backoff func() backoff.BackOff

	// MaxHold ends a lease that its holder has kept for so long, for locks that are not acquired with the option [MaxHold]:
	// at least 100 ms. Defaults to 0: no limit.
	MaxHold time.Duration

	// HomeRegion is the one region in which locks are acquired, such as "eu-west-1", where the table has replicas in others:
	// two regions could both grant a lock. A client of another region is refused. Without it, a table with replicas is
	// refused. The first acquisition finds that out with one DescribeTable, unless Ensure, Plan or Verify of the same Table
	// have. Defaults to "".
	HomeRegion string

	// StandaloneKey is the template of the partition key of locks that stand for themselves; it has the one field name.
	// Defaults to "LOCK#{name}" (with the scheme's prefix and delimiter).
	StandaloneKey string

	// RowKey is the template of the sort key of all lock rows; it has the one field of. That is the sort key of the row that
	// the lock stands beside, or the lock's own name. Defaults to "LOCK#{of}" (with the scheme's delimiter).
	RowKey string

	// SessionKey is the template of both keys of session rows; it has the one field id. Defaults to "SESSION#{id}" (with the
	// scheme's prefix and delimiter).
	SessionKey string

	// AttributePrefix begins the names of all attributes of lock and session rows that the table's scheme does not name, for a
	// table in which one of them means something else: with "lock_" the payload is in lock_data, and no index over an
	// attribute called data has the locks among its rows. All clients of the table need the same: one with another prefix
	// refuses their rows ([ErrMalformed]). Package migrations begins attributes of its records with it, too. At most 64
	// bytes of UTF-8. Defaults to "".
	AttributePrefix string

	// Index is the name of a global index of the table's Schema that has the locks which are held or awaited, and no others,
	// for [Client.List] of [Index]. Its keys are strings, and it holds all attributes of lock rows. Its partition keys are
	// "LOCKS#00" to "LOCKS#15" (with the scheme's prefix and delimiter), chosen by the lock's key: one partition would bound
	// the whole table's locks at 1,000 write units a second. All clients of the table need the same Index, or rows stay in
	// it when they are released. Each write to a row that is in the index, joins it or leaves it costs one more write unit.
	// Defaults to "": locks are in no index.
	Index string

	// Handoffs is how often in a row a lock is passed from one goroutine of this client to the next, with one write each,
	// while other processes wait in line: at most 1000; a negative number means never. While no other process waits, there
	// is no limit. Defaults to 16.
	Handoffs int

	// OnLost is called, in a goroutine of its own, when a lease is lost, with the cause. It is not called for a lease that
	// Release has tried to give up. It may Close the client. Defaults to nil: the lease's context tells.
	OnLost func(lease *Lease, cause error)

	// Logger gets what people should know. Nothing above debug level contains a name, a key or a payload. REFERENCE.md, in
	// this package's directory, lists the events. Defaults to [slog.Default].
	Logger *slog.Logger

	// MeterProvider gets measurements. REFERENCE.md lists the instruments. Defaults to nil: nothing is measured.
	MeterProvider metric.MeterProvider
}

// Expiry selects how a client may find out that a holder is dead.
type Expiry string

const (
	// RecordedOrObserved takes a holder for dead when its recorded end lies further back than the skew bound, or when it was
	// seen without a renewal for a whole lease.
	RecordedOrObserved Expiry = "recorded-or-observed"
	// ObservedOnly never compares clocks: a holder is taken for dead only after it was seen without a renewal for a whole
	// lease.
	ObservedOnly Expiry = "observed-only"
)

// WithDefaults fills in what is not set, for locks in tables with the given delimiter.
func (c Config) WithDefaults(delimiter byte) Config {
	d := string(rune(delimiter))
	c.Lease = cmp.Or(c.Lease, 20*time.Second).Truncate(time.Millisecond)
	if c.Owner == "" {
		host, err := os.Hostname()
		if err != nil {
			host = "unknown-host"
		}
		c.Owner = fmt.Sprintf("%s/%d", host, os.Getpid())
	}
	c.Retention = cmp.Or(c.Retention, 7*24*time.Hour)
	c.Skew = cmp.Or(c.Skew, 2*time.Second)
	c.Expiry = cmp.Or(c.Expiry, RecordedOrObserved)
	c.AtRisk = cmp.Or(c.AtRisk, 0.5)
	c.StandaloneKey = cmp.Or(c.StandaloneKey, "LOCK"+d+"{name}")
	c.RowKey = cmp.Or(c.RowKey, "LOCK"+d+"{of}")
	c.SessionKey = cmp.Or(c.SessionKey, "SESSION"+d+"{id}")
	c.Handoffs = cmp.Or(c.Handoffs, 16)
	c.Logger = cmp.Or(c.Logger, slog.Default())
	return c
}

// margin is Margin, or its default for a lease.
func (c *Config) margin(lease time.Duration) time.Duration {
	return min(cmp.Or(c.Margin, max(lease/100, 10*time.Millisecond)), lease/2)
}
