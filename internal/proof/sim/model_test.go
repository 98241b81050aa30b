package sim

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// Hand-made histories that are legal, and ones that are not.
func TestModels_TellLegalHistoriesFromOthers(t *testing.T) {
	op := func(kind kind, outcome outcome, fence int64, call, ret int64) *operation {
		return &operation{kind: kind, outcome: outcome, fence: fence, call: call, ret: ret}
	}
	ok := func(kind kind, fence int64, call, ret int64) *operation { return op(kind, succeeded, fence, call, ret) }
	gaveUp := func(call, left int64) *operation {
		o := op(acquires, unclear, 0, call, open)
		o.left = left
		return o
	}
	write := func(outcome outcome, fence, value int64, call, ret int64) *operation {
		o := op(writes, outcome, fence, call, ret)
		o.wrote = value
		return o
	}
	read := func(value int64, call, ret int64) *operation {
		o := ok(reads, 0, call, ret)
		o.read = value
		return o
	}
	change := func(fence, from, to int64, call, ret int64) *operation {
		o := ok(changes, fence, call, ret)
		o.read, o.wrote = from, to
		return o
	}
	for name, c := range map[string]struct {
		history                []*operation
		lock, register, object verdict
	}{
		"one after the other": {
			history: []*operation{ok(acquires, 5, 1, 2), write(succeeded, 5, 1, 3, 4), ok(releases, 5, 5, 6), ok(acquires, 6, 7, 8), change(6, 1, 2, 9, 10), read(2, 11, 12)},
		},
		"a fence that does not grow": {
			history: []*operation{ok(acquires, 5, 1, 2), ok(releases, 5, 3, 4), ok(acquires, 5, 5, 6)}, lock: illegal, object: illegal,
		},
		"concurrent grants, whichever is first": {
			history: []*operation{ok(acquires, 6, 1, 10), ok(acquires, 5, 1, 10), write(succeeded, 6, 1, 11, 12)},
		},
		"a write after somebody else has acquired": {
			history: []*operation{ok(acquires, 5, 1, 2), ok(acquires, 6, 3, 4), write(succeeded, 5, 1, 5, 6)}, lock: illegal, object: illegal,
		},
		"a write while somebody else acquires": {
			history: []*operation{ok(acquires, 5, 1, 2), ok(acquires, 6, 3, 9), write(succeeded, 5, 1, 5, 6)},
		},
		"a write after the release": {
			history: []*operation{ok(acquires, 5, 1, 2), ok(releases, 5, 3, 4), write(succeeded, 5, 1, 5, 6)}, lock: illegal, object: illegal,
		},
		"a write after a commit": {
			history: []*operation{ok(acquires, 5, 1, 2), ok(commits, 5, 3, 4), write(succeeded, 5, 1, 5, 6)}, lock: illegal, object: illegal,
		},
		"lost to nobody": {
			history: []*operation{ok(acquires, 5, 1, 2), write(lost, 5, 1, 3, 4)}, lock: illegal, object: illegal,
		},
		"lost to somebody who was not told": {
			history: []*operation{ok(acquires, 5, 1, 2), op(acquires, unclear, 0, 2, open), write(lost, 5, 1, 3, 4)},
		},
		"lost to somebody who came later": {
			history: []*operation{ok(acquires, 5, 1, 2), write(lost, 5, 1, 3, 4), op(acquires, unclear, 0, 5, open), ok(acquires, 6, 7, 8)}, lock: illegal, object: illegal,
		},
		"lost to somebody who had given up before": {
			history: []*operation{gaveUp(1, 2), ok(acquires, 5, 3, 4), write(lost, 5, 1, 5, 6)}, lock: illegal, object: illegal,
		},
		"lost to somebody who gave up meanwhile": {
			history: []*operation{gaveUp(1, 4), ok(acquires, 5, 3, 4), write(lost, 5, 1, 5, 6)},
		},
		"lost to nobody, and granted next to somebody who came later": {
			history: []*operation{ok(acquires, 5, 1, 2), op(acquires, unclear, 0, 2, open), write(lost, 5, 1, 3, 4), ok(acquires, 6, 5, 6)}, lock: illegal, object: illegal,
		},
		"lost to somebody who was not told, before somebody came later": {
			history: []*operation{ok(acquires, 5, 1, 2), op(acquires, unclear, 0, 2, open), write(lost, 5, 1, 3, 4), ok(acquires, 7, 5, 6)},
		},
		"lost to somebody who was not told, and was granted it later": {
			history: []*operation{ok(acquires, 5, 1, 2), ok(acquires, 8, 2, 9), write(lost, 5, 1, 3, 4), ok(acquires, 7, 5, 6), ok(releases, 7, 7, 8)},
		},
		"lost to somebody who was not told, and was refused later": {
			history: []*operation{ok(acquires, 5, 1, 2), ok(isHeld, 7, 2, 9), write(lost, 5, 1, 3, 4), ok(acquires, 7, 5, 6)},
		},
		"lost, and the next fence is too great for all who were under way": {
			history: []*operation{ok(acquires, 5, 1, 2), ok(acquires, 10, 2, 9), write(lost, 5, 1, 3, 4), ok(acquires, 9, 5, 6), ok(releases, 9, 7, 8)}, lock: illegal, object: illegal,
		},
		"released, and held by whom it was before": {
			history: []*operation{ok(acquires, 5, 1, 2), ok(releases, 5, 3, 4), ok(isHeld, 5, 5, 6)}, lock: illegal, object: illegal,
		},
		"released though it was lost": {
			history: []*operation{ok(acquires, 5, 1, 2), ok(acquires, 6, 3, 4), ok(releases, 5, 5, 6)}, lock: illegal, object: illegal,
		},
		"a write without an answer, read": {
			history: []*operation{ok(acquires, 5, 1, 2), write(unclear, 5, 1, 3, open), read(0, 4, 5), read(1, 6, 7), ok(acquires, 6, 8, 9)},
		},
		"a write without an answer, never read": {
			history: []*operation{ok(acquires, 5, 1, 2), write(unclear, 5, 1, 3, open), ok(acquires, 6, 4, 5), read(0, 6, 7)},
		},
		"a write without an answer, after another grant": {
			history: []*operation{ok(acquires, 5, 1, 2), write(unclear, 5, 1, 3, open), ok(acquires, 6, 4, 5), read(0, 6, 7), read(1, 8, 9)}, object: illegal,
		},
		"a refused write, read": {
			history: []*operation{ok(acquires, 5, 1, 2), ok(acquires, 6, 2, 3), write(lost, 5, 1, 3, 4), read(1, 5, 6)}, register: illegal, object: illegal,
		},
		"an update that was lost": {
			history: []*operation{ok(acquires, 5, 1, 2), change(5, 0, 1, 3, 4), ok(acquires, 6, 3, 4), change(6, 0, 2, 5, 6)}, register: illegal, object: illegal,
		},
		"a write that was lost": {
			history: []*operation{ok(acquires, 5, 1, 2), write(succeeded, 5, 1, 3, 4), read(0, 5, 6)}, register: illegal, object: illegal,
		},
	} {
		t.Run(name, func(t *testing.T) {
			want := []verdict{c.lock, c.register, c.object}
			for i, m := range models() {
				assert.Equal(t, want[i], m.check(closed(c.history), patience), m.name)
			}
		})
	}
}

// A search that takes too long reports that, and not that the history is illegal.
func TestModels_ReportAHistoryThatCannotBeDecided(t *testing.T) {
	var history []*operation
	for i := range int64(40) { // all at once, and one that fits nowhere
		history = append(history, &operation{kind: writes, outcome: succeeded, wrote: i + 1, call: 1, ret: 2})
	}
	history = append(history, &operation{kind: reads, outcome: succeeded, read: 99, call: 3, ret: 4})
	assert.Equal(t, undecided, models()[1].check(history, patience))
}
