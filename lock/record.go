package lock

import (
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mortise-go/mortise/entity"
	"github.com/mortise-go/mortise/table"
)

// recordType marks lock rows.
const recordType = "Lock"

// maxSessionID bounds the ID of a session in bytes: one that stands in a row goes into a key.
const maxSessionID = 256

// Attributes of a lock row, besides those that the table's scheme names.
const (
	attrFence         = "fence"
	attrNonce         = "nonce"
	attrOwner         = "owner"
	attrSession       = "session"
	attrLease         = "lease"
	attrBeat          = "beat"
	attrExpires       = "expires"
	attrAcquired      = "acquired"
	attrReleased      = "released"
	attrReleasedNonce = "released_nonce"
	attrRan           = "ran"
	attrRunning       = "running"
	attrFailed        = "failed"
	attrData          = "data"
	attrEdits         = "edits"
	attrForced        = "forced"
	attrForcedNonce   = "forced_nonce"
	attrForcedFence   = "forced_fence"
)

// names are those of the attributes of lock and session rows, but for the scheme's: all begin with
// what is configured as their prefix.
type names string

// attr is an attribute, for expressions.
func (n names) attr(name string) table.Operand { return table.Attr(string(n) + name) }

// of is the value of an attribute in a row; nil where it has none.
func (n names) of(item table.Item, name string) types.AttributeValue { return item[string(n)+name] }

// Record is a lock row as it was read. By the time it is looked at it may have changed.
type Record struct {
	Partition string `dynamo:"-"` // the row's partition key
	Of        string `dynamo:"-"` // the sort key of the row it stands beside, or the lock's name

	Fence         int64  `dynamo:"fence"`                    // of the current or last holder
	Nonce         string `dynamo:"nonce"`                    // of the current acquisition; empty when the lock is free
	Owner         string `dynamo:"owner"`                    // of the current or last holder, for people
	Session       string `dynamo:"session"`                  // of the holder, or whom the lock was taken from by force; empty for a lease of its own
	Lease         int64  `dynamo:"lease"`                    // length in milliseconds
	Beat          int64  `dynamo:"beat"`                     // renewals so far
	Expires       int64  `dynamo:"expires,omitempty"`        // epoch milliseconds; 0 when the holder does not say
	Acquired      int64  `dynamo:"acquired,omitempty"`       // epoch milliseconds
	Released      int64  `dynamo:"released,omitempty"`       // epoch milliseconds
	ReleasedNonce string `dynamo:"released_nonce,omitempty"` // of the last holder that released

	Ran     int64 `dynamo:"ran,omitempty"`     // of Every: start of the last interval whose run has finished, or failed, epoch milliseconds
	Running int64 `dynamo:"running,omitempty"` // of Every: start of the interval whose run has begun and not finished
	Failed  int64 `dynamo:"failed,omitempty"`  // of Every: start of the last interval whose run has failed

	Data  Data  `dynamo:"data,omitempty"`  // payload of the current or last holder that set one
	Edits int64 `dynamo:"edits,omitempty"` // how often the holder has called SetData

	Forced      string `dynamo:"forced,omitempty"`       // why the lock was taken from its last holder (ForceRelease), until the next acquisition
	ForcedNonce string `dynamo:"forced_nonce,omitempty"` // of the last ForceRelease
	ForcedFence int64  `dynamo:"forced_fence,omitempty"` // that the last ForceRelease has met

	DeleteAfter time.Time `dynamo:"-"` // when time to live may delete the row
}

// Held says whether the row names a holder, whose lease may have ended.
func (r Record) Held() bool { return r.Nonce != "" }

// Since is when the lock was last acquired, by the holder's clock.
func (r Record) Since() time.Time { return fromMillis(r.Acquired) }

// Until is when the holder says that its lease ends; zero when it does not say.
func (r Record) Until() time.Time { return fromMillis(r.Expires) }

