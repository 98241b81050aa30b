package migrations

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
)

// fate is what becomes of an attribute.
type fate uint8

const (
	kept fate = iota
	replaced
	removed
	added
)

func fateOf(name string, item, next table.Item) fate {
	was, had := item[name]
	now, has := next[name]
	switch {
	case !had:
		return added
	case !has:
		return removed
	case !table.SameValue(was, now):
		return replaced
	}
	return kept
}

// attribute is one of a shape, other than those of the key.
type attribute struct {
	name     string
	fate     fate
	compared bool // with what it was
}

// shape is what the writes of many items of a backfill have in common: the attributes that
// they have and get, but not their values. Its expressions are written once.
type shape struct {
	had, has   int // attributes before and after, the key's included
	attributes []attribute
	prepared   *table.Prepared
	params     int
}

// maxCompared is how many attributes a condition compares at most: DynamoDB takes 300
// operators in an expression, and 4 KB.
const maxCompared = 140

// newShape returns the shape of the difference between an item and what it becomes: written on
// the condition that every attribute still is what it was, and that the filter holds.
func newShape(scheme keys.Scheme, spec *Backfill, item, next table.Item) (*shape, error) {
	s := &shape{had: len(item), has: len(next)}
	conds := []table.Cond{table.Attr(scheme.PK).Exists()}
	weighty := 0 // attributes that have to be compared
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
	switch must := len(conds) + weighty; {
	case must > maxCompared:
		return nil, fmt.Errorf("%w: %d attributes to change, or of Reads, at most %d fit into a condition", ErrInvalid, must-1, maxCompared-1)
	case must+len(s.attributes)-weighty <= maxCompared:
		for i := range s.attributes {
			s.attributes[i].compared = true
		}
	}
	var changes []table.Change
	param := func() table.Operand {
		s.params++
		return table.Param(s.params - 1)
	}
	for _, a := range s.attributes { // takes parameters in the order of op
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
	// What others add meanwhile is not among what was read, and can matter to the Filter.
	var err error
	s.prepared, err = table.Prepare(table.Update(keys.Key{}, changes...).If(append(conds, spec.Filter)...))
	return s, err
}

// fits reports whether an item and what it becomes, under the same key, are of this shape.
func (s *shape) fits(item, next table.Item) bool {
	if len(item) != s.had || len(next) != s.has {
		return false
	}
	for i := range s.attributes {
		a := &s.attributes[i]
		was, had := item[a.name]
		now, has := next[a.name]
		if had != (a.fate != added) || has != (a.fate != removed) || had && has && table.SameValue(was, now) != (a.fate == kept) {
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
	return s.prepared.Op(key, params...)
}

// shapes are those that a backfill has met. It is safe for concurrent use.
type shapes struct {
	mu   sync.RWMutex
	list []*shape
}

// maxShapes bounds them: where every item is different, looking for its like costs little.
const maxShapes = 32

// of finds the shape of an item and what it becomes, or makes it.
func (l *shapes) of(scheme keys.Scheme, spec *Backfill, item, next table.Item) (*shape, error) {
	l.mu.RLock()
	list := l.list
	l.mu.RUnlock()
	for _, s := range list { // which only grows at its end
		if s.fits(item, next) {
			return s, nil
		}
	}
	s, err := newShape(scheme, spec, item, next)
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
