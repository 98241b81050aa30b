package keys

import (
	"fmt"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits on what one pattern may cost: the states of its matcher, and the positions and pairs of positions that they are built from.
const (
	maxStates = 1000
	maxLinks  = 1_000_000
)

// matcher is a deterministic automaton over bytes. Each state has a transition for every byte. The automaton starts in state 0. Bytes
// that the pattern never distinguishes share a class.
type matcher struct {
	class  [256]uint8 // by byte
	bytes  []byteSet  // the bytes of each class
	next   []int      // by state and class; see step
	accept []bool     // by state
}

func (m *matcher) step(state int, class uint8) int { return m.next[state*len(m.bytes)+int(class)] }

func (m *matcher) matches(text string) bool {
	state := 0
	for i := range len(text) {
		state = m.step(state, m.class[text[i]])
	}
	return m.accept[state]
}

// compile builds the matcher of a pattern. It first determines which positions of the pattern can follow each other
// (Glushkov's automaton). From these it builds the sets of positions that a text can reach (subset construction).
func compile(pattern string) (*matcher, error) {
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSyntax, err)
	}
	var g positions
	whole, err := g.add(tree.Simplify())
	if err != nil {
		return nil, err
	}
	if g.links > maxLinks {
		return nil, tooComplex()
	}
	m := &matcher{}
	m.classes(g.bytes)
	return m, g.determine(m, whole)
}

// classes divides the bytes into numbered classes. Two bytes are in one class if exactly the same sets contain them.
func (m *matcher) classes(sets []byteSet) {
	m.bytes = []byteSet{byteSet{}.not()}
	for _, set := range sets {
		for _, part := range m.bytes {
			in, out := part.and(set), part.and(set.not())
			if in == (byteSet{}) || out == (byteSet{}) {
				continue
			}
			m.bytes[slices.Index(m.bytes, part)] = in
			m.bytes = append(m.bytes, out)
		}
	}
	for c, set := range m.bytes {
		for b := range 256 {
			if set.has(byte(b)) {
				m.class[b] = uint8(c)
			}
		}
	}
}

// positions are the places in a pattern that match one byte each.
type positions struct {
	bytes  []byteSet // the bytes that each position matches
	follow [][]int   // the positions that can follow each position; unordered, with repetitions
	links  int       // number of entries in follow, including those that link refused
}

// piece is a part of a pattern.
type piece struct {
	empty       bool  // whether it matches the empty text
	first, last []int // positions at which a match can begin, and can end
}

var nothing = piece{} // matches no text

func (g *positions) set(s byteSet) piece {
	g.bytes, g.follow = append(g.bytes, s), append(g.follow, nil)
	at := []int{len(g.bytes) - 1}
	return piece{first: at, last: at}
}

// link records that each position of first can follow each position of last.
func (g *positions) link(last, first []int) {
	if g.links += len(last) * len(first); g.links > maxLinks {
		return
	}
	for _, p := range last {
		g.follow[p] = append(g.follow[p], first...)
	}
}

func (g *positions) then(a, b piece) piece {
	g.link(a.last, b.first)
	c := piece{empty: a.empty && b.empty, first: a.first, last: b.last}
	if a.empty {
		c.first = slices.Concat(a.first, b.first)
	}
	if b.empty {
		c.last = slices.Concat(a.last, b.last)
	}
	return c
}

func either(a, b piece) piece {
	return piece{a.empty || b.empty, slices.Concat(a.first, b.first), slices.Concat(a.last, b.last)}
}

// again makes a piece repeatable: a match of it can follow another one.
func (g *positions) again(a piece) piece {
	g.link(a.last, a.first)
	return a
}

// add translates a simplified pattern. It has no counted repetitions, since syntax.Regexp.Simplify expands them.
func (g *positions) add(re *syntax.Regexp) (piece, error) {
	if len(g.bytes) > maxLinks || g.links > maxLinks {
		return nothing, tooComplex()
	}
	switch re.Op {
	case syntax.OpNoMatch:
		return nothing, nil
	case syntax.OpEmptyMatch:
		return piece{empty: true}, nil
	case syntax.OpLiteral:
		all := piece{empty: true}
		for _, r := range re.Rune {
			one := g.runes(r, r)
			if re.Flags&syntax.FoldCase != 0 {
				for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
					one = either(one, g.runes(f, f))
				}
			}
			all = g.then(all, one)
		}
		return all, nil
	case syntax.OpCharClass:
		one := nothing
		for i := 0; i < len(re.Rune); i += 2 {
			one = either(one, g.runes(re.Rune[i], re.Rune[i+1]))
		}
		return one, nil
	case syntax.OpAnyChar:
		return g.runes(0, unicode.MaxRune), nil
	case syntax.OpAnyCharNotNL:
		return either(g.runes(0, '\n'-1), g.runes('\n'+1, unicode.MaxRune)), nil
	case syntax.OpCapture:
		return g.add(re.Sub[0])
	case syntax.OpStar, syntax.OpPlus, syntax.OpQuest:
		sub, err := g.add(re.Sub[0])
		if re.Op != syntax.OpQuest {
			sub = g.again(sub)
		}
		sub.empty = sub.empty || re.Op != syntax.OpPlus
		return sub, err
	case syntax.OpConcat:
		all := piece{empty: true}
		for _, sub := range re.Sub {
			next, err := g.add(sub)
			if err != nil {
				return nothing, err
			}
			all = g.then(all, next)
		}
		return all, nil
	case syntax.OpAlternate:
		one := nothing
		for _, sub := range re.Sub {
			next, err := g.add(sub)
			if err != nil {
				return nothing, err
			}
			one = either(one, next)
		}
		return one, nil
	}
	return nothing, fmt.Errorf("%w: anchors and word boundaries have no meaning, since all of the text has to match", ErrSyntax)
}

