package waitqueue

import (
	"context"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/mortise-go/mortise/internal/machine"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
)

// batchSize is how many rows one request reads at most.
const batchSize = 100

// DefaultRate is how many rows a second a [Poller] reads at most in the long run, unless it is told otherwise.
const DefaultRate = 1000

// mostRate keeps the time of a row well above what timers can do.
const mostRate = 1_000_000

// PollerConfig configures a [Poller].
type PollerConfig struct {
	// Machine is where time and chance come from. Required.
	Machine machine.Machine

	// Read reads rows: eventually consistent, in the order of their keys, nil where there is none, like
	// [table.Table.BatchGet]. It gets at most 100 keys, no two of which are the same. What comes with a
	// *[table.UnprocessedError] counts as read. It has to return when its context ends. Required.
	Read func(ctx context.Context, list []keys.Key) ([]table.Item, error)

	// Fatal reports whether repeating a read that failed with err cannot help. The error is then told to the watchers.
	// It is not asked about a read that ran into Timeout. Defaults to a function that always reports false.
	Fatal func(err error) bool

	// Timeout bounds each call of Read. Defaults to 5 s.
	Timeout time.Duration

	// Rate is how many rows a second are read at most in the long run. After a quiet time, three tenths of a second's
	// are read at once. Where the watchers ask for more, all intervals get longer in proportion, and requests are sent
	// at most 20 times a second. Defaults to [DefaultRate]; 1,000,000 at most.
	Rate int
}

func (c PollerConfig) withDefaults() PollerConfig {
	if c.Fatal == nil {
		c.Fatal = func(error) bool { return false }
	}
	if c.Timeout <= 0 {
		c.Timeout = 5 * time.Second
	}
	if c.Rate <= 0 {
		c.Rate = DefaultRate
	}
	c.Rate = min(c.Rate, mostRate)
	return c
}

// Poller reads the rows that somebody watches, again and again, for any number of watchers.
//
// All rows that are due share a request, and so do the watchers of one row. A row that is not due, but past half of its
// interval, comes along when there is room. The number of rows a second is bounded: [PollerConfig].Rate.
//
// A read that fails is repeated for as long as somebody watches, after 50 ms at first and after 5 s in the end, jittered
// by half. A request that brought nothing is followed by smaller ones, so that rows whose reads hang do not keep others
// from being read.
//
// One goroutine reads, and calls the watchers. It runs only while there are watches. All methods may be called from many
// goroutines; all but Close also from a watcher.
type Poller struct {
	config PollerConfig
	ctx    context.Context // bounds the goroutine, which all calls share
	cancel context.CancelFunc
	work   sync.WaitGroup
	wake   chan struct{} // of capacity 1: something is due earlier than planned, or nobody watches

	mu       sync.Mutex // guards the following; never held across I/O, or while a watcher is called
	schedule schedule
	bucket   bucket
	watches  int
	running  bool
	planned  time.Time          // until when the goroutine sleeps; zero while it does not
	gate     time.Time          // nothing is read before, whatever is due
	abandon  context.CancelFunc // ends the read under way

	// Of the goroutine.
	timer  machine.Timer
	outage backoff.BackOff // while nothing can be read
	resume time.Time       // nothing is read before
}

// NewPoller returns a Poller without watches. It sends nothing, and runs no goroutine. It ends with ctx or [Poller.Close].
func NewPoller(ctx context.Context, config PollerConfig) *Poller {
	config = config.withDefaults()
	ctx, cancel := context.WithCancel(ctx)
	return &Poller{
		config: config, ctx: ctx, cancel: cancel, wake: make(chan struct{}, 1),
		schedule: newSchedule(), bucket: newBucket(config.Rate),
	}
}

// Close ends all watches, and waits for the goroutine. No watcher is called afterwards. A watcher must not call Close.
func (p *Poller) Close() {
	p.mu.Lock()
	p.cancel()
	p.mu.Unlock()
	p.work.Wait()
}

// Look is what a read saw of a row.
type Look struct {
	// Item is the row; nil if there is none. Watchers of one row share it, and must not change it.
	Item table.Item

	// At is when the request began, by the machine's monotonic clock. What was written before may still be missing.
	At time.Time

	// Err is why the row cannot be read, if repeating cannot help. Item is nil then.
	Err error
}

