package attr

import (
	"encoding/base64"
	"strings"

	"github.com/mortise-go/mortise/table/tabletest/internal/jsontree"
)

// MaxDepth is the maximum number of levels of nested values in an item, the attribute itself included. On the last level there is no list
// or map, not even an empty one. A value that is not in an item may have one level more.
const MaxDepth = 32

const (
	errEmptyValue = InvalidError("Supplied AttributeValue is empty, must contain exactly one of the supported datatypes")
	errManyTypes  = InvalidError("Supplied AttributeValue has more than one datatypes set, must contain exactly one of the supported datatypes")
	errNesting    = InvalidError("Nesting Levels have exceeded supported limits: Attributes in the item have nested levels beyond supported limit")
	errDeepUpdate = InvalidError("Nesting Levels have exceeded supported limits")
	errBase64     = MalformedError("Invalid binary value")
	prefix        = "One or more parameter values were invalid: "
)

// DecodeItem reads a JSON object as an item.
func DecodeItem(n *jsontree.Node) (Item, error) {
	if n.Kind != jsontree.Object {
		return nil, unexpected(n)
	}
	it := make(Item, len(n.Members))
	for i := range n.Members {
		m := &n.Members[i]
		if m.Value.IsNull() {
			return nil, InvalidError("The supplied Item contains a null AttributeValue")
		}
		v, err := decode(&m.Value, 1)
		if err != nil {
			return nil, err
		}
		if err := CheckName(m.Name); err != nil {
			return nil, err
		}
		it[m.Name] = v
	}
	return it, nil
}

// maxName is the maximum length of an attribute's name in bytes.
const maxName = 1<<16 - 1

// CheckName refuses a name that no attribute can have.
func CheckName(name string) error {
	switch {
	case name == "":
		return InvalidError("Empty attribute name")
	case len(name) > maxName:
		return InvalidError("Attribute name is too large, must be less than 65536 bytes")
	}
	return nil
}

// Decode reads one value in the protocol's form, {"S": "…"}, that is not in an item.
func Decode(n *jsontree.Node) (*Value, error) { return decode(n, 0) }

func unexpected(n *jsontree.Node) error {
	if n.Kind == jsontree.Array || n.Kind == jsontree.Object {
		return MalformedError("Unexpected field type")
	}
	return MalformedError(n.Kind.String() + " cannot be converted to the expected type")
}

func decode(n *jsontree.Node, depth int) (*Value, error) {
	if n.Kind == jsontree.Null {
		return nil, errEmptyValue
	}
	if n.Kind != jsontree.Object {
		return nil, unexpected(n)
	}
	var found *jsontree.Member
	var kind Kind
	for i := range n.Members {
		m := &n.Members[i]
		k := KindOf(m.Name)
		if k == 0 || m.Value.IsNull() {
			continue
		}
		if found != nil {
			return nil, decodeAll(n, depth)
		}
		found, kind = m, k
	}
	if found == nil {
		return nil, errEmptyValue
	}
	if depth >= MaxDepth && kind.nests() {
		return nil, errNesting
	}
	return decodeKind(kind, &found.Value, depth)
}

// decodeAll returns the error for a value with several types. Mistakes in the content of one of them are reported first.
func decodeAll(n *jsontree.Node, depth int) error {
	for i := range n.Members {
		m := &n.Members[i]
		if k := KindOf(m.Name); k != 0 && !m.Value.IsNull() {
			if _, err := decodeKind(k, &m.Value, depth); err != nil {
				return err
			}
		}
	}
	return errManyTypes
}

func decodeKind(kind Kind, n *jsontree.Node, depth int) (*Value, error) {
	switch kind {
	case S, N, B:
		return decodeScalar(kind, n)
	case BOOL:
		if n.Kind != jsontree.Bool {
			return nil, unexpected(n)
		}
		return &Value{Kind: BOOL, Bool: n.Bool}, nil
	case NULL:
		if n.Kind != jsontree.Bool {
			return nil, unexpected(n)
		}
		if !n.Bool {
			return nil, InvalidError(prefix + "Null attribute value types must have the value of true")
		}
		return &Value{Kind: NULL}, nil
	case M:
		return decodeMap(n, depth)
	case L:
		return decodeList(n, depth)
	}
	return decodeSet(kind, n)
}

func decodeScalar(kind Kind, n *jsontree.Node) (*Value, error) {
	if n.Kind != jsontree.String {
		return nil, unexpected(n)
	}
	switch kind {
	case N:
		num, err := ParseNumber(n.Text)
		if err != nil {
			return nil, err
		}
		return Numeric(num), nil
	case B:
		raw, err := base64.StdEncoding.DecodeString(n.Text)
		if err != nil {
			return nil, errBase64
		}
		return Binary(string(raw)), nil
	}
	return String(n.Text), nil
}

func decodeMap(n *jsontree.Node, depth int) (*Value, error) {
	if n.Kind != jsontree.Object {
		return nil, unexpected(n)
	}
	m := make(Item, len(n.Members))
	for i := range n.Members {
		v, err := decode(&n.Members[i].Value, depth+1)
		if err != nil {
			return nil, err
		}
		if err := CheckName(n.Members[i].Name); err != nil {
			return nil, err
		}
		m[n.Members[i].Name] = v
	}
	return Document(m), nil
}

func decodeList(n *jsontree.Node, depth int) (*Value, error) {
	if n.Kind != jsontree.Array {
		return nil, unexpected(n)
	}
	list := make([]*Value, len(n.Items))
	for i := range n.Items {
		if n.Items[i].IsNull() {
			return nil, InvalidError("The supplied Item contains a null AttributeValue")
		}
		v, err := decode(&n.Items[i], depth+1)
		if err != nil {
			return nil, err
		}
		list[i] = v
	}
	return Sequence(list), nil
}

func decodeSet(kind Kind, n *jsontree.Node) (*Value, error) {
	if n.Kind != jsontree.Array {
		return nil, unexpected(n)
	}
	noun := setNoun(kind)
	if len(n.Items) == 0 {
		if kind == BS {
			return nil, InvalidError(prefix + "Binary sets should not be empty")
		}
		return nil, InvalidError(prefix + "An " + noun + " set  may not be empty")
	}
	list := make([]*Value, len(n.Items))
	for i := range n.Items {
		if n.Items[i].IsNull() {
			return nil, InvalidError(prefix + "An " + noun + " set may not have a null " + noun + " as a member")
		}
		v, err := decodeScalar(kind.Element(), &n.Items[i])
		if err != nil {
			return nil, err
		}
		list[i] = v
	}
	sortSet(list)
	for i := 1; i < len(list); i++ {
		if Equal(list[i-1], list[i]) {
			return nil, duplicates(kind, n)
		}
	}
	return &Value{Kind: kind, List: list}, nil
}

func setNoun(kind Kind) string {
	switch kind {
	case NS:
		return "number"
	case BS:
		return "binary"
	}
	return "string"
}

func duplicates(kind Kind, n *jsontree.Node) error {
	if kind == NS {
		return InvalidError("Input collection contains duplicates")
	}
	texts := make([]string, len(n.Items))
	for i := range n.Items {
		texts[i] = n.Items[i].Text
	}
	noun := " contains duplicates."
	if kind == BS {
		noun = "of type BS contains duplicates."
	}
	return InvalidError(prefix + "Input collection [" + strings.Join(texts, ", ") + "]" + noun)
}
