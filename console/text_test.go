package console

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/migrations"
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

func TestRuns_TellOfTheLastAndThePresentOne(t *testing.T) {
	const one, two = 86_400_000, 2 * 86_400_000
	begun, failed, finished := "The run for 1970-01-03 00:00:00 UTC has begun and not finished.", "The run for 1970-01-02 00:00:00 UTC has failed.", "The run for 1970-01-02 00:00:00 UTC has finished."
	for _, tt := range []struct {
		ran, running, failed int64
		want                 []string
	}{
		{0, 0, 0, nil},
		{0, two, 0, []string{begun}},
		{one, 0, 0, []string{finished}},
		{one, one, 0, []string{finished}},
		{one, two, one, []string{begun, failed}},
		{one, two, 1, []string{begun, finished}},
	} {
		assert.Equal(t, tt.want, runs(&lock.Record{Ran: tt.ran, Running: tt.running, Failed: tt.failed}))
	}
}

func TestMigrations_TellHowTheyContinue(t *testing.T) {
	at := time.Date(2026, time.November, 28, 23, 30, 0, 0, time.FixedZone("", -5*3600))
	running, failed := migrations.Record{State: migrations.Running, Owner: "o", Started: at, Attempts: 2}, migrations.Record{State: migrations.Failed, Step: "copy", Attempts: 1}
	down := failed
	down.Down, down.Step = true, ""
	const begun = "up was begun by o at 2026-11-29 04:30:00 UTC, attempt 2; "
	for want, s := range map[string]migrations.Status{
		"":                                    {State: migrations.Applied, Record: &migrations.Record{State: migrations.Applied}},
		"recorded as applied, without a run":  {State: migrations.Applied, Record: &migrations.Record{State: migrations.Applied, Baseline: true}},
		"it has changed since it was applied": {State: migrations.Drifted, Record: &migrations.Record{State: migrations.Applied}},
		begun + "it runs now":                 {State: migrations.Running, Record: &running, Live: true},
		begun + "it was interrupted: up continues it":                               {State: migrations.Running, Record: &running, Resumable: true},
		"up has failed in step copy, attempt 1; an operator has to decide (repair)": {State: migrations.Failed, Record: &failed},
		"down has failed, attempt 1; down continues it":                             {State: migrations.Failed, Record: &down, Resumable: true},
		"only the table has it":                                                     {State: migrations.Missing, Record: &migrations.Record{State: migrations.Applied}},
		begun + "it was interrupted: the program that has it continues it, or an operator decides (repair); only the table has it": {State: migrations.Missing, Record: &running},
	} {
		assert.Equal(t, want, note(&s))
	}
	for want, s := range map[stepView]migrations.StepStatus{
		{Text: "done", Done: true}: {Done: true},
		{Text: "under way"}:        {},
		{Text: "done: 1\u202f000 items read, 7 changed", Done: true}:                                                 {Done: true, Segments: 4, SegmentsDone: 4, Seen: 1000, Changed: 7, Total: 1000},
		{Text: "5 items read, 0 changed, 0 of 4 segments done"}:                                                      {Segments: 4, Seen: 5},
		{Text: "9 items read of about 6, 0 changed, 3 of 4 segments done", Bar: true, Percent: 100}:                  {Segments: 4, SegmentsDone: 3, Seen: 9, Total: 6},
		{Text: "1\u202f000 items read of about 3\u202f000, 5 changed, 0 of 4 segments done", Bar: true, Percent: 33}: {Segments: 4, Seen: 1000, Changed: 5, Total: 3000},
	} {
		assert.Equal(t, want, viewStep(&s))
	}
}

func TestState_OfASession(t *testing.T) {
	now := time.Now()
	for want, s := range map[string]sighting{
		"ended, it has no row dead":                         {},
		"marked dead 1 min ago dead":                        {found: true, Session: lock.Session{Dead: now.Add(-time.Minute), Expires: now.Add(time.Hour)}},
		"alive, it does not know the time alive":            {found: true},
		"silent, its lease ended 3 s ago dead":              {found: true, at: now, Session: lock.Session{Expires: now.Add(-3 * time.Second)}},
		"late, its lease has just ended late":               {found: true, at: now, Session: lock.Session{Expires: now.Add(-time.Second)}},
		"alive when its row was read, 5 s ago alive":        {found: true, at: now.Add(-5 * time.Second), Session: lock.Session{Expires: now.Add(-3 * time.Second)}},
		"alive, its lease ends in 1 s unless renewed alive": {found: true, at: now, Session: lock.Session{Expires: now}},
	} {
		text, class := state(s, now)
		assert.Equal(t, want, text+" "+class)
	}
}

func TestFreshness_TellsHowOldAListCanBe(t *testing.T) {
	assert.Equal(t, "All locks are read every 11 s, with the whole table, since they have no index. The first 50 are read every 4 s. 3 more are counted and not shown.",
		(&lockList{passes: 1, took: 11 * time.Second, more: 3}).freshness())
	assert.Contains(t, (&lockList{index: true}).freshness(), "Reading the index of locks for the first time")
	assert.NotContains(t, (&lockList{index: true, passes: 1}).freshness(), "whole table")
}

// A timer that has fired already must not end a feed that a reader has entered meanwhile.
func TestFeed_DoesNotEndUnderAReader(t *testing.T) {
	c := &Console{}
	c.ctx, c.cancel = context.WithCancelCause(t.Context())
	var ended error
	f := newFeed(c, func(ctx context.Context, _ func(int)) {
		<-ctx.Done()
		ended = context.Cause(ctx)
	})
	_, leave, err := f.enter()
	require.NoError(t, err)
	f.end()
	assert.NotNil(t, f.stop)
	leave()
	f.end()
	f.end() // its own timer
	require.NoError(t, c.Close())
	require.ErrorIs(t, ended, errClosed)
	_, _, err = f.enter()
	require.ErrorIs(t, err, errClosed)
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
