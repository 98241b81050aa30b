package entity

import (
	"fmt"
	"slices"

	"github.com/mortise-go/mortise/table"
)

// guard is the set of conditions that a write puts on the row at its key.
type guard struct {
	exists  bool  // the row must exist
	version int64 // the row must have this version; or noVersion, or anyVersion
	live    bool  // the row must not have expired
	current bool  // the row must have the current schema
	given   bool  // seen is of the caller's value, so a row of an older schema may be the one that was read
	seen    []expectation
	match   verdict // what Match requires of a row without a type attribute
}

const (
	anyVersion = -1
	noVersion  = 0
)

// guarded adds a guard to an operation, and binds it.
func (e *core) guarded(op table.Op, g *guard) table.Op {
	p := e.plan
	conds := make([]table.Cond, 0, 8)
	if g.exists && g.version <= 0 { // the version implies that the row exists
		conds = append(conds, table.Attr(p.scheme.PK).Exists())
	}
	if g.version != anyVersion {
		conds = append(conds, p.hasVersion(g.version))
	}
	conds = append(conds, e.isOursOrNone(g.match))
	for i := range g.seen {
		conds = append(conds, g.seen[i].cond())
	}
	switch {
	case g.current:
		conds = append(conds, p.isCurrent())
	case p.schema != "" && p.ttl != nil && !g.live: // an expired row is no row
		conds = append(conds, table.Or(p.notNewer(), e.hasExpired()))
	default:
		conds = append(conds, p.notNewer())
	}
	if g.live && p.ttl != nil {
		conds = append(conds, table.Not(e.hasExpired()))
	}
	return e.bind(op.If(conds...).Explain(func(item table.Item) error { return e.explain(g, item) }))
}

// explain returns why a guard failed, given the row that was found. It returns nil if the guard holds, since then another
// condition of the operation failed.
func (e *core) explain(g *guard, item table.Item) error {
	p := e.plan
	expired := p.expired(item, e.table.Now())
	switch {
	case len(item) == 0:
		if g.exists || g.version > 0 || slices.ContainsFunc(g.seen, func(x expectation) bool { return !x.holds(nil) }) {
			return ErrNotFound
		}
		return nil
	case !e.owns(item):
		return e.otherType(item)
	case expired && (g.exists || g.live || g.version != anyVersion):
		return ErrNotFound
	}
	if _, err := p.schemaOf(item); err != nil && !expired {
		return err
	}
	if g.version != anyVersion && !p.isVersion(item, g.version) {
		if g.version == noVersion {
			return errUnseen
		}
		return ErrStale
	}
	older := p.outdated(item) // its attributes cannot be compared with those of a caller's value
	switch {
	case g.current && older && g.given:
		return ErrOlder
	case g.current && older: // an older program has written it since it was read
		return ErrStale
	}
	for i := range g.seen {
		switch {
		case g.seen[i].holds(item):
		case older && g.given:
			return ErrOlder
		default:
			return notAsRead(g.seen[i].attr)
		}
	}
	if item[p.scheme.Type] == nil && !g.match.keeps(p.match, item) {
		return fmt.Errorf("%w: %s", ErrMatch, p.match)
	}
	return nil
}

// bind adds the condition of Entity.If to an operation. It makes the operation fail if it is written to a table other than the entity's,
// or if the entity is read-only.
func (e *core) bind(op table.Op) table.Op {
	if e.plan.readOnly {
		return table.Invalid(e.fail("write", errReadOnly))
	}
	return op.If(e.cond).In(e.table)
}

// isOursOrNone keeps a write from a row of another type. It holds if there is no row, if the type is the entity's, or if
// there is no type attribute and Match holds: then only the key and Match tell the type.
func (e *core) isOursOrNone(m verdict) table.Cond {
	typ, none := table.Attr(e.plan.scheme.Type), table.Attr(e.plan.scheme.PK).NotExists()
	switch {
	case m.never:
		return table.Or(none, typ.Equal(e.typ))
	case m.cond.IsZero():
		return e.plan.ours
	}
	return table.Or(table.And(typ.NotExists(), table.Or(none, m.cond)), typ.Equal(e.typ))
}

func (e *core) hasExpired() table.Cond {
	return table.Attr(e.plan.scheme.TTL).Between(1, e.table.Now().Unix())
}
