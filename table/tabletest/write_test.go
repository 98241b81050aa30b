package tabletest_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestUpdate_ConcurrentUpdatesAreAtomic(t *testing.T) {
	_, c := setup(t)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 25 {
				assert.NoError(t, add(t.Context(), c, "a"))
			}
		})
	}
	wg.Wait()
	assert.Equal(t, "200", count(t, c, "a", true))
}
