package differential

import "math/rand/v2"

// source is a seeded generator of choices.
type source struct{ *rand.Rand }

func newSource(seed, stream uint64) source {
	return source{rand.New(rand.NewPCG(seed, stream))}
}

// chance is true with probability p.
func (s source) chance(p float64) bool { return s.Float64() < p }

// between returns a number in [low, high].
func (s source) between(low, high int) int { return low + s.IntN(high-low+1) }

func pick[T any](s source, from []T) T { return from[s.IntN(len(from))] }

// weighted is one of several alternatives, chosen in proportion to weight.
type weighted[T any] struct {
	weight int
	value  T
}

func pickWeighted[T any](s source, from []weighted[T]) T {
	total := 0
	for _, w := range from {
		total += w.weight
	}
	n := s.IntN(total)
	for _, w := range from {
		if n -= w.weight; n < 0 {
			return w.value
		}
	}
	return from[0].value // not reached: n is less than the sum of the weights
}
