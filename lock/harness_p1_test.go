package lock_test

import (
	"sync"
	"time"

	"github.com/mortise-go/mortise/table"
)

// writesTo counts the single writes to a partition since the log was reset.
func (w *world) writesTo(pk string) (n int) {
	for _, r := range w.requestsTo(pk) {
		if r.Operation == "UpdateItem" {
			n++
		}
	}
	return n
}

// wallClock is a wall clock that can be set.
type wallClock struct {
	mu sync.Mutex
	by time.Duration
}

func (c *wallClock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.by)
}

func at(by time.Duration) table.Option { return table.WithClock((&wallClock{by: by}).now) }
