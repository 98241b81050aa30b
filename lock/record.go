package lock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mortise-go/mortise/entity"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock/internal/lockrow"
	"github.com/mortise-go/mortise/table"
)

// Record is the row of a lock, as it was when it was read. It may have changed since.
type Record struct {
	Partition string `dynamo:"-"` // partition key of the lock's row
	Of        string `dynamo:"-"` // sort key of the row that the lock belongs to, or the lock's name

	Line  []Place `dynamo:"line,omitempty"`  // in order: the first holds the lock, or the first ones (Holders), the others wait
	Fence int64   `dynamo:"fence,omitempty"` // of the holder; if nobody holds the lock, that of its last change; 0 of permits

	Permits int     `dynamo:"permits,omitempty"` // how many can hold at once; 0 for a lock
	Stays   []int64 `dynamo:"stays,omitempty"`   // of permits: the fence of each place
	Next    []int64 `dynamo:"next,omitempty"`    // of permits: the fence that the next ticket gets. It is a list of one element
	Kept    int64   `dynamo:"kept,omitempty"`    // of permits: SetPermits has made them fewer; holders with a fence up to this one hold on

	Renewed int64 `dynamo:"renewed,omitempty"` // when a Fixed lease was renewed last, by this holder or an earlier one, in epoch milliseconds
	Writes  int64 `dynamo:"writes,omitempty"`  // number of the last guarded write; each holder continues the count
	Changed int64 `dynamo:"since,omitempty"`   // when the lock came to this process, or became free, in epoch milliseconds
	Hold    int64 `dynamo:"hold,omitempty"`    // how long a process holds the lock, smoothed, in milliseconds

	Ran     int64 `dynamo:"ran,omitempty"`     // Every: start of the last interval whose run has finished or failed, in epoch milliseconds
	Running int64 `dynamo:"running,omitempty"` // Every: start of the interval whose run has begun and not finished
	Failed  int64 `dynamo:"failed,omitempty"`  // Every: start of the last interval whose run has failed

	Data  Data  `dynamo:"data,omitempty"`  // payload that was set last
	Edits int64 `dynamo:"edits,omitempty"` // number of the last SetData; each holder continues the count

	Forced      string `dynamo:"forced,omitempty"`       // reason of ForceRelease, until the next holder leaves
	ForcedFence int64  `dynamo:"forced_fence,omitempty"` // fence of the last holder that lost the lock by force; of permits, the next fence then
	Ousted      int64  `dynamo:"ousted,omitempty"`       // Shared: how often others have removed a reader

	DeleteAfter time.Time `dynamo:"-"` // when DynamoDB's time to live may delete the row
}

// Place is a place in the line of a lock. The first place holds the lock; with [Permits] or [Shared] the first ones do.
type Place struct {
	Ticket  string        // ID, which no other ticket ever has
	Session string        // of the process that has the place; empty for a [Fixed] lease
	Owner   string        // the first 64 bytes of the client's [Config.Owner]
	Since   time.Time     // when the ticket was taken, by the clock of its process
	Lease   time.Duration // length of a [Fixed] lease; 0 for any other
	Shared  bool          // it is a reader's
}

func placeOf(t lockrow.Ticket) Place {
	return Place{Shared: t.Shared(), Ticket: t.ID, Session: t.Session(), Owner: t.Owner, Since: fromMillis(t.At), Lease: time.Duration(t.Length) * time.Millisecond}
}

// UnmarshalDynamo reads a place from its form in the row.
func (p *Place) UnmarshalDynamo(av types.AttributeValue) error {
	s, ok := av.(*types.AttributeValueMemberS)
	if !ok || s == nil {
		return fmt.Errorf("%w: a place is not a string", ErrMalformed)
	}
	t, err := lockrow.ParseTicket(s.Value)
	*p = placeOf(t)
	return err
}

// MarshalDynamo is the counterpart of UnmarshalDynamo.
func (p Place) MarshalDynamo() (types.AttributeValue, error) {
	return &types.AttributeValueMemberS{Value: p.inLine().String()}, nil
}

func (p Place) inLine() lockrow.Ticket {
	return lockrow.Ticket{ID: p.Ticket, At: p.Since.UnixMilli(), Length: p.Lease.Milliseconds(), Owner: p.Owner}
}

