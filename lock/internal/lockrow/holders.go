package lockrow

import (
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mortise-go/mortise/internal/attrvalue"
	"github.com/mortise-go/mortise/table"
)

// MinPermits is the least number of permits: one permit is a lock.
const MinPermits = 2

// Kind is how a ticket holds.
type Kind uint8

const (
	// Exclusive holds alone.
	Exclusive Kind = iota
	// Shared holds together with other readers.
	Shared
	// Permit holds one of the row's permits.
	Permit
)

// Holding identifies a holder: by its ticket's ID, and by the fence under which it holds. For a permit, Fence is the number of its stay.
// A ticket that a late copy of its entry puts into the line again gets another stay.
type Holding struct {
	ID    string
	Fence int64
	Kind  Kind
	Text  string // of readers and permits: the ticket's text in the row
}

// Holders returns how many of the first tickets hold: in a row of permits, as many as there are permits; otherwise all readers before the
// first writer, or the first ticket alone if it is a writer's.
func (r *Row) Holders() int {
	if r.Permits == 0 {
		writer := slices.IndexFunc(r.Line, func(t Ticket) bool { return !t.Shared() })
		if writer < 0 {
			return len(r.Line)
		}
		return max(writer, 1)
	}
	n := int(r.Permits)
	for n < len(r.Stays) && r.Stays[n] <= r.Kept { // SetPermits made them fewer: these hold on
		n++
	}
	return min(n, len(r.Line))
}

// Blocking returns how many of the first tickets keep others from holding: the holders, and behind readers the first writer, which stops
// the readers behind it. A writer with a Fixed lease does not count: while it waits, nothing tells whether its process is alive.
func (r *Row) Blocking() int {
	n := r.Holders()
	if r.Permits == 0 && n < len(r.Line) && r.Line[0].Shared() && r.Line[n].Length == 0 {
		n++
	}
	return n
}

// Holding returns the holding of the ticket at a place. It is right only once that ticket holds.
func (r *Row) Holding(place int) Holding {
	h := Holding{ID: r.Line[place].ID, Fence: r.Fence}
	switch {
	case r.Permits > 0:
		h.Kind, h.Fence, h.Text = Permit, r.Stays[place], r.Line[place].String()
	case r.Line[place].Shared():
		h.Kind, h.Text = Shared, r.Line[place].String()
	}
	return h
}

// Holds reports whether a holder holds, by the row. It tests the same condition as the holder's guard.
func (r *Row) Holds(h Holding) bool {
	place := r.Place(h.ID)
	return place >= 0 && (place == 0 || h.Kind != Exclusive) && r.Holding(place) == h
}

// Turns returns how many times the lock changes hands until the ticket at a place holds, at least 1. place may be the end of the line.
// Readers next to each other count once: they come and go together.
func (r *Row) Turns(place int) int {
	if r.Permits > 0 {
		return max(place-int(r.Permits)+1, 1)
	}
	n := 0
	for i := 1; i <= min(place, len(r.Line)); i++ {
		if i == len(r.Line) || !r.Line[i].Shared() || !r.Line[i-1].Shared() {
			n++
		}
	}
	return max(n, 1)
}

// parseStays reads the attributes that only rows of permits have. Their numbers must increase, up to the next one. The line must be there,
// also an empty one: Enter refuses a row without it, which would look free.
func (n Names) parseStays(item table.Item, r *Row) error {
	bad := fmt.Errorf("%w: %s, %s, %s and %s do not make a row of permits", ErrMalformed, n.Permits, n.Line, n.Stays, n.Next)
	stays, listed := numbers(item[n.Stays])
	next, _ := numbers(item[n.Next])
	if !listed || item[n.Line] == nil || len(next) != 1 || len(stays) != len(r.Line) || r.Permits < MinPermits || r.Permits > Cap || item[n.Fence] != nil {
		return bad
	}
	before := int64(0)
	for _, stay := range append(slices.Clip(stays), next...) {
		if stay <= before {
			return bad
		}
		before = stay
	}
	if r.Stays, r.Fence = stays, next[0]; r.Kept >= r.Fence {
		return bad
	}
	return nil
}

func numbers(av types.AttributeValue) ([]int64, bool) {
	l, ok := av.(*types.AttributeValueMemberL)
	if !ok {
		return nil, false
	}
	list := make([]int64, len(l.Value))
	for i, e := range l.Value {
		if list[i], ok = attrvalue.Natural(e); !ok {
			return nil, false
		}
	}
	return list, true
}
