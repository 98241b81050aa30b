package entity

import "fmt"

// need is an attribute without which no row can be read, because the reader would take it for another row than it is: one of
// another type, of an older schema, or one that never expires. An index that does not project the attribute is not read.
type need struct{ attr, of string }

// needs lists the needs of the entity, and what of them each index lacks.
func (c *compiler) needs() {
	p := c.plan
	if p.match != nil {
		for _, attr := range p.match.attrs {
			p.needs = append(p.needs, need{attr, "Match"})
		}
	}
	if p.schema != "" {
		p.needs = append(p.needs, need{p.schema, "Schema"})
	}
	if p.ttl != nil {
		p.needs = append(p.needs, need{p.scheme.TTL, ttlNeed})
	}
	p.lacks = map[string][]need{}
	for _, x := range c.schema.Indexes {
		for _, n := range p.needs {
			if !c.schema.Holds(x.Name, n.attr) {
				p.lacks[x.Name] = append(p.lacks[x.Name], n)
			}
		}
	}
}

// ttlNeed is the need that WithExpired and images of rows do not have: they show expired rows.
const ttlNeed = "TTL"

// checkIndex refuses to read an index, or "" for the table, that lacks what the entity needs to read its rows.
func (e *core) checkIndex(index string, expired bool) error {
	for _, n := range e.plan.lacks[index] {
		if n.of != ttlNeed || !expired {
			return fmt.Errorf("%w: index %q does not hold attribute %q, which a read of %s needs for %s", ErrInvalid, index, n.attr, e.typ, n.of)
		}
	}
	return nil
}
