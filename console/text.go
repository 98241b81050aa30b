package console

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mortise-go/mortise/table"
)

// age formats a duration for people: in one unit, or in two if there are fewer than 10 of the greater one.
func age(d time.Duration) string {
	const day = 24 * time.Hour
	two := func(big, small time.Duration, bigName, smallName string) string {
		text := fmt.Sprintf("%d %s", d/big, bigName)
		if rest := d % big / small; d/big < 10 && rest > 0 {
			text += fmt.Sprintf(" %d %s", rest, smallName)
		}
		return text
	}
	switch {
	case d < time.Second:
		return "now"
	case d < time.Minute:
		return fmt.Sprintf("%d s", d/time.Second)
	case d < time.Hour:
		return two(time.Minute, time.Second, "min", "s")
	case d < day:
		return two(time.Hour, time.Minute, "h", "min")
	}
	return two(day, time.Hour, "d", "h")
}

// brief formats a duration in one unit.
func brief(d time.Duration) string {
	text := age(d)
	if parts := strings.Fields(text); len(parts) > 2 {
		return parts[0] + " " + parts[1]
	}
	return text
}

// every formats an interval, as in "every 5 s".
func every(d time.Duration) string {
	if d = d.Round(time.Second); d > time.Second {
		return "every " + age(d)
	}
	return "every second"
}

// clock formats a time for people, with its zone: they can be in any.
func clock(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

// number formats a number with narrow spaces between groups of three digits.
func number[N int | int64](n N) string {
	text := strconv.FormatInt(int64(n), 10)
	var parts []string
	for len(text) > 3 && n >= 0 {
		parts = append([]string{text[len(text)-3:]}, parts...)
		text = text[:len(text)-3]
	}
	return strings.Join(append([]string{text}, parts...), "\u202f")
}

// failure returns the text of an error. This module's errors contain no keys and no values. What the SDK adds to the error of a request can
// name the account, roles, hosts and files of the server: without ShowData the text ends with the kind of the error.
func (c *Console) failure(err error) string {
	var request *table.Error
	switch {
	case err == nil:
		return ""
	case c.config.ShowData || !errors.As(err, &request):
		return err.Error()
	}
	kinds := []error{
		table.ErrCredentials, table.ErrDenied, table.ErrNoTable, table.ErrSchema, table.ErrThrottled, table.ErrConflict, table.ErrUnreachable,
		table.ErrInvalid,
	}
	kind := errors.New("failed")
	if i := slices.IndexFunc(kinds, func(kind error) bool { return errors.Is(err, kind) }); i >= 0 {
		kind = kinds[i]
	}
	return (&table.Error{Operation: request.Operation, Table: request.Table, Kind: kind}).Error()
}

// Classes of states, for their colours.
const (
	alive = "alive"
	late  = "late"
	dead  = "dead"
)

// skew is how far the clocks of processes may differ. It decides only whether an ended lease is shown as late or as dead.
const skew = 2 * time.Second

// state describes the state of a session, and returns its class.
func state(s sighting, now time.Time) (text, class string) {
	switch {
	case !s.found:
		return "ended, it has no row", dead
	case !s.Dead.IsZero():
		return "marked dead " + ago(now.Sub(s.Dead)), dead
	case s.Expires.IsZero():
		return "alive, it does not know the time", alive
	}
	return ends(s.Expires, s.at, now, "alive, its lease ends in ")
}

// ends describes a lease that ends at the given time unless it is renewed. read is when its row was read: a lease that lasted then may have
// been renewed or given up since, and only a row that is read again can show that it has ended. while begins the text of a lease that still
// lasts.
func ends(at, read, now time.Time, while string) (text, class string) {
	switch left := at.Sub(now); {
	case left < 0 && read.Before(at):
		return "alive when its row was read, " + ago(now.Sub(read)), alive
	case left < -skew:
		return "silent, its lease ended " + ago(-left), dead
	case left < 0:
		return "late, its lease has just ended", late
	default:
		return while + age(max(left, time.Second)) + " unless renewed", alive
	}
}

func ago(d time.Duration) string {
	if d < time.Second {
		return "just now"
	}
	return age(d) + " ago"
}

// pager tells which part of a list a page shows.
type pager struct {
	Page, Of   int
	Prev, Next string // URLs of the parts before and after; empty if there are none
}

// pageNumber returns the number of the part of a list that a request asks for, counted from 1.
func pageNumber(r *http.Request) (int, error) {
	text := r.URL.Query().Get("page_number")
	if text == "" {
		return 1, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > 1_000_000 {
		return 0, badRequest("page_number: want a number from 1.")
	}
	return n, nil
}

// paged returns the part of a list of n that a page shows: from first, up to but without last. A page after the end is the last one.
func paged(name string, n, page int) (first, last int, p pager) {
	of := max((n+perPage-1)/perPage, 1)
	page = min(page, of)
	p = pager{Page: page, Of: of}
	if page > 1 {
		p.Prev = name + "?page_number=" + strconv.Itoa(page-1)
	}
	if page < of {
		p.Next = name + "?page_number=" + strconv.Itoa(page+1)
	}
	return (page - 1) * perPage, min(page*perPage, n), p
}

// eventsOf returns the URL of the events of a page, relative to it.
func eventsOf(page string, query url.Values) string {
	values := url.Values{"page": {page}}
	for name, v := range query {
		if len(v) > 0 {
			values[name] = v
		}
	}
	return "events?" + values.Encode()
}
