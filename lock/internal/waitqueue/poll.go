package waitqueue

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/mortise-go/mortise/internal/machine"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
)

// run is the goroutine.
func (p *Poller) run() {
	for p.step() {
	}
}

// step reads what is due, or waits until something is. It reports false when nobody watches, or the poller has ended.
func (p *Poller) step() bool {
	rows, pause, open := p.plan()
	switch {
	case !open:
	case len(rows) > 0:
		p.read(rows)
	default:
		p.sleep(pause)
	}
	return open
}

// plan returns what to read now, or how long to wait.
func (p *Poller) plan() (rows []*row, pause time.Duration, open bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.planned = time.Time{}
	next, some := p.schedule.next()
	if !some || p.ctx.Err() != nil {
		p.running = false
		return nil, 0, false
	}
	now := p.config.Machine.Now()
	p.gate = later(p.resume, p.bucket.ready())
	if next = later(next, p.gate); next.After(now) {
		p.planned = next
		return nil, next.Sub(now), true
	}
	rows = p.schedule.batch(now, min(p.bucket.rows(now), batchSize))
	p.bucket.spend(now, len(rows))
	return rows, 0, true
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

func (p *Poller) sleep(d time.Duration) {
	if p.timer == nil {
		p.timer = p.config.Machine.NewTimer(d)
	} else {
		p.timer.Reset(d)
	}
	select {
	case <-p.timer.C():
	case <-p.wake:
	case <-p.ctx.Done():
	}
	p.timer.Stop()
}

// read reads rows, and tells the watchers.
func (p *Poller) read(rows []*row) {
	list := make([]keys.Key, len(rows))
	for i, r := range rows {
		list[i] = r.key
	}
	ctx, cancel := p.config.Machine.WithTimeout(p.ctx, p.config.Timeout)
	defer cancel()
	p.interruptible(cancel)
	at := p.config.Machine.Now()
	items, err := p.config.Read(ctx, list)
	p.interruptible(nil)
	if p.ctx.Err() != nil {
		return
	}
	if err == nil && len(items) < len(list) {
		err = errShort
	}
	without := unread(list, items, err)
	abandoned := errors.Is(ctx.Err(), context.Canceled) // since nobody watched any more
	fatal := err != nil && ctx.Err() == nil && p.config.Fatal(err)
	if fatal || slices.ContainsFunc(list, func(key keys.Key) bool { return !without[key] }) {
		p.outage = nil
	} else if !abandoned {
		p.resume = p.config.Machine.Now().Add(p.retry(&p.outage))
	}
	for i, r := range rows {
		switch {
		case !without[r.key]:
			r.retries, r.notBefore = nil, time.Time{}
			p.tell(r, Look{Item: items[i], At: at})
		case fatal:
			r.retries, r.notBefore = nil, time.Time{}
			p.tell(r, Look{At: at, Err: err})
		case !abandoned:
			// Each row for a time of its own, also if all have failed: a row whose reads hang soon is in other
			// requests than those with which it was.
			r.notBefore = p.config.Machine.Now().Add(p.retry(&r.retries))
		}
		p.back(r)
	}
}

// errShort is an answer of Read with fewer items than keys.
var errShort = errors.New("waitqueue: read returned fewer items than keys")

// unread is those of the keys whose rows are not among the items.
func unread(list []keys.Key, items []table.Item, err error) map[keys.Key]bool {
	if err == nil {
		return nil
	}
	rest := list
	var part *table.UnprocessedError
	switch {
	case errors.As(err, &part):
		rest = slices.Concat(part.Keys, list[min(len(items), len(list)):])
	case errors.Is(err, errShort):
		rest = list[len(items):]
	}
	set := make(map[keys.Key]bool, len(rest))
	for _, key := range rest {
		set[key] = true
	}
	return set
}

// retry is how long to wait until something that failed is tried again.
func (p *Poller) retry(b *backoff.BackOff) time.Duration {
	if *b == nil {
		*b = machine.Backoff(p.config.Machine,
			backoff.WithInitialInterval(50*time.Millisecond),
			backoff.WithMaxInterval(5*time.Second),
			backoff.WithMaxElapsedTime(0),
		)
	}
	return (*b).NextBackOff()
}

// interruptible sets what ends the read under way.
func (p *Poller) interruptible(cancel context.CancelFunc) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.abandon = cancel
	if cancel != nil && p.watches == 0 { // by now
		cancel()
	}
}

// tell calls the watchers of a row that a look is for.
func (p *Poller) tell(r *row, look Look) {
	for _, w := range r.told {
		if p.goesOn(w) {
			p.again(w, w.seen(look))
		}
	}
}

func (p *Poller) goesOn(w *Watch) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !w.ended && p.ctx.Err() == nil
}

// again sets the next look of a watcher that was told.
func (p *Poller) again(w *Watch, next time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case w.ended:
	case next < 0:
		p.stop(w)
	default:
		p.wait(w, next)
		if !w.soon.IsZero() { // not at once: the watcher may have seen what it waits for, and is about to end
			w.hurry(later(w.soon, p.config.Machine.Now().Add(shortestInterval)))
			w.soon = time.Time{}
		}
	}
}

// back puts back a row that was read.
func (p *Poller) back(r *row) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.schedule.back(r)
}
