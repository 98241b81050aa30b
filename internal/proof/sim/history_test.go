package sim

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Events of one instant are put in an order that does not depend on which goroutine was first.
func TestHistory_OrdersWhatHappensAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHistory(true)
		time.Sleep(time.Second)
		for _, e := range []Event{
			{Process: 2, Worker: "w", Kind: Noted, Text: "seventh"},
			{Process: 1, Worker: "~", Kind: Traffic, Text: "sixth"},
			{Process: 1, Worker: "w", Kind: Refused, Text: "fifth"},
			{Process: 1, Worker: "w", Kind: Lost, Lock: "b", Fence: 1, Text: "fourth"},
			{Process: 1, Worker: "w", Kind: Lost, Lock: "a", Fence: 8, Text: "third"},
			{Process: 1, Worker: "w", Kind: AskedBack, Lock: "a", Fence: 7, Text: "second"},
			{Process: 1, Worker: "w", Kind: Lost, Lock: "a", Fence: 7, Text: "first"},
		} {
			h.add(e)
		}
		time.Sleep(time.Second)
		h.add(Event{Text: "eighth"})
		h.close()
		h.add(Event{Text: "cleaning up"})
		lines := strings.Split(strings.TrimSpace(text(h.events())), "\n")
		require.Len(t, lines, 8)
		for i, word := range []string{"first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth"} {
			assert.True(t, strings.HasSuffix(lines[i], " "+word), "%v", lines[i])
		}
		assert.True(t, strings.HasPrefix(strings.TrimSpace(lines[7]), "2.000000000 p0"), "%v", lines[7])
	})
}

func TestHistory_IsKeptOnlyWhereAskedFor(t *testing.T) {
	h := newHistory(false)
	h.add(Event{Text: "something"})
	assert.Empty(t, h.events())
}

// Random texts get names in the order in which they appear.
func TestAliases_FollowTheOrderOfAppearance(t *testing.T) {
	h := newHistory(true)
	list := []string{"SESSION#" + strings.Repeat("A", 26), strings.Repeat("B", 26), strings.Repeat("A", 26) + "|x", "LOCK#a"}
	h.aliases(list)
	assert.Equal(t, []string{"SESSION#r1", "r2", "r1|x", "LOCK#a"}, list)
}

func TestDifference_BeginsWhereHistoriesDiffer(t *testing.T) {
	assert.Empty(t, Difference("a\nb\n", "a\nb\n"))
	assert.Equal(t, "the histories differ from line 2 on:\na\nb\n\n\na\nc\n", Difference("a\nb\n", "a\nc\n"))
	assert.Contains(t, Difference("a\n", "a\nb\n"), "from line 2 on")
}
