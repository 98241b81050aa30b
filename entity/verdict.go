package entity

import (
	"fmt"
	"maps"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
)

// verdict is the result of evaluating Match before a write, when only the key of the row is known: the rule holds (the zero
// value), never holds, or holds under a condition on the row.
type verdict struct {
	never   bool
	cond    table.Cond
	effects map[string]effect // changes by an update to the attributes that the rule names
}

// effect is the content of an attribute after an update.
type effect struct {
	av      types.AttributeValue // nil if the attribute is removed
	some    bool                 // the attribute exists, with an unknown value
	unclear bool                 // it is unknown whether the attribute exists
}

// at evaluates the rule for a row without a type attribute at a key.
func (m *match) at(key keys.Key) verdict {
	if m == nil {
		return verdict{}
	}
	v, _ := m.ask(key, nil) // only effects cause errors
	return v
}

// after evaluates the rule for a row without a type attribute before and after an update. It refuses an update after which
// the rule could not hold.
func (m *match) after(key keys.Key, u *update) (verdict, error) {
	before := m.at(key)
	if m == nil || before.never {
		return before, nil
	}
	effects := map[string]effect{}
	for i := range u.list {
		switch r := &u.list[i]; r.verb {
		case setVerb, removeVerb:
			effects[r.attr] = effect{av: r.av}
		case removeFromVerb:
			effects[r.attr] = effect{unclear: true}
		default:
			effects[r.attr] = effect{some: true}
		}
	}
	touched := false
	for _, attr := range m.attrs {
		_, ok := effects[attr]
		touched = touched || ok
	}
	if !touched {
		return before, nil
	}
	after, err := m.ask(key, effects)
	switch {
	case err != nil:
		return before, err
	case after.never:
		return before, fmt.Errorf("%w: %s", ErrMatch, m)
	}
	return verdict{cond: table.And(before.cond, after.cond), effects: effects}, nil
}

// keeps reports whether a row that matches still matches after the update.
func (v verdict) keeps(m *match, item table.Item) bool {
	if v.effects == nil {
		return true
	}
	after := maps.Clone(item)
	for attr, e := range v.effects {
		switch {
		case e.av != nil:
			after[attr] = e.av
		case !e.some:
			delete(after, attr)
		case after[attr] == nil:
			after[attr] = &types.AttributeValueMemberNULL{Value: true}
		}
	}
	return m.holds(after)
}

// ask returns the rule as a condition on a row at a key, given the effects of an update on its attributes.
func (r *rule) ask(key keys.Key, effects map[string]effect) (verdict, error) {
	if r.kind == hasAttr || r.kind == attrEquals {
		if e, ok := effects[r.name]; ok {
			return r.foresee(e)
		}
	}
	switch r.kind {
	case hasAttr:
		return verdict{cond: table.Attr(r.name).Exists()}, nil
	case attrEquals:
		if len(r.values) == 1 {
			return verdict{cond: table.Attr(r.name).Equal(r.values[0])}, nil
		}
		values := make([]any, len(r.values))
		for i, v := range r.values {
			values[i] = v
		}
		return verdict{cond: table.Attr(r.name).In(values...)}, nil
	case keyPart:
		text := key.SK
		if r.inPK {
			text = key.PK
		}
		return verdict{never: !r.narrow.Matches(text)}, nil
	case noneOf:
		v, err := r.subs[0].ask(key, effects)
		switch {
		case err != nil || v.never:
			return verdict{}, err
		case v.cond.IsZero():
			return verdict{never: true}, nil
		}
		return verdict{cond: table.Not(v.cond)}, nil
	}
	var all verdict
	var unclear error
	for _, sub := range r.subs {
		v, err := sub.ask(key, effects)
		switch {
		case err != nil:
			unclear = err
		case v.never:
			return v, nil
		}
		all.cond = table.And(all.cond, v.cond)
	}
	return all, unclear
}

// foresee evaluates a rule about an attribute that an update changes to e.
func (r *rule) foresee(e effect) (verdict, error) {
	switch {
	case e.unclear, e.some && r.kind == attrEquals:
		return verdict{}, fmt.Errorf("%w: what the change leaves in %q is not known: use Set or Modify", ErrMatch, r.name)
	case e.some:
		return verdict{}, nil
	case r.kind == hasAttr:
		return verdict{never: e.av == nil}, nil
	}
	return verdict{never: !r.equals(e.av)}, nil
}
