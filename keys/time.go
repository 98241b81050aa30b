package keys

import (
	"fmt"
	"time"
)

// appendTime writes t in UTC. It does not use time.AppendFormat, which takes three times as long.
func (c codec) appendTime(dst []byte, t time.Time) ([]byte, error) {
	t = t.UTC()
	year, month, day := t.Date()
	hour, minute, sec := t.Clock()
	nano := t.Nanosecond()
	if year < 0 || year > 9999 {
		return dst, fmt.Errorf("%w: want a year from 0000 to 9999 in UTC", ErrRange)
	}
	switch {
	case c.kind == kindTimeMS && nano%1e6 != 0:
		return dst, fmt.Errorf("%w: want whole milliseconds", ErrPrecision)
	case c.kind == kindTimeS && nano != 0:
		return dst, fmt.Errorf("%w: want whole seconds", ErrPrecision)
	case c.kind == kindDate && (hour != 0 || minute != 0 || sec != 0 || nano != 0):
		return dst, fmt.Errorf("%w: want midnight UTC", ErrPrecision)
	}
	start := len(dst)
	dst = appendDigits(dst, uint64(year), 4, false)
	dst = append(dst, '-')
	dst = appendDigits(dst, uint64(month), 2, false)
	dst = append(dst, '-')
	dst = appendDigits(dst, uint64(day), 2, false)
	if c.kind != kindDate {
		dst = append(dst, 'T')
		dst = appendDigits(dst, uint64(hour), 2, false)
		dst = append(dst, ':')
		dst = appendDigits(dst, uint64(minute), 2, false)
		dst = append(dst, ':')
		dst = appendDigits(dst, uint64(sec), 2, false)
		switch c.kind {
		case kindTime:
			dst = append(dst, '.')
			dst = appendDigits(dst, uint64(nano), 9, false)
		case kindTimeMS:
			dst = append(dst, '.')
			dst = appendDigits(dst, uint64(nano/1e6), 3, false)
		}
		dst = append(dst, 'Z')
	}
	if c.desc {
		complement(dst[start:])
	}
	return dst, nil
}

// decodeTime reads digits at their positions, lets time.Date normalize them, and accepts the result only if appendTime
// writes the same text for it. This refuses wrong punctuation as well as the 30th of February.
func (c codec) decodeTime(s string) (scalar, bool) {
	number := func(from, to int) int {
		if from >= len(s) {
			return 0
		}
		n, _ := parseDigits(s[from:to], c.desc)
		return int(n)
	}
	var nano int
	switch c.kind {
	case kindTime:
		nano = number(20, 29)
	case kindTimeMS:
		nano = number(20, 23) * 1e6
	}
	t := time.Date(number(0, 4), time.Month(number(5, 7)), number(8, 10),
		number(11, 13), number(14, 16), number(17, 19), nano, time.UTC)
	var buf [32]byte
	text, err := c.appendTime(buf[:0], t)
	if err != nil || string(text) != s {
		return scalar{}, false
	}
	return scalar{kind: kindTime, when: t}, true
}
