package waitqueue

import (
	"container/heap"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/mortise-go/mortise/keys"
)

// schedule knows when which row is to be read. It is data: it reads no clock and starts nothing.
type schedule struct {
	rows   map[keys.Key]*row
	due    rowHeap // by when they are due
	half   rowHeap // by when they may come along
	placed uint64  // rows that were placed so far
	wanted float64 // rows a second, if all were read as often as their watchers ask
}

func newSchedule() schedule {
	return schedule{rows: map[keys.Key]*row{}, due: rowHeap{order: byDue}, half: rowHeap{order: byHalf}}
}

// row is a row that somebody watches.
type row struct {
	key     keys.Key
	watches []*Watch
	out     bool // it is being read
	stale   bool // a watch has ended: the row's times may be too early
	at      [orders]time.Time
	index   [orders]int // in the heaps
	number  uint64      // orders rows of the same time
	wanted  float64     // reads a second
	told    []*Watch    // of whom the read under way is

	retries   backoff.BackOff // while it cannot be read
	notBefore time.Time
}

// The orders of rows.
const (
	byDue = iota
	byHalf
	orders
)

// add begins a watch whose times are set.
func (s *schedule) add(key keys.Key, w *Watch) {
	r := s.rows[key]
	if r == nil {
		r = &row{key: key, index: [orders]int{-1, -1}}
		s.rows[key] = r
	}
	w.row, w.index = r, len(r.watches)
	r.watches = append(r.watches, w)
	s.sooner(w)
}

// sooner moves a row forward whose watch begins or has become due earlier.
func (s *schedule) sooner(w *Watch) {
	r := w.row
	s.want(r, max(r.wanted, w.wanted()))
	if r.include(w, len(r.watches) == 1) {
		s.put(r)
	}
}

// remove ends a watch.
func (s *schedule) remove(w *Watch) {
	r := w.row
	last := len(r.watches) - 1
	r.watches[w.index], r.watches[last].index = r.watches[last], w.index
	r.watches[last] = nil
	r.watches = r.watches[:last]
	r.stale = true // many watches that end one after the other do not look through the others each time
	if last == 0 && !r.out {
		s.drop(r)
	}
}

// back puts a row back that was read.
func (s *schedule) back(r *row) {
	for i, w := range r.told {
		if r.told[i], w.told = nil, false; !w.soon.IsZero() {
			w.hurry(w.soon)
			w.soon = time.Time{}
		}
	}
	r.out, r.told = false, r.told[:0]
	if len(r.watches) == 0 {
		s.drop(r)
		return
	}
	s.settle(r)
}

// settle puts a row where all its watches say.
func (s *schedule) settle(r *row) {
	r.stale = false
	wanted := 0.0
	for i, w := range r.watches {
		r.include(w, i == 0)
		wanted = max(wanted, w.wanted())
	}
	s.want(r, wanted)
	s.put(r)
}

// include has a row's times not be later than a watch's, or be the watch's if it is the first. It reports whether they
// have changed.
func (r *row) include(w *Watch, first bool) (changed bool) {
	for order, at := range [orders]time.Time{w.due, w.half} {
		at = later(at, r.notBefore)
		if first || at.Before(r.at[order]) {
			r.at[order], changed = at, true
		}
	}
	return changed
}

// want sets how often a row is wanted, in reads a second.
func (s *schedule) want(r *row, wanted float64) {
	s.wanted += wanted - r.wanted
	r.wanted = wanted
}

func (s *schedule) put(r *row) {
	s.placed++
	r.number = s.placed
	s.due.put(r)
	s.half.put(r)
}

func (s *schedule) drop(r *row) {
	s.take(r)
	s.want(r, 0)
	if delete(s.rows, r.key); len(s.rows) == 0 {
		*s = newSchedule() // maps never give memory back, and sums of fractions drift
	}
}

func (s *schedule) take(r *row) {
	s.due.take(r)
	s.half.take(r)
}

// first is the first row of an order; nil if there is none.
func (s *schedule) first(h *rowHeap) *row {
	for len(h.rows) > 0 {
		r := h.rows[0]
		if !r.stale {
			return r
		}
		s.settle(r)
	}
	return nil
}

// next is when the first row is due.
func (s *schedule) next() (time.Time, bool) {
	r := s.first(&s.due)
	if r == nil {
		return time.Time{}, false
	}
	return r.at[byDue], true
}

// batch takes out what to read now, when a row is due: at most n rows that are due, those first that have been due for
// longest. Where there is room, rows come along that are past half of their interval.
func (s *schedule) batch(now time.Time, n int) (list []*row) {
	for order, h := range [orders]*rowHeap{&s.due, &s.half} {
		for len(list) < n {
			r := s.first(h)
			if r == nil || r.at[order].After(now) {
				break
			}
			s.take(r)
			r.out = true
			for _, w := range r.watches {
				if !w.half.After(now) {
					w.told, r.told = true, append(r.told, w)
				}
			}
			list = append(list, r)
		}
	}
	return list
}

// rowHeap orders rows by one of their times.
type rowHeap struct {
	rows  []*row
	order int
}

func (h *rowHeap) put(r *row) {
	if i := r.index[h.order]; i >= 0 {
		heap.Fix(h, i)
		return
	}
	heap.Push(h, r)
}

func (h *rowHeap) take(r *row) {
	if i := r.index[h.order]; i >= 0 {
		heap.Remove(h, i)
	}
}

// Len is for package heap.
func (h *rowHeap) Len() int { return len(h.rows) }

// Less is for package heap.
func (h *rowHeap) Less(i, j int) bool {
	a, b := h.rows[i], h.rows[j]
	if c := a.at[h.order].Compare(b.at[h.order]); c != 0 {
		return c < 0
	}
	return a.number < b.number
}

// Swap is for package heap.
func (h *rowHeap) Swap(i, j int) {
	h.rows[i], h.rows[j] = h.rows[j], h.rows[i]
	h.rows[i].index[h.order], h.rows[j].index[h.order] = i, j
}

// Push is for package heap.
func (h *rowHeap) Push(x any) {
	r := x.(*row)
	r.index[h.order] = len(h.rows)
	h.rows = append(h.rows, r)
}

// Pop is for package heap.
func (h *rowHeap) Pop() any {
	last := len(h.rows) - 1
	r := h.rows[last]
	r.index[h.order] = -1
	h.rows[last] = nil
	h.rows = h.rows[:last]
	return r
}
