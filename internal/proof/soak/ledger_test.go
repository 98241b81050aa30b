package soak

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
)

func TestLedger_RefusesWhatNoWorkerSays(t *testing.T) {
	g := newLedger()
	for op, want := range map[string]string{`"op":"a"`: "", `"op":"c","long":true`: "c"} {
		long, err := g.take([]byte(`{"kind":"begun","operation":{"workload":"set",` + op + `}}`))
		require.NoError(t, err)
		assert.Equal(t, want, long)
	}
	for _, line := range []string{
		"panic: x", `{"kind":"begun"}`, `{"kind":"begun","operation":{"op":"a"}}`, `{"kind":"ended","op":"b"}`, `{"kind":"else"}`,
	} {
		_, err := g.take([]byte(line))
		assert.Error(t, err, line)
	}
	assert.Equal(t, []Tally{{Workload: "set", Operations: 2, Unknown: 2}}, g.tallies([]string{"set"}))
}

// The control ends when an update is lost for certain: two acknowledged writes have the same place.
func TestLedger_CountsWhatIsWrittenTwice(t *testing.T) {
	g := newLedger()
	for i, o := range []struct {
		workload, row string
		place         int
		outcome       outcome
	}{
		{"set", "set 0", 1, acknowledged},
		{"set", "set 1", 1, acknowledged}, // another row
		{"counter", "set 0", 1, acknowledged},
		{"set", "set 0", 2, refused},
		{"set", "set 0", 2, unknown},
		{"set", "set 0", 2, acknowledged}, // the first to be sure of
		{"bank", "BANK", 0, acknowledged}, // has no places
		{"bank", "BANK", 0, acknowledged},
		{"set", "set 0", 1, acknowledged}, // began before it was written by the first
	} {
		for _, line := range []string{
			fmt.Sprintf(`{"kind":"begun","operation":{"op":"%d","workload":%q,"row":%q,"value":%d}}`, i, o.workload, o.row, o.place),
			fmt.Sprintf(`{"kind":"ended","op":"%d","outcome":%q}`, i, o.outcome),
		} {
			_, err := g.take([]byte(line))
			require.NoError(t, err)
		}
	}
	for i, want := range []int{1, 0, 0} {
		tally := g.tallies([]string{"set", "counter", "bank"})[i]
		assert.Equal(t, want, tally.Twice, tally.Workload)
	}
}

// A line of a worker arrives in one piece, however long an error is.
func TestJournal_LinesFitIntoAPipe(t *testing.T) {
	var text strings.Builder
	j := &journal{to: &text}
	long := strings.Repeat("ä", 3000)
	j.write(record{Kind: odd, Workload: "set", Error: long})
	assert.Less(t, text.Len(), 4096)
	g := newLedger()
	_, err := g.take([]byte(text.String()))
	require.NoError(t, err)
	require.Len(t, g.found(), 1)
	assert.True(t, strings.HasPrefix(long, strings.TrimSuffix(g.found()[0].Text, "…")))
}

func TestJournal_EndsWithItsReader(t *testing.T) {
	broken, told := errors.New("broken pipe"), []error(nil)
	j := &journal{to: failing{broken}, fail: func(err error) { told = append(told, err) }}
	j.write(record{Kind: idle})
	j.write(record{Kind: idle})
	require.Len(t, told, 1)
	assert.ErrorIs(t, told[0], broken)
}

type failing struct{ error }

func (f failing) Write([]byte) (int, error) { return 0, f.error }

// Only the guard's refusal proves that nothing was applied.
func TestOutcomeOf_TrustsOnlyTheGuardsRefusal(t *testing.T) {
	for _, tc := range []struct {
		err  error
		want outcome
		odd  bool
	}{
		{nil, acknowledged, false},
		{fmt.Errorf("x: %w", lock.ErrStolen), refused, false},
		{lock.ErrExpired, refused, false},
		{errors.Join(table.ErrCondition, lock.ErrStolen), refused, false},
		{table.ErrUnreachable, unknown, false},
		{table.ErrThrottled, unknown, false},
		{table.ErrConflict, unknown, false},
		{errors.Join(table.ErrCondition, lock.ErrReleased), unknown, false},
		{table.ErrCondition, unknown, true},
		{lock.ErrMalformed, unknown, true},
		{table.ErrInvalid, unknown, true},
		{&types.InternalServerError{}, unknown, false},
		{io.ErrUnexpectedEOF, unknown, true},
	} {
		assert.Equal(t, tc.want, outcomeOf(tc.err), tc.err)
		assert.Equal(t, tc.odd, unexpected(tc.err), tc.err)
	}
}

func TestSchedule_Repeats(t *testing.T) {
	with := func() *schedule {
		return &schedule{rand: rand.New(rand.NewPCG(1, 2)), calm: time.Second}
	}
	a, b, made := with(), with(), [troubles]int{}
	for range 1000 {
		s := a.next()
		require.Equal(t, s, b.next())
		made[s.trouble]++
		assert.True(t, minCalm <= s.calm && s.calm <= time.Second, s.calm)
		if s.trouble == paused {
			assert.Greater(t, s.length, leaseTime)
		}
	}
	for tr, n := range made {
		assert.InDelta(t, 100*trouble(tr).weight(), n, 60, tr)
	}
}

func TestReport_TellsWhatWasCounted(t *testing.T) {
	r := &Report{
		Seed: 7, Unguarded: true, Elapsed: 61 * time.Second, Duration: time.Hour, Lost: 2,
		Workloads: []Tally{{"set", 10, 7, 2, 1, 3, 0}, {"bank", 1, 1, 0, 0, 0, 0}}, Requests: 90,
		Faults: []Count{{"throttled", 4}, {"5xx", 1}}, Troubles: []Count{{"kills", 2}},
	}
	assert.Equal(t, "1:01 of 60:00: 11 operations, 8 acknowledged, 2 refused, 1 unknown; 5 faults; kills 2; 0 violations", r.Line())
	for range shownViolations + 2 {
		r.Violations = append(r.Violations, Violation{"set", "a is lost"})
	}
	var text strings.Builder
	n, err := r.WriteTo(&text)
	require.NoError(t, err)
	assert.EqualValues(t, text.Len(), n)
	for _, want := range []string{
		"set       10          7             2        1        3\n", "all       11          8             2        1        3\n",
		"throttled  4\n", "kills      2\n", "2 of 7 acknowledged updates of sets lost\n",
		"52 violations in 1:01, seed 7\n  set: a is lost\n", "  and 2 more\n",
	} {
		assert.Contains(t, text.String(), want)
	}
}
