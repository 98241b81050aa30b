package lockrow_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mortise-go/mortise/lock/internal/lockrow"
)

const at = 1_764_000_000_123

func TestTicket_IsReadAsItWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		session := rapid.StringMatching(`[A-Z2-7]{1,40}`).Draw(t, "session")
		when := rapid.Int64Range(0, 1<<50).Draw(t, "at")
		owner := rapid.String().Draw(t, "owner")
		under := lockrow.SessionTicket(session, rapid.Int64Range(0, 1<<62).Draw(t, "n"), when, owner)
		own := lockrow.OwnTicket(session, when, time.Duration(rapid.Int64Range(1, lockrow.MaxLength.Milliseconds()).Draw(t, "length"))*time.Millisecond, owner)
		for _, want := range []lockrow.Ticket{under, own} {
			got, err := lockrow.ParseTicket(want.String())
			require.NoError(t, err)
			require.Equal(t, want, got)
			require.LessOrEqual(t, len(got.Owner), lockrow.MaxOwner)
			require.True(t, strings.HasPrefix(owner, got.Owner))
		}
		require.Equal(t, session, under.Session())
		require.Empty(t, own.Session())
	})
}

func TestTicket_TextsSortByTheirTimes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		times := rapid.SliceOfN(rapid.Int64Range(0, 9_999_999_999_999), 2, 2).Draw(t, "times")
		a, b := lockrow.OwnTicket("X", times[0], time.Second, "o"), lockrow.OwnTicket("X", times[1], time.Second, "o")
		require.Equal(t, times[0] < times[1], a.String() < b.String())
	})
}

func TestParseTicket_RefusesWhatNoTicketSays(t *testing.T) {
	for _, text := range []string{
		"", " ", "@", "S/1", "S/1@", "S/1@1764000000123", "/1@1764000000123 o", "S/@1764000000123 o", "S/x@1764000000123 o",
		"S/-1@1764000000123 o", "S/01@-764000000123 o", "S@1764000000123 o", "S/1@1764000000123+5 o", "S@1764000000123+0 o",
		"S@1764000000123+99999999999 o", "S@1764000000123+ o", "S/1@176400000012 o", "S/1@01764000000123 o", "S/1@17640000001230000000 o", "S/1@1125899906842625 o",
		strings.Repeat("S", 300) + "/1@1764000000123 o", "S/1@1764000000123 " + strings.Repeat("o", 65),
	} {
		_, err := lockrow.ParseTicket(text)
		assert.ErrorIs(t, err, lockrow.ErrMalformed, "%q", text)
	}
}

func TestParseTicket_TakesWhatIsJustInRange(t *testing.T) {
	for _, text := range []string{
		strings.Repeat("S", 254) + "/1@1764000000123 o", "S/1@1764000000123 " + strings.Repeat("o", lockrow.MaxOwner), "S/1@1125899906842624 o",
	} {
		_, err := lockrow.ParseTicket(text)
		assert.NoError(t, err, "%q", text)
	}
}

func FuzzParseTicket(f *testing.F) {
	f.Add("S/1@1764000000123 owner")
	f.Add("S@1764000000123+5000 owner")
	f.Fuzz(func(t *testing.T, text string) {
		ticket, err := lockrow.ParseTicket(text)
		if err == nil && ticket.String() != text {
			t.Fatalf("%q was read as %q", text, ticket)
		}
	})
}
