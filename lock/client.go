package lock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/mortise-go/mortise/entity"
	"github.com/mortise-go/mortise/internal/toolkit"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock/internal/attempt"
	"github.com/mortise-go/mortise/lock/internal/clock"
	"github.com/mortise-go/mortise/lock/internal/lockrow"
	"github.com/mortise-go/mortise/lock/internal/session"
	"github.com/mortise-go/mortise/lock/internal/waitqueue"
	"github.com/mortise-go/mortise/table"
)

// Client acquires locks in one table. It is safe for concurrent use; a process needs one per table.
// Close it.
type Client struct {
	config   Config
	table    *table.Table
	repeater *attempt.Repeater
	terms    *clock.Terms
	layout   *layout
	metrics  *metrics // nil without a MeterProvider

	keeper  *session.Keeper // of this process's session
	others  *session.Others // what is known of other processes' sessions
	queues  waitqueue.Queues[*acquisition, *Lease]
	poller  *waitqueue.Poller // reads the rows that somebody waits for
	watched *watched          // the sessions that somebody waits behind
	tickets *tickets          // that this process answers for

	closing context.Context // ends when Close begins
	close   context.CancelCauseFunc
	work    work
}

// clk is where the time comes from.
func (c *Client) clk() clock.Clock { return c.repeater.Clock }

// New makes a Client. It sends nothing.
func New(t *table.Table, config Config) (*Client, error) {
	c, err := newClient(t, config)
	if err != nil {
		return nil, wrap("new", err)
	}
	return c, nil
}

func newClient(t *table.Table, config Config) (*Client, error) {
	if t == nil {
		return nil, invalid("nil table")
	}
	config = config.WithDefaults(t.Scheme().Delimiter)
	if err := config.validate(); err != nil {
		return nil, err
	}
	if here := t.Region(); config.HomeRegion != "" && here != "" && here != config.HomeRegion {
		return nil, invalid("Config.HomeRegion %q: the table's client is in %q", config.HomeRegion, here)
	}
	m, err := newMetrics(config.MeterProvider)
	if err != nil {
		return nil, fmt.Errorf("Config.MeterProvider: %w", err)
	}
	if m != nil {
		t = t.Metered(&m.usage)
	}
	l, err := newLayout(t, &config)
	if err != nil {
		return nil, err
	}
	clk := clock.New(t)
	c := &Client{
		config: config, table: t, terms: clock.NewTerms(clk), layout: l, metrics: m, tickets: newTickets(),
		repeater: &attempt.Repeater{Clock: clk, Table: t, Observer: m},
	}
	skew := config.Skew
	if config.Expiry == ObservedOnly {
		skew = 0
	}
	c.others = session.NewOthers(c.repeater, l.session, l.sessionAt, skew, config.Retention)
	c.keeper = session.NewKeeper(c.repeater, c.terms, session.Config{
		Names: l.session, Key: l.sessionAt, Owner: config.Owner, Lease: config.Lease, Margin: config.margin(config.Lease),
		Retention: config.Retention, RiskPart: config.AtRisk,
		Hooks: session.Hooks{
			Opened: c.sessionOpened, Ended: c.sessionEnded, Asked: c.asked, Renewed: c.renewed, Risk: config.OnAtRisk,
			Failed: func(err error) { c.metrics.renewalFailed(context.Background(), err) },
		},
	})
	c.closing, c.close = context.WithCancelCause(context.Background())
	c.poller = waitqueue.NewPoller(context.Background(), waitqueue.PollerConfig{
		Machine: clk.Machine,
		Read:    func(ctx context.Context, list []keys.Key) ([]table.Item, error) { return t.BatchGet(ctx, list, false) },
		Fatal:   func(err error) bool { return !t.Retryable(err) && !errors.As(err, new(*table.UnprocessedError)) },
		Timeout: attempt.Timeout(config.Lease),
	})
	c.watched = newWatched(c)
	if err := m.observe(metricSources{skew: c.clockSkew, remaining: c.Remaining, held: c.tickets.held}); err != nil {
		return nil, fmt.Errorf("Config.MeterProvider: %w", err)
	}
	return c, nil
}

