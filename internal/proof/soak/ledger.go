package soak

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"
)

// entry is an operation and what is known of it.
type entry struct {
	*operation
	outcome outcome
	number  int // in the order in which operations began
}

// written is a value that an operation has written into a row.
type written struct {
	workload, row string
	value         int64
}

// ledger holds what all workers have reported. It is safe for concurrent use, and grows by some 300 bytes per
// operation.
type ledger struct {
	mu         sync.Mutex
	byOp       map[string]*entry
	inOrder    []*entry
	idle       map[string]int // by workload
	violations []Violation

	latest map[string]*entry // by lock: the acknowledged operation that began last
	wrote  map[written]bool  // by acknowledged operations
	twice  map[string]int    // by workload: acknowledged operations that have written what another had
}

func newLedger() *ledger {
	return &ledger{byOp: map[string]*entry{}, idle: map[string]int{}, latest: map[string]*entry{}, wrote: map[written]bool{}, twice: map[string]int{}}
}

// take reads a line of a worker. long is the operation that has begun, if it is a long one.
func (g *ledger) take(line []byte) (long string, err error) {
	var r record
	if err := json.Unmarshal(line, &r); err != nil {
		return "", fmt.Errorf("soak: ledger: %w", err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	switch r.Kind {
	case begun:
		if r.Operation == nil || g.byOp[r.Operation.Op] != nil {
			return "", fmt.Errorf("soak: ledger: operation is missing or repeated: %s", line)
		}
		// The outcome stays unknown unless the worker reports it. A killed worker does not.
		e := &entry{operation: r.Operation, outcome: unknown, number: len(g.inOrder)}
		g.byOp[e.Op] = e
		g.inOrder = append(g.inOrder, e)
		if e.Long {
			return e.Op, nil
		}
	case ended:
		e := g.byOp[r.Op]
		if e == nil {
			return "", fmt.Errorf("soak: ledger: unknown operation: %s", line)
		}
		e.outcome = r.Outcome
		g.end(e)
	case idle:
		g.idle[r.Workload]++
	case odd:
		g.violations = append(g.violations, Violation{Workload: r.Workload, Text: r.Error})
	default:
		return "", fmt.Errorf("soak: ledger: unknown kind: %s", line)
	}
	return "", nil
}

// end records what an acknowledged operation has written.
func (g *ledger) end(e *entry) {
	if e.outcome != acknowledged {
		return
	}
	if w := (written{e.Workload, e.Row, e.Value}); w.value != 0 {
		if g.wrote[w] {
			g.twice[w.workload]++
		}
		g.wrote[w] = true
	}
	for _, h := range e.Held {
		if last := g.latest[h.Lock]; last == nil || last.number < e.number {
			g.latest[h.Lock] = e
		}
	}
}

// overtaken reports whether another holder has written under the operation's lock since it began.
func (g *ledger) overtaken(op string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	e := g.byOp[op]
	return e != nil && slices.ContainsFunc(e.Held, func(h holding) bool {
		last := g.latest[h.Lock]
		return last != nil && last.number > e.number && last.Lease != e.Lease
	})
}

func (g *ledger) violate(workload, format string, args ...any) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.violations = append(g.violations, Violation{Workload: workload, Text: fmt.Sprintf(format, args...)})
}

// operations returns those of a workload's row, in the order in which they began.
func (g *ledger) operations(workload, row string) []*entry {
	g.mu.Lock()
	defer g.mu.Unlock()
	var list []*entry
	for _, e := range g.inOrder {
		if e.Workload == workload && e.Row == row {
			list = append(list, e)
		}
	}
	return list
}

// tallies counts by workload, in the order of names.
func (g *ledger) tallies(names []string) []Tally {
	g.mu.Lock()
	defer g.mu.Unlock()
	at, list := map[string]*Tally{}, make([]Tally, len(names))
	for i, name := range names {
		list[i] = Tally{Workload: name, Idle: g.idle[name], Twice: g.twice[name]}
		at[name] = &list[i]
	}
	for _, e := range g.inOrder {
		t := at[e.Workload]
		if t == nil {
			continue
		}
		t.Operations++
		switch e.outcome {
		case acknowledged:
			t.Acknowledged++
		case refused:
			t.Refused++
		default:
			t.Unknown++
		}
	}
	return list
}

// found lists the violations so far.
func (g *ledger) found() []Violation {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]Violation(nil), g.violations...)
}
