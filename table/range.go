package table

import (
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/mortise-go/mortise/internal/attrvalue"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/cockroachdb/apd/v3"

	"github.com/mortise-go/mortise/keys"
)

// queryKey is a key attribute of the table or index that is queried. A queryKey without a name stands for the missing sort key of an
// index.
type queryKey struct {
	name string
	kind AttributeType // String or Number
}

// queryKeys returns the key attributes of the table or of an index.
func (t *Table) queryKeys(index string) (pk, sk queryKey, err error) {
	if index == "" {
		return queryKey{t.scheme.PK, String}, queryKey{t.scheme.SK, String}, nil
	}
	x, ok := t.schema.Index(index)
	switch {
	case !ok:
		return pk, sk, fmt.Errorf("%w: the schema has no index %q", ErrInvalid, index)
	case x.PKType == Binary || x.SK != "" && x.SKType == Binary:
		return pk, sk, fmt.Errorf("%w: the keys of index %q are binary", ErrInvalid, index)
	}
	return queryKey{x.PK, x.PKType}, queryKey{x.SK, x.SKType}, nil
}

// value converts text to the attribute's type.
func (k queryKey) value(text string) types.AttributeValue {
	if k.kind == Number {
		return &types.AttributeValueMemberN{Value: text}
	}
	return &types.AttributeValueMemberS{Value: text}
}

// within returns the key condition of a range. Unless drop is nil, items whose sort key equals it have to be dropped; see rangeCond.
func (k queryKey) within(r keys.Range) (cond Cond, drop types.AttributeValue, err error) {
	if k.kind == Number && r != (keys.Range{}) && k.name != "" {
		return k.withinNumbers(r)
	}
	cond, at, err := rangeCond(r, k.name)
	if err == nil && at != "" {
		drop = k.value(at)
	}
	return cond, drop, err
}

// withinNumbers is rangeCond for number keys, which have neither prefixes nor successors. Hi == Lo + "\x00" still means Lo alone.
func (k queryKey) withinNumbers(r keys.Range) (cond Cond, drop types.AttributeValue, err error) {
	attr, lo, hi := Attr(k.name), k.value(r.Lo), k.value(r.Hi)
	if r.Hi == r.Lo+"\x00" {
		_, err := number(r.Lo)
		return attr.Equal(lo), nil, err
	}
	var from, until *apd.Decimal
	if r.Lo != "" {
		if from, err = number(r.Lo); err != nil {
			return Cond{}, nil, err
		}
	}
	if r.Hi != "" {
		if until, err = number(r.Hi); err != nil {
			return Cond{}, nil, err
		}
	}
	switch {
	case until == nil:
		return attr.AtLeast(lo), nil, nil
	case from == nil:
		return attr.Less(hi), nil, nil
	}
	switch from.Cmp(until) {
	case 1:
		return Cond{}, nil, fmt.Errorf("%w: the range of sort keys ends before it begins", ErrInvalid)
	case 0:
		return Cond{}, nil, errEmptyRange
	}
	return attr.Between(lo, hi), hi, nil
}

func number(text string) (*apd.Decimal, error) {
	d, _, err := apd.NewFromString(text)
	if err != nil || d.Form != apd.Finite {
		return nil, fmt.Errorf("%w: a key that has to be a number is none", ErrInvalid) // do not wrap the cause, which quotes the key
	}
	return d, nil
}

// rangeCond returns the key condition of a half-open range. DynamoDB has only BETWEEN, which includes its upper end. So the caller has
// to drop items whose sort key equals drop, unless drop is empty.
func rangeCond(r keys.Range, sk string) (cond Cond, drop string, err error) {
	switch {
	case r == keys.Range{}:
		return Cond{}, "", nil
	case sk == "":
		return Cond{}, "", fmt.Errorf("%w: a range on an index without a sort key", ErrInvalid)
	case r.Hi != "" && r.Lo > r.Hi:
		return Cond{}, "", fmt.Errorf("%w: the range of sort keys ends before it begins", ErrInvalid)
	case r.Lo == r.Hi, r.Hi == "\x00": // only the empty text sorts before "\x00", and no key is empty
		return Cond{}, "", errEmptyRange
	case r.Hi == r.Lo+"\x00" && len(r.Lo) <= keys.MaxSK:
		return Attr(sk).Equal(r.Lo), "", nil
	}
	lo, hi := possible(r.Lo), possible(r.Hi)
	if lo == "" && r.Lo != "" {
		return Cond{}, "", errEmptyRange
	}
	r = keys.Range{Lo: lo, Hi: hi}
	switch {
	case r == keys.Range{}:
		return Cond{}, "", nil
	case lo == hi:
		return Cond{}, "", errEmptyRange
	case r.Hi == "":
		return Attr(sk).AtLeast(r.Lo), "", nil
	case r.Lo == "":
		return Attr(sk).Less(r.Hi), "", nil
	case r == keys.PrefixRange(r.Lo):
		return Attr(sk).HasPrefix(r.Lo), "", nil
	}
	return Attr(sk).Between(r.Lo, r.Hi), r.Hi, nil
}

// errEmptyRange reports a half-open range that contains nothing, so that no request is needed.
var errEmptyRange = errors.New("empty range")

// possible replaces a bound that is too long for a sort key, since DynamoDB would refuse it. It returns the least possible sort key above
// the bound, or "" if there is none. It returns any other bound unchanged.
func possible(bound string) string {
	for len(bound) > keys.MaxSK {
		_, size := utf8.DecodeLastRuneInString(bound)
		bound = keys.PrefixRange(bound[:len(bound)-size]).Hi
	}
	return bound
}

// dropAt removes the items whose sort key equals at, the upper end of a range. They can only be at the end of an ascending page and at
// the beginning of a descending one.
func dropAt(items []Item, sk string, at types.AttributeValue, descending bool) []Item {
	if at == nil {
		return items
	}
	for len(items) > 0 {
		switch {
		case descending && attrvalue.Same(items[0][sk], at):
			items = items[1:]
		case !descending && attrvalue.Same(items[len(items)-1][sk], at):
			items = items[:len(items)-1]
		default:
			return items
		}
	}
	return items
}
