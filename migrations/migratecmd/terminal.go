package migratecmd

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/term"
)

// defaultWidth is the width of a terminal that does not report one.
const defaultWidth = 80

// terminal returns the width of a stream in columns, and whether it is a terminal.
func terminal(stream any) (width int, ok bool) {
	f, ok := stream.(interface{ Fd() uintptr })
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return 0, false
	}
	if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
		return width, true
	}
	return defaultWidth, true
}

// clean turns a text into one line and replaces unprintable characters. A name or an error from the table must not
// control the terminal.
func clean(text string) string {
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

// columns returns the width of a text on a terminal.
func columns(text string) (n int) {
	for _, r := range text {
		n += runeColumns(r)
	}
	return n
}

// runeColumns returns 2 for scripts with wide characters, 0 for marks, and otherwise 1. Errors for other characters
// affect only alignment.
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

// cut shortens a text to a number of columns and marks the cut.
func cut(text string, limit int) string {
	if columns(text) <= limit {
		return text
	}
	n := 0
	for i, r := range text {
		if n += runeColumns(r); n > limit-1 {
			return text[:i] + strings.Repeat("…", min(1, max(limit, 0)))
		}
	}
	return text
}