func tooComplex() error {
	return fmt.Errorf("%w: the pattern takes more than %d states to decide", ErrRange, maxStates)
}

// runes matches the UTF-8 of any one rune from lo to hi.
func (g *positions) runes(lo, hi rune) piece {
	all := nothing
	for _, span := range [...][2]rune{{0, 0x7f}, {0x80, 0x7ff}, {0x800, 0xd7ff}, {0xe000, 0xffff}, {0x10000, utf8.MaxRune}} {
		if from, to := max(lo, span[0]), min(hi, span[1]); from <= to {
			all = either(all, g.between([]byte(string(from)), []byte(string(to))))
		}
	}
	return all
}

// between matches the byte strings from lo to hi. All have the same length, and their bytes after the first are from 0x80 to 0xbf.
func (g *positions) between(lo, hi []byte) piece {
	if len(lo) == 1 {
		return g.set(bytesBetween(lo[0], hi[0]))
	}
	least, most := slices.Repeat([]byte{0x80}, len(lo)-1), slices.Repeat([]byte{0xbf}, len(lo)-1)
	if lo[0] == hi[0] {
		return g.then(g.set(bytesBetween(lo[0], lo[0])), g.between(lo[1:], hi[1:]))
	}
	all, from, to := nothing, lo[0], hi[0]
	if !slices.Equal(lo[1:], least) {
		all = either(all, g.then(g.set(bytesBetween(from, from)), g.between(lo[1:], most)))
		from++
	}
	if !slices.Equal(hi[1:], most) {
		all = either(all, g.then(g.set(bytesBetween(to, to)), g.between(least, hi[1:])))
		to--
	}
	if from <= to {
		all = either(all, g.then(g.set(bytesBetween(from, to)), g.between(least, most)))
	}
	return all
}

// determine fills m with its states and transitions. A state is the set of positions that a text can reach.
func (g *positions) determine(m *matcher, whole piece) error {
	states, sets := map[string]int{}, [][]int{}
	last := make([]bool, len(g.bytes))
	for _, p := range whole.last {
		last[p] = true
	}
	state := func(set []int) int {
		var name strings.Builder
		for _, p := range set {
			fmt.Fprintf(&name, "%d ", p)
		}
		n, ok := states[name.String()]
		if !ok {
			n = len(sets)
			states[name.String()] = n
			sets = append(sets, set)
			m.accept = append(m.accept, slices.ContainsFunc(set, func(p int) bool { return last[p] }))
		}
		return n
	}
	// The start state is not a set of positions. It needs a name of its own, since the name of the empty set is "".
	states["start"] = 0
	sets, m.accept = [][]int{nil}, []bool{whole.empty}
	in := make([][]int, len(g.bytes)) // the classes of the bytes that each position matches
	for p, bytes := range g.bytes {
		for c, class := range m.bytes {
			if class.meets(bytes) {
				in[p] = append(in[p], c)
			}
		}
	}
	for n := 0; ; n++ {
		switch {
		case n == len(sets):
			return nil
		case n >= maxStates:
			return tooComplex()
		}
		var after []int
		if n == 0 {
			after = whole.first
		}
		for _, p := range sets[n] {
			after = append(after, g.follow[p]...)
		}
		next := make([][]int, len(m.bytes)) // the positions that a byte of each class leads to
		for _, p := range sorted(after) {
			for _, c := range in[p] {
				next[c] = append(next[c], p)
			}
		}
		for _, set := range next {
			m.next = append(m.next, state(set))
		}
	}
}

// sorted returns the list in order and without repetitions.
func sorted(list []int) []int {
	list = slices.Clone(list)
	slices.Sort(list)
	return slices.Compact(list)
}
