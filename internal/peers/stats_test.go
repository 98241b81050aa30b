package peers

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestQuantile_IsTheNearestRank(t *testing.T) {
	values := []time.Duration{40, 10, 30, 20, 50}
	for _, tc := range []struct {
		q    float64
		want time.Duration
	}{{0, 10}, {0.2, 10}, {0.21, 20}, {0.5, 30}, {0.95, 50}, {1, 50}} {
		assert.Equal(t, tc.want, quantile(values, tc.q), "%g", tc.q)
	}
	assert.Equal(t, []time.Duration{40, 10, 30, 20, 50}, values, "they stay in their order")
	assert.InDelta(t, 1.5, median([]float64{1.5}), 0)
	assert.InDelta(t, 1, median([]float64{2, 1}), 0, "the lower of two")
	assert.Zero(t, median([]time.Duration(nil)))
}

func TestJain_IsOneWhereAllGetTheSame(t *testing.T) {
	for _, tc := range []struct {
		got  []int
		want float64
	}{
		{[]int{7, 7, 7, 7}, 1},
		{[]int{1000, 0, 0, 0}, 0.25},
		{[]int{1, 3}, 0.8},
		{[]int{0, 0}, 1},
		{nil, 1},
	} {
		assert.InDelta(t, tc.want, jain(tc.got), 1e-9, "%v", tc.got)
	}
}
