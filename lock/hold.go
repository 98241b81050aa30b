package lock

import (
	"errors"
	"fmt"
	"time"
)

// MaxHold ends the lease once it has been held for d, at least 100 ms, however well it is
// renewed: a holder that hangs does not keep others out for ever. Its context then ends with
// ErrMaxHold and the lock is released, after a guarded write under way.
func MaxHold(d time.Duration) Option {
	return func(a *acquisition) error {
		if d < MinFixed {
			return fmt.Errorf("%w: MaxHold(%v): want at least %v", ErrInvalid, d, MinFixed)
		}
		a.maxHold = d
		return nil
	}
}

// limitHold starts the timer of the maximum hold.
func (l *Lease) limitHold() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.maxHold > 0 {
		l.limit = l.client.clock.AfterFunc(l.maxHold-l.client.clock.ago(l.written), l.heldTooLong)
	}
}

func (l *Lease) stopLimit() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.limit != nil {
		l.limit.Stop()
	}
}

// heldTooLong tells the holder, and releases in its place.
func (l *Lease) heldTooLong() {
	l.end(ErrMaxHold)
	c := l.client
	c.run(func() { // or else the client is closing, which releases
		for !l.releaseOverdue() && l.session == nil && l.term.age() < l.length {
			// No session goes on trying.
			if c.clock.sleep(c.closing, min(l.length/4, detachedTimeout)) != nil {
				return
			}
		}
		if l.session == nil && c.closing.Err() == nil {
			c.forget(l)
		}
	})
}

// releaseOverdue releases in the holder's place; false where that has failed.
func (l *Lease) releaseOverdue() bool {
	c := l.client
	if l.takeTurn(c.closing) != nil {
		return false // Close releases
	}
	defer l.endTurn()
	ctx, cancel := c.clock.detached(c.closing)
	defer cancel()
	if l.released.Load() {
		return true // by the holder, meanwhile
	}
	err := l.releaseInTurn(ctx, true)
	if err != nil {
		c.config.Logger.Debug("lock: could not release what was held for too long", "error", err)
	}
	return err == nil || errors.Is(err, ErrLost)
}

// gone is the error of using a lease that has been released.
func (l *Lease) gone(operation string) error { return wrap(operation, l.given()) }

// given says how a lease that has been released was.
func (l *Lease) given() error {
	switch {
	case l.overdue.Load():
		return ErrMaxHold
	case l.forestalled.Load():
		return ErrClosed
	}
	return ErrReleased
}
