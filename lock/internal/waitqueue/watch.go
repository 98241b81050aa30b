package waitqueue

import (
	"cmp"
	"slices"
	"time"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
)

// Look is what a read has found at a key.
type Look struct {
	// Item is the row; nil if there is none. All watchers of a row share it, and must not change it.
	Item table.Item

	// At is when the answer came, by the machine's monotonic clock: the row has had this content since that time, or longer. A change
	// from before that time may still be missing, since reads are eventually consistent.
	At time.Time

	// Err is why the row cannot be read, if repeating the read cannot help. Item is nil then.
	Err error
}

// Watch is the interest of one watcher in one look at a row.
type Watch struct {
	poller    *Poller
	key       keys.Key
	seen      func(Look) func()
	due, half time.Time // end and middle of its time
	wanted    float64   // looks a second
	failures  int       // reads in a row that brought nothing
	ended     bool
}

// Watch reads a row after a time, and calls seen with what it has read. After half of the time, the watch shares a look that another one
// causes, but never one that began before the watch. If the poller has ended, seen is never called.
//
// seen may return a function, which is called after all watchers of the rows that were read together. So what that function wakes does
// not run while other watchers are still called. Both are called on the poller's goroutine, one call at a time, and must not block.
func (p *Poller) Watch(key keys.Key, in time.Duration, seen func(Look) (then func())) *Watch {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := &Watch{poller: p, key: key, seen: seen, ended: p.ctx.Err() != nil}
	if w.ended {
		return w
	}
	p.wait(w, in, 0)
	if !p.running {
		p.running = true
		p.work.Go(p.run)
	}
	return w
}

// Stop ends the watch. It does not wait: if a look was being delivered, seen may still run when Stop returns. No other call begins. Stop
// may be called more than once, and from within seen.
func (w *Watch) Stop() {
	p := w.poller
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.end(w) {
		return
	}
	if i := slices.Index(p.due, w); i >= 0 { // otherwise a read for it is under way
		p.due = slices.Delete(p.due, i, i+1)
		if i == 0 { // run waits for the next one from now on, or ends; but reads nothing between watches that end together
			p.resume = later(p.resume, p.config.Machine.Now().Add(time.Microsecond))
			p.signal()
		}
	}
}

// end ends a watch. It returns false if the watch has ended before. It is called with mu held.
func (p *Poller) end(w *Watch) bool {
	if w.ended {
		return false
	}
	w.ended = true
	p.wanted -= w.wanted
	return true
}

// wait schedules the look of a watch: in d, or after half of d together with others, but not before least. While reads have to wait
// for the rate, d grows by the ratio of what all watchers want to what the rate allows: watches with frequent and with rare looks lose
// the same share. It grows by at most the time of one read for each of them, as if they took turns. wait is called with mu held.
func (p *Poller) wait(w *Watch, d, least time.Duration) {
	if w.ended {
		return
	}
	now := p.config.Machine.Now()
	d = min(d, longest)
	wanted := 1 / max(d, time.Millisecond).Seconds()
	p.wanted += wanted - w.wanted
	w.wanted = wanted
	if over := p.wanted/Rate - 1; over > 0 && p.gate.After(now) {
		d += time.Duration(min(float64(d)*over, float64(cost(len(p.due)))))
	}
	w.due, w.half = now.Add(max(d, least)), now.Add(max(d/2, least))
	i, _ := slices.BinarySearchFunc(p.due, w, func(o, w *Watch) int {
		// Watches that are due at the same time are in the order of their keys, whichever goroutine came first.
		return cmp.Or(o.due.Compare(w.due), o.key.Compare(w.key), -1)
	})
	p.due = slices.Insert(p.due, i, w)
	if i == 0 { // otherwise run wakes early enough, and while many watches end or begin, it waits for all of them
		p.signal()
	}
}

func (p *Poller) signal() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}