// row is the row that the record was decoded from, as far as it tells who holds the lock, and since when. It may be malformed: Records
// does not check what it decodes.
func (r Record) row() *lockrow.Row {
	row := &lockrow.Row{Permits: int64(max(r.Permits, 0)), Stays: r.Stays, Kept: r.Kept, Since: r.Changed, Renewed: r.Renewed}
	for _, p := range r.Line {
		row.Line = append(row.Line, p.inLine())
	}
	return row
}

// Held reports whether somebody holds the lock. The holder's lease may have ended.
func (r Record) Held() bool { return len(r.Line) > 0 }

// Holder returns the first place in the line; the zero Place if nobody holds the lock.
func (r Record) Holder() (first Place) {
	if r.Held() {
		first = r.Line[0]
	}
	return first
}

// Holders returns all places that hold: the first one, or as many as there are permits, or all readers before the first writer.
func (r Record) Holders() []Place { return r.Line[:r.row().Holders()] }

// Waiting returns the number of places that wait behind those that hold.
func (r Record) Waiting() int { return len(r.Line) - len(r.Holders()) }

// Since returns when the holder got the lock, by its own clock or that of the holder before; zero if nobody holds it. Of
// permits, it is when the first holder entered the line.
func (r Record) Since() time.Time {
	if !r.Held() {
		return time.Time{}
	}
	return fromMillis(r.row().HeldSince(0))
}

// Until returns when a [Fixed] lease ends; zero for any other holder, whose session row has its end ([Session.Expires]).
func (r Record) Until() time.Time { return fromMillis(r.row().Ends()) }

// LastRun returns the start of the last interval of [Client.Every] that was run, also if the run has failed for good;
// zero if there is none.
func (r Record) LastRun() time.Time { return fromMillis(r.Ran) }

// LastFailed returns the start of the last interval of [Client.Every] whose run has failed for good; zero if there is
// none. If it equals [Record.LastRun], the last run has failed.
func (r Record) LastFailed() time.Time { return fromMillis(r.Failed) }

// recordOf decodes the row at a lock's key. It refuses a row that is not a lock, or that no client has written.
func (c *Client) recordOf(item table.Item) (Record, error) {
	if _, err := c.layout.names.Parse(item); err != nil {
		return Record{}, err
	}
	r, err := c.layout.records.Decode(item)
	switch {
	case errors.Is(err, keys.ErrNoMatch): // the partition key can be any, so it is the sort key
		return Record{}, fmt.Errorf("%w: a client with another Config.RowKey wrote it", ErrMalformed)
	case err != nil:
		return Record{}, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return r, nil
}

// Inspect reads the row of a lock, consistently, without acquiring the lock. If the lock was never acquired, or its row
// was deleted, the error matches [table.ErrNotFound].
//
// Cost: one consistent read.
func (c *Client) Inspect(ctx context.Context, target Target) (Record, error) {
	key, err := c.key(target)
	if err != nil {
		return Record{}, wrap("inspect", err)
	}
	item, err := c.table.Get(c.within(ctx), key, true)
	if err != nil {
		return Record{}, wrap("inspect", err)
	}
	r, err := c.recordOf(item)
	return r, wrap("inspect", err)
}

// AttributePrefix returns [Config.AttributePrefix], for packages that keep rows of their own beside locks.
func (c *Client) AttributePrefix() string { return c.config.AttributePrefix }

// Records returns the entity of lock rows: to read them together with the rows that they belong to ([entity.Collect]),
// and to decode them from streams. It refuses to write.
func (c *Client) Records() *entity.Entity[Record] { return c.layout.records }

// Owns reports whether an item is a row of this package: that of a lock or of a session.
func (c *Client) Owns(item table.Item) bool {
	return c.layout.records.Owns(item) || c.layout.sessions.Owns(item)
}

// sessionRecord is a session's row as an entity. It gives the key, decodes rows for Sessions, and lets other programs skip the row.
type sessionRecord struct {
	ID          string    `dynamo:"-"`
	Owner       string    `dynamo:"owner"`
	Lease       int64     `dynamo:"lease"`
	Beat        int64     `dynamo:"beat"`
	Expires     int64     `dynamo:"expires,omitempty"`
	Dead        int64     `dynamo:"dead,omitempty"`
	Ask         []string  `dynamo:"ask,set,omitempty"`
	DeleteAfter time.Time `dynamo:"-"`
}
