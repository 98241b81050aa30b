package differential

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// builder collects the names and values that the expressions of one request use.
type builder struct {
	g      *Generator
	table  *Table
	names  map[string]string
	values map[string]types.AttributeValue
}

func (g *Generator) builder(t *Table) *builder {
	return &builder{g: g, table: t}
}

// name returns a token for an attribute name: the name itself if that is allowed, otherwise (and sometimes anyway) a
// placeholder.
func (b *builder) name(name string) string {
	legal := !strings.ContainsAny(name, "-.") && name != "status"
	if legal && b.g.chance(0.7) {
		return name
	}
	if b.names == nil {
		b.names = map[string]string{}
	}
	for i := range len(b.names) {
		if ph := fmt.Sprintf("#n%d", i); b.names[ph] == name && b.g.chance(0.8) {
			return ph
		}
	}
	ph := fmt.Sprintf("#n%d", len(b.names))
	b.names[ph] = name
	return ph
}

func (b *builder) value(v types.AttributeValue) string {
	if b.values == nil {
		b.values = map[string]types.AttributeValue{}
	}
	ph := fmt.Sprintf(":v%d", len(b.values))
	b.values[ph] = v
	return ph
}

// try calls f until it accepts what it has made, and forgets the names and values of rejected attempts.
func try[T any](b *builder, f func() (T, bool)) T {
	names, values := maps.Clone(b.names), maps.Clone(b.values)
	for {
		if v, ok := f(); ok {
			return v
		}
		b.names, b.values = maps.Clone(names), maps.Clone(values)
	}
}

// path is a document path with the type that its target usually has.
type path struct {
	text, kind, top string
}

// path returns a random path: often to an attribute that exists with its usual type, sometimes into one, sometimes to
// nothing.
func (b *builder) path() path {
	g := b.g
	switch n := g.IntN(100); {
	case n < 62:
		a := pick(g.source, attributes)
		return path{b.name(a.name), a.kind, a.name}
	case n < 76:
		step := pick(g.source, []struct{ name, kind string }{{"x", "N"}, {"y", "S"}, {"l", "L"}, {"m", "M"}, {"ss", "SS"}, {"q", "N"}})
		text := b.name("m") + "." + b.name(step.name)
		switch {
		case step.name == "l" && g.chance(0.6):
			text += fmt.Sprintf("[%d]", g.between(0, 3))
			step.kind = "N"
		case step.name == "m" && g.chance(0.6):
			text += "." + b.name(pick(g.source, []string{"x", "y"}))
			step.kind = "N"
		}
		return path{text, step.kind, "m"}
	case n < 88:
		text := fmt.Sprintf("%s[%d]", b.name("l"), pick(g.source, []int{0, 0, 1, 1, 2, 3, 7}))
		switch {
		case g.chance(0.15):
			text += "." + b.name("x")
		case g.chance(0.1):
			text += fmt.Sprintf("[%d]", g.between(0, 2))
		}
		return path{text, "N", "l"}
	case n < 92:
		return path{b.name("q"), "N", "q"}
	case n < 95:
		a := pick(g.source, attributes)
		return path{b.name(a.name) + pick(g.source, []string{".x", "[0]"}), "N", a.name}
	default:
		k := b.table.Hash
		if b.table.Range.Name != "" && g.chance(0.5) {
			k = b.table.Range
		}
		return path{b.name(k.Name), k.Type, k.Name}
	}
}

// like returns a value placeholder, usually of the given type.
func (b *builder) like(kind string) string {
	if b.g.chance(0.06) {
		kind = pick(b.g.source, kinds)
	}
	return b.value(b.g.value(kind, 1))
}

// mostly is like the function like, but more often of the given type.
func (b *builder) mostly(kind string) string {
	if b.g.chance(0.04) {
		kind = pick(b.g.source, kinds)
	}
	return b.value(b.g.value(kind, 1))
}

// operand returns something to compare with a path of the given type.
func (b *builder) operand(kind string) string {
	switch n := b.g.IntN(20); {
	case n < 16:
		return b.like(kind)
	case n < 18:
		return b.path().text
	case n < 19 && kind == "N":
		return "size(" + b.path().text + ")"
	default:
		return b.like(kind)
	}
}

