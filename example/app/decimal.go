package main

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/cockroachdb/apd/v3"
	"github.com/guregu/dynamo/v2"
)

// Limits of a Decimal. DynamoDB keeps 38 significant digits of a number, so a
// value within maxDigits comes back as it was stored.
const (
	maxDigits      = 38  // digits before and after the decimal point together
	maxDecimalText = 128 // bytes of text that are looked at
)

var (
	// ErrDecimalSyntax says that a text is not a decimal number.
	ErrDecimalSyntax = errors.New("not a decimal number")
	// ErrDecimalOverflow says that a value has more than 38 digits.
	ErrDecimalOverflow = errors.New("more than 38 digits")
)

// Decimal is an exact decimal number: an amount of money, a price or a
// discount. Its zero value is 0. It is immutable, so copies are cheap and safe.
//
// Every result that does not fit into 38 digits is ErrDecimalOverflow; nothing
// is ever rounded. In DynamoDB it is a number (N), in JSON a string.
type Decimal struct {
	d apd.Decimal // finite, no trailing zeros after the point, exponent <= 0, 0 is not negative
}

// ParseDecimal reads a number in JSON's notation: an optional minus sign,
// digits without leading zeros, an optional fraction, an optional exponent.
func ParseDecimal(text string) (Decimal, error) {
	if len(text) > maxDecimalText || !isNumber(text) {
		return Decimal{}, ErrDecimalSyntax
	}
	var d apd.Decimal
	if _, _, err := d.SetString(text); err != nil {
		// The syntax is right, so the exponent is beyond all bounds.
		return Decimal{}, ErrDecimalOverflow
	}
	return normalize(&d)
}

// isNumber reports whether text is a number as JSON writes it.
func isNumber(text string) bool {
	s := strings.TrimPrefix(text, "-")
	whole := digits(s)
	if whole == 0 || whole > 1 && s[0] == '0' {
		return false
	}
	s = s[whole:]
	if strings.HasPrefix(s, ".") {
		n := digits(s[1:])
		if n == 0 {
			return false
		}
		s = s[1+n:]
	}
	if s != "" && (s[0] == 'e' || s[0] == 'E') {
		s = s[1:]
		if s != "" && (s[0] == '+' || s[0] == '-') {
			s = s[1:]
		}
		n := digits(s)
		if n == 0 {
			return false
		}
		s = s[n:]
	}
	return s == ""
}

// digits counts the decimal digits at the start of s.
func digits(s string) int {
	n := 0
	for n < len(s) && '0' <= s[n] && s[n] <= '9' {
		n++
	}
	return n
}

// normalize brings d into the one form that a Decimal has for each value.
func normalize(d *apd.Decimal) (Decimal, error) {
	if d.IsZero() {
		return Decimal{}, nil
	}
	var r Decimal
	r.d.Reduce(d)
	n := r.d.NumDigits()
	// Zeros between the number and the point count on both sides of it: 1e38
	// has 39 digits, and so has 1e-39.
	if e := int64(r.d.Exponent); e > 0 {
		n += e
	} else if -e > n {
		n = -e
	}
	if n > maxDigits {
		return Decimal{}, ErrDecimalOverflow
	}
	if e := r.d.Exponent; e > 0 {
		var scale, ten, exp apd.BigInt
		scale.Exp(ten.SetInt64(10), exp.SetInt64(int64(e)), nil)
		r.d.Coeff.Mul(&r.d.Coeff, &scale)
		r.d.Exponent = 0
	}
	return r, nil
}

// decimalInt returns n as a Decimal.
func decimalInt(n int64) Decimal {
	var r Decimal
	r.d.SetInt64(n)
	return r
}

// exact is apd's context without rounding.
func exact() *apd.Context { return apd.BaseContext.WithPrecision(0) }

// Add returns x + y.
func (x Decimal) Add(y Decimal) (Decimal, error) {
	var z apd.Decimal
	if _, err := exact().Add(&z, &x.d, &y.d); err != nil {
		return Decimal{}, fmt.Errorf("add: %w", err)
	}
	return normalize(&z)
}

// Sub returns x - y.
func (x Decimal) Sub(y Decimal) (Decimal, error) {
	var z apd.Decimal
	if _, err := exact().Sub(&z, &x.d, &y.d); err != nil {
		return Decimal{}, fmt.Errorf("subtract: %w", err)
	}
	return normalize(&z)
}

// Mul returns x × y.
func (x Decimal) Mul(y Decimal) (Decimal, error) {
	var z apd.Decimal
	if _, err := exact().Mul(&z, &x.d, &y.d); err != nil {
		return Decimal{}, fmt.Errorf("multiply: %w", err)
	}
	return normalize(&z)
}

// Cmp returns -1, 0 or 1 as x is less than, equal to or greater than y.
func (x Decimal) Cmp(y Decimal) int { return x.d.Cmp(&y.d) }

// Sign returns -1, 0 or 1.
func (x Decimal) Sign() int { return x.d.Sign() }

// Places returns the number of digits after the decimal point, without
// trailing zeros.
func (x Decimal) Places() int { return int(-x.d.Exponent) }

// String returns the value without exponent and without trailing zeros.
func (x Decimal) String() string { return x.d.Text('f') }

// Display returns the value as people read money: with at least two digits
// after the point.
func (x Decimal) Display() string {
	s := x.String()
	switch x.Places() {
	case 0:
		return s + ".00"
	case 1:
		return s + "0"
	}
	return s
}

var (
	_ encoding.TextMarshaler   = Decimal{}
	_ encoding.TextUnmarshaler = (*Decimal)(nil)
	_ json.Marshaler           = Decimal{}
	_ json.Unmarshaler         = (*Decimal)(nil)
	_ dynamo.Marshaler         = Decimal{}
	_ dynamo.Unmarshaler       = (*Decimal)(nil)
)

// MarshalText implements encoding.TextMarshaler.
func (x Decimal) MarshalText() ([]byte, error) { return []byte(x.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (x *Decimal) UnmarshalText(text []byte) error {
	v, err := ParseDecimal(string(text))
	if err != nil {
		return err
	}
	*x = v
	return nil
}

// MarshalJSON writes a JSON string, which no reader turns into a float.
func (x Decimal) MarshalJSON() ([]byte, error) { return []byte(`"` + x.String() + `"`), nil }

// UnmarshalJSON reads a JSON string or a JSON number, either exactly.
func (x *Decimal) UnmarshalJSON(data []byte) error {
	text := string(data)
	if bytes.HasPrefix(data, []byte(`"`)) {
		if err := json.Unmarshal(data, &text); err != nil {
			return err
		}
	}
	return x.UnmarshalText([]byte(text))
}

// MarshalDynamo implements guregu/dynamo's Marshaler with a DynamoDB number.
func (x Decimal) MarshalDynamo() (types.AttributeValue, error) {
	return &types.AttributeValueMemberN{Value: x.String()}, nil
}

// UnmarshalDynamo implements guregu/dynamo's Unmarshaler.
func (x *Decimal) UnmarshalDynamo(av types.AttributeValue) error {
	n, ok := av.(*types.AttributeValueMemberN)
	if !ok {
		return fmt.Errorf("%w: DynamoDB type is not N", ErrDecimalSyntax)
	}
	return x.UnmarshalText([]byte(n.Value))
}
