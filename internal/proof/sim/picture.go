package sim

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Picture draws which client held which lock when. Each client has a line, and time runs from left to right. The axis
// is not to scale: each event gets room, and long quiet times are cut. The marks of the axis show the times.
type Picture struct {
	Events   []Event
	From, To time.Duration // what to show; To defaults to the end
	Width    int           // in columns; defaults to 120
}

const (
	longest  = 8  // columns in which nothing happens
	between  = 14 // columns between marks of the axis, at least
	thousand = 1000
)

// String returns the picture, in panels of the given width, or the reason why there is nothing to draw.
func (p Picture) String() string {
	s := newScene(p.Events)
	if why := p.nothing(s); why != "" {
		return why + "\n"
	}
	for _, e := range p.Events {
		s.draw(e)
	}
	return s.panels(p)
}

// nothing returns why there is nothing to draw. It is empty if there is something.
func (p Picture) nothing(s *scene) string {
	switch {
	case !s.eventful && len(s.letters) == 0:
		return "Nothing to draw: this workload tells of no locks, and nothing happens but that processes boot."
	case s.last < p.From:
		return fmt.Sprintf("Nothing to draw: what happened last was at %.2f s, before %v.", s.last.Seconds(), p.From)
	}
	return ""
}

// width is the width in columns.
func (p Picture) width() int {
	if p.Width == 0 {
		return 120
	}
	return p.Width
}

// scene is a picture while it is drawn.
type scene struct {
	lanes   []*lane
	bases   map[string]int64  // the numbers from which each lock's fences are counted
	letters map[string]string // of locks, if there are several
	step    time.Duration     // the longest time that one column stands for

	stops    []stop // the moment of each column
	locks    int    // the column in which a lock has changed last
	wrong    instant
	last     time.Duration // when the last event is that is drawn
	eventful bool          // something is drawn besides processes that boot
}

// instant is the violations of one moment, which share a mark.
type instant struct {
	at    time.Duration
	count int // 0 if the last event was none
}

// stop is a moment that has a column of its own.
type stop struct {
	at     time.Duration
	column int
	cut    bool // a long time before it was cut out
}

// lane is the line of a client.
type lane struct {
	client, worker string
	cells          []byte
	free           int           // the first column after its last mark
	last           time.Duration // when its worker did something last
	works          bool          // it has a worker

	alive, stopped, suspended, cut, waiting, storm, finished bool
	held                                                     map[string]int64 // fences by lock
}

// newScene finds out which clients and events there are to draw.
func newScene(events []Event) *scene {
	s := &scene{bases: map[string]int64{}, letters: map[string]string{}, locks: -1, step: time.Second}
	since := map[[3]string]time.Duration{}
	var holds []time.Duration
	for _, e := range events {
		if e.Kind == Traffic {
			continue
		}
		if l := s.lane(e); e.Worker != "" {
			l.works, l.last = true, e.At
		}
		if !e.inWords() {
			s.last = e.At
			s.eventful = s.eventful || e.Kind != Booted
		}
		if e.Lock != "" {
			s.letters[e.Lock] = ""
		}
		key := [3]string{e.Client, e.Worker, e.Lock}
		switch e.Kind {
		case Holding:
			base := max(e.Fence-1, 0) / thousand * thousand
			if before, ok := s.bases[e.Lock]; !ok || base < before {
				s.bases[e.Lock] = base
			}
			since[key] = e.At
		case Released, Abandoned, Lost:
			holds = append(holds, e.At-since[key])
		}
	}
	for i, name := range slices.Sorted(maps.Keys(s.letters)) {
		s.letters[name] = letter(i)
	}
	if slices.Sort(holds); len(holds) > 0 {
		s.step = max(holds[len(holds)/2]/4, time.Millisecond)
	}
	slices.SortStableFunc(s.lanes, func(a, b *lane) int {
		return cmp.Or(cmp.Compare(len(a.client), len(b.client)), strings.Compare(a.client, b.client),
			cmp.Compare(len(a.worker), len(b.worker)), strings.Compare(a.worker, b.worker))
	})
	// A process has a line of its own only if it has no workers.
	s.lanes = slices.DeleteFunc(s.lanes, func(l *lane) bool {
		return l.worker == "" && l.client != "" && slices.ContainsFunc(s.lanes, func(o *lane) bool { return o.client == l.client && o.worker != "" })
	})
	return s
}

