package lock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/cenkalti/backoff/v4"

	"github.com/mortise-go/mortise/entity"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
)

// Client acquires locks in one table. It is safe for concurrent use; a process needs one
// per table. Close it.
type Client struct {
	names

	table      *table.Table
	scheme     keys.Scheme
	config     Config
	clock      clock
	records    *entity.Entity[Record]
	sessions   *entity.Entity[sessionRow]
	room       *room
	standalone *keys.Template
	rowKey     *keys.Template
	rows       *rows

	instruments *instruments // nil without a MeterProvider

	closing context.Context // ends when Close begins: waiters listen
	close   context.CancelFunc
	work    sync.WaitGroup // goroutines, and acquisitions under way

	mu      sync.Mutex // guards the following; never held across I/O
	leases  map[*Lease]struct{}
	current *session            // nil before the first acquisition, and after its end
	opening chan struct{}       // closed when the opening of a session has ended; nil when none is under way
	alive   map[string]sighting // foreign sessions that were seen to live
	closed  bool
	warned  bool // of the clock
}

// New makes a Client. It sends nothing.
func New(t *table.Table, config Config) (*Client, error) {
	if t == nil {
		return nil, wrap("new", fmt.Errorf("%w: nil table", ErrInvalid))
	}
	scheme := t.Scheme()
	if config.Backoff == nil {
		config.Backoff = func() backoff.BackOff { return waiting(t.Machine()) }
	}
	config = config.WithDefaults(scheme.Delimiter)
	if err := config.validate(fieldName); err != nil {
		return nil, wrap("new", err)
	}
	if here := t.Region(); config.HomeRegion != "" && here != "" && here != config.HomeRegion {
		return nil, wrap("new", fmt.Errorf("%w: Config.HomeRegion %q: the table's client is in %q", ErrInvalid, config.HomeRegion, here))
	}
	m, i := maker{}, (*instruments)(nil)
	if config.MeterProvider != nil {
		m.meter = config.MeterProvider.Meter(scope)
		i = newInstruments(&m)
		t = t.Metered(&i.usage)
	}
	standalone, err := template(scheme.PKTemplate, config.StandaloneKey, "name")
	if err != nil {
		return nil, wrap("new", fmt.Errorf("%w: Config.StandaloneKey: %w", ErrInvalid, err))
	}
	rowKey, err := template(scheme.SKTemplate, config.RowKey, "of")
	if err != nil {
		return nil, wrap("new", fmt.Errorf("%w: Config.RowKey: %w", ErrInvalid, err))
	}
	n := names(config.AttributePrefix)
	if err := n.check(t.Schema()); err != nil {
		return nil, wrap("new", err)
	}
	if err := config.agree(t, false); err != nil {
		return nil, wrap("new", err)
	}
	records, err := entity.Define(t, entity.Spec[Record]{
		Type: recordType, PK: "{Partition:key}", SK: config.RowKey, TTL: "DeleteAfter", ReadOnly: true, AttributePrefix: config.AttributePrefix,
	})
	if err != nil {
		return nil, wrap("new", fmt.Errorf("Config.RowKey, or attributes of lock rows: %w", err))
	}
	index, err := newSparse(t.Schema(), n, config.Index)
	if err != nil {
		return nil, wrap("new", fmt.Errorf("Config.Index: %w", err))
	}
	rows, err := newRows(shape{scheme, n, index})
	if err != nil {
		return nil, wrap("new", err)
	}
	c := &Client{
		names: n, table: t, scheme: scheme, config: config, clock: clock{Machine: t.Machine(), table: t}, records: records, standalone: standalone, rowKey: rowKey,
		rows: rows, instruments: i, leases: map[*Lease]struct{}{}, alive: map[string]sighting{},
	}
	if _, err := template(scheme.PKTemplate, config.SessionKey, "id"); err != nil {
		return nil, wrap("new", fmt.Errorf("%w: Config.SessionKey: %w", ErrInvalid, err))
	}
	c.room = newRoom(c)
	c.sessions, err = entity.Define(t, entity.Spec[sessionRow]{
		Type: sessionType, PK: config.SessionKey, SK: config.SessionKey, TTL: "DeleteAfter", AttributePrefix: config.AttributePrefix,
	})
	if err != nil {
		return nil, wrap("new", fmt.Errorf("Config.SessionKey, or attributes of session rows: %w", err))
	}
	if err := config.agree(t, true); err != nil {
		return nil, wrap("new", err)
	}
	c.closing, c.close = context.WithCancel(context.Background())
	if err := c.measure(i, &m); err != nil {
		return nil, wrap("new", fmt.Errorf("Config.MeterProvider: %w", err))
	}
	return c, nil
}

// agreed is what all clients of a table have to have in common: they do not find each other's rows
// otherwise.
type agreed struct{ rowKey, sessionKey, attributePrefix string }

