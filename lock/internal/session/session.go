package session

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock/internal/attempt"
	"github.com/mortise-go/mortise/lock/internal/clock"
	"github.com/mortise-go/mortise/table"
)

// Session is this process's session: a row that one goroutine renews. It is safe for concurrent use.
type Session struct {
	keeper *Keeper
	id     string
	key    keys.Key
	number atomic.Int64
	told   atomic.Bool   // Hooks.Opened was called
	uses   int           // how many depend on it; guarded by keeper.mu
	ended  chan struct{} // closed when the term ends

	// Term begins when the session is opened, and is extended by each renewal. Its end is the session's.
	*clock.Term

	// Of the goroutine that opens it, and then of the one that renews it.
	fresh    bool     // its row may have to be made
	beat     int64    // of the last write
	answered []string // questions that the next write takes out of the mailbox
	tried    int      // counts questions that were tried, to begin with others the next time
}

func (k *Keeper) newSession(id string) *Session {
	return &Session{keeper: k, id: id, key: k.config.Key(id), ended: make(chan struct{})}
}

// successor is the session that continues the row of one that has ended idle.
func (s *Session) successor() *Session {
	next := &Session{keeper: s.keeper, id: s.id, key: s.key, ended: make(chan struct{}), beat: s.beat, answered: s.answered}
	next.number.Store(s.number.Load())
	return next
}

// ID tells the session from those of all other processes, for ever. One that follows an idle session has the same.
func (s *Session) ID() string { return s.id }

// Next is the next number of a ticket under this ID, from 1. No number comes twice.
func (s *Session) Next() int64 { return s.number.Add(1) }

// Ended is closed when the session has ended.
func (s *Session) Ended() <-chan struct{} { return s.ended }

// Use keeps the session open until another call of Unuse, for what depends on it beside the caller.
func (s *Session) Use() { s.count(1) }

// Unuse takes back one Keeper.Use or Use.
func (s *Session) Unuse() { s.count(-1) }

func (s *Session) count(more int) int {
	s.keeper.mu.Lock()
	defer s.keeper.mu.Unlock()
	s.uses += more
	return s.uses
}

func (s *Session) begin(start clock.Instant) {
	k := s.keeper
	length := k.config.Lease - k.config.Margin
	s.Term = k.terms.Begin(start, length, clock.Watch{
		Tell: func(cause error) {
			close(s.ended)
			k.config.Hooks.Ending(s, cause)
		},
		End:   func(cause error) { k.config.Hooks.Ended(s, cause) },
		LowAt: time.Duration(float64(length) * k.config.RiskPart),
		Low: func() {
			if s.count(0) > 0 { // or else it is not renewed, and has nothing at risk
				k.config.Hooks.Risk(true)
			}
		},
	})
}

// Confirm finds out whether the session is alive at a moment after the call began. It ends one that
// is not. What cannot be found out is an error, and the session goes on.
//
// Cost: one consistent read.
func (s *Session) Confirm(ctx context.Context) (alive bool, err error) {
	k := s.keeper
	if s.Remaining() == 0 {
		return false, nil
	}
	_, err = k.repeater.Do(ctx, attempt.Timeout(k.config.Lease), func(ctx context.Context) error {
		item, err := k.repeater.Table.Get(ctx, s.key, true)
		row, bad := k.config.Names.Parse(item)
		if alive = bad == nil && !row.Dead; errors.Is(err, table.ErrNotFound) {
			return nil
		}
		return err
	})
	if err != nil {
		return false, err
	}
	if !alive {
		s.End(ErrDead)
	}
	return s.Cause() == nil, nil
}

// remove deletes the row. Should that fail, its time to live does it.
func (s *Session) remove(ctx context.Context) {
	k, n := s.keeper, s.keeper.config.Names
	ctx, cancel := k.repeater.Clock.Detached(ctx)
	defer cancel()
	err := k.repeater.Table.Write(ctx, table.Delete(s.key).If(table.Or(
		table.Attr(n.PK).NotExists(), table.Attr(n.Type).Equal(Type))))
	if err != nil {
		k.config.Hooks.Failed(err)
	}
}
