package lock

import (
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mortise-go/mortise/entity"
	"github.com/mortise-go/mortise/internal/toolkit"
	"github.com/mortise-go/mortise/table"
)

// recordType marks lock rows.
const recordType = toolkit.Lock

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
	attrData          = "data"
	attrEdits         = "edits"
	attrForced        = "forced"
	attrForcedNonce   = "forced_nonce"
	attrForcedFence   = "forced_fence"
)

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

	Ran     int64 `dynamo:"ran,omitempty"`     // of Every: start of the last interval whose run has finished, epoch milliseconds
	Running int64 `dynamo:"running,omitempty"` // of Every: start of the interval whose run has begun and not finished

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
	{attrEdits, true},
	{attrForced, false},
	{attrForcedNonce, false},
	{attrForcedFence, true},
}

func attributeNames() []string {
	names := make([]string, 0, len(attributeTypes))
	for _, a := range attributeTypes {
		names = append(names, a.name)
	}
	return names
}

// checkIndexes refuses a table with an index over what lock rows say of themselves: it would
// list locks among the application's rows, and DynamoDB would refuse payloads that are none of
// its keys.
func checkIndexes(schema table.Schema) error {
	for _, x := range schema.Indexes {
		for _, name := range append(attributeNames(), attrData) {
			if name == x.PK || name == x.SK {
				return fmt.Errorf("%w: attribute %q of lock rows is a key of index %q: give the index another key, "+
					"or open the table for locks a second time, with a Schema without that index", ErrInvalid, name, x.Name)
			}
		}
	}
	return nil
}

// checkTypes refuses attributes of wrong types, which decoding may take for missing.
func checkTypes(item table.Item) error {
	for _, a := range attributeTypes {
		var ok bool
		switch item[a.name].(type) {
		case nil:
			ok = true
		case *types.AttributeValueMemberS:
			ok = !a.number
		case *types.AttributeValueMemberN:
			ok = a.number
		}
		if !ok {
			return malformed("%s has a wrong type", a.name)
		}
	}
	return nil
}

// check refuses what no client of this package has written.
func (r *Record) check(item table.Item) error {
	_, named := item[attrNonce]
	_, beats := item[attrBeat]
	_, hangs := item[attrSession]
	switch {
	case r.Fence < 1 || r.Fence > maxFence:
		return malformed("%s is missing or out of range", attrFence)
	case named && !r.Held():
		return malformed("%s is empty", attrNonce)
	case r.Ran < 0:
		return malformed("%s is negative", attrRan)
	case r.Running < 0:
		return malformed("%s is negative", attrRunning)
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
	if err := checkTypes(item); err != nil {
		return Record{}, err
	}
	r, err := c.records.Decode(item)
	if err != nil {
		return Record{}, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return r, r.check(item)
}

// fenceOf reads the fence alone, of a row that this client has just written.
func fenceOf(item table.Item) (int64, error) {
	if fence, ok := numberOf(item[attrFence]); ok {
		return fence, nil
	}
	return 0, malformed("%s is not an integer", attrFence)
}

// LastRun is the start of the last interval whose run has finished (Every); zero where
// there is none.
func (r Record) LastRun() time.Time { return fromMillis(r.Ran) }

// heldError says who holds the lock that r is the row of.
func heldError(t Target, r *Record) *HeldError {
	return &HeldError{Target: t, Owner: r.Owner, Fence: r.Fence, Since: r.Since(), Until: r.Until(), Nonce: r.Nonce, Data: r.Data}
}

// Records is the entity of lock rows, to read them together with the rows that they stand
// beside (entity.Collect) and to decode them from streams. It refuses to write.
func (c *Client) Records() *entity.Entity[Record] { return c.records }

// Owns says whether an item is one of this package's: a lock's row or a session's.
func (c *Client) Owns(item table.Item) bool {
	return c.records.Owns(item) || c.sessions.Owns(item)
}
