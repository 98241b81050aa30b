package keys

import "strings"

// Overlap reports whether a and b could produce the same key. False is proven. True means that no proof was found. A
// nil template overlaps everything. The templates may have different delimiters.
//
// Overlap looks for a string that both templates can produce. It takes delimiters, escapes, widths, the digits of the
// codecs and patterns ([Template.Only], [Template.Except]) into account. It ignores UTF-8, the limit, shards, and
// whether a number or date is in range.
//
// The cost is low for templates whose literal text differs at the beginning or at the end. Otherwise it is at most the
// product of the lengths of both templates in bytes, where idN counts as 2N, and of the states of their patterns. Call
// Overlap when templates are defined, not for each request.
func Overlap(a, b *Template) bool {
	if a.check("overlap") != nil || b.check("overlap") != nil {
		return true
	}
	if apart(a, b) {
		return false
	}
	m, n := a.language(), b.language()
	if len(m.edges) > maxPairs/len(n.edges) {
		return true
	}
	type pair struct{ a, b int }
	seen := make([]bool, len(m.edges)*len(n.edges))
	todo := []pair{{}}
	visit := func(a, b int) {
		if next := a*len(n.edges) + b; !seen[next] {
			seen[next] = true
			todo = append(todo, pair{a, b})
		}
	}
	for len(todo) > 0 {
		at := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if at.a == m.accept && at.b == n.accept {
			return true
		}
		for _, f := range n.edges[at.b] {
			if f.skip {
				visit(at.a, f.to)
			}
		}
		for _, e := range m.edges[at.a] {
			if e.skip {
				visit(e.to, at.b)
				continue
			}
			for _, f := range n.edges[at.b] {
				if !f.skip && e.bytes.meets(f.bytes) {
					visit(e.to, f.to)
				}
			}
		}
	}
	return false
}

// maxPairs bounds the pairs of states that Overlap visits. Templates without patterns never reach it; long ids with large patterns can.
const maxPairs = 1 << 26

// apart reports whether a and b can be told apart by the literal text before the first field, or by the one after the last field.
func apart(a, b *Template) bool {
	first, other := a.lead(), b.lead()
	n := min(len(first), len(other))
	if first[:n] != other[:n] {
		return true
	}
	n = min(len(a.tail), len(b.tail))
	return a.tail[len(a.tail)-n:] != b.tail[len(b.tail)-n:]
}

// lead returns the literal text with which every key of t begins.
func (t *Template) lead() string {
	if len(t.parts) > 0 {
		return t.parts[0].literal
	}
	return t.tail
}

// language returns the template's automaton. It is built once, since each template is compared with many others.
func (t *Template) language() *automaton {
	t.once.Do(func() { t.regular = t.automaton() })
	return t.regular
}

// automaton accepts a superset of a template's keys. It starts in state 0.
type automaton struct {
	edges  [][]edge // by state
	accept int
}

type edge struct {
	bytes byteSet
	to    int
	skip  bool // consumes no byte; bytes has no meaning
}

type byteSet [4]uint64

func bytesOf(s string) (set byteSet) {
	for i := range len(s) {
		set[s[i]/64] |= 1 << (s[i] % 64)
	}
	return set
}

func (b byteSet) not() byteSet { return byteSet{^b[0], ^b[1], ^b[2], ^b[3]} }

func (b byteSet) and(c byteSet) byteSet {
	return byteSet{b[0] & c[0], b[1] & c[1], b[2] & c[2], b[3] & c[3]}
}

func (b byteSet) meets(c byteSet) bool { return b.and(c) != byteSet{} }

func (b byteSet) has(c byte) bool { return b[c/64]&(1<<(c%64)) != 0 }

func bytesBetween(lo, hi byte) (set byteSet) {
	for c := int(lo); c <= int(hi); c++ {
		set[c/64] |= 1 << (c % 64)
	}
	return set
}

func (m *automaton) state() int {
	m.edges = append(m.edges, nil)
	return len(m.edges) - 1
}