// layout is where the rows of locks and sessions are in the table, and what their attributes are
// called.
type layout struct {
	rows       *lockrow.Rows
	names      lockrow.Names
	session    session.Names
	records    *entity.Entity[Record]
	sessions   *entity.Entity[sessionRecord]
	standalone *keys.Template
	rowKey     *keys.Template
	sessionAt  func(id string) keys.Key
	index      *sparse // nil for none
}

func newLayout(t *table.Table, config *Config) (*layout, error) {
	scheme := t.Scheme()
	l := &layout{
		names:   lockrow.NamesOf(scheme, config.AttributePrefix),
		session: session.NamesOf(scheme, config.AttributePrefix),
	}
	var err error
	if l.standalone, err = template(scheme.PKTemplate, config.StandaloneKey, "name"); err != nil {
		return nil, invalid("Config.StandaloneKey: %w", err)
	}
	if l.rowKey, err = template(scheme.SKTemplate, config.RowKey, "of"); err != nil {
		return nil, invalid("Config.RowKey: %w", err)
	}
	sessionPK, err := template(scheme.PKTemplate, config.SessionKey, "id")
	if err != nil {
		return nil, invalid("Config.SessionKey: %w", err)
	}
	sessionSK, err := template(scheme.SKTemplate, config.SessionKey, "id")
	if err != nil {
		return nil, invalid("Config.SessionKey: %w", err)
	}
	l.sessionAt = func(id string) keys.Key { // an ID that makes no key makes an empty one, which is refused
		pk, _ := sessionPK.Format(id)
		sk, _ := sessionSK.Format(id)
		return keys.NewKey(pk, sk)
	}
	if err := l.checkNames(t.Schema()); err != nil {
		return nil, err
	}
	if err := config.agree(t, false); err != nil {
		return nil, err
	}
	if err := toolkit.Claim(t, lockrow.Type, session.Type); err != nil {
		return nil, err
	}
	l.records, err = entity.Define(t, entity.Spec[Record]{
		Type: lockrow.Type, PK: "{Partition:key}", SK: config.RowKey, TTL: "DeleteAfter", ReadOnly: true, AttributePrefix: config.AttributePrefix,
	})
	if err != nil {
		return nil, fmt.Errorf("Config.RowKey, or attributes of lock rows: %w", err)
	}
	l.sessions, err = entity.Define(t, entity.Spec[sessionRecord]{
		Type: session.Type, PK: config.SessionKey, SK: config.SessionKey, TTL: "DeleteAfter", ReadOnly: true, AttributePrefix: config.AttributePrefix,
	})
	if err != nil {
		return nil, fmt.Errorf("Config.SessionKey, or attributes of session rows: %w", err)
	}
	if l.index, err = newSparse(t.Schema(), l.names, config.Index); err != nil {
		return nil, fmt.Errorf("Config.Index: %w", err)
	}
	l.rows = lockrow.NewRows(l.names, l.index.attributes())
	return l, config.agree(t, true)
}

// template compiles a template whose one field is what keeps rows apart.
func template(compile func(string) (*keys.Template, error), text, field string) (*keys.Template, error) {
	t, err := compile(text)
	if err == nil && (len(t.Fields()) != 1 || t.Fields()[0].Name != field) {
		err = fmt.Errorf("want the one field %s", field)
	}
	return t, err
}

