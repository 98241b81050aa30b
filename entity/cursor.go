package entity

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
)

// Cursor is a place in the rows of a query: where the next page begins. It is text that may
// stand in a URL as it is, and "" is the beginning. Page makes cursors, After takes them.
//
// A cursor belongs to its query: to the table, the entity, the index, the partition key, the
// range of sort keys, the direction, and the filter without its values. Limit, PageSize,
// Consistent and WithExpired, and the values that a filter compares with, may change from
// page to page. A bound that moves with the clock (From, Until) has to be kept by the caller.
//
// A cursor contains the sort key of the row before it, on an index the row's own key too,
// and is neither encrypted nor signed. It holds no partition key to read from: that is always the
// query's own, so that whoever makes one up gets to no other rows than the query has.
type Cursor string

// After starts a query after the row at which a page ended; "" is no such row. A cursor of
// another query is refused with a *CursorError, before anything is sent.
func After(c Cursor) ReadOption {
	return func(r *reading) error {
		r.given |= optAfter
		r.after = c
		return nil
	}
}

// ErrCursor says that a cursor is not one of this query: see CursorError.
var ErrCursor = errors.New("cursor refused")

// CursorError says that a cursor was refused. It matches ErrCursor and ErrInvalid. Its text
// does not contain the cursor.
type CursorError struct {
	Type   string // the entity's
	Reason string
}

func (e *CursorError) Error() string { return ErrCursor.Error() + ": " + e.Reason }

// Unwrap returns ErrCursor and ErrInvalid.
func (e *CursorError) Unwrap() []error { return []error{ErrCursor, ErrInvalid} }

const (
	cursorVersion = 1
	digestSize    = 16
	cursorHead    = 1 + digestSize // version, digest; then the position

	// maxCursor is more than the longest keys take.
	maxCursor = 16 << 10
)

// binding is what a cursor belongs to.
type binding struct {
	table   *table.Table
	typ     string
	pks     []string // by shard
	pk, sk  *keyPlan // of what is queried
	reading *reading
	span    keys.Range
}

// digest ties a position to its query and finds it changed. It is no secret.
func (b *binding) digest(position []byte) []byte {
	h := sha256.New()
	var size [binary.MaxVarintLen64]byte
	add := func(s string) { // with its length, so that no two lists look the same
		h.Write(binary.AppendUvarint(size[:0], uint64(len(s))))
		h.Write([]byte(s))
	}
	for _, s := range []string{
		"mortise cursor", strconv.Itoa(cursorVersion), b.table.Name(), b.typ, b.reading.index, b.span.Lo, b.span.Hi,
		strconv.FormatBool(b.reading.descending), b.reading.filter.Shape(), strconv.Itoa(len(b.pks)),
	} {
		add(s)
	}
	for _, pk := range b.pks {
		add(pk)
	}
	add(string(position))
	return h.Sum(nil)[:digestSize]
}

// names are the key attributes of a row beside that which the query itself fixes.
func (b *binding) names() []string {
	scheme := b.table.Scheme()
	list := make([]string, 0, 3)
	for _, name := range []string{b.sk.attr, scheme.PK, scheme.SK} {
		if name != "" && name != b.pk.attr && !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	return list
}

// seal is the cursor after a row of one shard.
func (b *binding) seal(shard int, row table.Item) Cursor {
	position := binary.AppendUvarint(nil, uint64(shard))
	for _, name := range b.names() {
		value := keyText(row, name)
		position = binary.AppendUvarint(position, uint64(len(value)))
		position = append(position, value...)
	}
	return b.pack(position)
}

func (b *binding) pack(position []byte) Cursor {
	raw := append([]byte{cursorVersion}, b.digest(position)...)
	return Cursor(base64.RawURLEncoding.EncodeToString(append(raw, position...)))
}

// open is the shard and the keys of the row that a cursor stands after. They are in the
// query's own range, whoever made the cursor.
func (b *binding) open(c Cursor) (shard int, start table.Item, err error) {
	refuse := func(reason string) (int, table.Item, error) {
		return 0, nil, &CursorError{Type: b.typ, Reason: reason}
	}
	if len(c) > maxCursor {
		return refuse("too long")
	}
	raw, err := base64.RawURLEncoding.DecodeString(string(c))
	if err != nil || len(raw) < cursorHead {
		return refuse("malformed")
	}
	if raw[0] != cursorVersion {
		return refuse("of an unknown version")
	}
	digest, position := raw[1:cursorHead], raw[cursorHead:]
	if !bytes.Equal(digest, b.digest(position)) {
		return refuse("of another query, or changed")
	}
	n, position, ok := uvarint(position)
	if !ok || n >= uint64(len(b.pks)) {
		return refuse("malformed position")
	}
	shard = int(n)
	start = table.Item{b.pk.attr: keyValueOf(b.pk.kind(), b.pks[shard])}
	for _, name := range b.names() {
		size, rest, ok := uvarint(position)
		if !ok || size > uint64(len(rest)) {
			return refuse("malformed position")
		}
		kind := table.String
		if name == b.sk.attr {
			kind = b.sk.kind()
		}
		start[name] = keyValueOf(kind, string(rest[:size]))
		position = rest[size:]
	}
	if b.seal(shard, start) != c {
		return refuse("not as it would have been written")
	}
	if _, err := b.table.KeyOf(start); err != nil {
		return refuse("not a key")
	}
	if b.sk.attr != "" {
		sk := keyText(start, b.sk.attr)
		if sk == "" || len(sk) > keys.MaxSK || !utf8.ValidString(sk) || !contains(b.span, b.sk.kind(), sk) {
			return refuse("out of the query's range")
		}
	}
	return shard, start, nil
}

func uvarint(data []byte) (n uint64, rest []byte, ok bool) {
	n, size := binary.Uvarint(data)
	if size <= 0 {
		return 0, nil, false
	}
	return n, data[size:], true
}
