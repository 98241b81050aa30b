package keys

import "slices"

// Only returns a template of those keys of t in which the text of a field matches a pattern. Its Format, Parse and Matches
// check the pattern, and [Overlap] takes it into account. Values that are given to a prefix or a range have to match too.
//
// The pattern has the syntax of package regexp. It has to match the whole text of the field, so anchors and word boundaries
// are [ErrSyntax]. The text is that of the key: delimiters in it are escaped, and numbers have their full width. A literal
// is a pattern too; [regexp.QuoteMeta] makes one of any text. An unknown field is [ErrUnknownField], and so is a field of
// which the key holds the shard only. A pattern that takes more than 1,000 states to decide is [ErrRange].
func (t *Template) Only(field, pattern string) (*Template, error) {
	return t.restrict("only", field, pattern, true)
}

// Except returns a template of those keys of t in which the text of a field does not match a pattern. Patterns and errors
// are those of [Template.Only].
func (t *Template) Except(field, pattern string) (*Template, error) {
	return t.restrict("except", field, pattern, false)
}

func (t *Template) restrict(op, field, pattern string, want bool) (*Template, error) {
	if err := t.check(op); err != nil {
		return nil, err
	}
	i := slices.IndexFunc(t.fields, func(f Field) bool { return f.Name == field && !f.Computed })
	if i < 0 {
		return nil, &Error{Op: op, Template: t.text, Field: field, Err: ErrUnknownField}
	}
	m, err := compile(pattern)
	if err != nil {
		return nil, t.fail(op, i, err)
	}
	narrow := &Template{
		text: t.text, esc: t.esc, limit: t.limit, parts: slices.Clone(t.parts), tail: t.tail,
		fields: t.fields, home: t.home, stored: t.stored, shard: t.shard,
	}
	p := &narrow.parts[t.home[i]]
	p.rules = append(slices.Clip(p.rules), rule{m, want})
	return narrow, nil
}

// rule is what the text of a part has to match, or must not.
type rule struct {
	matcher *matcher
	want    bool
}

// admits reports whether the text of the part is as its rules want it.
func (p *part) admits(text string) bool {
	for _, r := range p.rules {
		if r.matcher.matches(text) != r.want {
			return false
		}
	}
	return true
}

// meet returns the automaton of those texts of a part that its rules admit. What matches no pattern is still text: without
// saying so, bytes that are no UTF-8 would be among it.
func (m *automaton) meet(rules []rule) *automaton {
	for _, r := range rules {
		m = m.both(r)
		if !r.want {
			if text, err := compile("(?s:.*)"); err == nil {
				m = m.both(rule{text, true})
			}
		}
	}
	return m
}

// maxProduct bounds what one rule makes of the automaton of a part.
const maxProduct = 1 << 17

// both is the product with a rule's automaton. One that is too large is left at m, which describes more texts.
func (m *automaton) both(r rule) *automaton {
	type pair struct{ at, state int }
	product, number := &automaton{}, map[pair]int{}
	var todo []pair
	state := func(p pair) int {
		n, ok := number[p]
		if !ok {
			n = product.state()
			number[p] = n
			todo = append(todo, p)
		}
		return n
	}
	state(pair{})
	product.accept = product.state()
	for len(todo) > 0 {
		p := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if len(product.edges) > maxProduct {
			return m
		}
		if p.at == m.accept && r.matcher.accept[p.state] == r.want {
			product.skip(number[p], product.accept)
		}
		for _, e := range m.edges[p.at] {
			if e.skip {
				product.skip(number[p], state(pair{e.to, p.state}))
				continue
			}
			for class, bytes := range r.matcher.bytes {
				if common := bytes.and(e.bytes); common != (byteSet{}) {
					product.edge(number[p], common, state(pair{e.to, r.matcher.step(p.state, uint8(class))}))
				}
			}
		}
	}
	return product
}
