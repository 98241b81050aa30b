package shape

import (
	"strings"

	"github.com/mortise-go/mortise/table/tabletest/internal/jsontree"
)

// render formats a value like the service's Java objects, for error texts.
func (s *Shape) render(n *jsontree.Node) string {
	var b strings.Builder
	s.print(&b, n)
	return b.String()
}

func (s *Shape) print(b *strings.Builder, n *jsontree.Node) {
	if n.IsNull() {
		b.WriteString("null")
		return
	}
	switch s.kind {
	case structure:
		b.WriteString(s.class)
		b.WriteByte('(')
		for i, f := range s.fields {
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(lowerFirst(f.Name))
			b.WriteByte('=')
			f.Shape.print(b, n.Get(f.Name))
		}
		b.WriteByte(')')
	case list:
		b.WriteByte('[')
		for i := range n.Items {
			if i > 0 {
				b.WriteString(", ")
			}
			s.elem.print(b, &n.Items[i])
		}
		b.WriteByte(']')
	case dictionary:
		printMap(b, n, s.elem)
	case value:
		printValue(b, n)
	case boolean:
		if n.Bool {
			b.WriteString("true")
		} else {
			b.WriteString("false")
		}
	default:
		b.WriteString(n.Text)
	}
}

func printMap(b *strings.Builder, n *jsontree.Node, elem *Shape) {
	b.WriteByte('{')
	for i := range n.Members {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(n.Members[i].Name)
		b.WriteByte('=')
		elem.print(b, &n.Members[i].Value)
	}
	b.WriteByte('}')
}

// printValue prints an attribute value with all members of the service's class, also those that are null.
func printValue(b *strings.Builder, n *jsontree.Node) {
	types := []string{
		"S", "N", "B", "INT", "DECIMAL", "DOUBLE", "SS", "NS", "BS", "INTSET", "DECIMALSET", "DOUBLESET", "M", "L", "NULL", "BOOL",
	}
	b.WriteString("AttributeValue(")
	for i, name := range types {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(lowerFirst(name))
		b.WriteByte('=')
		anything(n.Get(name)).print(b, n.Get(name))
	}
	b.WriteByte(')')
}

// anything returns the shape with which to print the content of an attribute value.
func anything(n *jsontree.Node) *Shape {
	switch n.Kind {
	case jsontree.Bool:
		return Bool()
	case jsontree.Array:
		if len(n.Items) > 0 && n.Items[0].Kind == jsontree.Object {
			return List(Value())
		}
		return List(Text())
	case jsontree.Object:
		return Item()
	}
	return Text()
}
