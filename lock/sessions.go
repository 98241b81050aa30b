package lock

import (
	"errors"
	"sync"
	"time"

	"github.com/mortise-go/mortise/lock/internal/session"
	"github.com/mortise-go/mortise/lock/internal/waitqueue"
)

// sessions looks at the sessions that somebody in this process waits behind, and asks them.
type sessions struct {
	client *Client

	mu        sync.Mutex              // guards the following; never held across I/O
	waiting   int                     // calls that may
	looks     map[string]*sessionLook // to come
	questions map[string][]question   // to be put to a session; those who put them are at work
}

type sessionLook struct {
	*waitqueue.Watch

	due time.Time // monotonic
}

type question struct {
	session.Question

	asked *asking
}

// look has a session looked at once, unless it will be sooner: whichever of several callers is faster, the earliest of their looks
// is sent.
func (s *sessions) look(id string, in time.Duration) {
	c := s.client
	key, ok := c.others.Key(id)
	if !ok || c.isOwn(id) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	due := c.clk().Now().Add(in)
	before, known := s.looks[id]
	if known && !due.Before(before.due) {
		return
	}
	if known {
		before.Stop()
	}
	look := &sessionLook{due: due}
	s.looks[id] = look
	look.Watch = c.poller.Watch(key, in, func(seen waitqueue.Look) time.Duration {
		if seen.Err == nil {
			c.others.Saw(id, seen.Item, seen.At)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.looks[id] == look {
			delete(s.looks, id)
		}
		return -1
	})
}

// wait counts the calls that may wait, and returns how many do. The last one takes all looks along.
func (s *sessions) wait(more int) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting += more; s.waiting == 0 {
		for _, look := range s.looks {
			look.Stop()
		}
		clear(s.looks)
	}
	return s.waiting
}

// askTogether is how long a question waits for others that are put to the same session.
const askTogether = 100 * time.Millisecond

// ask puts a question to a session, in the background. Questions to one session share a request, and one request is
// under way at a time. A ticket is not asked about again before the time has doubled that it has been first: a ghost is
// gone after the first question, and a holder may hold for days. Where the request fails it is, with the next look.
//
// Cost: one conditional write, or none.
func (s *sessions) ask(id string, q question) {
	s.mu.Lock()
	_, busy := s.questions[id]
	s.questions[id] = append(s.questions[id], q)
	s.mu.Unlock()
	if busy {
		return
	}
	c := s.client
	c.work.Go(func() {
		for wait := askTogether; c.clk().Sleep(c.closing, wait) == nil; {
			list := s.next(id)
			if len(list) == 0 {
				return
			}
			if wait = askTogether; len(list) == session.MaxAsked { // there may be more, which have waited
				wait = 0
			}
			texts := make([]session.Question, len(list))
			for i, q := range list {
				texts[i] = q.Question
			}
			switch err := c.others.Ask(c.closing, id, texts...); {
			case errors.Is(err, session.ErrBusy): // until its next renewals
				s.mu.Lock()
				s.questions[id] = append(list, s.questions[id]...)
				s.mu.Unlock()
				wait = c.config.Lease / 4
			case err != nil && !errors.Is(err, session.ErrNobody): // whose row tells soon
				for _, q := range list {
					q.asked.failed.Store(true)
				}
			}
		}
	})
}

func (s *sessions) next(id string) []question {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.questions[id]
	n := min(len(all), session.MaxAsked)
	if s.questions[id] = all[n:]; n == 0 {
		delete(s.questions, id)
	}
	return all[:n:n]
}
