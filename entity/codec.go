package entity

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mortise-go/mortise/entity/internal/codec"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
)

// Key returns the key of o's row. Only the fields in the templates of PK and SK count. A key that cannot be built
// carries its error ([keys.Key.Err]); every call that uses the key returns it.
func (e *Entity[T]) Key(o T) keys.Key { return e.core.keyOf(valueOf(&o)) }

func (e *core) keyOf(v reflect.Value) keys.Key {
	pk, err := e.plan.pk.format(v)
	if err != nil {
		return keys.InvalidKey(e.fail("key of", err))
	}
	sk, err := e.plan.sk.format(v)
	if err != nil {
		return keys.InvalidKey(e.fail("key of", err))
	}
	return keys.NewKey(pk, sk)
}

// format returns the key. It refuses a value in which a field of the key is empty.
func (k keyPlan) format(v reflect.Value) (string, error) {
	values := make([]any, len(k.refs))
	for i, f := range k.refs {
		val, ok, err := f.keyValue(v)
		if err != nil {
			return "", fmt.Errorf("field %q: %w", f.goName, err)
		}
		if !ok {
			return "", fmt.Errorf("%w: field %q of the key is empty", ErrInvalid, f.goName)
		}
		values[i] = val
	}
	key, err := k.tpl.Format(values...)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return key, nil
}

// missing returns the first field of the key that has no value, or nil. A value that no key can have is one, of which format returns the
// error: otherwise it would be left out unnoticed.
func (k keyPlan) missing(v reflect.Value) *field {
	for _, f := range k.refs {
		if f.empty(v) {
			return f
		}
	}
	return nil
}

// empty reports whether the field has no value for a key. Nor has a zero of which its type makes no text, such as that of an enumeration: no
// attribute is written for it, or the row's own encoding refuses it.
func (f *field) empty(v reflect.Value) bool {
	stored, err := f.stored(f.of(v))
	if err != nil {
		return false
	}
	_, has, err := keyValue(stored)
	return !has && (err == nil || stored.IsZero())
}

// restore sets the wanted fields of v from a key. The others have attributes of their own, and may be of types that cannot be read
// from a key.
func (k keyPlan) restore(v reflect.Value, key string, wanted func(*field) bool) error {
	parsed, err := k.tpl.Parse(key)
	if err != nil {
		return misfitError{err} // names the template, and nothing of the key
	}
	for i, f := range k.stored {
		if !wanted(f) {
			continue
		}
		at := f.of(v)
		at.SetZero() // T's own decoder may have set it
		if err := setKeyValue(at, parsed[i]); err != nil {
			return err
		}
	}
	return nil
}

// encode returns v as a row: T's attributes, the keys, the type, and the attributes that the entity maintains.
func (e *core) encode(v reflect.Value, version int64) (table.Item, error) {
	item, err := e.plan.marshal(v)
	if err != nil {
		return nil, err
	}
	key := e.keyOf(v)
	if err := key.Validate(); err != nil {
		return nil, err
	}
	p := e.plan
	if err := p.fitKeys(item); err != nil {
		return nil, err
	}
	if p.version != nil {
		delete(item, p.version.attr)
		item[p.scheme.Version] = number(version)
	}
	if p.ttl != nil {
		delete(item, p.ttl.attr)
		if av := p.ttlAttribute(p.ttl.of(v)); av != nil {
			item[p.scheme.TTL] = av
		}
	}
	if n := p.current(); n > 0 {
		item[p.schema] = number(n)
	}
	item[p.scheme.PK] = &types.AttributeValueMemberS{Value: key.PK}
	item[p.scheme.SK] = &types.AttributeValueMemberS{Value: key.SK}
	if !p.untyped {
		item[p.scheme.Type] = &types.AttributeValueMemberS{Value: e.typ}
	}
	for i := range p.indexes {
		values, err := p.indexes[i].keys(v)
		if err != nil {
			return nil, err
		}
		for _, kv := range values {
			if kv.value != "" {
				item[kv.attr] = &types.AttributeValueMemberS{Value: kv.value}
			}
		}
	}
	return item, nil
}

func number(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}

// ttlTime rounds up to whole seconds, so that a row does not expire early, and to the first second after 1970: a number from 0 down would
// mean never.
func ttlTime(at time.Time) time.Time {
	s := at.Unix()
	if at.Nanosecond() > 0 {
		s++
	}
	return time.Unix(max(s, 1), 0).UTC()
}

// roundTTL rounds the time to live in v, as the row stores it.
func (p *plan) roundTTL(v reflect.Value) {
	if p.ttl == nil {
		return
	}
	if at := p.ttl.of(v); !at.IsZero() {
		at.Set(reflect.ValueOf(ttlTime(at.Interface().(time.Time))))
	}
}

func ttlValue(at time.Time) types.AttributeValue { return number(ttlTime(at).Unix()) }

// ttlAttribute returns the TTL field as it is stored, or nil if the row never expires.
func (p *plan) ttlAttribute(v reflect.Value) types.AttributeValue {
	if at := v.Interface().(time.Time); !at.IsZero() {
		return ttlValue(at)
	}
	return nil
}

type keyAttr struct{ attr, value string }

