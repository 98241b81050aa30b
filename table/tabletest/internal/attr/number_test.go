package attr_test

import (
	"strings"
	"testing"

	"github.com/cockroachdb/apd/v3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mortise-go/mortise/table/tabletest/internal/attr"
)

func TestParseNumber_ReadsDecimals(t *testing.T) {
	nines := strings.Repeat("9", 38)
	for _, tt := range []struct{ in, want string }{
		{"0", "0"},
		{"-0", "0"},
		{"0e125", "0"},
		{"1.0", "1"},
		{"1e2", "100"},
		{"1E+2", "100"},
		{"00012.500", "12.5"},
		{"1.5e-3", "0.0015"},
		{"+5", "5"},
		{".5", "0.5"},
		{"5.", "5"},
		{"-100", "-100"},
		{nines, nines},
		{nines + "000", nines + "000"},
		{"9." + nines[1:] + "E+125", nines + strings.Repeat("0", 88)},
		{"1e-130", "0." + strings.Repeat("0", 129) + "1"},
		{"1000000000000000000", "1000000000000000000"},
	} {
		n, err := attr.ParseNumber(tt.in)
		require.NoError(t, err, tt.in)
		assert.Equal(t, tt.want, n.String(), tt.in)
	}
}

func TestParseNumber_RefusesWhatIsNoNumber(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{"", "cannot be converted"},
		{"abc", "cannot be converted"},
		{" 1", "cannot be converted"},
		{"1_0", "cannot be converted"},
		{"NaN", "cannot be converted"},
		{"0x10", "cannot be converted"},
		{"1e", "cannot be converted"},
		{"1e+", "cannot be converted"},
		{"1e--1", "cannot be converted"},
		{"1e+-1", "cannot be converted"},
		{"--1", "cannot be converted"},
		{".", "cannot be converted"},
		{"1.2.3", "cannot be converted"},
		{"1e9223372036854775808", "cannot be converted"},
		{"1e99999999999", "overflow"},
		{"10e9223372036854775807", "overflow"},
		{"0.1e-9223372036854775808", "underflow"},
		{"0e126", "overflow"},
		{"0.0e-131", "underflow"},
		{"1e126", "overflow"},
		{"-1e126", "overflow"},
		{"1e-131", "underflow"},
		{strings.Repeat("1", 39), "more than 38 significant digits"},
	} {
		_, err := attr.ParseNumber(tt.in)
		require.ErrorContains(t, err, tt.want, tt.in)
	}
}

func TestSortable_OrdersNumbersAtTheEdgesOfTheirRange(t *testing.T) {
	inOrder := []string{"-9.9e125", "-1e125", "-1e124", "-5", "-1e-129", "-1e-130", "0", "1e-130", "1e-129", "5", "1e124", "1e125", "9.9e125"}
	for i, text := range inOrder[1:] {
		below, err := attr.ParseNumber(inOrder[i])
		require.NoError(t, err)
		above, err := attr.ParseNumber(text)
		require.NoError(t, err)
		assert.Less(t, attr.Numeric(below).Sortable(), attr.Numeric(above).Sortable(), "%s, %s", inOrder[i], text)
	}
}

// literal draws a decimal within DynamoDB's limits.
func literal(t *rapid.T, label string) string {
	return rapid.StringMatching(`-?(0|[1-9][0-9]{0,18})(\.[0-9]{0,18})?(e-?1?[0-9]?[0-9])?`).Draw(t, label)
}

// Sums, order, equality and the sortable encoding agree with exact decimal arithmetic.
func TestNumbers_AgreeWithDecimals(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		as, bs := literal(t, "a"), literal(t, "b")
		a, err := attr.ParseNumber(as)
		if err != nil {
			t.Skip("out of range")
		}
		b, err := attr.ParseNumber(bs)
		if err != nil {
			t.Skip("out of range")
		}
		da, _, err := apd.NewFromString(as)
		require.NoError(t, err)
		db, _, err := apd.NewFromString(bs)
		require.NoError(t, err)
		want := da.Cmp(db)
		assert.Equal(t, want, a.Compare(b))
		assert.Equal(t, want == 0, a == b)
		assert.Equal(t, want, strings.Compare(attr.Numeric(a).Sortable(), attr.Numeric(b).Sortable()))

		var sum apd.Decimal
		_, err = apd.BaseContext.Add(&sum, da, db)
		require.NoError(t, err)
		expected, wantErr := attr.ParseNumber(sum.Text('f'))
		got, err := a.Add(b)
		if wantErr != nil {
			if strings.Contains(wantErr.Error(), "38 significant digits") {
				require.ErrorContains(t, err, "Number overflow") // as the service calls it in a sum
				return
			}
			require.Equal(t, wantErr, err)
			return
		}
		require.NoError(t, err)
		assert.Equal(t, expected, got)

		again, err := attr.ParseNumber(a.String())
		require.NoError(t, err)
		assert.Equal(t, a, again, "the canonical form reads back")
	})
}
