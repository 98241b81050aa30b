package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

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
	// Opened is called for each session that was opened, by the first of those who wait for it.
	Opened func(s *Session)
	// Ending and then Ended are called once for each session, with the cause. Ending tells the holders, and must return at
	// once. Ended may log.
	Ending, Ended func(s *Session, cause error)
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
	opening  singleflight.Group // all who wait for a session share its opening
	work     sync.WaitGroup     // what opens and renews
	ctx      context.Context    // of opening: ends with Close
	stop     context.CancelFunc

	mu      sync.Mutex // guards the following, and Session.uses; never held across I/O
	current *Session   // nil for none
	next    *Session   // to be opened: its row is there, or may be; nil for one with a new row
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
	return k.alive()
}

// alive is Current. It is called with mu held.
func (k *Keeper) alive() *Session {
	if k.current == nil || k.current.Remaining() == 0 {
		return nil
	}
	return k.current
}

// Use returns the open session, and opens one where there is none. It stays open, if it can be renewed,
// until Session.Unuse has been called as often. A session that nothing depends on is not renewed, and ends when
// half of its lease is over. Its row stays: the next session continues it, under the same ID.
//
// All who want a session while one is opened share the opening, and its error. The opening ends with Close, and with no
// context of theirs: of those who ask at the same moment, it makes no difference who is first.
//
// Cost: none, or one conditional write to open it.
func (k *Keeper) Use(ctx context.Context) (*Session, error) {
	for {
		if s := k.UseCurrent(); s != nil {
			return s, nil
		}
		select {
		case opened := <-k.opening.DoChan("", func() (any, error) { return k.open(context.WithoutCancel(ctx)) }):
			switch s, err := opened.Val.(*Session), opened.Err; {
			case k.ctx.Err() != nil:
				return nil, ErrClosed
			case errors.Is(err, ErrDead): // the old row was marked so: the next round makes a new one
			case err != nil:
				return nil, fmt.Errorf("open a session: %w", err)
			case !s.told.Swap(true):
				k.config.Hooks.Opened(s)
			}
		case <-ctx.Done():
			return nil, clock.Cause(ctx)
		}
	}
}

// UseCurrent is Use for the session that is open; nil where none is.
func (k *Keeper) UseCurrent() *Session {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := k.alive()
	if s != nil {
		s.uses++
	}
	return s
}

// open opens a session, unless one is open by now, or the keeper is closed: then it returns nil. The context has the values of
// the first one who asked for it.
//
// Cost: one conditional write; another one where no answer has told DynamoDB's time before, and the local clock is slow.
func (k *Keeper) open(ctx context.Context) (*Session, error) {
	k.mu.Lock()
	s, open := k.next, k.alive()
	begins := open == nil && k.ctx.Err() == nil
	if begins {
		k.work.Add(1) // under mu: Close waits for it
	}
	k.mu.Unlock()
	if !begins {
		return open, nil
	}
	defer k.work.Done()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(k.ctx, cancel)() //nolint:contextcheck // it ends with the keeper, and with no caller
	if s == nil {
		s = k.newSession(k.repeater.Clock.Text())
		s.fresh, s.beat = true, -1
	}
	var start clock.Instant
	var asked []string
	_, err := k.repeater.Do(ctx, attempt.Timeout(k.config.Lease), func(ctx context.Context) (err error) {
		start = k.repeater.Clock.Instant()
		asked, err = s.write(ctx)
		return err
	})
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case errors.Is(err, ErrDead):
		k.next = nil
	case err != nil, k.ctx.Err() != nil:
		k.next = s // the row may be there
	default:
		s.begin(start)
		k.current, k.next = s, nil
		k.work.Go(func() { s.keep(asked) }) //nolint:contextcheck // it renews for as long as the session goes on
	}
	return s, err
}

// renewing is how long a renewal may take of a session that was idle.
const renewing = 150 * time.Millisecond

// idle reports whether nothing depends on a session. One that nothing has depended on for nearly half a lease ends.
func (k *Keeper) idle(s *Session) bool {
	left := s.Remaining()
	k.mu.Lock()
	idle := s.uses == 0
	ends := idle && left < k.config.Lease/2+max(k.config.Lease/20, renewing) // before it could be taken for one whose renewal is overdue
	if ends {
		k.current, k.next = nil, s.successor()
	}
	k.mu.Unlock()
	if ends {
		s.End(ErrIdle)
		k.config.Hooks.Risk(false)
	}
	return idle
}

// Close ends the session, deletes its row, and waits until that is done or ctx ends. Where the row could
// not be deleted its time to live does it. Nothing is opened any more.
//
// Cost: one conditional write where a session is open, or was.
func (k *Keeper) Close(ctx context.Context) error {
	k.mu.Lock()
	k.stop()
	last := k.alive()
	k.mu.Unlock()
	return clock.Wait(ctx, func() {
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
	})
}
