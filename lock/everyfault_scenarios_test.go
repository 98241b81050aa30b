package lock_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// scenario is an operation. Faults hit each of its calls.
type scenario struct {
	name string
	run  func(c *faultCase)
}

// targets are the locks of all scenarios.
func targets() []lock.Target {
	return []lock.Target{lock.Name("report"), lock.Name("second"), lock.Name("third")}
}

// scenarios are all scenarios.
func scenarios() []scenario {
	target := targets()[0]
	fixed := lock.Fixed(caseLease)
	held := func(c *faultCase, opts ...lock.Option) *holding { return c.process().acquire(target, opts...) }
	return append(together(), []scenario{
		{"session start", func(c *faultCase) {
			p := c.process()
			c.begin()
			p.acquire(target)
		}},
		{"acquire", func(c *faultCase) {
			p := c.process().warm()
			c.begin()
			if h := p.acquire(target); h != nil {
				_ = h.write()
			}
		}},
		{"acquire Fixed", func(c *faultCase) {
			p := c.process().warm()
			c.begin()
			if h := p.acquire(target, fixed); h != nil {
				_ = h.write()
			}
		}},
		{"acquire a row with a past", func(c *faultCase) {
			held(c).release()
			p := c.process()
			p.acquire(target).release()
			c.begin()
			p.acquire(target)
		}},
		{"acquire and release", func(c *faultCase) {
			p := c.process().warm()
			c.begin()
			if h := p.acquire(target); h != nil {
				h.release()
			}
		}},
		{"wait for another process", func(c *faultCase) {
			h, p := held(c), c.process().warm()
			time.AfterFunc(time.Second, h.release)
			c.begin()
			if h := p.acquire(target); h != nil {
				_ = h.write()
			}
			time.Sleep(2 * time.Second) // also where waiting has failed: until it is released
		}},
		{"renew under a session", func(c *faultCase) {
			h := held(c)
			c.begin()
			time.Sleep(12 * time.Second)
			_ = h.write()
			time.Sleep(12 * time.Second)
			h.renew()
		}},
		{"renew Fixed", func(c *faultCase) {
			h := held(c, fixed)
			c.begin()
			for range 2 {
				time.Sleep(5 * time.Second)
				h.renew()
			}
		}},
		{"release", func(c *faultCase) {
			h := held(c)
			c.begin()
			h.release()
		}},
		{"release Fixed", func(c *faultCase) {
			h := held(c, fixed)
			c.begin()
			h.release()
		}},
		{"guarded write", func(c *faultCase) {
			h := held(c)
			c.begin()
			_ = h.write()
			_ = h.write()
		}},
		{"commit", func(c *faultCase) {
			h := held(c)
			c.begin()
			_ = h.commit()
		}},
		{"commit Fixed", func(c *faultCase) {
			h := held(c, fixed)
			c.begin()
			_ = h.commit()
		}},
		{"take over from a dead session", func(c *faultCase) { c.takeOver(17 * time.Second) }},
		{"take over from a session long dead", func(c *faultCase) { c.takeOver(time.Hour) }},
		{"take over from a dead Fixed lease", func(c *faultCase) { c.takeOver(19*time.Second, fixed) }},
		{"take over from a Fixed lease long dead", func(c *faultCase) { c.takeOver(time.Hour, fixed) }},
		{"take over for several who wait", func(c *faultCase) {
			dead := c.process().warm()
			time.Sleep(casePeriod)
			old := dead.acquire(target)
			dead.pause()
			time.Sleep(17 * time.Second)
			p := c.process().warm()
			c.begin()
			var all sync.WaitGroup
			for range 3 {
				all.Go(func() {
					h := p.acquire(target)
					if h == nil {
						return
					}
					_ = h.write()
					if h.commit() != nil && !h.released {
						h.release()
					}
				})
			}
			all.Wait()
			dead.resume()
			c.goesOn(old)
		}},
		{"hand over by release", func(c *faultCase) {
			h := held(c)
			next := h.of.acquireLater(target)
			c.begin()
			h.release()
			if h := <-next; h != nil {
				_ = h.write()
			}
		}},
		{"hand over by commit", func(c *faultCase) {
			h := held(c)
			next, last := h.of.acquireLater(target), h.of.acquireLater(target, fixed)
			c.begin()
			if h.commit() != nil && !h.released {
				h.release()
			}
			for _, waiter := range []<-chan *holding{next, last} {
				if h := <-waiter; h != nil && h.commit() != nil && !h.released {
					h.release()
				}
			}
		}},
		{"acquire all", func(c *faultCase) {
			p := c.process().warm()
			c.begin()
			if b, list := p.acquireAll(targets()); b != nil {
				_ = c.effect(list, func(op table.Op) error { return b.Write(p.ctx, op) })
			}
		}},
		{"acquire all Fixed", func(c *faultCase) {
			p := c.process().warm()
			c.begin()
			if b, list := p.acquireAll(targets()[:2], fixed); b != nil {
				c.commitAll(b, list)
			}
		}},
		{"acquire all from a dead session", func(c *faultCase) {
			h := held(c)
			time.Sleep(casePeriod)
			h.of.pause()
			time.Sleep(19 * time.Second)
			p := c.process().warm()
			c.begin()
			p.acquireAll(targets())
		}},
		{"commit of a bundle", func(c *faultCase) {
			p := c.process()
			b, list := p.acquireAll(targets())
			c.begin()
			c.commitAll(b, list)
		}},
		{"idle session ends", func(c *faultCase) {
			h := held(c)
			h.release()
			c.begin()
			time.Sleep(caseLease + 2*casePeriod)
			h.of.acquire(target)
		}},
		{"close", func(c *faultCase) {
			h := held(c)
			list := []*holding{h, h.of.acquire(targets()[1], fixed)}
			for _, h := range list {
				h.parts()
			}
			c.begin()
			err := h.of.Close(h.of.ctx)
			h.of.answered("close", err)
			if err == nil {
				for _, h := range list {
					if !errors.Is(context.Cause(h.Context()), lock.ErrExpired) { // an expired lease is over by itself
						h.gone("close", err)
					}
				}
			}
		}},
		{"force release", func(c *faultCase) {
			h, op := held(c), c.process().warm()
			seen, err := op.Inspect(c.Context(), target)
			if err != nil {
				c.violated("answer: inspect: %v", err)
			}
			h.parts()
			c.begin()
			err = op.ForceRelease(op.ctx, target, seen.Holder().Ticket)
			if !h.goneBefore(err, lock.ErrHeld, lock.ErrNotHeld) {
				op.answered("force release", err)
			}
			if err != nil {
				return
			}
			h.gone("force release", lock.ErrStolen)
			_ = h.effectOfTheForced()
			time.Sleep(2 * casePeriod)
			if cause := context.Cause(h.Context()); !errors.Is(cause, lock.ErrStolen) && c.mild() {
				c.violated("answer: the holder was told %v of a forced release", cause)
			}
			if next := op.acquire(target); next != nil && next.Fence() != seen.Fence+1 && c.mild() {
				c.violated("fence: %d after %d was taken by force", next.Fence(), seen.Fence)
			}
		}},
		{"revoke", func(c *faultCase) {
			h, op := held(c), c.process().warm()
			c.begin()
			err := op.Revoke(op.ctx, target)
			if !h.goneBefore(err, lock.ErrNoSession, lock.ErrNotHeld) {
				op.answered("revoke", err)
			}
			time.Sleep(2 * casePeriod)
			if cause := context.Cause(h.Context()); !errors.Is(cause, lock.ErrRevoked) && c.mild() {
				c.violated("answer: the holder was told %v when asked", cause)
			}
			if h.commit() != nil && !h.released {
				h.release()
			}
			// A question that comes in late is about that acquisition, not about the next.
			if next := h.of.acquire(target); next != nil {
				late, _ := c.late()
				time.Sleep(late + 2*casePeriod)
				if cause := context.Cause(next.Context()); cause != nil && c.mild() {
					c.violated("answer: another holder was told %v", cause)
				}
			}
		}},
		{"every", (*faultCase).every},
	}...)
}

