package sim

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sync/atomic"

	"github.com/anishathalye/porcupine"
)

// open is the return time of an operation that never returned.
const open = math.MaxInt64

// kind is what an operation does.
type kind uint8

const (
	acquires kind = iota // fence is the one that was granted
	isHeld               // a try that was refused; fence is the holder's
	reads
	writes  // under the lease with that fence
	changes // reads and writes, under the lease with that fence
	commits // writes and releases
	releases
)

var kinds = [...]string{acquires: "acquire", isHeld: "held", reads: "read", writes: "write", changes: "change", commits: "commit", releases: "release"}

// outcome is how an operation ended, as far as its client knows.
type outcome uint8

const (
	unclear outcome = iota // it may take effect at any time after the call, or never
	succeeded
	lost // refused, since the lock is not held any more
)

var outcomes = [...]string{unclear: "unclear", succeeded: "ok", lost: "lost"}

// operation is what a client did to a register or its lock. Its call and return are in nanoseconds of true time since
// the run began.
type operation struct {
	client    int
	number    int // among the client's operations
	kind      kind
	outcome   outcome
	fence     int64
	read      int64 // 0 for the value from before the first write
	wrote     int64 // each operation writes a different value
	again     bool  // an earlier attempt under the lease may have released it
	call, ret int64
	left      int64 // when the client gave up, if there was no answer; 0 for never

	excused bool // lost, and another client may have acquired without having been told
}

func (o *operation) String() string {
	return fmt.Sprintf("client %d: %s, fence %d, read %d, wrote %d: %s [%d, %d]", o.client, kinds[o.kind], o.fence, o.read, o.wrote, outcomes[o.outcome], o.call, o.ret)
}

// model is a condition on histories. A history is legal if its operations could have happened one after the other,
// each at some moment between its call and its return.
type model struct {
	name   string
	fences bool // the lock is modelled
	values bool // the register is modelled
}

// models returns the models of a lock, of a register, and of both as one object. The last is the strictest: a history
// that is legal there is legal in the others. If it is not, the others tell more.
func models() []model {
	return []model{
		{name: "lock", fences: true},
		{name: "register", values: true},
		{name: "guarded register", fences: true, values: true},
	}
}

// count returns the counter of what a model finds.
func (m model) count(v *Verdict) *int {
	switch {
	case !m.values:
		return &v.Lock
	case !m.fences:
		return &v.Register
	}
	return &v.Object
}

// situation is the state of a model.
type situation struct {
	fence  int64 // the last one granted
	holder int64 // the fence of the lease in force; 0 for none
	value  int64
}

// step returns the situation after an operation, or false if the operation cannot have happened in s.
//
// The end of a lease by time is not an operation. Acquiring is always possible, and what follows under an older fence
// shows whether the lock excludes.
func (m model) step(s situation, o *operation) (situation, bool) {
	possible := true
	needs := func(yes bool) { possible = possible && yes }
	if m.fences {
		switch {
		case o.kind == acquires:
			needs(o.fence > s.fence)
			s.fence, s.holder = o.fence, o.fence
		case o.kind == isHeld: // by another client, which may not know it, or not yet
			needs(o.fence > s.fence || o.fence == s.holder)
		case o.kind == reads:
		case o.outcome == lost:
			needs(s.holder != o.fence || o.excused)
			if s.holder == o.fence {
				s.holder = 0
			}
		case o.kind == releases:
			needs(s.holder == o.fence || o.again)
		default:
			needs(s.holder == o.fence)
		}
		if o.outcome == succeeded && (o.kind == releases || o.kind == commits) && s.holder == o.fence {
			s.holder = 0
		}
	}
	if m.values && o.outcome == succeeded {
		if o.kind == reads || o.kind == changes {
			needs(s.value == o.read)
		}
		if o.wrote != 0 {
			s.value = o.wrote
		}
	}
	return s, possible
}

// closed returns a history without open operations, which means the same:
//
//   - A write without an answer, whose value nobody has read, can come after everything else, where its guard refuses
//     it. A write whose value was read took effect before the first reader returned.
//   - Sometimes a client has lost the lock, and no other client reports to have got it. It may have lost it to an
//     acquisition whose client was not told. That acquisition was under way between the loser's own call and the
//     moment at which the loser was told. It may have had no answer. Or it was granted the lock later, or refused,
//     and was first before that without knowing it: its session ended, and it entered the line again. Each change of
//     the first place adds one to the fence, since rows of locks live longer than worlds. So if the next fence is
//     known to have been granted, the lock was lost to that client. Otherwise the number of fences up to the next one
//     that was granted is limited by the number of acquisitions under way: two for each, for coming and leaving.
//     Releases without an answer do not matter, since acquiring is always possible.
func closed(history []*operation) []*operation {
	seen := map[int64]int64{}         // when each value was first known to be there
	granted := map[int64]*operation{} // acquisitions by their fences
	var asked []*operation            // acquisitions, however they ended
	for _, o := range history {
		if (o.kind == reads || o.kind == changes) && o.outcome == succeeded {
			if at, ok := seen[o.read]; !ok || o.ret < at {
				seen[o.read] = o.ret
			}
		}
		if o.kind == acquires && o.outcome == succeeded {
			granted[o.fence] = o
		}
		if o.kind == acquires || o.kind == isHeld {
			asked = append(asked, o)
		}
	}
	excused := func(o *operation) bool {
		mine := granted[o.fence]
		under := int64(0) // way, meanwhile
		for _, g := range asked {
			end := g.ret
			if g.left != 0 {
				end = g.left
			}
			if g != mine && g.call <= o.ret && (mine == nil || end >= mine.call) {
				under++
			}
		}
		next := int64(0)
		for fence := range granted {
			if fence > o.fence && (next == 0 || fence < next) {
				next = fence
			}
		}
		return under > 0 && (next == 0 || next > o.fence+1 && next-o.fence-1 <= 2*under)
	}
	list := make([]*operation, 0, len(history))
	for _, o := range history {
		c := *o
		switch at, ok := seen[o.wrote]; {
		case o.outcome == lost:
			c.excused = excused(o)
		case o.outcome == succeeded:
		case o.wrote != 0 && ok:
			c.outcome, c.ret = succeeded, at
		default:
			continue
		}
		list = append(list, &c)
	}
	slices.SortFunc(list, func(a, b *operation) int {
		return cmp.Or(cmp.Compare(a.call, b.call), cmp.Compare(a.client, b.client), cmp.Compare(a.number, b.number))
	})
	return list
}

// verdict is the result of checking a history.
type verdict uint8

const (
	legal verdict = iota
	illegal
	undecided // the search took too long
)

// patience is the largest number of steps of a search. A limit in time would be different each time; and virtual time
// does not pass during a search.
const patience = 2_000_000

// check reports whether a history fits the model. It is undecided if that takes more than atMost steps.
func (m model) check(history []*operation, atMost int64) verdict {
	var taken atomic.Int64
	p := porcupine.Model{
		Init: func() any { return situation{} },
		Step: func(state, input, _ any) (bool, any) {
			if taken.Add(1) > atMost {
				return false, state // also for all operations that are left, which ends the search
			}
			s, ok := m.step(state.(situation), input.(*operation)) //nolint:forcetypeassert // of what is given below
			return ok, s
		},
	}
	list := make([]porcupine.Operation, len(history))
	for i, o := range history {
		list[i] = porcupine.Operation{ClientId: o.client, Input: o, Call: o.call, Return: o.ret}
	}
	switch ok := porcupine.CheckOperations(p, list); {
	case ok:
		return legal
	case taken.Load() > atMost:
		return undecided
	}
	return illegal
}
