package entity

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/cockroachdb/apd/v3"

	"github.com/mortise-go/mortise/entity/internal/codec"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
)

// naturalKey is an attribute that is a key of an index but not made by a template. Its value has to suit the index, or
// DynamoDB refuses the write.
type naturalKey struct {
	attr  string
	index string
	kind  table.AttributeType
	limit int // greatest length in bytes
}

// naturals lists the natural keys, including those of indexes that the entity does not use, and checks the fields that
// are stored in them. It also checks the attributes of the scheme: DynamoDB refuses a row in which a key of an index has another type
// than the index wants.
func (c *compiler) naturals() {
	p, s := c.plan, c.plan.scheme
	made := map[string]bool{"": true, s.PK: true, s.SK: true}
	for _, own := range [...]struct {
		attr, setting string
		kind          table.AttributeType
		used          bool
	}{
		{s.Type, "Type", table.String, !p.untyped || len(p.uniques) > 0}, // sentinels have a type in any case
		{s.TTL, "TTL", table.Number, p.ttl != nil},
		{s.Version, "Version", table.Number, p.version != nil},
	} {
		if !own.used {
			continue
		}
		made[own.attr] = true
		for _, x := range c.schema.Indexes {
			if x.PK == own.attr && x.PKType != own.kind || x.SK == own.attr && x.SKType != own.kind {
				c.problem("attribute %q is a key of index %s, and not of type %s as the rows have it: name another attribute in Keys.%s",
					own.attr, x.Name, own.kind, own.setting)
			}
		}
	}
	for _, x := range p.indexes {
		for _, k := range []keyPlan{x.pk, x.sk} {
			if k.tpl != nil {
				made[k.attr] = true
			}
		}
	}
	at := map[string]int{}
	add := func(n naturalKey) {
		i, ok := at[n.attr]
		switch {
		case made[n.attr]:
		case !ok:
			at[n.attr] = len(p.naturals)
			p.naturals = append(p.naturals, n)
		case n.limit < p.naturals[i].limit:
			p.naturals[i] = n
		}
	}
	for _, x := range c.schema.Indexes {
		add(naturalKey{x.PK, x.Name, x.PKType, keys.MaxPK})
		add(naturalKey{x.SK, x.Name, x.SKType, keys.MaxSK})
	}
	for _, f := range c.plan.fields {
		i, ok := at[f.attr]
		if !ok || f.codec == nil {
			continue
		}
		n := &p.naturals[i]
		if kind, known := f.sample(); known && kind != string(n.kind) {
			c.problem("field %s: attribute %q is a key of index %s, of type %s, and the field's is %s", f.goName, f.attr, n.index, n.kind, kind)
		}
		f.natural = n
	}
}

// natural returns the field that the attribute stores, or nil. The attributes of Version and TTL are those of the scheme.
func (c *compiler) natural(attr string) *field {
	for _, f := range c.plan.fields {
		if f.attr == attr && f != c.plan.version && f != c.plan.ttl {
			return f
		}
	}
	return nil
}

// nearly returns a hint for an error text: the field that the attribute's name may have meant. It is "" if there is none.
func (c *compiler) nearly(attr string) string {
	f := resolve(c.plan.fields, attr)
	switch {
	case f == nil:
		return ""
	case f == c.plan.version || f == c.plan.ttl:
		return fmt.Sprintf(" (field %s is kept in an attribute of the scheme's)", f.goName)
	case f.attr == "":
		return fmt.Sprintf(" (field %s has no attribute: it is tagged \"-\")", f.goName)
	}
	return fmt.Sprintf(" (field %s is attribute %q: is it to be tagged dynamo:%q?)", f.goName, f.attr, attr)
}

