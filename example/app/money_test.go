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

func money(t testing.TB, text string) Money {
	t.Helper()
	m, err := parseMoney(text)
	require.NoError(t, err, text)
	return m
}

func TestParseMoney_ReadsPlainNumbersExactly(t *testing.T) {
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
		got, err := parseMoney(text)
		require.NoError(t, err, text)
		assert.Equal(t, want, got.String(), text)
	}
	for _, text := range []string{
		"", "-", "+1", ".5", "5.", "01", "-01", "00", "1e", "1e+", "0x10", "NaN", "Infinity", "1_000", "1,5", " 1", "1 ", "1.2.3",
		"١", strings.Repeat("1", 129), "null", "true", "[1]", `"1"`,
	} {
		_, err := parseMoney(text)
		assert.ErrorIs(t, err, errNotNumber, "%q", text)
	}
	for _, text := range []string{
		nines + "0", nines + ".1", "1e38", "1e-39", "1e999999", "1e-999999", "1e99999999999999999999", "-1e-99999999999999999999",
	} {
		_, err := parseMoney(text)
		assert.ErrorIs(t, err, errDigits, "%q", text)
	}
}

// The same arithmetic by math/big's floats of a precision that holds all digits.
func TestMoney_IsExact(t *testing.T) {
	gen := rapid.Custom(func(t *rapid.T) string {
		return rapid.StringMatching(`-?(0|[1-9][0-9]{0,25})`).Draw(t, "whole") + rapid.StringMatching(`(\.[0-9]{1,12})?`).Draw(t, "fraction")
	})
	rapid.Check(t, func(t *rapid.T) {
		a, b := gen.Draw(t, "a"), gen.Draw(t, "b")
		x, errX := parseMoney(a)
		y, errY := parseMoney(b)
		if errX != nil || errY != nil {
			t.Fatalf("parse: %v, %v", errX, errY)
		}
		float := func(text string) *big.Float {
			f, _, err := big.ParseFloat(text, 10, 4096, big.ToNearestEven)
			if err != nil {
				t.Fatal(err)
			}
			return f
		}
		sum := x.Plus(y)
		if got, want := sum.String(), plain(float("0").Add(float(a), float(b)).Text('f', 40)); got != want {
			t.Fatalf("%s + %s = %s, want %s", a, b, got, want)
		}
		if x.String() != plain(a) {
			t.Fatalf("operands changed: %s is now %s", a, x)
		}
	})
}

// plain writes a decimal text without zeros at the end, by text alone.
func plain(s string) string {
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	if s == "-0" {
		return "0"
	}
	return s
}

func TestMoney_RoundTrips(t *testing.T) {
	type row struct {
		Price Money `dynamo:"price" json:"price"`
	}
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`-?(0|[1-9][0-9]{0,33})(\.[0-9]{1,4})?`).Draw(t, "text")
		x, err := parseMoney(text)
		if err != nil {
			t.Fatal(err)
		}
		item, err := dynamo.MarshalItem(row{x})
		if err != nil {
			t.Fatal(err)
		}
		if n, ok := item["price"].(*types.AttributeValueMemberN); !ok || n.Value != plain(text) {
			t.Fatalf("%s is %#v in DynamoDB", text, item["price"])
		}
		var back row
		if err := dynamo.UnmarshalItem(item, &back); err != nil || back.Price.String() != x.String() {
			t.Fatalf("dynamo: %s came back as %s: %v", text, back.Price, err)
		}
		data, err := json.Marshal(row{x})
		if err != nil || string(data) != `{"price":"`+plain(text)+`"}` {
			t.Fatalf("json: %s, %v", data, err)
		}
		for _, j := range []string{string(data), `{"price":` + text + `}`} {
			back = row{}
			if err := json.Unmarshal([]byte(j), &back); err != nil || back.Price.String() != x.String() {
				t.Fatalf("json: %s came back as %s: %v", j, back.Price, err)
			}
		}
	})
}

func TestMoney_RefusesOtherTypes(t *testing.T) {
	var x Money
	assert.ErrorIs(t, x.UnmarshalDynamo(&types.AttributeValueMemberS{Value: "1"}), errNotNumber)
	assert.ErrorIs(t, x.UnmarshalDynamo(&types.AttributeValueMemberN{Value: "1e40"}), errDigits)
	for _, data := range []string{`null`, `true`, `[]`, `{}`, `""`, `"1 "`, `"a"`} {
		assert.Error(t, json.Unmarshal([]byte(data), &x), data)
	}
}

func TestAmount_IsPriceTimesQuantityLessDiscount(t *testing.T) {
	for _, c := range []struct {
		price, discount string
		quantity        int64
		want            string
	}{
		{"14.00", "0", 12, "168"},
		{"7.7", "0.05", 10, "73.15"},
		{"9", "1", 1, "0"},
		{"12.50", "0.15", 11, "116.875"},
		{strings.Repeat("9", 38), "0", 1, strings.Repeat("9", 38)},
	} {
		l := OrderLine{Price: money(t, c.price), Discount: money(t, c.discount), Quantity: c.quantity}
		assert.Equal(t, c.want, l.Amount().String())
	}
}
