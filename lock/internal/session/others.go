package session

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock/internal/attempt"
	"github.com/mortise-go/mortise/lock/internal/clock"
	"github.com/mortise-go/mortise/table"
)

// Others are the sessions of other processes, as far as this one has seen them. It is safe for
// concurrent use.
type Others struct {
	repeater *attempt.Repeater
	names    Names
	key      func(id string) keys.Key

	// skew is how far a recorded end has to lie back, by the clocks that make it least. 0 where
	// recorded ends are not used.
	skew      time.Duration
	retention time.Duration

	marking singleflight.Group // of sessions that are marked dead

	mu   sync.Mutex // guards the following; never held across I/O
	seen map[string]*sighting
}

// sighting is what a session showed last.
type sighting struct {
	row     Row
	missing bool      // no row in order was found
	since   time.Time // monotonic: when this beat was seen first
	last    time.Time // monotonic: when it was seen last
}

// maxSeen is how many sessions are remembered before those that were not seen for long are forgotten.
const maxSeen = 1000

// NewOthers remembers nothing yet.
func NewOthers(r *attempt.Repeater, n Names, key func(id string) keys.Key, skew, retention time.Duration) *Others {
	return &Others{repeater: r, names: n, key: key, skew: skew, retention: retention, seen: map[string]*sighting{}}
}

// Key is the key of a session's row.
func (o *Others) Key(id string) keys.Key { return o.key(id) }

// Saw takes in what a read has found at a session's key; nil for no row. at is the monotonic time
// before the read. Reads that lag behind change nothing.
func (o *Others) Saw(id string, item table.Item, at time.Time) {
	row, err := o.names.Parse(item)
	o.mu.Lock()
	defer o.mu.Unlock()
	s := o.seen[id]
	switch {
	case s == nil:
		o.forget()
		o.seen[id] = &sighting{row: row, missing: err != nil, since: at, last: at}
		return
	case s.row.Dead: // for good
		return
	case err != nil:
		s.missing = true // perhaps the read lags behind: marking it dead finds out
	case row.Dead || s.missing && s.row.Lease == 0 || row.Beat > s.row.Beat:
		s.row, s.missing, s.since = row, false, at
	default:
		s.missing = false
	}
	s.last = at
}

// forget drops what was not seen for long, where there is much. It is called with mu held.
func (o *Others) forget() {
	if len(o.seen) < maxSeen {
		return
	}
	maps.DeleteFunc(o.seen, func(_ string, s *sighting) bool {
		return o.repeater.Clock.Ago(s.last) > 2*time.Duration(max(s.row.Lease, 1000))*time.Millisecond
	})
}

// Suspicion is how a session looks from here.
type Suspicion struct {
	// Known is false where the session was not looked for within its lease.
	Known bool
	// Dead says that it is marked dead: its tickets can be removed.
	Dead bool
	// Wait is how long until it may be marked dead unless it shows life; 0 for now.
	Wait time.Duration
	// Silent is for how long it has shown no renewal.
	Silent time.Duration
	// Lease is its lease; 0 where it is not known.
	Lease time.Duration
}

// Suspect reports how a session looks, going by what was seen of it.
func (o *Others) Suspect(id string) Suspicion {
	o.mu.Lock()
	defer o.mu.Unlock()
	s := o.seen[id]
	if s == nil {
		return Suspicion{}
	}
	lease, silent := time.Duration(s.row.Lease)*time.Millisecond, o.repeater.Clock.Ago(s.since)
	switch {
	case s.row.Dead:
		return Suspicion{Known: true, Dead: true, Silent: silent}
	case s.missing:
		return Suspicion{Known: true, Silent: silent, Lease: lease}
	case o.repeater.Clock.Ago(s.last) > lease: // it may have been renewed often since
		return Suspicion{Lease: lease}
	}
	wait := lease - silent
	until, timed := o.repeater.Clock.Until(time.UnixMilli(s.row.Expires + 1).Add(o.skew))
	if timed && o.skew > 0 && s.row.Expires > 0 {
		wait = min(wait, until)
	}
	return Suspicion{Known: true, Wait: max(wait, 0), Silent: silent, Lease: lease}
}

// past reports whether the end that a session has recorded lies back far enough.
func (o *Others) past(row Row) bool {
	now, timed := o.repeater.Clock.Earliest()
	return timed && o.skew > 0 && row.Expires > 0 && row.Expires < now.Add(-o.skew).UnixMilli()
}

// SeenAlive reports whether a session showed life so lately that its recorded end cannot lie back far
// enough.
func (o *Others) SeenAlive(id string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	s := o.seen[id]
	return s != nil && !s.row.Dead && !s.missing &&
		o.repeater.Clock.Ago(s.last) < time.Duration(s.row.Lease)*time.Millisecond+o.skew
}

// MarkDead marks a session dead, for good, unless it has shown life: since it was last seen here, if it
// was silent for a whole lease, and by the end that it records. It reports whether the session is dead.
// Those who mark one session at the same time share the request, which ends with none of their contexts.
//
// Cost: one conditional write; none where it is known to be dead.
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
	n := o.names
	beat, silent := o.silent(id)
	var h attempt.History
	err = o.repeater.Do(ctx, attempt.MaxTimeout, &h, func(ctx context.Context, start clock.Instant) error {
		var evidence []table.Cond
		if silent {
			evidence = append(evidence, table.Attr(n.Beat).Equal(beat))
		}
		if now, ok := o.repeater.Clock.Earliest(); ok && o.skew > 0 {
			evidence = append(evidence, table.Attr(n.Expires).Between(1, now.Add(-o.skew).UnixMilli()-1))
		}
		cond := table.Attr(n.PK).NotExists()
		if len(evidence) > 0 {
			cond = table.Or(cond, table.And(table.Attr(n.Type).Equal(Type), table.Attr(n.Dead).NotExists(), table.Or(evidence...)))
		}
		return o.repeater.Table.Write(ctx, table.Update(o.key(id),
			table.Attr(n.Type).Set(Type),
			table.Attr(n.Dead).Set(start.Wall.UnixMilli()),
			table.Attr(n.TTL).Set(o.repeater.Clock.Today().Add(o.retention).Unix()+1),
			table.Attr(n.Ask).Remove(), // it may fill the row
		).If(cond))
	})
	var failed *table.ConditionError
	switch {
	case err == nil:
		o.buried(id)
		return true, nil
	case !errors.As(err, &failed):
		return false, err
	}
	row, err := n.Parse(failed.Item)
	if err != nil {
		return false, err
	}
	o.proved(id, row)
	return row.Dead, nil
}

// silent is the beat that a session has shown for a whole lease.
func (o *Others) silent(id string) (beat int64, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	s := o.seen[id]
	if s == nil || s.missing || s.row.Lease == 0 {
		return 0, false
	}
	return s.row.Beat, o.repeater.Clock.Ago(s.since) >= time.Duration(s.row.Lease)*time.Millisecond
}

func (o *Others) buried(id string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := o.repeater.Clock.Now()
	o.seen[id] = &sighting{row: Row{Dead: true}, since: now, last: now}
}

// proved takes in the row that a refused write has met, which is how things are.
func (o *Others) proved(id string, row Row) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := o.repeater.Clock.Now()
	s := o.seen[id]
	if s == nil || s.row.Beat != row.Beat || s.missing || row.Dead {
		o.forget()
		s = &sighting{since: now}
		o.seen[id] = s
	}
	s.row, s.missing, s.last = row, false, now
}