// fit returns the value to store in the attribute. For an empty value it is nil, so that the row is not in the index.
func (n *naturalKey) fit(av types.AttributeValue) (types.AttributeValue, error) {
	kind := table.AttributeType("")
	size := 0
	switch v := av.(type) {
	case nil, *types.AttributeValueMemberNULL:
		return nil, nil
	case *types.AttributeValueMemberS:
		if v.Value == "" {
			return nil, nil
		}
		if kind, size = table.String, len(v.Value); !utf8.ValidString(v.Value) {
			return nil, fmt.Errorf("%w: attribute %q is a key of index %s: %w", ErrInvalid, n.attr, n.index, keys.ErrInvalidUTF8)
		}
	case *types.AttributeValueMemberN:
		kind = table.Number
	case *types.AttributeValueMemberB:
		if len(v.Value) == 0 {
			return nil, nil
		}
		kind, size = table.Binary, len(v.Value)
	}
	switch {
	case kind != n.kind:
		return nil, fmt.Errorf("%w: attribute %q is a key of index %s and has to be of type %s", ErrInvalid, n.attr, n.index, n.kind)
	case size > n.limit:
		return nil, fmt.Errorf("%w: attribute %q is a key of index %s: %w: %d bytes, at most %d", ErrInvalid, n.attr, n.index, keys.ErrTooLong, size, n.limit)
	}
	return av, nil
}

// fitKeys removes empty natural keys from a row, since DynamoDB refuses them. Any other value that does not fit is an error.
func (p *plan) fitKeys(item table.Item) error {
	for i := range p.naturals {
		n := &p.naturals[i]
		have, ok := item[n.attr]
		if !ok {
			continue
		}
		switch av, err := n.fit(have); {
		case err != nil:
			return err
		case av == nil:
			delete(item, n.attr)
		}
	}
	return nil
}

// text returns a caller's value of the field as text, in the form in which the index key stores it.
func (f *field) text(v any) (string, error) {
	rv := reflect.ValueOf(v)
	for rv.Kind() == reflect.Pointer && !rv.IsNil() && !rv.Type().AssignableTo(f.typ) {
		rv = rv.Elem()
	}
	if !rv.IsValid() {
		return "", fmt.Errorf("%w: %q is nil", ErrInvalid, f.goName)
	}
	var av types.AttributeValue
	c, err := f.convert(rv.Interface())
	switch {
	case err == nil:
		if at, ok := timeIn(c); ok && f.seconds != nil && at.Nanosecond() != 0 {
			return "", fmt.Errorf("%w: %q: %w: kept in whole seconds", ErrInvalid, f.goName, keys.ErrPrecision)
		}
		av, err = f.encode(c)
	case rv.Kind() == reflect.String && makesText(pointee(f.typ)) && !codec.MakesAttribute(pointee(f.typ)):
		av, err = f.natural.fit(&types.AttributeValueMemberS{Value: rv.String()}) // the text in the key, as for a template
	}
	if err != nil {
		return "", err
	}
	switch av := av.(type) {
	case *types.AttributeValueMemberS:
		return av.Value, nil
	case *types.AttributeValueMemberN:
		return av.Value, nil
	}
	return "", fmt.Errorf("%w: %q is empty: such rows are not in the index", ErrInvalid, f.goName)
}

// edge is text for a bound of a range. A time stored as text has a varying number of digits, so that texts within one second
// do not sort by time. A bound of whole seconds without the final "Z" works: it sorts before all texts of that second.
//
// A bound can be the zero value, although a row with that value may not be in the index.
func (f *field) edge(v any) (string, error) {
	rv := pointed(reflect.ValueOf(v))
	at, isTime := timeIn(rv)
	switch isTime = isTime && pointee(f.typ) == timeType; {
	case isTime && f.seconds == nil:
		switch at = at.UTC(); {
		case at.Nanosecond() != 0:
			return "", fmt.Errorf("%w: a bound of %q: %w: it is text, which sorts by whole seconds", ErrInvalid, f.goName, keys.ErrPrecision)
		case at.Year() < 0 || at.Year() > 9999:
			return "", fmt.Errorf("%w: a bound of %q: %w", ErrInvalid, f.goName, keys.ErrRange)
		}
		return at.Format("2006-01-02T15:04:05"), nil
	case isTime && at.IsZero():
		return strconv.FormatInt(at.Unix(), 10), nil
	case f.natural != nil && f.natural.kind == table.Number && !f.own && rv.IsValid() && rv.IsZero() && sameClass(rv.Kind(), pointee(f.typ).Kind()):
		return "0", nil
	}
	return f.text(v)
}

// timeIn returns the time that v is or points to.
func timeIn(v reflect.Value) (at time.Time, ok bool) {
	if v = pointed(v); !v.IsValid() {
		return at, false
	}
	return reflect.TypeAssert[time.Time](v)
}

