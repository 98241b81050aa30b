package expr

import (
	"strconv"
	"strings"

	"github.com/mortise-go/mortise/table/tabletest/internal/attr"
)

// Elem is one step of a path: a name, or an index into a list.
type Elem struct {
	Name  string
	Index int // -1 for a name
}

// Path is the way from an item to a value inside it. Its first step is a name.
type Path []Elem

// Root returns the path of a top-level attribute.
func Root(name string) Path { return Path{{Name: name, Index: -1}} }

// String returns the path in the form of error messages, such as [a, b, [0]].
func (p Path) String() string {
	var b strings.Builder
	b.WriteByte('[')
	for i, e := range p {
		if i > 0 {
			b.WriteString(", ")
		}
		if e.Index < 0 {
			b.WriteString(e.Name)
		} else {
			b.WriteString("[" + strconv.Itoa(e.Index) + "]")
		}
	}
	b.WriteByte(']')
	return b.String()
}

func (p Path) equal(q Path) bool {
	if len(p) != len(q) {
		return false
	}
	for i := range p {
		if p[i] != q[i] {
			return false
		}
	}
	return true
}

// Get returns the value at the path, or nil.
func (p Path) Get(item attr.Item) *attr.Value {
	v := item[p[0].Name]
	for _, e := range p[1:] {
		if v == nil {
			return nil
		}
		v = step(v, e)
	}
	return v
}

func step(v *attr.Value, e Elem) *attr.Value {
	if e.Index < 0 {
		if v.Kind != attr.M {
			return nil
		}
		return v.Map[e.Name]
	}
	if v.Kind != attr.L || e.Index >= len(v.List) {
		return nil
	}
	return v.List[e.Index]
}

// overlap refuses two paths if one begins with the other, or if they use the same value as a map and as a list.
func overlap(p, q Path) error {
	for k := 0; ; k++ {
		if k == len(p) || k == len(q) {
			return attr.Invalidf("Two document paths overlap with each other; must remove or rewrite one of these paths; path one: %s, path two: %s", p, q)
		}
		if p[k] == q[k] {
			continue
		}
		if (p[k].Index < 0) != (q[k].Index < 0) {
			return attr.Invalidf("Two document paths conflict with each other; must remove or rewrite one of these paths; path one: %s, path two: %s", p, q)
		}
		return nil
	}
}