// keys returns the index's template-made key attributes. If v is not in the index, their values are "", except for homes.
func (x *indexPlan) keys(v reflect.Value) ([]keyAttr, error) {
	in := x.pk.missing(v) == nil && x.sk.missing(v) == nil && x.when.holds(v)
	list := make([]keyAttr, 0, 2)
	for _, k := range []*keyPlan{&x.pk, &x.sk} {
		if k.tpl == nil || k.inherited {
			continue
		}
		kv := keyAttr{attr: k.attr}
		var err error
		switch {
		case len(k.keeps) > 0: // stored even if the row is not in the index
			kv.value, err = k.whole(v)
		case in:
			kv.value, err = k.format(v)
		}
		if err != nil {
			return nil, fmt.Errorf("index %s: %w", x.name, err)
		}
		list = append(list, kv)
	}
	return list, nil
}

// Owns reports whether a row belongs to the entity. The type attribute decides or, if there is none, the key and
// [Spec.Match].
func (e *Entity[T]) Owns(item table.Item) bool { return e.core.owns(item) }

func (e *core) owns(item table.Item) bool {
	if item[e.plan.scheme.Type] == nil {
		return e.plan.fits(item)
	}
	return text(item, e.plan.scheme.Type) == e.typ
}

// Decode turns a row into a T. It refuses rows of other types with [ErrType], and does not check expiry. Errors are
// *[DecodeError].
func (e *Entity[T]) Decode(item table.Item) (T, error) {
	v, err := e.core.decode(item)
	return typed[T](v), err
}

func (e *core) decode(item table.Item) (reflect.Value, error) {
	v := e.zero()
	if attribute, err := e.decodeInto(v, item); err != nil {
		key, _ := e.table.KeyOf(item)
		return reflect.Value{}, &DecodeError{Type: e.typ, Key: key, Attribute: attribute, Err: err, reason: reason(err)}
	}
	return v, nil
}

// decodeAt is decode for a row that will be written back. It refuses a row of another program whose attributes give another
// key than the row has, because the write would go to that other key.
func (e *core) decodeAt(key keys.Key, item table.Item) (reflect.Value, error) {
	v, err := e.decode(item)
	if err != nil {
		return v, err
	}
	have := e.keyOf(v)
	if have == key {
		return v, nil
	}
	at := &DecodeError{Type: e.typ, Key: key, Attribute: e.plan.scheme.PK, Err: have.Err()}
	if have.PK == key.PK {
		at.Attribute = e.plan.scheme.SK
	}
	if at.Err == nil {
		at.Err = fmt.Errorf("%w: the row's attributes make another key than it has", ErrInvalid)
	}
	return reflect.Value{}, at
}

// decodeInto sets v, a zero value, from a row. It also returns the attribute that caused the error, if it is known.
func (e *core) decodeInto(v reflect.Value, item table.Item) (attribute string, err error) {
	if !e.owns(item) {
		return "", e.otherType(item)
	}
	p := e.plan
	if item, err = p.upgraded(item); err != nil {
		return p.schema, err
	}
	if attribute, err := p.unmarshal(item, v); err != nil {
		return attribute, err
	}
	if p.version != nil {
		n, err := integer(item[p.scheme.Version])
		if err != nil {
			return p.scheme.Version, err
		}
		p.version.of(v).SetInt(n)
	}
	if p.ttl != nil {
		at, err := integer(item[p.scheme.TTL])
		if err != nil && !isNull(item[p.scheme.TTL]) { // other programs write NULL for a row that never expires
			return p.scheme.TTL, err
		}
		if at > 0 { // as for expired
			p.ttl.of(v).Set(reflect.ValueOf(time.Unix(at, 0).UTC()))
		}
	}
	if attribute, err := p.restoreHomes(item, v); err != nil {
		return attribute, err
	}
	return p.restoreKeys(item, v)
}

// restoreKeys sets those fields of a key whose attributes the row lacks from the key itself. A field of a type that cannot be read from
// a key stays zero, like any other whose attribute an index does not project.
func (p *plan) restoreKeys(item table.Item, v reflect.Value) (attribute string, err error) {
	missing := func(f *field) bool { return f.attr == "" || item[f.attr] == nil && restorable(f.typ) }
	for _, k := range []*keyPlan{&p.pk, &p.sk} {
		if !slices.ContainsFunc(k.refs, missing) {
			continue
		}
		key, ok := item[k.attr].(*types.AttributeValueMemberS)
		if !ok || key == nil {
			return k.attr, fmt.Errorf("%w: no such key attribute", ErrInvalid)
		}
		if err := k.restore(v, key.Value, missing); err != nil {
			return k.attr, err
		}
	}
	return "", nil
}

// integer returns a number attribute, or 0 if there is none.
func integer(av types.AttributeValue) (int64, error) {
	switch n := av.(type) {
	case nil:
		return 0, nil
	case *types.AttributeValueMemberN:
		if n == nil {
			break
		}
		i, err := strconv.ParseInt(n.Value, 10, 64)
		if err != nil {
			break
		}
		return i, nil
	}
	return 0, misfit(fmt.Errorf("%w: want a whole number", codec.ErrKind))
}

// expired reports whether a row is past its time to live. It evaluates the condition of hasExpired, so a time to live that is
// no whole number counts too: other programs write fractions of a second.
func (p *plan) expired(item table.Item, now time.Time) bool {
	if p.ttl == nil {
		return false
	}
	av := item[p.scheme.TTL]
	at, err := integer(av)
	if err == nil {
		return at > 0 && at <= now.Unix()
	}
	n, ok := av.(*types.AttributeValueMemberN)
	return ok && n != nil && compareKeys(table.Number, n.Value, "1") >= 0 &&
		compareKeys(table.Number, n.Value, strconv.FormatInt(now.Unix(), 10)) <= 0
}
