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

// Cursor is the position in a query at which the next page begins. It is text that needs no escaping in a URL. The
// empty cursor is the beginning. [Entity.Page] returns cursors, and [After] takes them.
//
// A cursor is valid for its query only: the table, entity, index, partition key, range of sort keys, direction, and the
// filter without its values. [Limit], [PageSize], [Consistent], [WithExpired] and the values of a filter may change
// from page to page. If a bound ([From], [Until]) depends on the time, the caller has to keep it constant.
//
// A cursor contains the sort key of the row before it and, on an index, the row's own key. It is neither encrypted nor
// signed. It contains no partition key, so a forged cursor cannot reach rows outside its query.
type Cursor string

// After starts a query after the row at which a page ended. An empty cursor starts at the beginning. A cursor of
// another query is refused with a *[CursorError] before any request.
func After(c Cursor) ReadOption {
	return func(r *reading) error {
		r.given |= optAfter
		r.after = c
		return nil
	}
}

// ErrCursor reports that a cursor does not belong to the query. The error is a *[CursorError].
var ErrCursor = errors.New("cursor refused")

// CursorError reports that a cursor was refused. It matches [ErrCursor] and [ErrInvalid]. Its text does not contain the
// cursor.
type CursorError struct {
	Type   string // type of the entity
	Reason string
}

func (e *CursorError) Error() string { return ErrCursor.Error() + ": " + e.Reason }

// Unwrap returns [ErrCursor] and [ErrInvalid].
func (e *CursorError) Unwrap() []error { return []error{ErrCursor, ErrInvalid} }

const (
	cursorVersion = 1
	digestSize    = 16
	cursorHead    = 1 + digestSize // version and digest; the position follows

	// maxCursor exceeds the length of a cursor with the longest keys.
	maxCursor = 16 << 10
)

// binding is the query that a cursor belongs to.
type binding struct {
	table   *table.Table
	typ     string
	pks     []string // by shard
	pk, sk  *keyPlan // keys of the table or index that is queried
	reading *reading
	span    keys.Range
}

// digest identifies query and position, so that open refuses a cursor of another query. It has no secret, so it can be forged.
func (b *binding) digest(position []byte) []byte {
	h := sha256.New()
	var size [binary.MaxVarintLen64]byte
	add := func(s string) { // the length comes first, so that different lists have different digests
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

// names returns the key attributes that can differ between the rows of the query. A cursor contains their values.
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

// seal returns the cursor for the position after a row. shard is the index of its partition key in pks.
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

// open returns the shard and the keys of the row at which a page ended. Even if the cursor is forged, the keys are within
// the query's range.
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
