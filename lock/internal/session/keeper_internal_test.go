package session

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock/internal/attempt"
	"github.com/mortise-go/mortise/lock/internal/clock"
	"github.com/mortise-go/mortise/table"
	"github.com/mortise-go/mortise/table/tabletest"
)

// While a session ends since it was idle, others begin to use it. They have it, or another one: none ends as idle that is
// used, and no number comes twice.
func TestSession_IdleOneThatIsUsedGoesOn(t *testing.T) {
	tbl, err := table.Open(tabletest.New(t).Client(), table.Schema{Name: "app"})
	require.NoError(t, err)
	r := &attempt.Repeater{Clock: clock.New(tbl), Table: tbl}
	k := NewKeeper(r, clock.NewTerms(r.Clock), Config{
		Names: NamesOf(tbl.Scheme(), ""), Lease: time.Hour, Own: time.Hour, Key: func(id string) keys.Key { return keys.NewKey(id, id) },
		Hooks: Hooks{Ending: func(*Session, error) {}, Ended: func(*Session, error) {}, Risk: func(bool) {}},
	})
	twice, ended := 0, 0
	for range 5000 {
		s := &Session{keeper: k, id: "id"}
		start := r.Clock.Instant()
		start.Wall, start.Mono = start.Wall.Add(-40*time.Minute), start.Mono.Add(-40*time.Minute)
		s.begin(start)
		k.mu.Lock()
		k.current, k.next = s, nil
		k.mu.Unlock()
		last := make(chan int64)
		go func() {
			var n int64
			for used := k.UseCurrent(); used != nil; used = k.UseCurrent() {
				if n = used.Next(); used.Cause() != nil {
					ended++
				}
				used.Unuse()
			}
			last <- n
		}()
		var next *Session
		for next == nil {
			k.idle(s)
			k.mu.Lock()
			next = k.next
			k.mu.Unlock()
		}
		if n := <-last; next.Next() <= n {
			twice++
		}
	}
	assert.Zero(t, ended, "sessions ended while they were used")
	assert.Zero(t, twice, "numbers came twice")
}

// A process that meets many sessions forgets those that it has not looked at for long.
func TestOthers_ForgetsOldSessions(t *testing.T) {
	o, now := NewOthers(nil, Config{}), time.Now()
	for i := range maxSeen + 1 {
		o.saw(fmt.Sprint(i), Row{Lease: 20_000}, true, now)
	}
	assert.Len(t, o.seen, maxSeen+1, "none is old")
	o.saw("20 s later", Row{Lease: 20_000}, true, now.Add(20*time.Second))
	o.saw("41 s later", Row{Lease: 20_000}, true, now.Add(41*time.Second))
	assert.Len(t, o.seen, 2)
}
