package entity

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/mortise-go/mortise/entity/internal/codec"
	"github.com/mortise-go/mortise/internal/inside"
	"github.com/mortise-go/mortise/keys"
)

// definition is the part of an entity that Define compares with other entities of the table.
type definition struct {
	goType reflect.Type
	rows   []rowKeys // the entity's own, then one for the sentinels of each unique constraint
	writes []string  // what writes do besides
}

// rowKeys are the templates of the keys of one type's rows, and the rule that distinguishes these rows from others.
type rowKeys struct {
	typ    string
	pk, sk *keys.Template
	match  *match
}

func (c *compiler) definition() definition {
	p, d := c.plan, definition{goType: c.goType}
	if p.pk.tpl != nil && p.sk.tpl != nil { // otherwise the compiler has reported a problem already
		d.rows = append(d.rows, rowKeys{c.spec.Type, p.pk.tpl, p.sk.tpl, p.match})
	}
	for i := range p.uniques {
		x := &p.uniques[i]
		d.rows = append(d.rows, rowKeys{x.typ, x.key.tpl, x.sk, nil})
	}
	d.writes = c.writes()
	return d
}

// writes describes what writes maintain besides keys and sentinels, so that two specifications can be compared: if a program wrote rows
// by both, and only one had an index, the keys of that index would become stale. Functions cannot be compared.
func (c *compiler) writes() (list []string) {
	p := c.plan
	for i := range p.indexes {
		x := &p.indexes[i]
		list = append(list, fmt.Sprintf("index %q %q %q %t", x.name, x.pk.tpl, x.sk.tpl, x.when != nil))
	}
	for i := range p.uniques {
		list = append(list, fmt.Sprintf("unique %q %t", p.uniques[i].name, p.uniques[i].when != nil))
	}
	slices.Sort(list)
	for _, f := range []*field{p.version, p.ttl, p.created, p.updated} {
		name := ""
		if f != nil {
			name = f.goName
		}
		list = append(list, name)
	}
	return append(list, fmt.Sprintf("%q %d %t %q", p.schema, p.current(), p.untyped, c.spec.AttributePrefix))
}

// register adds the entity to the table's definitions if it has no problems. It always reports conflicts with other
// entities.
func (c *compiler) register() {
	d := c.definition()
	var value any = d
	if len(c.problems) > 0 {
		value = nil
	}
	err := c.table.Inside(inside.Key{}).Register(c.spec.Type, value, func(name string, other any) error { return d.clash(c.spec.Type, name, other) })
	c.problems = append(c.problems, codec.Problems(err)...)
}

func (d definition) clash(name, otherName string, other any) error {
	o, ok := other.(definition)
	if !ok {
		return nil
	}
	if name == otherName {
		if d.goType == o.goType && slices.EqualFunc(d.rows, o.rows, rowKeys.same) && slices.Equal(d.writes, o.writes) {
			return nil
		}
		return fmt.Errorf("Type %q is taken by another entity of this table", name)
	}
	for _, a := range d.rows {
		for _, b := range o.rows {
			switch {
			case a.typ == b.typ:
				return fmt.Errorf("Type %q is taken by another entity of this table, or by its unique values", a.typ)
			case a.meets(&b):
				return a.ambiguous(&b)
			}
		}
	}
	return nil
}

func (k rowKeys) same(o rowKeys) bool {
	return k.typ == o.typ && k.pk.String() == o.pk.String() && k.sk.String() == o.sk.String() && k.match.same(o.match)
}
