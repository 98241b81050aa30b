package entity

import (
	"fmt"
	"maps"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
)

// verdict is what is known of a rule before a write: that it holds, that it does not, or that it does under a condition.
// The zero value is that it holds.
type verdict struct {
	never   bool
	cond    table.Cond
	effects map[string]effect // of an update that changes what the rule looks at
}

// effect is what an update leaves in an attribute.
type effect struct {
	av      types.AttributeValue // nil for nothing
	some    bool                 // a value that is not known
	unclear bool                 // a value that is not known, or nothing
}

// at returns the rule for a row without a type attribute at a key.
func (m *match) at(key keys.Key) verdict {
	if m == nil {
		return verdict{}
	}
	v, _ := m.ask(key, nil) // an error is of effects
	return v
}

// after returns the rule for such a row before an update and after it. An update after which it could not hold is refused.
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

// keeps reports whether a row that matches will match after the update.
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

// ask returns the rule as a condition on a row at a key, with the attributes in effects as they say.
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

// foresee returns the rule for an attribute that an update changes.
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