// agree refuses what clients of the same Table have otherwise, and has the table know this one
// if register says so.
func (c *Config) agree(t *table.Table, register bool) error {
	mine := agreed{c.RowKey, c.SessionKey, c.AttributePrefix}
	var value any
	if register {
		value = mine
	}
	return t.Register("lock.Config", value, func(_ string, other any) error {
		theirs, ok := other.(agreed)
		if !ok {
			return nil
		}
		for _, x := range []struct{ field, mine, theirs string }{
			{"RowKey", mine.rowKey, theirs.rowKey},
			{"SessionKey", mine.sessionKey, theirs.sessionKey},
			{"AttributePrefix", mine.attributePrefix, theirs.attributePrefix},
		} {
			if x.mine != x.theirs {
				return fmt.Errorf("%w: Config.%s: %q, and another client of this table has %q: all have to have the same", ErrInvalid, x.field, x.mine, x.theirs)
			}
		}
		return nil
	})
}

// template compiles a template whose one field is what keeps locks apart.
func template(compile func(string) (*keys.Template, error), text, field string) (*keys.Template, error) {
	t, err := compile(text)
	if err == nil && (len(t.Fields()) != 1 || t.Fields()[0].Name != field) {
		err = fmt.Errorf("want the one field %s", field)
	}
	return t, err
}

func (c *Client) isLock(item table.Item) bool {
	typ, ok := item[c.scheme.Type].(*types.AttributeValueMemberS)
	return ok && typ.Value == recordType
}

// Inspect reads a lock without acquiring it, consistently. A lock that was never acquired,
// or whose row has been deleted, is table.ErrNotFound.
//
// Cost: one consistent read.
func (c *Client) Inspect(ctx context.Context, target Target) (Record, error) {
	key, err := c.key(target)
	if err != nil {
		return Record{}, wrap("inspect", err)
	}
	item, err := c.table.Get(ctx, key, true)
	if err != nil {
		return Record{}, wrap("inspect", err)
	}
	r, err := c.recordOf(item)
	return r, wrap("inspect", err)
}

// Do acquires a lock, runs f under it, and releases it, also when f panics. f's context
// ends with ctx and with the lease, whose cause it then has. The error joins f's with that
// of the release, which is sent also where ctx has ended, bounded by 5 s. If the lock was
// lost on the way, the error matches ErrLost even where f returned nil. f may end the lease
// itself with Commit: that it succeeded proves that the lock was held, whatever the clock
// has said before.
func (c *Client) Do(ctx context.Context, target Target, f func(ctx context.Context, lease *Lease) error) (err error) {
	if f == nil {
		return wrap("do", fmt.Errorf("%w: nil function", ErrInvalid))
	}
	lease, err := c.Acquire(ctx, target)
	if err != nil {
		return err
	}
	inside, stop := until(ctx, context.Cause, lease.ctx)
	defer stop()
	defer func() { err = lease.finish(ctx, err) }()
	return f(inside, lease)
}

// finish ends a lease whose work ended with err.
func (l *Lease) finish(ctx context.Context, err error) error {
	if l.released.Load() {
		if l.overdue.Load() {
			return join(err, wrap("do", ErrMaxHold))
		}
		return err
	}
	lost := l.cause()
	ctx, cancel := l.client.clock.detached(ctx)
	defer cancel()
	released := l.release(ctx)
	switch {
	case released == nil && errors.Is(lost, ErrLost):
		released = wrap("do", lost)
	case errors.Is(released, ErrLost) && errors.Is(err, ErrLost):
		return err // says so already
	}
	return join(err, released)
}

// Close ends all waiting, which gets ErrClosed, releases every lock, going on past errors
// until ctx ends (or, where it has ended before, for 5 s), and ends the session, which is
// renewed until then. It waits for no waiter, but for acquisitions that it met on their way
// to be taken back. It does not wait for OnLost. A second call releases what the first
// could not.
//
// Cost: one conditional write per lock held, and one for the session.
func (c *Client) Close(ctx context.Context) error {
	c.mu.Lock()
	c.closed = true
	list := make([]*Lease, 0, len(c.leases))
	for l := range c.leases {
		list = append(list, l)
	}
	c.mu.Unlock()
	inOrder(list)
	c.close()
	defer c.instruments.stop()
	ctx, cancel := c.clock.detach(ctx)
	defer cancel()

	var failed error
	for _, err := range each(list, func(l *Lease) error { return l.release(ctx) }) {
		if err != nil && !errors.Is(err, ErrLost) {
			failed = join(failed, err)
		}
	}
	// The session ends in any case: what could not be released frees itself.
	if s := c.currentSession(); s != nil {
		s.retire()
	}
	if failed != nil {
		return wrap("close", failed)
	}
	done := make(chan struct{})
	go func() {
		c.work.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return wrap("close", causeOf(ctx))
	}
}

// inOrder sorts leases by their keys, and those of one lock by their age: maps have no order,
// and the same run should send the same.
func inOrder(list []*Lease) {
	slices.SortFunc(list, func(a, b *Lease) int { return cmp.Or(byKey(a.key, b.key), cmp.Compare(a.fence, b.fence)) })
}

func byKey(a, b keys.Key) int {
	return cmp.Or(strings.Compare(a.PK, b.PK), strings.Compare(a.SK, b.SK))
}

