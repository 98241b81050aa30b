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

// ErrClosed is the error of a Keeper that was closed, and the cause with which its session ends.
var ErrClosed = errors.New("session keeper closed")

// ErrDead is the cause with which a session ends if it was marked dead, or if its row is gone.
var ErrDead = errors.New("the session was marked dead")

// ErrIdle is the cause with which a session ends if nothing depends on it: such a session is not renewed.
var ErrIdle = errors.New("the session was not needed any more")

// Config has the settings of a Keeper and of Others.
type Config struct {
	Names     Names
	Key       func(id string) keys.Key
	Mark      string // end of the IDs of this client's sessions, which differs among clients with different Keys; may be empty
	Owner     string
	Lease     time.Duration // how long others wait for a renewal before they take the session for dead
	Own       time.Duration // how long the lease lasts on this side: less than Lease, since clocks run at different rates
	Retention time.Duration // how long the row outlasts its lease
	RiskPart  float64       // Hooks.Risk is called when less than this part of Own is left
	Hooks     Hooks
}

// Hooks are what a Keeper calls. Only Renewed and Asked get a context that bounds them. All others must not block for long, since they
// can delay renewals.
type Hooks struct {
	// Opened is called once for each session that was opened, by the first caller that receives it.
	Opened func(s *Session)
	// Ending and then Ended are called once for each session, with the cause. Ending tells the holders, and must return at once. Ended
	// may log.
	Ending, Ended func(s *Session, cause error)
	// Risk is called with true when too little of the lease is left (RiskPart), and with false when the session was renewed or has ended
	// idle. It may be called again with the same value.
	Risk func(atRisk bool)
	// Asked is called with each question of another process. It reports whether the question is answered. If not, the question comes
	// again with the next renewal.
	Asked func(ctx context.Context, q Question) (answered bool)
	// Renewed is called after each renewal, for other work at that pace. ctx ends before the next renewal is due. left is how long the
	// session would have lasted without this renewal.
	Renewed func(ctx context.Context, left time.Duration)
	// Failed is called for each renewal that failed and is repeated.
	Failed func(err error)
}

// Keeper keeps at most one session open for this process. It is safe for concurrent use.
type Keeper struct {
	config   Config
	repeater *attempt.Repeater
	terms    *clock.Terms
	calls    singleflight.Group // callers that wait for a session share its opening, and those that close the Keeper share its end
	work     sync.WaitGroup     // goroutines and calls that open or renew
	ctx      context.Context    // for opening; ends with Close
	stop     context.CancelFunc

	mu      sync.Mutex // guards the fields below, and Session.uses; never held during I/O
	current *Session   // nil for none
	next    *Session   // the session to open next, whose row exists or may exist; nil for one with a new row
}

// NewKeeper returns a Keeper. It sends nothing, and has no goroutine before the first session.
func NewKeeper(r *attempt.Repeater, terms *clock.Terms, c Config) *Keeper {
	k := &Keeper{config: c, repeater: r, terms: terms}
	k.ctx, k.stop = context.WithCancel(context.Background())
	return k
}

// Current returns the session that is open, or nil. The session may end at any time.
func (k *Keeper) Current() *Session {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.alive()
}

// alive does what Current does. It is called with mu held.
func (k *Keeper) alive() *Session {
	if k.current == nil || k.current.Remaining() == 0 {
		return nil
	}
	return k.current
}

// Use returns the open session, or opens one. The session then stays open, as long as it can be renewed, until Session.Unuse was called
// once for each Use. A session that nothing depends on is not renewed, and ends when half of its lease is over. Its row stays: the next
// session continues it, under the same ID.
//
// Callers that need a session while it is opened share the opening, and its error. The opening ends with Close, but not with the context
// of any caller: it makes no difference which of them came first.
//
// Cost: none, or one conditional write to open it.
func (k *Keeper) Use(ctx context.Context) (*Session, error) {
	for {
		if s := k.Current(); s != nil && !s.told.Swap(true) {
			k.config.Hooks.Opened(s) // before the session is used, since it may panic
		}
		if s := k.UseCurrent(); s != nil {
			return s, nil
		}
		select {
		case opened := <-k.calls.DoChan("open", func() (any, error) { return k.open(context.WithoutCancel(ctx)) }):
			switch err := opened.Err; {
			case k.ctx.Err() != nil:
				return nil, ErrClosed
			case errors.Is(err, ErrDead): // the old row was marked dead: the next round makes a new one
			case err != nil:
				return nil, fmt.Errorf("open a session: %w", err)
			}
		case <-ctx.Done():
			return nil, clock.Cause(ctx)
		}
	}
}

// UseCurrent does what Use does if a session is open. Otherwise it returns nil.
func (k *Keeper) UseCurrent() *Session {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := k.alive()
	if s != nil {
		s.uses++
	}
	return s
}

// open opens a session. If one is open by now, it returns that one. If the keeper is closed, it opens none. ctx has the values of the
// first caller that asked for the session.
//
// Cost: one conditional write; another one if the recorded end has to be corrected (see write).
func (k *Keeper) open(ctx context.Context) (*Session, error) {
	k.mu.Lock()
	s, open := k.next, k.alive()
	begins := open == nil && k.ctx.Err() == nil
	if begins {
		k.work.Add(1) // under mu, so that Close waits for it
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
		id := k.config.id(k.repeater.Clock.Text())
		s = &Session{keeper: k, id: id, key: k.config.Key(id), fresh: true, beat: -1}
	}
	var start clock.Instant
	_, err := k.repeater.Do(ctx, attempt.Timeout(k.config.Lease), func(ctx context.Context) error {
		start = k.repeater.Clock.Instant()
		return s.write(ctx)
	})
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case errors.Is(err, ErrDead):
		k.next = nil
	case err != nil, k.ctx.Err() != nil:
		k.next = s // the request may have made the row
	default:
		s.begin(start)
		k.current, k.next = s, nil
		k.work.Go(s.keep)
	}
	return s, err
}

// renewing is how long the renewal of a session may take that is used again after it was idle.
const renewing = 150 * time.Millisecond

// idle reports whether nothing depends on a session. It ends an idle session when nearly half of its lease is over.
func (k *Keeper) idle(s *Session) bool {
	left := s.Remaining()
	k.mu.Lock()
	idle := s.uses == 0
	ends := idle && left < k.config.Lease/2+max(k.config.Lease/20, renewing) // before its renewal would look overdue
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

// Close ends the session, deletes its row, and waits until that is done or ctx ends. If the row cannot be deleted, DynamoDB's time to
// live deletes it later. Afterwards no session can be opened. Another call waits for what the first one has begun.
//
// Cost: one conditional write if a session is or was open.
func (k *Keeper) Close(ctx context.Context) error {
	k.stop()
	select {
	case <-k.calls.DoChan("close", func() (any, error) {
		k.end(ctx)
		return nil, nil
	}):
		return nil
	case <-ctx.Done():
		return clock.Cause(ctx)
	}
}

// end ends the last session, after which no other begins. If it is called again, there is nothing left to do.
func (k *Keeper) end(ctx context.Context) {
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
}
