package shape

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/mortise-go/mortise/table/tabletest/internal/jsontree"
)

// maxReported is the maximum number of broken constraints in one error of the service.
const maxReported = 10

// Broken returns an error text that names every constraint that the request breaks, ten at most, or "".
func (s *Shape) Broken(n *jsontree.Node) string {
	for i := range s.fields {
		if f := &s.fields[i]; f.first && n.Get(f.Name).IsNull() {
			return "The parameter '" + f.Name + "' is required but was not present in the request"
		}
	}
	var r report
	s.check(n, nil, &r)
	switch len(r.texts) {
	case 0:
		return ""
	case 1:
		return "1 validation error detected: " + r.texts[0]
	}
	return strconv.Itoa(len(r.texts)) + " validation errors detected: " + strings.Join(r.texts, "; ")
}

// report collects broken constraints.
type report struct{ texts []string }

// place is the position of a value in the request. above is the place of the value around it.
type place struct {
	above *place
	name  string
	key   bool // name is an index of a list or a key of a map, which is never respelled
}

// String spells the path. With java, names of members begin with a lower-case letter.
func (p *place) String(java bool) string {
	name := p.name
	if java && !p.key {
		name = lowerFirst(name)
	}
	if p.key {
		name += ".member"
	}
	if p.above == nil {
		return name
	}
	return p.above.String(java) + "." + name
}

func lowerFirst(name string) string { return strings.ToLower(name[:1]) + name[1:] }

func (r *report) add(s *Shape, n *jsontree.Node, p *place, constraint string) {
	if len(r.texts) == maxReported {
		return
	}
	at := "Value "
	switch {
	case s.terse:
		at += "at '" + p.String(false)
	case n.IsNull():
		at += "null at '" + p.String(true)
	default:
		at += "'" + s.render(n) + "' at '" + p.String(true)
	}
	r.texts = append(r.texts, at+"' failed to satisfy constraint: "+constraint)
}

// check reports the constraints that a value breaks, and those that the values inside it break. The value is not null.
func (s *Shape) check(n *jsontree.Node, p *place, r *report) {
	if s.kind == structure {
		for i := range s.fields {
			f := &s.fields[i]
			switch v := n.Get(f.Name); {
			case !v.IsNull():
				if f.Shape.plain() {
					continue
				}
				f.Shape.check(v, &place{above: p, name: f.Name}, r)
			case f.Required:
				r.add(f.Shape, v, &place{above: p, name: f.Name}, "Member must not be null")
			}
		}
		return
	}
	s.own(n, func(constraint string) { r.add(s, n, p, constraint) })
	switch s.kind {
	case list:
		if s.elem.plain() {
			return
		}
		for i := range n.Items {
			s.elem.check(&n.Items[i], &place{above: p, name: strconv.Itoa(i + 1), key: true}, r)
		}
	case dictionary:
		s.entries(n, p, r)
	}
}

// plain reports whether a value of the shape needs no check.
func (s *Shape) plain() bool {
	switch {
	case s.enum != nil, s.name, s.hasLow, s.hasHigh, s.keys != nil, s.each != nil, s.kind == structure:
		return false
	case s.elem != nil:
		return s.elem.plain()
	}
	return true
}

func (s *Shape) entries(n *jsontree.Node, p *place, r *report) {
	for i := range n.Members {
		m := &n.Members[i]
		if s.keys != nil && s.keys.breaks(&jsontree.Node{Kind: jsontree.String, Text: m.Name}) {
			r.add(s, n, p, "Map keys must satisfy constraint: ["+strings.Join(s.keys.constraints(), ", ")+"]")
		}
		if s.each != nil && s.each.breaks(&m.Value) {
			r.add(s, n, p, "Map value must satisfy constraint: ["+strings.Join(s.each.constraints(), ", ")+"]")
		}
	}
	if s.elem.plain() {
		return
	}
	for i := range n.Members {
		m := &n.Members[i]
		s.elem.check(&m.Value, &place{above: p, name: m.Name, key: true}, r)
	}
}

func (s *Shape) breaks(n *jsontree.Node) bool {
	broken := false
	s.own(n, func(string) { broken = true })
	return broken
}

// own calls report for each constraint of the shape that the value breaks, without the shapes inside it.
func (s *Shape) own(n *jsontree.Node, report func(string)) {
	if s.enum != nil && !slices.Contains(s.enum, n.Text) {
		report(s.enumText())
	}
	if s.resource && strings.HasPrefix(n.Text, "arn:") {
		return
	}
	if s.resource && n.Text == "" && !s.control { // neither an ARN nor a name
		report("Member must have length greater than or equal to 1")
		return
	}
	if s.control {
		s.bounds(n, report)
	}
	if s.name && (n.Text == "" || !IsName(n.Text)) {
		report(nameText)
	}
	if !s.control {
		s.bounds(n, report)
	}
}

func (s *Shape) bounds(n *jsontree.Node, report func(string)) {
	if !s.hasLow && !s.hasHigh {
		return
	}
	size := s.size(n)
	if s.hasLow && size < int64(s.low) {
		report(s.lowText())
	}
	if s.hasHigh && size > int64(s.high) {
		report(s.highText())
	}
}

// constraints returns the texts of all length and name constraints, broken or not.
func (s *Shape) constraints() []string {
	var out []string
	if s.hasHigh {
		out = append(out, s.highText())
	}
	if s.hasLow {
		out = append(out, s.lowText())
	}
	if s.name {
		out = append(out, nameText)
	}
	return out
}

const nameText = "Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+"

func (s *Shape) enumText() string {
	return "Member must satisfy enum value set: [" + strings.Join(s.enum, ", ") + "]"
}

func (s *Shape) lowText() string {
	return "Member must have " + s.measure() + " greater than or equal to " + strconv.Itoa(s.low)
}

func (s *Shape) highText() string {
	return "Member must have " + s.measure() + " less than or equal to " + strconv.Itoa(s.high)
}

func (s *Shape) measure() string {
	if s.kind == integer {
		return "value"
	}
	return "length"
}

// size returns a length or a value. A value can be beyond the int of a 32-bit machine.
func (s *Shape) size(n *jsontree.Node) int64 {
	switch s.kind {
	case text:
		return int64(utf8.RuneCountInString(n.Text))
	case list:
		return int64(len(n.Items))
	case dictionary:
		return int64(len(n.Members))
	}
	v, _ := strconv.ParseInt(n.Text, 10, 64)
	return v
}

// IsName reports whether a text has only the characters of names of tables and indexes.
func IsName(s string) bool {
	for i := range len(s) {
		c := s[i]
		ok := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-' || c == '.'
		if !ok {
			return false
		}
	}
	return true
}
