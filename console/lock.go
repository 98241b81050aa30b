package console

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/mortise-go/mortise/entity"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
)

const (
	maxHistory   = 200 // entries of a lock's history
	maxFollowed  = 200 // locks whose own page is open at the same time
	inspectEvery = time.Second
)

// lockHistory is one lock as it was read last, and what has changed since the first read.
type lockHistory struct {
	record   lock.Record
	at       time.Time // when it was read
	exists   bool
	read     bool // at least once
	sessions map[string]sighting
	began    time.Time
	changes  []change // the latest first
	counted  int      // number of changes so far, also of those that are not kept
	wrong    error    // why the row is not that of a lock, or a malformed one; nil otherwise
	err      error    // why the lock cannot be read
	unread   error    // why its sessions cannot be read
}

// change is one entry of a history.
type change struct {
	number int // tells it from others: one process can have several places, whose changes have the same time and text
	at     time.Time
	text   string
}

// follow enters the feed of one lock as a reader. Only a reader can get a feed, so there is none that nobody has ever read,
// and that would never be forgotten.
func (c *Console) follow(target lock.Target) (*lockFeed, func(), error) {
	c.mu.Lock()
	f := c.single[target]
	if f == nil {
		if len(c.single) >= maxFollowed {
			c.mu.Unlock()
			return nil, nil, &statusError{http.StatusServiceUnavailable, "Too many locks are looked at."}
		}
		f = newFeed(c, func(ctx context.Context, publish func(*lockHistory)) {
			defer c.forget(target, f)
			c.readLock(ctx, target, publish)
		})
		c.single[target] = f
	}
	c.mu.Unlock()
	return f.enter()
}

// forget removes a feed that has stopped reading. If a reader got it at the same moment, it still works for that reader.
func (c *Console) forget(target lock.Target, f *lockFeed) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.single[target] == f {
		delete(c.single, target)
	}
}

// readLock reads one lock every second, and every fourth time also the sessions of the places in its line.
func (c *Console) readLock(ctx context.Context, target lock.Target, publish func(*lockHistory)) {
	now := lockHistory{began: c.now(), sessions: map[string]sighting{}}
	for turn := 0; ; turn++ {
		r, err := c.config.Locks.Inspect(ctx, target)
		missing := errors.Is(err, table.ErrNotFound)
		now.wrong, now.err = nil, nil
		switch {
		case err == nil, missing:
			now.compare(r, !missing, c.now())
		case errors.Is(err, lock.ErrMalformed), errors.Is(err, lock.ErrNotLock):
			now.wrong, now.unread = err, nil // its sessions are not read
		default:
			now.err = err
		}
		asked := turn%4 == 0 && now.wrong == nil && now.err == nil
		if asked {
			now.unread = now.readSessions(ctx, c.config.Locks, c.now)
		}
		snapshot := now
		publish(&snapshot)
		wait := inspectEvery
		if now.err != nil || asked && now.unread != nil {
			wait = afterFailure
		}
		if !sleep(ctx, wait) {
			return
		}
	}
}