// checkNames refuses attribute names that are something else in the table. An index over what lock
// rows say of themselves would list locks among the application's rows.
func (l *layout) checkNames(schema table.Schema) error {
	taken := map[string]string{}
	for _, x := range schema.Indexes {
		taken[x.PK], taken[x.SK] = "a key of index "+x.Name, "a key of index "+x.Name
	}
	s := schema.Keys
	taken[s.PK], taken[s.SK], taken[s.Type], taken[s.TTL] = "the partition key", "the sort key", "the type", "the time to live"
	n := l.session
	for _, name := range append(l.names.Own(), n.Owner, n.Lease, n.Beat, n.Expires, n.Dead, n.Ask) {
		if what, ok := taken[name]; ok {
			return invalid("attribute %q of lock and session rows is %s of the table: "+
				"set Config.AttributePrefix, the same for all clients of the table", name, what)
		}
	}
	return l.names.Check()
}

// agreed is what all clients of a table have to have in common: they do not find each other's rows
// otherwise.
type agreed struct{ RowKey, SessionKey, AttributePrefix string }

// agree refuses settings that clients of the same Table have otherwise. It makes this client's known if
// register is set.
func (c *Config) agree(t *table.Table, register bool) error {
	mine := agreed{c.RowKey, c.SessionKey, c.AttributePrefix}
	var value any
	if register {
		value = mine
	}
	return t.Register("lock.Config", value, func(_ string, other any) error {
		theirs, ok := other.(agreed)
		if !ok || theirs == mine {
			return nil
		}
		for _, x := range []struct{ field, mine, theirs string }{
			{"RowKey", mine.RowKey, theirs.RowKey},
			{"SessionKey", mine.SessionKey, theirs.SessionKey},
			{"AttributePrefix", mine.AttributePrefix, theirs.AttributePrefix},
		} {
			if x.mine != x.theirs {
				return invalid("Config.%s: %q, and another client of this table has %q: all have to have the same", x.field, x.mine, x.theirs)
			}
		}
		return nil
	})
}

// work is what Close waits for: calls under way, and goroutines.
type work struct {
	mu     sync.Mutex
	group  sync.WaitGroup
	closed bool
}

// enter counts a call; false when the client is closed.
func (w *work) enter() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.closed {
		w.group.Add(1)
	}
	return !w.closed
}

// run starts a goroutine from within a call.
func (w *work) run(f func()) { w.group.Go(f) }

// tryRun starts a goroutine, unless the client is closed.
func (w *work) tryRun(f func()) {
	if w.enter() {
		go func() {
			defer w.group.Done()
			f()
		}()
	}
}

// admit begins a call that acquires: the client is open, Close waits for the call until leave, and no
// other region grants the same locks. The context that it returns is ctx, ended by Close.
func (c *Client) admit(ctx context.Context) (open context.Context, leave func(), err error) {
	if !c.work.enter() {
		return nil, nil, ErrClosed
	}
	open, stop := c.open(ctx)
	leave = func() {
		stop()
		c.work.group.Done()
	}
	if c.config.HomeRegion == "" {
		replicated, err := c.table.Replicated(open)
		if err != nil {
			err = fmt.Errorf("%w (the first acquisition asks whether the table has replicas; with Config.HomeRegion it does not)", err)
		} else if replicated {
			err = ErrMultiRegion
		}
		if err != nil {
			leave()
			return nil, nil, err
		}
	}
	return open, leave, nil
}

// open is ctx, ended with ErrClosed by Close.
func (c *Client) open(ctx context.Context) (context.Context, func()) {
	return until(ctx, func(context.Context) error { return ErrClosed }, c.closing)
}

// atOnce is how many locks are released at a time: enough to hide latency, not so many as to be throttled.
const atOnce = 16

// Close ends all waiting, which gets [ErrClosed], releases every lock, going on past errors, and ends the
// session, which is renewed until then. All of it is bounded by ctx (where ctx has ended already, by 5 s)
// and by the time for which the leases go on: locks whose leases have ended free themselves. It does not
// wait for OnLost. A second call releases what the first could not.
//
// Cost: one conditional write per lock held, and one for the session.
func (c *Client) Close(ctx context.Context) error {
	ctx, cancel := c.clk().Detach(checked(ctx))
	defer cancel()
	c.work.mu.Lock()
	c.work.closed = true
	c.work.mu.Unlock()
	list := c.tickets.leases()
	c.close(ErrClosed)
	defer c.metrics.stop()

	err := eachLease(list, func(l *Lease) error { return l.releaseWhileHeld(ctx) })
	done := make(chan struct{})
	go func() {
		c.work.group.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
		err = join(err, causeOf(ctx))
	}
	err = join(err, c.keeper.Close(ctx))
	c.poller.Close()
	return wrap("close", err)
}

