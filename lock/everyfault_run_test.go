package lock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// faultCase is one scenario with its faults, and the checks of the package's promises. A promise that does not hold is a
// violation. Tests judge the violations, since a broken client has to have some.
type faultCase struct {
	*world
	through func(aws.HTTPClient) aws.HTTPClient // breaks the clients; nil if they are not broken
	strikes []strike
	calls   int      // of the scenario without faults; 0 if not known yet
	made    []string // operations of the calls of the scenario

	processes []*process
	other     *process       // acquires while a process is halted; nil if none does
	stalls    sync.WaitGroup // processes that are halted
	came      atomic.Int64   // how often the other has acquired meanwhile
	targets   []lock.Target  // that any process has tried to acquire

	mu         sync.Mutex
	counting   bool
	struck     []int // how many calls each strike has hit
	holdings   []*holding
	effects    []*effect
	violations []string
}

// strike is a fault, and the first call of the scenario that it hits.
type strike struct {
	faultKind

	call int
}

// holding is a lease as its holder sees it.
type holding struct {
	*lock.Lease
	of       *process
	givenUp  bool // the holder has tried to release it, or it was taken by force
	released bool // and the holder was told that it is
}

// effect is a write under a lock, to an attribute that no other effect writes.
type effect struct {
	name      string
	applied   bool // acknowledged
	uncertain bool // neither acknowledged nor refused
}

const (
	caseLease  = 20 * time.Second
	casePeriod = 5500 * time.Millisecond // with jitter
	// From the moment at which a holder is gone, or has lost the lock, until another has it: the lease, a period, the skew
	// bound, and the longest pause between looks.
	caseBound = caseLease + casePeriod + 2*time.Second + 1125*time.Millisecond
	// The process that acquires in the end holds the lock for as long as any request can arrive late.
	probeLease = 10 * time.Minute
	// No operation of a scenario takes longer.
	patience = 2 * time.Hour
)

func (c *faultCase) violated(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.violations = append(c.violations, fmt.Sprintf(format, args...))
}

// due counts a call, and returns the fault that hits it.
func (c *faultCase) due(operation string) (m *faultKind, hit bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.counting {
		return nil, false
	}
	c.made = append(c.made, operation)
	n, last := len(c.made), 0
	for i := range c.strikes {
		k := &c.strikes[i]
		if n >= k.call && n < k.call+max(k.times, 1) && k.concerns(operation) {
			c.struck[i]++
			return &k.faultKind, true
		}
		last = max(last, k.call)
	}
	if n >= c.calls && n < last {
		return &faultKind{fault: tabletest.Fault{Kind: tabletest.DropReply}}, true // the strike is meant for a repetition
	}
	return nil, false
}

// begin begins to count the calls of the scenario.
func (c *faultCase) begin() {
	if slices.ContainsFunc(c.strikes, func(k strike) bool { return k.others }) {
		c.other = c.process()
		c.other.apart = true
		c.other.warm()
	}
	c.engine.ResetRequests()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counting, c.struck = true, make([]int, len(c.strikes))
}

// end ends the faults, and returns how often each strike has hit. Processes that are halted go on when their halt is over.
func (c *faultCase) end() (struck []int) {
	c.mu.Lock()
	c.counting = false
	struck = c.struck
	c.mu.Unlock()
	c.engine.ClearFaults()
	synctest.Wait() // until each process that is about to halt has halted
	c.stalls.Wait()
	return struck
}

// mild reports whether operations have to succeed.
func (c *faultCase) mild() bool {
	return !slices.ContainsFunc(c.strikes, func(k strike) bool { return k.severe })
}

// late is when late requests have arrived; left reports whether nobody acquires until then.
func (c *faultCase) late() (after time.Duration, left bool) {
	for _, k := range c.strikes {
		after, left = max(after, k.faultKind.late), left || k.left
	}
	return after, left
}

// process starts another process, which has sent nothing yet.
func (c *faultCase) process() *process {
	p := &process{c: c, to: c.engine.HTTPClient(), clock: &wallClock{}}
	if c.through != nil {
		p.to = c.through(p.to)
	}
	p.line = &line{to: p}
	p.ctx, p.cancel = context.WithTimeout(c.Context(), patience)
	config := quiet
	config.HomeRegion = tabletest.Region // no request for replicas
	tbl, err := table.Open(onMachine{c.sdk(p.line), &p.machine}, table.Schema{Name: "app"}, table.WithClock(p.clock.now))
	require.NoError(c, err)
	client, err := lock.New(tbl, config)
	require.NoError(c, err)
	p.Client = client
	c.processes = append(c.processes, p)
	return p
}

