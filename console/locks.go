package console

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"math/bits"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/mortise-go/mortise/entity"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
)

const (
	maxLocks     = 2000 // kept in memory; others are counted
	batch        = 50   // rows read again with one request
	refreshEvery = 2 * time.Second
	publishEvery = time.Second
	leastPass    = time.Second // between the beginnings of two passes
	afterFailure = 5 * time.Second
)

// lockList is what was known of all locks at one moment.
type lockList struct {
	records []lock.Record // held or awaited, in the order in which they are shown
	held    int           // those included that are not in records
	free    int           // rows of locks that nobody holds
	bad     int           // rows that are not in order

	sessions map[string]sighting // by ID, of those that were looked at

	index  bool          // locks are found in an index, else by reading the whole table
	passes int           // complete ones so far
	took   time.Duration // the last one
	err    error         // of the last read, nil where it succeeded
}

// sighting is a session as it was seen.
type sighting struct {
	lock.Session
	found bool // there is a row
}

// census finds all locks, again and again, and reads those that are shown first more often.
type census struct {
	client *lock.Client
	source lock.Source

	mu    sync.Mutex // guards the following; never held across I/O
	list  lockList   // but for records
	known map[keys.Key]lock.Record
	poked chan struct{} // something has changed that readers wait for
}

// place is where a lock is shown and kept: unlike a row's key, it can be had from a Record.
func place(r *lock.Record) keys.Key { return keys.NewKey(r.Partition, r.Of) }

