package entity

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// A field without an attribute (tagged "-") that is part of an index's key, but not of the row's own key, is stored in
// the index key alone. That key is the field's home. It is written whenever all of its fields have values, whether or
// not the row is in the index, and read back with the key's template.

// settle makes k the home of its fields that need one and have none yet. So a field's home is the first index key with it.
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

// alsoStored finds the other index keys that contain the fields of a home.
func (c *compiler) alsoStored() {
	for _, home := range c.plan.homes {
		for _, x := range c.plan.indexes {
			for _, k := range []keyPlan{x.pk, x.sk} {
				missing := func(f *field) bool { return !slices.Contains(k.stored, f) }
				if k.tpl != nil && k.attr != home.attr && !slices.ContainsFunc(home.keeps, missing) {
					home.also = append(home.also, &k)
				}
			}
		}
	}
}

// removable reports whether the entity can omit the key to keep a row out of the index. A home must be stored in any case.
func (k *keyPlan) removable() bool { return k.tpl != nil && !k.inherited && len(k.keeps) == 0 }

// isKept reports whether the key is the home of a field.
func (k *keyPlan) isKept(f *field) bool { return slices.Contains(k.keeps, f) }

// whole returns the text of a home for v. It is "" if no field that the home keeps has a value. A value that could not be
// read back from the text is an error.
func (k *keyPlan) whole(v reflect.Value) (string, error) {
	if lacks := k.missing(v); lacks != nil {
		for _, f := range k.keeps {
			if !f.empty(v) && !f.of(v).IsZero() {
				return "", &partialError{fmt.Errorf("%w: field %q is kept in attribute %q alone, which needs a value of field %q too", ErrInvalid, f.goName, k.attr, lacks.goName), lacks}
			}
		}
		return "", nil
	}
	key, err := k.format(v)
	if err != nil {
		return "", err
	}
	back := reflect.New(v.Type()).Elem()
	if err := k.restore(back, key, k.isKept); err != nil {
		return "", fmt.Errorf("%w: attribute %q could not be read back: %w", ErrInvalid, k.attr, err)
	}
	for _, f := range k.keeps {
		if !sameKeyValue(f.of(v), f.of(back)) {
			return "", fmt.Errorf("%w: field %q could not be read back from attribute %q", ErrInvalid, f.goName, k.attr)
		}
	}
	return key, nil
}

// partialError reports a value that has some fields of a home and not the others. The row may have them.
type partialError struct {
	error
	lacks *field
}

func (e *partialError) Unwrap() error { return e.error }

// kept returns the attribute value of a home, or nil if the home is empty.
func (k *keyPlan) kept(v reflect.Value) (types.AttributeValue, error) {
	key, err := k.whole(v)
	if err != nil || key == "" {
		return nil, err
	}
	return &types.AttributeValueMemberS{Value: key}, nil
}

// restoreHomes sets the fields whose homes are index keys. A row can lack a home and have the fields in another index key: it is older than
// the index of the home, or was read in an index that does not project the home. If restoreHomes fails, it also returns the attribute that
// caused the error.
func (p *plan) restoreHomes(item map[string]types.AttributeValue, v reflect.Value) (attribute string, err error) {
	for _, home := range p.homes {
		k := home
		if item[k.attr] == nil {
			i := slices.IndexFunc(home.also, func(k *keyPlan) bool { return item[k.attr] != nil })
			if i < 0 {
				continue
			}
			k = home.also[i]
		}
		av := item[k.attr]
		key, ok := av.(*types.AttributeValueMemberS)
		if !ok || key == nil {
			return k.attr, fmt.Errorf("%w: not a string", ErrInvalid)
		}
		if err := k.restore(v, key.Value, home.isKept); err != nil {
			return k.attr, fmt.Errorf("%w: %w", ErrInvalid, err)
		}
	}
	return "", nil
}
