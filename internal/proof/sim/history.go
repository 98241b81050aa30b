package sim

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// Kind is the kind of an Event.
type Kind int

// Events of workers, in the order of a critical section.
const (
	Noted        Kind = iota // anything, in words
	Waiting                  // a worker has asked for a lock
	GaveUp                   // it did not get it
	Holding                  // it got it
	AskedBack                // its holder is asked to release it
	Lost                     // the lease has ended, and its holder knows
	Acknowledged             // a write succeeded
	Refused                  // a write was not done, and never will be
	Unanswered               // nobody knows whether a write was or will be applied
	Released                 // a lock was released, or had been lost before
	Abandoned                // a lock was released, and nobody knows whether its row is free
)

// Events of processes.
const (
	Booted Kind = iota + 100
	Crashed
	Paused    // timers and everything else stop; clocks do not
	Suspended // the monotonic clock stops, too
	Resumed
	CutOff
	Joined
	Jumped // the wall clock was set
)

// Events of the network and of the world.
const (
	Traffic   Kind = iota + 200 // a request was sent or applied
	Storm                       // nine of ten requests are throttled
	Abated                      // the storm is over
	Swept                       // time to live has deleted items
	Violation                   // something forbidden happened
)

// Event is something that happened in a run.
type Event struct {
	At      time.Duration // since the run began
	Process int           // 0 for the world
	Client  string        // the process's name, which its successors have as well
	Worker  string        // empty if it concerns the process; ~ for the network
	Kind    Kind
	Lock    string // for Waiting to Lost, Released and Abandoned
	Fence   int64  // for Holding to Lost
	Text    string

	number int
}

func (e Event) String() string {
	return strings.TrimRight(fmt.Sprintf("%17.9f p%-2d %-8s %-3s %s", e.At.Seconds(), e.Process, e.Client, e.Worker, e.Text), " ")
}

// history is what happened, in an order that does not depend on scheduling: by instant, then by process and worker.
type history struct {
	keep  bool
	begin time.Time

	mu     sync.Mutex
	closed bool
	list   []Event
	names  map[string]string // names of random texts, in the order in which they appeared
}

func newHistory(keep bool) *history {
	return &history{keep: keep, begin: time.Now(), names: map[string]string{}}
}

// add adds an event that happens now.
func (h *history) add(e Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.keep && !h.closed {
		e.At, e.number = time.Since(h.begin), len(h.list)
		h.list = append(h.list, e)
	}
}

// restart forgets what has happened so far.
func (h *history) restart() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.begin, h.list, h.names = time.Now(), nil, map[string]string{}
}

// close ends the history. What comes later is the simulator's cleaning up.
func (h *history) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
}

// random matches what the Text of a machine looks like.
var random = regexp.MustCompile(`[A-Z2-7]{26}`)

// alias returns a list with its random texts replaced by short names.
func (h *history) alias(list []string) []string {
	list = slices.Clone(list)
	h.aliases(list)
	return list
}

// aliases replaces random texts by short names.
func (h *history) aliases(list []string) {
	if !h.keep {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, s := range list {
		list[i] = random.ReplaceAllStringFunc(s, func(text string) string {
			if h.names[text] == "" {
				h.names[text] = fmt.Sprintf("r%d", len(h.names)+1)
			}
			return h.names[text]
		})
	}
}

// events returns what happened, in order. A goroutine of its own notices the end of a lease, so that event is put
// before what the holder does at the same instant. If several leases end at once, they are in the order of their
// locks and fences.
func (h *history) events() []Event {
	h.mu.Lock()
	defer h.mu.Unlock()
	slices.SortFunc(h.list, func(a, b Event) int {
		order := cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Process, b.Process), cmp.Compare(a.Worker, b.Worker))
		switch {
		case order != 0:
			return order
		case a.ended() && b.ended():
			return cmp.Or(cmp.Compare(a.Lock, b.Lock), cmp.Compare(a.Fence, b.Fence), cmp.Compare(a.Text, b.Text))
		case a.ended():
			return -1
		case b.ended():
			return 1
		}
		return cmp.Compare(a.number, b.number)
	})
	return slices.Clone(h.list)
}

// ended reports whether the event is the end of a lease, or a request to release it.
func (e Event) ended() bool { return e.Kind == Lost || e.Kind == AskedBack }

// inWords reports whether the event is only told, and not drawn.
func (e Event) inWords() bool { return e.Kind == Noted || e.Kind == AskedBack }

// text returns one line for each event.
func text(events []Event) string {
	var b strings.Builder
	for _, e := range events {
		b.WriteString(e.String())
		b.WriteByte('\n')
	}
	return b.String()
}

// Difference shows where two histories begin to differ. It is empty if they are equal.
func Difference(first, second string) string {
	if first == second {
		return ""
	}
	a, b := strings.Split(first, "\n"), strings.Split(second, "\n")
	at := 0
	for at < min(len(a), len(b)) && a[at] == b[at] {
		at++
	}
	around := func(list []string) string { return strings.Join(list[max(0, at-8):min(len(list), at+4)], "\n") }
	return fmt.Sprintf("the histories differ from line %d on:\n%s\n\n%s", at+1, around(a), around(b))
}

// Digest returns a fingerprint of the history.
func (r *Result) Digest() string {
	sum := sha256.Sum256([]byte(r.History))
	return hex.EncodeToString(sum[:])
}
