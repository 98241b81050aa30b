package session

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock/internal/attempt"
	"github.com/mortise-go/mortise/table"
)

// Others keeps what this process has seen of the sessions of other processes. It is safe for concurrent use.
type Others struct {
	config   Config
	repeater *attempt.Repeater
	marking  singleflight.Group // callers that mark the same session dead share the request

	mu   sync.Mutex // guards the field below; never held during I/O
	seen map[string]sighting
}

// NewOthers returns an Others that has seen no session.
func NewOthers(r *attempt.Repeater, c Config) *Others {
	return &Others{config: c, repeater: r, seen: map[string]sighting{}}
}

// Key returns the key of a session's row. The ID comes from a ticket in a line. ok is false if no session of a client with the same Key can
// have this ID.
func (o *Others) Key(id string) (key keys.Key, ok bool) {
	key = o.config.Key(id)
	return key, o.config.marked(id) && key.Validate() == nil
}

// sighting is what a session has shown so far. The zero value is for a session that was never looked at.
type sighting struct {
	row     Row       // the row with the greatest beat; the zero value if none was found
	missing bool      // the last look found no row, or a malformed one
	since   time.Time // monotonic: when this beat was seen first
	last    time.Time // monotonic: when the session was looked at last
}

// Suspicion is what this process knows about another process's session.
type Suspicion struct {
	// Known is false if the session was not looked at within its lease.
	Known bool
	// Dead reports whether the session is marked dead. If so, its tickets can be removed.
	Dead bool
	// Wait is how long it takes until the session may be marked dead, unless it shows life before; 0 for now.
	Wait time.Duration
	// Silent is for how long the session has shown no renewal.
	Silent time.Duration
	// Age is how long ago the session was looked at.
	Age time.Duration
	// Lease is the session's lease; 0 if it is not known.
	Lease time.Duration

	silent bool // it has shown the same beat for a whole lease
	beat   int64
}

// maxSeen is how many sessions are kept before sessions that were not looked at for two leases (at least 2 s) are dropped.
const maxSeen = 1000

// Saw records what a look found at a session's key: item is nil if there was no row. at is the monotonic time after the look. A look that
// lags behind (one with an older beat) is no sign of life.
func (o *Others) Saw(id string, item table.Item, at time.Time) {
	row, err := o.config.Names.Parse(item)
	o.saw(id, row, err == nil, at)
}

func (o *Others) saw(id string, row Row, found bool, at time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	s, known := o.seen[id]
	if !known && len(o.seen) >= maxSeen {
		maps.DeleteFunc(o.seen, func(_ string, s sighting) bool {
			return at.Sub(s.last) > 2*time.Duration(max(s.row.Lease, 1000))*time.Millisecond
		})
	}
	if s.row.Dead { // a session that is marked dead stays dead
		return
	}
	if found && (row.Dead || s.row.Lease == 0 || row.Beat > s.row.Beat) {
		s.row, s.since = row, at
	}
	s.missing, s.last = !found, at
	o.seen[id] = s
}

// Suspect returns what is known of a session. A session whose row is missing may be marked dead at once: the condition of that write
// finds out whether the look has lagged behind.
func (o *Others) Suspect(id string) Suspicion {
	o.mu.Lock()
	s := o.seen[id]
	o.mu.Unlock()
	c, lease := o.repeater.Clock, time.Duration(s.row.Lease)*time.Millisecond
	look := Suspicion{Known: !s.last.IsZero(), Dead: s.row.Dead, Silent: c.Ago(s.since), Age: c.Ago(s.last), Lease: lease}
	if !look.Known || look.Dead || s.missing {
		return look
	}
	look.Known = look.Age <= lease // otherwise it may have been renewed often since
	look.Wait = max(lease-look.Silent, 0)
	look.silent, look.beat = look.Wait == 0, s.row.Beat
	if until, ok := c.UntilPast(s.row.Expires); ok && s.row.Expires > 0 {
		look.Wait = min(look.Wait, until)
	}
	return look
}

// MarkDead marks a session dead, for good, on one of three conditions: it has no row, or still the beat that it has shown here for a
// whole lease, or its recorded end is past. MarkDead reports whether the session is dead. Callers that mark the same session at the same
// time share the request. The request does not end with any of their contexts. ErrMalformed means that nobody can tell: the row is no
// session's, or the session is that of a client with another Key.
//
// Cost: one conditional write; none if the session is known to be dead.
func (o *Others) MarkDead(ctx context.Context, id string) (dead bool, err error) {
	if o.Suspect(id).Dead {
		return true, nil
	}
	result, err, _ := o.marking.Do(id, func() (any, error) {
		ctx, cancel := o.repeater.Clock.Detached(ctx)
		defer cancel()
		return o.markDead(ctx, id)
	})
	return result == true, err
}

func (o *Others) markDead(ctx context.Context, id string) (dead bool, err error) {
	key, ok := o.Key(id)
	if !ok {
		return false, fmt.Errorf("%w: its ID is that of a client with another Config.SessionKey", ErrMalformed)
	}
	n, c := o.config.Names, o.repeater.Clock
	look := o.Suspect(id)
	_, err = o.repeater.Do(ctx, attempt.MaxTimeout, func(ctx context.Context) error {
		var evidence []table.Cond
		if look.silent {
			evidence = append(evidence, table.Attr(n.Beat).Equal(look.beat))
		}
		if past, ok := c.Past(); ok {
			evidence = append(evidence, table.Attr(n.Expires).Between(1, past))
		}
		cond := table.Attr(n.PK).NotExists()
		if len(evidence) > 0 {
			cond = table.Or(cond, table.And(table.Attr(n.Type).Equal(Type), table.Attr(n.Dead).NotExists(), table.Or(evidence...)))
		}
		return o.repeater.Table.Write(ctx, table.Update(key,
			table.Attr(n.Type).Set(Type),
			table.Attr(n.Dead).Set(c.Stamp().UnixMilli()),
			table.Attr(n.TTL).Set(c.Stamp().Add(o.config.Retention).Unix()+1),
			table.Attr(n.Ask).Remove(), // the mailbox may fill the row to its greatest size
		).If(cond))
	})
	row := Row{Dead: true}
	var failed *table.ConditionError
	if errors.As(err, &failed) { // the session is alive, or somebody else has marked it dead
		row, err = n.Parse(failed.Item)
	}
	if err != nil {
		return false, err
	}
	o.saw(id, row, true, c.Now())
	return row.Dead, nil
}
