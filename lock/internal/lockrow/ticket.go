package lockrow

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// MaxOwner is how many bytes of an owner's name a ticket keeps.
const MaxOwner = 64

// maxID is the greatest length of a ticket's ID, in bytes. This module makes only shorter IDs.
const maxID = 256

// Ticket is a place in a line: one element of the attribute line. A Fixed ticket has a lease of its own, and no session.
//
//	<session>/<n>@<ms> <owner>        under a session, which is renewed for all of its tickets
//	@<session>/<n>@<ms> <owner>       of a reader, which holds together with others
//	<id>@<ms>+<length> <owner>        Fixed: the lease ends length ms after ms, unless it came to hold later or was renewed
type Ticket struct {
	// ID is unique for ever: a session's ID and a number from the session's counter, or random bits. The ID of a reader begins with a
	// mark.
	ID string

	// At is when the ticket was taken, in epoch milliseconds. People read it, a Fixed lease counts from it, and others estimate from it
	// for how long the ticket has held.
	At int64

	// Length is the length of a Fixed lease, in milliseconds; 0 under a session.
	Length int64

	// Owner names the process for people. It has at most MaxOwner bytes.
	Owner string
}

// SessionTicket returns ticket number n of a session.
func SessionTicket(session string, n, at int64, owner string) Ticket {
	return Ticket{ID: session + "/" + strconv.FormatInt(n, 10), At: at, Owner: Cut(owner, MaxOwner)}
}

// OwnTicket returns a Fixed ticket. id must be unique for ever.
func OwnTicket(id string, at int64, length time.Duration, owner string) Ticket {
	return Ticket{ID: id, At: at, Length: length.Milliseconds(), Owner: Cut(owner, MaxOwner)}
}

// mark begins the IDs of readers. A version of this package without readers takes such an ID for empty, and refuses the row.
const mark = "@"

// AsReader returns the ticket as a reader's ticket.
func (t Ticket) AsReader() Ticket {
	t.ID = mark + t.ID
	return t
}

// Shared reports whether the ticket is a reader's.
func (t Ticket) Shared() bool { return strings.HasPrefix(t.ID, mark) }

// Cut shortens a text to at most most bytes, and does not leave part of a character.
func Cut(text string, most int) string { return strings.ToValidUTF8(text[:min(len(text), most)], "") }

// String returns the ticket's text in the row.
func (t Ticket) String() string {
	at, length := strconv.FormatInt(t.At, 10), ""
	if t.Length > 0 {
		length = "+" + strconv.FormatInt(t.Length, 10)
	}
	return prefix(t.ID) + zeros[:max(timeDigits-len(at), 0)] + at + length + " " + t.Owner
}

// ParseTicket reads what String writes, and refuses any other text: conditions compare texts, so a ticket has only one.
func ParseTicket(text string) (Ticket, error) {
	head, owner, _ := strings.Cut(text, " ")
	head, shared := strings.CutPrefix(head, mark)
	id, times, _ := strings.Cut(head, "@")
	at, length, own := strings.Cut(times, "+")
	session, n, under := strings.Cut(id, "/")
	t := Ticket{ID: id, Owner: owner}
	t.At, _ = strconv.ParseInt(at, 10, 64) // if this is no number, String writes another one
	t.Length, _ = strconv.ParseInt(length, 10, 64)
	if shared {
		t = t.AsReader()
	}
	_, notNumbered := strconv.ParseUint(n, 10, 63)
	switch {
	case t.String() != text,
		id == "" || len(id) > maxID || len(owner) > MaxOwner || t.At < 0 || t.At > maxTime || t.Length > MaxLength.Milliseconds(),
		own == under || own && shared,
		under && (session == "" || notNumbered != nil):
		return t, errTicket
	}
	return t, nil
}

// timeDigits is the least number of digits of a time. Shorter times begin with zeros.
const (
	timeDigits = 13
	zeros      = "0000000000000"
)

// maxTime is the latest valid time in a row, in epoch milliseconds. Its sum with the length of a lease does not overflow.
const maxTime = 1 << 50

var errTicket = fmt.Errorf("%w: the line has an element that is no ticket", ErrMalformed)

// Session returns the ID of the session that the ticket depends on. It is empty for a Fixed ticket.
func (t Ticket) Session() string {
	if t.Length > 0 {
		return ""
	}
	session, _, _ := strings.Cut(strings.TrimPrefix(t.ID, mark), "/")
	return session
}

// prefix returns the beginning of a ticket's text. No other ticket's text begins with it.
func prefix(id string) string { return id + "@" }
