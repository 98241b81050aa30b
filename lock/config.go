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

// Bounds of the settings in [Config] and of [Fixed].
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
	MaxReason = 256 // bytes, of a reason for ForceRelease

	maxPrefix = 64 // bytes, of attribute names

	maxIndexName = 255 // bytes (Developer Guide, "Naming rules")

	// MaxData is the greatest size of a payload, in bytes as DynamoDB counts the size of values (Developer Guide,
	// "DynamoDB item sizes and formats").
	MaxData = 4096
)

// Config has the settings of a [Client]. The zero value is useful. All fields except functions, Logger and
// MeterProvider can also come from JSON ([Config.UnmarshalJSON]) and from the environment ([ConfigFromEnv]), with the
// same names and the same rules.
type Config struct {
	// Lease is how long a lock stays held without a renewal: 1 s to 1 h, rounded down to whole milliseconds. It is renewed
	// every quarter of that time. With a shorter lease, others get the lock of a crashed process sooner. With a longer one, a
	// process survives longer outages and pauses. Defaults to 20 s.
	Lease time.Duration

	// Owner is a name of the process for people who read the lock's row, at most 256 bytes. A ticket keeps the first 64
	// bytes. It is never compared. Defaults to the host's name and the process ID.
	Owner string

	// Retention is how long the row of a free lock is kept after its last change: one day to 100 years. Then DynamoDB's
	// time to live may delete the row. (The row holds the fence, so it has to outlive late copies of old requests. No
	// request is applied more than some minutes after it was signed.) Rows of [Client.Every] are kept longer,
	// by two of its intervals; if other calls acquire the same lock, set Retention to at least two intervals. Defaults
	// to 7 days.
	Retention time.Duration

	// Skew is the error of clocks that Mortise tolerates: 1 s to 1 h. A lease counts as ended when the end that its holder
	// has recorded is further in the past than this. A client that finds its own clock off by more than Skew neither uses
	// nor records such times. Defaults to 2 s; DynamoDB tells its time in whole seconds.
	Skew time.Duration

	// Expiry selects how a client may conclude that a holder is dead. Defaults to [RecordedOrObserved].
	Expiry Expiry

	// Margin makes each lease shorter for its holder than for others, since clocks run at different rates: up to half
	// of Lease. Defaults to 1 % of the lease, at least 10 ms.
	Margin time.Duration

	// AtRisk is the part of the session's lease that is left when OnAtRisk is called: more than 0, less than 1. The
	// session is renewed every quarter of the lease, so 0.5 means that a renewal is overdue. Above 0.5, OnAtRisk can also be
	// called although all renewals succeed: before the next one is due. Defaults to 0.5.
	AtRisk float64

	// OnAtRisk is called with true when the part AtRisk of the session's lease is left and no renewal has succeeded. It
	// is called with false after the next renewal; if the session ends before that, when the client opens the next one. It
	// runs in the client's own goroutine, or in a call that opens a session, and must not block. Defaults to nil.
	OnAtRisk func(atRisk bool)

	// Backoff sets the times between a waiter's looks at the lock's row, which are limited to between 10 ms and a quarter
	// of Lease. A BackOff is that of github.com/cenkalti/backoff/v4. If it returns [backoff.Stop], the wait ends with a
	// [*HeldError]; in an outage in which the holder was not seen, with the error of the last request. A waiter makes
	// additional looks: when the holder's lease may have ended, and when it is time to ask the holder. A goroutine that waits
	// behind another one of this client makes no looks, so its BackOff is not asked before its turn has come. To limit the
	// time of a wait, use a context. Defaults to nil: the place in the line sets these times.
	Backoff func() backoff.BackOff

	// MaxHold is the option [MaxHold] for all locks that are acquired without it: at least 100 ms. Defaults to 0: no
	// limit.
	MaxHold time.Duration

	// HomeRegion is the one region in which locks are acquired, such as "eu-west-1", for a table with replicas in other
	// regions: there, two regions could both grant a lock. A client in another region is refused. Without HomeRegion, a
	// table with replicas is refused; to find out, the first call that has to know sends one DescribeTable, unless Ensure,
	// Plan or Verify of the same Table has done so.
	//
	// A global table that is strongly consistent across regions (MRSC) supports neither transactions nor time to live.
	// There, [Lease.Write], [Lease.Commit], [Lease.Guard], [Client.View], and [Client.AcquireAll] of several locks cannot
	// work, and the rows of locks are never deleted. Defaults to "".
	HomeRegion string

	// StandaloneKey is the template of the partition key of locks with a name ([Name]). It has one field, name. All clients
	// of the table need the same StandaloneKey: with another one, the same name is another lock, and nobody notices.
	// Defaults to "LOCK#{name}", with the scheme's prefix and delimiter.
	StandaloneKey string

	// RowKey is the template of the sort key of all lock rows. It has one field, of: the sort key of the row that the
	// lock belongs to ([Beside]), or the name of the lock ([Name]). All clients of the table need the same RowKey: with
	// another one, the same target is another lock, and nobody notices. Defaults to "LOCK#{of}", with the scheme's delimiter.
	RowKey string

	// SessionKey is the template of both keys of session rows. It has one field, id. All clients of the table need the same
	// SessionKey: a client cannot find out whether a holder with another one is alive. It waits for such a holder for a
	// lease, and then returns [ErrMalformed]. Defaults to "SESSION#{id}", with the scheme's prefix and delimiter.
	SessionKey string

	// AttributePrefix is the beginning of the attribute names in lock and session rows, except those that the table's
	// scheme names. Set it if one of the names has another meaning in the table. With "lock_" the payload is in
	// lock_data, and an index over an attribute called data does not contain the locks. All clients of the table need
	// the same prefix: a client refuses rows with another one ([ErrMalformed]). Package migrations uses it for its
	// records, too. At most 64 bytes of UTF-8. Defaults to "".
	AttributePrefix string

	// Index is the name of a global index in the table's Schema for [Client.List] of [Index]. It contains the locks
	// that somebody holds or waits for, and no others. Its keys are strings, and it projects all attributes of lock
	// rows. Its partition keys are "LOCKS#00" to "LOCKS#15", with the scheme's prefix and delimiter; the lock's key
	// selects one. (A single partition would limit all locks of the table to 1,000 write units a second.) All clients
	// of the table need the same Index. Otherwise locks that only clients without it hold are missing, until a client with
	// it enters their line. Rows of free locks then stay in the index; List leaves them out. Each write to a row that is in
	// the index, enters it or leaves it costs one more write unit. Defaults to "": no index.
	Index string

	// Handoffs is how often in a row one goroutine of this client may pass a lock to the next, with one write each,
	// while other processes wait in line: at most 1000. A negative number means never. While no other process waits
	// there is no limit. Passes by [Lease.Commit] always count, since a commit does not learn whether others wait.
	// Defaults to 16.
	Handoffs int

	// OnLost is called when a lease is lost, with the cause. It runs in a goroutine of its own and may call Close. It
	// is not called for a lease after a call of Release. Defaults to nil; the lease's context ends in any case.
	OnLost func(lease *Lease, cause error)

	// Logger gets the events that REFERENCE.md lists. No record above debug level contains a name, a key or a payload.
	// Defaults to [slog.Default].
	Logger *slog.Logger

	// MeterProvider gets the measurements that REFERENCE.md lists. Defaults to nil: nothing is measured.
	MeterProvider metric.MeterProvider
}

// Expiry selects how a client may conclude that a holder is dead.
type Expiry string

const (
	// RecordedOrObserved accepts two kinds of evidence: the end that the holder has recorded is further in the past
	// than [Config.Skew]; or the client has seen no renewal for a whole lease.
	RecordedOrObserved Expiry = "recorded-or-observed"
	// ObservedOnly never compares clocks: only a whole lease without a renewal, as the client has seen it, is evidence.
	ObservedOnly Expiry = "observed-only"
)

func (c Config) withDefaults(delimiter byte) Config {
	d := string(rune(delimiter))
	c.Lease = cmp.Or(c.Lease, 20*time.Second)
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

// own is how long a lease lasts for its holder: less than for others, by the margin.
func (c *Config) own(lease time.Duration) time.Duration {
	return lease - min(cmp.Or(c.Margin, max(lease/100, 10*time.Millisecond)), lease/2)
}
