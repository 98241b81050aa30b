package lockrow

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mortise-go/mortise/internal/attrvalue"
	"github.com/mortise-go/mortise/internal/toolkit"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
)

// Type is the value of the type attribute of lock rows.
const Type = toolkit.Lock

const (
	// Cap is the greatest number of tickets in a line.
	Cap = 100

	// MaxFence is the greatest valid fence. It can still be increased by 1.
	MaxFence = math.MaxInt64 - 1

	// maxNumber is the greatest valid number of a write or an edit. The other half of the int64 range is left for later ones.
	maxNumber = math.MaxInt64 / 2

	// MaxLength is the greatest length of a Fixed lease (see [Ticket]).
	MaxLength = 24 * time.Hour
)

var (
	// ErrNotLock means that the row is not a lock's row.
	ErrNotLock = errors.New("the row at the lock's key is not a lock")

	// ErrMalformed means that no client of this package writes such a lock row.
	ErrMalformed = errors.New("malformed lock row")

	// ErrPrefix means that a client with another prefix has written the row, and that the row is in order for that client. A reset would
	// leave its holder as it is, and let clients of both prefixes acquire the lock. It matches ErrMalformed.
	ErrPrefix = fmt.Errorf("%w: a client with another Config.AttributePrefix wrote it", ErrMalformed)
)

// Names are the names of the attributes of a lock row.
type Names struct {
	PK, Type, TTL string // from the table's scheme

	Line, Fence, Renewed, Writes, Since, Hold string
	Data, Edits, Ran, Running, Failed         string
	Forced, ForcedFence, Ousted               string
	Permits, Stays, Next, Kept                string

	Nonce string // of an older version of this package, which kept one holder and no line
}

// NamesOf returns the names in a table with the given scheme. All names that the scheme does not give begin with prefix.
func NamesOf(s keys.Scheme, prefix string) Names {
	return Names{
		PK: s.PK, Type: s.Type, TTL: s.TTL,
		Line: prefix + "line", Fence: prefix + "fence", Renewed: prefix + "renewed", Writes: prefix + "writes", Since: prefix + "since", Hold: prefix + "hold",
		Data: prefix + "data", Edits: prefix + "edits", Ran: prefix + "ran", Running: prefix + "running", Failed: prefix + "failed",
		Forced: prefix + "forced", ForcedFence: prefix + "forced_fence", Ousted: prefix + "ousted",
		Permits: prefix + "permits", Stays: prefix + "stays", Next: prefix + "next", Kept: prefix + "kept", Nonce: prefix + "nonce",
	}
}

// Own returns the names that the scheme does not give, without Nonce.
func (n Names) Own() []string {
	return []string{n.Line, n.Fence, n.Renewed, n.Writes, n.Since, n.Hold, n.Data, n.Edits, n.Ran, n.Running, n.Failed, n.Forced, n.ForcedFence, n.Ousted, n.Permits, n.Stays, n.Next, n.Kept}
}

// Row is a lock's row as it was read. Times are epoch milliseconds, except for TTL.
type Row struct {
	Line        []Ticket
	Fence       int64                // of permits: the number of the next stay
	Permits     int64                // how many of the first tickets hold at once; 0 for a lock
	Stays       []int64              // of permits: the number of each ticket's stay, in the order of Line
	Kept        int64                // of permits: last stay that held when SetPermits reduced them; stays up to it hold on; 0 for never
	Renewed     int64                // when a Fixed lease was renewed last, by this holder or an earlier one; 0 for never
	Writes      int64                // number of the last guarded write, by any holder; 0 for none
	Since       int64                // when the lock came to the holder's process, or became free, or a permit was given back; 0 for never
	Hold        int64                // how long a process keeps the lock, smoothed, in milliseconds; 0 if not known
	Data        types.AttributeValue // payload; nil for none
	Edits       int64                // number of the last SetData, by any holder, or of permits, of the last SetPermits; 0 for none
	Ran         int64                // start of the last interval whose run has finished, or has failed for good
	Running     int64                // start of the interval whose run has begun and not finished
	ForcedFence int64                // fence of the last holder that lost the lock by force; of permits: the next stay then; 0 for never
	Ousted      int64                // how often others have removed readers
	TTL         int64                // epoch seconds
}

