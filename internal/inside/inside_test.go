package inside_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/inside"
)

func TestRegister_TheFirstOfANameWins(t *testing.T) {
	var n inside.Names
	seen := func() map[string]any {
		found := map[string]any{}
		require.NoError(t, n.Register("", nil, func(name string, other any) error {
			found[name] = other
			return nil
		}))
		return found
	}
	fine := func(string, any) error { return nil }
	require.NoError(t, n.Register("a", 1, fine))
	require.NoError(t, n.Register("a", 2, fine))
	require.NoError(t, n.Register("nothing", nil, fine))
	clash := errors.New("clash")
	require.ErrorIs(t, n.Register("b", 3, func(name string, _ any) error {
		if name == "a" {
			return clash
		}
		return nil
	}), clash)
	assert.Equal(t, map[string]any{"a": 1}, seen())
}

func TestLastServerTime_IsTheLastThatWasSeen(t *testing.T) {
	var table inside.Table[int]
	_, seen := table.LastServerTime()
	assert.False(t, seen)
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	table.See(inside.ServerTime{Server: at.Add(-time.Hour)})
	table.See(inside.ServerTime{Server: at, Trip: time.Second})
	got, seen := table.LastServerTime()
	assert.True(t, seen)
	assert.Equal(t, inside.ServerTime{Server: at, Trip: time.Second}, got)
}

func TestCorrect_ComparesWithDynamoDBsClock(t *testing.T) {
	var clocks inside.Table[int]
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	assert.Equal(t, now, clocks.Correct(now), "nothing is known yet")
	for off, want := range map[time.Duration]time.Duration{0: 0, -time.Second: 0, 3 * time.Second: 0, 4 * time.Second: 0, time.Hour: time.Hour, -time.Hour: -time.Hour} {
		clocks.See(inside.ServerTime{Server: now.Add(off), Local: now, Trip: time.Second})
		assert.Equal(t, now.Add(time.Minute+want), clocks.Correct(now.Add(time.Minute)), off)
	}
}
