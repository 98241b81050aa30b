package lock

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mortise-go/mortise/entity"
	"github.com/mortise-go/mortise/lock/internal/lockrow"
	"github.com/mortise-go/mortise/table"
)

// Record is a lock's row as it was read. By the time it is looked at it may have changed.
type Record struct {
	Partition string `dynamo:"-"` // the row's partition key
	Of        string `dynamo:"-"` // the sort key of the row it stands beside, or the lock's name

	Line  []Place `dynamo:"line,omitempty"`  // in order: the first one holds (Holders), the others wait
	Fence int64   `dynamo:"fence,omitempty"` // of the holder, or the last change; 0 of permits

	Permits int     `dynamo:"permits,omitempty"` // how many may hold at once; 0 for a lock
	Stays   []int64 `dynamo:"stays,omitempty"`   // of permits: the fence of each place
	Next    []int64 `dynamo:"next,omitempty"`    // of permits: the fence of the next place, in a list

	Renewed int64 `dynamo:"renewed,omitempty"` // when a lease of its own was renewed last (Fixed), the holder's or one before it, epoch milliseconds
	Writes  int64 `dynamo:"writes,omitempty"`  // number of the last guarded write, counted on from holder to holder
	Changed int64 `dynamo:"since,omitempty"`   // since when the first place is free, or its process's, epoch milliseconds
	Hold    int64 `dynamo:"hold,omitempty"`    // how long a process has held the lock lately, in milliseconds

	Ran     int64 `dynamo:"ran,omitempty"`     // of Every: start of the last interval whose run has finished, or failed, epoch milliseconds
	Running int64 `dynamo:"running,omitempty"` // of Every: start of the interval whose run has begun and not finished
	Failed  int64 `dynamo:"failed,omitempty"`  // of Every: start of the last interval whose run has failed

	Data  Data  `dynamo:"data,omitempty"`  // payload of the last holder that set one
	Edits int64 `dynamo:"edits,omitempty"` // number of the last SetData, counted on from holder to holder

	Forced      string `dynamo:"forced,omitempty"`       // why the last change took the lock by force (ForceRelease); empty where it did not
	ForcedFence int64  `dynamo:"forced_fence,omitempty"` // of the last holder that lost it by force; of permits, the next one then
	Ousted      int64  `dynamo:"ousted,omitempty"`       // how often others have taken readers out of the line

	DeleteAfter time.Time `dynamo:"-"` // when time to live may delete the row
}

// Place is a place in the line of a lock. The first one holds it, or the first ones (Permits, Shared).
type Place struct {
	Ticket  string        // tells it from all others, for ever
	Session string        // of the process whose place it is; empty for a lease of its own (Fixed)
	Owner   string        // Config.Owner of the client, at most 64 bytes of it
	Since   time.Time     // when it was taken, by the clock of its process
	Lease   time.Duration // length of a lease of its own; 0 under a session
	Shared  bool          // of a reader
}

func placeOf(t lockrow.Ticket) Place {
	return Place{Shared: t.Shared(), Ticket: t.ID, Session: t.Session(), Owner: t.Owner, Since: fromMillis(t.At), Lease: time.Duration(t.Length) * time.Millisecond}
}

// UnmarshalDynamo reads a place as the row keeps it.
func (p *Place) UnmarshalDynamo(av types.AttributeValue) error {
	s, ok := av.(*types.AttributeValueMemberS)
	if !ok {
		return fmt.Errorf("%w: a place is not a string", ErrMalformed)
	}
	t, err := lockrow.ParseTicket(s.Value)
	*p = placeOf(t)
	return err
}

// MarshalDynamo is UnmarshalDynamo's counterpart.
func (p Place) MarshalDynamo() (types.AttributeValue, error) {
	t := lockrow.Ticket{ID: p.Ticket, At: p.Since.UnixMilli(), Length: p.Lease.Milliseconds(), Owner: p.Owner}
	return &types.AttributeValueMemberS{Value: t.String()}, nil
}

// Held reports whether somebody holds the lock. The lease may have ended.
func (r Record) Held() bool { return len(r.Line) > 0 }

// Holder is the first place in the line; zero where nobody holds the lock.
func (r Record) Holder() (first Place) {
	if r.Held() {
		first = r.Line[0]
	}
	return first
}

// Holders are all places that hold: the first one, or as many as there are permits, or all readers before the first writer.
func (r Record) Holders() []Place {
	row := lockrow.Row{Permits: int64(r.Permits), Line: make([]lockrow.Ticket, len(r.Line))}
	for i, p := range r.Line {
		row.Line[i].ID = p.Ticket
	}
	return r.Line[:row.Holders()]
}

// Waiting is how many wait behind those who hold.
func (r Record) Waiting() int { return len(r.Line) - len(r.Holders()) }

// Since is when the holder came to hold the lock, by its clock or that of the one before it; zero where nobody holds it. Of permits,
// it is when the first holder came to the line.
func (r Record) Since() time.Time {
	switch {
	case !r.Held():
		return time.Time{}
	case r.Permits > 0:
		return r.Line[0].Since
	}
	return fromMillis(max(r.Line[0].Since.UnixMilli(), r.Changed))
}

// Until is when the holder's lease ends where it has one of its own (Fixed); zero under a session, whose row tells.
func (r Record) Until() time.Time {
	h := r.Holder()
	if h.Lease == 0 {
		return time.Time{}
	}
	return fromMillis(max(h.Since.UnixMilli(), r.Changed, r.Renewed)).Add(h.Lease)
}

// LastRun is the start of the last interval whose run has finished, or has failed for good (Every); zero where there is none.
func (r Record) LastRun() time.Time { return fromMillis(r.Ran) }

// LastFailed is the start of the last interval whose run has failed for good (Every); zero where there is
// none. Where it equals LastRun the last run has failed.
func (r Record) LastFailed() time.Time { return fromMillis(r.Failed) }

// recordOf reads a row that stands at a lock's key. It refuses rows that no client has written.
func (c *Client) recordOf(item table.Item) (Record, error) {
	if _, err := c.layout.names.Parse(item); err != nil {
		return Record{}, err
	}
	r, err := c.layout.records.Decode(item)
	if err != nil {
		return Record{}, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return r, nil
}

// Inspect reads a lock without acquiring it, consistently. A lock that was never acquired, or whose row has
// been deleted, is table.ErrNotFound.
//
// Cost: one consistent read.
func (c *Client) Inspect(ctx context.Context, target Target) (Record, error) {
	key, err := c.key(target)
	if err != nil {
		return Record{}, wrap("inspect", err)
	}
	item, err := c.table.Get(ctx, key, true)
	if err != nil {
		return Record{}, wrap("inspect", err)
	}
	r, err := c.recordOf(item)
	return r, wrap("inspect", err)
}

// AttributePrefix is Config.AttributePrefix, for packages that keep rows of their own beside locks.
func (c *Client) AttributePrefix() string { return c.config.AttributePrefix }

// Records is the entity of lock rows, to read them together with the rows that they stand beside
// (entity.Collect) and to decode them from streams. It refuses to write.
func (c *Client) Records() *entity.Entity[Record] { return c.layout.records }

// Owns reports whether an item is one of this package's: the row of a lock, or of a session.
func (c *Client) Owns(item table.Item) bool {
	return c.layout.records.Owns(item) || c.layout.sessions.Owns(item)
}

// sessionRecord is a session's row, as an entity: it is defined so that other programs step over it.
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