// byChance reports whether chance decides how many calls a scenario makes. A waiter looks more or less often, and a session
// is renewed more or less often while time passes.
func (s *scenario) byChance() bool {
	return slices.Contains([]string{
		"wait for another process", "renew under a session", "hand over by release", "hand over by commit", "idle session ends",
		"acquire all from a dead session", "force release", "revoke", "every",
		"permits, wait for another process", "permits, take over from a dead session", "shared, hand over to a writer",
		"shared, wait behind a writer", "shared, take over from a dead reader",
	}, s.name) || strings.HasPrefix(s.name, "take over ")
}

// takeOver takes a lock from a process that has been silent for so long, and that goes on later.
func (c *faultCase) takeOver(silent time.Duration, opts ...lock.Option) {
	target := targets()[0]
	dead := c.process().warm()
	time.Sleep(casePeriod) // the first renewal of a new client's session records its end
	old := dead.acquire(target, opts...)
	dead.pause()
	time.Sleep(silent)
	p := c.process().warm()
	c.begin()
	if h := p.acquire(target); h != nil {
		dead.resume()
		c.goesOn(old)
		_ = h.write()
	}
}

// commitAll makes an effect and releases several locks.
func (c *faultCase) commitAll(b *lock.Bundle, list []*holding) {
	for _, h := range list {
		h.parts()
	}
	err := c.effect(list, func(op table.Op) error { return b.Commit(list[0].of.ctx, op) })
	for _, h := range list {
		h.judge("commit of a bundle", err)
		h.gone("commit of a bundle", err)
	}
}

