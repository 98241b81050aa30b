package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
)

// ledger is what clients know of their attempts to write. Each attempt has a mark: an operation that counts, in a row
// of the attempt's own, how often it was applied.
type ledger struct {
	world *World

	mu     sync.Mutex
	counts map[*Worker]int // attempts so far, for their names
	states map[string]state
}

func newLedger(w *World) *ledger {
	return &ledger{world: w, counts: map[*Worker]int{}, states: map[string]state{}}
}

func markKey(name string) keys.Key { return keys.NewKey("ATTEMPT", name) }

// begin names an attempt, of which nothing is known yet, and returns its mark.
func (l *ledger) begin(x *Worker) (name string, mark table.Op) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.counts[x]++
	name = fmt.Sprintf("%d.%s.%d", x.Process.id, x.Name, l.counts[x])
	l.states[name] = unknown
	return name, table.Update(markKey(name), table.Attr("times").Add(1))
}

// end records how an attempt ended.
func (l *ledger) end(name string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.states[name] = stateOf(err)
}

// names returns the names of all attempts, in order.
func (l *ledger) names() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := make([]string, 0, len(l.states))
	for name := range l.states {
		list = append(list, name)
	}
	slices.Sort(list)
	return list
}

// check compares what was applied with what the clients know. What was acknowledged must be there, what was refused
// must not, and nothing may be applied twice. It returns the attempts that were applied.
func (l *ledger) check() (c Tally, applied []string) {
	w, names := l.world, l.names()
	if len(names) == 0 {
		return c, nil
	}
	list := make([]keys.Key, len(names))
	for i, name := range names {
		list[i] = markKey(name)
	}
	marks, err := w.Table().BatchGet(w.Context(), list, true)
	w.must(err)
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, name := range names {
		times := number(marks[i], "times")
		if times > 0 {
			applied = append(applied, name)
		}
		c.settle(w, "attempt "+name, l.states[name], int(times))
	}
	return c, applied
}

// told returns what the clients know, if nothing can be said of what was applied.
func (l *ledger) told() (c Tally) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, state := range l.states {
		c.count(state)
	}
	return c
}

// item reads an item for a checker. It returns nil if there is none.
func (w *World) item(key keys.Key) table.Item {
	item, err := w.Table().Get(context.WithoutCancel(w.Context()), key, true)
	if errors.Is(err, table.ErrNotFound) {
		return nil
	}
	w.must(err)
	return item
}

// number reads a number, or 0 if there is none.
func number(item table.Item, name string) int64 {
	n, ok := item[name].(*types.AttributeValueMemberN)
	if !ok {
		return 0
	}
	i, err := strconv.ParseInt(n.Value, 10, 64)
	if err != nil {
		return 0
	}
	return i
}

// numbers reads a list of numbers.
func numbers(av types.AttributeValue) []int64 {
	l, ok := av.(*types.AttributeValueMemberL)
	if !ok {
		return nil
	}
	var out []int64
	for _, e := range l.Value {
		if n, ok := e.(*types.AttributeValueMemberN); ok {
			if i, err := strconv.ParseInt(n.Value, 10, 64); err == nil {
				out = append(out, i)
			}
		}
	}
	return out
}

// turns starts supervised processes. Each has one worker that does the given number of rounds.
func (w *World) turns(name string, processes, rounds int, config lock.Config, round func(ctx context.Context, x *Worker, locks *lock.Client)) {
	for i := range processes {
		left := rounds
		w.Supervise(name+strconv.Itoa(i+1), func(p *Process) {
			locks := p.Locks(config)
			p.Go("w", func(ctx context.Context, x *Worker) {
				for ctx.Err() == nil && !p.Crashed() && left > 0 {
					left--
					round(ctx, x, locks)
				}
			})
		})
	}
}
