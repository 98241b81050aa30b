package lock_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
)

// permitsOf is how many processes can hold a target of the scenarios at once.
func permitsOf(target lock.Target) int {
	if target == exports {
		return 2
	}
	return 1
}

// takes acquires a lock that another process has acquired before. It names the number of permits that the row has.
func (p *process) takes(ctx context.Context, target lock.Target, opts ...lock.Option) (l *lock.Lease, err error) {
	if n := permitsOf(target); n > 1 {
		l, err = p.Acquire(ctx, target, lock.Permits(n))
		if other := (*lock.PermitsError)(nil); errors.As(err, &other) {
			l, err = p.Acquire(ctx, target, lock.Permits(other.Row))
		}
		return l, err
	}
	return p.Acquire(ctx, target, opts...)
}

// reads reports whether a lease is that of a reader.
func reads(l *lock.Lease) bool { return strings.HasPrefix(l.Ticket(), "@") }

// holds reports whether a row names a lease of a permit, or of a reader.
func (h *holding) holds(item table.Item) bool {
	if permitsOf(h.Target()) > 1 {
		stays, _ := item["stays"].(*types.AttributeValueMemberL)
		return stays != nil && slices.ContainsFunc(stays.Value, func(av types.AttributeValue) bool { return number(h.of.c.T, av) == h.Fence() })
	}
	line, _ := item["line"].(*types.AttributeValueMemberL)
	return line != nil && number(h.of.c.T, item["fence"]) == h.Fence() && slices.ContainsFunc(line.Value, func(av types.AttributeValue) bool {
		s, ok := av.(*types.AttributeValueMemberS)
		return ok && strings.HasPrefix(s.Value, h.Ticket()+"@")
	})
}

// together are the scenarios of permits and of readers.
func together() []scenario {
	two, shared := lock.Permits(2), lock.Shared()
	permit := func(c *faultCase) *holding { return c.process().acquire(exports, two) }
	reader := func(c *faultCase) *holding { return c.process().acquire(catalogue, shared) }
	ends := func(h *holding) {
		if h != nil && h.commit() != nil && !h.released {
			h.release()
		}
	}
	return []scenario{
		{"permits, make the row", func(c *faultCase) {
			p := c.process().warm()
			c.begin()
			if h := p.acquire(exports, two); h != nil {
				_ = h.write()
				h.release()
			}
		}},
		{"permits, acquire and release beside another", func(c *faultCase) {
			permit(c)
			p := c.process().warm()
			c.begin()
			if h := p.acquire(exports, two); h != nil {
				_ = h.write()
				h.release()
			}
		}},
		{"permits, wait for another process", func(c *faultCase) {
			permit(c)
			h, p := permit(c), c.process().warm()
			time.AfterFunc(time.Second, h.release)
			c.begin()
			ends(p.acquire(exports, two))
			time.Sleep(2 * time.Second)
		}},
		{"permits, release from a place that has moved", func(c *faultCase) {
			first, second := permit(c), permit(c)
			first.release()
			c.begin()
			second.release()
		}},
		{"permits, commit from a place that has moved", func(c *faultCase) {
			first, second := permit(c), permit(c)
			first.release()
			c.begin()
			_ = second.write()
			_ = second.commit()
		}},
		{"permits, take over from a dead session", func(c *faultCase) {
			dead := c.process().warm()
			time.Sleep(casePeriod)
			old := dead.acquire(exports, two)
			dead.acquire(exports, two)
			dead.pause()
			time.Sleep(17 * time.Second)
			p := c.process().warm()
			c.begin()
			if h := p.acquire(exports, two); h != nil {
				dead.resume()
				c.goesOn(old)
				_ = h.write()
			}
		}},
		{"permits, change their number", func(c *faultCase) {
			permit(c)
			op := c.process().warm()
			c.begin()
			for _, n := range []int{3, 2} {
				op.answered("set permits", op.SetPermits(op.ctx, exports, n))
			}
		}},
		{"permits, force release", func(c *faultCase) {
			h, other, op := permit(c), permit(c), c.process().warm()
			c.forcedOut(op, exports, h, other)
		}},
		{"shared, acquire and release", func(c *faultCase) {
			p := c.process().warm()
			c.begin()
			if h := p.acquire(catalogue, shared); h != nil {
				_ = h.write()
				h.release()
			}
		}},
		{"shared, release before another reader", func(c *faultCase) {
			first := reader(c)
			reader(c)
			c.begin()
			first.release()
		}},
		{"shared, hand over to a writer", func(c *faultCase) {
			first, last := reader(c), reader(c)
			next := c.process().warm().acquireLater(catalogue)
			first.release()
			c.begin()
			_ = last.write()
			last.release()
			ends(<-next)
		}},
		{"shared, commit of the last reader", func(c *faultCase) {
			first, last := reader(c), reader(c)
			first.release()
			c.begin()
			_ = last.commit()
		}},
		{"shared, wait behind a writer", func(c *faultCase) {
			h := c.process().acquire(catalogue)
			p, q := c.process().warm(), c.process().warm()
			time.AfterFunc(time.Second, h.release)
			c.begin()
			second := q.acquireLater(catalogue, shared)
			ends(p.acquire(catalogue, shared))
			ends(<-second)
			time.Sleep(2 * time.Second)
		}},
		{"shared, take over from a dead reader", func(c *faultCase) {
			dead := c.process().warm()
			time.Sleep(casePeriod)
			old := dead.acquire(catalogue, shared)
			dead.pause()
			time.Sleep(17 * time.Second)
			p := c.process().warm()
			c.begin()
			if h := p.acquire(catalogue); h != nil {
				dead.resume()
				c.goesOn(old)
				_ = h.write()
			}
		}},
		{"shared, force release", func(c *faultCase) {
			h, other, op := reader(c), reader(c), c.process().warm()
			c.forcedOut(op, catalogue, h, other)
			// What one reader's force makes of the release of another is careful, and not exact.
			other.parts()
			if err := other.Release(c.Context()); err != nil && !errors.Is(err, lock.ErrLost) {
				other.judge("release", err)
			}
		}},
	}
}

// forcedOut takes the lease of one of two holders by force. The other holder goes on.
func (c *faultCase) forcedOut(op *process, target lock.Target, h, other *holding) {
	h.parts()
	c.begin()
	err := op.ForceRelease(op.ctx, target, h.Ticket())
	if !h.goneBefore(err, lock.ErrHeld, lock.ErrNotHeld) {
		op.answered("force release", err)
	}
	if err == nil {
		h.gone("force release", lock.ErrStolen)
		_ = h.effectOfTheForced()
		if err := other.write(); err != nil && c.mild() {
			c.violated("answer: the other holder has lost what it had: %v", err)
		}
	}
}
