package entity

import (
	"errors"
	"fmt"
	"slices"

	"github.com/mortise-go/mortise/internal/attrvalue"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mortise-go/mortise/internal/toolkit"
	"github.com/mortise-go/mortise/keys"
)

// claim is one case in which a row without a type attribute belongs to an entity: all facts hold, and the key fits pk and sk.
type claim struct {
	facts  []fact
	pk, sk *keys.Template
}

// fact is a rule about one attribute or one part of a key, or the negation of such a rule.
type fact struct {
	*rule
	not bool
}

// maxCases bounds the cost of comparing two rules.
const maxCases = 100

// cases returns the rule, or its negation if not is set, in disjunctive normal form: all facts of one element must hold.
func (r *rule) cases(not bool) ([][]fact, error) {
	switch {
	case r.kind == noneOf:
		return r.subs[0].cases(!not)
	case r.kind != allOf:
		return [][]fact{{{r, not}}}, nil
	}
	var all [][]fact
	if !not {
		all = [][]fact{nil}
	}
	for _, sub := range r.subs {
		some, err := sub.cases(not)
		if err != nil {
			return nil, err
		}
		if not { // "not all hold" means that at least one does not
			all = append(all, some...)
		} else {
			var product [][]fact
			for _, a := range all {
				for _, b := range some {
					product = append(product, slices.Concat(a, b))
				}
			}
			all = product
		}
		if len(all) > maxCases {
			return nil, fmt.Errorf("more than %d cases", maxCases)
		}
	}
	return all, nil
}

// expand computes the claims of a rule for rows without a type attribute. It refuses a rule that holds neither for such
// a row nor for a row of the entity's own type.
func (m *match) expand(p *plan, typ string) error {
	all, err := m.rule.cases(false)
	if err != nil {
		return err
	}
	untyped := fact{&rule{kind: hasAttr, name: p.scheme.Type}, true}
	own := fact{&rule{kind: attrEquals, name: p.scheme.Type, values: []types.AttributeValue{&types.AttributeValueMemberS{Value: typ}}}, false}
	possible := false
	for _, facts := range all {
		c := claim{facts: slices.Concat(facts, []fact{untyped}), pk: p.pk.tpl, sk: p.sk.tpl}
		for _, f := range facts {
			if f.kind != keyPart {
				continue
			}
			tpl := &c.sk
			if f.inPK {
				tpl = &c.pk
			}
			narrow := (*tpl).Only
			if f.not {
				narrow = (*tpl).Except
			}
			if *tpl, err = narrow(f.field, f.pattern); err != nil {
				return err
			}
		}
		if !keys.Overlap(c.pk, c.pk) || !keys.Overlap(c.sk, c.sk) { // no such key exists
			continue
		}
		if consistent(c.facts) {
			m.claims = append(m.claims, c)
		}
		possible = possible || consistent(c.facts) || consistent(slices.Concat(facts, []fact{own}))
	}
	if !possible {
		return fmt.Errorf("no row matches %s", m)
	}
	return nil
}

// consistent reports whether one row can satisfy all facts. It ignores facts about parts of keys; templates compare these.
func consistent(facts []fact) bool {
	type attribute struct {
		exists, missing bool
		among           []types.AttributeValue // used if exact is set
		exact           bool
		except          []types.AttributeValue
	}
	has := func(list []types.AttributeValue, v types.AttributeValue) bool {
		return slices.ContainsFunc(list, func(w types.AttributeValue) bool { return attrvalue.Same(v, w) })
	}
	attrs := map[string]*attribute{}
	for _, f := range facts {
		a := attrs[f.name]
		if a == nil {
			a = &attribute{}
			attrs[f.name] = a
		}
		switch {
		case f.kind == keyPart:
		case f.kind == hasAttr && f.not:
			a.missing = true
		case f.kind == hasAttr:
			a.exists = true
		case f.not:
			a.except = append(a.except, f.values...)
		case !a.exact:
			a.exists, a.exact, a.among = true, true, f.values
		default:
			a.among = slices.DeleteFunc(slices.Clone(a.among), func(v types.AttributeValue) bool { return !has(f.values, v) })
		}
	}
	for _, a := range attrs {
		if a.exists && a.missing {
			return false
		}
		if a.exact && !slices.ContainsFunc(a.among, func(v types.AttributeValue) bool { return !has(a.except, v) }) {
			return false
		}
	}
	return true
}

// claims returns the cases in which a row without a type attribute is of this kind.
func (k *rowKeys) claims() []claim {
	if k.match == nil {
		return []claim{{pk: k.pk, sk: k.sk}}
	}
	return k.match.claims
}

// ambiguous returns the error for two kinds that overlap, with a remedy. The module's own rows have no Match to change.
func (k *rowKeys) ambiguous(o *rowKeys) error {
	text := fmt.Sprintf("PK %q with SK %q could be the key of a %q, whose templates are %q and %q", k.pk, k.sk, o.typ, o.pk, o.sk)
	const narrow = ": a KeyPart in Spec.Match of %q can leave such keys out, or a template of another form, " +
		"or AttrEquals of the type attribute and the own type, if no row lacks it"
	switch {
	case toolkit.Has(k.typ) && toolkit.Has(o.typ):
	case toolkit.Has(k.typ):
		text += fmt.Sprintf(narrow, o.typ)
	case toolkit.Has(o.typ):
		text += fmt.Sprintf(narrow, k.typ)
	case k.match == nil && o.match == nil:
		text += ": a Match in both specifications can tell their rows apart: HasAttr in one and Not(HasAttr) in the other, a KeyPart in each, " +
			"or AttrEquals of the type attribute and the own type in each, if no row lacks it"
	default:
		text += fmt.Sprintf(": one row could be both, by Match %s here and %s there: Not of the one rule, in the other specification, tells them apart", k.match, o.match)
	}
	return errors.New(text)
}

// meets reports whether a row without a type attribute could be of both kinds. False is proven; true is not.
func (k *rowKeys) meets(o *rowKeys) bool {
	if !keys.Overlap(k.sk, o.sk) || !keys.Overlap(k.pk, o.pk) { // sort keys first, since they usually differ
		return false
	}
	if k.match == nil && o.match == nil {
		return true
	}
	for _, a := range k.claims() {
		for _, b := range o.claims() {
			if consistent(slices.Concat(a.facts, b.facts)) && keys.Overlap(a.sk, b.sk) && keys.Overlap(a.pk, b.pk) {
				return true
			}
		}
	}
	return false
}
