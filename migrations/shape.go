package migrations

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/mortise-go/mortise/internal/inside"

	"github.com/mortise-go/mortise/internal/attrvalue"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
)

// fate is how an attribute changes.
type fate uint8

const (
	absent fate = iota // in neither
	kept
	replaced
	removed
	added
)

func fateOf(name string, item, next table.Item) fate {
	was, had := item[name]
	now, has := next[name]
	switch {
	case !had && !has:
		return absent
	case !had:
		return added
	case !has:
		return removed
	case !attrvalue.Same(was, now):
		return replaced
	}
	return kept
}

// attribute is an attribute of a shape. Those of the key are left out.
type attribute struct {
	name     string
	fate     fate
	compared bool // the write requires its old value
}

// shape is what the writes of many items in a backfill have in common: the names of the attributes, and how each changes,
// but not their values. Its expressions are built once.
type shape struct {
	had, has   int // number of attributes before and after, including the key's
	attributes []attribute
	prepared   inside.Prepared[table.Op]
	params     int // number of values that op passes to prepared
}

// The maximum number of attributes in a condition. DynamoDB allows 300 operators and 4 KB per expression.
const (
	maxCompared         = 140
	maxComparedFiltered = 100 // if the condition contains a Filter, too; a large Filter leaves less room
)

// newShape returns the shape of the difference between an item and its new state. The write requires that the filter
// holds and that all attributes are unchanged. If those do not fit, it compares only those that change, Reads and the version.
func newShape(t *table.Table, spec *Backfill, item, next table.Item) (*shape, error) {
	scheme, s := t.Scheme(), &shape{had: len(item), has: len(next)}
	conds := []table.Cond{table.Attr(scheme.PK).Exists()}
	weighty := 0 // number of attributes that have to be compared
	names := maps.Clone(item)
	maps.Copy(names, next)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if name == scheme.PK || name == scheme.SK {
			continue
		}
		a := attribute{name: name, fate: fateOf(name, item, next)}
		if a.compared = a.fate != kept || name == scheme.Version || slices.Contains(spec.Reads, name); a.compared {
			weighty++
		}
		s.attributes = append(s.attributes, a)
	}
	for _, name := range spec.Reads {
		if names[name] == nil {
			conds = append(conds, table.Attr(name).NotExists())
		}
	}
	most := maxCompared
	if !spec.Filter.IsZero() { // the Filter takes up a part of the condition
		most = maxComparedFiltered
	}
	must := len(conds) + weighty
	if must > maxCompared {
		return nil, fmt.Errorf("%w: %d attributes to change, or of Reads, at most %d fit into a condition", ErrInvalid, must-1, maxCompared-1)
	}
	if must+len(s.attributes)-weighty <= most {
		if whole := s.withAll(); whole.prepare(t, conds, spec.Filter) == nil {
			return whole, nil
		} // a large Filter leaves less room
	}
	return s, s.prepare(t, conds, spec.Filter)
}

// withAll returns a copy of s that compares all attributes.
func (s *shape) withAll() *shape {
	all := *s
	all.attributes = slices.Clone(s.attributes)
	for i := range all.attributes {
		all.attributes[i].compared = true
	}
	return &all
}

// prepare builds the expressions. The Filter is a condition, too, since it can depend on attributes that another program adds meanwhile.
func (s *shape) prepare(t *table.Table, conds []table.Cond, filter table.Cond) (err error) {
	conds = slices.Clip(conds)
	var changes []table.Change
	param := func() table.Operand {
		s.params++
		return table.Value(inside.Param(s.params - 1))
	}
	for _, a := range s.attributes { // op passes its values in the same order
		at := table.Attr(a.name)
		switch {
		case a.fate == added:
			conds = append(conds, at.NotExists())
		case a.compared:
			conds = append(conds, at.Equal(param()))
		}
		switch a.fate {
		case added, replaced:
			changes = append(changes, at.Set(param()))
		case removed:
			changes = append(changes, at.Remove())
		}
	}
	s.prepared, err = t.Inside(inside.Key{}).Prepare(table.Update(keys.Key{}, changes...).If(append(conds, filter)...))
	return err
}

// fits reports whether an item and its new state, under the same key, have this shape.
func (s *shape) fits(item, next table.Item) bool {
	if len(item) != s.had || len(next) != s.has {
		return false
	}
	for i := range s.attributes {
		if a := &s.attributes[i]; fateOf(a.name, item, next) != a.fate {
			return false
		}
	}
	return true
}

// op returns the write of one item.
func (s *shape) op(key keys.Key, item, next table.Item) table.Op {
	params := make([]any, 0, s.params)
	for i := range s.attributes {
		a := &s.attributes[i]
		if a.compared && a.fate != added {
			params = append(params, item[a.name])
		}
		if a.fate == added || a.fate == replaced {
			params = append(params, next[a.name])
		}
	}
	return s.prepared(key, params...)
}

// shapes are the shapes of a backfill so far. It is safe for concurrent use.
type shapes struct {
	mu   sync.RWMutex
	list []*shape
}

// maxShapes bounds the number of shapes that are kept, so that the search stays cheap if every item is different.
const maxShapes = 32

// of returns the shape of an item and its new state, and creates it if needed.
func (l *shapes) of(t *table.Table, spec *Backfill, item, next table.Item) (*shape, error) {
	l.mu.RLock()
	list := l.list
	l.mu.RUnlock()
	for _, s := range list { // without mu, since elements are only appended
		if s.fits(item, next) {
			return s, nil
		}
	}
	s, err := newShape(t, spec, item, next)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.list) < maxShapes {
		l.list = append(l.list, s)
	}
	return s, nil
}
