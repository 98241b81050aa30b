package console

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/mortise-go/mortise/lock"
)

// sessionsView is what the page of sessions shows.
type sessionsView struct {
	Known   bool
	Rows    []sessionView
	Total   int
	Own     int // number of places with a lease of their own
	How     string
	Failure string
	Pages   pager
}

// sessionView is one session: a process.
type sessionView struct {
	ID, Owner    string
	State, Class string
	Lease        string
	Asked        int
	Holds        []linkView
	More         int // number of held locks that are not in Holds
	Waits        int

	held int
}

type linkView struct{ Text, URL string }

func (c *Console) sessionsPage(r *http.Request) (*part, error) {
	page, err := pageNumber(r)
	if err != nil {
		return nil, err
	}
	p := part{name: "sessions", title: "Sessions", events: eventsOf("sessions", url.Values{"page_number": r.URL.Query()["page_number"]})}
	return live(p, c.locks.enter, func(l *lockList) any { return c.viewSessions(l, page) }), nil
}

func (c *Console) viewSessions(l *lockList, page int) sessionsView {
	if l == nil {
		return sessionsView{}
	}
	now := c.now()
	v := sessionsView{Known: l.passes > 0 || len(l.records) > 0, Failure: c.failure(l.failed()), How: "Sessions are found in the lines of locks. " + l.freshness()}
	byID := map[string]*sessionView{}
	for i := range l.records {
		r := &l.records[i].Record
		for at := range r.Line {
			p := &r.Line[at]
			if p.Session == "" {
				v.Own++
				continue
			}
			s := byID[p.Session]
			if s == nil {
				s = &sessionView{ID: p.Session, Owner: p.Owner, State: "not read yet"}
				byID[p.Session] = s
			}
			s.place(r, at < holders(r))
		}
	}
	all := make([]*sessionView, 0, len(byID))
	for id, s := range byID {
		if seen, ok := l.sessions[id]; ok {
			s.see(seen, now)
		}
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b *sessionView) int {
		return cmp.Or(cmp.Compare(rank(b.Class), rank(a.Class)), cmp.Compare(a.Owner, b.Owner), cmp.Compare(a.ID, b.ID))
	})
	first, last, pages := paged("sessions", len(all), page)
	v.Total, v.Pages = len(all), pages
	if len(all) > batch {
		v.How += " Whether they live is read in turn, of " + number(batch) + " " + every(2*refreshEvery) + "."
	}
	for _, s := range all[first:last] {
		v.Rows = append(v.Rows, *s)
	}
	return v
}

// rank is greater for sessions that need attention: dead ones come first, then late ones.
func rank(class string) int { return slices.Index([]string{late, dead}, class) }

// place counts one of the session's places.
func (s *sessionView) place(r *lock.Record, holds bool) {
	const shown = 4
	if !holds {
		s.Waits++
		return
	}
	if s.held++; s.held > shown {
		s.More++
		return
	}
	s.Holds = append(s.Holds, linkView{r.Of, lockURL(r.Partition, r.Of)})
}

func (s *sessionView) see(seen sighting, now time.Time) {
	s.State, s.Class = state(seen, now)
	s.Asked = seen.Asked
	if seen.found {
		s.Owner = cmp.Or(seen.Owner, s.Owner)
		s.Lease = age(seen.Lease)
	}
}
