package attr

import (
	"errors"
	"strconv"
	"strings"

	"github.com/cockroachdb/apd/v3"
)

// Limits of DynamoDB's number type (Developer Guide, "Supported data types": 38 digits, 1E-130 to 9.99…E+125).
const (
	maxDigits   = 38
	maxExponent = 125
	minExponent = -130
)

const (
	errNotNumber = InvalidError("The parameter cannot be converted to a numeric value")
	errOverflow  = InvalidError("Number overflow. Attempting to store a number with magnitude larger than supported range")
	errUnderflow = InvalidError("Number underflow. Attempting to store a number with magnitude smaller than supported range")
	errDigits    = InvalidError("Attempting to store more than 38 significant digits in a Number")
	maxIntDigits = 18      // integers with so many digits fit into an int64, and so does the sum of two
	farExponent  = 1 << 40 // out of the range by more digits than a request has
)

// Number is a decimal number in canonical form: 0.digits × 10^exp, where digits neither begins nor ends with a zero. The zero value is 0.
// Two numbers are equal exactly if they are ==.
type Number struct {
	digits string
	exp    int32
	neg    bool
}

// ParseNumber reads a decimal literal and checks DynamoDB's limits.
func ParseNumber(s string) (Number, error) {
	if n, ok := parseShort(s); ok {
		return n, nil
	}
	neg, mantissa, exp, ok := splitNumber(s)
	switch {
	case s == "":
		return Number{}, errNotNumber
	case !ok:
		return Number{}, errNotNumber + InvalidError(": "+s)
	}
	whole, frac, _ := strings.Cut(mantissa, ".")
	n, err := newNumber(neg, whole+frac, int64(len(whole))+exp)
	if err == nil && n.digits == "" {
		err = checkRange(exp) // of a zero, the exponent is checked as it is written
	}
	return n, err
}

// parseShort is the fast path for almost all numbers: plain integers of at most 18 digits. It returns false for others.
func parseShort(s string) (Number, bool) {
	rest := s
	neg := strings.HasPrefix(s, "-")
	if neg {
		rest = s[1:]
	}
	if rest == "" || len(rest) > maxIntDigits || rest[0] == '0' {
		return Number{}, s == "0"
	}
	for i := range len(rest) {
		if rest[i] < '0' || rest[i] > '9' {
			return Number{}, false
		}
	}
	return Number{digits: strings.TrimRight(rest, "0"), exp: int32(len(rest)), neg: neg}, true
}

// splitNumber splits a literal into sign, mantissa and exponent, without checking DynamoDB's limits.
func splitNumber(s string) (neg bool, mantissa string, exp int64, ok bool) {
	if s != "" && (s[0] == '-' || s[0] == '+') {
		neg = s[0] == '-'
		s = s[1:]
	}
	i, digits, dots := 0, 0, 0
	for ; i < len(s); i++ {
		switch {
		case s[i] >= '0' && s[i] <= '9':
			digits++
			continue
		case s[i] == '.' && dots == 0:
			dots++
			continue
		}
		break
	}
	mantissa = s[:i]
	if digits == 0 {
		return false, "", 0, false
	}
	if i == len(s) {
		return neg, mantissa, 0, true
	}
	if s[i] != 'e' && s[i] != 'E' {
		return false, "", 0, false
	}
	text := s[i+1:]
	if len(text) > 1 && text[0] == '+' && text[1] != '-' && text[1] != '+' {
		text = text[1:]
	}
	exp, err := strconv.ParseInt(text, 10, 64)
	if err != nil || strings.ContainsAny(text, "_") {
		return false, "", 0, false
	}
	return neg, mantissa, min(max(exp, -farExponent), farExponent), true
}

// checkRange refuses the exponent of a number's first digit if it is out of range.
func checkRange(exp int64) error {
	switch {
	case exp > maxExponent:
		return errOverflow
	case exp < minExponent:
		return errUnderflow
	}
	return nil
}

// newNumber returns 0.digits × 10^exp in canonical form, and checks the limits.
func newNumber(neg bool, digits string, exp int64) (Number, error) {
	trimmed := strings.TrimLeft(digits, "0")
	exp -= int64(len(digits) - len(trimmed))
	trimmed = strings.TrimRight(trimmed, "0")
	if trimmed == "" {
		return Number{}, nil
	}
	if err := checkRange(exp - 1); err != nil {
		return Number{}, err
	}
	if len(trimmed) > maxDigits {
		return Number{}, errDigits
	}
	return Number{digits: trimmed, exp: int32(exp), neg: neg}, nil
}

// NumberOf returns i as a number.
func NumberOf(i int) Number {
	n, _ := ParseNumber(strconv.Itoa(i)) // every int is within the limits
	return n
}

