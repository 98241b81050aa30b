package waitqueue_test

import (
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/mortise-go/mortise/lock/internal/waitqueue"
)

// The queues do what a list in its plainest form does, whatever is called, in whatever order, and by owners of the
// past.
func TestQueues_DoWhatAPlainListDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &queueWorld{}
		t.Repeat(map[string]func(*rapid.T){
			"join":  w.join,
			"leave": w.leave,
			"take":  w.take,
			"over":  w.over,
			"first": w.first,
			"hand":  w.hand,
			"":      w.check,
		})
	})
}

const modelKeys = 2

// queueWorld is queues, and what they should be like.
type queueWorld struct {
	real    queues
	waiters []*modelWaiter
	places  []*modelPlace
	grants  int
}

type modelWaiter struct {
	real  *waiter
	key   int
	state string // "", "turn", "taken", "left"
	grant int
	place *modelPlace
}

type modelPlace struct {
	real *place // nil until somebody took it
	key  int
	over bool
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
	p.over = true
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
	got, came := m.real.Leave()
	w.took(t, m, got, came)
	if m.state == "" {
		m.state = "left"
	}
}

func (w *queueWorld) take(t *rapid.T) {
	m := draw(t, w.waiters)
	if m == nil {
		return
	}
	select {
	case got := <-m.real.Turn():
		w.took(t, m, got, true)
	default:
		w.took(t, m, waitqueue.Turn[string, int]{}, false)
	}
}

// took expects that a waiter gets its turn, if it has come, once.
func (w *queueWorld) took(t *rapid.T, m *modelWaiter, got waitqueue.Turn[string, int], came bool) {
	if want := m.state == "turn"; came != want || came && (got.Grant != m.grant || got.Place == nil) {
		t.Fatalf("got %v %v, but it was %+v", got, came, m)
	}
	if !came {
		return
	}
	if m.state = "taken"; m.place.real != nil && m.place.real != got.Place {
		t.Fatal("it is another place than before")
	}
	m.place.real = got.Place
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

func (w *queueWorld) first(t *rapid.T) {
	p := w.known(t)
	if p == nil {
		return
	}
	var want *waiter
	if l := w.line(p.key); !p.over && len(l) > 0 {
		want = l[0].real
	}
	if got := p.real.First(); got != want {
		t.Fatalf("%v is first, not %v", got, want)
	}
}

func (w *queueWorld) hand(t *rapid.T) {
	p, m := w.known(t), draw(t, w.waiters)
	if p == nil || m == nil {
		return
	}
	if l := w.line(p.key); len(l) > 0 && rapid.Bool().Draw(t, "to the first") {
		m = l[0]
	}
	w.grants++
	ok := p.real.Hand(m.real, w.grants)
	l := w.line(p.key)
	if want := !p.over && len(l) > 0 && l[0] == m; ok != want {
		t.Fatalf("handed %v, but the place was %+v, and it was %+v", ok, p, m)
	}
	if ok {
		m.state, m.grant, m.place = "turn", w.grants, p
	}
}

func (w *queueWorld) check(t *rapid.T) {
	for i, m := range w.waiters {
		if want := m.state == "turn"; ready(m.real) != want {
			t.Fatalf("waiter %d is ready: %v, but it is %+v", i, !want, m)
		}
	}
	for k := 1; k <= modelKeys; k++ {
		if n, want := w.real.Waiting(key(k)), len(w.line(k)); n != want {
			t.Fatalf("%d wait for %d, not %d", n, k, want)
		}
	}
}
