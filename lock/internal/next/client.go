// Package next is the lock as a line, on the layers below it: what package lock becomes. Nothing
// imports it yet. It acquires, waits, hands over, takes over, guards and releases; what stands around
// that (several locks at once, elections, schedules, operators' calls) is not in it.
package next

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock/internal/attempt"
	"github.com/mortise-go/mortise/lock/internal/clock"
	"github.com/mortise-go/mortise/lock/internal/lockrow"
	"github.com/mortise-go/mortise/lock/internal/session"
	"github.com/mortise-go/mortise/lock/internal/waitqueue"
	"github.com/mortise-go/mortise/table"
)

// Errors of acquiring and holding.
var (
	ErrLost     = errors.New("lock lost")
	ErrExpired  = fmt.Errorf("%w: the lease ended without a renewal", ErrLost)
	ErrStolen   = fmt.Errorf("%w: the row does not name this holder any more", ErrLost)
	ErrRevoked  = errors.New("lock asked back")
	ErrReleased = errors.New("lock released")
	ErrHeld     = errors.New("lock is held")
	ErrClosed   = errors.New("lock client closed")
)

// HeldError is the error of a lock that somebody else holds, or waits for. It matches ErrHeld.
type HeldError struct {
	Line  []lockrow.Ticket // the first holds the lock
	Fence int64
	Since time.Time // when the first came to hold it, as the row tells
}

func (e *HeldError) Error() string {
	if len(e.Line) == 0 {
		return ErrHeld.Error()
	}
	return fmt.Sprintf("%v by %s, and %d wait", ErrHeld, e.Line[0].Owner, len(e.Line)-1)
}

// Is matches ErrHeld.
func (e *HeldError) Is(target error) bool { return target == ErrHeld }

func heldError(row *lockrow.Row) *HeldError {
	return &HeldError{Line: row.Line, Fence: row.Fence, Since: time.UnixMilli(row.HeldSince())}
}

// Config sets a Client up. All fields are required but ObservedOnly.
type Config struct {
	Lease, Margin, Skew, Retention time.Duration

	Owner        string
	Handoffs     int  // passes within the process in a row, while others wait
	ObservedOnly bool // recorded ends are not used
}

// DefaultConfig is a Config with the defaults of package lock.
func DefaultConfig(owner string) Config {
	return Config{
		Lease: 20 * time.Second, Margin: 200 * time.Millisecond, Skew: 2 * time.Second, Retention: 7 * 24 * time.Hour,
		Owner: owner, Handoffs: 16,
	}
}

// Client acquires locks in one table. It is safe for concurrent use.
type Client struct {
	config   Config
	table    *table.Table
	clock    clock.Clock
	repeater *attempt.Repeater
	terms    *clock.Terms
	rows     *lockrow.Rows
	keeper   *session.Keeper
	others   *session.Others
	queues   waitqueue.Queues[*acquisition, *Lease]
	poller   *waitqueue.Poller
	sessions *watched
	tickets  *tickets

	closing context.Context // ends when Close begins
	close   context.CancelCauseFunc
	work    sync.WaitGroup // calls and goroutines that Close waits for

	mu     sync.Mutex // guards the following; never held across I/O
	leases map[*Lease]struct{}
	undone map[*Lease]struct{} // leases whose release has failed
	closed bool
}

// New makes a Client. It sends nothing.
func New(t *table.Table, config Config) (*Client, error) {
	scheme := t.Scheme()
	names := lockrow.NamesOf(scheme, "")
	if err := names.Check(); err != nil {
		return nil, err
	}
	skew := config.Skew
	if config.ObservedOnly {
		skew = 0
	}
	clk := clock.New(t)
	c := &Client{
		config: config, table: t, clock: clk, repeater: &attempt.Repeater{Clock: clk, Table: t}, terms: clock.NewTerms(clk),
		rows: lockrow.NewRows(names, nil), tickets: newTickets(), leases: map[*Lease]struct{}{}, undone: map[*Lease]struct{}{},
	}
	sessionNames := session.NamesOf(scheme, "")
	keyOf := func(id string) keys.Key {
		text := scheme.Prefix + "SESSION" + string(rune(scheme.Delimiter)) + id
		return keys.NewKey(text, text)
	}
	c.others = session.NewOthers(c.repeater, sessionNames, keyOf, skew, config.Retention)
	c.keeper = session.NewKeeper(c.repeater, c.terms, session.Config{
		Names: sessionNames, Key: keyOf, Owner: config.Owner, Lease: config.Lease, Margin: config.Margin, Retention: config.Retention,
		Hooks: session.Hooks{Ended: c.sessionEnded, Asked: c.asked, Renewed: c.renewed},
	})
	c.closing, c.close = context.WithCancelCause(context.Background())
	c.poller = waitqueue.NewPoller(context.Background(), waitqueue.PollerConfig{
		Machine: clk.Machine,
		Read:    func(ctx context.Context, list []keys.Key) ([]table.Item, error) { return t.BatchGet(ctx, list, false) },
		Fatal:   func(err error) bool { return !t.Retryable(err) && !errors.As(err, new(*table.UnprocessedError)) },
	})
	c.sessions = &watched{client: c, list: map[string]*watchedSession{}}
	return c, nil
}

// enter counts a call that Close waits for; false when the client is closed.
func (c *Client) enter() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.work.Add(1)
	}
	return !c.closed
}

// Close ends all waiting, releases every lock, and ends the session, which is renewed until then. Leases
// that are over are left alone. All of it is bounded by ctx.
func (c *Client) Close(ctx context.Context) error {
	ctx, cancel := c.clock.Detach(ctx)
	defer cancel()
	c.mu.Lock()
	c.closed = true
	list := make([]*Lease, 0, len(c.leases))
	for l := range c.leases {
		list = append(list, l)
	}
	c.mu.Unlock()
	c.close(ErrClosed)
	slots := make(chan struct{}, 16)
	errs := make([]error, len(list))
	var all sync.WaitGroup
	for i, l := range list {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			if err := l.Release(ctx); err != nil && !errors.Is(err, ErrLost) {
				errs[i] = err
			}
		})
	}
	all.Wait()
	done := make(chan struct{})
	go func() {
		c.work.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
		errs = append(errs, clock.Cause(ctx))
	}
	errs = append(errs, c.keeper.Close(ctx))
	c.poller.Close()
	return errors.Join(errs...)
}

// ttl is the time to live of a row that is written now, in epoch seconds.
func (c *Client) ttl() int64 { return c.clock.Today().Add(c.config.Retention).Unix() + 1 }

// now is the time for people, and for the leases of Fixed tickets, in epoch milliseconds.
func (c *Client) now() int64 { return c.clock.Instant().Wall.UnixMilli() }

// sessionEnded is called when this process's session has ended: every lease and place depends on it.
func (c *Client) sessionEnded(s *session.Session, cause error) {
	c.mu.Lock()
	list := make([]*Lease, 0, len(c.leases))
	for l := range c.leases {
		if l.session == s {
			list = append(list, l)
		}
	}
	c.mu.Unlock()
	for _, l := range list {
		l.termEnded(cause)
	}
}

// renewed is called after each renewal of the session: what could not be released is tried again.
func (c *Client) renewed(ctx context.Context, _ *session.Session, _ time.Duration) {
	c.mu.Lock()
	list := make([]*Lease, 0, len(c.undone))
	for l := range c.undone {
		list = append(list, l)
	}
	c.mu.Unlock()
	for _, l := range list {
		if ctx.Err() != nil {
			return
		}
		_ = l.release(ctx)
	}
}