func (b *builder) spell(keyword string) string {
	if b.g.chance(0.1) {
		return strings.ToLower(keyword)
	}
	return keyword
}

// condition returns a random condition.
func (b *builder) condition(depth int) string {
	g := b.g
	if depth > 0 && g.chance(0.45) {
		left := b.condition(depth - 1)
		switch g.IntN(6) {
		case 0:
			return left + " " + b.spell("AND") + " " + b.condition(depth-1)
		case 1, 2:
			return left + " " + b.spell("OR") + " " + b.condition(depth-1)
		case 3, 4:
			return b.spell("NOT") + " " + left
		default:
			return "(" + left + " " + b.spell("OR") + " " + b.condition(depth-1) + ")"
		}
	}
	p := b.path()
	switch n := g.IntN(100); {
	case n < 40:
		return p.text + b.comparator(p.kind) + b.operand(p.kind)
	case n < 43:
		return b.operand(p.kind) + b.comparator(p.kind) + p.text
	case n < 50 && ordered(p.kind):
		return p.text + " " + b.spell("BETWEEN") + " " + b.bounds(p.kind)
	case n < 57:
		return p.text + " " + b.spell("IN") + " (" + b.operands(p.kind, pick(g.source, []int{1, 2, 3, 5})) + ")"
	case n < 67:
		return "attribute_exists(" + p.text + ")"
	case n < 75:
		return "attribute_not_exists(" + p.text + ")"
	case n < 81:
		kind := p.kind
		if g.chance(0.4) {
			kind = pick(g.source, kinds)
		}
		return "attribute_type(" + p.text + ", " + b.value(str(kind)) + ")"
	case n < 87:
		if g.chance(0.8) {
			s := pick(g.source, attributes[:1])
			p = path{b.name(s.name), "S", s.name}
		}
		return "begins_with(" + p.text + ", " + b.like(pick(g.source, []string{"S", "S", "B"})) + ")"
	case n < 94:
		kind := p.kind
		if isSet(kind) {
			kind = element(kind)
		} else if kind == "L" {
			kind = pick(g.source, []string{"N", "S", "BOOL"})
		}
		if g.chance(0.15) {
			return "contains(" + p.text + ", " + b.path().text + ")"
		}
		return "contains(" + p.text + ", " + b.like(kind) + ")"
	default:
		return "size(" + p.text + ")" + pick(g.source, []string{" = ", " < ", " >= "}) + b.value(num(pick(g.source, []string{"0", "1", "2", "3", "5"})))
	}
}

// ordered reports whether values of a type compare with less and greater.
func ordered(kind string) bool { return slices.Contains([]string{"S", "N", "B"}, kind) }

// comparator returns a comparator that usually can be true for values of a type.
func (b *builder) comparator(kind string) string {
	if ordered(kind) || b.g.chance(0.05) {
		return pick(b.g.source, []string{" = ", "=", " <> ", " < ", " <= ", " > ", " >= "})
	}
	return pick(b.g.source, []string{" = ", " <> ", " <> "})
}

// bounds returns the operands of a BETWEEN, usually in order.
func (b *builder) bounds(kind string) string {
	low, high := b.g.value(kind, 1), b.g.value(kind, 1)
	if kind == "N" && b.g.chance(0.9) {
		low, high = num(pick(b.g.source, []string{"-1", "0", "1"})), num(pick(b.g.source, []string{"2", "5", "100"}))
	} else if kind == "S" && b.g.chance(0.9) {
		low, high = str(pick(b.g.source, []string{"", "A", "a"})), str(pick(b.g.source, []string{"b", "abc", "é"}))
	}
	return b.value(low) + " " + b.spell("AND") + " " + b.value(high)
}

func (b *builder) operands(kind string, n int) string {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = b.operand(kind)
	}
	return strings.Join(parts, ", ")
}

// projection returns a projection of one to four paths.
func (b *builder) projection() string {
	var parts []string
	seen := map[string]bool{}
	for range b.g.between(1, 4) {
		p := try(b, func() (path, bool) {
			p := b.path()
			return p, !seen[p.top] || b.g.chance(0.02) // overlapping paths are refused
		})
		seen[p.top] = true
		parts = append(parts, p.text)
	}
	return strings.Join(parts, pick(b.g.source, []string{", ", ","}))
}

