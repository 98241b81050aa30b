package console

import (
	"context"
	"net/http"
	"sync"
	"time"
)

// linger is how long a feed goes on reading after its last reader has left. So a page that is loaded again has data at once.
const linger = 15 * time.Second

// errClosed is the cause with which Close ends all that a Console has begun, and with which a feed without readers ends.
var errClosed error = &statusError{http.StatusServiceUnavailable, "The console is closed."}

// feed reads what one kind of page shows, once for all readers who have such a page open, and only while there are any.
// Readers get snapshots, which are never modified.
type feed[S any] struct {
	owner *Console
	read  func(ctx context.Context, publish func(S)) // reads and publishes until ctx ends

	mu      sync.Mutex // guards the following; never held across I/O
	readers int
	stop    context.CancelCauseFunc // nil while nothing is read
	idle    *time.Timer             // calls end; nil while there are readers
	latest  S
	version int           // of latest; 0 if there is none yet
	changed chan struct{} // closed by the next snapshot
}

func newFeed[S any](owner *Console, read func(ctx context.Context, publish func(S))) *feed[S] {
	return &feed[S]{owner: owner, read: read, changed: make(chan struct{})}
}

// enter adds a reader, and starts reading if nothing is read. leave has to be called once. It returns f, as live wants it.
func (f *feed[S]) enter() (same *feed[S], leave func(), err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stop == nil {
		ctx, stop := context.WithCancelCause(f.owner.ctx)
		if !f.owner.run(func() { f.read(within(ctx), func(s S) { f.publish(ctx, s) }) }) {
			stop(errClosed)
			return nil, nil, errClosed
		}
		f.stop = stop
	}
	f.readers++
	if f.idle != nil {
		f.idle.Stop()
		f.idle = nil
	}
	return f, f.leave, nil
}

func (f *feed[S]) leave() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.readers--; f.readers == 0 {
		f.idle = time.AfterFunc(linger, f.end)
	}
}

// end stops reading unless a reader has come meanwhile, and forgets what was read.
func (f *feed[S]) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.readers > 0 || f.stop == nil {
		return
	}
	f.stop(errClosed)
	var none S
	f.stop, f.idle, f.latest, f.version = nil, nil, none, 0
}

// publish makes a snapshot the latest one, unless reading was stopped.
func (f *feed[S]) publish(ctx context.Context, s S) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if ctx.Err() != nil {
		return
	}
	f.latest, f.version = s, f.version+1
	close(f.changed)
	f.changed = make(chan struct{})
}

// after waits for a snapshot that is newer than version. If ctx ends first, it returns the latest snapshot and the cause.
// The version is 0 if there is no snapshot.
func (f *feed[S]) after(ctx context.Context, version int) (S, int, error) {
	for {
		f.mu.Lock()
		latest, now, changed := f.latest, f.version, f.changed
		f.mu.Unlock()
		if now > version {
			return latest, now, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return latest, now, context.Cause(ctx)
		}
	}
}