// each calls f for each lease, a few at a time: enough to hide latency, not so many as to
// be throttled. Those come last that have to wait for a write under way, which may hang: they
// keep nobody waiting. The errors are in the order of the leases.
func each(list []*Lease, f func(*Lease) error) []error {
	var order, busy []int
	for i, l := range list {
		if len(l.turn) > 0 {
			busy = append(busy, i)
		} else {
			order = append(order, i)
		}
	}
	slots := make(chan struct{}, 16)
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
	return errs
}

// run starts a goroutine that Close waits for; false when the client is closed.
func (c *Client) run(f func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.work.Go(f)
	}
	return !c.closed
}

// session returns the current session, reserved for the acquisition with the given nonce,
// and opens one where there is none.
func (c *Client) session(ctx context.Context, nonce string) (*session, error) {
	for {
		if s := c.currentSession(); s != nil && s.reserve(nonce) {
			return s, nil
		}
		opening, mine := c.startOpening()
		if !mine {
			select {
			case <-opening:
				continue
			case <-ctx.Done():
				return nil, causeOf(ctx)
			}
		}
		s, err := c.openNext(ctx, opening)
		if err != nil {
			return nil, fmt.Errorf("open a session: %w", err)
		}
		c.tellSessionOpened(s)
	}
}

// openNext opens a session for everybody who waits for opening, which it closes also where
// opening one has panicked.
func (c *Client) openNext(ctx context.Context, opening chan struct{}) (s *session, err error) {
	defer func() {
		c.mu.Lock()
		if s != nil && s.term.ctx.Err() == nil {
			c.current = s
		}
		closed := c.closed
		c.opening = nil
		c.mu.Unlock()
		close(opening)
		if s != nil && closed {
			s.retire() // Close may have looked for it before it was there
		}
	}()
	return c.openSession(ctx)
}

// startOpening says who opens the next session: the caller, or somebody whom it can wait for.
func (c *Client) startOpening() (done chan struct{}, mine bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.opening != nil {
		return c.opening, false
	}
	c.opening = make(chan struct{})
	return c.opening, true
}

func (c *Client) currentSession() *session {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.current
}

// sessionEnded lets the next acquisition open another session.
func (c *Client) sessionEnded(s *session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.current == s {
		c.current = nil
	}
}

// owns says whether a session is this client's current one.
func (c *Client) owns(id string) bool {
	s := c.currentSession()
	return s != nil && s.id == id
}

// sawAlive remembers that a foreign session was alive just now, so that its locks are not
// suspected of being long dead again and again.
func (c *Client) sawAlive(id string, row *sessionRow) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.alive) >= 1000 {
		maps.DeleteFunc(c.alive, func(_ string, s sighting) bool { return c.outdated(s) })
	}
	c.alive[id] = sighting{at: c.clock.instant(), lease: time.Duration(row.Lease) * time.Millisecond}
}

// sighting is that a session was alive.
type sighting struct {
	at    instant
	lease time.Duration
}

// outdated says that a session may have died since, and its recorded end may lie back far enough.
func (c *Client) outdated(s sighting) bool { return c.clock.since(s.at) > s.lease+c.config.Skew }

func (c *Client) knownAlive(id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	s, ok := c.alive[id]
	return ok && !c.outdated(s)
}

// enter counts an acquisition as work that Close waits for; false when the client is closed.
func (c *Client) enter() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.work.Add(1)
	}
	return !c.closed
}

// admit begins an acquisition, of one lock or of several: the client is open, Close waits
// for it until leave, and no other region grants the same locks. waiting is ctx, ended by
// Close.
func (c *Client) admit(ctx context.Context) (waiting context.Context, leave func(), err error) {
	if !c.enter() {
		return nil, nil, ErrClosed
	}
	waiting, stop := c.waiting(ctx)
	leave = func() {
		stop()
		c.work.Done()
	}
	if err := c.home(waiting); err != nil {
		leave()
		return nil, nil, err
	}
	return waiting, leave, nil
}

// waiting is ctx, ended with ErrClosed by Close.
func (c *Client) waiting(ctx context.Context) (context.Context, func()) {
	return until(ctx, func(context.Context) error { return ErrClosed }, c.closing)
}

// home refuses a table that another region could grant locks in.
func (c *Client) home(ctx context.Context) error {
	if c.config.HomeRegion != "" {
		return nil
	}
	replicated, err := c.table.Replicated(ctx)
	switch {
	case err != nil:
		return fmt.Errorf("%w (the first acquisition asks whether the table has replicas; with Config.HomeRegion it does not)", err)
	case replicated:
		return ErrMultiRegion
	}
	return nil
}

// adopt makes the client own a lease; false when it has been closed meanwhile.
func (c *Client) adopt(l *Lease) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.leases[l] = struct{}{}
	return true
}

func (c *Client) forget(l *Lease) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.leases, l)
}

// newNonce is 128 random bits and a little more: 26 characters of base32.
func (c *Client) newNonce() string { return c.clock.Text() }

// clockIsOff warns once that the local clock is beyond the skew bound.
func (c *Client) clockIsOff(by time.Duration) {
	c.mu.Lock()
	first := !c.warned
	c.warned = true
	c.mu.Unlock()
	if first {
		c.tellClockOff(by)
	}
}
