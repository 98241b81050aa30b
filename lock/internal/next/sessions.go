package next

import (
	"sync"
	"time"

	"github.com/mortise-go/mortise/lock/internal/waitqueue"
)

// watched are the sessions of first tickets that somebody in this process waits behind: one watch for
// all who do.
type watched struct {
	client *Client

	mu   sync.Mutex // guards the following; never held across I/O
	list map[string]*watchedSession
}

type watchedSession struct {
	watch   *waitqueue.Watch
	waiters int
	asked   map[string]time.Time // tickets that were asked about, and when to ask again
}

// look has a session looked at once, with a row that is looked at then, unless it was seen lately.
func (w *watched) look(id string, first time.Duration) {
	c := w.client
	if id == "" || c.others.SeenAlive(id) {
		return
	}
	c.poller.Watch(c.others.Key(id), first, func(look waitqueue.Look) time.Duration {
		if look.Err == nil {
			c.others.Saw(id, look.Item, look.At)
		}
		return -1
	})
}

// stand has a session watched for the one who is next behind its ticket, and no other for them.
func (w *watched) stand(s *standing, id string, first time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s.behind == id {
		return
	}
	w.drop(s)
	s.behind = id
	if id == "" {
		return
	}
	if v := w.list[id]; v != nil {
		v.waiters++
		return
	}
	c := w.client
	w.list[id] = &watchedSession{waiters: 1, asked: map[string]time.Time{}, watch: c.poller.Watch(c.others.Key(id), first, func(look waitqueue.Look) time.Duration {
		if look.Err == nil {
			c.others.Saw(id, look.Item, look.At)
		}
		lease := c.others.Suspect(id).Lease
		if lease == 0 {
			lease = c.config.Lease
		}
		return c.clock.Jitter(lease / 4)
	})}
}

// leave ends what stand has begun.
func (w *watched) leave(s *standing) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.drop(s)
}

func (w *watched) drop(s *standing) {
	if v := w.list[s.behind]; v != nil {
		if v.waiters--; v.waiters == 0 {
			v.watch.Stop()
			delete(w.list, s.behind)
		}
	}
	s.behind = ""
}

// mayAsk reports whether it is time to ask a session about a ticket.
func (w *watched) mayAsk(id, ticket string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	v := w.list[id]
	return v != nil && !w.client.clock.Now().Before(v.asked[ticket])
}

// asked takes in that a session was asked about a ticket, which is not asked again for a time.
func (w *watched) asked(id, ticket string, again time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if v := w.list[id]; v != nil {
		v.asked[ticket] = w.client.clock.Now().Add(again)
	}
}
