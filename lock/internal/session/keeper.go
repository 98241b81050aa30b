package session

import (
	"cmp"
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

// Hooks are what a Keeper calls. All but Renewed and Asked run without bounds of their own, and must not block
// for long: they delay renewals.
type Hooks struct {
	// Opened is called for each session that was opened.
	Opened func(s *Session)
	// Ended is called once for each session, with the cause.
	Ended func(s *Session, cause error)
	// Risk is called when less than a part of the lease is left, and when the session was renewed. It may be called
	// again without a change.
	Risk func(atRisk bool)
	// Asked is called with what others ask. It reports whether the question is answered: one that is
	// not comes again with the next renewal.
	Asked func(ctx context.Context, q Question) (answered bool)
	// Renewed is called after each renewal, for what else is to be done at that pace. ctx ends when the
	// next renewal is due. left is how long the session would have lasted without it.
	Renewed func(ctx context.Context, left time.Duration)
	// Failed is called for each renewal that failed.
	Failed func(err error)
}

// Keeper keeps at most one session open for this process. It is safe for concurrent use.
type Keeper struct {
	config   Config
	repeater *attempt.Repeater
	terms    *clock.Terms
	turn     chan struct{}  // of capacity 1: taken while a session is opened
	work     sync.WaitGroup // the goroutine that renews

	mu      sync.Mutex // guards the following, and Session.uses; never held across I/O
	current *Session   // nil for none
	next    *Session   // to be opened: its row is there, or may be; nil for one with a new row
	closed  bool
}

// NewKeeper makes a Keeper. It sends nothing, and has no goroutine before the first session.
func NewKeeper(r *attempt.Repeater, terms *clock.Terms, c Config) *Keeper {
	return &Keeper{config: c, repeater: r, terms: terms, turn: make(chan struct{}, 1)}
}

// Current is the session that is open; nil for none. It may end at any time.
func (k *Keeper) Current() *Session {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.current != nil && k.current.Remaining() > 0 {
		return k.current
	}
	return nil
}

// Use returns the open session, and opens one where there is none. It stays open, if it can be renewed,
// until Session.Unuse has been called as often. A session that nothing depends on is not renewed, and ends when
// half of its lease is over. Its row stays: the next session continues it, under the same ID.
//
// Cost: none, or one conditional write to open it.
func (k *Keeper) Use(ctx context.Context) (*Session, error) {
	if s, err := k.use(); s != nil || err != nil {
		return s, err
	}
	select {
	case k.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, clock.Cause(ctx)
	}
	defer func() { <-k.turn }()
	for {
		s, err := k.use() // perhaps another caller has opened it meanwhile
		if s == nil && err == nil {
			if err = k.open(ctx); err == nil || errors.Is(err, ErrDead) {
				continue // where the old row was marked dead, the next round makes a new one
			}
			err = fmt.Errorf("open a session: %w", err)
		}
		return s, err
	}
}

// use counts one more that depends on the session that is open; nil where none is.
func (k *Keeper) use() (*Session, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch s := k.current; {
	case k.closed:
		return nil, ErrClosed
	case s == nil || s.Remaining() == 0:
		return nil, nil
	default:
		s.uses++
		return s, nil
	}
}

// open opens a session. The turn is taken.
//
// Cost: one conditional write; another one where no answer has told DynamoDB's time before, and the local clock is slow.
func (k *Keeper) open(ctx context.Context) error {
	k.mu.Lock()
	s := k.next
	k.mu.Unlock()
	if s == nil {
		s = k.newSession(k.repeater.Clock.Text())
		s.fresh, s.beat = true, -1
	}
	var start clock.Instant
	var h attempt.History
	err := k.repeater.Do(ctx, attempt.Timeout(k.config.Lease), &h, func(ctx context.Context, before clock.Instant) error {
		start = before
		_, err := s.write(ctx)
		return err
	})
	if err == nil {
		s.begin(start)
	}
	k.mu.Lock()
	switch {
	case err == nil:
		k.current, k.next = s, nil
		k.work.Go(s.keep)
	case errors.Is(err, ErrDead):
		k.next = nil
	case h.Sent > 0:
		k.next = s // one of the attempts may have written the row
	}
	k.mu.Unlock()
	if err == nil {
		k.config.Hooks.Opened(s)
	}
	return err
}

// idle reports whether nothing depends on a session. One that nothing has depended on for half a lease ends.
func (k *Keeper) idle(s *Session) bool {
	left, next := s.Remaining(), s.successor()
	k.mu.Lock()
	idle := s.uses == 0
	ends := idle && left < k.config.Lease/2
	if ends {
		k.current, k.next = nil, next
	}
	k.mu.Unlock()
	if ends {
		s.End(ErrIdle)
	}
	return idle
}

// Close ends the session, deletes its row, and waits until that is done or ctx ends. Where the row could
// not be deleted its time to live does it. Nothing is opened any more.
//
// Cost: one conditional write where a session is open, or was.
func (k *Keeper) Close(ctx context.Context) error {
	k.mu.Lock()
	k.closed = true
	k.mu.Unlock()
	done := make(chan struct{})
	go func() {
		defer close(done)
		k.turn <- struct{}{} // waits for a session that is being opened
		defer func() { <-k.turn }()
		last := k.Current()
		if last != nil {
			last.End(ErrClosed)
		}
		k.work.Wait()
		k.mu.Lock()
		last, k.next = cmp.Or(last, k.next), nil
		k.mu.Unlock()
		if last != nil {
			last.remove(ctx)
		}
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return clock.Cause(ctx)
	}
}
