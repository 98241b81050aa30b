package lock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mortise-go/mortise/internal/inside"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock/internal/attempt"
	"github.com/mortise-go/mortise/lock/internal/clock"
	"github.com/mortise-go/mortise/lock/internal/lockrow"
	"github.com/mortise-go/mortise/lock/internal/session"
	"github.com/mortise-go/mortise/lock/internal/waitqueue"
	"github.com/mortise-go/mortise/table"
)

// Client acquires locks in one table. A process needs one Client per table. It is safe for concurrent use. Call
// [Client.Close] at the end.
type Client struct {
	config   Config
	table    *table.Table
	repeater *attempt.Repeater
	terms    *clock.Terms
	layout   *layout
	metrics  *metrics    // nil without a MeterProvider
	usage    table.Usage // of all requests, if there are metrics

	keeper   *session.Keeper // opens, renews and ends this process's session
	others   *session.Others // what is known of other processes' sessions
	queues   waitqueue.Queues[*acquisition, *acquisition]
	poller   *waitqueue.Poller // reads the rows that somebody waits for
	sessions *sessions         // looks at other processes' sessions for those who wait, and asks them
	tickets  tickets           // the tickets that this process answers for
	returns  returns           // the waiters that have lost their places and enter again
	vain     atomic.Int64      // for how long the last call that gave up had waited (a time.Duration); 0 if none has
	skips    skips             // when tickets have left a line without their turn
	sights   sights            // the tickets that kept others from holding

	maintained int // lets each renewal begin with other leases (attempt.OthersFirst); only the goroutine that renews the session uses it

	risks  risks
	warned atomic.Bool // checkClock has warned that the clock is off

	closing context.Context // ends when Close begins
	close   context.CancelCauseFunc
	working sync.Mutex     // held while closing ends, and while enter or tryRun begins work: so neither begins any after that
	work    sync.WaitGroup // what Close waits for: calls under way, and goroutines
	atClose []*Lease       // the leases that Close releases; another call of Close tries them again
}

func (c *Client) clk() clock.Clock { return c.repeater.Clock }

// New returns a client for the locks of a table. It sends no request. A setting that is not acceptable is an error that
// matches [ErrInvalid].
func New(t *table.Table, config Config) (*Client, error) {
	c, err := newClient(t, config)
	return c, wrap("new", err)
}

func newClient(t *table.Table, config Config) (*Client, error) {
	if t == nil {
		return nil, invalid("nil table")
	}
	config = config.withDefaults(t.Scheme().Delimiter)
	if err := allSettings().Check(config); err != nil {
		return nil, err
	}
	config.Lease = config.Lease.Truncate(time.Millisecond)
	if here := t.Region(); config.HomeRegion != "" && here != "" && here != config.HomeRegion {
		return nil, invalid("Config.HomeRegion %q: the table's client is in %q", config.HomeRegion, here)
	}
	c := &Client{config: config, tickets: tickets{known: map[string]claimant{}}, sights: sights{keep: 2 * config.Lease, seen: map[sight]seen{}}}
	if config.MeterProvider != nil {
		t = t.Metered(&c.usage)
	}
	l, err := newLayout(t, &config)
	if err != nil {
		return nil, err
	}
	clk := clock.New(t)
	clk.Skew, clk.ObservedOnly = config.Skew, config.Expiry == ObservedOnly
	c.table, c.layout, c.terms, c.repeater = t, l, clock.NewTerms(clk), &attempt.Repeater{Clock: clk, Table: t}
	shared := session.Config{
		Names: l.session, Key: l.sessionAt, Mark: l.sessionMark(), Owner: config.Owner,
		Lease: config.Lease, Own: config.own(config.Lease), Retention: config.Retention, RiskPart: config.AtRisk,
		Hooks: session.Hooks{
			Opened: c.sessionOpened, Ending: c.sessionEnding, Ended: c.sessionEnded, Asked: c.asked, Renewed: c.renewed, Risk: c.risk,
			Failed: func(err error) {
				ctx := context.Background()
				c.metrics.count(ctx, failedRenewals, failureOf(ctx, err)...)
			},
		},
	}
	c.keeper, c.others = session.NewKeeper(c.repeater, c.terms, shared), session.NewOthers(c.repeater, shared)
	c.closing, c.close = context.WithCancelCause(c.within(context.Background()))
	c.poller = waitqueue.NewPoller(waitqueue.PollerConfig{
		Machine: clk.Machine,
		Read: func(ctx context.Context, list []keys.Key) ([]table.Item, error) { // without retries, since the poller itself repeats
			return t.BatchGet(table.WithoutRetry(ctx), list, false)
		},
		Fatal:   func(err error) bool { return !t.Retryable(err) },
		Timeout: attempt.Timeout(config.Lease),
	})
	c.sessions = &sessions{client: c, looks: map[string]*sessionLook{}, questions: map[string][]session.Question{}}
	if c.metrics, err = newMetrics(c); err != nil {
		return nil, fmt.Errorf("Config.MeterProvider: %w", err)
	}
	return c, nil
}