func (m *automaton) edge(from int, bytes byteSet, to int) {
	m.edges[from] = append(m.edges[from], edge{bytes: bytes, to: to})
}

func (m *automaton) skip(from, to int) {
	m.edges[from] = append(m.edges[from], edge{to: to, skip: true})
}

// add appends other: m then accepts each of its texts followed by a text of other.
func (m *automaton) add(other *automaton) {
	first := len(m.edges)
	for _, edges := range other.edges {
		m.state()
		for _, e := range edges {
			e.to += first
			m.edges[len(m.edges)-1] = append(m.edges[len(m.edges)-1], e)
		}
	}
	m.skip(m.accept, first)
	m.accept = first + other.accept
}

// then adds a new accepting state. Each of the bytes leads to it from the accepting state before.
func (m *automaton) then(bytes byteSet) {
	next := m.state()
	m.edge(m.accept, bytes, next)
	m.accept = next
}

func (m *automaton) literal(s string) {
	for i := range len(s) {
		m.then(bytesOf(s[i : i+1]))
	}
}

// escaped adds a new accepting state. Each byte of a string leads to it: in two steps if it has to be escaped, otherwise in one.
func (m *automaton) escaped(esc escaper) {
	from := m.accept
	m.then(bytesOf(string([]byte{esc.delim, esc.esc})).not())
	m.escapeEdges(from, m.accept, esc)
}

func (m *automaton) escapeEdges(from, to int, esc escaper) {
	middle := m.state()
	m.edge(from, bytesOf(string(rune(esc.esc))), middle)
	m.edge(middle, bytesOf(string([]byte{esc.forDelim, esc.forEsc})), to)
}

func (t *Template) automaton() *automaton {
	m := newAutomaton()
	for i := range t.parts {
		p := &t.parts[i]
		m.literal(p.literal)
		if len(p.rules) == 0 {
			m.codec(p.codec, t.esc)
			continue
		}
		one := newAutomaton()
		one.codec(p.codec, t.esc)
		m.add(one.meet(p.rules))
	}
	m.literal(t.tail)
	return m
}

func newAutomaton() *automaton { return &automaton{edges: make([][]edge, 1)} }

// codec appends the texts of all values of a codec.
func (m *automaton) codec(c codec, esc escaper) {
	switch c.kind {
	case kindString:
		m.escaped(esc)
		m.edge(m.accept, bytesOf(string([]byte{esc.delim, esc.esc})).not(), m.accept)
		m.escapeEdges(m.accept, m.accept, esc)
	case kindRaw:
		free := bytesOf(string(rune(esc.delim))).not()
		m.then(free)
		m.edge(m.accept, free, m.accept)
	case kindRest, kindKey:
		free := byteSet{}.not()
		m.then(free)
		m.edge(m.accept, free, m.accept)
	case kindID:
		for range c.width {
			m.escaped(esc)
		}
	default:
		m.fixed(c)
	}
}

// fixed appends the texts of a fixed-width codec. It ignores which numbers and dates are in range.
func (m *automaton) fixed(c codec) {
	const layout = "dddd-dd-ddTdd:dd:dd.dddddddddZ"
	var pattern string
	digits := "0123456789"
	switch c.kind {
	case kindFloat:
		digits = hexDigits
		pattern = strings.Repeat("d", c.width)
	case kindBool:
		digits = "01"
		pattern = "d"
	case kindTime, kindDate:
		pattern = layout[:c.width]
	case kindTimeMS, kindTimeS:
		pattern = layout[:c.width-1] + "Z"
	default:
		pattern = strings.Repeat("d", c.width)
	}
	for i := range len(pattern) {
		switch {
		case pattern[i] != 'd':
			m.literal(pattern[i : i+1])
		case c.kind == kindInt && i == 0 && c.desc:
			m.then(bytesOf("89"))
		case c.kind == kindInt && i == 0:
			m.then(bytesOf("01"))
		default:
			m.then(bytesOf(digits))
		}
	}
}
