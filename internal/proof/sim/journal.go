package sim

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
)

// journal records how the lines of locks change, in the order in which DynamoDB applied the requests. It reads the
// rows itself after each request, and asks no client.
type journal struct {
	world *World

	mu     sync.Mutex
	number int
	lines  map[string]*lineLog // by key, as requests name it
}

// lineLog is the list of changes of one line.
type lineLog struct {
	key     keys.Key
	last    lineState
	changes []lineChange
	first   map[string]lineChange // the change by which a ticket first came into the line
}

// lineState is a row at one moment: the IDs of the tickets, and the fence.
type lineState struct {
	tickets []string
	fence   int64
}

// lineChange is how one request has changed a line.
type lineChange struct {
	number        int // among all requests that have changed a line
	at            time.Time
	by            *Process // the process that sent it
	before, after lineState
}

// move is the kind of a change.
type move uint8

const (
	disorder move = iota // none of the following
	stays                // no place has changed
	enters               // a ticket came in behind all others
	leaves               // tickets left, and the others kept their order
	passes               // the first ticket was replaced by one that was not in the line
)

// follow begins the journal of the lines of locks. It is called before any process boots.
func (w *World) follow(list ...keys.Key) *journal {
	j := &journal{world: w, lines: map[string]*lineLog{}}
	for _, key := range list {
		j.lines[key.PK+"|"+key.SK] = &lineLog{key: key, first: map[string]lineChange{}}
	}
	w.now(func() { w.journal = j })
	return j
}

// applied records what a request has changed. Only the network calls it.
func (j *journal) applied(by *Process, named []string) {
	if j == nil {
		return
	}
	changed := false
	for _, key := range named {
		l := j.lines[key]
		if l == nil {
			continue
		}
		is := lineOf(j.world.item(l.key))
		j.mu.Lock()
		if !is.equal(l.last) {
			if !changed { // if one request changes several lines, they get one number
				changed = true
				j.number++
			}
			c := lineChange{number: j.number, at: time.Now(), by: by, before: l.last, after: is}
			l.changes = append(l.changes, c)
			for _, t := range is.tickets {
				if _, known := l.first[t]; !known {
					l.first[t] = c
				}
			}
			l.last = is
		}
		j.mu.Unlock()
	}
}

// lockNamed returns the key of the row of the lock with that name.
func lockNamed(name string) keys.Key {
	text := "LOCK#" + name
	return keys.NewKey(text, text)
}

// of returns the log of one lock. It is empty if the lock is not followed.
func (j *journal) of(key keys.Key) *lineLog {
	if j == nil {
		return &lineLog{}
	}
	return j.lines[key.PK+"|"+key.SK]
}

// lineOf reads a row, whichever client has written it.
func lineOf(item table.Item) lineState {
	s := lineState{fence: number(item, "fence")}
	list, _ := item["line"].(*types.AttributeValueMemberL)
	if list == nil {
		return s
	}
	for _, av := range list.Value {
		id, _, _ := strings.Cut(stringOf(av), "@")
		s.tickets = append(s.tickets, id)
	}
	return s
}

func (s lineState) equal(o lineState) bool {
	return s.fence == o.fence && slices.Equal(s.tickets, o.tickets)
}

// holder returns the first ticket, or an empty string.
func (s lineState) holder() string {
	if len(s.tickets) == 0 {
		return ""
	}
	return s.tickets[0]
}

// move returns the kind of a change.
func (c *lineChange) move() move {
	was, is := c.before.tickets, c.after.tickets
	n := len(was)
	switch {
	case slices.Equal(was, is):
		return stays
	case len(is) == n+1 && slices.Equal(was, is[:n]) && !slices.Contains(was, is[n]):
		return enters
	case len(is) == n && slices.Equal(was[1:], is[1:]) && !slices.Contains(was, is[0]):
		return passes
	case len(is) < n && within(is, was):
		return leaves
	}
	return disorder
}

// within reports whether part is whole without some of its elements.
func within(part, whole []string) bool {
	for _, t := range whole {
		if len(part) > 0 && part[0] == t {
			part = part[1:]
		}
	}
	return len(part) == 0
}

// tenure is the time during which a ticket was first.
type tenure struct {
	ticket string
	fence  int64
	from   time.Time
	to     time.Time // zero if it is still first
	passed bool      // it became first by a pass
	others bool      // others stood in the line when it became first
	alone  bool      // since then there was a moment at which no other ticket stood in the line
	crowd  time.Time // since when others have waited behind it; zero if none has
	behind []string  // all tickets that have stood behind it
}

// tenures returns the tenures of a line, one after the other.
func (l *lineLog) tenures() (list []*tenure) {
	var now *tenure
	for i := range l.changes {
		c := &l.changes[i]
		if c.before.holder() != c.after.holder() {
			if now != nil {
				now.to = c.at
			}
			if now = nil; c.after.holder() != "" {
				now = &tenure{
					ticket: c.after.holder(), fence: c.after.fence, from: c.at, others: len(c.after.tickets) > 1,
					passed: c.move() == passes,
				}
				list = append(list, now)
			}
		}
		if now != nil && len(c.after.tickets) == 1 {
			now.alone = true
		}
		if now != nil && len(c.after.tickets) > 1 {
			if now.crowd.IsZero() {
				now.crowd = c.at
			}
			for _, t := range c.after.tickets[1:] {
				if !slices.Contains(now.behind, t) {
					now.behind = append(now.behind, t)
				}
			}
		}
	}
	return list
}

// checkOrder checks that each new ticket comes in behind all others, that nobody overtakes, and that each change of
// the first place adds one to the fence.
func (l *lineLog) checkOrder(w *World) {
	for i := range l.changes {
		c := &l.changes[i]
		if c.before.fence == 0 { // a new row, whose fence begins with a seed
			continue
		}
		if c.move() == disorder {
			w.Violation("somebody overtakes in the line: %v became %v", w.history.alias(c.before.tickets), w.history.alias(c.after.tickets))
		}
		grows := int64(0)
		if was := c.before.holder(); was != "" && was != c.after.holder() {
			grows = 1
		}
		if by := c.after.fence - c.before.fence; by != grows {
			w.Violation("the fence grew by %d, from %d, as the first place changed %d times", by, c.before.fence, grows)
		}
	}
}

// checkPasses checks that a process passes the lock to its own goroutines at most atMost times in a row while others
// stand in the line. It returns how many passes there were.
func (l *lineLog) checkPasses(w *World, atMost int) (passed int) {
	inRow := 0
	for _, t := range l.tenures() {
		if !t.passed {
			inRow = 0
			continue
		}
		passed++
		if t.others {
			if inRow++; inRow == atMost+1 {
				w.Violation("the lock was passed on within a process more than %d times in a row while others waited, up to fence %d", atMost, t.fence)
			}
		}
		if t.alone {
			inRow = 0
		}
	}
	return passed
}
