package entity

import (
	"fmt"
	"reflect"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// A field without an attribute (tagged "-") that is part of an index's key and not of the row's own is
// kept in that key alone: its home. It is written whenever all fields of the key have values, whether
// or not the row is in the index, and read back by the key's template.

// settle finds the fields that a key of an index is the home of. A field's home is the first
// key that it stands in.
func (c *compiler) settle(k *keyPlan) {
	for _, f := range k.stored {
		if f.attr == "" && f.index != nil && f.home == nil && !c.plan.inKey(f) && f != c.plan.ttl && f != c.plan.version {
			k.keeps = append(k.keeps, f)
		}
	}
	if len(k.keeps) == 0 {
		return
	}
	home := *k
	for _, f := range k.keeps {
		f.home = &home
	}
	c.plan.homes = append(c.plan.homes, &home)
}

// removable reports whether a key can be left out of a row to keep the row out of the index.
func (k *keyPlan) removable() bool { return k.tpl != nil && !k.inherited && len(k.keeps) == 0 }

// whole is the key for v, "" where v has nothing to keep there. What would not come back is refused.
func (k *keyPlan) whole(v reflect.Value) (string, error) {
	if !k.complete(v) {
		for _, f := range k.keeps {
			if _, has, _ := f.keyValue(v); has && !f.of(v).IsZero() {
				return "", fmt.Errorf("%w: field %q is kept in attribute %q alone, which needs a value of field %q too", ErrInvalid, f.goName, k.attr, k.missing(v))
			}
		}
		return "", nil
	}
	key, err := k.format(v)
	if err != nil {
		return "", err
	}
	back := reflect.New(v.Type()).Elem()
	if err := k.restore(back, key); err != nil {
		return "", fmt.Errorf("%w: attribute %q could not be read back: %w", ErrInvalid, k.attr, err)
	}
	for _, f := range k.keeps {
		if !sameKeyValue(f.of(v), f.of(back)) {
			return "", fmt.Errorf("%w: field %q could not be read back from attribute %q", ErrInvalid, f.goName, k.attr)
		}
	}
	return key, nil
}

// missing is the first field of the key that has no value.
func (k *keyPlan) missing(v reflect.Value) string {
	for _, f := range k.refs {
		if _, has, _ := f.keyValue(v); !has {
			return f.goName
		}
	}
	return ""
}

// kept is the key as it is kept in a row; nil for none.
func (k *keyPlan) kept(v reflect.Value) (types.AttributeValue, error) {
	key, err := k.whole(v)
	if err != nil || key == "" {
		return nil, err
	}
	return &types.AttributeValueMemberS{Value: key}, nil
}

// restoreHomes fills the fields that are kept in keys of indexes. It also returns the attribute
// that is at fault.
func (p *plan) restoreHomes(item map[string]types.AttributeValue, v reflect.Value) (attribute string, err error) {
	for _, k := range p.homes {
		av := item[k.attr]
		if av == nil {
			continue // nothing to keep, or not read: an index need not hold it
		}
		key, ok := av.(*types.AttributeValueMemberS)
		if !ok || key == nil {
			return k.attr, fmt.Errorf("%w: not a string", ErrInvalid)
		}
		back := reflect.New(v.Type()).Elem()
		if err := k.restore(back, key.Value); err != nil {
			return k.attr, fmt.Errorf("%w: %w", ErrInvalid, err)
		}
		for _, f := range k.keeps { // other fields have attributes of their own
			f.of(v).Set(f.of(back))
		}
	}
	return "", nil
}
