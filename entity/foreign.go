package entity

import (
	"maps"
	"slices"

	"github.com/mortise-go/mortise/internal/inside"

	"github.com/mortise-go/mortise/internal/toolkit"
	"github.com/mortise-go/mortise/table"
)

// foreign returns a *ForeignTypeError for a row that fits the entity by its key and Match, but whose type no entity of the
// table defines. For any other row it returns nil. Rows of the table's other entities do not fit, since Define refuses two
// entities that one row could fit.
func (e *core) foreign(item table.Item) error {
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

// otherType returns the error for a row that does not belong to the entity.
func (e *core) otherType(item table.Item) error {
	if err := e.foreign(item); err != nil {
		return err
	}
	return ErrType
}

// defines reports whether an entity of the table has a type.
func defines(t *table.Table, typ string) bool {
	_, ok := t.Inside(inside.Key{}).Registered()[typ].(definition)
	return ok
}

// definedTypes returns the types of the table's entities in order, at least one and at most what one condition can hold.
func definedTypes(t *table.Table) (list []any) {
	registered := t.Inside(inside.Key{}).Registered()
	for _, name := range slices.Sorted(maps.Keys(registered)) {
		if _, ok := registered[name].(definition); ok && len(list) < maxValues {
			list = append(list, name)
		}
	}
	return list
}

// scanned returns the condition for rows that a scan has to return: the entity's own rows, rows without a type, and
// rows that foreign can report. Of an index that does not hold the type, these are all rows.
func (e *core) scanned(index string) table.Cond {
	p := e.plan
	if index != "" && !e.table.Schema().Holds(index, p.scheme.Type) {
		return table.Cond{}
	}
	typ := table.Attr(p.scheme.Type)
	strange := []table.Cond{table.Not(typ.HasPrefix(toolkit.Prefix)), table.Not(typ.In(definedTypes(e.table)...))}
	for _, k := range []keyPlan{p.pk, p.sk} {
		if lead, err := k.tpl.Prefix(); err == nil && lead != "" && len(k.tpl.Fields()) > 0 {
			strange = append(strange, table.Attr(k.attr).HasPrefix(lead))
		}
	}
	return table.Or(typ.Equal(e.typ), typ.NotExists(), table.And(strange...))
}
