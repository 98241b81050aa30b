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

// ordeal is one scenario under mishaps, and what the package has promised of it. Whatever does
// not hold is a violation, which whoever runs the ordeal judges: a broken client has to have
// some.
type ordeal struct {
	*world
	through func(aws.HTTPClient) aws.HTTPClient // what breaks the clients; nil for nothing
	strikes []strike
	calls   int      // that the scenario makes without any; 0 while that is not known
	made    []string // operations of the calls of the scenario

	processes []*process
	other     *process       // who comes in where a process stands still; nil where nobody does
	stalls    sync.WaitGroup // processes that stand still
	came      atomic.Int64   // locks that the other has had meanwhile
	targets   []lock.Target  // that anybody has asked for

	mu         sync.Mutex
	counting   bool
	struck     []int // how many calls were, by strike
	holdings   []*holding
	effects    []*effect
	violations []string
}

// strike is a mishap, and the call of the scenario that it strikes first.
type strike struct {
	mishap

	call int
}

// holding is a lease as its holder sees it.
type holding struct {
	*lock.Lease
	of       *process
	givenUp  bool // the holder has tried to give it up, or somebody has taken it by force
	released bool // and was told that it is
}

// effect is a write of its own attribute, under a lock.
type effect struct {
	name      string
	applied   bool // acknowledged
	uncertain bool // neither acknowledged nor refused
}

const (
	ordealLease  = 20 * time.Second
	ordealPeriod = 5500 * time.Millisecond // with jitter
	// From when its holder is gone, or does not hold it any more, until somebody else has a
	// lock: the lease, a period, the skew bound, and the longest poll.
	ordealBound = ordealLease + ordealPeriod + 2*time.Second + 1125*time.Millisecond
	// Whoever acquires in the end holds it for as long as anything can come in late.
	probeLease = 10 * time.Minute
	// No operation of a scenario takes longer than that.
	patience = 2 * time.Hour
)

func (o *ordeal) violated(format string, args ...any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.violations = append(o.violations, fmt.Sprintf(format, args...))
}

// due counts a call, and says what happens to it.
func (o *ordeal) due(operation string) (m *mishap, hit bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.counting {
		return nil, false
	}
	o.made = append(o.made, operation)
	n, last := len(o.made), 0
	for i := range o.strikes {
		k := &o.strikes[i]
		if n >= k.call && n < k.call+max(k.times, 1) && k.concerns(operation) {
			o.struck[i]++
			return &k.mishap, true
		}
		last = max(last, k.call)
	}
	if n >= o.calls && n < last {
		return &mishap{fault: tabletest.Fault{Kind: tabletest.DropReply}}, true // the call that is meant is a repetition
	}
	return nil, false
}

// begin is where the calls of the scenario begin to count.
func (o *ordeal) begin() {
	if slices.ContainsFunc(o.strikes, func(k strike) bool { return k.others }) {
		o.other = o.process()
		o.other.apart = true
		o.other.warm()
	}
	o.engine.ResetRequests()
	o.mu.Lock()
	defer o.mu.Unlock()
	o.counting, o.struck = true, make([]int, len(o.strikes))
}

// end ends what goes wrong, and says how often each strike has hit. Who stands still goes on
// in their own time.
func (o *ordeal) end() (struck []int) {
	o.mu.Lock()
	o.counting = false
	struck = o.struck
	o.mu.Unlock()
	o.engine.ClearFaults()
	synctest.Wait() // for whoever is about to stand still
	o.stalls.Wait()
	return struck
}

// mild says that operations have to succeed.
func (o *ordeal) mild() bool {
	return !slices.ContainsFunc(o.strikes, func(k strike) bool { return k.severe })
}

// late is when what comes in late has come in; left says that locks are left alone until then.
func (o *ordeal) late() (after time.Duration, left bool) {
	for _, k := range o.strikes {
		after, left = max(after, k.mishap.late), left || k.left
	}
	return after, left
}