// letter names the nth lock.
func letter(n int) string {
	if n < 26 {
		return string(rune('a' + n))
	}
	return letter(n/26-1) + letter(n%26)
}

// lane returns the line of an event's client. It adds one if there is none.
func (s *scene) lane(e Event) *lane {
	for _, l := range s.lanes {
		if l.client == e.Client && l.worker == e.Worker {
			return l
		}
	}
	l := &lane{client: e.Client, worker: e.Worker, held: map[string]int64{}}
	s.lanes = append(s.lanes, l)
	return l
}

// of lists the lines that an event concerns.
func (s *scene) of(e Event) []*lane {
	var list []*lane
	for _, l := range s.lanes {
		if l.client == e.Client && (e.Worker == "" || l.worker == e.Worker) {
			list = append(list, l)
		}
	}
	return list
}

// draw draws an event, and what has been going on until then.
func (s *scene) draw(e Event) {
	if e.Kind == Traffic || e.inWords() {
		return
	}
	of := s.of(e)
	ends := e.Kind == Lost || e.Kind == Released || e.Kind == Abandoned
	if ends && !slices.ContainsFunc(of, func(l *lane) bool { return l.holds(e) }) {
		return // it releases a lock that it has lost, or learns of the end of a lease that it has released
	}
	if s.merge(e) {
		return
	}
	column, cut := 0, false
	if n := len(s.stops); n > 0 {
		last := s.stops[n-1]
		wide := int((e.At - last.at + s.step/2) / s.step)
		cut = wide > longest
		column = last.column + min(wide, longest)
	}
	for _, l := range of {
		column = max(column, l.free)
	}
	if ends || e.Kind == Holding {
		column = max(column, s.locks+1)
		s.locks = column
	}
	s.stops = append(s.stops, stop{e.At, column, cut})
	for _, l := range s.lanes {
		l.finished = l.works && l.last < e.At
		l.fill(column)
	}
	mark := s.mark(e)
	for _, l := range of {
		l.mark(mark)
		l.change(e)
	}
}

// holds reports whether an event is about a lease that the client holds in the picture.
func (l *lane) holds(e Event) bool {
	fence, held := l.held[e.Lock]
	return held && (e.Kind != Lost || e.Fence == fence)
}

// merge lets violations of one moment share a mark, which shows their number. It returns false if the event needs a
// mark of its own.
func (s *scene) merge(e Event) bool {
	if e.Kind != Violation {
		s.wrong.count = 0
		return false
	}
	if s.wrong.count == 0 || s.wrong.at != e.At {
		s.wrong = instant{at: e.At, count: 1}
		return false
	}
	s.wrong.count++
	for _, l := range s.of(e) {
		l.cells = append(l.cells[:bytes.LastIndexByte(l.cells, 'V')], fmt.Sprint("V", s.wrong.count)...)
		l.free = len(l.cells)
	}
	return true
}

// fill continues the line up to a column.
func (l *lane) fill(to int) {
	for len(l.cells) < to {
		l.cells = append(l.cells, l.sign())
	}
}

// mark puts a sign at the end of the line. Lines that share the column of a mark end before it.
func (l *lane) mark(m string) {
	l.cells = append(l.cells, m...)
	l.free = len(l.cells) + 1 - min(len(m), 1)
}

// mark returns the sign of an event. An event that only changes the sign of what goes on has none.
func (s *scene) mark(e Event) string {
	switch e.Kind {
	case Holding:
		if len(s.letters) > 1 {
			return fmt.Sprintf("[%s%d", s.letters[e.Lock], e.Fence-s.bases[e.Lock])
		}
		return fmt.Sprintf("[%d", e.Fence-s.bases[e.Lock])
	case Released:
		return "]"
	case Abandoned:
		return ")"
	case Lost:
		return "!"
	case Acknowledged:
		return "+"
	case Refused:
		return "#"
	case Unanswered:
		return "?"
	case Booted:
		return "^"
	case Crashed:
		return "X"
	case Jumped:
		return "*"
	case Swept:
		return "d"
	case Violation:
		return "V"
	}
	return ""
}

