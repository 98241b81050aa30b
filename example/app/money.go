package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/big"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

var (
	errNotNumber = errors.New("not a decimal number")
	errDigits    = errors.New("more than 38 digits") // which is what a number in DynamoDB has
)

// Money is an exact decimal number: an amount, a price or a discount. It is a fraction of two integers of any size, so no
// calculation rounds or overflows. In DynamoDB it is a number (N), in JSON a string.
type Money struct{ r *big.Rat } // nil is 0; never changed

// parseMoney reads a number in JSON's notation.
func parseMoney(text string) (Money, error) {
	const digits, maxText, maxExponent = "0123456789", 128, 3
	if len(text) > maxText || !json.Valid([]byte(text)) || strings.Trim(text[:1], "-"+digits)+strings.Trim(text[len(text)-1:], digits) != "" {
		return Money{}, errNotNumber
	}
	_, exponent, _ := strings.Cut(strings.ToLower(text), "e")
	if len(strings.TrimLeft(exponent, "+-0")) > maxExponent {
		return Money{}, errDigits
	}
	r, _ := new(big.Rat).SetString(text)
	if m := (Money{r}); m.fits() {
		return m, nil
	}
	return Money{}, errDigits
}

func (m Money) rat() *big.Rat {
	if m.r == nil {
		return new(big.Rat)
	}
	return m.r
}

// Plus returns the sum.
func (m Money) Plus(n Money) Money { return Money{new(big.Rat).Add(m.rat(), n.rat())} }

// decimals is the number of digits after the point.
func (m Money) decimals() int { n, _ := m.rat().FloatPrec(); return n }

// fits reports whether DynamoDB keeps all digits, before and after the point together.
func (m Money) fits() bool {
	digits := strings.TrimPrefix(strings.TrimPrefix(m.String(), "-"), "0")
	return len(strings.Replace(digits, ".", "", 1)) <= 38
}

// String is the number without exponent and without zeros at the end.
func (m Money) String() string { return m.rat().FloatString(m.decimals()) }

// MarshalText is for JSON. A JSON string, unlike a number, is no float to any reader.
func (m Money) MarshalText() ([]byte, error) { return []byte(m.String()), nil } //nolint:unparam // encoding.TextMarshaler

// UnmarshalJSON reads a string or a number.
func (m *Money) UnmarshalJSON(data []byte) (err error) {
	*m, err = parseMoney(string(bytes.Trim(data, `"`)))
	return err
}

// MarshalDynamo is for package entity, which asks for it as guregu/dynamo does.
func (m Money) MarshalDynamo() (types.AttributeValue, error) { //nolint:unparam // dynamo.Marshaler
	return &types.AttributeValueMemberN{Value: m.String()}, nil
}

// UnmarshalDynamo is for package entity.
func (m *Money) UnmarshalDynamo(av types.AttributeValue) (err error) {
	n, ok := av.(*types.AttributeValueMemberN)
	if !ok {
		return errNotNumber
	}
	*m, err = parseMoney(n.Value)
	return err
}
