package lock

import (
	"errors"
	"sync"
	"time"

	"github.com/mortise-go/mortise/lock/internal/session"
	"github.com/mortise-go/mortise/lock/internal/waitqueue"
)

// sessions looks at the sessions of other processes for the calls that wait in this process, and puts questions to them.
type sessions struct {
	client *Client

	mu        sync.Mutex                    // guards the following; never held across I/O
	waiting   int                           // calls that may wait
	looks     map[string]*sessionLook       // looks to come, by session
	questions map[string][]session.Question // to be sent, by session; for each key there is a goroutine that sends them
}

type sessionLook struct {
	*waitqueue.Watch

	due time.Time // monotonic
}

// look asks for one look at a session, unless an earlier look is due already. So of several callers, in whatever order they come, the
// earliest look is sent.
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
	look.Watch = c.poller.Watch(key, in, func(seen waitqueue.Look) func() {
		if seen.Err == nil {
			c.others.Saw(id, seen.Item, seen.At)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.looks[id] == look {
			delete(s.looks, id)
		}
		return nil
	})
}

// wait adds to the number of calls that may wait. When the last call has ended, all looks to come are cancelled.
func (s *sessions) wait(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting += n; s.waiting > 0 {
		return
	}
	for _, look := range s.looks {
		look.Stop()
	}
	clear(s.looks)
}

// askTogether is how long a question waits for other questions to the same session, so that they share a request.
const askTogether = 100 * time.Millisecond

// ask puts a question to a session, in the background. Questions to one session share a request, and one request is under way at a
// time. A ticket is asked about again only when it has held for twice as long: the first question removes a ghost, and a holder may
// hold for days. If the mailbox is full, or DynamoDB does not answer, the questions are sent again with the session's next renewal.
//
// Cost: one conditional write, or none.
func (s *sessions) ask(id string, q session.Question) {
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
			if wait = askTogether; len(list) == session.MaxAsked { // there may be more questions, which have waited already
				wait = 0
			}
			err := c.others.Ask(c.closing, id, list...)
			if again(err) && !errors.Is(err, session.ErrNobody) { // after ErrNobody, the next look shows that the session has ended
				s.mu.Lock()
				s.questions[id] = append(list, s.questions[id]...)
				s.mu.Unlock()
				wait = c.config.Lease / 4
			}
		}
	})
}

func (s *sessions) next(id string) []session.Question {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.questions[id]
	n := min(len(all), session.MaxAsked)
	if s.questions[id] = all[n:]; n == 0 {
		delete(s.questions, id)
	}
	return all[:n:n]
}