// update returns an update expression.
func (b *builder) update() string {
	g := b.g
	seen := map[string]bool{}
	next := func() path {
		p := try(b, func() (path, bool) {
			p := b.path()
			key := p.top == b.table.Hash.Name || p.top == b.table.Range.Name
			if key && !g.chance(0.05) || seen[p.top] && !g.chance(0.03) {
				return p, false // key attributes and overlaps are refused
			}
			// A path into something that often does not exist is refused, too.
			return p, !strings.ContainsAny(p.text, ".[") || !g.chance(0.6)
		})
		seen[p.top] = true
		return p
	}
	var clauses []string
	for _, c := range g.Perm(4)[:pick(g.source, []int{1, 1, 1, 2, 2, 3})] {
		var parts []string
		for range pick(g.source, []int{1, 1, 2, 3}) {
			switch c {
			case 0:
				p := next()
				parts = append(parts, p.text+" = "+b.setValue(p))
			case 1:
				parts = append(parts, next().text)
			case 2:
				p := b.attributeOf(seen, "N", "NS", "SS", "BS", "N")
				parts = append(parts, p.text+" "+b.mostly(p.kind))
			case 3:
				p := b.attributeOf(seen, "NS", "SS", "BS")
				parts = append(parts, p.text+" "+b.mostly(p.kind))
			}
		}
		clauses = append(clauses, b.spell([]string{"SET", "REMOVE", "ADD", "DELETE"}[c])+" "+strings.Join(parts, ", "))
	}
	return strings.Join(clauses, " ")
}

// ofExisting returns the condition of an update. If the update only removes, it adds the condition that the item
// exists. If the item does not exist, DynamoDB Local creates one of only the key, which the service does not do.
func (b *builder) ofExisting(update, condition *string) *string {
	if update == nil || strings.Contains(strings.ToUpper(*update), "SET ") || strings.Contains(strings.ToUpper(*update), "ADD ") {
		return condition
	}
	exists := "attribute_exists(" + b.name(b.table.Hash.Name) + ")"
	if condition != nil {
		exists += " AND (" + *condition + ")"
	}
	return &exists
}

// attributeOf returns an attribute of one of the types, if possible one that
// is not in seen; 5 % are of any type.
func (b *builder) attributeOf(seen map[string]bool, of ...string) path {
	kind := pick(b.g.source, of)
	if b.g.chance(0.02) {
		kind = pick(b.g.source, kinds)
	}
	for range 20 {
		a := pick(b.g.source, attributes)
		if a.kind == kind && !seen[a.name] {
			seen[a.name] = true
			return path{b.name(a.name), kind, a.name}
		}
	}
	name := fmt.Sprintf("new%s%d", kind, len(seen))
	seen[name] = true
	return path{b.name(name), kind, name}
}

// setValue returns the right side of a SET.
func (b *builder) setValue(p path) string {
	g := b.g
	operand := func(kind string) string {
		switch n := g.IntN(10); {
		case n < 5:
			return b.like(kind)
		case n < 7:
			return b.path().text
		case n < 8:
			return "if_not_exists(" + b.path().text + ", " + b.path().text + ")"
		case n < 9:
			return "if_not_exists(" + b.path().text + ", " + b.like(kind) + ")"
		default:
			return "if_not_exists(" + p.text + ", " + b.like(kind) + ")"
		}
	}
	switch {
	case p.kind == "N" && g.chance(0.6):
		left := p.text
		if g.chance(0.5) {
			left = operand("N")
		}
		return left + pick(g.source, []string{" + ", " - ", "+", "-"}) + operand("N")
	case p.kind == "L" && g.chance(0.6):
		args := []string{p.text, operand("L")}
		if g.chance(0.3) {
			args[0] = operand("L")
		}
		if g.chance(0.5) {
			args[0], args[1] = args[1], args[0]
		}
		return "list_append(" + args[0] + ", " + args[1] + ")"
	default:
		return operand(p.kind)
	}
}
