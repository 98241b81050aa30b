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
	"github.com/mortise-go/mortise/table"
)

const (
	maxLocks     = 2000 // kept in memory; further locks are only counted
	batch        = 50   // rows that are read again in one request
	refreshEvery = 2 * time.Second
	publishEvery = time.Second
	leastPass    = time.Second // shortest time between the beginnings of two passes
	afterFailure = 5 * time.Second
)

// lockList is a snapshot of what is known about all locks.
type lockList struct {
	records []sight // held or awaited, in the order in which they are shown
	more    int     // number of locks that are held or awaited and not in records, since there was no room
	free    int     // number of locks that nobody holds
	bad     int     // number of malformed rows

	sessions map[string]sighting // by ID; only sessions that were read

	index  bool          // locks are found in an index; otherwise by reading the whole table
	passes int           // number of complete passes
	took   time.Duration // duration of the last pass
	err    error         // of the last pass; nil if it succeeded
	again  error         // of the last time that the locks that are shown first were read again; nil if it succeeded
	unread error         // of the last read of sessions; nil if it succeeded
}

// sight is a lock as it was read last.
type sight struct {
	lock.Record
	at time.Time // when it was read
}

// sighting is a session as it was read last.
type sighting struct {
	lock.Session
	found bool      // it has a row; otherwise it has ended
	at    time.Time // when it was read
}

// census finds all locks, in one pass after another. It reads the locks that are shown first more often.
type census struct {
	client *lock.Client
	source lock.Source
	now    func() time.Time

	mu    sync.Mutex // guards the following; never held across I/O
	list  lockList   // without records, which snapshot sets
	known map[keys.Key]sight
	poked chan struct{} // gets an element if a snapshot is to be published at once
}

// place identifies a lock in a census. A Record has both parts of it, but not the key of its row.
func place(r *lock.Record) keys.Key { return keys.NewKey(r.Partition, r.Of) }

