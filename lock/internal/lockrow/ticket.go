package lockrow

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// MaxOwner is how much of an owner's name a ticket keeps, in bytes.
const MaxOwner = 64

// maxID bounds the ID of a ticket, in bytes, and is more than this module ever makes.
const maxID = 256

// Ticket is a place in a line: one element of the attribute line.
//
//	<session>/<n>@<ms> <owner>        under a session, which is renewed for all of its tickets
//	@<session>/<n>@<ms> <owner>       of a reader, which holds together with others
//	<id>@<ms>+<length> <owner>        with a lease of its own, which ends length ms after ms
type Ticket struct {
	// ID tells the ticket from all others, for ever: a session's ID and the session's own counter,
	// or random bits. That of a reader begins with a mark.
	ID string

	// At is when it was taken, in epoch milliseconds, for people and for leases of their own.
	At int64

	// Length is that of a lease of its own, in milliseconds; 0 under a session.
	Length int64

	// Owner is who took it, for people; at most MaxOwner bytes.
	Owner string
}

// SessionTicket is the ticket number n of a session.
func SessionTicket(session string, n, at int64, owner string) Ticket {
	return Ticket{ID: session + "/" + strconv.FormatInt(n, 10), At: at, Owner: cut(owner)}
}

// OwnTicket is a ticket with a lease of its own; id is unique for ever.
func OwnTicket(id string, at int64, length time.Duration, owner string) Ticket {
	return Ticket{ID: id, At: at, Length: length.Milliseconds(), Owner: cut(owner)}
}

// mark begins the IDs of readers. A client that knows no readers refuses a row with one, as it takes the ID for empty.
const mark = "@"

// AsReader is the ticket as that of a reader.
func (t Ticket) AsReader() Ticket {
	t.ID = mark + t.ID
	return t
}

// Shared reports whether the ticket is that of a reader.
func (t Ticket) Shared() bool { return strings.HasPrefix(t.ID, mark) }

// cut shortens an owner's name to MaxOwner bytes, at the end of a character.
func cut(owner string) string { return strings.ToValidUTF8(owner[:min(len(owner), MaxOwner)], "") }

// String is the ticket as the row keeps it.
func (t Ticket) String() string {
	at, length := strconv.FormatInt(t.At, 10), ""
	if t.Length > 0 {
		length = "+" + strconv.FormatInt(t.Length, 10)
	}
	return prefix(t.ID) + zeros[:max(timeDigits-len(at), 0)] + at + length + " " + t.Owner
}

// ParseTicket reads what String writes.
func ParseTicket(text string) (Ticket, error) {
	head, owner, ok := strings.Cut(text, " ")
	head, shared := strings.CutPrefix(head, mark)
	id, at, timed := strings.Cut(head, "@")
	at, length, own := strings.Cut(at, "+")
	t := Ticket{ID: id, Owner: owner}
	if !ok || !timed || id == "" || len(id) > maxID || len(owner) > MaxOwner {
		return t, errTicket
	}
	session, n, under := strings.Cut(id, "/")
	if under == own || under && (session == "" || !number(n, new(int64))) || len(at) < timeDigits || !number(at, &t.At) || t.At > maxTime {
		return t, errTicket
	}
	if shared {
		t.ID = mark + id
	}
	if own && (shared || !number(length, &t.Length) || t.Length < 1 || t.Length > MaxLength.Milliseconds()) {
		return t, errTicket
	}
	if t.String() != text { // conditions compare texts
		return t, errTicket
	}
	return t, nil
}

// timeDigits is how many digits a time has at least, so that the texts of one ticket sort by their times.
const (
	timeDigits = 13
	zeros      = "0000000000000"
)

// maxTime is the latest time in epoch milliseconds that a row in order has: sums with lengths of leases do not
// overflow.
const maxTime = 1 << 50

func number(text string, n *int64) bool {
	v, err := strconv.ParseInt(text, 10, 64)
	*n = v
	return err == nil && v >= 0
}

var errTicket = fmt.Errorf("%w: the line has an element that is no ticket", ErrMalformed)

// Session is the ID of the session that the ticket depends on; empty for a lease of its own.
func (t Ticket) Session() string {
	if t.Length > 0 {
		return ""
	}
	session, _, _ := strings.Cut(strings.TrimPrefix(t.ID, mark), "/")
	return session
}

// prefix is what no other ticket's text begins with.
func prefix(id string) string { return id + "@" }
