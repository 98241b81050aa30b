package lease

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
)

// walk follows every sequence of events up to a length.
func walk(length int, f func(path []Event, reached []State, effects []Effect)) {
	var visit func(path []Event, reached []State, effects []Effect)
	visit = func(path []Event, reached []State, effects []Effect) {
		f(path, reached, effects)
		if len(path) == length {
			return
		}
		for e := range events {
			next, effect := reached[len(reached)-1].On(e)
			visit(append(slices.Clip(path), e), append(slices.Clip(reached), next), append(slices.Clip(effects), effect))
		}
	}
	visit(nil, []State{Held}, nil)
}

func TestState_EndsForGood(t *testing.T) {
	walk(6, func(path []Event, reached []State, effects []Effect) {
		for i, s := range reached[:len(reached)-1] {
			if s.Over() {
				assert.Equal(t, s, reached[i+1], "%v", path)
				assert.Zero(t, effects[i], "%v", path)
			}
		}
	})
}

func TestState_TellsALossOnce(t *testing.T) {
	walk(6, func(path []Event, _ []State, effects []Effect) {
		told := 0
		for i, e := range effects {
			if lost := path[i] == End || path[i] == Overstay || path[i] == Taken; lost && e.Has(Tell) {
				told++
				assert.NotContains(t, path[:i], Release, "what the holder gives up is no loss: %v", path)
			}
		}
		assert.LessOrEqual(t, told, 1, "%v", path)
	})
}

func TestState_TellsTheHolderWhateverEndsTheLease(t *testing.T) {
	walk(6, func(path []Event, reached []State, effects []Effect) {
		last := reached[len(reached)-1]
		cancelled, forgotten, released := 0, false, 0
		for i, e := range effects {
			if e.Has(Cancel) {
				cancelled++
			}
			if path[i] == GivenUp && e.Has(Tell) {
				released++
			}
			forgotten = forgotten || e.Has(Forget)
		}
		if last == Held {
			assert.Zero(t, cancelled, "%v", path)
		}
		if last.Over() || last == Expired || last == Revoked {
			assert.Positive(t, cancelled, "%v", path)
		}
		if last.Over() {
			assert.True(t, forgotten, "%v", path)
		}
		if last == Released {
			assert.Equal(t, 1, released, "%v", path)
		} else {
			assert.Zero(t, released, "%v", path)
		}
	})
}

func TestState_KnowsEveryStep(t *testing.T) {
	want := map[State]map[Event]State{
		Held:      {Ask: Revoked, End: Expired, Overstay: Expired, Release: Releasing, GivenUp: Released, Taken: Lost},
		Revoked:   {Ask: Revoked, End: Expired, Overstay: Expired, Release: Releasing, GivenUp: Released, Taken: Lost},
		Expired:   {Ask: Expired, End: Expired, Overstay: Expired, Release: Expired, GivenUp: Released, Taken: Lost},
		Releasing: {Ask: Releasing, End: Expired, Overstay: Releasing, Release: Releasing, GivenUp: Released, Taken: Lost},
	}
	for s, row := range want {
		for e, next := range row {
			got, _ := s.On(e)
			assert.Equal(t, next, got, "%v on %v", s, e)
		}
	}
}