// tryRun runs f in a goroutine that Close waits for. It returns false if the client is closed.
func (c *Client) tryRun(f func()) bool {
	c.working.Lock()
	defer c.working.Unlock()
	open := c.closing.Err() == nil
	if open {
		c.work.Go(f)
	}
	return open
}

// repeat calls f at least once, until f is done or Close begins, and reports whether f is done. Each call gets a context with the values
// of ctx that does not end with ctx.
func (c *Client) repeat(ctx context.Context, every time.Duration, f func(ctx context.Context) (done bool)) (done bool) {
	for {
		detached, cancel := c.clk().Detached(ctx)
		done = f(detached)
		cancel()
		if done || c.clk().Sleep(c.closing, every) != nil {
			return done
		}
	}
}

// enter begins a call, unless the client is closed. Close waits until leave is called. The context that enter returns ends with ctx, or
// when Close begins.
func (c *Client) enter(ctx context.Context) (open context.Context, leave func(), err error) {
	c.working.Lock()
	closed := c.closing.Err() != nil
	if !closed {
		c.work.Add(1)
	}
	c.working.Unlock()
	if closed {
		return nil, nil, ErrClosed
	}
	open, stop := until(c.within(ctx), c.closing)
	return open, func() {
		stop()
		c.work.Done()
	}, nil
}

// within is ctx for requests of the lock itself: each has the lock's timeout, or the timeout of the table's policy if that is shorter.
func (c *Client) within(ctx context.Context) context.Context {
	return inside.Within(checked(ctx), attempt.Timeout(c.config.Lease))
}

// checkRegion refuses a table in which another region could grant the same locks.
func (c *Client) checkRegion(ctx context.Context) error {
	if c.config.HomeRegion != "" {
		return nil
	}
	replicated, err := c.table.Replicated(ctx)
	switch {
	case err != nil:
		return fmt.Errorf("%w (the first request finds out whether the table has replicas, unless Config.HomeRegion is set)", err)
	case replicated:
		return ErrMultiRegion
	}
	return nil
}

// Close releases all locks of the client and ends its session. Calls that wait for a lock end with [ErrClosed]. The
// session is renewed until the last lock is released. An error in one release does not stop the others, unless DynamoDB
// answers none of them. After an error, Close can be called again: it releases the locks that are left.
//
// Close returns when ctx ends. If ctx has ended before the call, Close takes up to 5 s. The context of a lease, such as the
// one that [Client.Do] gives its function, ends when Close releases the lease; Close then takes up to 10 s more. It does not
// try to release a lock whose lease has ended: such a lock becomes free without it. It does not wait for the function OnLost
// of [Config].
//
// Cost: one conditional write for each lock that is held, and one for the session.
func (c *Client) Close(ctx context.Context) error {
	ctx, cancel := c.clk().Detach(checked(ctx))
	defer cancel()
	defer c.metrics.stop()
	c.working.Lock()
	first := c.closing.Err() == nil
	if first {
		c.close(ErrClosed)
		c.atClose = c.tickets.leases(func(*Lease) bool { return true })
	}
	c.working.Unlock()
	err := c.releaseAll(ctx, first)
	if endedWithALease(ctx) {
		ctx, cancel = c.clk().Detached(ctx)
		defer cancel()
		err = c.releaseAll(ctx, first)
	}
	err = join(err, clock.Wait(ctx, c.work.Wait))
	err = join(err, c.keeper.Close(ctx))
	c.poller.Close()
	return wrap("close", err)
}

// releaseAll releases the leases for Close. In an outage, or while the table is throttled, each release takes as long as the first one. So
// once a release has failed for such a reason, and no other release got an answer meanwhile, no further release is begun.
func (c *Client) releaseAll(ctx context.Context, first bool) error {
	var answered, untried atomic.Int64
	var outage atomic.Bool
	err := eachLease(c.atClose, func(l *Lease) error {
		switch {
		case l.is().Over(): // for example by an earlier Close
			return nil
		case outage.Load():
			if l.termCause() == nil {
				untried.Add(1)
			}
			return nil
		}
		before, release := answered.Load(), l.release
		if first {
			release = l.releaseWhileHeld
		}
		err := release(ctx)
		switch {
		case err == nil && !l.is().Over(): // the lease has ended, so it was not released: this is no answer
		case !errors.Is(err, table.ErrUnreachable) && !errors.Is(err, table.ErrThrottled):
			answered.Add(1)
		case answered.Load() == before:
			outage.Store(true)
		}
		if errors.Is(err, ErrLost) {
			return nil
		}
		return err
	})
	if n := untried.Load(); n > 0 {
		err = join(err, fmt.Errorf("the releases of %d more locks were not tried", n))
	}
	return err
}

