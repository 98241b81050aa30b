package lock_test

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// settle lets the remaining processes release what they hold, and another process acquire it. After that, no late request
// may give a former holder anything back.
func (c *faultCase) settle() {
	ctx := context.WithoutCancel(c.Context())
	c.releaseAll(ctx)
	late, left := c.late()
	if left { // the next to acquire may have to wait for a late ticket
		time.Sleep(late + time.Second)
	}
	next := c.probe()
	for _, p := range c.processes {
		if p.paused {
			p.resume()
		}
	}
	time.Sleep(late + time.Second)
	c.formerHoldersGoOn(ctx, next)
	for _, h := range next {
		if err := c.effect([]*holding{h}, func(op table.Op) error { return h.Write(ctx, op) }); err != nil || h.Context().Err() != nil {
			c.violated("exclusion: somebody else's lock was lost: %v, %v", err, context.Cause(h.Context()))
		}
		if err := h.Release(ctx); err != nil {
			c.violated("exclusion: somebody else's lock was lost: %v", err)
		}
	}
	c.closeAll(ctx)
	c.account()
	c.last(ctx)
}

// last lets another process acquire each lock after all others are closed, whatever tickets they have left.
func (c *faultCase) last(ctx context.Context) {
	if !c.leavesGhosts() {
		return // account has found the lines empty
	}
	p := c.process()
	p.to = c.engine.HTTPClient()
	for _, target := range c.targets {
		begin := time.Now()
		bounded, cancel := context.WithTimeout(ctx, 5*time.Minute)
		l, err := p.takes(bounded, target, lock.Fixed(caseLease))
		cancel()
		if took := time.Since(begin); err != nil || took > caseBound*time.Duration(len(c.strikes)) {
			c.violated("liveness: acquired after %v when everybody was gone: %v", took, err)
		}
		if err == nil {
			p.granted(l, c.before(target)).parts()
			if err := l.Release(ctx); err != nil {
				c.violated("answer: the last release: %v", err)
			}
		}
	}
	if err := p.Close(ctx); err != nil {
		c.violated("answer: close: %v", err)
	}
}

// releaseAll releases the leases whose end their holders have not been told.
func (c *faultCase) releaseAll(ctx context.Context) {
	for _, h := range c.all() {
		c.mu.Lock()
		released := h.released
		c.mu.Unlock()
		if h.of.crashed.Load() || h.of.paused || released {
			continue
		}
		h.parts()
		if err := h.Release(ctx); err != nil && !errors.Is(err, lock.ErrLost) {
			c.violated("answer: release failed although nothing goes wrong: %v", err)
		}
	}
}

func (c *faultCase) all() []*holding {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.holdings)
}

// probe lets another process acquire each lock that was held, or may be held. It has to get each in time.
func (c *faultCase) probe() (list []*holding) {
	p := c.process()
	p.to = c.engine.HTTPClient() // not broken like the others
	end := time.Now()
	var wanted []lock.Target
	for _, target := range c.targets {
		wanted = append(wanted, slices.Repeat([]lock.Target{target}, permitsOf(target))...)
	}
	for _, target := range wanted {
		before := c.before(target)
		bounded, cancel := context.WithTimeout(p.ctx, 5*time.Minute)
		l, err := p.takes(bounded, target, lock.Fixed(probeLease))
		cancel()
		if took := time.Since(end); err != nil || took > caseBound*time.Duration(max(len(c.strikes), c.dead(), 1)) {
			c.violated("liveness: acquired after %v: %v", took, err)
		}
		if err == nil {
			list = append(list, p.granted(l, before))
		}
	}
	return list
}

// dead is the number of dead processes. Each delays those behind it once, also if it only waited.
func (c *faultCase) dead() (n int) {
	for _, p := range c.processes {
		if p.crashed.Load() || p.paused {
			n++
		}
	}
	return n
}

// formerHoldersGoOn lets all former holders go on as if they still held their locks.
func (c *faultCase) formerHoldersGoOn(ctx context.Context, next []*holding) {
	for _, h := range c.all() {
		if slices.Contains(next, h) {
			continue
		}
		// By hand, since a lease may know without a request that it is over.
		err := c.effect([]*holding{h}, func(op table.Op) error { return c.table.Write(ctx, op, h.Guard()) })
		if !errors.Is(err, lock.ErrLost) && !errors.Is(err, lock.ErrReleased) {
			c.violated("exclusion: a write under a lease that is over ended with %v", err)
		}
		if !h.of.crashed.Load() {
			if err := h.Release(ctx); err != nil && !errors.Is(err, lock.ErrLost) {
				c.violated("answer: the release of a lease that is over ended with %v", err)
			}
		}
		select { // one that crashed during its release is told when its lease ends
		case <-h.Context().Done():
		case <-time.After(caseLease):
			c.violated("exclusion: a holder was never told")
		}
	}
}

// closeAll closes all clients.
func (c *faultCase) closeAll(ctx context.Context) {
	for _, p := range c.processes {
		p.cancel()
		if err := p.Close(ctx); err != nil && !p.crashed.Load() {
			c.violated("answer: close: %v", err)
		}
	}
	// A client that could not release returns at once, and ends its work in the background. A goroutine that is left after
	// that is a panic: the bubble ends with this goroutine.
	time.Sleep(time.Minute)
}

// account checks the end: nothing is held, each effect was applied as often as reported, and none under a lease was applied
// after one of the next holder.
func (c *faultCase) account() {
	list := []keys.Key{c.row("effects")}
	for _, h := range c.all() {
		if !slices.Contains(list, h.Key()) {
			list = append(list, h.Key())
		}
	}
	items, err := c.table.BatchGet(context.WithoutCancel(c.Context()), list, true)
	require.NoError(c, err)
	for _, item := range items[1:] {
		if line, ok := item["line"].(*types.AttributeValueMemberL); ok && len(line.Value) > 0 && !c.leavesGhosts() {
			c.violated("liveness: a lock is held although everybody is gone: %v", line.Value)
		}
	}
	c.mu.Lock()
	effects := slices.Clone(c.effects)
	c.mu.Unlock()
	for _, e := range effects {
		n := int64(0)
		if av := items[0][e.name]; av != nil {
			n = number(c.T, av)
		}
		if n > 1 || e.applied && n == 0 || !e.applied && !e.uncertain && n > 0 {
			c.violated("effect: applied %d times; acknowledged %v, uncertain %v", n, e.applied, e.uncertain)
		}
	}
	for _, target := range c.asked() {
		list, _ := items[0][c.orderOf(target)].(*types.AttributeValueMemberL)
		if list == nil || permitsOf(target) > 1 { // holders that hold at once are in no order
			continue
		}
		last := int64(0)
		for _, av := range list.Value {
			fence := number(c.T, av)
			if fence < last {
				c.violated("exclusion: a write under fence %d was applied after one under %d", fence, last)
			}
			last = fence
		}
	}
}

// leavesGhosts reports whether a request may have arrived after its ticket had left the line: it leaves a ticket that nobody
// uses.
func (c *faultCase) leavesGhosts() bool {
	return slices.ContainsFunc(c.strikes, func(k strike) bool {
		f := k.fault
		return f.Kind == tabletest.DuplicateLate || f.Kind == tabletest.DropRequest && (f.For > 0 || f.AfterCalls > 0)
	})
}