// process begins another process, which has sent nothing yet.
func (o *ordeal) process() *process {
	p := &process{ordeal: o, to: o.engine.HTTPClient(), clock: &wallClock{}}
	if o.through != nil {
		p.to = o.through(p.to)
	}
	p.line = &line{to: p}
	p.ctx, p.cancel = context.WithTimeout(o.Context(), patience)
	config := quiet
	config.HomeRegion = tabletest.Region // spares the question for replicas
	tbl, err := table.Open(onMachine{o.sdk(p.line), &p.machine}, table.Schema{Name: "app"}, table.WithClock(p.clock.now))
	require.NoError(o, err)
	c, err := lock.New(tbl, config)
	require.NoError(o, err)
	p.Client = c
	o.processes = append(o.processes, p)
	return p
}

// warm has the process hold a lock: its session is open then.
func (p *process) warm() *process {
	l, err := p.TryAcquire(p.ctx, lock.Name("warm up"))
	require.NoError(p.ordeal, err)
	require.NoError(p.ordeal, l.Release(p.ctx))
	return p
}

// answered judges an error that an operation has ended with.
func (p *process) answered(operation string, err error) {
	o := p.ordeal
	switch {
	case err == nil:
	case errors.Is(p.ctx.Err(), context.DeadlineExceeded):
		o.violated("liveness: %s has not ended: %v", operation, err)
	case p.crashed.Load():
	case o.mild():
		o.violated("answer: %s failed of what the client can get over: %v", operation, err)
	case !slices.ContainsFunc([]error{
		context.Canceled, lock.ErrLost, lock.ErrReleased, table.ErrCredentials, table.ErrThrottled, table.ErrUnreachable,
	}, func(kind error) bool { return errors.Is(err, kind) }):
		o.violated("answer: %s failed with something else: %v", operation, err)
	}
}

// before lists what was granted of a lock up to now.
func (o *ordeal) before(target lock.Target) (list []*holding) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, h := range o.holdings {
		if h.Target() == target {
			list = append(list, h)
		}
	}
	return list
}

// asks notes that somebody is about to acquire a lock, and lists what was granted of it
// before that.
func (o *ordeal) asks(target lock.Target) []*holding {
	o.mu.Lock()
	if !slices.Contains(o.targets, target) {
		o.targets = append(o.targets, target)
	}
	o.mu.Unlock()
	return o.before(target)
}

// granted takes in that a lock was granted by a call that began after the leases before.
func (p *process) granted(l *lock.Lease, before []*holding) *holding {
	o := p.ordeal
	untold := 0 // holders that were not told that they hold no more
	for _, h := range o.before(l.Target()) {
		o.mu.Lock()
		givenUp := h.givenUp
		o.mu.Unlock()
		switch {
		case h.Fence() == l.Fence() && reads(h.Lease) && reads(l):
		case h.Fence() == l.Fence(), h.Fence() > l.Fence() && slices.Contains(before, h):
			o.violated("fence: %d was granted after %d", l.Fence(), h.Fence())
		case h.Fence() < l.Fence() && !givenUp && h.Context().Err() == nil && !h.of.machine.stands(): // see told
			if untold++; untold == permitsOf(l.Target()) {
				o.violated("exclusion: a lock was granted before its holder was told")
			}
		}
	}
	h := &holding{Lease: l, of: p}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.holdings = append(o.holdings, h)
	return h
}

// acquire acquires; nil where that failed, as it may.
func (p *process) acquire(target lock.Target, opts ...lock.Option) *holding {
	before := p.ordeal.asks(target)
	l, err := p.Acquire(p.ctx, target, opts...)
	p.answered("acquire", err)
	if err != nil {
		return nil
	}
	return p.granted(l, before)
}

// acquireLater is acquire in a goroutine of its own, which waits by the time that it returns.
func (p *process) acquireLater(target lock.Target, opts ...lock.Option) <-chan *holding {
	got := make(chan *holding, 1)
	go func() { got <- p.acquire(target, opts...) }()
	time.Sleep(500 * time.Millisecond)
	return got
}