// eachLease calls f for leases, a few at a time. Those come last that wait for a write under way, since it
// may hang.
func eachLease(list []*Lease, f func(*Lease) error) error {
	order := make([]int, 0, len(list))
	var busy []int
	for i, l := range list {
		if l.turn.taken() {
			busy = append(busy, i)
		} else {
			order = append(order, i)
		}
	}
	slots := make(chan struct{}, atOnce)
	errs := make([]error, len(list))
	var all sync.WaitGroup
	for _, i := range append(order, busy...) {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			errs[i] = f(list[i])
		})
	}
	all.Wait()
	return join(errs...)
}

// sessionOpened is called for a new session of this process.
func (c *Client) sessionOpened(s *session.Session) {
	c.config.Logger.Debug("lock: session opened", "session", s.ID(), "lease", c.config.Lease)
	if by, ok := c.clockSkew(); ok && by.Abs() > c.config.Skew {
		c.config.Logger.Warn("lock: the clock is off: recorded ends of leases are not used", "by", by, "bound", c.config.Skew)
	}
}

// sessionEnded is called when this process's session has ended: every lease under it has, too.
func (c *Client) sessionEnded(s *session.Session, cause error) {
	lost := 0
	for _, l := range c.tickets.leases() {
		if l.session == s {
			lost++
			l.termEnded(cause)
		}
	}
	if errors.Is(cause, session.ErrIdle) || errors.Is(cause, session.ErrClosed) {
		c.config.Logger.Debug("lock: session ended", "session", s.ID())
		return
	}
	c.config.Logger.Warn("lock: session lost", "session", s.ID(), "leases", lost, "cause", cause)
}

// renewed is called after each renewal of the session, for work at that pace: releases that have failed
// are tried again, and the deletion of rows that are held for long is put off.
func (c *Client) renewed(ctx context.Context, _ *session.Session, left time.Duration) {
	c.metrics.renewed(ctx, left)
	for _, l := range c.tickets.leases() {
		if ctx.Err() != nil {
			return
		}
		l.maintain(ctx)
	}
}

// clockSkew is how far the local clock is behind DynamoDB's for certain; negative where it is ahead.
func (c *Client) clockSkew() (time.Duration, bool) { return behind(c.clk()) }

// ttl is the time to live of a lock's row that is written now, in epoch seconds. more is how long it is
// to be kept beyond the retention.
func (c *Client) ttl(more time.Duration) int64 {
	return c.clk().Today().Add(c.config.Retention+more).Unix() + 1
}

// now is the local time, which stands in rows for people, in epoch milliseconds.
func (c *Client) now() int64 { return c.clk().Instant().Wall.UnixMilli() }

// latest is the latest that the time can be, in epoch milliseconds: others count a lease of its own from it.
func (c *Client) latest() int64 {
	if latest, ok := c.clk().Latest(); ok {
		return latest.UnixMilli()
	}
	return c.now()
}

// past reports whether a recorded end lies back far enough for its holder to be taken for dead.
func (c *Client) past(end int64) bool {
	now, ok := c.clk().Earliest()
	return ok && c.config.Expiry != ObservedOnly && now.Add(-c.config.Skew).UnixMilli() > end
}

// read reads a lock's row, consistently. Where there is none the error is table.ErrNotFound.
//
// Cost: one read unit per 4 KB.
func (c *Client) read(ctx context.Context, key keys.Key) (lockrow.Row, error) {
	item, err := c.table.Get(ctx, key, true)
	if err != nil {
		return lockrow.Row{}, err
	}
	return c.layout.names.Parse(item)
}
