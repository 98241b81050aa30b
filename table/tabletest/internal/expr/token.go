package expr

import (
	"strings"
	"unicode/utf8"

	"github.com/mortise-go/mortise/table/tabletest/internal/attr"
)

type tokenKind uint8

const (
	tokEOF tokenKind = iota
	tokName
	tokNameRef  // #name
	tokValueRef // :value
	tokIndex    // digits
	tokAnd
	tokOr
	tokNot
	tokIn
	tokBetween
	tokSet
	tokRemove
	tokAdd
	tokDelete
	tokEq
	tokNe
	tokLt
	tokLe
	tokGt
	tokGe
	tokPlus
	tokMinus
	tokComma
	tokDot
	tokOpen
	tokClose
	tokOpenIndex
	tokCloseIndex
	tokUnknown
)

type token struct {
	kind       tokenKind
	start, end int
}

// lexer splits the source into tokens on demand. It keeps the last two tokens, since syntax errors quote them.
type lexer struct {
	src       string
	prev, cur token
	hasPrev   bool
}

func newLexer(src string) *lexer {
	l := &lexer{src: src}
	l.cur = l.scan(0)
	return l
}

// next returns the current token and moves to the following one.
func (l *lexer) next() token {
	t := l.cur
	l.prev, l.hasPrev = t, true
	l.cur = l.scan(t.end)
	return t
}

func (l *lexer) text(t token) string { return l.src[t.start:t.end] }

func (l *lexer) scan(pos int) token {
	for pos < len(l.src) && isSpace(l.src[pos]) {
		pos++
	}
	if pos >= len(l.src) {
		return token{kind: tokEOF, start: len(l.src), end: len(l.src)}
	}
	switch c := l.src[pos]; {
	case isLetter(c):
		end := wordEnd(l.src, pos+1)
		return token{kind: keyword(l.src[pos:end]), start: pos, end: end}
	case c == '#' || c == ':':
		end := wordEnd(l.src, pos+1)
		if end == pos+1 {
			return token{kind: tokUnknown, start: pos, end: end}
		}
		if c == '#' {
			return token{kind: tokNameRef, start: pos, end: end}
		}
		return token{kind: tokValueRef, start: pos, end: end}
	case c == '0':
		return token{kind: tokIndex, start: pos, end: pos + 1}
	case isDigit(c):
		end := pos
		for end < len(l.src) && isDigit(l.src[end]) {
			end++
		}
		return token{kind: tokIndex, start: pos, end: end}
	}
	return l.symbol(pos)
}

func (l *lexer) symbol(pos int) token {
	one := func(k tokenKind) token { return token{kind: k, start: pos, end: pos + 1} }
	two := func(k tokenKind) token { return token{kind: k, start: pos, end: pos + 2} }
	rest := l.src[pos:]
	switch rest[0] {
	case '=':
		return one(tokEq)
	case '<':
		switch {
		case strings.HasPrefix(rest, "<>"):
			return two(tokNe)
		case strings.HasPrefix(rest, "<="):
			return two(tokLe)
		}
		return one(tokLt)
	case '>':
		if strings.HasPrefix(rest, ">=") {
			return two(tokGe)
		}
		return one(tokGt)
	case '+':
		return one(tokPlus)
	case '-':
		return one(tokMinus)
	case ',':
		return one(tokComma)
	case '.':
		return one(tokDot)
	case '(':
		return one(tokOpen)
	case ')':
		return one(tokClose)
	case '[':
		return one(tokOpenIndex)
	case ']':
		return one(tokCloseIndex)
	}
	_, size := utf8.DecodeRuneInString(rest)
	return token{kind: tokUnknown, start: pos, end: pos + size}
}

func isSpace(c byte) bool  { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }
func isDigit(c byte) bool  { return c >= '0' && c <= '9' }
func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

func wordEnd(s string, pos int) int {
	for pos < len(s) && (isLetter(s[pos]) || isDigit(s[pos]) || s[pos] == '_') {
		pos++
	}
	return pos
}

func keyword(word string) tokenKind {
	if len(word) > len("BETWEEN") {
		return tokName
	}
	switch strings.ToUpper(word) {
	case "AND":
		return tokAnd
	case "OR":
		return tokOr
	case "NOT":
		return tokNot
	case "IN":
		return tokIn
	case "BETWEEN":
		return tokBetween
	case "SET":
		return tokSet
	case "REMOVE":
		return tokRemove
	case "ADD":
		return tokAdd
	case "DELETE":
		return tokDelete
	}
	return tokName
}

// syntaxError reports the current token and, as the service does, the text from the token before it to the one after.
func (l *lexer) syntaxError() error {
	start := 0
	if l.hasPrev {
		start = l.prev.start
	}
	end := len(l.src)
	name := "<EOF>"
	if l.cur.kind != tokEOF {
		name = l.text(l.cur)
		end = l.scan(l.cur.end).end
	}
	return attr.Invalidf("Syntax error; token: \"%s\", near: \"%s\"", name, l.src[start:end])
}