// readLocks feeds the pages of locks and sessions, until ctx ends.
func (c *Console) readLocks(ctx context.Context, publish func(*lockList)) {
	s := &census{client: c.config.Locks, source: lock.Index(), now: c.now, known: map[keys.Key]sight{}, poked: make(chan struct{}, 1)}
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

// poke makes readLocks publish the present state at once.
func (s *census) poke() {
	select {
	case s.poked <- struct{}{}:
	default:
	}
}

// sleep waits for d. It returns false if ctx ends first.
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
		// The settings of locks name no index, or the table does not have it yet.
		if (errors.Is(err, lock.ErrInvalid) || errors.Is(err, table.ErrNoTable)) && s.list.index {
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

// pass finds all locks once. Locks that it does not find are removed only at its end.
func (s *census) pass(ctx context.Context) error {
	met := map[keys.Key]bool{}
	more, free, bad := 0, 0, 0
	for r, err := range s.client.List(ctx, s.source) {
		switch {
		case errors.Is(err, lock.ErrMalformed):
			bad++
		case err != nil:
			return err
		case !r.Held():
			free++
		default:
			met[place(&r)] = true
			if !s.keep(r) {
				more++
			}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.known, func(at keys.Key, _ sight) bool { return !met[at] })
	s.list.more, s.list.free, s.list.bad = more, free, bad
	s.list.passes++
	return nil
}

// keep stores a lock, unless its state is older than the known one. It returns false if there is no room.
func (s *census) keep(r lock.Record) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := place(&r)
	switch old, known := s.known[at]; {
	case !known && len(s.known) >= maxLocks:
		return false
	case !known || old.Fence <= r.Fence: // otherwise r is an older state: reads are eventually consistent
		s.known[at] = s.listed(r)
	}
	return true
}

// listed returns a lock that was just read, without the texts that no list shows. They are short in rows of this module, but a row can have
// 400 KB of them, and a census keeps 2,000 rows.
func (s *census) listed(r lock.Record) sight {
	r.Data, r.Forced = lock.Data{}, ""
	return sight{r, s.now()}
}

// refresh alternates every 2 s: it reads the locks that are shown first, unless each pass takes no longer than 2 s, and then
// the next 50 of the sessions of all locks that were found.
func (s *census) refresh(ctx context.Context) {
	asked := 0 // index of the session that is read next
	for turn := 0; sleep(ctx, refreshEvery); turn++ {
		var err error
		if ids := s.sessionIDs(); turn%2 == 1 && len(ids) > 0 {
			first := asked % len(ids)
			some := ids[first:min(first+batch, len(ids))]
			asked = (first + len(some)) % len(ids)
			err = s.readSessions(ctx, some)
		} else {
			err = s.readAgain(ctx)
			s.mu.Lock()
			s.list.again = err
			s.mu.Unlock()
		}
		s.poke()
		if err != nil && !sleep(ctx, afterFailure) {
			return
		}
	}
}

// sessionIDs returns the sessions of all places of the known locks, sorted. It forgets all other sessions.
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
	if len(ids) == 0 {
		s.list.unread = nil
	}
	return slices.Sorted(maps.Keys(ids))
}

func (s *census) readSessions(ctx context.Context, ids []string) error {
	seen, err := look(ctx, s.client, s.now, ids)
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.Copy(s.list.sessions, seen)
	s.list.unread = err
	return err
}

// readAgain reads the locks that are shown first, unless passes are fast enough.
func (s *census) readAgain(ctx context.Context) error {
	s.mu.Lock()
	first, fast := s.sorted(), s.list.passes > 0 && s.list.took <= refreshEvery
	s.mu.Unlock()
	if len(first) == 0 || fast {
		return nil
	}
	var wanted []lock.Record
	for _, r := range first[:min(len(first), batch)] {
		wanted = append(wanted, r.Record)
	}
	found, err := s.client.Records().BatchGet(ctx, wanted)
	unread := map[int]bool{}
	var some *entity.BatchError[lock.Record]
	if errors.As(err, &some) {
		for _, f := range some.Failed {
			unread[f.Index] = true
		}
		err = nil // the next pass counts the rows that failed, or fails, too
	}
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, r := range found {
		at := place(&wanted[i])
		switch old, known := s.known[at]; {
		case !known || unread[i] || r != nil && r.Fence < old.Fence: // removed meanwhile, not read, or an older state
		case r == nil || !r.Held():
			delete(s.known, at)
		default:
			s.known[at] = s.listed(*r)
		}
	}
	return nil
}

// sorted returns the known locks: those with many waiting come first. It compares only the bit length of that number, so a
// lock mostly stays in its place when its line changes by a few. The caller holds mu.
func (s *census) sorted() []sight {
	return slices.SortedFunc(maps.Values(s.known), func(a, b sight) int {
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

// perPage is the number of locks or sessions that a page shows.
const perPage = 50

// chips is the number of places of each line that the list of locks shows.
const chips = 6

// locksView is what the page of locks shows.
type locksView struct {
	Known         bool
	Rows          []lockView
	Held, Waiting int
	Free, Bad     int
	How           string // how often the locks are read
	Failure       string
	Pages         pager
}

// lockView is one lock.
type lockView struct {
	Of, Partition, URL string
	Line               []placeView
	More               int // number of places that are not in Line
	Waiting            int
	Held               string // for how long
	Fence              int64
	Late               string // why a holder may be dead; empty if all seem to live
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
	return live(p, c.locks.enter, func(l *lockList) any { return c.viewLocks(l, page) }), nil
}

func (c *Console) viewLocks(l *lockList, page int) locksView {
	if l == nil {
		return locksView{}
	}
	now := c.now()
	v := locksView{Known: l.passes > 0 || len(l.records) > 0, Held: len(l.records) + l.more, Free: l.free, Bad: l.bad, How: l.freshness(), Failure: c.failure(l.failed())}
	for i := range l.records {
		v.Waiting += l.records[i].Waiting()
	}
	first, last, pages := paged("locks", len(l.records), page)
	v.Pages = pages
	for i := first; i < last; i++ {
		v.Rows = append(v.Rows, viewLock(&l.records[i].Record, l.records[i].at, l.sessions, now, chips))
	}
	return v
}

// holders returns how many places at the front of the line hold the lock.
func holders(r *lock.Record) int { return len(r.Holders()) }

// viewLock describes a lock whose row was read at a time.
func viewLock(r *lock.Record, read time.Time, sessions map[string]sighting, now time.Time, most int) lockView {
	holding := holders(r)
	v := lockView{Of: r.Of, Partition: r.Partition, URL: lockURL(r.Partition, r.Of), Fence: r.Fence, Waiting: r.Waiting()}
	if r.Held() {
		v.Held = age(now.Sub(r.Since()))
	}
	shown := min(len(r.Line), most)
	v.More = len(r.Line) - shown
	for i := range r.Line[:shown] {
		p := viewPlace(&r.Line[i], sessions, now)
		if i == 0 { // the row tells more about the first place
			p.Age = brief(now.Sub(r.Since()))
			if until := r.Until(); !until.IsZero() {
				p.State, p.Class = ends(until, read, now, "a lease of its own, ends in ")
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

// lockURL returns the URL of a lock's page, relative to the other pages.
func lockURL(pk, of string) string { return "lock?" + url.Values{"pk": {pk}, "of": {of}}.Encode() }

// failed returns why a part of the list is older than it should be, or nil.
func (l *lockList) failed() error {
	return cmp.Or(l.err, l.again, l.unread)
}

// freshness describes how often the locks are read, and so how old a list can be.
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
	if l.more > 0 {
		how += " " + number(l.more) + " more are counted and not shown."
	}
	return how
}
