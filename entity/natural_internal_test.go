package entity

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
)

// A cursor can be forged, so the key in it can be any text.
func TestNatural_ARangeOfNumbersContainsNoText(t *testing.T) {
	for _, span := range []keys.Range{{}, {Lo: "1"}, {Hi: "9"}, {Lo: "5", Hi: "5\x00"}} {
		assert.True(t, contains(span, table.Number, "5.0"), span)
		for _, key := range []string{"", "x", "NaN", "Infinity"} {
			assert.False(t, contains(span, table.Number, key), "%v %q", span, key)
		}
	}
}
