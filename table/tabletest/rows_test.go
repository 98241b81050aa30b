package tabletest

import (
	"fmt"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"
)

// The chunked list behaves like a sorted slice under any sequence of insertions and deletions.
func TestRows_KeepOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var list rows
		model := map[rowKey]*row{}
		for range rapid.IntRange(0, 1500).Draw(t, "steps") {
			k := rowKey{part: strconv.Itoa(rapid.IntRange(0, 3).Draw(t, "part")), sort: fmt.Sprintf("%03d", rapid.IntRange(0, 400).Draw(t, "sort"))}
			if rapid.IntRange(0, 3).Draw(t, "op") == 0 {
				assert.Same(t, model[k], list.remove(k))
				delete(model, k)
				continue
			}
			x := &row{rowKey: k}
			assert.Same(t, model[k], list.put(x))
			model[k] = x
		}
		var want []rowKey
		for k := range model {
			want = append(want, k)
			assert.Same(t, model[k], list.get(k))
		}
		slices.SortFunc(want, rowKey.compare)
		assert.Equal(t, len(want), list.count)
		from := rowKey{part: "1", sort: "200"}
		at := list.seek(func(r *row) bool { return r.compare(from) >= 0 })
		var up, down []rowKey
		list.ascend(at, func(r *row) bool { up = append(up, r.rowKey); return true })
		list.descend(at, func(r *row) bool { down = append(down, r.rowKey); return true })
		slices.Reverse(down)
		assert.Equal(t, want, append(down, up...))
		for _, k := range up {
			assert.GreaterOrEqual(t, k.compare(from), 0)
		}
		for _, k := range down {
			assert.Negative(t, k.compare(from))
		}
	})
}

// A clone does not see later changes of the original.
func TestRows_ACloneIsIndependent(t *testing.T) {
	var list rows
	for i := range 1000 {
		list.put(&row{rowKey: rowKey{sort: fmt.Sprintf("%04d", i)}})
	}
	c := list.clone()
	for i := range 1000 {
		list.remove(rowKey{sort: fmt.Sprintf("%04d", i)})
	}
	n := 0
	c.ascend(position{}, func(*row) bool { n++; return true })
	assert.Equal(t, 1000, n)
	assert.Zero(t, list.count)
}

// Segments cover every partition exactly once and in the order of the scan.
func TestRows_SegmentsPartitionTheTable(t *testing.T) {
	for _, total := range []int{1, 2, 3, 7, 1000000} {
		last := 0
		var keys []rowKey
		for i := range 500 {
			keys = append(keys, keySchema{all: []keyAttr{{"pk", 0}}, hashes: 1}.place(itemOf("pk", strconv.Itoa(i))))
		}
		slices.SortFunc(keys, rowKey.compare)
		for _, k := range keys {
			n := segment{total: total}.of(k)
			assert.GreaterOrEqual(t, n, last)
			assert.Less(t, n, total)
			last = n
		}
	}
}