// warm lets the process hold a lock once, so that its session is open.
func (p *process) warm() *process {
	l, err := p.TryAcquire(p.ctx, lock.Name("warm up"))
	require.NoError(p.c, err)
	require.NoError(p.c, l.Release(p.ctx))
	return p
}

// answered checks the error of an operation.
func (p *process) answered(operation string, err error) {
	c := p.c
	switch {
	case err == nil:
	case errors.Is(p.ctx.Err(), context.DeadlineExceeded):
		c.violated("liveness: %s has not ended: %v", operation, err)
	case p.crashed.Load():
	case c.mild():
		c.violated("answer: %s failed of what the client can get over: %v", operation, err)
	case !slices.ContainsFunc([]error{
		context.Canceled, lock.ErrLost, lock.ErrReleased, table.ErrCredentials, table.ErrThrottled, table.ErrUnreachable,
	}, func(kind error) bool { return errors.Is(err, kind) }):
		c.violated("answer: %s failed with something else: %v", operation, err)
	}
}

// before lists the leases of a lock that were granted up to now.
func (c *faultCase) before(target lock.Target) (list []*holding) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, h := range c.holdings {
		if h.Target() == target {
			list = append(list, h)
		}
	}
	return list
}

// asks records that a process is about to acquire a lock, and lists the leases that were granted before.
func (c *faultCase) asks(target lock.Target) []*holding {
	c.mu.Lock()
	if !slices.Contains(c.targets, target) {
		c.targets = append(c.targets, target)
	}
	c.mu.Unlock()
	return c.before(target)
}

// granted records a lease, by a call that began after the leases before were granted.
func (p *process) granted(l *lock.Lease, before []*holding) *holding {
	c := p.c
	untold := 0 // former holders that were not told
	for _, h := range c.before(l.Target()) {
		c.mu.Lock()
		givenUp := h.givenUp
		c.mu.Unlock()
		switch {
		case h.Fence() == l.Fence() && reads(h.Lease) && reads(l):
		case h.Fence() == l.Fence(), h.Fence() > l.Fence() && slices.Contains(before, h):
			c.violated("fence: %d was granted after %d", l.Fence(), h.Fence())
		case h.Fence() < l.Fence() && !givenUp && h.Context().Err() == nil && !h.of.machine.stands(): // see told
			if untold++; untold == permitsOf(l.Target()) {
				c.violated("exclusion: a lock was granted before its holder was told")
			}
		}
	}
	h := &holding{Lease: l, of: p}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.holdings = append(c.holdings, h)
	return h
}

// acquire returns nil if that failed, as it may.
func (p *process) acquire(target lock.Target, opts ...lock.Option) *holding {
	before := p.c.asks(target)
	l, err := p.Acquire(p.ctx, target, opts...)
	p.answered("acquire", err)
	if err != nil {
		return nil
	}
	return p.granted(l, before)
}

// acquireLater is acquire in a goroutine, which waits by the time that acquireLater returns.
func (p *process) acquireLater(target lock.Target, opts ...lock.Option) <-chan *holding {
	got := make(chan *holding, 1)
	go func() { got <- p.acquire(target, opts...) }()
	time.Sleep(500 * time.Millisecond)
	return got
}

// acquireAll acquires several locks together.
func (p *process) acquireAll(targets []lock.Target, opts ...lock.Option) (b *lock.Bundle, list []*holding) {
	before := make([][]*holding, len(targets))
	for i, target := range targets {
		before[i] = p.c.asks(target)
	}
	b, err := p.AcquireAll(p.ctx, targets, opts...)
	p.answered("acquire all", err)
	if err != nil {
		return nil, nil
	}
	for i, l := range b.Leases() {
		list = append(list, p.granted(l, before[i]))
	}
	return b, list
}