// readSessions reads the sessions of the places in the line. A session that cannot be read stays as it was.
func (h *lockHistory) readSessions(ctx context.Context, locks *lock.Client, clock func() time.Time) error {
	var ids []string
	for _, p := range h.record.Line {
		if p.Session != "" && !slices.Contains(ids, p.Session) {
			ids = append(ids, p.Session)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	seen, err := look(ctx, locks, clock, ids)
	for _, id := range ids {
		before, known := h.sessions[id]
		if _, again := seen[id]; known && !again {
			seen[id] = before
		}
	}
	h.sessions = seen
	return err
}

// look reads sessions. If some cannot be read, it returns the others and an error. Rows that are not in order are left out, without an error:
// the table can be read.
func look(ctx context.Context, locks *lock.Client, clock func() time.Time, ids []string) (map[string]sighting, error) {
	list, err := locks.Sessions(ctx, ids...)
	now := clock() // not from before: the request can have waited for its turn
	seen := make(map[string]sighting, len(ids))
	if err == nil { // after an error, a session that is not in list may still have a row
		for _, id := range ids {
			seen[id] = sighting{at: now}
		}
	}
	for _, s := range list {
		seen[s.ID] = sighting{s, true, now}
	}
	var row *entity.DecodeError
	var undone *table.UnprocessedError
	if errors.As(err, &row) && !errors.As(err, &undone) {
		err = nil
	}
	return seen, err
}

// compare adds what has changed since the last read to the history, and keeps the new state.
func (h *lockHistory) compare(r lock.Record, exists bool, at time.Time) {
	if h.read {
		var entries []change
		for _, text := range changes(&h.record, &r, h.exists, exists) {
			h.counted++
			entries = append(entries, change{h.counted, at, text})
		}
		slices.Reverse(entries)
		h.changes = append(entries, h.changes...)
		h.changes = h.changes[:min(len(h.changes), maxHistory)]
	}
	h.record, h.at, h.exists, h.read = r, at, exists, true
}

// changes describes what has happened between two reads of a lock, as far as the rows show it. The order is one in which it
// can have happened.
func changes(was, is *lock.Record, existed, exists bool) (list []string) {
	say := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	switch {
	case existed && !exists:
		return []string{"the row was deleted"}
	case !exists:
		return nil
	}
	inLine := func(line []lock.Place, p *lock.Place) bool {
		return slices.ContainsFunc(line, func(o lock.Place) bool { return o.Ticket == p.Ticket })
	}
	first := was.Holder()
	if passed := is.Fence - was.Fence; was.Fence > 0 && passed > 1 && is.Holder().Ticket != first.Ticket {
		say("%s changes of the first place, of which the last one is shown", number(passed))
	}
	switch forced := is.ForcedFence > was.ForcedFence; {
	case is.Permits > 0 && (forced || is.Forced != "" && is.Changed > was.Changed): // with permits, ForcedFence is the fence of no holder
		say("a permit was taken by force")
	case forced && is.Permits == 0:
		say("taken by force from the holder with fence %d", is.ForcedFence)
	}
	for _, p := range was.Holders() {
		if !inLine(is.Line, &p) {
			say("%s has left", p.Owner)
		}
	}
	for _, p := range is.Holders() {
		switch {
		case inLine(was.Holders(), &p):
		case is.Permits > 0:
			say("%s has a permit", p.Owner)
		default:
			say("%s holds the lock, with fence %d", p.Owner, is.Fence)
		}
	}
	if was.Held() && !is.Held() {
		say("nobody holds the lock")
	}
	for _, p := range was.Line[holders(was):] {
		if !inLine(is.Line, &p) {
			say("%s has left the line", p.Owner)
		}
	}
	for _, p := range is.Line[holders(is):] {
		if !inLine(was.Line, &p) {
			say("%s has entered the line", p.Owner)
		}
	}
	if is.Writes > was.Writes && existed {
		say("guarded writes up to number %d", is.Writes)
	}
	if is.Edits > was.Edits && existed {
		say("a new payload")
	}
	if is.Running > was.Running {
		say("the run for %s has begun", clock(time.UnixMilli(is.Running)))
	}
	if is.Ran > was.Ran {
		how := "has finished"
		if is.Failed == is.Ran {
			how = "has failed"
		}
		say("the run for %s %s", clock(time.UnixMilli(is.Ran)), how)
	}
	return list
}

// targetOf returns the lock that a request names by name, or by pk and of, with these parameters for further URLs.
func targetOf(r *http.Request) (target lock.Target, query url.Values, err error) {
	q := r.URL.Query()
	name, pk, of := q.Get("name"), q.Get("pk"), q.Get("of")
	switch {
	case name != "" && pk == "" && of == "":
		return lock.Name(name), url.Values{"name": {name}}, nil
	case name == "" && pk != "" && of != "":
		// Beside finds locks with a name, too: the keys of both kinds of lock rows are made of pk and of in the same way.
		return lock.Beside(keys.NewKey(pk, of)), url.Values{"pk": {pk}, "of": {of}}, nil
	}
	return target, nil, badRequest("Want name, or pk and of: the name of a lock that stands for itself, or the keys of the row that it stands beside.")
}

// lockPageView is what the page of one lock shows.
type lockPageView struct {
	lockView

	Read, Exists bool
	Title        string
	Partition    string
	Items        string // URL of the page of its item collection
	Permits      int    // how many may hold at once; 0 for a lock
	Usual        string // how long it was held lately
	Writes       string
	Forced       string
	ForcedFence  int64
	Runs         []string
	HasData      bool
	ShowData     bool
	Data         string // empty without ShowData
	Began        string
	Changes      []changeView
	Wrong        string
	Failure      string
	Delete       string
}

type changeView struct {
	Number      int
	Clock, Text string
}

func (c *Console) lockPage(r *http.Request) (*part, error) {
	target, query, err := targetOf(r)
	if err != nil {
		return nil, err
	}
	if _, err := c.config.Locks.Key(target); err != nil {
		return nil, badRequest("No lock can have this name, or be beside a row with this key: " + err.Error())
	}
	title := target.Name()
	if title == "" {
		title = target.Beside().SK
	}
	p := part{name: "lock", title: title, events: eventsOf("lock", query)}
	enter := func() (*lockFeed, func(), error) { return c.follow(target) }
	return live(p, enter, func(h *lockHistory) any { return c.viewLockPage(h, title) }), nil
}

func (c *Console) viewLockPage(h *lockHistory, title string) lockPageView {
	v := lockPageView{Title: title}
	if h == nil {
		return v
	}
	now := c.now()
	v.Read, v.Exists, v.Wrong, v.Failure, v.Began = h.read, h.exists, c.failure(h.wrong), c.failure(cmp.Or(h.err, h.unread)), clock(h.began)
	for _, e := range h.changes {
		v.Changes = append(v.Changes, changeView{e.number, e.at.UTC().Format(time.TimeOnly), e.text})
	}
	if !h.exists {
		return v
	}
	r := &h.record
	v.lockView = viewLock(r, h.at, h.sessions, now, len(r.Line))
	v.Partition, v.Items, v.Permits = r.Partition, itemsURL(r.Partition), r.Permits
	if r.Hold > 0 {
		v.Usual = "less than 1 s"
		if d := time.Duration(r.Hold) * time.Millisecond; d >= time.Second {
			v.Usual = age(d)
		}
	}
	if r.Writes > 0 {
		v.Writes = number(r.Writes)
	}
	v.Forced, v.ForcedFence, v.Runs = r.Forced, r.ForcedFence, runs(r)
	if v.HasData, v.ShowData = !r.Data.IsZero(), c.config.ShowData; v.HasData && v.ShowData {
		v.Data = payload(r.Data)
	}
	if !r.DeleteAfter.IsZero() {
		v.Delete = clock(r.DeleteAfter)
	}
	return v
}

// runs describes the runs of Client.Every that a lock's row records.
func runs(r *lock.Record) (list []string) {
	if r.Running > 0 && r.Running != r.Ran {
		list = append(list, "The run for "+clock(time.UnixMilli(r.Running))+" has begun and not finished.")
	}
	switch {
	case r.Ran > 0 && r.Failed == r.Ran:
		list = append(list, "The run for "+clock(r.LastRun())+" has failed.")
	case r.Ran > 0:
		list = append(list, "The run for "+clock(r.LastRun())+" has finished.")
	}
	return list
}

// payload formats a payload as the page of items formats it. Decoding it would round its numbers.
func payload(d lock.Data) string {
	av, _ := d.MarshalDynamo() // it does not fail
	return nested(av)
}
