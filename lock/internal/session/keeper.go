package session

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock/internal/attempt"
	"github.com/mortise-go/mortise/lock/internal/clock"
)

// ErrClosed is the error of using a Keeper that was closed, and the cause with which its session ends.
var ErrClosed = errors.New("session keeper closed")

// ErrDead is the cause with which a session ends that was marked dead, or whose row is gone.
var ErrDead = errors.New("the session was marked dead")

// ErrIdle is the cause with which a session ends that nothing depends on, since it is not renewed any more.
var ErrIdle = errors.New("the session was not needed any more")

// Config sets a Keeper up.
type Config struct {
	Names     Names
	Key       func(id string) keys.Key
	Owner     string
	Lease     time.Duration // how long others wait for a renewal
	Margin    time.Duration // taken off the lease on this side, for clocks of other rates
	Retention time.Duration // how long the row outlasts its lease
	RiskPart  float64       // Hooks.Risk is called with less than this part of the lease left
	Hooks     Hooks
}

// Hooks are what a Keeper calls. All but Renewed run without bounds of their own, and must not block
// for long: they delay renewals. nil for those that are not needed, but Asked.
type Hooks struct {
	// Opened is called for a new session, by the first who uses it.
	Opened func(s *Session)
	// Ended is called once for each session, with the cause.
	Ended func(s *Session, cause error)
	// Risk is called when less than a part of the lease is left, and when more is left again.
	Risk func(atRisk bool)
	// Asked is called with what others ask. It reports whether the question is answered: one that is
	// not comes again with the next renewal.
	Asked func(ctx context.Context, q Question) (answered bool)
	// Renewed is called after each renewal, for what else is to be done at that pace. ctx ends when the
	// next renewal is due. left is how long the session would have lasted without it.
	Renewed func(ctx context.Context, s *Session, left time.Duration)
	// Failed is called for each renewal that failed.
	Failed func(err error)
}

// Keeper keeps at most one session open for this process. It is safe for concurrent use.
type Keeper struct {
	config   Config
	repeater *attempt.Repeater
	terms    *clock.Terms
	work     sync.WaitGroup  // the goroutines that open and renew
	ctx      context.Context // of opening: ends with Close
	stop     context.CancelFunc

	mu      sync.Mutex // guards the following; never held across I/O
	current *Session
	opening *opening // that is under way; nil for none
	parked  *Session // has ended idle: its row can go on; nil for none
	closed  bool
}

// NewKeeper makes a Keeper. It sends nothing, and has no goroutine before the first session.
func NewKeeper(r *attempt.Repeater, terms *clock.Terms, c Config) *Keeper {
	k := &Keeper{config: c, repeater: r, terms: terms}
	k.ctx, k.stop = context.WithCancel(context.Background())
	return k
}

// Current is the session that is open; nil for none. It may end at any time.
func (k *Keeper) Current() *Session {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.current
}

// Use returns the open session, and opens one where there is none. It stays open, if it can be renewed,
// until Session.Unuse has been called as often. A session that nothing depends on is not renewed, and ends when
// half of its lease is over. Its row stays: the next session goes on with it, under the same ID.
//
// All who want a session while one is opened share the opening, and its error. It ends with none of their
// contexts: of those who begin at the same moment, it makes no difference who is first.
//
// Cost: none, or one conditional write to open it.
func (k *Keeper) Use(ctx context.Context) (*Session, error) {
	for {
		s, o := k.present(ctx)
		switch {
		case s == nil && o == nil:
			return nil, ErrClosed
		case s != nil:
			if s.begin.CompareAndSwap(false, true) && k.config.Hooks.Opened != nil {
				k.config.Hooks.Opened(s)
			}
			if s.use() {
				return s, nil
			}
			k.forget(s) // it has ended, and says so to the hooks
			continue
		}
		select {
		case <-o.done:
		case <-ctx.Done():
			return nil, clock.Cause(ctx)
		}
		switch {
		case o.err == nil, errors.Is(o.err, ErrDead), errors.Is(o.err, clock.ErrEnded):
			// A clock was set meanwhile, or somebody has taken the old row for dead.
		case k.ctx.Err() != nil:
			return nil, ErrClosed
		default:
			return nil, fmt.Errorf("open a session: %w", o.err)
		}
	}
}

// opening is the opening of a session.
type opening struct {
	done chan struct{} // closed when it has ended
	err  error         // set before
}

// present returns the open session, or the opening of one, which it begins where there is none; neither after
// Close.
func (k *Keeper) present(ctx context.Context) (*Session, *opening) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.closed:
		return nil, nil
	case k.current == nil && k.opening == nil:
		k.opening = &opening{done: make(chan struct{})}
		k.work.Go(func() { k.openFor(context.WithoutCancel(ctx)) })
	}
	return k.current, k.opening
}

// openFor opens a session for all who wait for the opening. The first one's context has the values that count.
func (k *Keeper) openFor(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(k.ctx, cancel)() //nolint:contextcheck // it ends with the keeper, and with no caller
	s, err := k.open(ctx)
	k.mu.Lock()
	defer k.mu.Unlock()
	if err == nil {
		if k.closed {
			s.wake(ErrClosed)
		} else {
			k.current = s
		}
		k.work.Go(s.keep)
	}
	k.opening.err = err
	close(k.opening.done)
	k.opening = nil
}

// park keeps the row of a session that nothing depends on for the next one.
func (k *Keeper) park(s *Session) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.parked = s
}

func (k *Keeper) unpark() *Session {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := k.parked
	k.parked = nil
	return s
}

// forget makes room for the next session.
func (k *Keeper) forget(s *Session) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.current == s {
		k.current = nil
	}
}

// Close ends the session, deletes its row, and waits until that is done or ctx ends. Where the row could
// not be deleted its time to live does it. Nothing is opened any more.
//
// Cost: one conditional write where a session is open, or was.
func (k *Keeper) Close(ctx context.Context) error {
	k.mu.Lock()
	k.closed = true
	s := k.current
	k.mu.Unlock()
	k.stop()
	if s != nil {
		s.wake(ErrClosed)
	}
	done := make(chan struct{})
	go func() {
		k.work.Wait()
		if s := k.unpark(); s != nil {
			s.remove(ctx)
		}
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return clock.Cause(ctx)
	}
}