func fromMillis(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

// attributeTypes are the types of a lock row's attributes; data may be of any.
var attributeTypes = [...]struct {
	name   string
	number bool
}{
	{attrFence, true},
	{attrNonce, false},
	{attrOwner, false},
	{attrSession, false},
	{attrLease, true},
	{attrBeat, true},
	{attrExpires, true},
	{attrAcquired, true},
	{attrReleased, true},
	{attrReleasedNonce, false},
	{attrRan, true},
	{attrRunning, true},
	{attrFailed, true},
	{attrEdits, true},
	{attrForced, false},
	{attrForcedNonce, false},
	{attrForcedFence, true},
}

// all are the attributes of lock rows.
func (n names) all() []string {
	list := []string{string(n) + attrData}
	for _, a := range attributeTypes {
		list = append(list, string(n)+a.name)
	}
	return list
}

// check refuses names that are something else in a table. An index over what lock rows say of
// themselves would list locks among the application's rows, and DynamoDB would refuse payloads
// that are none of its keys.
func (n names) check(schema table.Schema) error {
	taken := map[string]string{}
	for _, x := range schema.Indexes {
		taken[x.PK], taken[x.SK] = "a key of index "+x.Name, "a key of index "+x.Name
	}
	s := schema.Keys
	taken[s.PK], taken[s.SK], taken[s.Type], taken[s.TTL] = "the partition key", "the sort key", "the type", "the time to live"
	for _, name := range append(n.all(), string(n)+attrDead, string(n)+attrAsk) {
		if what, ok := taken[name]; ok {
			return fmt.Errorf("%w: attribute %q of lock and session rows is %s of the table: "+
				"set Config.AttributePrefix, the same for all clients of the table", ErrInvalid, name, what)
		}
	}
	return nil
}

// checkTypes refuses attributes of wrong types, which decoding may take for missing.
func (n names) checkTypes(item table.Item) error {
	for _, a := range attributeTypes {
		var ok bool
		switch n.of(item, a.name).(type) {
		case nil:
			ok = true
		case *types.AttributeValueMemberS:
			ok = !a.number
		case *types.AttributeValueMemberN:
			ok = a.number
		}
		if !ok {
			return malformed("%s has a wrong type", string(n)+a.name)
		}
	}
	return nil
}

// check refuses what no client of this package has written.
func (r *Record) check(n names, item table.Item) error {
	named := n.of(item, attrNonce) != nil
	beats := n.of(item, attrBeat) != nil
	hangs := n.of(item, attrSession) != nil
	switch {
	case r.Fence < 1 || r.Fence > maxFence:
		return malformed("%s is missing or out of range", attrFence)
	case named && !r.Held():
		return malformed("%s is empty", attrNonce)
	case r.Ran < 0:
		return malformed("%s is negative", attrRan)
	case r.Running < 0:
		return malformed("%s is negative", attrRunning)
	case r.Failed < 0:
		return malformed("%s is negative", attrFailed)
	case !r.Held():
		return nil
	case r.Lease < 1 || r.Lease > MaxFixed.Milliseconds():
		return malformed("%s is missing or out of range", attrLease)
	case r.Beat < 0 || !beats && r.Session == "":
		return malformed("%s is missing or negative", attrBeat)
	case hangs && r.Session == "":
		return malformed("%s is empty", attrSession) // nobody could ever take it
	case r.Expires < 0:
		return malformed("%s is negative", attrExpires)
	case len(r.Session) > maxSessionID:
		return malformed("%s is too long", attrSession)
	}
	return nil
}

func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrMalformed}, args...)...)
}

// recordOf reads a row that stands at a lock's key.
func (c *Client) recordOf(item table.Item) (Record, error) {
	if !c.isLock(item) {
		return Record{}, ErrNotLock
	}
	if err := c.checkTypes(item); err != nil {
		return Record{}, err
	}
	r, err := c.records.Decode(item)
	if err != nil {
		return Record{}, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return r, r.check(c.names, item)
}

// fenceOf reads the fence alone, of a row that this client has just written.
func (n names) fenceOf(item table.Item) (int64, error) {
	if fence, ok := numberOf(n.of(item, attrFence)); ok {
		return fence, nil
	}
	return 0, malformed("%s is not an integer", attrFence)
}

// LastRun is the start of the last interval whose run has finished, or has failed for good
// (Every); zero where there is none.
func (r Record) LastRun() time.Time { return fromMillis(r.Ran) }

// LastFailed is the start of the last interval whose run has failed for good (Every); zero where
// there is none. Where it equals LastRun the last run has failed.
func (r Record) LastFailed() time.Time { return fromMillis(r.Failed) }

// heldError says who holds the lock that r is the row of.
func heldError(t Target, r *Record) *HeldError {
	return &HeldError{Target: t, Owner: r.Owner, Fence: r.Fence, Since: r.Since(), Until: r.Until(), Nonce: r.Nonce, Data: r.Data}
}

// AttributePrefix is Config.AttributePrefix, for packages that keep rows of their own beside locks.
func (c *Client) AttributePrefix() string { return c.config.AttributePrefix }

// Records is the entity of lock rows, to read them together with the rows that they stand
// beside (entity.Collect) and to decode them from streams. It refuses to write.
func (c *Client) Records() *entity.Entity[Record] { return c.records }

// Owns says whether an item is one of this package's: a lock's row or a session's.
func (c *Client) Owns(item table.Item) bool {
	return c.records.Owns(item) || c.sessions.Owns(item)
}