// acquireAll acquires several at once.
func (p *process) acquireAll(targets []lock.Target, opts ...lock.Option) (b *lock.Bundle, list []*holding) {
	before := make([][]*holding, len(targets))
	for i, target := range targets {
		before[i] = p.ordeal.asks(target)
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

// effect has a write of its own applied under the leases of holdings, and notes what apply
// says of it. The row tells the order of the writes under each lock.
func (o *ordeal) effect(under []*holding, apply func(op table.Op) error) error {
	o.mu.Lock()
	e := &effect{name: fmt.Sprint("effect", len(o.effects)), uncertain: true}
	o.effects = append(o.effects, e)
	n := table.Attr(e.name)
	changes := []table.Change{n.Set(n.OrElse(0).Plus(1))}
	for _, h := range under {
		order := table.Attr(o.orderOf(h.Target()))
		changes = append(changes, order.Set(order.OrElse([]int64{}).Append([]int64{h.Fence()})))
	}
	o.mu.Unlock()
	err := apply(table.Update(o.row("effects"), changes...))
	o.mu.Lock()
	defer o.mu.Unlock()
	e.applied = err == nil
	// A context that ended with the lease says nothing of what was sent before.
	ended := errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
	refused := (errors.Is(err, lock.ErrLost) || errors.Is(err, lock.ErrReleased)) && !ended || len(table.Conditions(err)) > 0
	e.uncertain = err != nil && !refused
	return err
}

// orderOf names the attribute that tells the order of the writes under a lock.
func (o *ordeal) orderOf(target lock.Target) string {
	return fmt.Sprint("order", slices.Index(o.targets, target))
}

// write writes something under the lock.
func (h *holding) write() error {
	err := h.of.ordeal.effect([]*holding{h}, func(op table.Op) error { return h.Write(h.of.ctx, op) })
	h.judge("write", err)
	return err
}

// commit writes something and gives the lock up.
func (h *holding) commit() error {
	h.parts()
	err := h.of.ordeal.effect([]*holding{h}, func(op table.Op) error { return h.Commit(h.of.ctx, op) })
	h.judge("commit", err)
	h.gone("commit", err)
	return err
}

// release gives the lock up.
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
	if err == nil && h.Context().Err() != nil && !h.of.crashed.Load() && h.of.ordeal.mild() {
		h.of.ordeal.violated("answer: a lease was renewed that is over: %v", context.Cause(h.Context()))
	}
}

// parts notes that the holder tries to give the lock up: from now on it may be granted to
// others before an answer comes.
func (h *holding) parts() {
	h.of.ordeal.mu.Lock()
	defer h.of.ordeal.mu.Unlock()
	h.givenUp = true
}

// gone checks what a call has said that gives the lock up.
func (h *holding) gone(operation string, err error) {
	o := h.of.ordeal
	if err != nil && !errors.Is(err, lock.ErrLost) && !errors.Is(err, lock.ErrReleased) {
		return
	}
	if o.names(h) {
		o.violated("answer: the row still names a lease after %s: %v", operation, err)
	}
	cause := context.Cause(h.Context()) // the first counts
	if err == nil && o.mild() && !errors.Is(cause, lock.ErrReleased) && !errors.Is(cause, lock.ErrRevoked) {
		o.violated("answer: a lease ended with %v after %s", cause, operation)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	h.released = true
}

// judge checks what an operation under a lease has said.
func (h *holding) judge(operation string, err error) {
	h.of.answered(operation, err)
	if errors.Is(err, lock.ErrStolen) && h.of.ordeal.names(h) {
		h.of.ordeal.violated("answer: %s says that the lock was lost, and the row still names the lease: %v", operation, err)
	}
}

// names says whether the lock's row names a lease.
func (o *ordeal) names(h *holding) bool {
	item, err := o.table.Get(context.WithoutCancel(o.Context()), h.Key(), true)
	if !errors.Is(err, table.ErrNotFound) {
		require.NoError(o, err)
	}
	if reads(h.Lease) || permitsOf(h.Target()) > 1 {
		return h.holds(item)
	}
	line, _ := item["line"].(*types.AttributeValueMemberL)
	if line == nil || len(line.Value) == 0 || number(o.T, item["fence"]) != h.Fence() {
		return false
	}
	first, ok := line.Value[0].(*types.AttributeValueMemberS)
	return ok && strings.HasPrefix(first.Value, h.Ticket()+"@")
}

// run goes through a scenario, and says which calls it has made, and how many went wrong.
func (o *ordeal) run(scenario func(*ordeal)) (made []string, struck []int) {
	scenario(o)
	struck = o.end()
	o.settle()
	return o.made, struck
}
