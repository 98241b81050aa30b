package shape

import (
	"encoding/base64"
	"strconv"
	"strings"

	"github.com/mortise-go/mortise/table/tabletest/internal/attr"
	"github.com/mortise-go/mortise/table/tabletest/internal/jsontree"
)

// namespace is the Java package that the service's texts name.
const namespace = "com.amazonaws.dynamodb.v20120810."

// Types returns an attr.MalformedError for the first value whose JSON type differs from its shape's type. A null counts as a missing
// value.
func (s *Shape) Types(n *jsontree.Node) error { return s.types(n, false) }

// types checks one value. member is set for values in lists and maps: the service reports them differently from members of
// structures.
func (s *Shape) types(n *jsontree.Node, member bool) error {
	if n.IsNull() {
		return nil
	}
	switch s.kind {
	case text, integer, boolean:
		return s.scalar(n)
	case list:
		switch n.Kind {
		case jsontree.Array:
			return s.elements(n)
		case jsontree.Object:
			return unexpectedObject()
		}
		return attr.MalformedError("Unexpected field type")
	case dictionary:
		switch n.Kind {
		case jsontree.Object:
			return s.values(n)
		case jsontree.Array:
			class := s.class
			if !strings.Contains(class, ".") {
				class = namespace + class
			}
			return attr.MalformedError("Unrecognized collection type java.util.Map<java.lang.String, " + class + ">")
		}
		return attr.MalformedError("Unexpected field type")
	}
	if n.Kind != jsontree.Object {
		return notStructure(n, s.class, member)
	}
	if s.kind == value {
		return valueTypes(n)
	}
	for i := range n.Members {
		m := &n.Members[i]
		for j := range s.fields {
			if f := &s.fields[j]; f.Name == m.Name {
				if err := f.Shape.types(&m.Value, false); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (s *Shape) elements(n *jsontree.Node) error {
	for i := range n.Items {
		if err := s.elem.types(&n.Items[i], true); err != nil {
			return err
		}
	}
	return nil
}

func (s *Shape) values(n *jsontree.Node) error {
	for i := range n.Members {
		if err := s.elem.types(&n.Members[i].Value, true); err != nil {
			return err
		}
	}
	return nil
}

func unexpectedObject() error {
	return attr.MalformedError("Start of structure or map found where not expected")
}

func notStructure(n *jsontree.Node, class string, member bool) error {
	switch {
	case n.Kind == jsontree.Array:
		return attr.MalformedError("Unrecognized collection type class " + namespace + class)
	case member:
		return attr.MalformedError("Unexpected value type in payload")
	}
	return attr.MalformedError("Unexpected field type")
}

// token returns the name of a scalar's JSON token in the service's texts.
func token(n *jsontree.Node) string {
	switch {
	case n.Kind == jsontree.Bool && !n.Bool:
		return "FALSE_VALUE"
	case n.Kind == jsontree.Number && strings.ContainsAny(n.Text, ".eE"):
		return "DECIMAL_VALUE"
	}
	return n.Kind.String()
}

func (s *Shape) scalar(n *jsontree.Node) error {
	var want jsontree.Kind
	switch s.kind {
	case text:
		want = jsontree.String
	case integer:
		want = jsontree.Number
	default:
		want = jsontree.Bool
	}
	if err := scalar(n, want, s.class); err != nil || s.kind != integer {
		return err
	}
	if _, err := strconv.ParseInt(n.Text, 10, 64); err != nil {
		return attr.MalformedError(token(n) + " cannot be converted to " + s.class)
	}
	return nil
}

func scalar(n *jsontree.Node, want jsontree.Kind, class string) error {
	switch {
	case n.Kind == want || n.IsNull():
		return nil
	case n.Kind == jsontree.Object:
		return unexpectedObject()
	case n.Kind == jsontree.Array:
		return attr.MalformedError("Unrecognized collection type class java.lang." + class)
	case class == "Boolean" && n.Kind == jsontree.String:
		return attr.MalformedError("Unexpected token received from parser")
	}
	return attr.MalformedError(token(n) + " cannot be converted to " + class)
}

// valueTypes checks an attribute value in its wire form, {"S": "…"}.
func valueTypes(n *jsontree.Node) error {
	for i := range n.Members {
		m := &n.Members[i]
		if m.Value.IsNull() {
			continue
		}
		var err error
		switch attr.KindOf(m.Name) {
		case attr.S, attr.N:
			err = scalar(&m.Value, jsontree.String, "String")
		case attr.B:
			err = blob(&m.Value)
		case attr.BOOL, attr.NULL:
			err = scalar(&m.Value, jsontree.Bool, "Boolean")
		case attr.SS, attr.NS:
			err = each(&m.Value, func(e *jsontree.Node) error { return scalar(e, jsontree.String, "String") })
		case attr.BS:
			err = each(&m.Value, blob)
		case attr.L:
			err = each(&m.Value, memberValue)
		case attr.M:
			err = mapTypes(&m.Value)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func memberValue(n *jsontree.Node) error {
	switch n.Kind {
	case jsontree.Null:
		return nil
	case jsontree.Object:
		return valueTypes(n)
	}
	return notStructure(n, "AttributeValue", true)
}

func mapTypes(n *jsontree.Node) error {
	switch n.Kind {
	case jsontree.Array:
		return attr.MalformedError("Unrecognized collection type java.util.Map<java.lang.String, " + namespace + "AttributeValue>")
	case jsontree.Object:
	default:
		return attr.MalformedError("Unexpected field type")
	}
	for i := range n.Members {
		if err := memberValue(&n.Members[i].Value); err != nil {
			return err
		}
	}
	return nil
}

func each(n *jsontree.Node, check func(*jsontree.Node) error) error {
	switch n.Kind {
	case jsontree.Object:
		return unexpectedObject()
	case jsontree.Array:
	default:
		return attr.MalformedError("Unexpected field type")
	}
	for i := range n.Items {
		if err := check(&n.Items[i]); err != nil {
			return err
		}
	}
	return nil
}

func blob(n *jsontree.Node) error {
	switch n.Kind {
	case jsontree.Null:
		return nil
	case jsontree.Object:
		return unexpectedObject()
	case jsontree.Array:
		return attr.MalformedError("Unrecognized collection type class java.nio.ByteBuffer")
	case jsontree.String:
	default:
		return attr.MalformedError("only base-64-encoded strings are convertible to bytes")
	}
	if len(n.Text)%4 != 0 {
		return attr.MalformedError("Base64 encoded length is expected a multiple of 4 bytes but found: " + strconv.Itoa(len(n.Text)))
	}
	if _, err := base64.StdEncoding.Strict().DecodeString(n.Text); err != nil {
		return attr.MalformedError("Invalid last non-pad Base64 character dectected") // with the service's spelling
	}
	return nil
}
