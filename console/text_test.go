package console

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
)

func TestChanges_TellWhatHappenedBetweenTwoReads(t *testing.T) {
	place := func(owner string) lock.Place { return lock.Place{Owner: owner, Ticket: "ticket of " + owner} }
	line := func(owners ...string) (list []lock.Place) {
		for _, o := range owners {
			list = append(list, place(o))
		}
		return list
	}
	const free, gone = true, false
	for name, c := range map[string]struct {
		was, is         lock.Record
		existed, exists bool
		want            []string
	}{
		"nothing":      {lock.Record{Fence: 5, Line: line("a", "b")}, lock.Record{Fence: 5, Line: line("a", "b")}, true, true, nil},
		"no row":       {lock.Record{}, lock.Record{}, false, false, nil},
		"deleted":      {lock.Record{Fence: 5}, lock.Record{}, free, gone, []string{"the row was deleted"}},
		"created":      {lock.Record{}, lock.Record{Fence: 5, Line: line("a"), Writes: 7}, gone, free, []string{"a holds the lock, with fence 5"}},
		"acquired":     {lock.Record{Fence: 5}, lock.Record{Fence: 5, Line: line("a")}, true, true, []string{"a holds the lock, with fence 5"}},
		"released":     {lock.Record{Fence: 5, Line: line("a")}, lock.Record{Fence: 6}, true, true, []string{"a has left", "nobody holds the lock"}},
		"handed over":  {lock.Record{Fence: 5, Line: line("a", "b")}, lock.Record{Fence: 6, Line: line("b")}, true, true, []string{"a has left", "b holds the lock, with fence 6"}},
		"entered":      {lock.Record{Fence: 5, Line: line("a")}, lock.Record{Fence: 5, Line: line("a", "b", "c")}, true, true, []string{"b has entered the line", "c has entered the line"}},
		"gave up":      {lock.Record{Fence: 5, Line: line("a", "b", "c")}, lock.Record{Fence: 5, Line: line("a", "c")}, true, true, []string{"b has left the line"}},
		"several":      {lock.Record{Fence: 5, Line: line("a")}, lock.Record{Fence: 8, Line: line("d", "e")}, true, true, []string{"3 changes of the first place, of which the last one is shown", "a has left", "d holds the lock, with fence 8", "e has entered the line"}},
		"permits":      {lock.Record{Permits: 2, Line: line("a", "b", "c")}, lock.Record{Permits: 2, Line: line("a", "c", "d")}, true, true, []string{"b has left", "c has a permit", "d has entered the line"}},
		"forced":       {lock.Record{Fence: 5, Line: line("a")}, lock.Record{Fence: 6, ForcedFence: 5}, true, true, []string{"taken by force from the holder with fence 5", "a has left", "nobody holds the lock"}},
		"writes":       {lock.Record{Fence: 5, Line: line("a"), Writes: 1}, lock.Record{Fence: 5, Line: line("a"), Writes: 4, Edits: 1}, true, true, []string{"guarded writes up to number 4", "a new payload"}},
		"run begun":    {lock.Record{Fence: 5}, lock.Record{Fence: 5, Running: 86_400_000}, true, true, []string{"the run for 1970-01-02 00:00:00 UTC has begun"}},
		"run finished": {lock.Record{Fence: 5, Running: 86_400_000}, lock.Record{Fence: 5, Ran: 86_400_000}, true, true, []string{"the run for 1970-01-02 00:00:00 UTC has finished"}},
		"run failed":   {lock.Record{Fence: 5}, lock.Record{Fence: 5, Ran: 86_400_000, Failed: 86_400_000}, true, true, []string{"the run for 1970-01-02 00:00:00 UTC has failed"}},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.want, changes(&c.was, &c.is, c.existed, c.exists)) })
	}
}

func TestText_WritesTimesAndNumbersForPeople(t *testing.T) {
	for d, want := range map[time.Duration][2]string{
		-time.Second:                    {"now", "now"},
		999 * time.Millisecond:          {"now", "now"},
		59 * time.Second:                {"59 s", "59 s"},
		time.Minute:                     {"1 min", "1 min"},
		9*time.Minute + 5*time.Second:   {"9 min 5 s", "9 min"},
		10*time.Minute + 5*time.Second:  {"10 min", "10 min"},
		2*time.Hour + 3*time.Minute:     {"2 h 3 min", "2 h"},
		23*time.Hour + 59*time.Minute:   {"23 h", "23 h"},
		49*time.Hour + 30*time.Minute:   {"2 d 1 h", "2 d"},
		400 * 24 * time.Hour:            {"400 d", "400 d"},
		25*time.Hour - time.Millisecond: {"1 d", "1 d"},
	} {
		assert.Equal(t, want, [2]string{age(d), brief(d)}, d)
	}
	assert.Equal(t, "2026-11-29 04:30:00 UTC", clock(time.Date(2026, time.November, 28, 23, 30, 0, 0, time.FixedZone("", -5*3600))))
	assert.Equal(t, "every second", every(300*time.Millisecond))
	assert.Equal(t, "every 11 s", every(10_700*time.Millisecond))
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1\u202f000", 1234567: "1\u202f234\u202f567"} {
		assert.Equal(t, want, number(n))
	}
}