// Parse reads a row. It returns ErrNotLock for nil and for rows of other types. It returns ErrMalformed for lock rows that no client with
// these names has written.
func (n Names) Parse(item table.Item) (Row, error) {
	var r Row
	typ, ok := item[n.Type].(*types.AttributeValueMemberS)
	switch {
	case !ok || typ.Value != Type:
		return r, ErrNotLock
	case item[n.Nonce] != nil:
		return r, fmt.Errorf("%w: it was written by an older version of this package, which kept one holder in place of a line", ErrMalformed)
	case n.ofAnother(item):
		return r, ErrPrefix
	}
	if err := n.parseLine(item[n.Line], &r.Line); err != nil {
		return r, err
	}
	for _, a := range []struct {
		name string
		to   *int64
	}{
		{n.Fence, &r.Fence},
		{n.Renewed, &r.Renewed},
		{n.Writes, &r.Writes},
		{n.Since, &r.Since},
		{n.Hold, &r.Hold},
		{n.Edits, &r.Edits},
		{n.Ran, &r.Ran},
		{n.Running, &r.Running},
		{n.Failed, new(int64)}, // only people read it
		{n.ForcedFence, &r.ForcedFence},
		{n.Ousted, &r.Ousted},
		{n.Permits, &r.Permits},
		{n.Kept, &r.Kept},
		{n.TTL, &r.TTL},
	} {
		if *a.to, ok = attrvalue.Natural(item[a.name]); !ok && item[a.name] != nil {
			return r, fmt.Errorf("%w: %s is not an integer, or is negative", ErrMalformed, a.name)
		}
	}
	if item[n.Permits] != nil || item[n.Stays] != nil || item[n.Next] != nil {
		if err := n.parseStays(item, &r); err != nil {
			return r, err
		}
	}
	switch _, text := item[n.Forced].(*types.AttributeValueMemberS); {
	case !text && item[n.Forced] != nil:
		return r, fmt.Errorf("%w: %s is not a string", ErrMalformed, n.Forced)
	case r.Fence < 1 || r.Fence > MaxFence:
		return r, fmt.Errorf("%w: %s is missing or out of range", ErrMalformed, n.Fence)
	case max(r.Since, r.Renewed) > maxTime:
		return r, fmt.Errorf("%w: %s or %s is out of range", ErrMalformed, n.Since, n.Renewed)
	case max(r.Writes, r.Edits) > maxNumber:
		return r, fmt.Errorf("%w: %s or %s is out of range", ErrMalformed, n.Writes, n.Edits)
	}
	if _, null := item[n.Data].(*types.AttributeValueMemberNULL); !null {
		r.Data = item[n.Data]
	}
	return r, nil
}

// ofAnother reports whether the row has no fence of this prefix and is in order for another one.
func (n Names) ofAnother(item table.Item) bool {
	if item[n.Fence] != nil || item[n.Next] != nil {
		return false
	}
	own := n.Own()
	for name := range item {
		for _, fence := range []string{"fence", "next"} {
			prefix, ok := strings.CutSuffix(name, fence)
			if !ok || slices.Contains(own, name) {
				continue
			}
			if _, err := NamesOf(keys.Scheme{PK: n.PK, Type: n.Type, TTL: n.TTL}, prefix).Parse(item); err == nil {
				return true
			}
		}
	}
	return false
}

func (n Names) parseLine(av types.AttributeValue, line *[]Ticket) error {
	if av == nil {
		return nil
	}
	list, ok := av.(*types.AttributeValueMemberL)
	if !ok {
		return fmt.Errorf("%w: %s is not a list", ErrMalformed, n.Line)
	}
	if len(list.Value) > Cap {
		return fmt.Errorf("%w: %s has more than %d tickets", ErrMalformed, n.Line, Cap)
	}
	*line = make([]Ticket, len(list.Value))
	for i, e := range list.Value {
		text, ok := e.(*types.AttributeValueMemberS)
		if !ok {
			return errTicket
		}
		t, err := ParseTicket(text.Value)
		if err != nil {
			return err
		}
		if slices.ContainsFunc((*line)[:i], func(o Ticket) bool { return o.ID == t.ID }) {
			return fmt.Errorf("%w: the line has a ticket twice", ErrMalformed)
		}
		(*line)[i] = t
	}
	return nil
}

// Find returns the place and the text of a ticket in the line. id is the ticket's ID or its text. The row may be malformed. The place is
// -1 if the ticket is not in the line.
func (n Names) Find(item table.Item, id string) (place int, text string) {
	if list, ok := item[n.Line].(*types.AttributeValueMemberL); ok {
		for i, e := range list.Value {
			if s, ok := e.(*types.AttributeValueMemberS); ok && (s.Value == id || strings.HasPrefix(s.Value, prefix(id))) {
				return i, s.Value
			}
		}
	}
	return -1, ""
}

// Tickets returns the tickets in the line of a malformed row, as far as they can be read.
func (n Names) Tickets(item table.Item) (list []Ticket) {
	line, ok := item[n.Line].(*types.AttributeValueMemberL)
	if !ok {
		return nil
	}
	for _, e := range line.Value {
		if s, ok := e.(*types.AttributeValueMemberS); ok {
			if t, err := ParseTicket(s.Value); err == nil {
				list = append(list, t)
			}
		}
	}
	return list
}

// First returns the first ticket. It holds the lock, alone or as the first of several. It returns false if the lock is free.
func (r *Row) First() (Ticket, bool) {
	if len(r.Line) == 0 {
		return Ticket{}, false
	}
	return r.Line[0], true
}

// Place returns how many tickets are before the ticket with the given ID, or -1 if that ticket is not in the line.
func (r *Row) Place(id string) int {
	return slices.IndexFunc(r.Line, func(t Ticket) bool { return t.ID == id })
}

// HeldSince returns when the ticket at a place came to hold, in epoch milliseconds, as far as the row shows. For a first ticket, that is
// when it was taken (by its own clock) or Since (by the clock of the ticket before it), whichever is later. For other tickets, and for
// permits, it is when the ticket was taken.
func (r *Row) HeldSince(place int) int64 {
	switch {
	case place >= len(r.Line):
		return r.Since
	case place > 0 || r.Permits > 0:
		return r.Line[place].At
	}
	return max(r.Line[0].At, r.Since)
}

// Ends returns when the Fixed lease of the first ticket ends, in epoch milliseconds: its length after it was taken, became first or was
// renewed, whichever is latest. It returns 0 if the first ticket depends on a session.
func (r *Row) Ends() int64 {
	first, _ := r.First()
	if first.Length == 0 {
		return 0
	}
	return max(first.At, r.Since, r.Renewed) + first.Length
}
