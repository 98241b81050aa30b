package entity

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/guregu/dynamo/v2"

	"github.com/mortise-go/mortise/entity/internal/codec"
	"github.com/mortise-go/mortise/table"
)

// rows converts values of T to rows and back, except for the version and the time to live, which the entity stores in the
// scheme's attributes. It is compiled once and immutable.
type rows struct {
	fields *codec.Struct // without the version and the time to live
	more   int           // attributes that the entity adds at most, for the capacity of the map
	// marshals and unmarshals report that T encodes or decodes whole rows itself: dynamo.ItemMarshaler, ItemUnmarshaler.
	marshals, unmarshals bool
}

// rows compiles T, sets the codec of each field, and lists the attributes of fields that a caller cannot name.
func (c *compiler) rows() {
	t, prefix := c.goType, c.spec.AttributePrefix
	whole, err := codec.Compile(t)
	if err != nil {
		for _, err := range codec.Problems(err) {
			c.problem("%s: %w", t, err)
		}
		return
	}
	whole = whole.Prefixed(prefix)
	p := c.plan
	for _, f := range p.fields {
		if f.attr != "" {
			f.codec = whole.Field(f.attr)
			f.own = storesOther(f.typ)
		}
	}
	for _, name := range whole.Names() {
		switch {
		case slices.ContainsFunc(p.fields, func(f *field) bool { return f.attr == name }):
		case c.maintains(name):
			c.problem("attribute %q, of a field of an embedded pointer, is the table's, or the entity maintains it", name)
		default:
			p.nameless = append(p.nameless, name)
		}
	}
	var elsewhere []string
	for _, f := range []*field{p.version, p.ttl} {
		if f != nil {
			elsewhere = append(elsewhere, f.attr)
		}
	}
	own := reflect.PointerTo(t)
	p.rows = rows{
		fields:     whole.Without(elsewhere...),
		more:       5 + 2*len(p.indexes), // the scheme's five attributes
		marshals:   own.Implements(reflect.TypeFor[dynamo.ItemMarshaler]()),
		unmarshals: own.Implements(reflect.TypeFor[dynamo.ItemUnmarshaler]()),
	}
	if prefix != "" && (p.rows.marshals || p.rows.unmarshals) {
		c.problem("AttributePrefix: %s makes or reads whole rows itself, and names the attributes", t)
	}
}

// maintains reports whether the entity itself writes an attribute that is no field's, or DynamoDB gives it a meaning.
func (c *compiler) maintains(attr string) bool {
	p := c.plan
	return p.names(attr) || attr == p.scheme.TTL && !c.schema.NoTTL ||
		slices.ContainsFunc(p.indexes, func(x indexPlan) bool {
			return attr == x.pk.attr && x.pk.tpl != nil || attr == x.sk.attr && x.sk.tpl != nil
		})
}

// marshal returns the row of v, an addressable T.
func (p *plan) marshal(v reflect.Value) (table.Item, error) {
	r := &p.rows
	if r.marshals {
		item, err := dynamo.MarshalItem(copyOf(v).Addr().Interface()) // a copy, since T's method may change its receiver
		if err != nil {
			return nil, &table.EncodeError{What: "a " + v.Type().String(), Err: err}
		}
		own := make(table.Item, len(item)+r.more) // do not modify the application's map
		maps.Copy(own, item)
		return own, nil
	}
	item, err := r.fields.Encode(v, r.more)
	if err != nil {
		return nil, encodeError(err)
	}
	return item, nil
}

func encodeError(err error) error {
	var at *codec.Error
	if errors.As(err, &at) {
		return &table.EncodeError{What: fmt.Sprintf("attribute %q", at.Attribute), Err: at.Err}
	}
	return err
}

// unmarshal sets v, a zero T, from a row. It also returns the attribute that caused the error, if it is known.
func (p *plan) unmarshal(item table.Item, v reflect.Value) (attribute string, err error) {
	if p.rows.unmarshals {
		return p.unmarshalOwn(item, v)
	}
	if err := p.rows.fields.Decode(item, v); err != nil {
		var at *codec.Error
		if errors.As(err, &at) {
			return at.Attribute, misfit(at.Err)
		}
		return "", err
	}
	return "", nil
}

// misfit makes the codec's own errors match ErrInvalid. It returns errors of custom decoders unchanged.
func misfit(err error) error {
	if codec.Reason(err) == "" {
		return err
	}
	return misfitError{err}
}

// misfitError is an error of the codec, or of a key that does not match its template. Its text quotes no value.
type misfitError struct{ error }

func (misfitError) Is(target error) bool { return target == ErrInvalid }

func (e misfitError) Unwrap() error { return e.error }

// unmarshalOwn decodes a row with T's own method. It refuses a number that exceeds its field, which guregu/dynamo truncates.
func (p *plan) unmarshalOwn(item table.Item, v reflect.Value) (attribute string, err error) {
	plain := item
	if f := p.ttl; f != nil && item[f.attr] != nil {
		// T's time.Time does not accept a number unless its tag has unixtime.
		plain = maps.Clone(item)
		delete(plain, f.attr)
	}
	if err := dynamo.UnmarshalItem(plain, v.Addr().Interface()); err != nil {
		for _, f := range p.fields {
			if av := plain[f.attr]; f.attr != "" && av != nil && f.decode(reflect.New(f.typ).Elem(), av) != nil {
				return f.attr, err
			}
		}
		return "", err
	}
	for _, f := range p.fields {
		if n, ok := plain[f.attr].(*types.AttributeValueMemberN); ok && f.attr != "" && f.cutsOff(n.Value) {
			return f.attr, misfit(codec.ErrRange)
		}
	}
	return "", nil
}

// cutsOff reports whether the number n exceeds the range of a field of less than 64 bits.
func (f *field) cutsOff(n string) bool {
	var err error
	switch t := pointee(f.typ); t.Kind() {
	case reflect.Float32:
		_, err = strconv.ParseFloat(n, t.Bits())
	case reflect.Int8, reflect.Int16, reflect.Int32:
		_, err = strconv.ParseInt(n, 10, t.Bits())
	case reflect.Uint8, reflect.Uint16, reflect.Uint32:
		_, err = strconv.ParseUint(n, 10, t.Bits())
	}
	return errors.Is(err, strconv.ErrRange)
}