// goesOn lets a holder go on under a lock that another process has taken.
func (c *faultCase) goesOn(old *holding) {
	if c.before(old.Target())[0] != old || len(c.before(old.Target())) == 1 {
		return // nobody has
	}
	for _, err := range []error{
		c.effect([]*holding{old}, func(op table.Op) error { return old.Write(c.Context(), op) }),
		c.effect([]*holding{old}, func(op table.Op) error { return old.Commit(c.Context(), op) }),
		old.Release(c.Context()),
	} {
		if err == nil {
			c.violated("exclusion: a holder went on under a lock that somebody else has taken")
		}
	}
}

// goneBefore reports whether an operator was refused with one of some errors, and rightly: the holder's process had stood
// still for longer than its lease, or crashed.
func (h *holding) goneBefore(err error, refusals ...error) bool {
	return !h.of.c.mild() && (h.Context().Err() != nil || h.of.machine.stands()) &&
		slices.ContainsFunc(refusals, func(r error) bool { return errors.Is(err, r) })
}

// effectOfTheForced writes under a lease that was taken away.
func (h *holding) effectOfTheForced() error {
	err := h.of.c.effect([]*holding{h}, func(op table.Op) error { return h.Write(h.of.ctx, op) })
	if err == nil {
		h.of.c.violated("exclusion: a write went through after a forced release")
	}
	return err
}

// every runs two intervals, and ends in the third.
func (c *faultCase) every() {
	const interval = 10 * time.Second
	target := targets()[0]
	p := c.process().warm()
	ctx, stop := context.WithCancel(p.ctx)
	defer stop()
	var last, before time.Time // interval that was committed, and that was run
	runs := 0
	c.asks(target)
	c.begin()
	err := p.Every(ctx, target, interval, func(ctx context.Context, l *lock.Lease, at time.Time) error {
		h := p.granted(l, c.before(target))
		defer h.parts() // Every releases
		if !at.After(last) {
			c.violated("every: an interval was run after it, or a later one, was committed")
		}
		// Intervals are counted by DynamoDB's time.
		wrong := slices.ContainsFunc(c.strikes, func(k strike) bool { return k.fault.Kind == tabletest.SkewDate })
		if !before.IsZero() && at.After(before.Add(interval)) && c.mild() && !wrong {
			c.violated("every: the interval after %v was forgotten, %v is run", before, at)
		}
		before = at
		if runs++; runs > 2 {
			stop()
			return ctx.Err()
		}
		if runs%2 == 0 {
			return nil
		}
		h.parts()
		err := c.effect([]*holding{h}, func(op table.Op) error { return h.Commit(ctx, op) })
		if err == nil {
			last = at
			h.gone("commit", err)
		}
		return err
	})
	if !errors.Is(err, context.Canceled) {
		p.answered("every", err)
	}
}
