package keys

import (
	"fmt"
	"strings"
)

// Prefix returns the text that all keys with the given values of the first fields begin with. It ends at a delimiter, so
// that it matches no longer value of the last given field:
//
//   - without values: all text up to the first field;
//   - with some: through the last delimiter before the next field. [ErrNoPrefix] is returned if there is none, which
//     takes a fixed-width field ([Template.Between] can do that), or if a shard of a later field comes before
//     ([Template.Shards]);
//   - with all: the key and a delimiter, which is what keys below it in a hierarchy begin with. The key itself does not,
//     since as a prefix order 1 would match order 10. [Template.Range] selects the key itself.
//
// A [Values] has to hold the first fields without a gap and nothing else.
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
	if err == nil && n > 0 && n == len(t.fields) && prefix[len(prefix)-1] != t.esc.delim {
		prefix += string(rune(t.esc.delim))
	}
	return prefix, err
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
	// No key can begin with a prefix over the limit, and DynamoDB would refuse to look for it.
	if n := len(head) + len(literal); n > t.limit {
		return "", t.fail(op, t.parts[stop].field, tooLong(n, t.limit))
	}
	return string(append(head, literal...)), nil
}

// reached is an error unless the first n fields all stand before part stop.
func (t *Template) reached(op string, n, stop int) error {
	if n > 0 && t.home[n-1] >= stop {
		return t.fail(op, t.parts[stop].field, fmt.Errorf("%w: its shard stands before a given field; see Shards", ErrNoPrefix))
	}
	return nil
}
