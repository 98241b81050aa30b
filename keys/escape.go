package keys

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// escaper encodes strings so that they do not contain the delimiter and still sort as before.
//
// The delimiter and the escape byte are written as sequences of two bytes. The first is the escape byte. It is the delimiter's neighbour
// in ASCII, so a sequence sorts among all other bytes as the byte that it stands for. The second puts the two sequences in order.
type escaper struct {
	delim, esc       byte
	forDelim, forEsc byte // second byte of the sequences for delim and for esc
}

func newEscaper(delim byte) (escaper, error) {
	if !delimiter(delim) {
		return escaper{}, fmt.Errorf("%w: must be a printable ASCII character other than space, letters, digits and braces", ErrDelimiter)
	}
	esc := delim + 1
	switch up, down := delim+1, delim-1; {
	case delimiter(up):
	case delimiter(down):
		esc = down
	case !brace(up): // only for '~', since a control character follows it; '|' keeps '}'
		esc = down
	}
	e := escaper{delim: delim, esc: esc, forDelim: '0', forEsc: '1'}
	if esc < delim {
		e.forDelim, e.forEsc = '1', '0'
	}
	return e, nil
}

func brace(c byte) bool { return c == '{' || c == '}' }

// delimiter reports whether c may be a delimiter.
func delimiter(c byte) bool {
	switch {
	case c <= ' ' || c > '~', brace(c):
		return false
	case '0' <= c && c <= '9', 'A' <= c && c <= 'Z', 'a' <= c && c <= 'z':
		return false
	}
	return true
}

// append adds s in escaped form. Its first loop finds out whether s needs escaping, since most strings can be copied as they are.
func (e escaper) append(dst []byte, s string) ([]byte, error) {
	special, high := 0, byte(0)
	for i := range len(s) {
		c := s[i]
		high |= c
		if c == e.delim || c == e.esc {
			special++
		}
	}
	if high >= utf8.RuneSelf && !utf8.ValidString(s) {
		return dst, ErrInvalidUTF8
	}
	if special == 0 {
		return append(dst, s...), nil
	}
	for i := range len(s) {
		switch c := s[i]; c {
		case e.delim:
			dst = append(dst, e.esc, e.forDelim)
		case e.esc:
			dst = append(dst, e.esc, e.forEsc)
		default:
			dst = append(dst, c)
		}
	}
	return dst, nil
}

// unescape reverses append. It returns false for anything that append does not write.
func (e escaper) unescape(s string) (string, bool) {
	if strings.IndexByte(s, e.esc) < 0 {
		return s, strings.IndexByte(s, e.delim) < 0 && utf8.ValidString(s)
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case e.delim:
			return "", false
		case e.esc:
			i++
			if i == len(s) {
				return "", false
			}
			switch s[i] {
			case e.forDelim:
				b = append(b, e.delim)
			case e.forEsc:
				b = append(b, e.esc)
			default:
				return "", false
			}
		default:
			b = append(b, c)
		}
	}
	return string(b), utf8.Valid(b)
}

// units returns how many bytes of s encode the first n bytes of a value, or -1 if s is too short. An escaped byte takes two.
func (e escaper) units(s string, n int) int {
	i := 0
	for ; n > 0; n-- {
		if i < len(s) && s[i] == e.esc {
			i++
		}
		i++
		if i > len(s) {
			return -1
		}
	}
	return i
}

// ordered reports whether every proper prefix of v, as a value of its own, has a key that sorts before the key of v. The shorter value
// is followed by the delimiter where v has its next byte. So each byte of v after the first has to sort after the delimiter.
func (e escaper) ordered(v any) bool {
	s, _ := stringOf(v)
	for i := 1; i < len(s); i++ {
		if s[i] < e.delim || s[i] == e.delim && e.esc < e.delim {
			return false
		}
	}
	return true
}