// effect makes a write under several leases, by apply, and records its outcome. The row has the order of the writes under
// each lock.
func (c *faultCase) effect(under []*holding, apply func(op table.Op) error) error {
	c.mu.Lock()
	e := &effect{name: fmt.Sprint("effect", len(c.effects)), uncertain: true}
	c.effects = append(c.effects, e)
	n := table.Attr(e.name)
	changes := []table.Change{n.Set(n.OrElse(0).Plus(1))}
	for _, h := range under {
		order := table.Attr(c.orderOf(h.Target()))
		changes = append(changes, order.Set(order.OrElse([]int64{}).Append([]int64{h.Fence()})))
	}
	c.mu.Unlock()
	err := apply(table.Update(c.row("effects"), changes...))
	c.mu.Lock()
	defer c.mu.Unlock()
	e.applied = err == nil
	// The context ended with the lease. That proves nothing about requests that were sent before.
	ended := errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
	refused := (errors.Is(err, lock.ErrLost) || errors.Is(err, lock.ErrReleased)) && !ended || len(table.Conditions(err)) > 0
	e.uncertain = err != nil && !refused
	return err
}

// orderOf is the name of the attribute with the order of the writes under a lock.
func (c *faultCase) orderOf(target lock.Target) string {
	return fmt.Sprint("order", slices.Index(c.targets, target))
}

// write makes an effect under the lock.
func (h *holding) write() error {
	err := h.of.c.effect([]*holding{h}, func(op table.Op) error { return h.Write(h.of.ctx, op) })
	h.judge("write", err)
	return err
}

// commit makes an effect and releases the lock.
func (h *holding) commit() error {
	h.parts()
	err := h.of.c.effect([]*holding{h}, func(op table.Op) error { return h.Commit(h.of.ctx, op) })
	h.judge("commit", err)
	h.gone("commit", err)
	return err
}

// release releases the lock.
func (h *holding) release() {
	h.parts()
	err := h.Release(h.of.ctx)
	h.judge("release", err)
	h.gone("release", err)
}

// renew renews the lease, or asks whether it goes on.
func (h *holding) renew() {
	err := h.Renew(h.of.ctx)
	h.judge("renew", err)
	if err == nil && h.Context().Err() != nil && !h.of.crashed.Load() && h.of.c.mild() {
		h.of.c.violated("answer: a lease was renewed that is over: %v", context.Cause(h.Context()))
	}
}

// parts records that the holder tries to release the lock: from now on others may be granted it before there is an
// answer.
func (h *holding) parts() {
	h.of.c.mu.Lock()
	defer h.of.c.mu.Unlock()
	h.givenUp = true
}

// gone checks the answer of a call that releases the lock.
func (h *holding) gone(operation string, err error) {
	c := h.of.c
	if err != nil && !errors.Is(err, lock.ErrLost) && !errors.Is(err, lock.ErrReleased) {
		return
	}
	if c.names(h) {
		c.violated("answer: the row still names a lease after %s: %v", operation, err)
	}
	cause := context.Cause(h.Context()) // the first counts
	if err == nil && c.mild() && !errors.Is(cause, lock.ErrReleased) && !errors.Is(cause, lock.ErrRevoked) {
		c.violated("answer: a lease ended with %v after %s", cause, operation)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	h.released = true
}

// judge checks the answer of an operation under a lease.
func (h *holding) judge(operation string, err error) {
	h.of.answered(operation, err)
	if errors.Is(err, lock.ErrStolen) && h.of.c.names(h) {
		h.of.c.violated("answer: %s says that the lock was lost, and the row still names the lease: %v", operation, err)
	}
}

// names reports whether the lock's row names a lease.
func (c *faultCase) names(h *holding) bool {
	item, err := c.table.Get(context.WithoutCancel(c.Context()), h.Key(), true)
	if !errors.Is(err, table.ErrNotFound) {
		require.NoError(c, err)
	}
	if reads(h.Lease) || permitsOf(h.Target()) > 1 {
		return h.holds(item)
	}
	line, _ := item["line"].(*types.AttributeValueMemberL)
	if line == nil || len(line.Value) == 0 || number(c.T, item["fence"]) != h.Fence() {
		return false
	}
	first, ok := line.Value[0].(*types.AttributeValueMemberS)
	return ok && strings.HasPrefix(first.Value, h.Ticket()+"@")
}

// play runs a scenario, and returns its calls, and how many of them each strike has hit.
func (c *faultCase) play(scenario func(*faultCase)) (made []string, struck []int) {
	scenario(c)
	struck = c.end()
	c.settle()
	return c.made, struck
}
