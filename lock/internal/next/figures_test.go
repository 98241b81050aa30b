package next_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/mortise-go/mortise/internal/figure"
)

const hold = 50 * time.Millisecond

func (w *world) processes(n int) (list []*process) {
	for i := range n {
		list = append(list, w.process(i))
	}
	return list
}

// P13: processes that ask for one lock again and again get it in turn.
func TestFairAcrossProcesses(t *testing.T) {
	for _, n := range []int{4, 20, 100} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			virtual(t, func(_ context.Context, w *world) {
				w.latency(2 * time.Millisecond)
				const during = 60 * time.Second
				grants, longest, held := w.contest(w.processes(n), 1, hold, during, false)
				each := make([]int, n)
				for i := range grants {
					each[i] = grants[i][0]
				}
				figure.Check(t, fmt.Sprintf("P13, %d processes", n),
					figure.AtLeast(jain(each), "Jain's index", 0.99),
					figure.AtMost(longest, " longest wait", time.Duration(n)*(hold+10*time.Millisecond)*13/10),
					figure.AtLeast(held.Seconds()/during.Seconds(), "of the time held", 0.85))
			})
		})
	}
	t.Run("4 of 10 goroutines", func(t *testing.T) {
		virtual(t, func(_ context.Context, w *world) {
			w.latency(2 * time.Millisecond)
			const n, goroutines = 4, 10
			grants, longest, _ := w.contest(w.processes(n), goroutines, hold, 60*time.Second, false)
			each := make([]int, n)
			for i := range grants {
				for _, g := range grants[i] {
					each[i] += g
				}
			}
			round := time.Duration(n*17) * (hold + 10*time.Millisecond)
			figure.Check(t, "P13, 4 processes of 10 goroutines", figure.AtLeast(jain(each), "Jain's index", 0.95),
				figure.AtMost(longest, " longest wait", 2*round))
		})
	})
}
