package lock

import (
	"encoding/binary"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// ruled returns zone data (RFC 9636) that has a rule, and no list of transitions.
func ruled(t *testing.T, rule string) *time.Location {
	t.Helper()
	block := append([]byte("TZif2"), make([]byte, 15)...)
	for _, count := range []uint32{0, 0, 0, 0, 1, 4} { // one kind of time, whose name has four bytes
		block = binary.BigEndian.AppendUint32(block, count)
	}
	block = append(block, 0, 0, 0x0e, 0x10, 0, 0) // an hour ahead of UTC
	block = append(block, "CET\x00"...)
	loc, err := time.LoadLocationFromTZData("ruled", slices.Concat(block, block, []byte("\n"+rule+"\n")))
	require.NoError(t, err)
	return loc
}

// In years beyond a location's list of transitions, time.ZoneBounds returns an end that is past on the last day of a leap year.
func TestIntervals_AtTheEndOfALeapYear(t *testing.T) {
	v, err := newIntervals(day, 2*time.Hour+30*time.Minute, ruled(t, "CET-1CEST,M3.5.0,M10.5.0/3"))
	require.NoError(t, err)
	for d := range 12 {
		noon := time.Date(2028, 12, 25+d, 12, 0, 0, 0, time.UTC)
		assert.Equal(t, noon.Add(-10*time.Hour-30*time.Minute), v.time(v.at(noon.UnixMilli())).UTC(), noon)
		assert.Equal(t, noon.Add(13*time.Hour+30*time.Minute), v.time(v.next(noon.UnixMilli())).UTC(), noon)
	}
	summer := time.Date(2028, 7, 1, 12, 0, 0, 0, time.UTC)
	assert.Equal(t, summer.Add(-11*time.Hour-30*time.Minute), v.time(v.at(summer.UnixMilli())).UTC())
}
