package tabletest

import (
	"encoding/binary"
	"hash/fnv"
	"slices"

	"github.com/mortise-go/mortise/table/tabletest/internal/attr"
	"github.com/mortise-go/mortise/table/tabletest/internal/jsontree"
)

// Key limits in bytes (Developer Guide, "Service, account, and table quotas").
const (
	maxHashKey = 2048
	maxSortKey = 1024
)

// keyAttr is one key attribute of a table or an index.
type keyAttr struct {
	name string
	kind attr.Kind
}

// keySchema is a partition key and an optional sort key. In a global index each can have up to four attributes; otherwise each has
// one.
type keySchema struct {
	all    []keyAttr // partition attributes first
	hashes int       // number of partition attributes
}

func (s keySchema) attrs() []keyAttr { return s.all }
func (s keySchema) hash() []keyAttr  { return s.all[:s.hashes] }
func (s keySchema) sort() []keyAttr  { return s.all[s.hashes:] }

func (s keySchema) hasSort() bool { return len(s.all) > s.hashes }

func (s keySchema) size() int { return len(s.all) }

func (s keySchema) has(name string) bool { return named(s.all, name) }

func named(attrs []keyAttr, name string) bool {
	return slices.ContainsFunc(attrs, func(a keyAttr) bool { return a.name == name })
}

// partition encodes a partition key: a hash that orders the partitions pseudo-randomly, then the key itself.
func partition(text string) string {
	h := fnv.New64a()
	_, _ = h.Write([]byte(text)) // never fails
	x := h.Sum64()
	x ^= x >> 32 // FNV hardly changes the upper bits of short keys
	x *= 0x9E3779B97F4A7C15
	b := make([]byte, 0, 8+len(text))
	b = binary.BigEndian.AppendUint64(b, x)
	return string(append(b, text...))
}

// place returns the row key of an item that has all key attributes.
func (s keySchema) place(item attr.Item) rowKey {
	value := func(a keyAttr) *attr.Value { return item[a.name] }
	return rowKey{part: partition(composite(s.hash(), value)), sort: composite(s.sort(), value)}
}

// asTie encodes a primary key as the tie of index rows. The length of part makes the encoding unique.
func (k rowKey) asTie() string {
	var n [4]byte
	binary.BigEndian.PutUint32(n[:], uint32(len(k.part)))
	return string(n[:]) + k.part + k.sort
}

// extract returns the key attributes of an item.
func (s keySchema) extract(item attr.Item) attr.Item {
	out := make(attr.Item, 4)
	for _, a := range s.attrs() {
		if v, ok := item[a.name]; ok {
			out[a.name] = v
		}
	}
	return out
}

const (
	keyMismatch = "The provided key element does not match the schema"
	hashTooLong = "One or more parameter values were invalid: Size of hashkey has exceeded the maximum size limit of2048 bytes" // with the service's spelling
	sortTooLong = "One or more parameter values were invalid: Aggregated size of all range keys has exceeded the size limit of 1024 bytes"
)

// checkKey validates a Key parameter: exactly the key attributes, of the right types and sizes.
func (s keySchema) checkKey(key attr.Item) error {
	if len(key) != s.size() || s.fails(key) {
		return mismatch(keyMismatch)
	}
	return s.checkValues(key)
}

// checkItem validates the key attributes of an item.
func (s keySchema) checkItem(item attr.Item) error {
	for _, a := range s.attrs() {
		v, ok := item[a.name]
		if !ok {
			return mismatch("One or more parameter values were invalid: Missing the key " + a.name + " in the item")
		}
		if v.Kind != a.kind {
			return mismatch("One or more parameter values were invalid: Type mismatch for key " + a.name + " expected: " + a.kind.String() + " actual: " + v.Kind.String())
		}
	}
	return s.checkValues(item)
}

// fails reports whether an item lacks a key attribute of the right type.
func (s keySchema) fails(item attr.Item) bool {
	for _, a := range s.attrs() {
		if v, ok := item[a.name]; !ok || v.Kind != a.kind {
			return true
		}
	}
	return false
}

// checkValues validates keys that have the right types.
func (s keySchema) checkValues(item attr.Item) error {
	for _, a := range s.attrs() {
		if err := a.checkEmpty(item[a.name]); err != nil {
			return err
		}
	}
	switch {
	case sizeOf(s.hash(), item) > maxHashKey:
		return mismatch(hashTooLong)
	case sizeOf(s.sort(), item) > maxSortKey:
		return mismatch(sortTooLong)
	}
	return nil
}

func (a keyAttr) checkEmpty(v *attr.Value) error {
	if noun := emptyNoun(v); noun != "" {
		return invalid("One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an empty %s value. Key: %s", noun, a.name)
	}
	return nil
}

// emptyNoun names the type of an empty string or binary value. It returns "" for other values.
func emptyNoun(v *attr.Value) string {
	switch {
	case v.Kind == attr.S && v.Str == "":
		return "string"
	case v.Kind == attr.B && v.Str == "":
		return "binary"
	}
	return ""
}

// peek reads the key attributes of an item in wire format. It does not check the item's other attributes.
func (s keySchema) peek(n *jsontree.Node) (attr.Item, bool) {
	out := attr.Item{}
	for _, a := range s.attrs() {
		v, err := attr.Decode(n.Get(a.name))
		if err != nil || v.Kind != a.kind {
			return nil, false
		}
		out[a.name] = v
	}
	return out, true
}