// readLocks is the feed of locks and sessions.
func (c *Console) readLocks(ctx context.Context, publish func(*lockList)) {
	s := &census{client: c.config.Locks, source: lock.Index(), known: map[keys.Key]lock.Record{}, poked: make(chan struct{}, 1)}
	s.list.index, s.list.sessions = true, map[string]sighting{}
	var both sync.WaitGroup
	defer both.Wait()
	both.Go(func() { s.discover(ctx) })
	both.Go(func() { s.refresh(ctx) })
	tick := time.NewTicker(publishEvery)
	defer tick.Stop()
	for {
		select {
		case <-s.poked:
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		publish(s.snapshot())
	}
}

// poke has the present state published at once.
func (s *census) poke() {
	select {
	case s.poked <- struct{}{}:
	default:
	}
}

// sleep waits; false where ctx has ended.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// discover finds the locks, one pass after the other.
func (s *census) discover(ctx context.Context) {
	for {
		began := time.Now()
		err := s.pass(ctx)
		if errors.Is(err, lock.ErrInvalid) && s.list.index { // there is no index of locks
			s.mu.Lock()
			s.source, s.list.index = lock.WholeTable(), false
			s.mu.Unlock()
			continue
		}
		s.mu.Lock()
		s.list.err = err
		wait := afterFailure
		if err == nil {
			s.list.took = time.Since(began)
			wait = leastPass - s.list.took
		}
		s.mu.Unlock()
		s.poke()
		if !sleep(ctx, wait) {
			return
		}
	}
}

// pass finds all locks once. Until its end those that it has not met stay as they were.
func (s *census) pass(ctx context.Context) error {
	met := map[keys.Key]bool{}
	held, free, bad := 0, 0, 0
	for r, err := range s.client.List(ctx, s.source) {
		switch {
		case errors.Is(err, lock.ErrMalformed):
			bad++
		case err != nil:
			return err
		case !r.Held():
			free++
		default:
			held++
			met[place(&r)] = true
			s.keep(r)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.known, func(at keys.Key, _ lock.Record) bool { return !met[at] })
	s.list.held, s.list.free, s.list.bad = held, free, bad
	s.list.passes++
	return nil
}

// keep takes a lock into the list, if there is room.
func (s *census) keep(r lock.Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := place(&r)
	if old, known := s.known[at]; known && old.Fence > r.Fence || !known && len(s.known) >= maxLocks {
		return // a read that lags behind, or no room
	}
	if s.known[at] = r; s.list.passes == 0 {
		s.list.held = len(s.known)
	}
}

// refresh reads the locks again that are shown first, where a pass takes longer than that, and in turn the sessions of all
// that were found.
func (s *census) refresh(ctx context.Context) {
	asked := 0 // sessions so far
	for turn := 0; sleep(ctx, refreshEvery); turn++ {
		var err error
		if ids := s.sessionIDs(); turn%2 == 1 && len(ids) > 0 {
			first := asked % len(ids)
			some := ids[first:min(first+batch, len(ids))]
			asked = (first + len(some)) % len(ids)
			err = s.readSessions(ctx, some)
		} else {
			err = s.readAgain(ctx)
		}
		if err != nil && !sleep(ctx, afterFailure) {
			return
		}
		s.poke()
	}
}

// sessionIDs are the sessions on which the known tickets depend. It forgets the others.
func (s *census) sessionIDs() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	ids := map[string]bool{}
	for _, r := range s.known {
		for _, p := range r.Line {
			if p.Session != "" {
				ids[p.Session] = true
			}
		}
	}
	maps.DeleteFunc(s.list.sessions, func(id string, _ sighting) bool { return !ids[id] })
	return slices.Sorted(maps.Keys(ids))
}

func (s *census) readSessions(ctx context.Context, ids []string) error {
	seen, err := look(ctx, s.client, ids)
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.Copy(s.list.sessions, seen)
	return err
}

// readAgain reads the locks that are shown first.
func (s *census) readAgain(ctx context.Context) error {
	s.mu.Lock()
	first, fast := s.sorted(), s.list.passes > 0 && s.list.took <= refreshEvery
	s.mu.Unlock()
	first = first[:min(len(first), batch)]
	if len(first) == 0 || fast {
		return nil
	}
	found, err := s.client.Records().BatchGet(ctx, first)
	unread := map[int]bool{}
	var some *entity.BatchError[lock.Record]
	if errors.As(err, &some) {
		for _, f := range some.Failed {
			unread[f.Index] = true
		}
		err = nil // the next pass counts them, or fails, too
	}
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, r := range found {
		at := place(&first[i])
		switch old, known := s.known[at]; {
		case !known || unread[i] || r != nil && r.Fence < old.Fence: // not read, or by a read that lags behind
		case r == nil || !r.Held():
			delete(s.known, at)
			s.list.held--
		default:
			s.known[at] = *r
		}
	}
	return nil
}

// sorted are the known locks: those that many wait for come first. A line that grows or shrinks by a few stays where it
// is, so that readers can follow it.
func (s *census) sorted() []lock.Record {
	return slices.SortedFunc(maps.Values(s.known), func(a, b lock.Record) int {
		return cmp.Or(
			cmp.Compare(bits.Len(uint(b.Waiting())), bits.Len(uint(a.Waiting()))),
			cmp.Compare(a.Partition, b.Partition),
			cmp.Compare(a.Of, b.Of),
		)
	})
}

func (s *census) snapshot() *lockList {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.list
	list.records, list.sessions = s.sorted(), maps.Clone(list.sessions)
	return &list
}

// perPage is how many locks or sessions a page shows.
const perPage = 50

// chips is how many of a line's places a list shows.
const chips = 6

// locksView is what the page of locks shows.
type locksView struct {
	Known         bool
	Rows          []lockView
	Held, Waiting int
	Free, Bad     int
	How           string // how fresh it is
	Failure       string
	Pages         pager
}

// lockView is one lock.
type lockView struct {
	Of, Partition, URL string
	Line               []placeView
	More               int // places that are not in Line
	Waiting            int
	Held               string // for how long
	Fence              int64
	Late               string // why its holder may be dead; empty where it seems to live
}

// placeView is one place of a line.
type placeView struct {
	Number       int // 1 for the first that waits; 0 for a holder
	Holds        bool
	Shared       bool // a reader
	Owner, Age   string
	State, Class string // of its session
}

func (c *Console) locksPage(r *http.Request) (*part, error) {
	page, err := pageNumber(r)
	if err != nil {
		return nil, err
	}
	p := part{name: "locks", title: "Locks", events: eventsOf("locks", url.Values{"page_number": r.URL.Query()["page_number"]})}
	return live(p, c.locks, func(l *lockList) any { return c.viewLocks(l, page) }), nil
}

func (c *Console) viewLocks(l *lockList, page int) locksView {
	if l == nil {
		return locksView{}
	}
	now := c.config.Table.Now()
	v := locksView{Known: l.passes > 0 || len(l.records) > 0, Held: l.held, Free: l.free, Bad: l.bad, How: l.freshness(), Failure: failure(l.err)}
	for i := range l.records {
		v.Waiting += l.records[i].Waiting()
	}
	first, last, pages := paged("locks", len(l.records), page)
	v.Pages = pages
	for i := first; i < last; i++ {
		v.Rows = append(v.Rows, viewLock(&l.records[i], l.sessions, now, chips))
	}
	return v
}

// holders is how many places of a line hold: the first ones.
func holders(r *lock.Record) int { return len(r.Holders()) }

func viewLock(r *lock.Record, sessions map[string]sighting, now time.Time, most int) lockView {
	holding := holders(r)
	v := lockView{Of: r.Of, Partition: r.Partition, URL: lockURL(r.Partition, r.Of), Fence: r.Fence, Waiting: r.Waiting()}
	if r.Held() {
		v.Held = age(now.Sub(r.Since()))
	}
	shown := min(len(r.Line), most)
	v.More = len(r.Line) - shown
	for i := range r.Line[:shown] {
		p := viewPlace(&r.Line[i], sessions, now)
		if i == 0 { // of which the row tells more
			p.Age = brief(now.Sub(r.Since()))
			if until := r.Until(); !until.IsZero() {
				p.State, p.Class = ends(until, now, "a lease of its own, ends in ")
			}
		}
		switch p.Holds = i < holding; {
		case !p.Holds:
			p.Number = i - holding + 1
		case p.Class == dead:
			v.Late = p.Owner + ": " + p.State
		}
		v.Line = append(v.Line, p)
	}
	return v
}

func viewPlace(p *lock.Place, sessions map[string]sighting, now time.Time) placeView {
	v := placeView{Owner: p.Owner, Shared: p.Shared, Age: brief(now.Sub(p.Since))}
	if seen, ok := sessions[p.Session]; ok {
		v.State, v.Class = state(seen, now)
	} else if p.Session == "" {
		v.State = "a lease of its own"
	}
	return v
}

// lockURL is the page of one lock, relative to the others.
func lockURL(pk, of string) string { return "lock?" + url.Values{"pk": {pk}, "of": {of}}.Encode() }

// freshness says how old what is shown can be.
func (l *lockList) freshness() string {
	switch {
	case l.passes == 0 && l.index:
		return "Reading the index of locks for the first time: 16 reads, at most 2 a second. Locks appear as they are found."
	case l.passes == 0:
		return "Reading the whole table for the first time, at most 2 reads and 25 read units a second. Locks appear as they are found."
	}
	how := "All locks are read " + every(max(l.took, leastPass))
	if !l.index {
		how += ", with the whole table, since they have no index"
	}
	how += "."
	if l.took > refreshEvery {
		how += " The first " + number(batch) + " are read " + every(2*refreshEvery) + "."
	}
	if hidden := l.held - len(l.records); hidden > 0 {
		how += " " + number(hidden) + " more are counted and not shown."
	}
	return how
}
