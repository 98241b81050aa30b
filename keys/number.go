package keys

import (
	"fmt"
	"math"
	"strconv"
)

const (
	zeros     = "00000000000000000000"
	hexDigits = "0123456789abcdef"
)

// appendDecimal appends an integer as other programs concatenate it: its digits, and the sign if it is negative.
func appendDecimal(dst []byte, n uint64, negative bool, esc escaper) ([]byte, error) {
	if negative {
		if esc.delim == '-' {
			return dst, fmt.Errorf("%w: a raw value contains %q", ErrDelimiter, esc.delim)
		}
		dst = append(dst, '-')
	}
	return strconv.AppendUint(dst, n, 10), nil
}

// appendDigits appends n as width digits, with leading zeros. With desc it appends the complement of each digit. n must fit in width.
func appendDigits(dst []byte, n uint64, width int, desc bool) []byte {
	dst = append(dst, zeros[:width]...)
	field := dst[len(dst)-width:]
	for i := len(field) - 1; i >= 0 && n > 0; i-- {
		q := n / 10
		field[i] = '0' + byte(n-q*10)
		n = q
	}
	if desc {
		complement(field)
	}
	return dst
}

// complement replaces each decimal digit by nine minus the digit. It leaves other bytes unchanged.
func complement(text []byte) {
	for i, c := range text {
		if '0' <= c && c <= '9' {
			text[i] = '0' + '9' - c
		}
	}
}

// parseDigits returns false if s contains anything but digits, or if the number exceeds 64 bits.
func parseDigits(s string, desc bool) (uint64, bool) {
	var n uint64
	for i := range len(s) {
		d := uint64(s[i] - '0')
		if d > 9 {
			return 0, false
		}
		if desc {
			d = 9 - d
		}
		if n > (math.MaxUint64-d)/10 {
			return 0, false
		}
		n = n*10 + d
	}
	return n, true
}

// appendUint takes magnitude and sign as integerOf returns them.
func (c codec) appendUint(dst []byte, n uint64, negative bool) ([]byte, error) {
	if negative || n > c.max {
		return dst, fmt.Errorf("%w: want 0 to %d", ErrRange, c.max)
	}
	return appendDigits(dst, n, c.width, c.desc), nil
}

// appendInt writes a number that is not negative as 1 and its digits, and a negative number as 0 and the digits of the number plus 10^N.
func (c codec) appendInt(dst []byte, n uint64, negative bool) ([]byte, error) {
	if n > c.max || n > math.MaxInt64 && (!negative || n != 1<<63) {
		return dst, fmt.Errorf("%w: want %d digits or fewer and a number that fits int64", ErrRange, c.width-1)
	}
	sign := uint64(1)
	if negative {
		sign = 0
		n = c.max + 1 - n
	}
	dst = appendDigits(dst, sign, 1, c.desc)
	return appendDigits(dst, n, c.width-1, c.desc), nil
}

func (c codec) decodeInt(s string) (scalar, bool) {
	sign, ok1 := parseDigits(s[:1], c.desc)
	n, ok2 := parseDigits(s[1:], c.desc)
	if !ok1 || !ok2 || sign > 1 {
		return scalar{}, false
	}
	if sign == 1 {
		return scalar{kind: kindInt, bits: n}, n <= math.MaxInt64
	}
	magnitude := c.max + 1 - n // n has at most N digits, so this is at least 1
	return scalar{kind: kindInt, bits: -magnitude}, n > 0 && magnitude <= 1<<63
}

// appendFloat flips the sign bit of positive numbers and all bits of negative ones. The resulting bits, as an unsigned
// number, sort as the floats do.
func (c codec) appendFloat(dst []byte, f float64) ([]byte, error) {
	if math.IsNaN(f) {
		return dst, fmt.Errorf("%w: not a number", ErrRange)
	}
	if f == 0 {
		f = 0 // negative zero equals zero, so both need the same key
	}
	bits := math.Float64bits(f)
	if bits>>63 == 1 {
		bits = ^bits
	} else {
		bits |= 1 << 63
	}
	if c.desc {
		bits = ^bits
	}
	for shift := 60; shift >= 0; shift -= 4 {
		dst = append(dst, hexDigits[bits>>shift&15])
	}
	return dst, nil
}

func (c codec) decodeFloat(s string) (scalar, bool) {
	var bits uint64
	for i := range len(s) {
		switch d := s[i]; {
		case '0' <= d && d <= '9':
			bits = bits<<4 | uint64(d-'0')
		case 'a' <= d && d <= 'f':
			bits = bits<<4 | uint64(d-'a'+10)
		default:
			return scalar{}, false
		}
	}
	if c.desc {
		bits = ^bits
	}
	if bits>>63 == 1 {
		bits &^= 1 << 63
	} else {
		bits = ^bits
	}
	f := math.Float64frombits(bits)
	return scalar{kind: kindFloat, bits: bits}, !math.IsNaN(f) && bits != 1<<63
}

func (c codec) appendBool(dst []byte, b bool) []byte {
	if b != c.desc {
		return append(dst, '1')
	}
	return append(dst, '0')
}
