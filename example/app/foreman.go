package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	// tick is how often the foreman looks at the clock.
	tick = 50 * time.Millisecond
	// quiet is how long nothing may be heard before the foreman looks into the
	// table itself: a worker that was killed after its commit tells nobody.
	quiet = time.Second
)

// hand is how the foreman reaches a crew. Its methods do not block.
type hand interface {
	start()  // the workers may begin
	finish() // everything is settled: come to an end
	abort()  // stop as soon as possible
}

// member is a crew as the foreman sees it.
type member struct {
	hand
	name    string // "" for the crew in this process
	ready   bool
	gone    bool
	err     error
	settled int
	stats   stats
}

// foreman starts crews, follows what they do, and tells them when everything
// is settled.
type foreman struct {
	store     *store
	batch     string
	progress  *progress
	members   []*member
	events    chan event
	total     int
	remaining map[string]bool // orders that are not known to be settled
	stalled   []string        // orders on which a worker froze

	started, finishing, aborted bool

	heard time.Time // the last event, or look into the table

	// watch sees every event first. Nil but in tests.
	watch func(*foreman, event)
}

func newForeman(s *store, batch string, p *progress) *foreman {
	return &foreman{store: s, batch: batch, progress: p, events: make(chan event), remaining: map[string]bool{}}
}

// add makes a crew known. It sends its events to f.events, with its index,
// which is returned; the last one is crewGone.
func (f *foreman) add(name string) int {
	f.members = append(f.members, &member{name: name})
	return len(f.members) - 1
}

// run follows the crews until all are gone. It fails if orders are left; with
// the cause of ctx if that was ended.
func (f *foreman) run(ctx context.Context) error {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	f.heard = time.Now()
	cancelled := ctx.Done()
	var broken error
	for f.alive() > 0 {
		select {
		case e := <-f.events:
			f.handle(e)
		case <-ticker.C:
			f.show()
			if f.started && len(f.remaining) > 0 && broken == nil && time.Since(f.heard) >= quiet {
				if broken = f.check(ctx); broken != nil {
					f.abort()
				}
			}
		case <-cancelled:
			cancelled = nil
			f.abort()
		}
		f.command()
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if broken != nil {
		return broken
	}
	if len(f.remaining) > 0 {
		// The last commits may have gone unreported.
		if err := f.check(ctx); err != nil {
			return err
		}
	}
	f.show()
	return f.result()
}

// command passes on what the state of affairs demands.
func (f *foreman) command() {
	if !f.started && f.allReady() {
		f.started, f.heard = true, time.Now()
		f.each(hand.start)
	}
	if f.started && !f.finishing && len(f.remaining) == 0 {
		f.finishing = true
		f.each(hand.finish)
	}
}

func (f *foreman) abort() {
	f.aborted = true
	f.each(hand.abort)
}

func (f *foreman) each(do func(hand)) {
	for _, m := range f.members {
		if !m.gone {
			do(m.hand)
		}
	}
}

func (f *foreman) alive() (n int) {
	for _, m := range f.members {
		if !m.gone {
			n++
		}
	}
	return n
}

func (f *foreman) allReady() bool {
	for _, m := range f.members {
		if !m.gone && !m.ready {
			return false
		}
	}
	return true
}

func (f *foreman) handle(e event) {
	if f.watch != nil {
		f.watch(f, e)
	}
	m := f.members[e.crew]
	if e.Kind != crewGone {
		m.stats = e.Stats
	}
	f.heard = time.Now()
	switch e.Kind {
	case crewReady:
		m.ready = true
	case workerFroze:
		f.stalled = append(f.stalled, e.Order)
	case orderSettled:
		m.settled++
		delete(f.remaining, e.Order)
	case orderFound:
		delete(f.remaining, e.Order)
	case crewFailed:
		m.err = e.err
		if m.err == nil {
			m.err = errors.New(e.Error)
		}
	case crewGone:
		m.gone = true
		if m.err == nil {
			m.err = e.err
		}
		if m.err != nil && m.name != "" && !f.aborted {
			f.progress.note("worker process %s has ended early: %v; the others settle its orders when its leases end", m.name, m.err)
		}
	}
}

// check asks the table which of the remaining orders are settled.
func (f *foreman) check(ctx context.Context) error {
	ids := make([]string, 0, len(f.remaining))
	for id := range f.remaining {
		ids = append(ids, id)
	}
	orders, err := f.store.getOrders(ctx, f.batch, ids)
	if err != nil {
		return err
	}
	for _, o := range orders {
		if o.Status == Settled {
			delete(f.remaining, o.Order)
		}
	}
	f.heard = time.Now()
	return nil
}

func (f *foreman) stats() (s stats) {
	for _, m := range f.members {
		s = s.plus(m.stats)
	}
	return s
}

func (f *foreman) show() {
	s := f.stats()
	detail := fmt.Sprintf("%d waits", s.Waits)
	if s.Frozen > 0 {
		detail += fmt.Sprintf(", %d frozen, %d stale writes refused", s.Frozen, s.Refused)
	}
	f.progress.update("settling", f.total-len(f.remaining), f.total, detail)
}

// result says how it ended, all crews being gone.
func (f *foreman) result() error {
	if len(f.remaining) == 0 {
		return nil
	}
	if len(f.members) == 1 && f.members[0].name == "" {
		if err := f.members[0].err; err != nil {
			return err
		}
	}
	return fmt.Errorf("all worker processes have ended, and %d of %d orders are not settled", len(f.remaining), f.total)
}
