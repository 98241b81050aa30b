package jsontree

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// maxDepth bounds the recursion of Parse. DynamoDB allows 32 levels of attributes, of two JSON levels each, within a request.
const maxDepth = 256

var (
	errDepth = errors.New("jsontree: document is nested too deeply")
	errEnd   = errors.New("jsontree: unexpected end of document")
)

// Parse reads data as exactly one JSON document. The tree does not refer to data, so data may be reused afterwards. Each text in the tree has
// memory of its own: what keeps one of them, such as the request log, does not keep the whole document.
func Parse(data []byte) (*Node, error) {
	p := parser{src: data}
	var root Node
	if err := p.value(&root, 0); err != nil {
		return nil, err
	}
	p.space()
	if p.pos != len(p.src) {
		return nil, p.unexpected()
	}
	return &root, nil
}

type parser struct {
	src []byte
	pos int
}

func (p *parser) unexpected() error {
	if p.pos >= len(p.src) {
		return errEnd
	}
	return fmt.Errorf("jsontree: unexpected character at offset %d", p.pos)
}

// next reports whether text comes next.
func (p *parser) next(text string) bool { return bytes.HasPrefix(p.src[p.pos:], []byte(text)) }

func (p *parser) space() {
	for p.pos < len(p.src) {
		switch p.src[p.pos] {
		case ' ', '\t', '\n', '\r':
			p.pos++
		default:
			return
		}
	}
}

func (p *parser) value(n *Node, depth int) error {
	if depth > maxDepth {
		return errDepth
	}
	p.space()
	if p.pos >= len(p.src) {
		return errEnd
	}
	switch c := p.src[p.pos]; {
	case c == '{':
		return p.object(n, depth)
	case c == '[':
		return p.array(n, depth)
	case c == '"':
		text, err := p.text()
		n.Kind, n.Text = String, text
		return err
	case c == 't' && p.next("true"):
		n.Kind, n.Bool = Bool, true
		p.pos += len("true")
		return nil
	case c == 'f' && p.next("false"):
		n.Kind = Bool
		p.pos += len("false")
		return nil
	case c == 'n' && p.next("null"):
		n.Kind = Null
		p.pos += len("null")
		return nil
	case c == '-' || c >= '0' && c <= '9':
		return p.number(n)
	}
	return p.unexpected()
}

func (p *parser) number(n *Node) error {
	start := p.pos
	if p.src[p.pos] == '-' {
		p.pos++
	}
	whole := p.digits()
	if whole == 0 || whole > 1 && p.src[p.pos-whole] == '0' {
		return p.unexpected()
	}
	if p.pos < len(p.src) && p.src[p.pos] == '.' {
		p.pos++
		if p.digits() == 0 {
			return p.unexpected()
		}
	}
	if p.pos < len(p.src) && (p.src[p.pos] == 'e' || p.src[p.pos] == 'E') {
		p.pos++
		if p.pos < len(p.src) && (p.src[p.pos] == '+' || p.src[p.pos] == '-') {
			p.pos++
		}
		if p.digits() == 0 {
			return p.unexpected()
		}
	}
	n.Kind, n.Text = Number, string(p.src[start:p.pos])
	return nil
}

func (p *parser) digits() int {
	start := p.pos
	for p.pos < len(p.src) && p.src[p.pos] >= '0' && p.src[p.pos] <= '9' {
		p.pos++
	}
	return p.pos - start
}

func (p *parser) array(n *Node, depth int) error {
	n.Kind = Array
	n.Items = []Node{}
	p.pos++
	p.space()
	if p.pos < len(p.src) && p.src[p.pos] == ']' {
		p.pos++
		return nil
	}
	for {
		n.Items = append(n.Items, Node{})
		if err := p.value(&n.Items[len(n.Items)-1], depth+1); err != nil {
			return err
		}
		done, err := p.separator(']')
		if err != nil || done {
			return err
		}
	}
}

