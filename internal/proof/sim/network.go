package sim

import (
	"bytes"
	"cmp"
	"container/heap"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing/synctest"
	"time"

	"github.com/mortise-go/mortise/table/tabletest"
)

// errGone is the error of a process's requests after the end of the world.
var errGone = errors.New("sim: the world has ended")

// network connects the processes with the engine. One goroutine, run, does all of its work. Nothing that concerns
// more than one process happens in another goroutine.
type network struct {
	world *World
	kick  chan struct{}
	quit  chan struct{}
	done  chan struct{}

	mu     sync.Mutex
	inbox  []*flight
	agenda []*event // events that are to be scheduled
	ended  bool     // requests fail at once
	late   delayed

	events schedule // used by run only
	count  int      // requests so far
}

// flight is a request under way, and its answer.
type flight struct {
	Request

	worker  string // the worker that made the call; empty if the process itself sends it
	http    *http.Request
	body    []byte
	reply   chan reply // of capacity 1
	outcome Outcome
	applied bool // when it first arrived
	refused bool // when it first arrived; neither is set if it was lost
}

// delayed is what was sent and will arrive, or be answered, late.
type delayed struct {
	left int
	last time.Time // when the last one is due
}

type reply struct {
	response *http.Response
	err      error
	applied  bool // the request was applied, which the response does not have to say
}

// event is something that happens at an instant.
type event struct {
	at     time.Time
	of     int // process; 0 for the world
	number int // in the order of scheduling: decides the order of events at one instant
	do     func()
}

type schedule []*event

func (s schedule) Len() int { return len(s) }
func (s schedule) Less(i, j int) bool {
	return cmp.Or(s[i].at.Compare(s[j].at), cmp.Compare(s[i].number, s[j].number)) < 0
}
func (s schedule) Swap(i, j int) { s[i], s[j] = s[j], s[i] }
func (s *schedule) Push(x any)   { *s = append(*s, x.(*event)) } //nolint:forcetypeassert // of the heap's own
func (s *schedule) Pop() any {
	old := *s
	last := old[len(old)-1]
	*s = old[:len(old)-1]
	return last
}

func newNetwork(w *World) *network {
	return &network{world: w, kick: make(chan struct{}, 1), quit: make(chan struct{}), done: make(chan struct{})}
}

// later schedules something for a process or for the world.
func (n *network) later(of int, at time.Time, do func()) {
	n.mu.Lock()
	n.agenda = append(n.agenda, &event{at: at, of: of, do: do})
	n.mu.Unlock()
	n.wake()
}

// at schedules something. Only run calls it.
func (n *network) at(at time.Time, do func()) {
	n.world.scheduled++
	heap.Push(&n.events, &event{at: at, number: n.world.scheduled, do: do})
}

// run is the goroutine in which everything in the world happens.
func (n *network) run() {
	defer close(n.done)
	for {
		synctest.Wait() // until everything that has happened so far has had its effect
		n.world.guarded("the network", n.accept)
		if n.isEnded() {
			n.events = nil
		}
		if len(n.events) > 0 && !n.events[0].at.After(time.Now()) {
			n.world.guarded("the network", heap.Pop(&n.events).(*event).do) //nolint:forcetypeassert // of the heap's own
			continue
		}
		wait := time.Hour
		if len(n.events) > 0 {
			wait = time.Until(n.events[0].at)
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-n.kick:
		case <-n.quit:
			timer.Stop()
			return
		}
		timer.Stop()
	}
}

func (n *network) wake() {
	select {
	case n.kick <- struct{}{}:
	default:
	}
}

// accept takes the requests that were sent at this instant, in an order of its own.
func (n *network) accept() {
	n.mu.Lock()
	list, agenda := n.inbox, n.agenda
	n.inbox, n.agenda = nil, nil
	n.mu.Unlock()
	slices.SortStableFunc(agenda, func(a, b *event) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.of, b.of)) })
	for _, e := range agenda {
		n.at(e.at, e.do)
	}
	for _, f := range list {
		f.read(f.http.Context().Value(inputKey{}), n.world.scheme.PK, n.world.scheme.SK)
	}
	slices.SortFunc(list, (*flight).compare)
	for _, f := range list {
		if f.Process.holds(func() { n.back(f) }) {
			continue
		}
		n.world.history.aliases(f.Keys) // in this order, and also without a history: nothing may depend on whether there is one
		n.count++
		f.Number = n.count
		f.outcome = n.world.decide(&f.Request)
		n.send(f)
	}
}

// compare decides the order of requests of one instant. Two workers that waited for the same thing can send the same
// request, apart from random texts in it.
func (f *flight) compare(g *flight) int {
	if order := cmp.Or(cmp.Compare(f.Process.id, g.Process.id), strings.Compare(f.Operation, g.Operation), slices.Compare(f.Keys, g.Keys), strings.Compare(f.worker, g.worker)); order != 0 {
		return order
	}
	return strings.Compare(spelled(f.body), spelled(g.body))
}

