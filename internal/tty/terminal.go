// Package tty writes for people: grids that fit the width of a terminal, and texts from a table that cannot control the terminal.
package tty

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/term"
)

// defaultWidth is the width of a terminal that does not report one.
const defaultWidth = 80

// Width returns the width of a stream in columns, and whether it is a terminal.
func Width(stream any) (width int, ok bool) {
	f, ok := stream.(interface{ Fd() uintptr })
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return 0, false
	}
	if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
		return width, true
	}
	return defaultWidth, true
}

// Clean turns a text into one line and replaces unprintable characters. A name or an error from the table must not
// control the terminal.
func Clean(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || r == '\r':
			return ' '
		case !unicode.IsPrint(r):
			return utf8.RuneError
		}
		return r
	}, text)
}

// Columns returns the width of a text on a terminal.
func Columns(text string) (n int) {
	for _, r := range text {
		n += runeColumns(r)
	}
	return n
}

// runeColumns returns 2 for scripts with wide characters, 0 for marks, and otherwise 1. A wrong width of other characters only affects
// alignment.
func runeColumns(r rune) int {
	const (
		fullwidthFirst, fullwidthLast = 0xFF01, 0xFF60
		emojiFirst, emojiLast         = 0x1F300, 0x1FAFF
	)
	switch {
	case unicode.In(r, unicode.Mn, unicode.Me):
		return 0
	case unicode.In(r, unicode.Han, unicode.Hangul, unicode.Hiragana, unicode.Katakana),
		r >= fullwidthFirst && r <= fullwidthLast, r >= emojiFirst && r <= emojiLast:
		return 2
	}
	return 1
}

// Cut shortens a text to a number of columns and marks the cut. It also cuts after 8 characters per column: a pile of combining marks
// would cover the lines above.
func Cut(text string, limit int) string {
	const most = 8          // characters for each column
	if len(text) <= limit { // no character has more columns than bytes
		return text
	}
	columns, runes, end := 0, 0, 0 // of the text before end, which leaves a column for the mark of the cut
	for i, r := range text {
		if columns <= limit-1 {
			end = i
		}
		columns, runes = columns+runeColumns(r), runes+1
		if columns > limit || runes > most*limit {
			return text[:end] + strings.Repeat("…", min(1, max(limit, 0)))
		}
	}
	return text
}

// Say writes text and ignores errors, since there is no other stream to report them to.
func Say(w io.Writer, format string, args ...any) { _, _ = fmt.Fprintf(w, format, args...) }

// JSON writes a document for people and programs, on one line if indent is empty. It escapes unprintable characters, as JSON allows for
// all characters in a string: encoding/json leaves some that control a terminal, such as U+009B.
func JSON(w io.Writer, document any, indent string) error {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	e.SetIndent("", indent)
	if err := e.Encode(document); err != nil {
		return err
	}
	var out bytes.Buffer
	for _, r := range text.String() {
		switch {
		case r == '\n' || unicode.IsPrint(r):
			out.WriteRune(r)
		default:
			for _, unit := range utf16.AppendRune(nil, r) {
				fmt.Fprintf(&out, `\u%04x`, unit)
			}
		}
	}
	_, err := w.Write(out.Bytes())
	return err
}

// Moment returns a time as JSON has it: in UTC, and nil for none. JSON has the years 0 to 9999, but rows can have other times, and one of
// them must not be the end of the document. Moment returns the nearest time that JSON has.
func Moment(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	first, last := time.Date(0, time.January, 1, 0, 0, 0, 0, time.UTC), time.Date(9999, time.December, 31, 23, 59, 59, 0, time.UTC)
	switch t = t.UTC(); {
	case t.Before(first):
		t = first
	case t.After(last):
		t = last
	}
	return &t
}

// Lines reads lines until ctx ends. A read of a terminal cannot be cancelled, so the goroutine can remain until the
// next line or the end of the process.
func Lines(ctx context.Context, r io.Reader) <-chan string {
	lines := make(chan string)
	go func() {
		defer close(lines)
		for s := bufio.NewScanner(r); s.Scan(); {
			select {
			case lines <- s.Text():
			case <-ctx.Done():
				return
			}
		}
	}()
	return lines
}
