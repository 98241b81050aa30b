package session

import (
	"context"
	"errors"
	"strings"
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
	told   atomic.Bool     // Hooks.Opened was called
	uses   int             // how many depend on it; guarded by keeper.mu
	ctx    context.Context // begins and ends with the term
	stop   context.CancelFunc

	// Term begins when the session is opened. Each renewal extends it. The session ends with it.
	*clock.Term

	// These belong to the goroutine that opens the session, and then to the one that renews it.
	fresh    bool     // the row may not exist yet
	beat     int64    // number of the last write
	asked    []string // the mailbox, as the last write has found it
	answered []string // questions that the next write takes out of the mailbox
	tried    int      // counts questions that were tried, so that each round begins with others
}

// successor returns the session that continues the row of this one, which has ended idle.
func (s *Session) successor() *Session {
	next := &Session{keeper: s.keeper, id: s.id, key: s.key, beat: s.beat, answered: s.answered}
	next.number.Store(s.number.Load())
	return next
}

// id makes an ID of random text, in which there is no dot.
func (c *Config) id(text string) string {
	if c.Mark == "" {
		return text
	}
	return text + "." + c.Mark
}

// marked reports whether an ID is that of a session whose client has the same Key. No other client finds the session's row. Without the
// mark, it would take the session for one that has no row any more, which is dead.
func (c *Config) marked(id string) bool {
	text, mark, _ := strings.Cut(id, ".")
	return text != "" && mark == c.Mark
}

// ID is unique among the sessions of all processes, for ever. The session that continues an idle one has the same ID.
func (s *Session) ID() string { return s.id }

// Next returns the number of the next ticket under this ID, from 1. It returns no number twice.
func (s *Session) Next() int64 { return s.number.Add(1) }

// Ended is closed when the session has ended.
func (s *Session) Ended() <-chan struct{} { return s.ctx.Done() }

// Use keeps the session open until one more call of Unuse, for something that depends on it beside the caller.
func (s *Session) Use() { s.count(1) }

// Unuse takes back one call of Keeper.Use, Keeper.UseCurrent or Use.
func (s *Session) Unuse() { s.count(-1) }

func (s *Session) count(more int) int {
	s.keeper.mu.Lock()
	defer s.keeper.mu.Unlock()
	s.uses += more
	return s.uses
}

func (s *Session) begin(start clock.Instant) {
	k := s.keeper
	s.ctx, s.stop = context.WithCancel(context.Background())
	s.Term = k.terms.Begin(start, k.config.Own, clock.Watch{
		Tell: func(cause error) {
			s.stop()
			k.config.Hooks.Ending(s, cause)
		},
		End:   func(cause error) { k.config.Hooks.Ended(s, cause) },
		LowAt: time.Duration(float64(k.config.Own) * k.config.RiskPart),
		Low: func() {
			if s.count(0) > 0 { // an unused session is not renewed, and nothing is at risk
				s.told.Store(true) // Hooks.Opened would take the risk back
				k.config.Hooks.Risk(true)
			}
		},
	})
}

// Confirm finds out whether the session was alive at a moment after the call began. If it was not, Confirm ends it. If that cannot be
// found out, Confirm returns an error, and the session goes on.
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

// remove deletes the row. If that fails, DynamoDB's time to live deletes it later.
func (s *Session) remove(ctx context.Context) {
	k, n := s.keeper, s.keeper.config.Names
	ctx, cancel := k.repeater.Clock.Detached(ctx)
	defer cancel()
	_ = k.repeater.Table.Write(ctx, table.Delete(s.key).If(table.Or(
		table.Attr(n.PK).NotExists(), table.Attr(n.Type).Equal(Type))))
}
