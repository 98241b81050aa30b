package sim

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
)

// Worker is a goroutine of a process. What it tells of itself (Waits, Holds, Writes and so
// on) goes into the history, of which pictures are drawn.
type Worker struct {
	*rand.Rand // decided by the seed and the worker's name

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

// workerOf is the name of the worker that a request was made for, where its context says so.
func workerOf(ctx context.Context) string {
	name, _ := ctx.Value(workerKey{}).(string)
	return name
}

// Sleep sleeps by the process's clock; false when the world has ended.
func (x *Worker) Sleep(d time.Duration) bool {
	timer := x.Process.machine.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C():
	case <-x.Process.world.ctx.Done():
	}
	return x.Process.world.ctx.Err() == nil
}

// Between is a random duration.
func (x *Worker) Between(least, most time.Duration) time.Duration {
	return least + time.Duration(x.Int64N(int64(most-least)+1))
}

// Within bounds what a worker asks for by the process's clock.
func (x *Worker) Within(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return x.Process.machine.WithTimeout(ctx, d)
}

// Pause stops the worker's whole process here, for d of true time. With suspend its clock of
// durations stands still, too, as that of a suspended machine does.
func (x *Worker) Pause(d time.Duration, suspend bool) {
	p := x.Process
	p.world.network.later(p.id, time.Now().Add(d), p.Stop(suspend))
	x.Sleep(time.Nanosecond) // goes off when the process goes on
}

// read reads an item through the worker's process, consistently: nil where there is none. It
// tells of a read that failed.
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

// Note puts a line into the history.
func (x *Worker) Note(format string, args ...any) {
	x.tell(Event{Kind: Noted}, format, args...)
}

// Waits tells that the worker asks for a lock now. Holds or GivesUp comes next.
func (x *Worker) Waits(name string) {
	x.tell(Event{Kind: Waiting, Lock: name}, "acquires %s", name)
}

// GivesUp tells that the worker did not get a lock.
func (x *Worker) GivesUp(name string, err error) {
	x.tell(Event{Kind: GaveUp, Lock: name}, "does not acquire %s: %v", name, err)
}

// Holds tells that the worker holds a lock, and from now on when it is lost.
func (x *Worker) Holds(name string, l *lock.Lease) {
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

// Writes tells how a guarded write ended: with ErrLost it was refused, unless its context had
// ended, and with any other error nobody knows.
func (x *Worker) Writes(err error, format string, args ...any) {
	x.wrote(stateOf(err), err, format, args...)
}

// wrote tells what is known of a write.
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

// Releases tells how a release ended: with an error other than ErrLost the row may be held
// still.
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
