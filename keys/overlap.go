package keys

import "strings"

// Overlap reports whether a and b could produce the same key. It is conservative: false is proven, true means that no proof was
// found. The keys of a template are described by a regular language over bytes, and Overlap looks for a string in both
// languages; delimiters, escapes, widths and the digits of the codecs are part of the description; UTF-8, the limit, shards, and
// numbers and dates out of range are not. Templates with different delimiters are compared as well. A nil template overlaps
// everything.
//
// Templates whose literal text differs at the beginning or at the end, as most do, are told apart by that. Otherwise the cost
// is at most the product of the numbers of bytes in both templates, with idN counting for 2N; it is meant for definitions,
// not for requests.
func Overlap(a, b *Template) bool {
	if a.check("overlap") != nil || b.check("overlap") != nil {
		return true
	}
	if apart(a, b) {
		return false
	}
	m, n := a.language(), b.language()
	type pair struct{ a, b int }
	seen := make([]bool, len(m.edges)*len(n.edges))
	for todo := []pair{{}}; len(todo) > 0; {
		at := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if at.a == m.accept && at.b == n.accept {
			return true
		}
		for _, e := range m.edges[at.a] {
			for _, f := range n.edges[at.b] {
				next := e.to*len(n.edges) + f.to
				if !seen[next] && e.bytes.meets(f.bytes) {
					seen[next] = true
					todo = append(todo, pair{e.to, f.to})
				}
			}
		}
	}
	return false
}

// apart reports that the literal text before the first field, or that after the last one, settles it.
func apart(a, b *Template) bool {
	first, other := a.lead(), b.lead()
	n := min(len(first), len(other))
	if first[:n] != other[:n] {
		return true
	}
	n = min(len(a.tail), len(b.tail))
	return a.tail[len(a.tail)-n:] != b.tail[len(b.tail)-n:]
}

// lead is the literal text that every key of t begins with.
func (t *Template) lead() string {
	if len(t.parts) > 0 {
		return t.parts[0].literal
	}
	return t.tail
}

// language is the template's automaton, made when it is needed first: each template is compared with many others.
func (t *Template) language() *automaton {
	t.once.Do(func() { t.regular = t.automaton() })
	return t.regular
}

// automaton accepts a superset of a template's keys. It starts in state 0.
type automaton struct {
	edges  [][]edge
	accept int
}

type edge struct {
	bytes byteSet
	to    int
}

type byteSet [4]uint64

func bytesOf(s string) (set byteSet) {
	for i := range len(s) {
		set[s[i]/64] |= 1 << (s[i] % 64)
	}
	return set
}

func (b byteSet) not() byteSet { return byteSet{^b[0], ^b[1], ^b[2], ^b[3]} }

func (b byteSet) meets(c byteSet) bool {
	return b[0]&c[0]|b[1]&c[1]|b[2]&c[2]|b[3]&c[3] != 0
}

func (m *automaton) state() int {
	m.edges = append(m.edges, nil)
	return len(m.edges) - 1
}

func (m *automaton) edge(from int, bytes byteSet, to int) {
	m.edges[from] = append(m.edges[from], edge{bytes, to})
}

// then adds a state after accept, reached by one of the bytes, and makes it the accepting one.
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

// escaped adds a state after accept that is reached by one escaped byte, in one step or in two.
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
	m := &automaton{}
	m.state()
	for i := range t.parts {
		p := &t.parts[i]
		m.literal(p.literal)
		switch p.codec.kind {
		case kindString:
			m.escaped(t.esc)
			m.edge(m.accept, bytesOf(string([]byte{t.esc.delim, t.esc.esc})).not(), m.accept)
			m.escapeEdges(m.accept, m.accept, t.esc)
		case kindRaw:
			free := bytesOf(string(rune(t.esc.delim))).not()
			m.then(free)
			m.edge(m.accept, free, m.accept)
		case kindRest, kindKey:
			free := byteSet{}.not()
			m.then(free)
			m.edge(m.accept, free, m.accept)
		case kindID:
			for range p.codec.width {
				m.escaped(t.esc)
			}
		default:
			m.pattern(p.codec)
		}
	}
	m.literal(t.tail)
	return m
}

// pattern adds the text of a fixed-width codec.
func (m *automaton) pattern(c codec) {
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
