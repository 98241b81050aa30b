package lockrow_test

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock/internal/lockrow"
	"github.com/mortise-go/mortise/table"
)

var names = lockrow.NamesOf(keys.Scheme{PK: "pk", SK: "sk", Type: "type", TTL: "ttl"}, "")

func s(v string) types.AttributeValue { return &types.AttributeValueMemberS{Value: v} }
func n(v string) types.AttributeValue { return &types.AttributeValueMemberN{Value: v} }

func list(tickets ...lockrow.Ticket) types.AttributeValue {
	l := &types.AttributeValueMemberL{}
	for _, t := range tickets {
		l.Value = append(l.Value, s(t.String()))
	}
	return l
}

func ticket(n int64) lockrow.Ticket { return lockrow.SessionTicket("SESSION", n, at, "host/1") }

func TestParse_ReadsWhatARowSays(t *testing.T) {
	row, err := names.Parse(table.Item{
		"type": s("mortise.Lock"), "line": list(ticket(1), ticket(2)), "fence": n("7"), "writes": n("3"), "since": n("1764000000200"), "hold": n("50"),
		"data": s("payload"), "edits": n("2"), "ran": n("60000"), "running": n("120000"), "forced": s("by hand"), "forced_fence": n("6"), "ttl": n("1764600000"),
		"note": s("of the application"),
	})
	require.NoError(t, err)
	assert.Equal(t, lockrow.Row{
		Line: []lockrow.Ticket{ticket(1), ticket(2)}, Fence: 7, Writes: 3, Since: 1764000000200, Hold: 50, Data: s("payload"), Edits: 2,
		Ran: 60000, Running: 120000, ForcedFence: 6, TTL: 1764600000,
	}, row)
	assert.Equal(t, int64(1764000000200), row.HeldSince(0))
	assert.Equal(t, 1, row.Place("SESSION/2"))
	assert.Equal(t, -1, row.Place("SESSION/20"))
	assert.Equal(t, []int{0, 1}, row.Of("SESSION"))
	assert.Empty(t, row.Of("SESS"))
}

func TestParse_RefusesRowsThatAreNoLocks(t *testing.T) {
	for _, item := range []table.Item{nil, {}, {"type": s("Order"), "fence": n("1")}, {"type": n("1")}, {"line": list(ticket(1)), "fence": n("1")}} {
		_, err := names.Parse(item)
		assert.ErrorIs(t, err, lockrow.ErrNotLock)
	}
}

func TestParse_RefusesRowsThatAreNotInOrder(t *testing.T) {
	long := make([]lockrow.Ticket, lockrow.Cap+1)
	for i := range long {
		long[i] = ticket(int64(i))
	}
	tests := map[string]table.Item{
		"no fence":              {},
		"fence 1.5":             {"fence": n("1.5")},
		"fence 0":               {"fence": n("0")},
		"fence below 0":         {"fence": n("-1")},
		"fence at its maximum":  {"fence": n("9223372036854775807")},
		"fence beyond":          {"fence": n("1e40")},
		"fence as a string":     {"fence": s("7")},
		"line as a string":      {"fence": n("7"), "line": s("SESSION/1")},
		"line of numbers":       {"fence": n("7"), "line": &types.AttributeValueMemberL{Value: []types.AttributeValue{n("1")}}},
		"line of other strings": {"fence": n("7"), "line": &types.AttributeValueMemberL{Value: []types.AttributeValue{s("me")}}},
		"line beyond its cap":   {"fence": n("7"), "line": list(long...)},
		"a ticket twice":        {"fence": n("7"), "line": list(ticket(1), ticket(2), ticket(1))},
		"writes below 0":        {"fence": n("7"), "writes": n("-1")},
		"writes out of range":   {"fence": n("7"), "writes": n("4611686018427387904")},
		"edits out of range":    {"fence": n("7"), "edits": n("4611686018427387904")},
		"since out of range":    {"fence": n("7"), "since": n("1125899906842625")},
		"renewed out of range":  {"fence": n("7"), "renewed": n("1125899906842625")},
		"ttl as a string":       {"fence": n("7"), "ttl": s("tomorrow")},
		"forced as a number":    {"fence": n("7"), "forced": n("1")},
	}
	for name, item := range tests {
		t.Run(name, func(t *testing.T) {
			item["type"] = s("mortise.Lock")
			_, err := names.Parse(item)
			assert.ErrorIs(t, err, lockrow.ErrMalformed)
		})
	}
}

func TestParse_TakesWhatIsJustInRange(t *testing.T) {
	for name, item := range map[string]table.Item{
		"the least fence":    {"fence": n("1")},
		"the greatest fence": {"fence": n("9223372036854775806")},
		"the latest times":   {"fence": n("7"), "since": n("1125899906842624"), "renewed": n("1125899906842624")},
		"the last numbers":   {"fence": n("7"), "writes": n("4611686018427387903"), "edits": n("4611686018427387903")},
		"the most permits":   {"permits": n("100"), "line": list(), "stays": numbers(), "next": numbers("1")},
	} {
		t.Run(name, func(t *testing.T) {
			item["type"] = s("mortise.Lock")
			_, err := names.Parse(item)
			assert.NoError(t, err)
		})
	}
}

func TestHeldSince_IsTheLaterTimeForTheFirstPlaceOnly(t *testing.T) {
	row := lockrow.Row{Since: at + 5}
	assert.Equal(t, int64(at+5), row.HeldSince(0), "free")
	row.Line = []lockrow.Ticket{ticket(1), ticket(2)}
	assert.Equal(t, int64(at+5), row.HeldSince(0))
	assert.Equal(t, int64(at), row.HeldSince(1))
	row.Permits = 2
	assert.Equal(t, int64(at), row.HeldSince(0), "Since is when another permit was given back")
	row = lockrow.Row{Since: at - 5, Line: row.Line}
	assert.Equal(t, int64(at), row.HeldSince(0), "it came after the lock was free")
}

func TestParse_TellsARowOfTheFirstEdition(t *testing.T) {
	held := table.Item{"type": s("mortise.Lock"), "fence": n("7"), "nonce": s("ABC"), "lease": n("20000")}
	bySession := table.Item{"type": s("mortise.Lock"), "fence": n("7"), "nonce": s("ABC"), "session": s("S")}
	for _, item := range []table.Item{held, bySession} {
		_, err := names.Parse(item)
		require.ErrorIs(t, err, lockrow.ErrMalformed, "%v", item)
		assert.ErrorContains(t, err, "older version")
	}
	_, err := names.Parse(table.Item{"type": s("Lock"), "fence": n("7")})
	assert.ErrorIs(t, err, lockrow.ErrNotLock, "an application's type may have that name")
}

func TestEnds_CountsFromWhatIsLatest(t *testing.T) {
	own := []lockrow.Ticket{lockrow.OwnTicket("OWN", at, time.Minute, "")}
	for name, row := range map[string]lockrow.Row{
		"taken": {Line: own, Since: at - 5000}, "came to be first": {Line: own, Since: at}, "renewed": {Line: own, Since: at - 5000, Renewed: at},
	} {
		assert.Equal(t, int64(at+60_000), row.Ends(), name)
		row.Since += 7000
		assert.Equal(t, max(at, row.Since)+60_000, row.Ends(), name)
	}
	under := lockrow.Row{Line: []lockrow.Ticket{lockrow.SessionTicket("S", 1, at, "")}}
	assert.Zero(t, under.Ends())
}
