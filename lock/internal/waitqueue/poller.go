package waitqueue

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/mortise-go/mortise/internal/machine"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
)

// Rate is how many rows a second a [Poller] reads at most in the long run. After a quiet time, it reads about Rate/4 rows at once. One
// request reads at most Rate/20 rows. If the watchers ask for more than Rate, all times get longer in proportion.
const Rate = 1000

// PollerConfig configures a [Poller].
type PollerConfig struct {
	// Machine is the source of time and of chance. Required.
	Machine machine.Machine

	// Read reads rows, eventually consistent. Like [table.Table.BatchGet], it returns them in the order of their keys, and nil for a
	// missing row. It gets at most Rate/20 keys, all different. What it returns beside a *[table.UnprocessedError] counts as read. It must
	// return when its context ends. Required.
	Read func(ctx context.Context, list []keys.Key) ([]table.Item, error)

	// Fatal reports whether it is useless to repeat a read that failed with err. If so, the watchers get the error. Fatal is not asked
	// about a read that ran into Timeout. Required.
	Fatal func(err error) bool

	// Timeout bounds each call of Read. Required.
	Timeout time.Duration
}

// Poller reads the rows that somebody watches, once for each of any number of watchers.
//
// All rows that are due share a request, and all watchers of a row share its read. If there is room, the request also serves watchers
// that are past half of their time. A read that fails is repeated for as long as somebody watches: after 50 ms at first, and after
// 5 s in the end, jittered by half. Each time, its rows are read with fewer others, so that rows whose reads hang do not keep others from
// being read.
//
// One goroutine reads the rows and calls the watchers. All methods may be called from many goroutines. All but Close may also be called
// by a watcher.
type Poller struct {
	config PollerConfig
	ctx    context.Context // for the goroutine, which serves all callers
	cancel context.CancelFunc
	work   sync.WaitGroup
	wake   chan struct{} // of capacity 1: due has changed

	mu       sync.Mutex // guards the fields below, and the watches; never held during I/O, or while a watcher is called
	due      []*Watch   // in the order in which they are due; without watches for which a read is under way
	running  bool
	gate     time.Time // the rate allows no read before this time
	resume   time.Time // nothing is read before: after a failure, a read that has woken somebody, or the end of the watch that was due next
	failures int       // requests in a row that brought no row
	wanted   float64   // looks a second that the watchers ask for
}

// NewPoller returns a Poller without watches. It sends nothing, and starts no goroutine. End it with [Poller.Close].
func NewPoller(c PollerConfig) *Poller {
	ctx, cancel := context.WithCancel(context.Background())
	return &Poller{config: c, ctx: ctx, cancel: cancel, wake: make(chan struct{}, 1)}
}

// Close ends all watches, and waits for the goroutine. Afterwards no watcher is called. A watcher must not call Close.
func (p *Poller) Close() {
	p.mu.Lock() // Watch starts the goroutine under it
	p.cancel()
	p.mu.Unlock()
	p.work.Wait()
}

func (p *Poller) run() {
	for {
		rows, at, open := p.plan()
		if !open {
			return
		}
		if len(rows) > 0 {
			p.read(rows)
			continue
		}
		timer := p.config.Machine.NewTimer(at.Sub(p.config.Machine.Now()))
		select {
		case <-timer.C():
		case <-p.wake:
		case <-p.ctx.Done():
		}
		timer.Stop()
	}
}

// plan returns the watchers of each row to read now. If no row is due yet, at is the time until which to wait. open is false if nobody
// watches, or the poller has ended.
func (p *Poller) plan() (rows [][]*Watch, at time.Time, open bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running = len(p.due) > 0 && p.ctx.Err() == nil; !p.running {
		return nil, at, false
	}
	now := p.config.Machine.Now()
	if at = later(p.due[0].due, later(p.gate, p.resume)); at.After(now) {
		return nil, at, true
	}
	most := Rate / 20
	index := map[keys.Key]int{}
	n := 0
	for ; n < len(p.due) && !p.due[n].half.After(now); n++ {
		w := p.due[n]
		i, known := index[w.key]
		if !known {
			if most = min(most, max(most>>w.failures, 1)); len(rows) >= most {
				break
			}
			i = len(rows)
			index[w.key], rows = i, append(rows, nil)
		}
		rows[i] = append(rows[i], w)
	}
	p.due = slices.Delete(p.due, 0, n)
	p.gate = later(p.gate, now.Add(-time.Second/4)).Add(cost(len(rows)))
	return rows, now, true
}

// cost returns how long it takes until the rate allows so many rows.
func cost(rows int) time.Duration { return time.Duration(rows) * (time.Second / Rate) }

func (p *Poller) read(rows [][]*Watch) {
	list := make([]keys.Key, len(rows))
	for i, watches := range rows {
		list[i] = watches[0].key
	}
	ctx, cancel := p.config.Machine.WithTimeout(p.ctx, p.config.Timeout)
	defer cancel()
	items, err := p.config.Read(ctx, list)
	at := p.config.Machine.Now()
	var part *table.UnprocessedError
	some := err == nil || errors.As(err, &part)
	fatal := err != nil && ctx.Err() == nil && p.config.Fatal(err)
	brought := false
	var then []func()
	for i, watches := range rows {
		look := Look{At: at}
		switch {
		case some && i < len(items) && (part == nil || !slices.Contains(part.Keys, list[i])):
			look.Item = items[i]
		case fatal:
			look.Err = err
		default:
			p.missed(watches)
			continue
		}
		brought = true
		for _, w := range watches {
			if f := p.tell(w, look); f != nil {
				then = append(then, f)
			}
		}
	}
	p.mu.Lock()
	if p.failures++; brought {
		p.failures = 0
	}
	pause := p.retry(p.failures)
	if then != nil { // a function in then may let watches end: the next read is without them
		pause = max(pause, time.Microsecond)
	}
	p.resume = p.config.Machine.Now().Add(pause)
	p.mu.Unlock()
	for _, f := range then {
		f()
	}
}

func (p *Poller) retry(failures int) time.Duration {
	if failures == 0 {
		return 0
	}
	d := min(25*time.Millisecond<<min(failures, 10), 5*time.Second)
	return d/2 + p.config.Machine.N(d)
}

// missed schedules the watchers of a row again that could not be read.
func (p *Poller) missed(watches []*Watch) {
	p.mu.Lock()
	defer p.mu.Unlock()
	failures := watches[0].failures + 1
	d := p.retry(failures)
	for _, w := range watches {
		w.failures = failures
		p.wait(w, d, d)
	}
}

func (p *Poller) tell(w *Watch, look Look) (then func()) {
	p.mu.Lock()
	open := p.ctx.Err() == nil && p.end(w)
	p.mu.Unlock()
	if !open {
		return nil
	}
	return w.seen(look)
}
