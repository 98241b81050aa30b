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
)

// Record is a lock row as it was read. By the time it is looked at it may have changed.
type Record struct {
	Partition string `dynamo:"-"` // the row's partition key
	Of        string `dynamo:"-"` // the sort key of the row it stands beside, or the lock's name

	Fence         int64  `dynamo:"fence"`                    // of the current or last holder
	Nonce         string `dynamo:"nonce"`                    // of the current acquisition; empty when the lock is free
	Owner         string `dynamo:"owner"`                    // of the current or last holder, for people
	Session       string `dynamo:"session"`                  // of the holder; empty for a lock with a lease of its own
	Lease         int64  `dynamo:"lease"`                    // length in milliseconds
	Beat          int64  `dynamo:"beat"`                     // renewals so far
	Expires       int64  `dynamo:"expires,omitempty"`        // epoch milliseconds; 0 when the holder does not say
	Acquired      int64  `dynamo:"acquired,omitempty"`       // epoch milliseconds
	Released      int64  `dynamo:"released,omitempty"`       // epoch milliseconds
	ReleasedNonce string `dynamo:"released_nonce,omitempty"` // of the last holder that released

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

// check refuses what no client of this package has written.
func (r *Record) check() error {
	switch {
	case r.Fence < 1:
		return fmt.Errorf("%w: fence is missing or below 1", ErrMalformed)
	case !r.Held():
		return nil
	case r.Lease < 1 || r.Lease > MaxFixed.Milliseconds():
		return fmt.Errorf("%w: lease is missing or out of range", ErrMalformed)
	case r.Beat < 0 || r.Expires < 0:
		return fmt.Errorf("%w: negative beat or expires", ErrMalformed)
	}
	return nil
}

// recordOf reads a row that stands at a lock's key.
func (c *Client) recordOf(item table.Item) (Record, error) {
	if !c.isLock(item) {
		return Record{}, ErrNotLock
	}
	r, err := c.records.Decode(item)
	if err != nil {
		return Record{}, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	if _, ok := item[attrBeat].(*types.AttributeValueMemberN); !ok && r.Held() && r.Session == "" {
		return Record{}, fmt.Errorf("%w: beat is missing", ErrMalformed)
	}
	return r, r.check()
}

// heldError says who holds the lock that r is the row of.
func heldError(t Target, r *Record) *HeldError {
	return &HeldError{Target: t, Owner: r.Owner, Fence: r.Fence, Since: r.Since(), Until: r.Until(), Nonce: r.Nonce}
}

// Records is the entity of lock rows, to read them together with the rows that they stand
// beside (entity.Collect) and to decode them from streams. Do not write through it.
func (c *Client) Records() *entity.Entity[Record] { return c.records }