// back sends a request that was held back while its process was stopped.
func (n *network) back(f *flight) {
	n.mu.Lock()
	n.inbox = append(n.inbox, f)
	n.mu.Unlock()
	n.wake()
}

// send schedules what happens to a request.
func (n *network) send(f *flight) {
	w, o := n.world, &f.outcome
	w.note(f.Process, "sends", f.String(), o.String())
	if f.Operation == transacts {
		w.transactions++
	}
	now := time.Now()
	if o.Slow {
		w.met(slow)
		n.delay(now.Add(o.There + o.Back))
	}
	if o.Lost != "" {
		if len(o.Again) == 0 { // otherwise it is counted when it arrives
			w.met(o.Lost)
		}
		n.at(now.Add(o.There+o.Back), func() { n.answer(f, reply{err: reset()}) })
	} else {
		n.at(now.Add(o.There), func() {
			r := n.deliver(f, o.Faults)
			f.applied, f.refused = r.applied, !r.applied
			if o.ReplyLost {
				w.met(replyLost)
				r = reply{err: reset()}
			}
			n.at(time.Now().Add(o.Back), func() {
				if o.Slow {
					n.arrived()
				}
				n.answer(f, r)
			})
		})
	}
	for _, late := range o.Again {
		n.delay(now.Add(late.by))
		n.at(now.Add(late.by), func() {
			n.arrived()
			w.met(late.name)
			if n.deliver(f, nil).applied && f.writes() && !f.applied {
				for _, key := range f.Keys {
					w.stragglers[key]++
					if f.refused {
						w.revived[key]++
					}
				}
			}
		})
	}
}

// delay records that something will arrive late, and when.
func (n *network) delay(until time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.late.left++
	if until.After(n.late.last) {
		n.late.last = until
	}
}

// arrived records that it has arrived.
func (n *network) arrived() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.late.left--
}

// missing returns what has still to arrive late.
func (n *network) missing() delayed {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.late
}

// reset is the error that a client's transport reports for a lost request or answer.
func reset() error { return &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET} }

// deliver gives a request to the engine.
func (n *network) deliver(f *flight, faults []tabletest.Fault) reply {
	w := n.world
	w.engine.ResetRequests()
	w.engine.Inject(faults...)
	again := f.http.Clone(context.Background())
	again.Body, again.ContentLength = io.NopCloser(bytes.NewReader(f.body)), int64(len(f.body))
	response, err := w.engine.HTTPClient().Do(again) //nolint:bodyclose // by the client
	w.engine.ClearFaults()
	what, how := "applied", "lost"
	if err == nil {
		how = strconv.Itoa(response.StatusCode)
	}
	if len(faults) > 0 {
		done := w.engine.Requests()[0] // the only one
		names := happened(done.Faults, done.Code)
		for _, name := range names {
			w.met(name)
			if name == conflict && f.Operation == transacts {
				w.conflicts++
			}
		}
		how = strings.Join(append([]string{how}, names...), ", ")
		if done.Code != "" { // a request that was applied may be answered with 500
			what = "refused"
		}
	} else if err == nil && response.StatusCode != http.StatusOK {
		what = "refused"
	}
	w.note(f.Process, what, f.String(), how)
	if what == "applied" && f.writes() {
		w.journal.applied(f.Process, f.Keys)
	}
	return reply{response: response, err: err, applied: what == "applied"}
}

// answer brings an answer to its process: at once, or when the process continues. An answer to a process that has
// crashed is dropped.
func (n *network) answer(f *flight, r reply) {
	if !f.Process.holds(func() { n.answer(f, r) }) {
		f.reply <- r
	}
}

// end makes all requests fail from now on, also those under way.
func (n *network) end() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ended = true
}

func (n *network) isEnded() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.ended
}

// line is a process's connection to the network.
type line struct{ process *Process }

// Do implements the SDK's HTTP client.
func (l line) Do(r *http.Request) (*http.Response, error) {
	n := l.process.world.network
	body, err := io.ReadAll(r.Body)
	if err = errors.Join(err, r.Body.Close()); err != nil {
		return nil, err
	}
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	f := &flight{Request: Request{Process: l.process, Operation: operation}, worker: workerOf(r.Context()), http: r, body: body, reply: make(chan reply, 1)}
	n.mu.Lock()
	if n.ended {
		n.mu.Unlock()
		return nil, errGone
	}
	n.inbox = append(n.inbox, f)
	n.mu.Unlock()
	n.wake()
	select {
	case got := <-f.reply:
		return got.response, got.err
	case <-r.Context().Done():
		return nil, r.Context().Err()
	case <-n.world.over:
		return nil, errGone
	}
}
