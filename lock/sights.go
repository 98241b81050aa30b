package lock

import (
	"maps"
	"sync"
	"time"

	"github.com/mortise-go/mortise/lock/internal/lockrow"
)

// sights is what this process has seen of tickets that keep others from holding. Its calls share it: otherwise, if each call gave up
// before it had waited for a lease, nobody would ever ask about a ticket that nobody uses.
type sights struct {
	keep time.Duration // for how long one is kept at least: a waiter looks at its row more often than that; a try need not

	mu    sync.Mutex // guards the following
	seen  map[sight]seen
	limit int // if there are as many, old ones are dropped before there are more
}

// sight is a ticket in the way, under one fence and with one renewal. A row that shows it twice has shown it all the time between.
type sight struct {
	holding lockrow.Holding
	renewed int64 // the row's Renewed
}

// seen is when it was seen. All times are monotonic.
type seen struct {
	since time.Time // first
	last  time.Time
	asked time.Time // its process is not asked about the ticket before this
}

// minSights is how many are kept however old they are.
const minSights = 1000

// see records that a row has shown the ticket at a place at the given time, and returns what is known of it.
func (s *sights) see(row *lockrow.Row, place int, at time.Time) seen {
	s.mu.Lock()
	defer s.mu.Unlock()
	what := sightOf(row, place)
	known, ok := s.seen[what]
	if !ok || at.Before(known.since) {
		known.since = at
	}
	if !ok && len(s.seen) >= s.limit {
		maps.DeleteFunc(s.seen, func(_ sight, old seen) bool { return at.Sub(old.last) > s.keep })
		s.limit = max(minSights, 2*len(s.seen))
	}
	if at.After(known.last) {
		known.last = at
	}
	s.seen[what] = known
	return known
}

// asked records that the process of the ticket was asked about it, and must not be asked again before the given time.
func (s *sights) asked(row *lockrow.Row, place int, until time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	what := sightOf(row, place)
	if known, ok := s.seen[what]; ok {
		known.asked = until
		s.seen[what] = known
	}
}

func sightOf(row *lockrow.Row, place int) sight {
	return sight{holding: row.Holding(place), renewed: row.Renewed}
}
