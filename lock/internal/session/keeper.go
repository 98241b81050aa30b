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
	// Opened is called for a new session, before anything depends on it.
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
	work     sync.WaitGroup // the goroutine that renews

	mu      sync.Mutex // guards the following; never held across I/O
	current *Session
	opening chan struct{} // closed when the opening under way has ended; nil for none
	parked  *Session      // has ended idle: its row can go on; nil for none
	closed  bool
}

// NewKeeper makes a Keeper. It sends nothing, and has no goroutine before the first session.
func NewKeeper(r *attempt.Repeater, terms *clock.Terms, c Config) *Keeper {
	return &Keeper{config: c, repeater: r, terms: terms}
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
// Cost: none, or one conditional write to open it.
func (k *Keeper) Use(ctx context.Context) (*Session, error) {
	for {
		k.mu.Lock()
		if k.closed {
			k.mu.Unlock()
			return nil, ErrClosed
		}
		s, opening := k.current, k.opening
		mine := s == nil && opening == nil
		if mine {
			opening = make(chan struct{})
			k.opening = opening
		}
		k.mu.Unlock()
		switch {
		case s != nil && s.use():
			return s, nil
		case s != nil:
			k.forget(s) // it has ended, and says so to the hooks
			continue
		case mine:
			err := k.openFor(ctx, opening)
			if errors.Is(err, ErrDead) || errors.Is(err, clock.ErrEnded) {
				continue // a clock was set meanwhile, or somebody has taken the old row for dead
			}
			if err != nil {
				return nil, fmt.Errorf("open a session: %w", err)
			}
			continue
		}
		select {
		case <-opening:
		case <-ctx.Done():
			return nil, clock.Cause(ctx)
		}
	}
}

// openFor opens a session for all who wait for opening, which it closes in any case.
func (k *Keeper) openFor(ctx context.Context, opening chan struct{}) (err error) {
	defer func() {
		k.mu.Lock()
		k.opening = nil
		k.mu.Unlock()
		close(opening)
	}()
	s, err := k.open(ctx)
	if err != nil {
		return err
	}
	if k.config.Hooks.Opened != nil {
		k.config.Hooks.Opened(s)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		s.wake(ErrClosed)
	} else {
		k.current = s
	}
	k.work.Go(s.keep)
	return nil
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
	s, opening := k.current, k.opening
	k.mu.Unlock()
	if s != nil {
		s.wake(ErrClosed)
	}
	if opening != nil { // which wakes what it opens
		select {
		case <-opening:
		case <-ctx.Done():
			return clock.Cause(ctx)
		}
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
