package keys

import (
	"fmt"
	"strings"
)

// Prefix returns the text with which all keys begin that have the given values in their first fields. It ends at a
// delimiter, so that the prefix for order 1 does not match order 10.
//
//   - Without values: the text before the first field.
//   - With some values: the text through the last delimiter before the next field. Returns [ErrNoPrefix] if no
//     delimiter is there, as after a fixed-width field (use [Template.Between]), or if a shard of a later field
//     comes first (use [Template.Shards]).
//   - With all values: the key and a delimiter, or the key alone if it ends with one. This is the prefix of keys below it
//     in a hierarchy. A key without the delimiter at its end does not begin with it; use [Template.Range] to include the
//     key. A prefix that exceeds the limit is [ErrTooLong], since no key begins with it.
//
// If you pass a [Values], it has to contain the first n fields of the template and no other fields.
func (t *Template) Prefix(values ...any) (string, error) {
	const op = "prefix"
	if err := t.check(op); err != nil {
		return "", err
	}
	src := sourceOf(values)
	n, err := t.leading(op, src)
	if err != nil {
		return "", err
	}
	prefix, err := t.prefix(op, src, n, -1)
	if err != nil || n == 0 || n < len(t.fields) || prefix[len(prefix)-1] == t.esc.delim {
		return prefix, err
	}
	if len(prefix) == t.limit {
		return "", t.fail(op, t.parts[len(t.parts)-1].field, tooLong(len(prefix)+1, t.limit))
	}
	return prefix + string(rune(t.esc.delim)), nil
}

func (t *Template) prefix(op string, src source, n, shard int) (string, error) {
	var buf [128]byte
	head, stop, err := t.appendParts(op, buf[:0], src, n, shard)
	if err != nil {
		return "", err
	}
	if stop == len(t.parts) {
		head, err = t.appendTail(op, head, len(head))
		return string(head), err
	}
	if err := t.reached(op, n, stop); err != nil {
		return "", err
	}
	literal := t.parts[stop].literal
	if stop > 0 {
		end := strings.LastIndexByte(literal, t.esc.delim) + 1
		if end == 0 {
			return "", t.fail(op, t.parts[stop-1].field, fmt.Errorf("%w: no delimiter %q follows it", ErrNoPrefix, t.esc.delim))
		}
		literal = literal[:end]
	}
	// No key begins with a prefix that is longer than the limit, and DynamoDB would refuse a query for one.
	if n := len(head) + len(literal); n > t.limit {
		return "", t.fail(op, t.parts[stop].field, tooLong(n, t.limit))
	}
	return string(append(head, literal...)), nil
}

// reached returns an error unless the first n fields all stand before part stop. A shard of a later field may stand before them.
func (t *Template) reached(op string, n, stop int) error {
	if n > 0 && t.home[n-1] >= stop {
		return t.fail(op, t.parts[stop].field, fmt.Errorf("%w: its shard stands before a given field; see Shards", ErrNoPrefix))
	}
	return nil
}
