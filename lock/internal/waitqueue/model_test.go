package waitqueue_test

import (
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"
)

// The queues do what a list in its plainest form does, whatever is called, in whatever order, and by owners of the
// past.
func TestQueuesModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &queueWorld{}
		t.Repeat(map[string]func(*rapid.T){
			"join":   w.join,
			"leave":  w.leave,
			"place":  w.takePlace,
			"grant":  w.takeGrant,
			"over":   w.over,
			"claim":  w.claim,
			"hand":   w.hand,
			"cancel": w.cancel,
			"pass":   func(t *rapid.T) { w.claim(t); w.hand(t) },
			"":       w.check,
		})
	})
}

const modelKeys = 2

// queueWorld is queues, and what they should be like.
type queueWorld struct {
	real    queues
	waiters []*modelWaiter
	places  []*modelPlace
	claims  []*modelClaim
	grants  int
}

type modelWaiter struct {
	real  *waiter
	key   int
	state string // "", "turn", "granted", "left"
	grant int
	taken bool
	place *modelPlace
}

type modelPlace struct {
	real  *place // nil until somebody asked for it
	key   int
	over  bool
	claim *modelClaim
}

type modelClaim struct {
	real  *claim
	place *modelPlace
	by    *modelWaiter
}

// draw is one of a list; the zero value if there is none yet.
func draw[T any](t *rapid.T, list []T) (one T) {
	if len(list) > 0 {
		// The latest ones are those on which something still depends.
		one = list[len(list)-1-rapid.IntRange(0, min(len(list), 12)-1).Draw(t, "which")]
	}
	return one
}

// line lists who waits for a key.
func (w *queueWorld) line(key int) (list []*modelWaiter) {
	for _, m := range w.waiters {
		if m.key == key && m.state == "" {
			list = append(list, m)
		}
	}
	return list
}

// present is the place of a key.
func (w *queueWorld) present(key int) *modelPlace {
	i := slices.IndexFunc(w.places, func(p *modelPlace) bool { return p.key == key && !p.over })
	if i < 0 {
		return nil
	}
	return w.places[i]
}

func (w *queueWorld) turn(m *modelWaiter) {
	m.state, m.place = "turn", &modelPlace{key: m.key}
	w.places = append(w.places, m.place)
}

func (w *queueWorld) end(p *modelPlace) {
	if p.over {
		return
	}
	p.over, p.claim = true, nil
	if l := w.line(p.key); len(l) > 0 {
		w.turn(l[0])
	}
}

func (w *queueWorld) join(t *rapid.T) {
	k := rapid.IntRange(1, modelKeys).Draw(t, "key")
	m := &modelWaiter{key: k, real: w.real.Join(key(k), strconv.Itoa(len(w.waiters)))}
	w.waiters = append(w.waiters, m)
	if w.present(k) == nil {
		w.turn(m)
	}
}

func (w *queueWorld) leave(t *rapid.T) {
	m := draw(t, w.waiters)
	if m == nil {
		return
	}
	g, ok := m.real.Leave()
	if want := m.state == "granted" && !m.taken; ok != want || ok && g != m.grant {
		t.Fatalf("left with %v %v, but it was %+v", g, ok, m)
	}
	switch {
	case m.taken:
	case m.state == "granted":
		m.taken = true
	case m.state == "turn":
		m.state = "left"
		w.end(m.place)
	default:
		m.state = "left"
	}
}

func (w *queueWorld) takePlace(t *rapid.T) {
	m := draw(t, w.waiters)
	if m == nil {
		return
	}
	p := m.real.Place()
	if want := m.state == "turn" || m.state == "granted"; (p != nil) != want {
		t.Fatalf("place %p, but it was %+v", p, m)
	}
	if p == nil {
		return
	}
	m.taken = true
	if m.place.real != nil && m.place.real != p {
		t.Fatal("it is another place than before")
	}
	m.place.real = p
}

func (w *queueWorld) takeGrant(t *rapid.T) {
	m := draw(t, w.waiters)
	if m == nil {
		return
	}
	g, ok := m.real.Grant()
	if ok != (m.state == "granted") || ok && g != m.grant {
		t.Fatalf("grant %v %v, but it was %+v", g, ok, m)
	}
	m.taken = m.taken || ok
}

// known is a place that somebody has asked for, perhaps long ago.
func (w *queueWorld) known(t *rapid.T) *modelPlace {
	return draw(t, slices.DeleteFunc(slices.Clone(w.places), func(p *modelPlace) bool { return p.real == nil }))
}

func (w *queueWorld) over(t *rapid.T) {
	p := w.known(t)
	if p == nil {
		return
	}
	p.real.Over()
	w.end(p)
}

func (w *queueWorld) claim(t *rapid.T) {
	p := w.known(t)
	if p == nil {
		return
	}
	c := p.real.Claim()
	l := w.line(p.key)
	if want := !p.over && p.claim == nil && len(l) > 0; (c != nil) != want {
		t.Fatalf("claimed %v, but the place was %+v, and %d wait", c != nil, p, len(l))
	}
	if c == nil {
		return
	}
	if number, _ := strconv.Atoi(c.Request()); w.waiters[number] != l[0] {
		t.Fatalf("claimed number %d, who is not the first", number)
	}
	p.claim = &modelClaim{real: c, place: p, by: l[0]}
	w.claims = append(w.claims, p.claim)
}

func (w *queueWorld) hand(t *rapid.T) {
	c := draw(t, w.claims)
	if c == nil {
		return
	}
	w.grants++
	ok := c.real.Hand(w.grants)
	if want := c.place.claim == c && c.by.state == ""; ok != want {
		t.Fatalf("handed %v, but it was %+v", ok, c)
	}
	if c.place.claim == c {
		c.place.claim = nil
	}
	if ok {
		c.by.state, c.by.grant, c.by.place = "granted", w.grants, c.place
	}
}

func (w *queueWorld) cancel(t *rapid.T) {
	c := draw(t, w.claims)
	if c == nil {
		return
	}
	c.real.Cancel()
	if c.place.claim == c {
		c.place.claim = nil
	}
}

func (w *queueWorld) check(t *rapid.T) {
	for i, m := range w.waiters {
		if want := m.place != nil; ready(m.real) != want {
			t.Fatalf("waiter %d is ready: %v, but it is %+v", i, !want, m)
		}
	}
	for k := 1; k <= modelKeys; k++ {
		if n, want := w.real.Waiting(key(k)), len(w.line(k)); n != want {
			t.Fatalf("%d wait for %d, not %d", n, k, want)
		}
	}
}
