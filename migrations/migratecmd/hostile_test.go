package migratecmd

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/migrations"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// Records by another hand: whatever is in them, it does not control a terminal, and what is written as JSON is JSON.
func TestCommand_RecordsByAnotherHand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tbl, err := table.Open(tabletest.New(t).Client(), table.Schema{Name: "app"})
		require.NoError(t, err)
		require.NoError(t, tbl.Ensure(t.Context()))
		locks, err := lock.New(tbl, lock.Config{})
		require.NoError(t, err)
		defer func() { assert.NoError(t, locks.Close(t.Context())) }()
		m, err := migrations.New(tbl, locks, []migrations.Migration{{ID: "2_mine", Up: takes(0)}})
		require.NoError(t, err)
		const evil = "\x1b]52;c;cHduZWQ=\a\x1b[2J\u009b31m\u202e\u2066\r\n\t\x00%s%n<b>"
		put := func(sk string, change ...table.Change) {
			key := keys.NewKey("MIGRATIONS#main", sk)
			require.NoError(t, tbl.Write(t.Context(), table.Update(key, change...)))
		}
		set := func(name string, value any) table.Change { return table.Attr(name).Set(value) }
		// The first moment of the year 0 in the east, and the last one of 9999 in the west, are in other years of UTC.
		put("MIGRATION#"+evil, set("type", "mortise.Migration"), set("state", "failed"), set("name", evil), set("owner", evil), set("error", evil), set("step", evil),
			set("revision", evil), set("base", 1), set("fence", int64(math.MaxInt64)), set("attempts", int64(math.MaxInt64)), set("took", int64(math.MinInt64)),
			set("started", "0000-01-01T00:00:00+23:00"), set("finished", "9999-12-31T23:59:59-23:00"))
		for _, args := range []string{"status", "plan", "up", "down", "validate", "repair", "repair -yes", "status"} {
			for _, width := range []int{0, 80} {
				var stdout, stderr bytes.Buffer
				c := Command{Stdout: &stdout, Stderr: &stderr, Stdin: strings.NewReader("y\n"), terminal: func(any) (int, bool) { return width, width > 0 }}
				_ = c.Run(t.Context(), m, strings.Fields(args)) // it may fail
				for line := range strings.Lines(stdout.String() + stderr.String()) {
					assert.False(t, strings.ContainsFunc(strings.TrimSuffix(line, "\n"), func(r rune) bool { return !unicode.IsPrint(r) }), "%s: %q", args, line)
				}
				stdout.Reset()
				_ = c.Run(t.Context(), m, strings.Fields(args+" -json"))
				assert.True(t, json.Valid(stdout.Bytes()), "%s: %s", args, stdout.String())
				assert.NotContains(t, stderr.String(), "MarshalJSON")
			}
		}
	})
}
