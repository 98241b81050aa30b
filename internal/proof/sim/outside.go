package sim

import (
	"sync"
	"time"
)

// outside is a resource outside the table, such as a file server. It takes writes with a fence, and refuses those
// with a smaller fence than it has seen.
type outside struct {
	world    *World
	careless bool // it does not compare fences

	mu    sync.Mutex
	fence int64 // the largest fence of the writes that it took
}

// write sends a write and waits for its result. It returns false if the write was refused, or the world has ended.
// The write is applied at a moment that the network decides, whether its sender is paused or not.
func (r *outside) write(x *Worker, fence int64) bool {
	p, n := x.Process, r.world.network
	done := make(chan bool, 1)
	way := x.Between(time.Millisecond, 10*time.Millisecond)
	n.later(p.id, time.Now().Add(way), func() {
		taken := r.take(fence)
		var answer func()
		answer = func() {
			if !p.holds(answer) {
				done <- taken
			}
		}
		answer()
	})
	select {
	case taken := <-done:
		return taken
	case <-r.world.ctx.Done():
		return false
	}
}

func (r *outside) take(fence int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if fence < r.fence {
		if !r.careless {
			return false
		}
		r.world.Violation("the register goes back from fence %d to %d", r.fence, fence)
	}
	r.fence = max(r.fence, fence)
	return true
}

// past reports whether it has taken a write with a larger fence.
func (r *outside) past(fence int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.fence > fence
}
