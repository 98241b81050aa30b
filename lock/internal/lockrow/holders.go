package lockrow

import (
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mortise-go/mortise/internal/attrvalue"
	"github.com/mortise-go/mortise/table"
)

// MinPermits is the least number of permits. One permit is a lock.
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

// Holding is how a holder is known: by its ticket's ID, and the fence under which it holds. That of a permit is the number of
// its stay: a ticket that comes into the line again, by a late copy of its entry, has another one.
type Holding struct {
	ID    string
	Fence int64
	Kind  Kind
	Text  string // of a reader, or a permit: its ticket as the row has it
}

// Holders is how many of the first tickets hold: of permits as many as there are, else all readers before the first ticket
// that is none, or the first ticket alone.
func (r *Row) Holders() int {
	n := 1
	if r.Permits > 0 {
		for n = int(r.Permits); n < len(r.Stays) && r.Stays[n] <= r.Kept; n++ { // they keep theirs
		}
	} else if readers := slices.IndexFunc(r.Line, func(t Ticket) bool { return !t.Shared() }); readers > 0 {
		n = readers
	} else if readers < 0 {
		n = len(r.Line)
	}
	return min(n, len(r.Line))
}

// Holding is that of the ticket at a place, once it holds.
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

// Holds reports whether a holder holds, by the row. It is the condition of its guard.
func (r *Row) Holds(h Holding) bool {
	place := r.Place(h.ID)
	switch {
	case place < 0 || h.Kind == Exclusive && place > 0:
		return false
	case h.Kind == Permit && r.Permits == 0:
		return false
	}
	return r.Holding(place) == h
}

// Turns is how many times the lock changes hands until the ticket at a place holds, or one that comes to the end of the line:
// readers that stand together come and go as one. It is 1 at least.
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

// parseStays reads what a row of permits has in place of a fence.
func (n Names) parseStays(item table.Item, r *Row) error {
	bad := fmt.Errorf("%w: %s, %s, %s and %s do not make a row of permits", ErrMalformed, n.Permits, n.Line, n.Stays, n.Next)
	stays, listed := numbers(item[n.Stays])
	next, counts := numbers(item[n.Next])
	if !listed || !counts || len(next) != 1 || len(stays) != len(r.Line) || r.Permits < MinPermits || r.Permits > Cap || item[n.Fence] != nil {
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