// one returns the partition key of a query whose partition key is a field.
func (k *keyPlan) one(values keys.Values) (string, error) {
	v, ok := values[k.attr]
	if !ok {
		return "", fmt.Errorf("%w: %q of the partition key is missing", ErrInvalid, k.attr)
	}
	return k.natural.text(v)
}

// naturalSpan is span for a sort key that is a field.
func (k *keyPlan) naturalSpan(values keys.Values, r reading) (span keys.Range, err error) {
	v, exact := values[k.attr]
	for _, name := range r.bounded() {
		if exact || resolve([]*field{k.natural}, name) == nil {
			return span, fmt.Errorf("%w: %q is not the sort key's next field", ErrInvalid, name)
		}
	}
	if r.prefix != nil {
		return k.naturalPrefix(r.prefix.text)
	}
	if exact {
		one, err := k.natural.text(v)
		return keys.Range{Lo: one, Hi: one + "\x00"}, err
	}
	if r.lo != nil {
		if span.Lo, err = k.natural.edge(r.lo.value); err != nil {
			return span, err
		}
	}
	if r.hi != nil {
		if span.Hi, err = k.natural.edge(r.hi.value); err != nil {
			return span, err
		}
	}
	if r.lo != nil && r.hi != nil && compareKeys(k.kind(), span.Lo, span.Hi) > 0 {
		return span, fmt.Errorf("%w: %q: %w: From is above Until", ErrInvalid, k.attr, keys.ErrRange)
	}
	return span, nil
}

// naturalPrefix returns the range of the sort keys that begin with text.
func (k *keyPlan) naturalPrefix(text string) (span keys.Range, err error) {
	switch {
	case k.kind() != table.String:
		err = fmt.Errorf("%w: Prefix: %q is of type %s, not text", ErrInvalid, k.attr, k.kind())
	case !utf8.ValidString(text):
		err = fmt.Errorf("%w: Prefix of %q: %w", ErrInvalid, k.attr, keys.ErrInvalidUTF8)
	case len(text) > keys.MaxSK:
		err = fmt.Errorf("%w: Prefix of %q: %w: %d bytes, at most %d", ErrInvalid, k.attr, keys.ErrTooLong, len(text), keys.MaxSK)
	default:
		span = keys.PrefixRange(text)
	}
	return span, err
}

// kind returns the type of the key's attribute. It is String for a key made by a template, and if there is no key.
func (k *keyPlan) kind() table.AttributeType {
	if k.natural != nil && k.natural.natural != nil {
		return k.natural.natural.kind
	}
	return table.String
}

// keyText returns a key attribute as text, or "" if there is none.
func keyText(item table.Item, attr string) string {
	if n, ok := item[attr].(*types.AttributeValueMemberN); ok {
		return n.Value
	}
	return text(item, attr)
}

// keyValueOf is the reverse of keyText.
func keyValueOf(kind table.AttributeType, text string) types.AttributeValue {
	if kind == table.Number {
		return &types.AttributeValueMemberN{Value: text}
	}
	return &types.AttributeValueMemberS{Value: text}
}

// compareKeys compares two keys in DynamoDB's order.
func compareKeys(kind table.AttributeType, a, b string) int {
	if kind == table.Number {
		x, errA := decimal(a)
		y, errB := decimal(b)
		if errA == nil && errB == nil {
			return x.Cmp(y)
		}
	}
	return strings.Compare(a, b)
}

func decimal(text string) (*apd.Decimal, error) {
	d, _, err := apd.NewFromString(text)
	if err == nil && d.Form != apd.Finite {
		err = ErrInvalid
	}
	return d, err
}

// contains reports whether a key is in a query's range. An empty bound is open. Hi = Lo + "\x00" limits the range to Lo itself.
func contains(span keys.Range, kind table.AttributeType, key string) bool {
	if kind != table.Number {
		return span.Contains(key)
	}
	if _, err := decimal(key); err != nil {
		return false
	}
	if span.Lo != "" && span.Hi == span.Lo+"\x00" {
		return compareKeys(kind, key, span.Lo) == 0
	}
	return (span.Lo == "" || compareKeys(kind, key, span.Lo) >= 0) && (span.Hi == "" || compareKeys(kind, key, span.Hi) < 0)
}