// Values are shown as they are in the table: a decoded number could be another one. A payload is formatted as its attribute is.
func TestValue_OfEachKind(t *testing.T) {
	const big = "9007199254740993" // that no float64 is
	n, no := &types.AttributeValueMemberN{Value: big}, &types.AttributeValueMemberNULL{Value: true}
	for _, tt := range []struct {
		av                  types.AttributeValue
		kind, value, nested string
	}{
		{&types.AttributeValueMemberS{Value: "a<\"\x1b"}, "text", "a<\"\x1b", `"a<\"\x1b"`},
		{&types.AttributeValueMemberS{}, "text", "", `""`},
		{n, "number", big, big},
		{&types.AttributeValueMemberB{Value: []byte{0, 255}}, "bytes", "AP8=", "AP8="},
		{&types.AttributeValueMemberBOOL{Value: true}, "boolean", "true", "true"},
		{no, "null", "null", "null"},
		{&types.AttributeValueMemberL{Value: []types.AttributeValue{n, no}}, "list", "[" + big + ", null]", "[" + big + ", null]"},
		{&types.AttributeValueMemberM{Value: map[string]types.AttributeValue{"b": no, "a": n}}, "map", "{a: " + big + ", b: null}", "{a: " + big + ", b: null}"},
		{&types.AttributeValueMemberSS{Value: []string{"a", "b"}}, "set", `{"a", "b"}`, `{"a", "b"}`},
		{&types.AttributeValueMemberNS{Value: []string{"1", big}}, "set", "{1, " + big + "}", "{1, " + big + "}"},
		{&types.AttributeValueMemberBS{Value: [][]byte{{0, 255}, {1}}}, "set", "{AP8=, AQ==}", "{AP8=, AQ==}"},
	} {
		var d lock.Data
		require.NoError(t, d.UnmarshalDynamo(tt.av))
		assert.Equal(t, []string{tt.kind, tt.value, tt.nested}, []string{kind(tt.av), value(tt.av), payload(d)})
	}
	assert.Equal(t, strings.Repeat("x", maxShown), cut(strings.Repeat("x", maxShown)))
	assert.Equal(t, "x"+strings.Repeat("ä", maxShown/2-1)+"…", cut("x"+strings.Repeat("ä", maxShown)), "no half of a character")
}

// What no list shows of a lock is not kept: rows by another hand can have 400 KB of it each.
func TestCensus_KeepsNoTextsThatItDoesNotShow(t *testing.T) {
	var data lock.Data
	require.NoError(t, data.UnmarshalDynamo(&types.AttributeValueMemberS{Value: "payload"}))
	r := lock.Record{Partition: "LOCK#a", Of: "a", Line: []lock.Place{{Ticket: "s/1", Owner: "o"}}, Data: data, Forced: "reason"}
	s := &census{now: time.Now, known: map[keys.Key]sight{}}
	s.keep(r)
	kept := s.snapshot().records
	require.Len(t, kept, 1)
	assert.True(t, kept[0].Data.IsZero())
	assert.Empty(t, kept[0].Forced)
	assert.Equal(t, r.Line, kept[0].Line)
}

// A lock for which there is no room is counted, in each pass anew. One that is known has its room, also if the state that was read is older.
func TestCensus_KeepsNoMoreThanThereIsRoomFor(t *testing.T) {
	s := &census{now: time.Now, known: map[keys.Key]sight{}}
	for i := range maxLocks {
		require.True(t, s.keep(lock.Record{Partition: "LOCK", Of: strconv.Itoa(i), Fence: 5}))
	}
	assert.False(t, s.keep(lock.Record{Partition: "LOCK", Of: "one more", Fence: 5}))
	assert.True(t, s.keep(lock.Record{Partition: "LOCK", Of: "7", Fence: 4}))
	assert.True(t, s.keep(lock.Record{Partition: "LOCK", Of: "8", Fence: 6}))
	assert.Equal(t, []int64{5, 6}, []int64{s.known[keys.NewKey("LOCK", "7")].Fence, s.known[keys.NewKey("LOCK", "8")].Fence})
	assert.Len(t, s.known, maxLocks)
}
