package sim

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
)

// Worker is a goroutine of a process. What it reports of itself (Waits, Holds, Writes and so on) goes into the
// history, from which pictures are drawn.
type Worker struct {
	*rand.Rand // its random numbers are decided by the seed and the worker's name

	Process *Process
	Name    string
}

// Go starts a worker. World.Wait waits for it, unless its process has crashed.
func (p *Process) Go(name string, f func(ctx context.Context, x *Worker)) {
	x := &Worker{Process: p, Name: name, Rand: rand.New(rand.NewPCG(mix(p.world.Seed, "worker "+name, uint64(p.id)), 0))}
	w := p.world
	w.mu.Lock()
	w.running[p]++
	w.mu.Unlock()
	p.workers.Go(func() {
		defer func() {
			w.mu.Lock()
			w.running[p]--
			w.mu.Unlock()
		}()
		w.guarded(p.Name+", "+name, func() { f(context.WithValue(w.ctx, workerKey{}, name), x) })
	})
}

type workerKey struct{}

// workerOf returns the name of the worker that made a request, if its context tells.
func workerOf(ctx context.Context) string {
	name, _ := ctx.Value(workerKey{}).(string)
	return name
}

// Sleep sleeps by the process's clock. It returns false if the world has ended.
func (x *Worker) Sleep(d time.Duration) bool {
	timer := x.Process.machine.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C():
	case <-x.Process.world.ctx.Done():
	}
	return x.Process.world.ctx.Err() == nil
}

// Between returns a random duration.
func (x *Worker) Between(least, most time.Duration) time.Duration {
	return least + time.Duration(x.Int64N(int64(most-least)+1))
}

// Within returns a context with a timeout by the process's clock.
func (x *Worker) Within(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return x.Process.machine.WithTimeout(ctx, d)
}

// Pause stops the whole process of the worker, for d of true time. With suspend its monotonic clock stops, too, as in
// a suspended machine.
func (x *Worker) Pause(d time.Duration, suspend bool) {
	p := x.Process
	p.world.network.later(p.id, time.Now().Add(d), p.Stop(suspend))
	x.Sleep(time.Nanosecond) // returns when the process continues
}

// read reads an item through the worker's process, consistently. It returns nil if there is none. It reports a read
// that failed.
func (x *Worker) read(ctx context.Context, key keys.Key) (table.Item, error) {
	item, err := x.Process.Table().Get(ctx, key, true)
	if errors.Is(err, table.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		x.Note("cannot read: %v", err)
	}
	return item, err
}

// Note adds a line to the history.
func (x *Worker) Note(format string, args ...any) {
	x.tell(Event{Kind: Noted}, format, args...)
}

// Waits reports that the worker asks for a lock now. Holds or GivesUp follows.
func (x *Worker) Waits(name string) {
	x.tell(Event{Kind: Waiting, Lock: name}, "acquires %s", name)
}

// GivesUp reports that the worker did not get a lock.
func (x *Worker) GivesUp(name string, err error) {
	x.tell(Event{Kind: GaveUp, Lock: name}, "does not acquire %s: %v", name, err)
}

// Holds reports that the worker holds a lock, and later, by itself, that it is lost.
func (x *Worker) Holds(name string, l *lock.Lease) {
	x.Process.world.granted(name, l.Fence(), strings.HasPrefix(l.Ticket(), "@"))
	x.tell(Event{Kind: Holding, Lock: name, Fence: l.Fence()}, "holds %s, fence %d", name, l.Fence())
	held := l.Context()
	if held.Err() != nil {
		x.ended(name, l)
	} else if x.Process.world.history.keep {
		context.AfterFunc(held, func() { x.ended(name, l) })
	}
}

func (x *Worker) ended(name string, l *lock.Lease) {
	cause := context.Cause(l.Context())
	switch {
	case errors.Is(cause, lock.ErrLost):
		x.tell(Event{Kind: Lost, Lock: name, Fence: l.Fence()}, "loses %s, fence %d: %v", name, l.Fence(), cause)
	case errors.Is(cause, lock.ErrRevoked):
		x.tell(Event{Kind: AskedBack, Lock: name, Fence: l.Fence()}, "is asked to give %s, fence %d, back", name, l.Fence())
	}
}

// Writes reports how a guarded write ended. With ErrLost it was refused. With any other error nobody knows.
func (x *Worker) Writes(err error, format string, args ...any) {
	x.wrote(stateOf(err), err, format, args...)
}

// wrote reports what is known of a write.
func (x *Worker) wrote(known state, err error, format string, args ...any) {
	kind, how := Unanswered, "no answer"
	switch known {
	case acknowledged:
		kind, how = Acknowledged, "acknowledged"
	case refused:
		kind, how = Refused, "refused"
	case unknown:
	}
	what := fmt.Sprintf(format, args...)
	if err != nil {
		how = fmt.Sprintf("%s: %v", how, err)
	}
	x.tell(Event{Kind: kind}, "%s: %s", what, how)
}

// Releases reports how a release ended. With an error other than ErrLost the row may still be held.
func (x *Worker) Releases(name string, err error) {
	switch {
	case err == nil:
		x.tell(Event{Kind: Released, Lock: name}, "releases %s", name)
	case errors.Is(err, lock.ErrLost):
		x.tell(Event{Kind: Released, Lock: name}, "releases %s: %v", name, err)
	default:
		x.tell(Event{Kind: Abandoned, Lock: name}, "leaves %s: %v", name, err)
	}
}

func (x *Worker) tell(e Event, format string, args ...any) {
	e.Worker = x.Name
	x.Process.tell(e, format, args...)
}
