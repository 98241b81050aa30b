package keys

import "slices"

// Only returns a template of those keys of t in which the text of a field matches a pattern. [Template.Format],
// [Template.Parse] and [Template.Matches] of the new template check the pattern, and so do prefixes and ranges for the
// values that they are given. [Overlap] takes it into account.
//
// The pattern has the syntax of package regexp and has to match the whole text of the field. Anchors and word
// boundaries are therefore [ErrSyntax]. To match a literal, use [regexp.QuoteMeta]. The text is that in the key: its
// delimiters are escaped, and numbers have their full width.
//
// An unknown field is [ErrUnknownField]. So is a field that occurs only in a shard, because the key does not contain
// its text. A pattern that needs more than 1,000 states is [ErrRange].
func (t *Template) Only(field, pattern string) (*Template, error) {
	return t.restrict("only", field, pattern, true)
}

// Except returns a template of those keys of t in which the text of a field does not match a pattern. See
// [Template.Only] for patterns and errors.
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

// rule is a pattern that the text of a part must match, or must not match if want is false.
type rule struct {
	matcher *matcher
	want    bool
}

// admits reports whether text obeys the rules of the part.
func (p *part) admits(text string) bool {
	for _, r := range p.rules {
		if r.matcher.matches(text) != r.want {
			return false
		}
	}
	return true
}

// meet returns the automaton of those texts of m that obey the rules. The complement of a pattern also contains byte strings that are not
// UTF-8. So for a rule of Except, meet also excludes those.
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

// maxProduct bounds the states of the automaton that results from one rule.
const maxProduct = 1 << 17

// both returns the product of m and a rule's automaton. If the product is too large it returns m, which accepts more texts.
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
