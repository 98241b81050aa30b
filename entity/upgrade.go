package entity

import (
	"fmt"
	"slices"

	"github.com/mortise-go/mortise/internal/attrvalue"

	"github.com/mortise-go/mortise/table"
)

// defaultSchema is the attribute of the schema number unless the specification names one.
const defaultSchema = "schema"

// upgrades compiles Spec.Upgrades and Spec.Schema.
func (c *compiler) upgrades() {
	p := c.plan
	if p.schema, p.upgrades = c.spec.Schema, slices.Clone(c.spec.Upgrades); p.schema == "" {
		if len(p.upgrades) == 0 {
			return
		}
		p.schema = defaultSchema
	}
	for i, f := range p.upgrades {
		if f == nil {
			c.problem("Upgrades[%d]: nil function", i)
		}
	}
	if c.taken(p.schema) {
		c.problem("Schema: attribute %q is a key or the scheme's", p.schema)
	}
	for _, f := range c.plan.fields {
		if f.attr == p.schema {
			c.problem("Schema: attribute %q is that of field %s", p.schema, f.goName)
		}
	}
}

// current returns the number of the current schema.
func (p *plan) current() int64 { return int64(len(p.upgrades)) }

// schemaOf returns the number of a row's schema. It refuses a row of a newer schema than this program knows, or with an invalid number.
// Without a schema, all rows have number 0, the current one: no attribute is called "".
func (p *plan) schemaOf(item table.Item) (int64, error) {
	n, err := integer(item[p.schema])
	switch {
	case err != nil:
	case n < 0:
		err = fmt.Errorf("%w: negative number of a schema", ErrInvalid)
	case n > p.current():
		err = ErrNewer
	}
	return n, err
}

// outdated reports whether a row is of an older schema than the current one.
func (p *plan) outdated(item table.Item) bool {
	n, err := p.schemaOf(item)
	return err == nil && n < p.current()
}

// upgraded returns a row in the current schema. It returns a current row itself, and an upgraded copy of an older one.
func (p *plan) upgraded(item table.Item) (table.Item, error) {
	n, err := p.schemaOf(item)
	switch {
	case err != nil:
		return nil, err
	case n == p.current():
		return item, nil
	}
	up := attrvalue.CloneItem(item)
	for ; n < p.current(); n++ {
		if up, err = p.upgrades[n](up); err != nil {
			return nil, fmt.Errorf("upgrade of schema %d: %w", n, err)
		}
		if up == nil {
			return nil, fmt.Errorf("%w: upgrade of schema %d returned no row", ErrInvalid, n)
		}
	}
	kept := []string{p.scheme.PK, p.scheme.SK, p.scheme.Type, p.scheme.TTL, p.scheme.Version}
	if p.match != nil {
		kept = append(kept, p.match.attrs...)
	}
	for _, name := range kept {
		if !attrvalue.Same(up[name], item[name]) {
			return nil, fmt.Errorf("%w: an upgrade changed %q, which is not its own", ErrInvalid, name)
		}
	}
	up[p.schema] = number(p.current())
	return up, nil
}

// notNewer returns the condition that keeps a write from overwriting or deleting a row of a newer schema.
func (p *plan) notNewer() table.Cond {
	if p.schema == "" {
		return table.Cond{}
	}
	attr := table.Attr(p.schema)
	return table.Or(attr.NotExists(), attr.AtMost(p.current()))
}

// isCurrent returns the condition that the row has the current schema, so that an update does not mix schemas in a row.
func (p *plan) isCurrent() table.Cond {
	switch {
	case p.schema == "":
		return table.Cond{}
	case p.current() == 0:
		return table.Or(table.Attr(p.schema).NotExists(), table.Attr(p.schema).Equal(0))
	}
	return table.Attr(p.schema).Equal(p.current())
}
