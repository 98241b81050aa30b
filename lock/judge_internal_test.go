package lock

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/mortise-go/mortise/lock/internal/lockrow"
)

// What is known of the first ticket decides what is done about it.
func TestJudge_FollowsFromTheEvidence(t *testing.T) {
	const lease = 20 * time.Second
	session := suspect{session: "S", lease: lease, wait: lease}
	own := suspect{lease: lease, wait: lease}
	with := func(s suspect, change func(*suspect)) suspect {
		change(&s)
		return s
	}
	for name, c := range map[string]struct {
		suspect suspect
		want    action
		watched bool
	}{
		"nobody is before":                  {suspect{}, fine, false},
		"it has just come":                  {session, fine, false},
		"it was never looked at":            {with(session, func(s *suspect) { s.looked = never }), fine, true},
		"nor is it for others to look":      {with(session, func(s *suspect) { s.looked, s.ahead = never, 2 }), fine, false},
		"it stays":                          {with(session, func(s *suspect) { s.since = lease / 4 }), fine, true},
		"it stays, and others are before":   {with(session, func(s *suspect) { s.since, s.ahead = lease/4, 2 }), fine, false},
		"it stays for a lease":              {with(session, func(s *suspect) { s.since = lease }), ask, true},
		"and was asked about it":            {with(session, func(s *suspect) { s.since, s.asked = lease, true }), fine, true},
		"and another one asks first":        {with(session, func(s *suspect) { s.since, s.ahead = lease*3/2-1, 1 }), fine, true},
		"and the other one does not":        {with(session, func(s *suspect) { s.since, s.ahead = lease*3/2, 1 }), ask, true},
		"it may be dead":                    {with(session, func(s *suspect) { s.wait = 0 }), evict, false},
		"it may be, and another one acts":   {with(session, func(s *suspect) { s.wait, s.ahead = 0, 1 }), fine, false},
		"it may be, and two others do not":  {with(session, func(s *suspect) { s.wait, s.ahead, s.since, s.silent = 0, 2, 3*lease, 3*lease }), evict, true},
		"it may be, and was renewed lately": {with(session, func(s *suspect) { s.wait, s.ahead, s.since = 0, 2, 9*lease }), fine, true},
		"a ghost of this process":           {with(session, func(s *suspect) { s.own = true }), ghost, false},
		"another goroutine's":               {with(session, func(s *suspect) { s.own, s.claimed, s.since = true, true, 9*lease }), fine, false},
		"a lease of its own":                {with(own, func(s *suspect) { s.since = lease / 2 }), fine, false},
		"that has ended":                    {with(own, func(s *suspect) { s.since, s.wait = lease, 0 }), evict, false},
		"long ago":                          {with(own, func(s *suspect) { s.wait = -lease }), evict, false},
		"long ago, and another one acts":    {with(own, func(s *suspect) { s.wait, s.ahead = -lease, 1 }), fine, false},
		"of this process":                   {with(own, func(s *suspect) { s.wait, s.own, s.claimed = -lease, true, true }), fine, false},
	} {
		assert.Equal(t, c.want, c.suspect.judge(), name)
		_, watched := c.suspect.look(time.Second, false)
		assert.Equal(t, c.watched, watched, name)
	}
}

// When a session is looked at follows from when it was before.
func TestLook_AtASessionIsDue(t *testing.T) {
	const lease, next, no = 20 * time.Second, 500 * time.Millisecond, -1
	for name, c := range map[string]struct {
		suspect suspect
		begins  bool
		want    time.Duration
	}{
		"all who begin look once":            {suspect{looked: never, ahead: 9}, true, firstLook},
		"but not where one has done so":      {suspect{looked: lease, ahead: 0}, true, no},
		"the next one does when it holds":    {suspect{looked: never, since: 1}, false, next},
		"which is seen again with the next":  {suspect{looked: 2, since: 1}, false, lease/4 - 2},
		"and not again for a quarter":        {suspect{looked: 1, since: lease/4 - 1}, false, no},
		"then at once where it was long ago": {suspect{looked: lease/4 + 1, since: lease/4 + 1}, false, next},
		"and every quarter":                  {suspect{looked: lease / 8, since: lease}, false, lease / 8},
		"the others after a lease":           {suspect{looked: never, since: lease, ahead: 9}, false, next},
	} {
		c.suspect.session, c.suspect.lease = "S", lease
		in, wanted := c.suspect.look(next, c.begins)
		if !wanted {
			in = no
		}
		assert.Equal(t, c.want, in, name)
	}
}

// An interval counts as run also where a later one has run.
func TestRun_IsRecordedByALaterOne(t *testing.T) {
	r := &run{at: 60_000}
	for ran, want := range map[int64]bool{0: false, 30_000: false, 60_000: true, 120_000: true} {
		assert.Equal(t, want, r.recorded(&lockrow.Row{Ran: ran}), "%d", ran)
	}
	assert.False(t, (*run)(nil).recorded(&lockrow.Row{Ran: 60_000}), "no run")
}
