package keys_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/keys"
)

// Keys that other programs concatenated by hand come out byte for byte, and what they could not have
// told apart is refused instead of being written in another form.
func TestTemplatesReproduceKeysMadeByHand(t *testing.T) {
	at := time.Date(2024, 3, 1, 12, 0, 0, 5e6, time.UTC)
	for name, tc := range map[string]struct {
		scheme  keys.Scheme
		text    string
		values  []any
		byHand  string
		refused []any // in place of the first value
	}{
		"raw keeps the escape byte": {
			keys.Scheme{}, "USER#{id:raw}", []any{"a$0b"}, "USER#" + "a$0b", []any{"a#b", "#", ""},
		},
		"a slash": {
			keys.Scheme{Delimiter: '/', Prefix: "acme/"},
			"users/{id:raw}/orders/{no:raw}",
			[]any{"u.1", "7"},
			"acme/" + "users/" + "u.1" + "/orders/" + "7",
			[]any{"a/b", "/"},
		},
		"two bytes": {
			keys.Scheme{Delimiter: ':'},
			"ORG::{org:raw}::USER::{user:raw}",
			[]any{"o-1", "ann@example.org"},
			"ORG::" + "o-1" + "::USER::" + "ann@example.org",
			[]any{"a::b", "a:b", ":"},
		},
		"no delimiter at the end of the prefix": {
			keys.Scheme{Delimiter: '_', Prefix: "v2"}, "cust_{id:raw}", []any{"77"}, "v2cust_" + "77", []any{"7_7"},
		},
		"an address with the delimiter": {
			keys.Scheme{},
			"{country:raw}#{city:raw}#{address:rest}",
			[]any{"VE", "San Cristóbal", "Carrera 22 #8-35"},
			"VE" + "#" + "San Cristóbal" + "#" + "Carrera 22 #8-35",
			[]any{"V#E", ""},
		},
		"an ISO time, a padded number": {
			keys.Scheme{Delimiter: '|'},
			"{at:time-ms}|{no:uint6}",
			[]any{at, 42},
			at.Format("2006-01-02T15:04:05.000Z") + "|" + fmt.Sprintf("%06d", 42),
			[]any{at.Add(1), "x"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			tpl, err := tc.scheme.PKTemplate(tc.text)
			require.NoError(t, err)
			key, err := tpl.Format(tc.values...)
			require.NoError(t, err)
			assert.Equal(t, tc.byHand, key)
			assert.True(t, tpl.Matches(tc.byHand))
			back, err := tpl.Parse(tc.byHand)
			require.NoError(t, err)
			assert.Len(t, back, len(tc.values))
			again, err := tpl.Format(back...)
			require.NoError(t, err)
			assert.Equal(t, tc.byHand, again)
			for i, v := range tc.refused {
				_, err := tpl.Format(append([]any{v}, tc.values[1:]...)...)
				var refused *keys.Error
				require.ErrorAs(t, err, &refused, "value %d", i)
				assert.NotEmpty(t, refused.Field)
			}
		})
	}
}
