package main

import (
	"encoding/json"
	"math/big"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/guregu/dynamo/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func dec(t testing.TB, text string) Decimal {
	t.Helper()
	d, err := ParseDecimal(text)
	require.NoError(t, err, text)
	return d
}

func TestDecimalParse(t *testing.T) {
	nines := strings.Repeat("9", 38)
	for text, want := range map[string]string{
		"0": "0", "-0": "0", "0.000": "0", "0e5": "0", "14.00": "14", "14.10": "14.1", "-3.5": "-3.5",
		"100": "100", "1e2": "100", "1.25E+1": "12.5", "125e-3": "0.125", "1265793.0395": "1265793.0395",
		nines:                                  nines,
		nines[:34] + ".9999":                   nines[:34] + ".9999",
		"1e37":                                 "1" + strings.Repeat("0", 37),
		"0." + strings.Repeat("0", 37) + "1":   "0." + strings.Repeat("0", 37) + "1",
		"1." + strings.Repeat("0", 100):        "1",
		"1" + strings.Repeat("0", 50) + "e-50": "1",
	} {
		got, err := ParseDecimal(text)
		require.NoError(t, err, text)
		assert.Equal(t, want, got.String(), text)
	}
	for _, text := range []string{
		"", "-", "+1", ".5", "5.", "01", "-01", "00", "1e", "1e+", "0x10", "NaN", "Infinity", "1_000", "1,5", " 1", "1 ", "1.2.3",
		"١", strings.Repeat("1", maxDecimalText+1),
	} {
		_, err := ParseDecimal(text)
		assert.ErrorIs(t, err, ErrDecimalSyntax, "%q", text)
	}
	for _, text := range []string{
		nines + "0", nines + ".1", "1e38", "1e-39", "1e999999", "1e-999999", "1e99999999999999999999", "-1e-99999999999999999999",
	} {
		_, err := ParseDecimal(text)
		assert.ErrorIs(t, err, ErrDecimalOverflow, "%q", text)
	}
}

func TestDecimalDisplay(t *testing.T) {
	for text, want := range map[string]string{"0": "0.00", "7": "7.00", "7.5": "7.50", "7.25": "7.25", "7.0395": "7.0395"} {
		assert.Equal(t, want, dec(t, text).Display())
	}
}

// The same arithmetic on big rationals is the judge.
func TestDecimalArithmeticIsExact(t *testing.T) {
	gen := rapid.Custom(func(t *rapid.T) string {
		whole := rapid.StringMatching(`-?(0|[1-9][0-9]{0,25})`).Draw(t, "whole")
		fraction := rapid.StringMatching(`(\.[0-9]{1,12})?`).Draw(t, "fraction")
		return whole + fraction
	})
	limit := new(big.Int).Exp(big.NewInt(10), big.NewInt(maxDigits), nil)
	rapid.Check(t, func(t *rapid.T) {
		a, b := gen.Draw(t, "a"), gen.Draw(t, "b")
		ra, _ := new(big.Rat).SetString(a)
		rb, _ := new(big.Rat).SetString(b)
		x, errX := ParseDecimal(a)
		y, errY := ParseDecimal(b)
		if errX != nil || errY != nil {
			t.Fatalf("parse: %v, %v", errX, errY)
		}
		for name, op := range map[string]struct {
			f    func() (Decimal, error)
			want *big.Rat
		}{
			"add": {func() (Decimal, error) { return x.Add(y) }, new(big.Rat).Add(ra, rb)},
			"sub": {func() (Decimal, error) { return x.Sub(y) }, new(big.Rat).Sub(ra, rb)},
			"mul": {func() (Decimal, error) { return x.Mul(y) }, new(big.Rat).Mul(ra, rb)},
		} {
			got, err := op.f()
			// The result fits exactly if, scaled to an integer by its number
			// of decimals, it has at most 38 digits.
			places, _ := op.want.FloatPrec()
			scaled := new(big.Rat).Mul(op.want, new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(places)), nil)))
			fits := new(big.Int).Abs(scaled.Num()).Cmp(limit) < 0 && places <= maxDigits
			if !fits {
				if err == nil {
					t.Fatalf("%s: %s and %s gave %s, which has too many digits", name, a, b, got)
				}
				continue
			}
			if err != nil {
				t.Fatalf("%s: %s and %s: %v", name, a, b, err)
			}
			if r, ok := new(big.Rat).SetString(got.String()); !ok || r.Cmp(op.want) != 0 {
				t.Fatalf("%s: %s and %s gave %s, want %s", name, a, b, got, op.want.FloatString(places))
			}
			if got.Sign() != op.want.Sign() || got.Places() != places {
				t.Fatalf("%s: sign %d, places %d of %s", name, got.Sign(), got.Places(), got)
			}
		}
		if x.Cmp(y) != ra.Cmp(rb) {
			t.Fatalf("cmp %s %s = %d", a, b, x.Cmp(y))
		}
		if x.String() != dec38(a) {
			t.Fatalf("operands changed: %s is now %s", a, x)
		}
	})
}

// dec38 writes a plain decimal text in canonical form, by text alone.
func dec38(s string) string {
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	if s == "-0" {
		return "0"
	}
	return s
}

func TestDecimalRoundTrips(t *testing.T) {
	type row struct {
		Price Decimal `dynamo:"price" json:"price"`
	}
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`-?(0|[1-9][0-9]{0,33})(\.[0-9]{1,4})?`).Draw(t, "text")
		x, err := ParseDecimal(text)
		if err != nil {
			t.Fatal(err)
		}
		item, err := dynamo.MarshalItem(row{x})
		if err != nil {
			t.Fatal(err)
		}
		if n, ok := item["price"].(*types.AttributeValueMemberN); !ok || n.Value != dec38(text) {
			t.Fatalf("%s is %#v in DynamoDB", text, item["price"])
		}
		var back row
		if err := dynamo.UnmarshalItem(item, &back); err != nil || back.Price.Cmp(x) != 0 {
			t.Fatalf("dynamo: %s came back as %s: %v", text, back.Price, err)
		}
		data, err := json.Marshal(row{x})
		if err != nil || string(data) != `{"price":"`+dec38(text)+`"}` {
			t.Fatalf("json: %s, %v", data, err)
		}
		for _, j := range []string{string(data), `{"price":` + text + `}`} {
			back = row{}
			if err := json.Unmarshal([]byte(j), &back); err != nil || back.Price.Cmp(x) != 0 {
				t.Fatalf("json: %s came back as %s: %v", j, back.Price, err)
			}
		}
	})
}

func TestDecimalRefusesOtherTypes(t *testing.T) {
	var x Decimal
	assert.ErrorIs(t, x.UnmarshalDynamo(&types.AttributeValueMemberS{Value: "1"}), ErrDecimalSyntax)
	assert.ErrorIs(t, x.UnmarshalDynamo(&types.AttributeValueMemberN{Value: "1e40"}), ErrDecimalOverflow)
	for _, data := range []string{`null`, `true`, `[]`, `{}`, `""`, `"1 "`, `"a"`} {
		assert.Error(t, json.Unmarshal([]byte(data), &x), data)
	}
}
