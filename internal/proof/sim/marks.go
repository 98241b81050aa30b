package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"github.com/mortise-go/mortise/lock"
)

// state is what a client knows of a write of its own.
type state int

const (
	unknown state = iota
	acknowledged
	refused
)

// stateOf returns what the error of a guarded write tells. If the write's context ended, the write may have been
// applied, unless the error matches ErrLost.
func stateOf(err error) state {
	switch {
	case err == nil:
		return acknowledged
	case errors.Is(err, lock.ErrLost):
		return refused
	}
	return unknown
}

// settle compares what a client knows of a write with how often it was applied.
func (t *Tally) settle(w *World, what string, known state, times int) {
	t.count(known)
	switch {
	case known == acknowledged && times == 0:
		t.Lost++
		w.Violation("%s was acknowledged and is lost", what)
	case known == refused && times > 0:
		w.Violation("%s was refused and is there", what)
	}
	if times > 1 {
		t.Twice++
		w.Violation("%s is there %d times", what, times)
	}
}

func (t *Tally) count(known state) {
	switch known {
	case acknowledged:
		t.Acknowledged++
	case refused:
		t.Refused++
	case unknown:
		t.Unknown++
	}
}

// marks numbers what clients write to rows of entities, so that a checker can find it there.
type marks struct {
	mu     sync.Mutex
	rounds int
	left   []int // by client
	state  map[int64]state
}

func newMarks(clients, rounds int) *marks {
	m := &marks{rounds: rounds, left: make([]int, clients), state: map[int64]state{}}
	for i := range m.left {
		m.left[i] = rounds
	}
	return m
}

// each starts a supervised process for each client. prepare returns what a process does in each of its turns.
func (m *marks) each(w *World, prepare func(p *Process) func(ctx context.Context, x *Worker, mark int64)) {
	for i := range m.left {
		w.Supervise(fmt.Sprint("client", i+1), func(p *Process) {
			turn := prepare(p)
			p.Go("w", func(ctx context.Context, x *Worker) {
				for ctx.Err() == nil && !p.Crashed() {
					mark, ok := m.next(i)
					if !ok {
						return
					}
					turn(ctx, x, mark)
				}
			})
		})
	}
}

// next returns the number of a client's next write.
func (m *marks) next(client int) (mark int64, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.left[client] == 0 {
		return 0, false
	}
	m.left[client]--
	mark = int64(client+1)*1000 + int64(m.rounds-m.left[client])
	m.state[mark] = unknown
	return mark, true
}

// end records how a write ended, and returns what is known of it.
func (m *marks) end(mark int64, err error) state {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case err == nil:
		m.state[mark] = acknowledged
	case isRefused(err):
		m.state[mark] = refused
	}
	return m.state[mark]
}

// refused reports whether a client was told that its write was refused.
func (m *marks) refused(mark int64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.state[mark] == refused
}

// check compares what clients know with how often their marks are there. times returns -1 if that cannot be told.
func (m *marks) check(w *World, times func(mark int64) int) (sum Tally) {
	m.mu.Lock()
	defer m.mu.Unlock()
	list := make([]int64, 0, len(m.state))
	for mark := range m.state {
		list = append(list, mark)
	}
	slices.Sort(list)
	for _, mark := range list {
		sum.settle(w, strconv.FormatInt(mark, 10), m.state[mark], times(mark))
	}
	return sum
}
