package table

import (
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestDrain_OfMuchWorkThatIsAlwaysLeftInPartDoesNotCopyAllOfIt(t *testing.T) {
	work := make([]int, 100_000)
	for i := range work {
		work[i] = i
	}
	done := make([]int, 0, len(work))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	left, err := drain(WithoutRetry(t.Context()), &Table{}, 100, work, func(chunk []int) ([]int, error) {
		done = append(done, chunk[0])
		if len(chunk) == 1 {
			return nil, nil
		}
		done = append(done, chunk[2:]...)
		return []int{chunk[1]}, nil
	})
	runtime.ReadMemStats(&after)
	require.NoError(t, err)
	assert.Empty(t, left)
	assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(1<<20), "bytes; a copy of the work has 0.8 MB")
	slices.Sort(done)
	require.Len(t, done, 100_000)
	assert.Equal(t, 99_999, done[99_999])
}

func TestDrain_RefusesMoreUnprocessedItemsThanItSent(t *testing.T) {
	left, err := drain(WithoutRetry(t.Context()), &Table{}, 2, []int{1, 2, 3}, func([]int) ([]int, error) { return []int{1, 2, 2}, nil })
	require.Error(t, err)
	assert.Equal(t, []int{1, 2, 3}, left)
}