// eachLease calls f for leases, a few at a time. Leases with a write under way come last: f waits for the write, which may hang.
func eachLease(list []*Lease, f func(*Lease) error) error {
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b *Lease) int { return len(a.turn.slot) - len(b.turn.slot) })
	return attempt.Each(list, f)
}

func (c *Client) sessionOpened(s *session.Session) {
	c.risk(false)
	c.config.Logger.Debug("lock: session opened", "session", s.ID(), "lease", c.config.Lease)
	c.checkClock()
}

// checkClock warns once if the local clock is off by more than Config.Skew.
func (c *Client) checkClock() {
	if by, ok := c.clk().Behind(); ok && by.Abs() > c.config.Skew && !c.warned.Swap(true) {
		c.config.Logger.Warn("lock: the clock is off: recorded ends of leases are neither used nor written", "by", by, "bound", c.config.Skew)
	}
}

// sessionEnding is called when this process's session ends, before sessionEnded. It tells all holders before anything is logged, since
// logging may take long.
func (c *Client) sessionEnding(s *session.Session, cause error) {
	for _, l := range c.tickets.leases(func(l *Lease) bool { return l.session == s }) {
		l.cancel(l.endOf(cause))
	}
}

// sessionEnded is called when this process's session has ended, and with it every lease under it.
func (c *Client) sessionEnded(s *session.Session, cause error) {
	list := c.tickets.leases(func(l *Lease) bool { return l.session == s })
	for _, l := range list {
		l.termEnded(cause)
	}
	if errors.Is(cause, session.ErrIdle) || errors.Is(cause, session.ErrClosed) {
		c.config.Logger.Debug("lock: session ended", "session", s.ID())
		return
	}
	c.config.Logger.Warn("lock: session lost", "session", s.ID(), "leases", len(list), "cause", cause)
}

// renewed is called after each renewal of the session. It maintains leases: it tries releases that have failed again, finds out what
// became of commits without an answer, and puts off the deletion of rows that are held for long.
func (c *Client) renewed(ctx context.Context, left time.Duration) {
	c.metrics.record(ctx, renewalRemaining, left)
	ctx = c.within(ctx)
	list := attempt.OthersFirst(c.tickets.leases((*Lease).due), &c.maintained)
	_ = eachLease(list, func(l *Lease) error {
		l.maintain(ctx)
		return nil
	})
}

// ttl is the time to live of a lock's row that is written now, in epoch seconds. more is how much longer than the retention the row is
// kept.
func (c *Client) ttl(more time.Duration) int64 {
	return c.clk().Stamp().Add(c.config.Retention+more).Unix() + 1
}

// now is the present time as it is written to rows, in epoch milliseconds.
func (c *Client) now() int64 { return c.clk().Stamp().UnixMilli() }

// learnTime sends a read if DynamoDB's time is not known, since each answer tells the time. The fence of a new row begins with that
// time, and for other processes a Fixed lease counts from it.
//
// Cost: half a read unit, or none.
func (c *Client) learnTime(ctx context.Context, key keys.Key) error {
	if _, _, known := c.clk().Server(); known {
		return nil
	}
	_, err := c.repeater.Do(ctx, attempt.Timeout(c.config.Lease), func(ctx context.Context) error {
		_, err := c.table.Get(ctx, key, false)
		if errors.Is(err, table.ErrNotFound) {
			return nil
		}
		return err
	})
	return err
}

// past reports whether a recorded end, in epoch milliseconds, is so far in the past that its holder may be taken for dead.
func (c *Client) past(end int64) bool {
	past, ok := c.clk().Past()
	return ok && end <= past
}

// read reads a lock's row, consistently. If there is none, the error is table.ErrNotFound.
//
// Cost: one read unit per 4 KB.
func (c *Client) read(ctx context.Context, key keys.Key) (lockrow.Row, error) {
	item, err := c.table.Get(ctx, key, true)
	if err != nil {
		return lockrow.Row{}, err
	}
	return c.layout.names.Parse(item)
}
