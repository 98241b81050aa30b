package tabletest

import (
	"fmt"
	"slices"

	"github.com/mortise-go/mortise/table/tabletest/internal/attr"
)

// The projection types of an index.
const (
	projectAll     = "ALL"
	projectKeys    = "KEYS_ONLY"
	projectInclude = "INCLUDE"
)

// index is a secondary index. It is sparse: it contains only items that have its key attributes.
type index struct {
	name       string
	global     bool
	keys       keySchema
	projection string
	include    []string // in the order of the request; descriptions sort it
	rows       rows

	provision // for a global index
}

// covers reports whether the index projects the attribute.
func (x *index) covers(base keySchema, name string) bool {
	return x.projection == projectAll || base.has(name) || x.keys.has(name) || slices.Contains(x.include, name)
}

// entry returns the index's row for an item, or nil if the index does not contain the item. An item that is older than a global index
// can have attributes that are not valid index keys.
func (x *index) entry(base keySchema, primary rowKey, item attr.Item) *row {
	for _, a := range x.keys.attrs() {
		v, ok := item[a.name]
		if !ok || v.Kind != a.kind || emptyNoun(v) != "" {
			return nil
		}
	}
	if sizeOf(x.keys.hash(), item) > maxHashKey || sizeOf(x.keys.sort(), item) > maxSortKey {
		return nil
	}
	k := x.keys.place(item)
	k.tie = primary.asTie()
	held := item
	if x.projection != projectAll {
		held = make(attr.Item, len(item))
		for name, v := range item {
			if x.covers(base, name) {
				held[name] = v
			}
		}
	}
	return &row{rowKey: k, item: held, size: held.Size()}
}

// update applies the change of an item to the index; before or after is nil if there is no item. It returns the write units: none if the
// index's row did not change, and two writes if the row's key changed.
func (x *index) update(base keySchema, primary rowKey, before, after attr.Item) float64 {
	var old, now *row
	if before != nil {
		old = x.entry(base, primary, before)
	}
	if after != nil {
		now = x.entry(base, primary, after)
	}
	switch {
	case old == nil && now == nil:
		return 0
	case old == nil:
		x.rows.put(now)
		return writeUnits(now.size)
	case now == nil:
		x.rows.remove(old.rowKey)
		return writeUnits(old.size)
	case old.rowKey != now.rowKey:
		x.rows.remove(old.rowKey)
		x.rows.put(now)
		return writeUnits(old.size) + writeUnits(now.size)
	case attr.EqualItems(old.item, now.item):
		return 0
	}
	x.rows.put(now)
	return writeUnits(max(old.size, now.size))
}

// checkItem validates those index key attributes that the item has.
func (x *index) checkItem(item attr.Item) error {
	for _, a := range x.keys.attrs() {
		v, ok := item[a.name]
		if !ok {
			continue
		}
		if v.Kind != a.kind {
			return x.typeMismatch(a, v.Kind)
		}
		if err := x.checkEmpty(a, v); err != nil {
			return err
		}
		if v.Size() > x.maxKey(a) {
			if x.maxKey(a) == maxHashKey {
				return mismatch(hashTooLong)
			}
			return mismatch(sortTooLong)
		}
	}
	return x.checkAggregate(item)
}

func (x *index) typeMismatch(a keyAttr, actual attr.Kind) error {
	return mismatch(fmt.Sprintf("One or more parameter values were invalid: Type mismatch for Index Key %s Expected: %s Actual: %s IndexName: %s", a.name, a.kind, actual, x.name))
}

func (x *index) checkEmpty(a keyAttr, v *attr.Value) error {
	if noun := emptyNoun(v); noun != "" {
		return invalid("One or more parameter values are not valid. A value specified for a secondary index key is not supported. The AttributeValue for a key attribute cannot contain an empty %s value. IndexName: %s, IndexKey: %s", noun, x.name, a.name)
	}
	return nil
}

// maxKey returns the maximum size of a value of one of the index's key attributes.
func (x *index) maxKey(a keyAttr) int {
	if named(x.keys.sort(), a.name) {
		return maxSortKey
	}
	return maxHashKey
}