func (p *parser) object(n *Node, depth int) error {
	n.Kind = Object
	n.Members = []Member{}
	p.pos++
	p.space()
	if p.pos < len(p.src) && p.src[p.pos] == '}' {
		p.pos++
		return nil
	}
	for {
		p.space()
		if p.pos >= len(p.src) || p.src[p.pos] != '"' {
			return p.unexpected()
		}
		name, err := p.text()
		if err != nil {
			return err
		}
		p.space()
		if p.pos >= len(p.src) || p.src[p.pos] != ':' {
			return p.unexpected()
		}
		p.pos++
		if len(n.Members) == 1 { // an attribute value has one member, but nearly every other object has several
			n.Members = slices.Grow(n.Members, 7)
		}
		n.Members = append(n.Members, Member{Name: name})
		if err := p.value(&n.Members[len(n.Members)-1].Value, depth+1); err != nil {
			return err
		}
		done, err := p.separator('}')
		if err != nil || done {
			return err
		}
	}
}

// separator skips a comma, or the closing character. It returns true for the latter.
func (p *parser) separator(closing byte) (bool, error) {
	p.space()
	if p.pos >= len(p.src) {
		return false, errEnd
	}
	switch p.src[p.pos] {
	case ',':
		p.pos++
		return false, nil
	case closing:
		p.pos++
		return true, nil
	}
	return false, p.unexpected()
}

func (p *parser) text() (string, error) {
	p.pos++
	start := p.pos
	for p.pos < len(p.src) {
		switch c := p.src[p.pos]; {
		case c == '"':
			s := string(p.src[start:p.pos])
			p.pos++
			return valid(s), nil
		case c == '\\':
			return p.escaped(start)
		case c < ' ':
			return "", p.unexpected()
		default:
			p.pos++
		}
	}
	return "", errEnd
}

// escaped continues text from its first backslash on. start is where the text begins.
func (p *parser) escaped(start int) (string, error) {
	var b strings.Builder
	b.Write(p.src[start:p.pos])
	for p.pos < len(p.src) {
		c := p.src[p.pos]
		switch {
		case c == '"':
			p.pos++
			return valid(b.String()), nil
		case c < ' ':
			return "", p.unexpected()
		case c != '\\':
			b.WriteByte(c)
			p.pos++
		default:
			r, err := p.escape()
			if err != nil {
				return "", err
			}
			b.WriteRune(r)
		}
	}
	return "", errEnd
}

func (p *parser) escape() (rune, error) {
	if p.pos+1 >= len(p.src) {
		return 0, errEnd
	}
	c := p.src[p.pos+1]
	p.pos += 2
	switch c {
	case '"', '\\', '/':
		return rune(c), nil
	case 'b':
		return '\b', nil
	case 'f':
		return '\f', nil
	case 'n':
		return '\n', nil
	case 'r':
		return '\r', nil
	case 't':
		return '\t', nil
	case 'u':
		r, ok := p.hex()
		if !ok {
			return 0, p.unexpected()
		}
		if !utf16.IsSurrogate(r) {
			return r, nil
		}
		if at := p.pos; p.next(`\u`) {
			p.pos += 2
			low, _ := p.hex()
			if full := utf16.DecodeRune(r, low); full != utf8.RuneError {
				return full, nil
			}
			p.pos = at // the next escape is a character of its own
		}
		return utf8.RuneError, nil
	}
	p.pos--
	return 0, p.unexpected()
}

func (p *parser) hex() (rune, bool) {
	if p.pos+4 > len(p.src) {
		return 0, false
	}
	var r rune
	for i := range 4 {
		c := p.src[p.pos+i]
		switch {
		case c >= '0' && c <= '9':
			r = r<<4 | rune(c-'0')
		case c >= 'a' && c <= 'f':
			r = r<<4 | rune(c-'a'+10)
		case c >= 'A' && c <= 'F':
			r = r<<4 | rune(c-'A'+10)
		default:
			return 0, false
		}
	}
	p.pos += 4
	return r, true
}

// valid replaces each byte that is not part of a UTF-8 sequence by U+FFFD, as encoding/json does.
func valid(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return string([]rune(s))
}