// String returns the plain decimal text without an exponent, like the service.
func (n Number) String() string { return string(n.append(nil)) }

func (n Number) append(dst []byte) []byte {
	if n.digits == "" {
		return append(dst, '0')
	}
	if n.neg {
		dst = append(dst, '-')
	}
	exp := int(n.exp)
	switch {
	case exp <= 0:
		dst = append(dst, '0', '.')
		dst = appendZeros(dst, -exp)
		return append(dst, n.digits...)
	case exp >= len(n.digits):
		dst = append(dst, n.digits...)
		return appendZeros(dst, exp-len(n.digits))
	}
	dst = append(dst, n.digits[:exp]...)
	dst = append(dst, '.')
	return append(dst, n.digits[exp:]...)
}

func appendZeros(dst []byte, count int) []byte {
	for range count {
		dst = append(dst, '0')
	}
	return dst
}

func (n Number) sign() int {
	switch {
	case n.digits == "":
		return 0
	case n.neg:
		return -1
	}
	return 1
}

// Compare returns -1, 0 or 1.
func (n Number) Compare(m Number) int {
	sn, sm := n.sign(), m.sign()
	if sn != sm {
		return compareInt(sn, sm)
	}
	if n.exp != m.exp {
		return sn * compareInt(int(n.exp), int(m.exp))
	}
	return sn * strings.Compare(n.digits, m.digits)
}

func compareInt(a, b int) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// Negate returns -n.
func (n Number) Negate() Number {
	if n.digits != "" {
		n.neg = !n.neg
	}
	return n
}

// Add returns the exact sum, or an error if it does not fit into DynamoDB's limits.
func (n Number) Add(m Number) (Number, error) {
	if a, ok := n.int64(); ok {
		if b, ok := m.int64(); ok {
			return ParseNumber(strconv.FormatInt(a+b, 10))
		}
	}
	var sum apd.Decimal
	// BaseContext has precision 0, so additions are exact. Within the range of numbers, a sum has at most 256 digits.
	if _, err := apd.BaseContext.Add(&sum, n.decimal(), m.decimal()); err != nil {
		return Number{}, errNotNumber
	}
	digits := sum.Coeff.String()
	n, err := newNumber(sum.Negative, digits, int64(len(digits))+int64(sum.Exponent))
	if errors.Is(err, errDigits) {
		return n, errOverflow // the service's error for a sum with too many digits
	}
	return n, err
}

// int64 returns the value if it is an integer of at most 18 digits, so that a sum of two cannot overflow.
func (n Number) int64() (int64, bool) {
	if n.digits == "" {
		return 0, true
	}
	if n.exp > maxIntDigits || int(n.exp) < len(n.digits) {
		return 0, false
	}
	var v int64
	for i := range int(n.exp) {
		v *= 10
		if i < len(n.digits) {
			v += int64(n.digits[i] - '0')
		}
	}
	if n.neg {
		v = -v
	}
	return v, true
}

func (n Number) decimal() *apd.Decimal {
	d := new(apd.Decimal)
	if n.digits == "" {
		return d
	}
	d.Coeff.SetString(n.digits, 10)
	d.Negative = n.neg
	d.Exponent = n.exp - int32(len(n.digits))
	return d
}

// Int returns the value if it is an integer of at most 18 digits.
func (n Number) Int() (int64, bool) { return n.int64() }

// Floor returns the integer part, rounded towards 0, if it has at most 18 digits. It is for the seconds of TTL.
func (n Number) Floor() (int64, bool) {
	if n.exp <= 0 {
		return 0, true
	}
	if int(n.exp) < len(n.digits) {
		n.digits = strings.TrimRight(n.digits[:n.exp], "0")
		if n.digits == "" {
			return 0, true
		}
	}
	return n.int64()
}

// size returns the number of bytes that DynamoDB counts: one for each pair of digits, counted from the decimal point, plus one, and
// one for a minus sign.
func (n Number) size() int {
	if n.digits == "" {
		return 1
	}
	length := len(n.digits)
	if n.exp&1 != 0 { // the first pair has only one digit
		length++
	}
	size := (length+1)/2 + 1
	if n.neg {
		size++
	}
	return size
}

// sortBias is added to exponents to make them fit into a byte: Number.exp is from -129 to 126.
const sortBias = 129

// sortable encodes the number so that bytewise order is numeric order.
func (n Number) sortable() string {
	switch n.sign() {
	case 0:
		return "\x80"
	case 1:
		return "\x81" + string([]byte{byte(int(n.exp) + sortBias)}) + n.digits
	}
	b := make([]byte, 0, len(n.digits)+3)
	b = append(b, 0x7F, ^byte(int(n.exp)+sortBias))
	for i := range len(n.digits) {
		b = append(b, ^n.digits[i])
	}
	return string(append(b, 0xFF))
}
