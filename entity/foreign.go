package entity

import (
	"errors"

	"github.com/mortise-go/mortise/internal/toolkit"
	"github.com/mortise-go/mortise/table"
)

// foreign is the error for a row that would be the entity's, were it not for a type attribute that means nothing here; nil
// for every other row. A row of another program's type does not have such a key, or two entities would.
func (e *Entity[T]) foreign(item table.Item) error {
	value := item[e.plan.scheme.Type]
	if value == nil || !e.plan.fits(item) {
		return nil
	}
	if typ := text(item, e.plan.scheme.Type); typ == e.typ || toolkit.Has(typ) || defines(e.table, typ) {
		return nil
	}
	foreign := &ForeignTypeError{Type: e.typ, Attribute: e.plan.scheme.Type, Value: value}
	foreign.Key, _ = e.table.KeyOf(item)
	return foreign
}

// otherType is the error for a row that is not the entity's.
func (e *Entity[T]) otherType(item table.Item) error {
	if err := e.foreign(item); err != nil {
		return err
	}
	return ErrType
}

var errDefined = errors.New("defined")

// defines reports whether an entity of the table has a type.
func defines(t *table.Table, typ string) bool {
	err := t.Register("", nil, func(name string, other any) error {
		if _, ok := other.(definition); ok && name == typ {
			return errDefined
		}
		return nil
	})
	return errors.Is(err, errDefined)
}

// definedTypes are the types of the entities of a table, in order; not more than one condition takes.
func definedTypes(t *table.Table) (list []any) {
	_ = t.Register("", nil, func(name string, other any) error {
		if _, ok := other.(definition); ok && !toolkit.Has(name) && len(list) < maxValues {
			list = append(list, name)
		}
		return nil
	})
	return list
}

// scanned is what a scan for the entity has to see: its own rows, those that have no type, and those that foreign might
// be about.
func (e *Entity[T]) scanned() table.Cond {
	p := e.plan
	typ := table.Attr(p.scheme.Type)
	strange := []table.Cond{table.Not(typ.HasPrefix(toolkit.Prefix)), table.Not(typ.In(definedTypes(e.table)...))}
	for _, k := range []keyPlan{p.pk, p.sk} {
		if lead, err := k.tpl.Prefix(); err == nil && lead != "" && len(k.tpl.Fields()) > 0 {
			strange = append(strange, table.Attr(k.attr).HasPrefix(lead))
		}
	}
	return table.Or(typ.Equal(e.typ), typ.NotExists(), table.And(strange...))
}