// Watch is a watcher's interest in a row.
type Watch struct {
	poller *Poller
	seen   func(Look) time.Duration

	// Guarded by the poller's mu.
	row       *row
	index     int // in the row
	interval  time.Duration
	due, half time.Time
	soon      time.Time // that Soon has asked for while the row was being read
	told      bool      // the read under way is for it
	ended     bool
}

// Watch calls seen with what it reads of a row, for the first time after the duration first.
//
// seen returns how long to wait until the next look; a negative duration ends the watch. The time counts from its
// return. seen is called on the poller's goroutine, one call at a time, and must not block. Another look is shared with
// it from half of its interval on. A look that had begun before the watch did is not.
//
// If the poller has ended, seen is never called.
func (p *Poller) Watch(key keys.Key, first time.Duration, seen func(Look) (next time.Duration)) *Watch {
	w := &Watch{poller: p, seen: seen}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ctx.Err() != nil {
		w.ended = true
		return w
	}
	p.watches++
	p.wait(w, first)
	p.schedule.add(key, w)
	if !p.running {
		p.running = true
		p.work.Go(p.run)
	}
	p.changed(w.due)
	return w
}

// Soon has the next look begin in d at the latest. A look that is under way does not count. It does nothing where the
// next look is due earlier already, or the watch has ended.
func (w *Watch) Soon(d time.Duration) {
	p := w.poller
	p.mu.Lock()
	defer p.mu.Unlock()
	if w.ended {
		return
	}
	at := p.config.Machine.Now().Add(min(d, longest))
	if w.told {
		if w.soon.IsZero() || at.Before(w.soon) {
			w.soon = at
		}
		return
	}
	w.hurry(at)
	p.schedule.sooner(w)
	p.changed(w.due)
}

// Stop ends the watch. It does not wait: when it returns, one call of seen may still be running, if its look was being
// delivered. No other call begins. Stop may be called more than once, and from within seen.
func (w *Watch) Stop() {
	p := w.poller
	p.mu.Lock()
	abandon := p.stop(w)
	p.mu.Unlock()
	if abandon != nil {
		abandon()
	}
}

// stop ends a watch. It returns what is to be called without mu, unless it is nil. It is called with mu held.
func (p *Poller) stop(w *Watch) (abandon context.CancelFunc) {
	if w.ended {
		return nil
	}
	w.ended = true
	p.schedule.remove(w)
	if p.watches--; p.watches > 0 {
		return nil
	}
	p.signal()
	return p.abandon
}

// longest is a time that may as well be for ever.
const longest = 365 * 24 * time.Hour

// wait sets the watch's next look to be in d, or later by as much as the rate requires. It is called with mu held.
func (p *Poller) wait(w *Watch, d time.Duration) {
	now := p.config.Machine.Now()
	w.interval = min(d, longest)
	d = p.slowed(now, w.interval)
	w.due, w.half = now.Add(d), now.Add(d/2)
}

// slowed is an interval at times when reads have to wait for the rate: longer by the ratio of what all want to what
// there is, so that rows that are looked at often and rows that are looked at seldom lose the same share. It is longer
// by the time of one read of all rows at most, as it would be if they were read in turn. It is called with mu held.
func (p *Poller) slowed(now time.Time, d time.Duration) time.Duration {
	over := p.schedule.wanted*p.bucket.row.Seconds() - 1
	if over <= 0 || !p.bucket.ready().After(now) {
		return d
	}
	all := time.Duration(len(p.schedule.rows)) * p.bucket.row
	return d + time.Duration(min(float64(d)*over, float64(all)))
}

// hurry moves the next look forward.
func (w *Watch) hurry(at time.Time) {
	if at.Before(w.due) {
		w.due = at
	}
	if at.Before(w.half) {
		w.half = at
	}
}

// wanted is how often the watch asks for a look, per second.
func (w *Watch) wanted() float64 {
	return float64(time.Second) / float64(max(w.interval, time.Millisecond))
}

// changed wakes the goroutine if it would sleep for too long. It is called with mu held.
func (p *Poller) changed(due time.Time) {
	if due.Before(p.planned) && p.gate.Before(p.planned) {
		p.signal()
	}
}

func (p *Poller) signal() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}