// change records what is different after an event.
func (l *lane) change(e Event) {
	switch e.Kind {
	case Booted:
		*l = lane{
			client: l.client, worker: l.worker, cells: l.cells, free: l.free, last: l.last, works: l.works,
			alive: true, held: map[string]int64{},
		}
	case Crashed:
		l.alive, l.held = false, map[string]int64{}
	case Paused, Suspended:
		l.stopped, l.suspended = true, e.Kind == Suspended
	case Resumed:
		l.stopped = false
	case CutOff:
		l.cut = true
	case Joined:
		l.cut = false
	case Waiting:
		l.waiting = true
	case GaveUp:
		l.waiting = false
	case Holding:
		l.waiting = false
		l.held[e.Lock] = e.Fence
	case Released, Abandoned, Lost:
		delete(l.held, e.Lock)
	case Storm:
		l.storm = true
	case Abated:
		l.storm = false
	}
}

// sign returns the sign of what goes on.
func (l *lane) sign() byte {
	pick := func(signs string) byte { // doing something else, waiting, holding
		switch {
		case len(l.held) > 0:
			return signs[2]
		case l.waiting:
			return signs[1]
		}
		return signs[0]
	}
	switch {
	case l.storm:
		return 't'
	case !l.alive, l.finished && !l.waiting && len(l.held) == 0:
		return ' '
	case l.stopped && l.suspended:
		return pick("ssS")
	case l.stopped:
		return pick("zzZ")
	case l.cut:
		return pick("~:%")
	}
	return pick("-.=")
}

// panels cuts the lines into pieces that fit the width.
func (s *scene) panels(p Picture) string {
	end := s.stops[len(s.stops)-1].column + 1
	for _, l := range s.lanes {
		end = max(end, len(l.cells))
	}
	labels := make([]string, len(s.lanes))
	margin := len("seconds")
	for i, l := range s.lanes {
		labels[i] = s.label(l)
		margin = max(margin, len(labels[i]))
		l.finished = l.works
		l.fill(end)
	}
	from, to := s.window(p, end)
	width := max(p.width()-margin-2, 20)
	var b strings.Builder
	for at := from; at < to; at += width {
		till := min(at+width, to)
		fmt.Fprintf(&b, "%-*s  %s\n", margin, "seconds", s.axis(at, till, width))
		for i, l := range s.lanes {
			if l.client == "" && len(bytes.TrimSpace(l.cells[at:till])) == 0 {
				continue // nothing happens to the world here
			}
			b.WriteString(strings.TrimRight(fmt.Sprintf("%-*s  %s", margin, labels[i], l.cells[at:till]), " "))
			b.WriteByte('\n')
		}
		if till < to {
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// label names a line, with the worker if its process has several.
func (s *scene) label(l *lane) string {
	if l.client == "" {
		return "world"
	}
	if n := len(s.of(Event{Client: l.client})); n > 1 {
		return l.client + "/" + l.worker
	}
	return l.client
}

// window returns the columns that are to be shown.
func (s *scene) window(p Picture, end int) (from, to int) {
	to = end
	for i, stop := range s.stops {
		if stop.at <= p.From && i > 0 && stop.at > s.stops[i-1].at {
			from = stop.column // the first column of its moment
		}
		if p.To > 0 && stop.at > p.To {
			to = stop.column
			break
		}
	}
	return from, max(to, from)
}

// axis draws the marks: | is the column of the time after it, and … stands where time was cut out. A mark may be
// wider than the columns below it.
func (s *scene) axis(from, to, width int) string {
	line := []rune(strings.Repeat(" ", width))
	next := from
	for _, stop := range s.stops {
		if stop.column < from || stop.column >= to {
			continue
		}
		text := []rune(fmt.Sprintf("|%.2f", stop.at.Seconds()))
		if stop.column >= next && stop.column+len(text) <= from+width {
			copy(line[stop.column-from:], text)
			next = stop.column + between
		}
	}
	for _, stop := range s.stops {
		if i := stop.column - longest/2 - from; stop.cut && i > 0 && i < len(line)-1 && line[i] == ' ' && line[i-1] == ' ' && line[i+1] == ' ' {
			line[i] = '…'
		}
	}
	return strings.TrimRight(string(line), " ")
}
