package entity

import (
	"fmt"
	"slices"

	"github.com/mortise-go/mortise/table"
)

// guard is what a write asks of the row at its key.
type guard struct {
	exists  bool  // there has to be a row
	version int64 // that the row has; noVersion or anyVersion
	live    bool  // the row must not have expired
	current bool  // the row has to be of the current schema, not of an older one
	seen    []expectation
	match   verdict // on a row without a type attribute
}

const (
	anyVersion = -1
	noVersion  = 0
)

// guarded puts a guard on an operation, and the entity's own condition.
func (e *Entity[T]) guarded(op table.Op, g *guard) table.Op {
	p := e.plan
	conds := make([]table.Cond, 0, 5+len(g.seen))
	if g.exists && g.version <= 0 { // which a version says too
		conds = append(conds, table.Attr(p.scheme.PK).Exists())
	}
	if g.version != anyVersion {
		conds = append(conds, p.hasVersion(g.version))
	}
	conds = append(conds, e.isOursOrNone(g.match))
	for i := range g.seen {
		conds = append(conds, g.seen[i].cond())
	}
	if g.current {
		conds = append(conds, p.isCurrent())
	} else {
		conds = append(conds, p.notNewer())
	}
	if g.live && p.ttl != nil {
		conds = append(conds, table.Not(e.hasExpired()))
	}
	op = op.If(conds...).Explain(func(item table.Item) error { return e.explain(g, item) })
	if !e.cond.IsZero() {
		op = op.If(e.cond)
	}
	return e.bind(op)
}

// explain says why a guard did not hold, by the row that was there; nil where it did: then
// it was another condition that was put on the operation.
func (e *Entity[T]) explain(g *guard, item table.Item) error {
	p := e.plan
	switch {
	case len(item) == 0:
		if g.exists || g.version > 0 || slices.ContainsFunc(g.seen, func(x expectation) bool { return !x.holds(nil) }) {
			return ErrNotFound
		}
		return nil
	case !e.Owns(item):
		return e.otherType(item)
	case p.expired(item, e.table.Now()):
		if g.exists || g.live || g.version != anyVersion {
			return ErrNotFound
		}
	}
	if err := p.knows(item); err != nil {
		return err
	}
	if g.version != anyVersion && !p.isVersion(item, g.version) {
		if g.version == noVersion {
			return errUnseen
		}
		return ErrStale
	}
	if g.current && e.outdated(item) { // its attributes tell nothing
		return ErrOlder
	}
	for i := range g.seen {
		if !g.seen[i].holds(item) {
			return notAsRead(g.seen[i].attr)
		}
	}
	if item[p.scheme.Type] == nil && !g.match.keeps(p.match, item) {
		return fmt.Errorf("%w: %s", ErrMatch, p.match)
	}
	return nil
}

// bind keeps an operation from being written to another table, or at all where the entity
// is for reading only.
func (e *Entity[T]) bind(op table.Op) table.Op {
	if e.plan.readOnly {
		return table.Invalid(e.fail("write", errReadOnly))
	}
	return op.In(e.table)
}

// isOursOrNone keeps a put from replacing a row of another type. Rows without a type
// attribute that match are let through: their key is all the type they have.
func (e *Entity[T]) isOursOrNone(m verdict) table.Cond {
	typ, none := table.Attr(e.plan.scheme.Type), table.Attr(e.plan.scheme.PK).NotExists()
	switch {
	case m.never:
		return table.Or(none, typ.Equal(e.typ))
	case m.cond.IsZero():
		return table.Or(typ.NotExists(), typ.Equal(e.typ))
	}
	return table.Or(table.And(typ.NotExists(), table.Or(none, m.cond)), typ.Equal(e.typ))
}

func (e *Entity[T]) hasExpired() table.Cond {
	return table.Attr(e.plan.scheme.TTL).Between(1, e.table.Now().Unix())
}
