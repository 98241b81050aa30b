package peers

import (
	"math"
	"slices"
	"time"
)

// quantile returns the smallest of the values that at least a share q of them, from 0 to 1, does not exceed. It returns 0 if there are
// no values.
func quantile[T ~int64 | ~float64](values []T, q float64) T {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	rank := int(math.Ceil(q * float64(len(sorted))))
	return sorted[min(max(rank, 1), len(sorted))-1]
}

// median returns the middle value. Of an even number of values it is the lower one of the two in the middle.
func median[T ~int64 | ~float64](values []T) T { return quantile(values, 0.5) }

// jain returns Jain's index of fairness: 1 if all n shares are equal, and 1/n if one of them is everything. If all shares are 0, it
// returns 1.
func jain(got []int) float64 {
	var sum, squares float64
	for _, n := range got {
		sum += float64(n)
		squares += float64(n) * float64(n)
	}
	if squares == 0 {
		return 1
	}
	return sum * sum / (float64(len(got)) * squares)
}

// ratio returns a / b.
func ratio[T ~int | ~int64 | ~float64](a, b T) float64 { return float64(a) / float64(b) }

// milliseconds returns d in milliseconds.
func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
