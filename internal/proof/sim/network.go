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

// errGone is what requests of processes meet after the end of the world.
var errGone = errors.New("sim: the world has ended")

// network is between processes and the engine. One goroutine, run, does all of its work, and
// nothing else that concerns more than one process happens outside it.
type network struct {
	world *World
	kick  chan struct{}
	quit  chan struct{}
	done  chan struct{}

	mu     sync.Mutex
	inbox  []*flight
	agenda []*event // to be scheduled
	ended  bool     // requests fail at once
	late   delayed

	events schedule // of run only
	count  int      // requests so far
}

// flight is a request on its way, and its answer.
type flight struct {
	Request

	worker  string // whose call it is of; empty for what its process does of itself
	http    *http.Request
	body    []byte
	reply   chan reply // of capacity 1
	outcome Outcome
	applied bool // when it came in first
	refused bool // then; neither where it was lost
}

// delayed is what has been sent and is to come in late, or to be answered so.
type delayed struct {
	left int
	last time.Time // when the last one is due
}

type reply struct {
	response *http.Response
	err      error
	applied  bool // what was asked, which the response need not say
}

// event is something that happens at an instant.
type event struct {
	at     time.Time
	of     int // process; 0 for the world
	number int // in the order of scheduling, which settles what comes first at one instant
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

// later schedules something, on behalf of a process or of the world.
func (n *network) later(of int, at time.Time, do func()) {
	n.mu.Lock()
	n.agenda = append(n.agenda, &event{at: at, of: of, do: do})
	n.mu.Unlock()
	n.wake()
}

// at schedules something. It is called by run alone.
func (n *network) at(at time.Time, do func()) {
	n.world.scheduled++
	heap.Push(&n.events, &event{at: at, number: n.world.scheduled, do: do})
}

// run is the world's one goroutine in which things happen.
func (n *network) run() {
	defer close(n.done)
	for {
		synctest.Wait() // until all that has happened so far has come to rest
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

// accept takes what was handed in at this instant, in an order of its own.
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
		n.world.history.aliases(f.Keys) // in this order, and after it was made: it must not depend on whether there is a history
		n.count++
		f.Number = n.count
		f.outcome = n.world.decide(&f.Request)
		n.send(f)
	}
}

// compare settles the order of requests of one instant. Two workers that waited for the same
// thing can ask for the same with the same words, but for what was drawn at random.
func (f *flight) compare(g *flight) int {
	if order := cmp.Or(cmp.Compare(f.Process.id, g.Process.id), strings.Compare(f.Operation, g.Operation), slices.Compare(f.Keys, g.Keys), strings.Compare(f.worker, g.worker)); order != 0 {
		return order
	}
	return strings.Compare(spelled(f.body), spelled(g.body))
}

// back hands a request in again that was held while its process was stopped.
func (n *network) back(f *flight) {
	n.mu.Lock()
	n.inbox = append(n.inbox, f)
	n.mu.Unlock()
	n.wake()
}

// send schedules what becomes of a request.
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
		if len(o.Again) == 0 { // or else it is counted when it arrives
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

// delay books that something comes late, and when.
func (n *network) delay(until time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.late.left++
	if until.After(n.late.last) {
		n.late.last = until
	}
}

// arrived books that it has come.
func (n *network) arrived() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.late.left--
}

// missing is what is still to come late.
func (n *network) missing() delayed {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.late
}

// reset is what a client's transport reports for what was lost.
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
		if done.Code != "" { // 500 may be the answer to what was applied
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

// answer brings an answer to its process, unless that is no more, or when it goes on.
func (n *network) answer(f *flight, r reply) {
	if !f.Process.holds(func() { n.answer(f, r) }) {
		f.reply <- r
	}
}

// end has all requests fail from now on, those under way included.
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

// line is a process's way to the network.
type line struct{ process *Process }

// Do is for the SDK.
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
