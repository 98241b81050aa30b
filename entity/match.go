package entity

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/mortise-go/mortise/internal/attrvalue"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
)

// Match is a rule about rows, for [Spec.Match]. [HasAttr], [AttrEquals] and [KeyPart] make rules; [And] and [Not]
// combine them. [Define] decides whether two rules could hold for the same row. The zero Match holds for every row.
type Match struct{ rule *rule }

// HasAttr holds for rows that have an attribute, with any value including NULL. The name is that of a field, as in
// [Spec], or of any other attribute.
func HasAttr(name string) Match { return Match{&rule{kind: hasAttr, name: name}} }

// AttrEquals holds for rows in which an attribute equals one of the values. Pass 1 to 100 values: strings, numbers,
// booleans, bytes, or types that are encoded as one of these. They are encoded by their own type, not by a field's tag.
// The name is as for [HasAttr].
func AttrEquals(name string, values ...any) Match {
	r := &rule{kind: attrEquals, name: name}
	if len(values) < 1 || len(values) > maxValues {
		r.err = fmt.Errorf("AttrEquals(%q): want 1 to %d values, not %d", name, maxValues, len(values))
	}
	for _, v := range values {
		av, err := table.Encode(v)
		if err != nil {
			r.err = fmt.Errorf("AttrEquals(%q): %w", name, err)
			continue
		}
		switch av.(type) {
		case *types.AttributeValueMemberS, *types.AttributeValueMemberN, *types.AttributeValueMemberBOOL, *types.AttributeValueMemberB:
			r.values = append(r.values, av)
		default:
			r.err = fmt.Errorf("AttrEquals(%q): want a string, a number, a boolean or bytes, not a %T", name, v)
		}
	}
	return Match{r}
}

// maxValues is the greatest number of operands of DynamoDB's IN.
const maxValues = 100

// KeyPart holds for rows in whose key the text of a field of PK or SK matches a pattern.
//
// The pattern has the syntax of package regexp, has to match the whole text, and has no anchors. To match a literal,
// use [regexp.QuoteMeta]. The text is that in the key: its delimiters are escaped, and numbers have their full width
// (see [keys.Template.Only]).
func KeyPart(field, pattern string) Match {
	return Match{&rule{kind: keyPart, name: field, pattern: pattern}}
}

// And holds for a row if all rules hold.
func And(rules ...Match) Match {
	r := &rule{kind: allOf}
	for _, m := range rules {
		if m.rule != nil {
			r.subs = append(r.subs, m.rule)
		}
	}
	if len(r.subs) == 0 {
		return Match{}
	}
	return Match{r}
}

// Not holds for a row if the rule does not.
func Not(m Match) Match {
	if m.rule == nil {
		m.rule = &rule{kind: allOf}
	}
	return Match{&rule{kind: noneOf, subs: []*rule{m.rule}}}
}

// String returns the rule in Go syntax.
func (m Match) String() string {
	if m.rule == nil {
		return "And()"
	}
	return m.rule.String()
}

// rule is the content of a Match. Compiling turns name into an attribute, except for keyPart, where it stays the caller's name.
type rule struct {
	kind    ruleKind
	name    string
	values  []types.AttributeValue // for attrEquals
	pattern string                 // for keyPart
	subs    []*rule
	err     error // why the rule is invalid

	// For a compiled keyPart: whether the part is in PK, the key's attribute, the field's name in the key's template, and
	// the template that matches only keys for which the rule holds.
	inPK   bool
	attr   string
	field  string
	narrow *keys.Template
}

type ruleKind uint8

const (
	hasAttr ruleKind = iota
	attrEquals
	keyPart
	allOf
	noneOf
)

func (r *rule) String() string {
	if r.kind == keyPart {
		return "KeyPart(" + strconv.Quote(r.name) + ", " + strconv.Quote(r.pattern) + ")"
	}
	args := make([]string, 0, 1+len(r.values)+len(r.subs))
	if r.name != "" {
		args = append(args, strconv.Quote(r.name))
	}
	for _, v := range r.values {
		args = append(args, literal(v))
	}
	for _, sub := range r.subs {
		args = append(args, sub.String())
	}
	return [...]string{"HasAttr", "AttrEquals", "KeyPart", "And", "Not"}[r.kind] + "(" + strings.Join(args, ", ") + ")"
}

// literal formats a value of a rule for error texts, and for the comparison in same.
func literal(av types.AttributeValue) string {
	switch v := av.(type) {
	case *types.AttributeValueMemberS:
		return strconv.Quote(v.Value)
	case *types.AttributeValueMemberN:
		return v.Value
	case *types.AttributeValueMemberBOOL:
		return strconv.FormatBool(v.Value)
	}
	return fmt.Sprintf("%#v", av.(*types.AttributeValueMemberB).Value) // AttrEquals takes no others
}

// match is a compiled rule; nil if there is none.
type match struct {
	*rule
	attrs  []string // attributes that the rule names
	claims []claim  // the cases in which it holds for a row without a type attribute
}

// match compiles Spec.Match. The keys and the fields that the entity maintains must be compiled already.
func (c *compiler) match() {
	p, m := c.plan, c.spec.Match
	if m.rule == nil || p.pk.tpl == nil || p.sk.tpl == nil {
		return
	}
	before := len(c.problems)
	compiled := &match{}
	compiled.rule = c.rule(m.rule, compiled)
	if len(c.problems) > before {
		return
	}
	slices.Sort(compiled.attrs)
	compiled.attrs = slices.Compact(compiled.attrs)
	if err := compiled.expand(p, c.spec.Type); err != nil {
		c.problem("Match: %w", err)
		return
	}
	p.match = compiled
}

// rule compiles one rule and records the attributes that it names.
func (c *compiler) rule(r *rule, m *match) *rule {
	out := *r
	if r.err != nil {
		c.problem("Match: %w", r.err)
	}
	switch r.kind {
	case hasAttr, attrEquals:
		out.name = c.matchable(r.name)
		m.attrs = append(m.attrs, out.name)
	case keyPart:
		c.keyPart(&out)
	default:
		out.subs = make([]*rule, len(r.subs))
		for i, sub := range r.subs {
			out.subs[i] = c.rule(sub, m)
		}
	}
	return &out
}

// matchable returns the attribute that a rule names. It refuses attributes that the entity itself writes, since a rule
// about them would only describe its own writes.
func (c *compiler) matchable(name string) string {
	p, s := c.plan, c.plan.scheme
	f := resolve(c.plan.fields, name)
	switch name {
	case "":
		c.problem("Match: an attribute without a name")
		return name
	case s.PK, s.SK:
		c.problem("Match: attribute %q is a key: KeyPart looks at the parts of keys", name)
		return name
	case s.Type:
		return name
	}
	attr := name
	if f != nil {
		if attr = p.attrOf(f); attr == "" {
			c.problem("Match: field %q has no attribute: KeyPart looks at the parts of keys", name)
			return name
		}
	}
	made := f != nil && (f == p.version || f == p.ttl) ||
		p.version != nil && attr == s.Version || p.ttl != nil && attr == s.TTL || attr == p.schema
	for _, x := range p.indexes {
		for _, k := range []keyPlan{x.pk, x.sk} {
			made = made || k.tpl != nil && k.attr == attr
		}
	}
	if made {
		c.problem("Match: attribute %q is maintained by the entity", name)
	}
	return attr
}

// keyPart completes a keyPart rule: it finds the key that contains the field.
func (c *compiler) keyPart(r *rule) {
	f := resolve(c.plan.fields, r.name)
	for _, k := range []*keyPlan{&c.plan.pk, &c.plan.sk} {
		for i, tf := range k.tpl.Fields() {
			if tf.Computed || tf.Name != r.name && (f == nil || k.refs[i] != f) {
				continue
			}
			narrow, err := k.tpl.Only(tf.Name, r.pattern)
			if err != nil {
				c.problem("Match: %w", err)
				return
			}
			r.inPK, r.attr, r.field, r.narrow = k == &c.plan.pk, k.attr, tf.Name, narrow
			return
		}
	}
	c.problem("Match: KeyPart(%q): no such field in PK or SK", r.name)
}

// holds reports whether the rule holds for a row.
func (m *match) holds(item table.Item) bool { return m == nil || m.rule.holds(item) }

func (r *rule) holds(item table.Item) bool {
	switch r.kind {
	case hasAttr:
		return item[r.name] != nil
	case attrEquals:
		return r.equals(item[r.name])
	case keyPart:
		return r.narrow.Matches(text(item, r.attr))
	case noneOf:
		return !r.subs[0].holds(item)
	}
	for _, sub := range r.subs {
		if !sub.holds(item) {
			return false
		}
	}
	return true
}

func (r *rule) equals(have types.AttributeValue) bool {
	return !attrvalue.IsNil(have) && slices.ContainsFunc(r.values, func(v types.AttributeValue) bool { return attrvalue.Same(v, have) })
}

// fits reports whether a row has a key of the entity and Match holds. It does not compare the type with the entity's.
func (p *plan) fits(item table.Item) bool {
	return p.pk.tpl.Matches(text(item, p.scheme.PK)) && p.sk.tpl.Matches(text(item, p.scheme.SK)) && p.match.holds(item)
}

// checkMatch refuses a row for which Match holds neither with nor without the type attribute. Other programs, which do not
// know that attribute, would take the row for one of another type.
func (p *plan) checkMatch(item table.Item) error {
	if p.match.holds(item) {
		return nil
	}
	if _, typed := item[p.scheme.Type]; typed {
		bare := make(table.Item, len(item))
		for name, av := range item {
			if name != p.scheme.Type {
				bare[name] = av
			}
		}
		if p.match.holds(bare) {
			return nil
		}
	}
	return fmt.Errorf("%w: %s", ErrMatch, p.match)
}

// String returns the rule in Go syntax, or "none" if there is no rule.
func (m *match) String() string {
	if m == nil {
		return "none"
	}
	return m.rule.String()
}

// same reports whether two entities have the same rule, written in the same way.
func (m *match) same(o *match) bool {
	return m.String() == o.String()
}
